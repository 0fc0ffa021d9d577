use std::fmt;

use indexmap::{IndexMap, IndexSet};
use jiff::Timestamp;
use serde::Serialize;

use super::cause::{Basis, cause};
use super::{ErrorCategory, Plan, PlannedTask, TaskResult, TaskStatus, dependencies, normalize};

/// The number of failures of one kind, or of one tool, that make a pattern.
const REPEATED: usize = 2;

/// The number of consecutive failures that make a pattern.
const IN_A_ROW: usize = 3;

/// A pattern that several failures share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailurePattern {
    /// The type of pattern.
    pub pattern_type: PatternType,
    /// A description for people.
    pub description: String,
    /// The number of failed attempts. For a low success rate, the number of tasks that did not
    /// succeed.
    pub occurrences: usize,
    /// The ids of the tasks, each once, in the order of their failures.
    pub affected_tasks: Vec<String>,
    /// A suggested fix.
    pub suggested_fix: Option<String>,
    /// The category of the failures, if they share one.
    pub category: Option<ErrorCategory>,
    /// The tool of the failures, if they share a known one.
    pub tool: Option<String>,
    /// The time of the last of these failures, if known.
    pub detected_at: Option<Timestamp>,
}

/// The type of a failure pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternType {
    /// Several attempts failed in the same way.
    RepeatedErrors,
    /// Several consecutive attempts failed.
    SequentialFailures,
    /// Too few tasks succeeded.
    LowSuccessRate,
    /// One tool failed several times, and in at least half of its attempts.
    ToolFailure,
}

impl PatternType {
    /// Returns the name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RepeatedErrors => "repeated_errors",
            Self::SequentialFailures => "sequential_failures",
            Self::LowSuccessRate => "low_success_rate",
            Self::ToolFailure => "tool_failure",
        }
    }
}

impl fmt::Display for PatternType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the tasks of a plan by id. The first task with a duplicate id counts.
pub(super) fn tasks_by_id(plan: &Plan) -> IndexMap<&str, &PlannedTask> {
    let mut tasks = IndexMap::new();
    for task in &plan.tasks {
        tasks.entry(task.id.as_str()).or_insert(task);
    }
    tasks
}

/// Returns the patterns of the failed attempts: the same category, consecutive failures, the same
/// tool.
pub(super) fn patterns(plan: &Plan, results: &[TaskResult]) -> Vec<FailurePattern> {
    let tasks = tasks_by_id(plan);
    let attempts = dependencies::in_time(results);
    let mut found = repeated(&attempts);
    found.extend(sequential(&attempts));
    found.extend(of_tools(&tasks, &attempts));
    found
}

/// Returns the pattern of too few successful tasks, given those that did not succeed.
pub(super) fn low_success_rate<'a>(
    rate: f64,
    wanted: f64,
    not_done: impl Iterator<Item = &'a str>,
    results: &[TaskResult],
) -> FailurePattern {
    let affected_tasks: Vec<String> = not_done.map(str::to_owned).collect();
    FailurePattern {
        pattern_type: PatternType::LowSuccessRate,
        description: format!("the success rate is {rate:.2}, and at least {wanted:.2} is required"),
        occurrences: affected_tasks.len(),
        suggested_fix: Some(
            "break the plan into smaller tasks, and begin with what most others wait for"
                .to_owned(),
        ),
        affected_tasks,
        category: None,
        tool: None,
        detected_at: results.iter().filter_map(TaskResult::time).max(),
    }
}

fn failed<'a>(attempts: &[&'a TaskResult]) -> Vec<&'a TaskResult> {
    let failed = |result: &&TaskResult| result.status == TaskStatus::Failed;
    attempts.iter().copied().filter(failed).collect()
}

/// Returns a pattern of these failures.
fn pattern(
    pattern_type: PatternType,
    failures: &[&TaskResult],
    description: String,
    suggested_fix: Option<String>,
) -> FailurePattern {
    let affected: IndexSet<&str> = failures.iter().map(|f| f.task_id.as_str()).collect();
    FailurePattern {
        pattern_type,
        description,
        occurrences: failures.len(),
        affected_tasks: affected.into_iter().map(str::to_owned).collect(),
        suggested_fix,
        category: common_category(failures),
        tool: None,
        detected_at: failures.iter().filter_map(|failure| failure.time()).max(),
    }
}

