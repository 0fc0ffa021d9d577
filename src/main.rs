//! The `reflect` command: everything is in the library's `cli` room.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A worker of the sandbox is this program started again: it must start fast, before all else.
    if let Some(code) = reflect::sandbox::worker_main(std::env::args_os().skip(1)) {
        return ExitCode::from(code);
    }
    reflect::secrets::protect_process();
    ExitCode::from(u8::from(reflect::cli::run()))
}
