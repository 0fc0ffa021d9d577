use tokio_util::sync::CancellationToken;

use crate::types::ExitCode;

/// Ends the run on the first signal, keeping what it has produced, and the process on the second.
pub(super) fn cancel_on_signal() -> CancellationToken {
    let token = CancellationToken::new();
    let cancel = token.clone();
    tokio::spawn(async move {
        let mut signals = Signals::new();
        signals.next().await;
        cancel.cancel();
        signals.next().await;
        let _ = console::Term::stderr().show_cursor();
        #[expect(
            clippy::exit,
            reason = "the second signal means at once, wherever the process is"
        )]
        std::process::exit(i32::from(u8::from(ExitCode::Interrupted)));
    });
    token
}

/// The signals by which people and machines ask a program to end.
struct Signals {
    #[cfg(unix)]
    terminate: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    fn new() -> Self {
        Self {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
                .ok(),
        }
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(terminate) = &mut self.terminate {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
        let _ = tokio::signal::ctrl_c().await;
    }
}
