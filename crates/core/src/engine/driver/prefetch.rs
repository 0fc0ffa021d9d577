//! The writer's next call, started while the user decides.

use jiff::Timestamp;

use super::Run;
use crate::engine::machine::{Effect, Input, State, step};
use crate::engine::prefetched::PrefetchedCall;
use crate::types::{Event, Phase, Stamped, UserDecision};

impl<'a> Run<'a, '_> {
    /// Starts the call that follows if the user continues after this version: the next call of a run over the
    /// journal of this one, with that decision. Only revisions are prefetched, only single ones, and never with
    /// tools, which must run only for a version that is written. Nothing is prefetched during a replay: the
    /// decision and the reply may be recorded.
    pub(super) fn prefetch(&self, state: &State, judged: u32) -> Option<PrefetchedCall<'a>> {
        if !self.plan.writer_tools.is_empty() || self.log.replays() {
            return None;
        }
        let mut journal = self.log.journal()?;
        let decision = UserDecision::Continue;
        let wanted = Input::Decided(decision.clone());
        let (then, next, _) = step(state.clone(), wanted, &self.settings, self.log.spent());
        let Effect::Revise { iteration, .. } = next else {
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
        // A call that failed without ending the run is not in the journal, and would come first.
        if (call.phase, call.iteration) != (Phase::Revise, iteration) {
            return None;
        }
        let mut writers = [Some(&self.plan.writer), self.plan.stronger.as_ref()]
            .into_iter()
            .flatten();
        let writer = writers.find(|model| *model.id() == call.model)?;
        Some(PrefetchedCall::begin(&**writer, call.request))
    }

    /// Stores a prefetched call until it is needed, and returns the one that was stored.
    pub(super) fn swap_prefetched(
        &self,
        prefetched: Option<PrefetchedCall<'a>>,
    ) -> Option<PrefetchedCall<'a>> {
        let mut kept = self.prefetched.lock();
        std::mem::replace(&mut *kept, prefetched)
    }

    /// Ends a prefetched call, if there is one. Its usage counts.
    pub(super) fn discard(&self, prefetched: Option<PrefetchedCall<'_>>, iteration: u32) {
        if let Some(prefetched) = prefetched {
            prefetched.end(&self.log.calls(Phase::Revise, iteration));
        }
    }
}
