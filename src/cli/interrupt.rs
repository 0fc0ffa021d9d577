use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use crate::types::ExitCode;

/// Whether Ctrl-C is somebody else's.
static HELD: AtomicBool = AtomicBool::new(false);

/// Leaves Ctrl-C to a program that has the terminal for now, until the result is dropped. The terminal sends its
/// signal to us as well.
pub(super) fn hold() -> Hold {
    HELD.store(true, Ordering::Relaxed);
    Hold(())
}

/// While it is there, Ctrl-C is somebody else's.
#[must_use]
pub(super) struct Hold(());

impl Drop for Hold {
    fn drop(&mut self) {
        HELD.store(false, Ordering::Relaxed);
    }
}

/// Ends the run on the first signal, keeping what it has produced, and the process on the second, whatever
/// it is doing. The signals are waited for on a thread of their own: the one that runs everything else may
/// be held up by a reader who does not read.
#[cfg(unix)]
pub(super) fn cancel_on_signal() -> CancellationToken {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let token = CancellationToken::new();
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else {
        // Then a signal ends the process at once, which is no worse than its default.
        return token;
    };
    let cancel = token.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGINT && HELD.load(Ordering::Relaxed) {
                continue;
            }
            if cancel.is_cancelled() {
                leave();
            }
            cancel.cancel();
        }
    });
    token
}

/// As on Unix, with Ctrl-C only.
#[cfg(not(unix))]
pub(super) fn cancel_on_signal() -> CancellationToken {
    let token = CancellationToken::new();
    let cancel = token.clone();
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if HELD.load(Ordering::Relaxed) {
                continue;
            }
            if cancel.is_cancelled() {
                leave();
            }
            cancel.cancel();
        }
    });
    token
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
