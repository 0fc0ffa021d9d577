//! The result of a run, and its warnings.

use super::machine::State;
use super::select::select;
use crate::types::{ConvergenceReason, ExitCode, LoopSettings, OnFailure, Rank};

/// How a run ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ending {
    /// The version that is the answer.
    pub(super) selected: Option<u32>,
    /// Whether it meets the criteria.
    pub(super) success: bool,
    pub(super) exit_code: ExitCode,
    /// What the user should know about the answer.
    pub(super) warning: Option<String>,
}

/// Selects the answer of a run that stopped. `last` is the last version, judged or not.
///
/// If no version was judged, the last one is the answer: whatever failed, the user gets the existing draft, with
/// the exit code of the failure and a warning. A version that the user accepted is the answer, and so is a text
/// that the user edited and that could not be judged. If the criteria are not met, `on_failure` decides.
pub(super) fn ending(
    reason: ConvergenceReason,
    state: &State,
    last: Option<u32>,
    settings: &LoopSettings,
) -> Ending {
    let judged = select(settings.select(), &state.judged, state.incumbent());
    let best = match reason {
        ConvergenceReason::JudgeFailed => last,
        _ => state.user_choice().or(judged).or(last),
    };
    let is = |version: Option<u32>, good: fn(&Rank) -> bool| {
        state
            .judged
            .iter()
            .any(|(iteration, rank)| Some(*iteration) == version && good(rank))
    };
    let corrected = reason == ConvergenceReason::Corrected;
    let accepted = reason == ConvergenceReason::UserAccepted;
    let success = corrected || accepted || is(best, |rank| rank.satisfactory);
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
                "the run did not finish; printing draft {version}, the best so far"
            )),
            // The error explains the failure; a correction is never judged.
            ConvergenceReason::JudgeFailed | ConvergenceReason::Corrected => None,
            // The observers decide whether it is printed.
            ConvergenceReason::Interrupted if !is_judged => {
                Some(format!("draft {version} was not evaluated"))
            }
            _ if !is_judged => Some(format!("draft {version} is printed without an evaluation")),
            _ => None,
        }
    });
    let exit_code = match reason {
        // As with a model error, there is nothing to print.
        ConvergenceReason::NoDraft if last.is_none() => ExitCode::Provider,
        _ => reason.exit_code(success),
    };
    Ending {
        selected,
        success,
        exit_code,
        warning,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::machine::{Input, step};
    use crate::engine::verdict::Verdict;

    /// The state after versions with these scores, good from 0.8 on.
    fn state(scores: &[f64]) -> State {
        let settings = LoopSettings {
            min_iterations: Some(9),
            max_iterations: Some(9),
            ..LoopSettings::default()
        };
        let (mut state, _, _) = step(State::default(), Input::Begun, &settings, 0);
        for &score in scores {
            for input in [
                Input::Written(None),
                Input::Judged(Verdict::scored(score, score >= 0.8)),
            ] {
                (state, _, _) = step(state, input, &settings, 0);
            }
        }
        state
    }

    fn end(reason: ConvergenceReason, scores: &[f64], last: Option<u32>, on: OnFailure) -> Ending {
        let settings = LoopSettings {
            on_failure: Some(on),
            ..LoopSettings::default()
        };
        ending(reason, &state(scores), last, &settings)
    }

    #[test]
    fn on_failure_has_its_say_only_where_the_criteria_are_not_met() {
        use ConvergenceReason::{Plateau, QualityMet, TokenBudget};
        use OnFailure::{Raise, ReturnBest, ReturnLast};
        for (on, selected) in [(ReturnBest, Some(1)), (ReturnLast, Some(3)), (Raise, None)] {
            let ending = end(Plateau, &[0.6, 0.4], Some(3), on);
            assert_eq!((ending.selected, ending.success), (selected, false));
            assert_eq!(ending.exit_code, ExitCode::NotMet);
            let ending = end(QualityMet, &[0.6, 0.9], Some(2), on);
            assert_eq!((ending.selected, ending.success), (Some(2), true));
        }
        assert_eq!(
            end(TokenBudget, &[0.6], Some(1), Raise).exit_code,
            ExitCode::Limit
        );
    }

    #[test]
    fn whatever_fails_a_draft_that_is_there_is_the_answer() {
        let best = OnFailure::ReturnBest;
        let ending = end(ConvergenceReason::ModelError, &[], Some(1), best);
        assert_eq!(
            (ending.selected, ending.exit_code),
            (Some(1), ExitCode::Provider)
        );
        assert!(ending.warning.unwrap().contains("without an evaluation"));
        let ending = end(ConvergenceReason::ModelError, &[0.6, 0.5], Some(3), best);
        assert_eq!(ending.selected, Some(1));
        assert!(ending.warning.unwrap().contains("did not finish"));
        let ending = end(ConvergenceReason::ModelError, &[], None, best);
        assert_eq!((ending.selected, ending.warning), (None, None));
        let ending = end(ConvergenceReason::JudgeFailed, &[], Some(1), best);
        assert_eq!((ending.selected, ending.warning), (Some(1), None));
    }
}
