//! The next call of the writer, begun while somebody decides.

use jiff::Timestamp;

use super::Run;
use crate::engine::ahead::Ahead;
use crate::engine::machine::{Happened, Next, State, step};
use crate::types::{Event, Phase, Stamped, UserDecision};

impl<'a> Run<'a, '_> {
    /// Begins the call that is made next if somebody wants to go on after this version: the next one of a run over the
    /// journal of this one, with that decision. Only the revision of a version is begun, and only where the writer
    /// makes a single one; programs of the user's run only for a version that is written. Nothing is begun while what
    /// was recorded happens again: it may be decided already, and answered.
    pub(super) fn prefetch(&self, state: &State, judged: u32) -> Option<Ahead<'a>> {
        if !self.plan.writer_tools.is_empty() || self.log.replays() {
            return None;
        }
        let mut journal = self.log.journal()?;
        let decision = UserDecision::Continue;
        let wanted = Happened::Decided(decision.clone());
        let (then, next, _) = step(state.clone(), wanted, &self.settings, self.log.spent());
        let Next::Revise { iteration, .. } = next else {
            return None;
        };
        if then.candidates(&self.settings) > 1 {
            return None;
        }
        journal.events.push(Stamped {
            time: Timestamp::now(),
            event: Event::UserDecision {
                iteration: judged,
                decision,
            },
        });
        let call = self.plan.next_call(self.task, journal)?;
        // A call that failed, and did not end the run, is not in the journal and comes before.
        if (call.phase, call.iteration) != (Phase::Revise, iteration) {
            return None;
        }
        let mut writers = [Some(&self.plan.writer), self.plan.stronger.as_ref()]
            .into_iter()
            .flatten();
        let writer = writers.find(|model| *model.id() == call.model)?;
        Some(Ahead::begin(&**writer, call.request))
    }

    /// Keeps a call that was begun ahead until it is made; gives the one that was kept before.
    pub(super) fn keep(&self, ahead: Option<Ahead<'a>>) -> Option<Ahead<'a>> {
        let mut kept = self.ahead.lock();
        std::mem::replace(&mut *kept, ahead)
    }

    /// Ends a call that was begun ahead, if there is one: it is paid for all the same.
    pub(super) fn unwanted(&self, ahead: Option<Ahead<'_>>, iteration: u32) {
        if let Some(ahead) = ahead {
            ahead.end(&self.log.calls(Phase::Revise, iteration));
        }
    }
}
