use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::error::CliError;
use crate::types::ExitCode;

/// Whose Ctrl-C is.
#[derive(Clone, Copy)]
enum Owner {
    Ours,
    /// It belongs to a program that has the terminal.
    Theirs,
    /// That program has ended at this moment.
    Gone(Instant),
}

static OWNER: Mutex<Owner> = Mutex::new(Owner::Ours);

/// How long after its end a Ctrl-C may still have been meant for another program: the terminal sends its signal to both,
/// and that program may have ended by it before we come to see it.
const LATE: Duration = Duration::from_millis(200);

/// Leaves Ctrl-C to a program that has the terminal for now, until the result is dropped.
pub(super) fn hold() -> Hold {
    own(Owner::Theirs);
    Hold(())
}

fn own(owner: Owner) {
    *OWNER.lock() = owner;
}

/// Whether a Ctrl-C that comes now was meant for somebody else.
fn is_held() -> bool {
    match *OWNER.lock() {
        Owner::Ours => false,
        Owner::Theirs => true,
        Owner::Gone(when) => when.elapsed() < LATE,
    }
}

/// While it is there, Ctrl-C is somebody else's.
#[must_use]
pub(super) struct Hold(());

impl Drop for Hold {
    fn drop(&mut self) {
        own(Owner::Gone(Instant::now()));
    }
}

/// Cancels one token on each signal, in order, and ends the process on the one after, whatever it is doing. The first
/// ends the run, keeping what it has produced. The signals are waited for on a thread of their own: the one that runs everything else may
/// be held up by a reader who does not read.
#[cfg(unix)]
pub(super) fn cancel_on_signals<const N: usize>() -> [CancellationToken; N] {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    let tokens = std::array::from_fn(|_| CancellationToken::new());
    let mut ends = vec![SIGINT, SIGTERM, SIGQUIT];
    if !is_ignored(SIGHUP) {
        ends.push(SIGHUP);
    }
    let Ok(mut signals) = signal_hook::iterator::Signals::new(ends) else {
        // Then a signal ends the process at once, which is no worse than its default.
        return tokens;
    };
    let watched = tokens.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGINT && is_held() {
                continue;
            }
            cancel_next(&watched);
        }
    });
    tokens
}

/// Cancels the first of these that is not; ends the process where all are.
fn cancel_next(tokens: &[CancellationToken]) {
    match tokens.iter().find(|token| !token.is_cancelled()) {
        Some(token) => token.cancel(),
        None => leave(),
    }
}

/// As [`cancel_on_signals`], with the second signal for the process.
pub(super) fn cancel_on_signal() -> CancellationToken {
    let [token] = cancel_on_signals();
    token
}

/// Whether this process was started with a signal ignored, as `nohup` does it with SIGHUP. Where the system does not say
/// it counts as ignored.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}

/// As on Unix, with Ctrl-C only.
#[cfg(not(unix))]
pub(super) fn cancel_on_signals<const N: usize>() -> [CancellationToken; N] {
    let tokens: [CancellationToken; N] = std::array::from_fn(|_| CancellationToken::new());
    let watched = tokens.clone();
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if is_held() {
                continue;
            }
            cancel_next(&watched);
        }
    });
    tokens
}

/// Does this to its end, unless a signal comes first.
///
/// # Errors
/// Those of what is done; or that it was interrupted.
pub(super) async fn unless_cancelled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(CliError::new(ExitCode::Interrupted, "interrupted")),
        done = work => done,
    }
}

#[expect(
    clippy::exit,
    reason = "the second signal means at once, wherever the process is"
)]
fn leave() -> ! {
    let terminal = console::Term::stderr();
    if terminal.is_term() {
        let _ = terminal.show_cursor();
        // Out of what is drawn.
        let _ = terminal.write_line("");
    }
    std::process::exit(i32::from(u8::from(ExitCode::Interrupted)));
}
