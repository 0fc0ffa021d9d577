//! The loop itself: the machine decides, and a worker performs the effects.

use std::pin::pin;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::log::Log;
use super::machine::{Effect, Input, State, step};
use crate::types::{ConvergenceReason, Event, LoopSettings};

/// Performs the effects that the machine asks for.
pub(super) trait Worker {
    /// Performs an effect and returns its result. The future may be dropped before it completes.
    async fn perform(&mut self, next: Effect, state: &State) -> Input;
}

/// Drives the machine until it stops. Returns the reason and the last state.
pub(super) async fn drive(
    worker: &mut impl Worker,
    log: &Log<'_>,
    settings: &LoopSettings,
    begin: (State, Input),
    cancel: &CancellationToken,
) -> (ConvergenceReason, State) {
    let deadline = settings
        .max_time()
        .map(|limit| Instant::now() + limit.saturating_sub(log.used()));
    let (mut state, mut input) = begin;
    loop {
        let (new, next, decisions) = step(state, input, settings, log.spent());
        state = new;
        for decision in decisions {
            log.emit(Event::Decision {
                iteration: decision.iteration,
                choice: decision.choice,
                incumbent: decision.incumbent,
                reason: decision.reason,
            });
        }
        input = match next {
            Effect::Stop(reason) => return (reason, state),
            // Taking the user's edit does not wait and is not cancelled, so that no edit is lost.
            Effect::TakeEdit { .. } => worker.perform(next, &state).await,
            _ => {
                // Recorded results are always taken in; otherwise they would be lost.
                let replays = log.went_on();
                let work = pin!(worker.perform(next, &state));
                tokio::select! {
                    biased;
                    () = cancel.cancelled(), if !replays => Input::Cancelled,
                    // A result that is ready at once, as recorded ones are, has taken no time.
                    input = work => input,
                    () = cancel.cancelled() => Input::Cancelled,
                    () = sleep_until(deadline) => Input::TimeUp,
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
