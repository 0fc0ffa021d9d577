//! Those outside of the loop who may decide for it.

use super::log::Log;
use crate::types::{ConvergenceReason, Event, RunRecord, UserDecision, Version};

/// Decides for the loop after a version was judged.
///
/// The loop waits for the answer. What it waits counts for `max_time`; when that is over, or the run is cancelled,
/// the answer is no longer wanted and the future is dropped.
///
/// A closure that gives the decision at once is a decider, too.
#[async_trait::async_trait]
pub trait Decider: Send {
    /// Says what is to happen now.
    async fn decide(&mut self, moment: Moment<'_>) -> UserDecision;
}

#[async_trait::async_trait]
impl<F: FnMut(Moment<'_>) -> UserDecision + Send> Decider for F {
    async fn decide(&mut self, moment: Moment<'_>) -> UserDecision {
        self(moment)
    }
}

/// Where a run stands when somebody may decide.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The version that was judged just now, or the revision of which no draft came: that one is not in the record.
    pub iteration: u32,
    /// The best version so far: a revision starts from it.
    pub incumbent: u32,
    /// Why the loop would stop if it were left alone; `None` if it would go on.
    pub stops: Option<ConvergenceReason>,
    /// The run so far: all versions with their verdicts.
    pub record: &'a RunRecord,
}

impl<'a> Moment<'a> {
    /// The version that was judged just now; `None` if the reply was rejected.
    pub fn version(&self) -> Option<&'a Version> {
        self.record.version(self.iteration)
    }
}

/// Does again what was decided before the run was resumed.
pub(super) fn again(decision: UserDecision, log: &Log<'_>, iteration: u32) -> UserDecision {
    keep(&decision, log, iteration);
    decision
}

/// Asks who decides, and keeps the answer in the record. An answer that means nothing is warned of, and the
/// loop's own rule decides.
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

/// Keeps a decision in the record, unless it leaves everything as it is.
fn keep(decision: &UserDecision, log: &Log<'_>, iteration: u32) {
    if *decision != UserDecision::Auto {
        log.emit(Event::UserDecision {
            iteration,
            decision: decision.clone(),
        });
    }
}

/// The decision as far as it means anything.
fn check(decision: UserDecision, record: &RunRecord) -> Result<UserDecision, String> {
    match decision {
        UserDecision::Guide(wish) if wish.trim().is_empty() => Ok(UserDecision::Continue),
        UserDecision::Edit { text, .. } if text.trim().is_empty() => {
            Err("the edited text is empty: it is left out, and the loop decides".to_owned())
        }
        UserDecision::Edit { of, .. } if record.version(of).is_none() => {
            Err(format!("there is no draft {of} to edit: the loop decides"))
        }
        UserDecision::Accept(number) if record.version(number).is_none() => Err(format!(
            "there is no draft {number} to accept: the loop decides"
        )),
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
