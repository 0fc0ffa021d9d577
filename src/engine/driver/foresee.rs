//! What the writer is most likely asked next, found out while somebody decides.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::FutureExt as _;

use super::{Run, tools};
use crate::engine::ahead::{Ahead, Calls};
use crate::engine::machine::{Happened, Next, State, step};
use crate::types::{Phase, Stamped, UserDecision};

impl<'a> Run<'a, '_> {
    /// What is done next if somebody wants to go on, unless the loop alone would stop: then most people will, too.
    /// Only the revision of a version is foreseen, and only where the writer makes a single one; programs of the
    /// user's run only for a version that is written. Nothing is, while what was recorded happens again: it may be
    /// decided already, and answered.
    pub(super) fn likely(&self, state: &State, next: Next) -> Option<Next> {
        let alone = matches!(next, Next::AskUser { stops: None, .. });
        let simple = self.plan.writer_tools.is_empty() && !self.log.replays();
        if !(alone && simple && self.plan.prefetch) {
            return None;
        }
        let wanted = Happened::Decided(UserDecision::Continue);
        let (then, likely, _) = step(state.clone(), wanted, &self.settings, self.log.spent());
        let single = then.candidates(&self.settings) == 1;
        Some(likely).filter(|next| matches!(next, Next::Revise { .. }) && single)
    }

    /// Begins the first call of a step that is foreseen. The step is rehearsed by a copy of the run, of which nobody
    /// hears, up to that call.
    pub(super) fn foresee(&self, likely: Next) -> Option<Ahead<'a>> {
        let Next::Revise {
            iteration,
            based_on,
            approach,
        } = likely
        else {
            return None;
        };
        let mut nobody = |_: &Stamped| {};
        let log = self.log.copied(&mut nobody);
        let mut copy = Run {
            plan: self.plan,
            task: self.task,
            settings: self.settings.clone(),
            prompts: self.prompts.clone(),
            panel: None,
            log: &log,
            decider: None,
            edit: String::new(),
            guided: self.guided,
            ledger: self.ledger.clone(),
            note: self.note.clone(),
            guidance: self.guidance.clone(),
            consulted: tools::Consulted::default(),
            in_steps: self.in_steps,
            error: None,
            written: AtomicU64::new(self.written.load(Ordering::Relaxed)),
            candidates: 1,
            history: self.history,
            early: self.early.clone(),
            calls: Calls::Rehearsed(Mutex::new(None)),
            likely: None,
            rejected: None,
            flaws: BTreeMap::new(),
            endless: AtomicBool::new(self.endless.load(Ordering::Relaxed)),
        };
        // There is nothing to wait for before the first call, and the copy waits for that forever.
        let _ = copy.revise(iteration, based_on, approach).now_or_never();
        match copy.calls {
            Calls::Rehearsed(asked) => {
                let (stronger, request) = asked.into_inner()?;
                Some(Ahead::begin(self.plan.who_writes(stronger), request))
            }
            Calls::Made(_) => None,
        }
    }

    /// Ends a call that was begun ahead, if there is one: it is paid for all the same.
    pub(super) fn unwanted(&self, ahead: Option<Ahead<'_>>, iteration: u32) {
        if let Some(ahead) = ahead {
            ahead.end(&self.log.calls(Phase::Revise, iteration));
        }
    }
}