/// Returns the category that all of these failures share, if it is known.
fn common_category(failures: &[&TaskResult]) -> Option<ErrorCategory> {
    let mut causes = failures.iter().map(|failure| cause(failure.error.as_ref()));
    let first = causes.next()?;
    let same =
        first.basis != Basis::Unknown && causes.all(|other| other.category == first.category);
    same.then_some(first.category)
}

/// Returns the key by which failures are equal: the category of the cause or, if that is unknown,
/// the message without its numbers and names.
fn failure_key(failure: &TaskResult) -> (ErrorCategory, String) {
    let category = cause(failure.error.as_ref()).category;
    if category != ErrorCategory::Execution {
        return (category, String::new());
    }
    let message = failure.error.as_ref().map_or("", |error| &error.message);
    let line = normalize::lines(message)
        .first()
        .map(|line| normalize::statement(line));
    let words = line.unwrap_or_default();
    let without_numbers = words.replace(|c: char| c.is_ascii_digit(), "");
    (category, without_numbers.trim().to_owned())
}

fn repeated(attempts: &[&TaskResult]) -> Vec<FailurePattern> {
    let mut alike: IndexMap<_, Vec<&TaskResult>> = IndexMap::new();
    for failure in failed(attempts) {
        alike.entry(failure_key(failure)).or_default().push(failure);
    }
    alike
        .into_iter()
        .filter(|(_, failures)| failures.len() >= REPEATED)
        .map(|((category, _), failures)| {
            let count = failures.len();
            FailurePattern {
                category: Some(category),
                ..pattern(
                    PatternType::RepeatedErrors,
                    &failures,
                    format!("{count} attempts failed in the same way: {category}"),
                    Some(category.suggestion().to_owned()),
                )
            }
        })
        .collect()
}

/// Returns the longest run of consecutive failures. Unfinished attempts do not interrupt it.
fn sequential(attempts: &[&TaskResult]) -> Option<FailurePattern> {
    let ended = |status| matches!(status, TaskStatus::Success | TaskStatus::Failed);
    let attempts: Vec<&TaskResult> = (attempts.iter().copied())
        .filter(|attempt| ended(attempt.status))
        .collect();
    let row = attempts
        .split(|attempt| attempt.status == TaskStatus::Success)
        .rev()
        .max_by_key(|row| row.len())
        .filter(|row| row.len() >= IN_A_ROW)?;
    Some(pattern(
        PatternType::SequentialFailures,
        row,
        format!("{} attempts failed one after the other", row.len()),
        Some("stop after the first failures, and fix what the later tasks depend on".to_owned()),
    ))
}

