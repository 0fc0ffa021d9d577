use indexmap::{IndexMap, IndexSet};
use serde::Serialize;
use serde_json::Value;

use super::cause::{Basis, Cause, cause};
use super::pattern::{self, FailurePattern};
use super::{ErrorCategory, Plan, PlannedTask, TaskResult, TaskStatus, dependencies};
use crate::text::{clip, one_line};
use crate::types::ReflectionCriteria;

/// The confidence that a task or plan succeeded: without any issue, and with one.
const SURE: f64 = 0.95;
const IN_DOUBT: f64 = 0.8;

/// The minimum length of a chain that is reported if it is nearly the whole plan, in tasks.
const LONG_CHAIN: usize = 6;

/// The maximum length of an error message in an issue, in characters.
const SHOWN: usize = 200;

/// The verdict on the outcome of a task or a plan. Not called `Evaluation`, which is the verdict on
/// a draft.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assessment {
    /// The task's id, or `None` for a plan.
    pub task_id: Option<String>,
    /// The plan's id, or `None` for a task.
    pub plan_id: Option<String>,
    /// Whether the outcome meets the criteria.
    pub success: bool,
    /// The confidence in the verdict, 0 to 1. For a failure, the confidence in its cause.
    pub confidence: f64,
    /// The issues, one sentence each.
    pub issues: Vec<String>,
    /// Suggestions, one sentence each, without duplicates.
    pub suggestions: Vec<String>,
    /// Whether a new plan is worth making.
    pub should_replan: bool,
    /// The category of the failure. `None` for successes and plans.
    pub category: Option<ErrorCategory>,
}

/// The verdict on the outcome of a plan, with its basis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanAssessment {
    /// The verdict. In JSON its keys are at the top level.
    #[serde(flatten)]
    pub verdict: Assessment,
    /// The share of tasks that succeeded, 0 to 1; 0 for a plan without tasks.
    pub success_rate: f64,
    /// The number of tasks in the plan.
    pub total: usize,
    /// The number of tasks that succeeded.
    pub succeeded: usize,
    /// The number of tasks that failed.
    pub failed: usize,
    /// The number of tasks that did not finish.
    pub incomplete: usize,
    /// The patterns of the failures.
    pub patterns: Vec<FailurePattern>,
    /// The verdict on each task, in the order of the plan.
    pub tasks: Vec<Assessment>,
    /// The suggestions that came from a model.
    pub model_suggestions: Vec<String>,
}

impl PlanAssessment {
    /// Adds a model's suggestions. The verdict does not change.
    pub fn add_suggestions(&mut self, suggestions: Vec<String>) {
        for suggestion in suggestions {
            if !self.verdict.suggestions.contains(&suggestion) {
                self.verdict.suggestions.push(suggestion.clone());
                self.model_suggestions.push(suggestion);
            }
        }
    }
}

/// The outcome of a plan's tasks, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// The number of tasks in the plan.
    pub total: usize,
    /// The number of tasks that succeeded.
    pub succeeded: usize,
    /// The number of tasks that failed.
    pub failed: usize,
}

/// Evaluates the outcome of a task.
///
/// A task succeeds if it finished, was not too slow compared with its expected time, and has an
/// output, as far as the criteria require these and they are known. A new plan is worth making
/// after a failure by timeout, network or resources, or because something was not found.
/// because something was not there.
pub fn evaluate_task(
    task: &PlannedTask,
    result: &TaskResult,
    criteria: &ReflectionCriteria,
) -> Assessment {
    let id = &task.id;
    let verdict = Assessment {
        task_id: Some(id.clone()),
        plan_id: None,
        success: false,
        confidence: SURE,
        issues: Vec::new(),
        suggestions: Vec::new(),
        should_replan: false,
        category: None,
    };
    match result.status {
        TaskStatus::Success => done(task, result, criteria, verdict),
        TaskStatus::Failed => {
            let Cause { category, basis } = cause(result.error.as_ref());
            let message = (result.error.as_ref())
                .map(|error| shown(&error.message))
                .filter(|message| !message.is_empty());
            let issue = match (message, basis) {
                (Some(message), Basis::Unknown) => format!("the task `{id}` failed: {message}"),
                (Some(message), _) => format!("the task `{id}` failed ({category}): {message}"),
                (None, Basis::Unknown) => format!("the task `{id}` failed, and does not say why"),
                (None, _) => format!("the task `{id}` failed ({category})"),
            };
            Assessment {
                confidence: basis.certainty(),
                issues: vec![issue],
                suggestions: vec![category.suggestion().to_owned()],
                should_replan: category.is_worth_replanning(),
                category: Some(category),
                ..verdict
            }
        }
        TaskStatus::Skipped => {
            incomplete(verdict, criteria, &format!("the task `{id}` was skipped"))
        }
        TaskStatus::Cancelled => {
            incomplete(verdict, criteria, &format!("the task `{id}` was cancelled"))
        }
        TaskStatus::Running => incomplete(
            verdict,
            criteria,
            &format!("the task `{id}` has not ended yet"),
        ),
        TaskStatus::Pending => {
            incomplete(verdict, criteria, &format!("the task `{id}` was not begun"))
        }
    }
}

