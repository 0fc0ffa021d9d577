//! What to do next, as a pure function of what has happened.

use crate::types::{Choice, ConvergenceReason, LoopSettings, Rank};

/// How often a first draft is asked for before the run gives up on getting one.
const FIRST_DRAFT_TRIES: u32 = 2;
/// Unreadable verdicts in a row on one draft that end a run. Each one stands for a call and a repair.
const JUDGE_TRIES: u32 = 2;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct State {
    /// The version that is being worked on.
    iteration: u32,
    /// The best version so far; revisions start from it.
    incumbent: Option<(u32, Rank)>,
    /// Every judged version, in order.
    pub(super) judged: Vec<(u32, Rank)>,
    /// Revisions in a row that brought no better version.
    without_gain: u32,
    /// Unreadable verdicts in a row.
    judge_failures: u32,
    /// Replies in a row that were no drafts.
    rejections: u32,
}

/// What has happened since the last decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Happened {
    /// The run begins, with nothing written.
    Begun,
    /// A text was written.
    Written,
    /// The model's reply was no draft.
    Rejected,
    /// The text was judged.
    Judged(Rank),
    /// The text was judged, and the verdict could not be read.
    Unreadable,
    /// The text could not be judged, since a check failed itself.
    CheckFailed,
    /// A model failed for good.
    ModelFailed,
    /// The time is up.
    TimeUp,
    /// Somebody wants the run to end.
    Cancelled,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Write a first draft.
    Draft { iteration: u32 },
    /// Judge a version, for the `attempt`th time, from 0.
    Evaluate { iteration: u32, attempt: u32 },
    /// Revise a version.
    Revise { iteration: u32, based_on: u32 },
    /// End the run.
    Stop(ConvergenceReason),
}

/// A choice, and why: for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) iteration: u32,
    pub(super) choice: Choice,
    pub(super) incumbent: u32,
    pub(super) reason: String,
}

/// Takes in what has happened, and says what to do. `tokens` is what the run has used so far.
pub(super) fn step(
    mut state: State,
    happened: Happened,
    settings: &LoopSettings,
    tokens: u64,
) -> (State, Next, Vec<Decision>) {
    let mut decisions = Vec::new();
    let next = match happened {
        Happened::Begun => {
            state.iteration = 1;
            Next::Draft { iteration: 1 }
        }
        Happened::Written => {
            state.rejections = 0;
            Next::Evaluate {
                iteration: state.iteration,
                attempt: 0,
            }
        }
        Happened::Rejected => state.reject(settings),
        Happened::Judged(rank) => {
            decisions.push(state.judge(rank));
            if rank.satisfactory {
                Next::Stop(ConvergenceReason::QualityMet)
            } else {
                state.go_on(settings)
            }
        }
        Happened::Unreadable => {
            state.judge_failures += 1;
            if state.judge_failures >= JUDGE_TRIES {
                Next::Stop(ConvergenceReason::JudgeFailed)
            } else {
                Next::Evaluate {
                    iteration: state.iteration,
                    attempt: state.judge_failures,
                }
            }
        }
        // Nothing that is written would mend it.
        Happened::CheckFailed => Next::Stop(ConvergenceReason::JudgeFailed),
        Happened::ModelFailed => Next::Stop(ConvergenceReason::ModelError),
        Happened::TimeUp => Next::Stop(ConvergenceReason::TimeLimit),
        Happened::Cancelled => Next::Stop(ConvergenceReason::Interrupted),
    };
    let next = within_budget(next, settings, tokens);
    if let (Next::Stop(reason), Some((incumbent, _))) = (next, state.incumbent) {
        decisions.push(Decision {
            iteration: state.iteration,
            choice: Choice::Stop,
            incumbent,
            reason: reason.describe().to_owned(),
        });
    }
    (state, next, decisions)
}

/// A step that needs a model is not begun once the token limit is reached: a run goes over its limit by
/// one step at the most.
fn within_budget(next: Next, settings: &LoopSettings, tokens: u64) -> Next {
    match (next, settings.max_total_tokens) {
        (Next::Stop(_), _) => next,
        (_, Some(limit)) if tokens >= limit => Next::Stop(ConvergenceReason::TokenBudget),
        _ => next,
    }
}

impl State {
    /// Takes a verdict in. Only a better version becomes the incumbent; of equals the earlier stays.
    fn judge(&mut self, rank: Rank) -> Decision {
        let iteration = self.iteration;
        self.judge_failures = 0;
        self.judged.push((iteration, rank));
        let score = rank.score;
        let (choice, incumbent, reason) = match self.incumbent {
            None => (
                Choice::Accept,
                iteration,
                format!("the first version, score {score:.2}"),
            ),
            Some((_, best)) if rank > best => (
                Choice::Accept,
                iteration,
                if rank.satisfactory && score <= best.score {
                    "it meets the criteria, which the best so far does not".to_owned()
                } else {
                    format!("score {score:.2}, up from {:.2}", best.score)
                },
            ),
            Some((kept, best)) => (
                Choice::KeepIncumbent,
                kept,
                if score < best.score {
                    format!("score {score:.2}, below version {kept}'s {:.2}", best.score)
                } else {
                    format!(
                        "score {score:.2} is no gain on version {kept}'s {:.2}",
                        best.score
                    )
                },
            ),
        };
        if choice == Choice::Accept {
            self.incumbent = Some((iteration, rank));
            self.without_gain = 0;
        } else {
            self.without_gain += 1;
        }
        Decision {
            iteration,
            choice,
            incumbent,
            reason,
        }
    }

    /// A reply that is no draft: a first draft is asked for again; a revision is lost.
    fn reject(&mut self, settings: &LoopSettings) -> Next {
        self.rejections += 1;
        if self.incumbent.is_some() {
            self.without_gain += 1;
            return self.go_on(settings);
        }
        if self.rejections >= FIRST_DRAFT_TRIES {
            return Next::Stop(ConvergenceReason::ModelError);
        }
        Next::Draft {
            iteration: self.iteration,
        }
    }

    /// Revises the incumbent, unless that is not worth it any more.
    fn go_on(&mut self, settings: &LoopSettings) -> Next {
        let Some((based_on, _)) = self.incumbent else {
            return Next::Stop(ConvergenceReason::ModelError);
        };
        // The order matters for the reason given only: a plateau says more than the limit does.
        if self.without_gain >= settings.plateau_iterations() {
            return Next::Stop(ConvergenceReason::Plateau);
        }
        if self.iteration >= settings.max_iterations() {
            return Next::Stop(ConvergenceReason::MaxIterations);
        }
        self.iteration += 1;
        Next::Revise {
            iteration: self.iteration,
            based_on,
        }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
