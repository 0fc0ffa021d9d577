//! A task that failed is tried again in another way: with another prompt, strategy or model.

use std::sync::Arc;
use std::time::Duration;

use super::row::Row;
use crate::engine::Loop;
use crate::reflector::ErrorCategory::{self, Network, NotFound, Resource, Timeout};
use crate::reflector::{Assessment, PlannedTask, TaskStatus, evaluate_task};
use crate::types::{Insight, ReflectionCriteria, Strategy, Task};

/// How long is waited before the first further attempt where something may pass; each time twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest that is waited.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A further attempt at a task.
pub(super) struct Attempt {
    /// The loop that tries it.
    pub(super) plan: Arc<Loop>,
    /// The task, as it is told now.
    pub(super) task: Task,
    /// What is done otherwise, in words.
    pub(super) adjusted: String,
    /// How long is waited before.
    pub(super) pause: Duration,
}

impl Attempt {
    /// The next attempt at a task that failed as its row says; `None` where the same would happen again. `plan` is the
    /// loop for such tasks, and `task` what they are told at first.
    ///
    /// The model is a stronger one, if there is one, where the server failed, or there was not enough room, or where
    /// the time was too short twice. A failure of time or room in a revision is met with edits, which are shorter than
    /// a rewrite. What the reflector suggests is told to the writer each time.
    pub(super) fn after(row: &Row, plan: &Arc<Loop>, task: &Task) -> Option<Self> {
        let verdict = assess(row)?;
        let category = verdict.category.filter(|_| verdict.should_replan)?;
        let tried = row.attempts.max(1);
        let mut changes = Vec::new();
        let mut next = Arc::clone(plan);
        let stronger = match category {
            Timeout => tried > 1,
            _ => true,
        };
        if let Some(other) = plan.by_stronger().filter(|_| stronger) {
            changes.push(format!("the stronger model {} writes", other.writer()));
            next = Arc::new(other);
        }
        let is_long = matches!(category, Timeout | Resource);
        let edits = Strategy::TargetedEdit;
        if is_long && row.iterations_used > tried && next.strategy() != edits {
            changes.push("drafts are revised by edits".to_owned());
            next = Arc::new(next.with_strategy(edits));
        }
        changes.push(format!(
            "the writer is told what helps against {category} failures"
        ));
        let mut task = task.clone();
        task.insights.push(guidance(category, &verdict));
        let pause = match category {
            Network | Resource => FIRST_PAUSE
                .saturating_mul(1 << (tried - 1).min(8))
                .min(LONGEST_PAUSE),
            _ => Duration::ZERO,
        };
        Some(Self {
            plan: next,
            task,
            adjusted: changes.join("; "),
            pause,
        })
    }
}

/// The reflector's verdict on the attempt that a row tells of last; `None` if it came to an end.
fn assess(row: &Row) -> Option<Assessment> {
    let result = row.last_result();
    let failed = result.status == TaskStatus::Failed;
    let task = PlannedTask::new(result.task_id.clone());
    failed.then(|| evaluate_task(&task, &result, &ReflectionCriteria::default()))
}

/// What the writer is told after such a failure.
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

/// What a writer can do itself against such failures; `None` where it can do nothing.
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

    use super::*;
    use crate::batch::Status;
    use crate::model::{ChatModel, ScriptedModel};

    fn plan(stronger: bool) -> Arc<Loop> {
        let model = |name: &str| -> Arc<dyn ChatModel> {
            let script = "[[reply]]\ntext = 'one'";
            Arc::new(ScriptedModel::parse(Path::new(name), script).unwrap())
        };
        let criteria = "name = 'c'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 9";
        let criteria = Arc::new(crate::criteria::parse(criteria, "c.toml").unwrap());
        let builder = Loop::builder(model("weak.toml"), criteria);
        let builder = builder.stronger(stronger.then(|| model("strong.toml")));
        Arc::new(builder.build().unwrap())
    }

    /// The row of a task that failed so after so many attempts and drafts.
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
        Attempt::after(row, &plan(stronger), &Task::new("Write."))
    }

    #[test]
    fn only_what_may_go_otherwise_is_tried_again() {
        for category in [
            ErrorCategory::Permission,
            ErrorCategory::Validation,
            ErrorCategory::Execution,
        ] {
            assert!(after(&row(category, 1, 1), true).is_none(), "{category}");
        }
        for category in [Timeout, NotFound, Network, Resource] {
            let next = after(&row(category, 1, 1), false).expect("another attempt");
            let told = &next.task.insights[0].content;
            assert!(told.contains(category.suggestion()), "{told}");
            assert!(told.ends_with(advice(category).unwrap()), "{told}");
            assert_eq!(next.plan.strategy(), Strategy::default());
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
    fn the_model_and_the_strategy_are_others_where_that_may_help() {
        let stronger = |category, attempts| {
            let next = after(&row(category, attempts, attempts), true).unwrap();
            next.adjusted.contains("the stronger model")
        };
        assert!(!stronger(Timeout, 1) && stronger(Timeout, 2));
        assert!(stronger(Network, 1) && stronger(Resource, 1));
        let next = after(&row(Timeout, 1, 2), false).unwrap();
        assert_eq!(next.plan.strategy(), Strategy::TargetedEdit);
        assert!(next.adjusted.contains("edits"), "{}", next.adjusted);
        // Three attempts with a first draft each have revised nothing.
        let next = after(&row(Timeout, 3, 3), false).unwrap();
        assert_eq!(next.plan.strategy(), Strategy::default());
    }

    #[test]
    fn the_wait_grows_up_to_a_limit() {
        let pause = |category, attempts| after(&row(category, attempts, 1), false).unwrap().pause;
        assert_eq!(pause(Timeout, 3), Duration::ZERO);
        let pauses = [1, 2, 3, 9, 40].map(|attempts| pause(Network, attempts).as_secs());
        assert_eq!(pauses, [1, 2, 4, 30, 30]);
    }
}
