//! The loop itself, whoever writes and judges: the machine decides, and a worker does what it says.

use std::pin::pin;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::log::Log;
use super::machine::{Happened, Next, State, step};
use crate::types::{ConvergenceReason, Event, LoopSettings};

/// Who does what the machine decides.
pub(super) trait Worker {
    /// Does it, and says what has happened. The future may be dropped before it is done.
    async fn perform(&mut self, next: Next, state: &State) -> Happened;
}

/// Does what the machine says until it says stop; tells why it does, and how far the run has come.
pub(super) async fn drive(
    worker: &mut impl Worker,
    log: &Log<'_>,
    settings: &LoopSettings,
    begin: (State, Happened),
    cancel: &CancellationToken,
) -> (ConvergenceReason, State) {
    let deadline = settings
        .max_time()
        .map(|limit| Instant::now() + limit.saturating_sub(log.used()));
    let (mut state, mut happened) = begin;
    loop {
        let (new, next, decisions) = step(state, happened, settings, log.spent());
        state = new;
        for decision in decisions {
            log.emit(Event::Decision {
                iteration: decision.iteration,
                choice: decision.choice,
                incumbent: decision.incumbent,
                reason: decision.reason,
            });
        }
        happened = match next {
            Next::Stop(reason) => return (reason, state),
            // Nothing is waited for, and nothing may come between: what a user has written is never lost.
            Next::TakeEdit { .. } => worker.perform(next, &state).await,
            _ => {
                // What is recorded is never cut short: it would be lost.
                let replays = log.went_on();
                let work = pin!(worker.perform(next, &state));
                tokio::select! {
                    biased;
                    () = cancel.cancelled(), if !replays => Happened::Cancelled,
                    // What is done at once, as all that is recorded is, has taken no time.
                    happened = work => happened,
                    () = cancel.cancelled() => Happened::Cancelled,
                    () = sleep_until(deadline) => Happened::TimeUp,
                }
            }
        };
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
