//! Retries a failed task in another way: with another prompt, strategy or model.
//!
//! The batch process decides by rules, from the row alone. The attempt runs where the task runs: here or on a
//! worker.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::row::Row;
use crate::engine::Loop;
use crate::reflector::ErrorCategory::{self, Network, NotFound, Resource, Timeout};
use crate::reflector::{Assessment, PlannedTask, TaskStatus, evaluate_task};
use crate::types::{Insight, ReflectionCriteria, Strategy, Task};

/// The pause before the second attempt after a transient failure. It doubles with each further attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What a further attempt can change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Means {
    /// The stronger model as `provider:model`, if there is one and it is not the writer already.
    pub stronger: Option<String>,
    /// The initial revision strategy.
    pub strategy: Strategy,
}

impl Means {
    /// Returns the means of this loop.
    pub fn of(plan: &Loop) -> Self {
        Self {
            stronger: plan.stronger().map(ToString::to_string),
            strategy: plan.strategy(),
        }
    }
}

/// What a further attempt at a task changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adjustment {
    /// The number of the attempt; the first retry is 2.
    attempt: u32,
    /// Whether the stronger model writes from the start.
    stronger: bool,
    /// The revision strategy; `None` keeps the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strategy: Option<Strategy>,
    /// The advice to the writer about earlier attempts.
    guidance: Insight,
}

impl Adjustment {
    /// Adjusts the loop of the first attempt.
    pub fn adjust(&self, plan: &Loop) -> Loop {
        let stronger = self.stronger.then(|| plan.by_stronger()).flatten();
        let plan = stronger.unwrap_or_else(|| plan.clone());
        match self.strategy {
            Some(strategy) => plan.with_strategy(strategy),
            None => plan,
        }
    }

    /// Adds the advice to the task.
    pub fn tell(&self, task: &mut Task) {
        task.insights.push(self.guidance.clone());
    }
}

/// A further attempt at a task.
#[derive(Debug)]
pub(super) struct Attempt {
    /// What it changes.
    pub(super) adjustment: Adjustment,
    /// The changes, in words.
    pub(super) adjusted: String,
    /// The wait before it.
    pub(super) pause: Duration,
}

impl Attempt {
    /// Plans the next attempt after this row; `None` if the task would fail again in the same way.
    ///
    /// The stronger model, if there is one, takes over after a network or resource failure, or after two
    /// timeouts. After a timeout or a lack of resources in a revision, drafts are revised by edits, which are
    /// shorter than a rewrite. The writer always receives the reflector's suggestions.
    pub(super) fn after(row: &Row, means: &Means) -> Option<Self> {
        let verdict = assess(row)?;
        let category = verdict.category.filter(|_| verdict.should_replan)?;
        let tried = row.attempts.max(1);
        let mut changes = Vec::new();
        let is_wanted = match category {
            Timeout => tried > 1,
            _ => true,
        };
        let stronger = means.stronger.as_deref().filter(|_| is_wanted);
        if let Some(model) = stronger {
            changes.push(format!("the stronger model {model} writes"));
        }
        let is_long = matches!(category, Timeout | Resource);
        let edits = Strategy::TargetedEdit;
        let is_other = is_long && row.iterations_used > tried && means.strategy != edits;
        if is_other {
            changes.push("drafts are revised by edits".to_owned());
        }
        changes.push(format!(
            "the writer receives advice against {category} failures"
        ));
        let pause = match category {
            Network | Resource => FIRST_PAUSE
                .saturating_mul(1 << (tried - 1).min(8))
                .min(LONGEST_PAUSE),
            _ => Duration::ZERO,
        };
        Some(Self {
            adjustment: Adjustment {
                attempt: tried + 1,
                stronger: stronger.is_some(),
                strategy: is_other.then_some(edits),
                guidance: guidance(category, &verdict),
            },
            adjusted: changes.join("; "),
            pause,
        })
    }
}

/// Returns the reflector's assessment of the last attempt; `None` if it did not fail.
fn assess(row: &Row) -> Option<Assessment> {
    let result = row.last_result();
    let failed = result.status == TaskStatus::Failed;
    let task = PlannedTask::new(result.task_id.clone());
    failed.then(|| evaluate_task(&task, &result, &ReflectionCriteria::default()))
}

/// Creates the advice for the writer after such a failure.
fn guidance(category: ErrorCategory, verdict: &Assessment) -> Insight {
    let suggested = verdict.suggestions.join("; ");
    let advice = advice(category).map_or_else(String::new, |advice| format!(" {advice}"));
    Insight {
        category: "replan".to_owned(),
        content: format!(
            "An earlier attempt at this task failed ({category}). What helps: {suggested}.{advice}"
        ),
        confidence: verdict.confidence,
    }
}

