//! The hidden sides of our own binary: `reflect __worker lua`, and the watchdog.

use std::ffi::OsString;
use std::io::{BufRead, Write};

use super::lua;
use super::script::ScriptErrorKind;
use super::wire::{Answer, Asked, Failure};

/// The first argument that makes this binary a worker.
pub(super) const WORKER: &str = "__worker";

/// Serves as a worker if the arguments (without the program's name) say so, and gives the exit code;
/// `main` calls this before anything else.
pub fn worker_main(mut args: impl Iterator<Item = OsString>) -> Option<u8> {
    if args.next()? != WORKER {
        return None;
    }
    // Only a pool starts workers; there is nobody to read a message.
    let kind = args.next().unwrap_or_default();
    let served = match kind.to_str() {
        Some("lua") => serve(),
        #[cfg(target_os = "linux")]
        Some(super::watchdog::WATCHDOG) => super::watchdog::serve(),
        _ => Err(std::io::ErrorKind::Unsupported.into()),
    };
    Some(u8::from(served.is_err()))
}

/// Answers requests, one a line, until there are no more.
fn serve() -> std::io::Result<()> {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    super::syscalls::confine();
    let mut stdin = std::io::stdin().lock();
    let mut stdout = std::io::stdout().lock();
    write(&mut stdout, &Answer::Ready { ready: true })?;
    let mut line = Vec::new();
    loop {
        line.clear();
        if stdin.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_slice::<Asked>(&line) {
            Ok(asked) => {
                line.clear();
                lua::answer(&asked)
            }
            Err(e) => Answer::Failed {
                error: Failure {
                    kind: ScriptErrorKind::Protocol,
                    message: format!("the request could not be read: {e}"),
                    line: None,
                },
                prints: String::new(),
            },
        };
        write(&mut stdout, &answer)?;
    }
}

fn write(mut stdout: impl Write, answer: &Answer) -> std::io::Result<()> {
    serde_json::to_writer(&mut stdout, answer)?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}
