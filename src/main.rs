//! The `reflect` command: everything is in the library's `cli` room.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(u8::from(reflect::cli::run()))
}