/// Returns what a writer can do about such failures; `None` if it can do nothing.
pub fn advice(category: ErrorCategory) -> Option<&'static str> {
    match category {
        Timeout => Some("Write no more than the task needs, so that the answer is there in time."),
        Resource => Some("Write no more than the task needs: there is little room for the answer."),
        Network => Some("Write no more than the task needs, so that the answer comes through."),
        NotFound => Some("Use only what is given with the task."),
        ErrorCategory::Permission | ErrorCategory::Validation | ErrorCategory::Execution => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::batch::Status;
    use crate::model::{ChatModel, ScriptedModel};

    /// Creates a loop with `weak.toml` as the writer and `strong.toml` as the stronger model.
    fn plan() -> Loop {
        let model = |name: &str| -> Arc<dyn ChatModel> {
            let script = "[[reply]]\ntext = 'one'";
            Arc::new(ScriptedModel::parse(Path::new(name), script).unwrap())
        };
        let criteria = "name = 'c'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 9";
        let criteria = Arc::new(crate::criteria::parse(criteria, "c.toml").unwrap());
        let builder = Loop::builder(model("weak.toml"), criteria);
        builder.stronger(model("strong.toml")).build().unwrap()
    }

    /// Creates the row of a failed task with this many attempts and drafts.
    fn row(category: ErrorCategory, attempts: u32, drafts: u32) -> Row {
        Row {
            status: Status::Failed,
            error_category: Some(category),
            attempts,
            iterations_used: drafts,
            ..Row::invalid(1, Some("a".to_owned()), "it failed".to_owned())
        }
    }

    fn after(row: &Row, stronger: bool) -> Option<Attempt> {
        let means = Means {
            stronger: stronger.then(|| "a:strong".to_owned()),
            ..Means::default()
        };
        Attempt::after(row, &means)
    }

    #[test]
    fn only_failures_that_may_change_are_retried() {
        for category in [
            ErrorCategory::Permission,
            ErrorCategory::Validation,
            ErrorCategory::Execution,
        ] {
            assert!(after(&row(category, 1, 1), true).is_none(), "{category}");
        }
        for category in [Timeout, NotFound, Network, Resource] {
            let next = after(&row(category, 1, 1), false).expect("another attempt");
            let Adjustment {
                attempt,
                stronger,
                strategy,
                guidance,
            } = next.adjustment;
            assert_eq!((attempt, stronger, strategy), (2, false, None));
            let told = guidance.content;
            assert!(told.contains(category.suggestion()), "{told}");
            assert!(told.ends_with(advice(category).unwrap()), "{told}");
        }
        let met = Row {
            status: Status::Met,
            ..row(Timeout, 1, 1)
        };
        assert!(after(&met, true).is_none());
        let not_met = Row {
            status: Status::NotMet,
            error_category: None,
            ..row(Timeout, 1, 1)
        };
        assert!(after(&not_met, true).is_none());
    }

    #[test]
    fn the_model_and_the_strategy_change_if_that_may_help() {
        let stronger = |category, attempts| {
            let next = after(&row(category, attempts, attempts), true).unwrap();
            let said = next.adjusted.contains("the stronger model a:strong writes");
            assert_eq!(said, next.adjustment.stronger);
            said
        };
        assert!(!stronger(Timeout, 1) && stronger(Timeout, 2));
        assert!(stronger(Network, 1) && stronger(Resource, 1));
        let next = after(&row(Timeout, 1, 2), false).unwrap();
        assert_eq!(next.adjustment.strategy, Some(Strategy::TargetedEdit));
        assert!(next.adjusted.contains("edits"), "{}", next.adjusted);
        // Three attempts with only a first draft each have revised nothing.
        let next = after(&row(Timeout, 3, 3), false).unwrap();
        assert_eq!(next.adjustment.strategy, None);
        // No change if drafts are already revised by edits.
        let edits = Means {
            strategy: Strategy::TargetedEdit,
            ..Means::default()
        };
        let next = Attempt::after(&row(Timeout, 1, 2), &edits).unwrap();
        assert_eq!(next.adjustment.strategy, None);
    }

    #[test]
    fn an_adjustment_changes_the_loop_and_the_task() {
        let plan = plan();
        let means = Means::of(&plan);
        let name = means.stronger.clone().expect("a stronger model");
        let next = Attempt::after(&row(Resource, 1, 2), &means).unwrap();
        // Round-trip as for a worker.
        let json = serde_json::to_string(&next.adjustment).unwrap();
        let adjustment: Adjustment = serde_json::from_str(&json).unwrap();
        assert_eq!(adjustment, next.adjustment);
        let adjusted = adjustment.adjust(&plan);
        assert_eq!(adjusted.writer().to_string(), name);
        assert_eq!(adjusted.strategy(), Strategy::TargetedEdit);
        let mut task = Task::new("Write.");
        adjustment.tell(&mut task);
        assert_eq!(task.insights, [adjustment.guidance]);
        let told_only = after(&row(Timeout, 1, 1), true).unwrap().adjustment;
        let same = told_only.adjust(&plan);
        assert_eq!(same.writer(), plan.writer());
        assert_eq!(same.strategy(), plan.strategy());
    }

    #[test]
    fn the_pause_grows_up_to_a_limit() {
        let pause = |category, attempts| after(&row(category, attempts, 1), false).unwrap().pause;
        assert_eq!(pause(Timeout, 3), Duration::ZERO);
        let pauses = [1, 2, 3, 9, 40].map(|attempts| pause(Network, attempts).as_secs());
        assert_eq!(pauses, [1, 2, 4, 30, 30]);
    }
}
