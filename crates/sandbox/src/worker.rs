//! The internal commands of our own binary: `reflect __worker lua`, and the watchdog.

use std::ffi::OsString;
use std::io::{BufRead, Write};

use super::lua;
use super::script::ScriptErrorKind;
use super::wire::{Failure, OwnedRequest, WorkerMessage};

/// The first argument that turns this binary into a worker.
pub(super) const WORKER: &str = "__worker";

/// If the arguments (without the program's name) select a worker, runs it and returns the exit code. `main` calls
/// this first.
pub fn worker_main(mut args: impl Iterator<Item = OsString>) -> Option<u8> {
    if args.next()? != WORKER {
        return None;
    }
    // Only a pool starts workers, so no one would read an error message.
    let kind = args.next().unwrap_or_default();
    let served = match kind.to_str() {
        Some("lua") => serve(),
        #[cfg(target_os = "linux")]
        Some(super::watchdog::WATCHDOG) => super::watchdog::serve(),
        _ => Err(std::io::ErrorKind::Unsupported.into()),
    };
    Some(u8::from(served.is_err()))
}

/// Serves requests, one per line, until the input ends.
fn serve() -> std::io::Result<()> {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    super::syscalls::confine();
    let mut stdin = std::io::stdin().lock();
    let mut stdout = std::io::stdout().lock();
    write(&mut stdout, &WorkerMessage::Ready { ready: true })?;
    let mut line = Vec::new();
    loop {
        line.clear();
        if stdin.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_slice::<OwnedRequest>(&line) {
            Ok(asked) => {
                line.clear();
                lua::answer(&asked)
            }
            Err(e) => WorkerMessage::Failed {
                error: Failure {
                    kind: ScriptErrorKind::Protocol,
                    message: format!("invalid request: {e}"),
                    line: None,
                },
                prints: String::new(),
            },
        };
        write(&mut stdout, &answer)?;
    }
}

fn write(mut stdout: impl Write, answer: &WorkerMessage) -> std::io::Result<()> {
    serde_json::to_writer(&mut stdout, answer)?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}