/// Returns the verdict on a task that did not finish.
fn incomplete(verdict: Assessment, criteria: &ReflectionCriteria, issue: &str) -> Assessment {
    if !criteria.require_all_tasks_complete {
        return verdict;
    }
    Assessment {
        issues: vec![issue.to_owned()],
        suggestions: vec!["run the tasks that are left".to_owned()],
        ..verdict
    }
}

/// Returns the verdict on a task that finished.
fn done(
    task: &PlannedTask,
    result: &TaskResult,
    criteria: &ReflectionCriteria,
    mut verdict: Assessment,
) -> Assessment {
    let id = &task.id;
    let most = criteria.max_execution_time_multiplier;
    let expected = task.expected_seconds.filter(|seconds| *seconds > 0.0);
    if let (Some(expected), Some(took)) = (expected, result.duration())
        && took > expected * most
    {
        verdict.issues.push(format!(
            "the task `{id}` is slow: it took {took:.1} s, {:.1} times the {expected:.1} s expected, and at most {most} \
             times is allowed",
            took / expected
        ));
        verdict
            .suggestions
            .push("break slow tasks into smaller ones, or expect more time of them".to_owned());
    }
    if criteria.check_output_quality && result.output.as_ref().is_some_and(is_empty) {
        verdict
            .issues
            .push(format!("the task `{id}` was done, but its output is empty"));
        verdict.suggestions.push(
            "say in the task what it is to give, and check what its tool gives back".to_owned(),
        );
    }
    verdict.success = verdict.issues.is_empty();
    if !verdict.success {
        verdict.confidence = IN_DOUBT;
    }
    verdict
}

