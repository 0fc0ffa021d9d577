//! What a run returns, and what is said about it.

use super::machine::State;
use super::select::select;
use crate::types::{ConvergenceReason, ExitCode, LoopSettings, OnFailure};

/// How a run ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ending {
    /// The version that is the answer.
    pub(super) selected: Option<u32>,
    /// Whether it meets the criteria.
    pub(super) success: bool,
    pub(super) exit_code: ExitCode,
    /// What people should know about the answer.
    pub(super) warning: Option<String>,
}

/// Chooses the answer of a run that stopped for a reason. `last` is the last version, judged or not.
///
/// Where no version was judged, the last one is the answer: whatever failed, the user gets the draft that there
/// is, with the failure's exit code and a warning. Where the criteria are not met, `on_failure` has its say.
pub(super) fn ending(
    reason: ConvergenceReason,
    state: &State,
    last: Option<u32>,
    settings: &LoopSettings,
) -> Ending {
    let judged = select(settings.select(), &state.judged, state.incumbent());
    let best = match reason {
        ConvergenceReason::JudgeFailed => last,
        _ => judged.or(last),
    };
    let is = |version: Option<u32>, good: fn(&crate::types::Rank) -> bool| {
        state
            .judged
            .iter()
            .any(|(iteration, rank)| Some(*iteration) == version && good(rank))
    };
    let success = is(best, |rank| rank.satisfactory);
    let selected = match settings.on_failure() {
        _ if success => best,
        OnFailure::ReturnBest => best,
        OnFailure::ReturnLast => last,
        OnFailure::Raise => None,
    };
    let warning = selected.and_then(|version| {
        let is_judged = is(selected, |_| true);
        match reason {
            ConvergenceReason::ModelError if is_judged => Some(format!(
                "the loop could not be finished; draft {version}, the best so far, is the answer"
            )),
            // What is said of the failure says it already.
            ConvergenceReason::JudgeFailed => None,
            _ if !is_judged => Some(format!(
                "draft {version} is the answer, though nobody has judged it"
            )),
            _ => None,
        }
    });
    Ending {
        selected,
        success,
        exit_code: reason.exit_code(success),
        warning,
    }
}
