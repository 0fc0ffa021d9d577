//! The history of a batch for the reflector: how its tasks ended, in bounded memory.

use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;
use uuid::Uuid;

use super::row::{Row, Status};
use super::tally::Tally;
use crate::reflector::{
    self, Counts, Episode, ErrorCategory, Insight, Plan, PlanAssessment, PlannedTask, TaskError,
    TaskResult, TaskStatus,
};
use crate::types::{ConvergenceReason, ReflectionCriteria};

/// The maximum number of tasks to keep; the latest are kept. Older tasks are only counted.
pub const MOST: usize = 2000;

/// The maximum length of a recorded error, in characters.
const SHOWN: usize = 300;

/// A batch as an executed plan. Keeps the [`MOST`] latest tasks; the [`Tally`] counts all of them.
#[derive(Debug)]
pub struct BatchHistory {
    name: String,
    /// The writer, as `provider:model`: the tool of every task that was tried.
    tool: Option<String>,
    latest: VecDeque<Done>,
    /// The number of tasks so far.
    seen: u64,
    again: Again,
}

/// Statistics on tasks that were retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Again {
    /// All retried tasks.
    pub tasks: u64,
    /// Those that completed in the end, whether or not their criteria are met.
    pub fixed: u64,
}

/// A completed task.
#[derive(Debug)]
struct Done {
    id: String,
    /// Whether a model was called; false for an invalid line.
    is_tried: bool,
    /// All attempts, in order; never empty.
    results: Vec<TaskResult>,
    /// The runs of the attempts that have one.
    runs: Vec<Uuid>,
}

impl BatchHistory {
    /// Creates the history of a batch with this name and writer.
    pub fn new(name: impl Into<String>, writer: Option<String>) -> Self {
        Self {
            name: name.into(),
            tool: writer,
            latest: VecDeque::new(),
            seen: 0,
            again: Again::default(),
        }
    }

    /// Adds the row of a completed task.
    pub fn add(&mut self, row: &Row, now: Timestamp) {
        self.seen += 1;
        if row.attempts > 1 {
            self.again.tasks += 1;
            self.again.fixed += u64::from(row.error_category.is_none());
        }
        if self.latest.len() >= MOST {
            self.latest.pop_front();
        }
        let runs = row.replanned.iter().map(|it| it.run_id).chain([row.run_id]);
        self.latest.push_back(Done {
            id: name(row),
            is_tried: row.attempts > 0,
            results: results(row, now),
            runs: runs.flatten().collect(),
        });
    }

    /// Returns the number of tasks so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the statistics on retried tasks.
    pub fn again(&self) -> Again {
        self.again
    }

    /// Assesses the whole batch of `total` tasks. `tally` counts the results, including those of earlier
    /// calls. Patterns of failures come from the latest [`MOST`] tasks.
    pub fn assess(
        &self,
        tally: &Tally,
        total: u64,
        criteria: &ReflectionCriteria,
    ) -> PlanAssessment {
        let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let succeeded = tally.of(Status::Met);
        let counts = Counts {
            total: number(total.max(tally.rows())),
            succeeded: number(succeeded),
            failed: number(tally.rows() - succeeded),
        };
        let Episode { plan, results } = self.episode();
        reflector::evaluate_sample(&plan, &results, criteria, counts)
    }

    /// Returns the lessons of the latest tasks, each with the runs that support it, latest first.
    pub fn insights(&self, criteria: &ReflectionCriteria) -> Vec<(Insight, Vec<Uuid>)> {
        let runs: HashMap<&str, &[Uuid]> = self
            .latest
            .iter()
            .map(|done| (done.id.as_str(), done.runs.as_slice()))
            .collect();
        let learned = reflector::learn_from_episode(&self.episode(), criteria);
        let with_runs = |insight: Insight| {
            let tasks = insight.evidence.iter().rev();
            let found = tasks.filter_map(|id| runs.get(id.as_str())?.last().copied());
            let found: Vec<Uuid> = found.collect();
            (insight, found)
        };
        learned.into_iter().map(with_runs).collect()
    }

    /// Returns the runs of the latest tasks, latest first.
    pub fn runs(&self) -> impl Iterator<Item = Uuid> {
        let latest = self.latest.iter().rev();
        latest.flat_map(|done| done.runs.iter().rev().copied())
    }

    /// Returns the latest tasks as a plan with results.
    fn episode(&self) -> Episode {
        let tasks = self.latest.iter().map(|done| PlannedTask {
            tool: self.tool.clone().filter(|_| done.is_tried),
            ..PlannedTask::new(&done.id)
        });
        let results = self.latest.iter().flat_map(|done| done.results.clone());
        Episode {
            plan: Plan {
                id: self.name.clone(),
                goal: None,
                tasks: tasks.collect(),
            },
            results: results.collect(),
        }
    }
}

/// Returns the name of a task.
fn name(row: &Row) -> String {
    match &row.id {
        Some(id) => id.clone(),
        // A bare number could be mistaken for an id.
        None => format!("line {}", row.line),
    }
}

/// Returns all attempts of a row, in order.
fn results(row: &Row, now: Timestamp) -> Vec<TaskResult> {
    let earlier = row.replanned.iter().map(|attempt| TaskResult {
        error: Some(error(attempt.error.as_deref(), attempt.error_category)),
        seconds: attempt.execution_time,
        finished: Some(now),
        ..TaskResult::new(name(row), TaskStatus::Failed)
    });
    let last = TaskResult {
        seconds: row.last_time(),
        finished: Some(now),
        ..row.last_result()
    };
    earlier.chain([last]).collect()
}

