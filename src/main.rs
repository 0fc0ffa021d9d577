//! The `reflect` command, implemented in the library's `cli` module.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The sandbox starts this program again as a worker. Check for that first, because workers must start
    // fast.
    if let Some(code) = reflect::sandbox::worker_main(std::env::args_os().skip(1)) {
        return ExitCode::from(code);
    }
    reflect::secrets::protect_process();
    ExitCode::from(u8::from(reflect::cli::run()))
}
