use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::error::CliError;
use crate::types::ExitCode;

/// Who receives Ctrl-C.
#[derive(Clone, Copy)]
enum Owner {
    Ours,
    /// Another program that uses the terminal.
    Theirs,
    /// The other program ended at this moment.
    Gone(Instant),
}

static OWNER: Mutex<Owner> = Mutex::new(Owner::Ours);

/// How long after another program ends Ctrl-C still counts as meant for it. The terminal signals both
/// processes, and the other may exit before we see the signal.
const LATE: Duration = Duration::from_millis(200);

/// Leaves Ctrl-C to another program that uses the terminal, until the result is dropped.
pub(super) fn hold() -> Hold {
    own(Owner::Theirs);
    Hold(())
}

fn own(owner: Owner) {
    *OWNER.lock() = owner;
}

/// Whether a Ctrl-C that arrives now is meant for another program.
fn is_held() -> bool {
    match *OWNER.lock() {
        Owner::Ours => false,
        Owner::Theirs => true,
        Owner::Gone(when) => when.elapsed() < LATE,
    }
}

/// A guard: while it exists, Ctrl-C belongs to another program.
#[must_use]
pub(super) struct Hold(());

impl Drop for Hold {
    fn drop(&mut self) {
        own(Owner::Gone(Instant::now()));
    }
}

/// Cancels one token per signal, in order, and exits the process on the next signal. The first signal ends
/// the run and keeps its results. A dedicated thread waits for signals, because a slow reader of stdout may
/// block the main thread.
#[cfg(unix)]
pub(super) fn cancel_on_signals<const N: usize>() -> [CancellationToken; N] {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    let tokens = std::array::from_fn(|_| CancellationToken::new());
    let mut ends = vec![SIGINT, SIGTERM, SIGQUIT];
    if !is_ignored(SIGHUP) {
        ends.push(SIGHUP);
    }
    let Ok(mut signals) = signal_hook::iterator::Signals::new(ends) else {
        // A signal then ends the process immediately, which is the default.
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

/// Cancels the first active token, or exits the process if there is none.
fn cancel_next(tokens: &[CancellationToken]) {
    match tokens.iter().find(|token| !token.is_cancelled()) {
        Some(token) => token.cancel(),
        None => leave(),
    }
}

/// Like [`cancel_on_signals`], with one token: the second signal exits the process.
pub(super) fn cancel_on_signal() -> CancellationToken {
    let [token] = cancel_on_signals();
    token
}

/// Whether this process was started with a signal ignored, as `nohup` does for SIGHUP. Unknown counts as
/// ignored.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Like on Unix, with Ctrl-C only.
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

/// Completes the work unless a signal comes first.
///
/// # Errors
/// Errors of the work, or `interrupted`.
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
    reason = "a repeated signal must end the process immediately"
)]
fn leave() -> ! {
    let terminal = console::Term::stderr();
    if terminal.is_term() {
        let _ = terminal.show_cursor();
        // End the line being drawn.
        let _ = terminal.write_line("");
    }
    std::process::exit(i32::from(u8::from(ExitCode::Interrupted)));
}