/// Returns whether an output is empty. `false`, 0 and null are not: they are values, or nothing was
/// recorded.
fn is_empty(output: &Value) -> bool {
    match output {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns a message on one line, shortened.
fn shown(message: &str) -> String {
    clip(&one_line(message), SHOWN)
}

/// Evaluates the outcome of a plan, by the last result of each task. Results for unknown tasks are
/// an issue.
///
/// A plan succeeds if enough tasks succeeded and, if the criteria require it, none is unfinished.
/// Tasks that were slow or have an empty output count as done. A new plan is worth making if it is
/// for a failed task, or if a failure has an unknown cause: the same plan would probably fail
/// again.
/// a task failed for which it is, or for reasons that nobody knows: the same plan would most likely fail again.
pub fn evaluate_plan(
    plan: &Plan,
    results: &[TaskResult],
    criteria: &ReflectionCriteria,
) -> PlanAssessment {
    let outcomes = Outcomes::new(plan, results);
    let counts = Counts {
        total: outcomes.planned.len(),
        succeeded: outcomes.count(TaskStatus::Success),
        failed: outcomes.count(TaskStatus::Failed),
    };
    assessed(plan, results, criteria, &outcomes, counts)
}

/// Evaluates the outcome of a plan from a sample of its tasks and their results, for plans with too
/// many tasks to keep. The counts of all tasks decide whether it succeeded. The sample decides the
/// patterns, whether a new plan is worth making, and the confidence in that.
pub fn evaluate_sample(
    plan: &Plan,
    results: &[TaskResult],
    criteria: &ReflectionCriteria,
    counts: Counts,
) -> PlanAssessment {
    let outcomes = Outcomes::new(plan, results);
    assessed(plan, results, criteria, &outcomes, counts)
}

fn assessed(
    plan: &Plan,
    results: &[TaskResult],
    criteria: &ReflectionCriteria,
    outcomes: &Outcomes<'_>,
    counts: Counts,
) -> PlanAssessment {
    let tasks = outcomes.tasks(criteria);
    let Counts {
        total,
        succeeded,
        failed,
    } = counts;
    let incomplete = total.saturating_sub(succeeded + failed);
    let success_rate = share(succeeded, total);
    let enough = total > 0 && success_rate >= criteria.min_success_rate;
    let complete = incomplete == 0 || !criteria.require_all_tasks_complete;

    let mut patterns = pattern::patterns(plan, results);
    let mut issues = Vec::new();
    let mut suggestions: IndexSet<String> = IndexSet::new();
    if total == 0 {
        issues.push("the plan has no tasks".to_owned());
        suggestions.insert("plan at least one task".to_owned());
    } else if !enough {
        issues.push(format!(
            "only {succeeded} of {total} tasks were done: a success rate of {success_rate:.2}, and at least {:.2} is \
             required",
            criteria.min_success_rate
        ));
        let not_done = outcomes.not_done();
        patterns.push(FailurePattern {
            occurrences: total.saturating_sub(succeeded),
            ..pattern::low_success_rate(success_rate, criteria.min_success_rate, not_done, results)
        });
    }
    for stranger in &outcomes.strangers {
        issues.push(format!(
            "there is a result for `{stranger}`, which is not a task of the plan"
        ));
        suggestions.insert("give each result the name of a task of the plan".to_owned());
    }
    let chain = dependencies::waiting(plan).longest;
    if chain >= LONG_CHAIN && chain * 5 >= total * 4 {
        issues.push(format!(
            "{chain} of {total} tasks form one sequential chain: each waits for the one before, and one failure stops \
             the rest"
        ));
        suggestions.insert("let tasks that do not need each other run in parallel".to_owned());
    }
    suggestions.extend(
        patterns
            .iter()
            .filter_map(|found| found.suggested_fix.clone()),
    );
    for task in &tasks {
        issues.extend(task.issues.iter().cloned());
        suggestions.extend(task.suggestions.iter().cloned());
    }
    let success = enough && complete;
    let confidence = match (success, failed) {
        (true, _) if issues.is_empty() => SURE,
        (true, _) => IN_DOUBT,
        // That a task was not run is certain.
        (false, 0) => SURE,
        (false, _) => mean(
            tasks
                .iter()
                .filter(|t| t.category.is_some())
                .map(|t| t.confidence),
        ),
    };
    let should_replan = !success && (total == 0 || outcomes.another_plan_may_help());
    PlanAssessment {
        verdict: Assessment {
            task_id: None,
            plan_id: Some(plan.id.clone()),
            success,
            confidence,
            issues,
            suggestions: suggestions.into_iter().collect(),
            should_replan,
            category: None,
        },
        success_rate,
        total,
        succeeded,
        failed,
        incomplete,
        patterns,
        tasks,
        model_suggestions: Vec::new(),
    }
}

/// The tasks of a plan, with the last result of each.
pub(super) struct Outcomes<'a> {
    pub(super) planned: IndexMap<&'a str, &'a PlannedTask>,
    pub(super) last: IndexMap<&'a str, &'a TaskResult>,
    /// The task ids of results that no task of the plan has.
    strangers: IndexSet<&'a str>,
}

impl<'a> Outcomes<'a> {
    pub(super) fn new(plan: &'a Plan, results: &'a [TaskResult]) -> Self {
        let planned = pattern::tasks_by_id(plan);
        let mut last = IndexMap::new();
        let mut strangers = IndexSet::new();
        for result in results {
            let id = result.task_id.as_str();
            if planned.contains_key(id) {
                last.insert(id, result);
            } else {
                strangers.insert(id);
            }
        }
        Self {
            planned,
            last,
            strangers,
        }
    }

    pub(super) fn status(&self, id: &str) -> TaskStatus {
        self.last
            .get(id)
            .map_or(TaskStatus::Pending, |result| result.status)
    }

    fn count(&self, wanted: TaskStatus) -> usize {
        let ids = self.planned.keys();
        ids.filter(|id| self.status(id) == wanted).count()
    }

    fn not_done(&self) -> impl Iterator<Item = &'a str> {
        let ids = self.planned.keys().copied();
        ids.filter(|id| self.status(id) != TaskStatus::Success)
    }

    /// Returns the verdict on each task, in the order of the plan.
    fn tasks(&self, criteria: &ReflectionCriteria) -> Vec<Assessment> {
        let verdict = |task: &&PlannedTask| {
            let id = task.id.as_str();
            let verdict = self.last.get(id).map_or_else(
                || evaluate_task(task, &TaskResult::new(id, TaskStatus::Pending), criteria),
                |result| evaluate_task(task, result, criteria),
            );
            self.with_reason(task, verdict)
        };
        self.planned.values().map(verdict).collect()
    }

    /// Adds to the verdict on a task that did not run which failed task it depends on.
    fn with_reason(&self, task: &PlannedTask, mut verdict: Assessment) -> Assessment {
        let not_run = matches!(
            self.status(&task.id),
            TaskStatus::Pending | TaskStatus::Skipped | TaskStatus::Cancelled
        );
        let failed = |id: &&String| self.status(id) == TaskStatus::Failed;
        if not_run
            && let Some(before) = task.depends_on.iter().find(failed)
            && let Some(issue) = verdict.issues.first_mut()
        {
            *issue = format!("{issue}: it waits for `{before}`, which failed");
        }
        verdict
    }

    /// Returns whether a task failed that a new plan may avoid, or failed for an unknown cause.
    fn another_plan_may_help(&self) -> bool {
        self.last
            .values()
            .filter(|result| result.status == TaskStatus::Failed)
            .any(|result| {
                let cause = cause(result.error.as_ref());
                cause.category.is_worth_replanning() || cause.basis == Basis::Unknown
            })
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no plan has more tasks than a float can count"
)]
pub(super) fn share(part: usize, all: usize) -> f64 {
    if all == 0 {
        0.0
    } else {
        part as f64 / all as f64
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    if count == 0 {
        SURE
    } else {
        sum / f64::from(count)
    }
}

#[cfg(test)]
#[path = "assess_tests.rs"]
mod tests;
