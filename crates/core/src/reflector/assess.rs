use indexmap::{IndexMap, IndexSet};
use serde::Serialize;
use serde_json::Value;

use super::cause::{Basis, Cause, cause};
use super::pattern::{self, FailurePattern};
use super::{ErrorCategory, Plan, PlannedTask, TaskResult, TaskStatus, order};
use crate::text::{clip, one_line};
use crate::types::ReflectionCriteria;

/// How sure it is that a task was done, or a plan, with nothing to find fault with; and with something.
const SURE: f64 = 0.95;
const IN_DOUBT: f64 = 0.8;

/// A chain of so many tasks that is nearly the whole plan is worth a word.
const LONG_CHAIN: usize = 6;

/// How much of an error's message is shown, in characters.
const SHOWN: usize = 200;

/// The verdict on the outcome of a task or a plan. It is not named `Evaluation`, since that of a
/// draft has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assessment {
    /// The task; `None` for a plan.
    pub task_id: Option<String>,
    /// The plan; `None` for a task.
    pub plan_id: Option<String>,
    /// Whether it came out as the criteria want it.
    pub success: bool,
    /// How sure the verdict is, 0 to 1: of a failure, how sure its cause is.
    pub confidence: f64,
    /// What is wrong, one sentence each.
    pub issues: Vec<String>,
    /// What to do about it, one sentence each, none twice.
    pub suggestions: Vec<String>,
    /// Whether another plan is worth making.
    pub should_replan: bool,
    /// What kind of failure it is; `None` for what has not failed, and for plans.
    pub category: Option<ErrorCategory>,
}

/// The verdict on the outcome of a plan, with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanAssessment {
    /// The verdict. In JSON its keys stand beside the others.
    #[serde(flatten)]
    pub verdict: Assessment,
    /// The share of tasks that were done, 0 to 1; 0 for a plan without tasks.
    pub success_rate: f64,
    /// How many tasks the plan has.
    pub total: usize,
    /// How many were done.
    pub succeeded: usize,
    /// How many failed.
    pub failed: usize,
    /// How many did not come to an end.
    pub incomplete: usize,
    /// What the failures have in common.
    pub patterns: Vec<FailurePattern>,
    /// The verdict on each task, in the order of the plan.
    pub tasks: Vec<Assessment>,
    /// Those of the suggestions that a model made.
    pub model_suggestions: Vec<String>,
}

impl PlanAssessment {
    /// Adds what a model suggests. The verdict stays as it is.
    pub fn add_suggestions(&mut self, suggestions: Vec<String>) {
        for suggestion in suggestions {
            if !self.verdict.suggestions.contains(&suggestion) {
                self.verdict.suggestions.push(suggestion.clone());
                self.model_suggestions.push(suggestion);
            }
        }
    }
}

/// How many tasks of a plan came to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// How many tasks the plan has.
    pub total: usize,
    /// How many were done.
    pub succeeded: usize,
    /// How many failed.
    pub failed: usize,
}

/// Judges the outcome of a task.
///
/// It is a success if it was done, was not too slow for what was expected, and has something to show, as far as the
/// criteria ask for that and it is known. Another plan is worth it after a failure by time, network or resources, or
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

/// The verdict on a task that did not come to an end.
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

/// The verdict on a task that was done.
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

/// Whether there is nothing in an output. `false`, 0 and null say something, or nothing at all.
fn is_empty(output: &Value) -> bool {
    match output {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A message on one line, shortened.
fn shown(message: &str) -> String {
    clip(&one_line(message), SHOWN)
}

/// Judges the outcome of a plan, by the last result of each task. Results that belong to no task of it are an issue.
///
/// It is a success if the share of tasks that were done is high enough and, if the criteria ask for that, none was
/// left undone. Tasks that were slow, or have nothing to show, were done all the same. Another plan is worth it where
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

/// Judges the outcome of a plan of which only some tasks are at hand, with their results: a plan with more tasks than
/// anybody wants to keep. Whether it is a success is decided by what is counted of all of them; what the failures have
/// in common, whether another plan is worth it, and how sure that is, by those at hand.
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
            "there is a result for `{stranger}`, which is no task of the plan"
        ));
        suggestions.insert("give each result the name of a task of the plan".to_owned());
    }
    let chain = order::waiting(plan).longest;
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
        // What was not run was not run: nothing is guessed.
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

/// The tasks of a plan, and the last result of each.
pub(super) struct Outcomes<'a> {
    pub(super) planned: IndexMap<&'a str, &'a PlannedTask>,
    pub(super) last: IndexMap<&'a str, &'a TaskResult>,
    /// Results that belong to none of these tasks.
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

    /// The verdict on each task, in the order of the plan.
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

    /// Says of a task that was not run which failed task it waits for.
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

    /// Whether a task failed that another plan may get around, or for reasons that nobody knows.
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
