//! Decisions that are made outside of the loop.

use super::log::Log;
use crate::types::{ConvergenceReason, Event, RunRecord, UserDecision, Version};

/// Decides how the loop continues after an evaluation.
///
/// The loop waits for the answer. The wait counts towards `max_time`; when that is over, or the run is cancelled, the
/// future is dropped.
///
/// A closure that returns the decision at once is a decider, too.
#[async_trait::async_trait]
pub trait Decider: Send {
    /// Decides what happens next.
    async fn decide(&mut self, moment: Moment<'_>) -> UserDecision;
}

#[async_trait::async_trait]
impl<F: FnMut(Moment<'_>) -> UserDecision + Send> Decider for F {
    async fn decide(&mut self, moment: Moment<'_>) -> UserDecision {
        self(moment)
    }
}

/// The state of a run when a decision is due.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The version that was just evaluated, or the iteration whose reply was rejected; the latter is not in the
    /// record.
    pub iteration: u32,
    /// The best version so far: revisions start from it.
    pub incumbent: u32,
    /// Why the loop would stop on its own; `None` if it would continue.
    pub stops: Option<ConvergenceReason>,
    /// The run so far: all versions with their evaluations.
    pub record: &'a RunRecord,
}

impl<'a> Moment<'a> {
    /// The version that was just evaluated; `None` if the reply was rejected.
    pub fn version(&self) -> Option<&'a Version> {
        self.record.version(self.iteration)
    }
}

/// Applies a recorded decision again.
pub(super) fn again(decision: UserDecision, log: &Log<'_>, iteration: u32) -> UserDecision {
    keep(&decision, log, iteration);
    decision
}

/// Asks the decider and records its answer. An invalid answer causes a warning, and the loop's own rule decides.
pub(super) async fn ask(
    decider: &mut dyn Decider,
    log: &Log<'_>,
    iteration: u32,
    incumbent: u32,
    stops: Option<ConvergenceReason>,
) -> UserDecision {
    let record = log.with(RunRecord::clone);
    let moment = Moment {
        iteration,
        incumbent,
        stops,
        record: &record,
    };
    let decision = match check(decider.decide(moment).await, &record) {
        Ok(decision) => decision,
        Err(message) => {
            log.emit(Event::Warning { message });
            UserDecision::Auto
        }
    };
    keep(&decision, log, iteration);
    decision
}

/// Records a decision, unless it changes nothing.
fn keep(decision: &UserDecision, log: &Log<'_>, iteration: u32) {
    if *decision != UserDecision::Auto {
        log.emit(Event::UserDecision {
            iteration,
            decision: decision.clone(),
        });
    }
}

/// The decision, if it is valid.
fn check(decision: UserDecision, record: &RunRecord) -> Result<UserDecision, String> {
    match decision {
        UserDecision::Guide(wish) if wish.trim().is_empty() => Ok(UserDecision::Continue),
        UserDecision::Edit { text, .. } if text.trim().is_empty() => {
            Err("the edited text is empty; the loop decides".to_owned())
        }
        UserDecision::Edit { of, .. } if record.version(of).is_none() => {
            Err(format!("no draft {of} to edit; the loop decides"))
        }
        UserDecision::Accept(number) if record.version(number).is_none() => {
            Err(format!("no draft {number} to accept; the loop decides"))
        }
        decision => Ok(decision),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_nothing_is_not_decided() {
        let record = RunRecord::default();
        let blank = || " \n".to_owned();
        let edit = |of, text: String| UserDecision::Edit { of, text };
        assert_eq!(
            check(UserDecision::Guide(blank()), &record),
            Ok(UserDecision::Continue)
        );
        for nothing in [
            edit(1, blank()),
            edit(1, "Of nothing.".to_owned()),
            UserDecision::Accept(1),
        ] {
            assert!(check(nothing, &record).is_err());
        }
        for decision in [
            UserDecision::Auto,
            UserDecision::Stop,
            UserDecision::Guide("Shorter.".to_owned()),
        ] {
            assert_eq!(check(decision.clone(), &record), Ok(decision));
        }
    }
}