fn error(said: Option<&str>, category: Option<ErrorCategory>) -> TaskError {
    let message = said.unwrap_or_default();
    TaskError {
        category,
        ..TaskError::new(message.chars().take(SHOWN).collect::<String>())
    }
}

impl Row {
    /// Returns the result of the last attempt, for the reflector. Unmet criteria count as a failure.
    pub(super) fn last_result(&self) -> TaskResult {
        let task = name(self);
        let failed = |error| TaskResult {
            error: Some(error),
            ..TaskResult::new(task.clone(), TaskStatus::Failed)
        };
        match self.status {
            Status::Met => TaskResult {
                // Only an empty output matters to the reflector.
                output: (self.output.as_deref())
                    .filter(|text| text.trim().is_empty())
                    .map(Into::into),
                ..TaskResult::new(task, TaskStatus::Success)
            },
            Status::NotMet => failed(error(
                Some("the criteria are not met"),
                Some(ErrorCategory::Execution),
            )),
            Status::Stopped => failed(error(
                self.convergence_reason.map(ConvergenceReason::describe),
                self.error_category,
            )),
            Status::Unjudged | Status::Failed | Status::Invalid => {
                failed(error(self.error.as_deref(), self.error_category))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reflector::PatternType;
    use crate::types::ExitCode;

    fn row(line: u64, status: Status, category: Option<ErrorCategory>) -> Row {
        Row {
            id: Some(format!("t{line}")),
            status,
            error_category: category,
            run_id: Some(Uuid::from_u128(u128::from(line))),
            attempts: 1,
            ..Row::invalid(line, None, format!("it went wrong in line {line}"))
        }
    }

    fn history_of(rows: impl IntoIterator<Item = Row>) -> (BatchHistory, Tally) {
        let mut history = BatchHistory::new("tasks", Some("openai:test".to_owned()));
        let mut tally = Tally::default();
        for row in rows {
            history.add(&row, Timestamp::UNIX_EPOCH);
            tally.count(row.status, ExitCode::Success);
        }
        (history, tally)
    }

    #[test]
    fn the_verdict_counts_all_tasks_and_keeps_the_latest() {
        let early = (0..50).map(|line| row(line, Status::Failed, Some(ErrorCategory::Network)));
        let late = (50..6000).map(|line| row(line, Status::Met, None));
        let (history, tally) = history_of(early.chain(late));
        assert_eq!((history.seen(), history.latest.len()), (6000, MOST));
        let verdict = history.assess(&tally, 6000, &ReflectionCriteria::default());
        assert_eq!((verdict.total, verdict.failed), (6000, 50));
        assert!(verdict.verdict.success && verdict.patterns.is_empty());
        assert_eq!(history.runs().next(), Some(Uuid::from_u128(5999)));
        // Tasks that never started are incomplete.
        let verdict = history.assess(&tally, 9000, &ReflectionCriteria::default());
        assert_eq!(verdict.incomplete, 3000);
        assert!(!verdict.verdict.success);
    }

    #[test]
    fn an_invalid_line_does_not_count_against_the_writer() {
        let rows = (0..3).map(|line| Row::invalid(line, None, "invalid JSON".to_owned()));
        let (history, tally) = history_of(rows);
        let criteria = ReflectionCriteria::default();
        let verdict = history.assess(&tally, 3, &criteria);
        let types: Vec<PatternType> = verdict.patterns.iter().map(|it| it.pattern_type).collect();
        assert!(!types.contains(&PatternType::ToolFailure), "{types:?}");
        assert!(types.contains(&PatternType::LowSuccessRate), "{types:?}");
        let learned = history.insights(&criteria);
        assert!(
            learned
                .iter()
                .all(|(insight, _)| !insight.text.contains("openai:test"))
        );
    }

    #[test]
    fn failures_have_the_category_of_the_row() {
        let timeout = Some(ErrorCategory::Timeout);
        let mut fixed = row(2, Status::Met, None);
        fixed = row(2, Status::Failed, timeout).then("shorter".to_owned(), fixed);
        assert_eq!(fixed.attempts, 2);
        let again = history_of([fixed.clone(), row(3, Status::Met, None)])
            .0
            .again();
        assert_eq!((again.tasks, again.fixed), (1, 1));
        let (history, tally) = history_of([
            row(0, Status::NotMet, None),
            row(1, Status::Failed, timeout),
            fixed,
        ]);
        let criteria = ReflectionCriteria::default();
        let verdict = history.assess(&tally, 3, &criteria);
        assert!(!verdict.verdict.success && verdict.verdict.should_replan);
        assert_eq!((verdict.succeeded, verdict.failed), (1, 2));
        let types: Vec<PatternType> = verdict.patterns.iter().map(|it| it.pattern_type).collect();
        assert!(types.contains(&PatternType::RepeatedErrors), "{types:?}");
        let learned = history.insights(&criteria);
        let helped = learned
            .iter()
            .find(|(insight, _)| insight.text.starts_with("trying again helped"));
        let (helped, runs) = helped.expect("trying again helped");
        assert_eq!(helped.cause, timeout);
        assert_eq!(runs, &[Uuid::from_u128(2)]);
    }
}