fn of_tools(tasks: &IndexMap<&str, &PlannedTask>, attempts: &[&TaskResult]) -> Vec<FailurePattern> {
    let mut by_tool: IndexMap<&str, (Vec<&TaskResult>, usize)> = IndexMap::new();
    for attempt in attempts {
        let task = tasks.get(attempt.task_id.as_str());
        let Some(tool) = task.and_then(|task| task.tool.as_deref()) else {
            continue;
        };
        let (failures, done) = by_tool.entry(tool).or_default();
        match attempt.status {
            TaskStatus::Failed => failures.push(attempt),
            TaskStatus::Success => *done += 1,
            _ => {}
        }
    }
    by_tool
        .into_iter()
        .filter(|(_, (failures, done))| failures.len() >= REPEATED.max(*done))
        .map(|(tool, (failures, done))| {
            let (count, all) = (failures.len(), failures.len() + done);
            let description = format!("the tool `{tool}` failed {count} of {all} times");
            let pattern = pattern(PatternType::ToolFailure, &failures, description, None);
            let fix = pattern.category.map_or_else(
                || format!("check how `{tool}` works, or use another tool in its place"),
                |category| format!("`{tool}`: {}", category.suggestion()),
            );
            FailurePattern {
                tool: Some(tool.to_owned()),
                suggested_fix: Some(fix),
                ..pattern
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::PatternType::{RepeatedErrors, SequentialFailures, ToolFailure};
    use super::*;
    use crate::reflector::TaskError;

    /// Finds the patterns of a plan with tasks `0`, `1`, … that use these tools, given an attempt's
    /// task and error.
    fn found(tools: &[&str], attempts: &[(&str, Option<&str>)]) -> Vec<FailurePattern> {
        let tasks = tools.iter().enumerate().map(|(id, tool)| PlannedTask {
            tool: (!tool.is_empty()).then(|| (*tool).to_owned()),
            ..PlannedTask::new(id.to_string())
        });
        let plan = Plan {
            id: "p".to_owned(),
            goal: None,
            tasks: tasks.collect(),
        };
        let results: Vec<TaskResult> = attempts
            .iter()
            .map(|(id, error)| match error {
                Some(error) => TaskResult {
                    error: Some(TaskError::new(*error)),
                    ..TaskResult::new(*id, TaskStatus::Failed)
                },
                None => TaskResult::new(*id, TaskStatus::Success),
            })
            .collect();
        patterns(&plan, &results)
    }

    fn types(found: &[FailurePattern]) -> Vec<PatternType> {
        found.iter().map(|pattern| pattern.pattern_type).collect()
    }

    #[test]
    fn failures_alike_are_one_pattern_and_others_none() {
        let patterns = found(
            &["", "", ""],
            &[
                ("0", Some("timed out")),
                ("1", None),
                ("0", Some("connection timeout")),
                ("2", Some("no such file")),
            ],
        );
        assert_eq!(types(&patterns), [RepeatedErrors]);
        assert_eq!(patterns[0].occurrences, 2);
        assert_eq!(patterns[0].affected_tasks, ["0"]);
        assert_eq!(patterns[0].category, Some(ErrorCategory::Timeout));
        assert!(
            patterns[0]
                .suggested_fix
                .as_deref()
                .unwrap()
                .contains("timeout")
        );
    }

    #[test]
    fn unknown_errors_are_alike_if_they_say_the_same_but_for_numbers() {
        let two = |first, second| {
            types(&found(
                &["", ""],
                &[("0", Some(first)), ("1", Some(second))],
            ))
        };
        assert_eq!(two("oops 1", "oops 22"), [RepeatedErrors]);
        assert_eq!(two("oops", "something quite else"), []);
    }

    #[test]
    fn a_row_is_broken_by_a_success() {
        let oops = ["a", "b", "c"].map(Some);
        let row = found(
            &["", "", ""],
            &[("0", oops[0]), ("1", oops[1]), ("2", oops[2])],
        );
        assert_eq!(types(&row), [SequentialFailures]);
        assert_eq!(row[0].occurrences, 3);
        let broken = found(
            &["", "", "", ""],
            &[("0", oops[0]), ("1", oops[1]), ("3", None), ("2", oops[2])],
        );
        assert_eq!(types(&broken), []);
    }

    #[test]
    fn a_tool_that_fails_as_often_as_not_is_a_pattern() {
        let attempts = [("0", Some("a")), ("1", Some("b")), ("2", None), ("3", None)];
        let patterns = found(&["x", "x", "x", "y"], &attempts);
        assert_eq!(types(&patterns), [ToolFailure]);
        assert_eq!(patterns[0].tool.as_deref(), Some("x"));
        assert_eq!(patterns[0].description, "the tool `x` failed 2 of 3 times");
        let attempts = [("0", Some("a")), ("1", None), ("2", None), ("3", None)];
        assert_eq!(types(&found(&["x", "x", "x", "x"], &attempts)), []);
    }

    #[test]
    fn the_time_is_that_of_the_last_failure() {
        let mut results = [1, 2].map(|second| TaskResult {
            error: Some(TaskError::new("timed out")),
            finished: format!("2026-01-01T00:00:0{second}Z").parse().ok(),
            ..TaskResult::new("a", TaskStatus::Failed)
        });
        let plan = Plan {
            tasks: vec![PlannedTask::new("a")],
            ..Plan::default()
        };
        let seen = patterns(&plan, &results)[0].detected_at;
        assert_eq!(seen, results[1].finished);
        for result in &mut results {
            result.finished = None;
        }
        assert_eq!(patterns(&plan, &results)[0].detected_at, None);
    }
}
