use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::failure;
use crate::model::ModelError;
use crate::reflector::ErrorCategory;
use crate::types::{ConvergenceReason, ExitCode, RunRecord, TokenUsage, Version};

/// The result of a task: one line of the output. The fields have the same names as in the JSON result of a
/// run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The task's id; null if its line is invalid and has no id of its own.
    pub id: Option<String>,
    /// Its line in the input.
    pub line: u64,
    /// The outcome in one word.
    pub status: Status,
    /// The exit code that `reflect draft` would have had.
    pub exit_code: ExitCode,
    /// The selected draft, if there is one.
    pub output: Option<String>,
    /// Its overall score, 0 to 1, if it has one.
    #[serde(alias = "score")]
    pub overall_score: Option<f64>,
    /// The first draft's overall score, if it has one.
    #[serde(default)]
    pub first_score: Option<f64>,
    /// Why the run stopped; null if there was no run.
    pub convergence_reason: Option<ConvergenceReason>,
    /// The run, for `reflect history show`; null if there was none.
    pub run_id: Option<Uuid>,
    /// The number of attempts: 1 unless the task was retried; 0 if there was no run.
    #[serde(default)]
    pub attempts: u32,
    /// The number of drafts in all attempts.
    pub iterations_used: u32,
    /// The tokens of all attempts.
    pub token_usage: TokenUsage,
    /// The cost in the unit of the user's prices; null if unknown.
    pub cost: Option<f64>,
    /// The duration of all attempts in seconds; null if there was no run.
    pub execution_time: Option<f64>,
    /// The error, if there was one.
    pub error: Option<String>,
    /// The category of the failure; null if there is a verdict.
    #[serde(default)]
    pub error_category: Option<ErrorCategory>,
    /// The earlier failed attempts, in order, if the task was retried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replanned: Vec<Replanned>,
    /// Further fields, such as those of a benchmark.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A failed attempt, and what was changed for the next one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replanned {
    /// Its run.
    pub run_id: Option<Uuid>,
    /// The error.
    pub error: Option<String>,
    /// The category of the failure.
    pub error_category: Option<ErrorCategory>,
    /// The duration in seconds.
    pub execution_time: Option<f64>,
    /// What the next attempt changed, in words.
    pub adjusted: String,
}

/// The outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The criteria are met.
    Met,
    /// The criteria are not met.
    NotMet,
    /// The run reached a limit first.
    Stopped,
    /// There is no verdict.
    Unjudged,
    /// The model or this machine failed.
    Failed,
    /// The line is not a valid task, or its criteria are invalid.
    Invalid,
}

impl Status {
    /// All outcomes, best first.
    pub const ALL: [Self; 6] = [
        Self::Met,
        Self::NotMet,
        Self::Stopped,
        Self::Unjudged,
        Self::Failed,
        Self::Invalid,
    ];

    /// Returns the outcome for the exit code of a run.
    pub fn of(code: ExitCode) -> Self {
        match code {
            ExitCode::Success => Self::Met,
            ExitCode::NotMet => Self::NotMet,
            ExitCode::Limit => Self::Stopped,
            ExitCode::JudgeUnusable => Self::Unjudged,
            ExitCode::Usage => Self::Invalid,
            ExitCode::Failure | ExitCode::Provider | ExitCode::Interrupted => Self::Failed,
        }
    }

    /// Whether the task has no verdict for a reason that may be temporary. `--retry-failed` repeats these
    /// tasks, and `--fail-fast` stops at them.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Unjudged | Self::Failed | Self::Invalid)
    }

    /// Describes the outcome, to follow a number.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::Stopped => "stopped by a limit",
            Self::Unjudged => "without verdict",
            Self::Failed => "failed",
            Self::Invalid => "invalid",
        }
    }
}

impl Row {
    /// Creates the row of a completed run; `None` if the run was interrupted. `last` is the error of its last
    /// call, if known.
    pub(super) fn of(
        line: u64,
        id: String,
        record: &RunRecord,
        last: Option<&ModelError>,
    ) -> Option<Self> {
        let exit_code = record.exit_code.unwrap_or(ExitCode::Failure);
        if exit_code == ExitCode::Interrupted {
            return None;
        }
        let selected = record.selected();
        let evaluation = selected.and_then(|version| version.evaluation.as_ref());
        Some(Self {
            id: Some(id),
            line,
            status: Status::of(exit_code),
            exit_code,
            output: selected.map(|version| version.output.clone()),
            overall_score: evaluation.and_then(|evaluation| evaluation.overall_score),
            first_score: record.versions.first().and_then(Version::score),
            convergence_reason: record.convergence_reason,
            run_id: record.run_id,
            attempts: 1,
            iterations_used: record.iterations(),
            token_usage: record.token_usage,
            cost: record.cost(),
            execution_time: record.execution_time(),
            error: record.error.clone(),
            error_category: failure::category(record, last),
            replanned: Vec::new(),
            extra: Map::new(),
        })
    }

    /// Creates the row of an invalid line.
    pub fn invalid(line: u64, id: Option<String>, error: String) -> Self {
        Self {
            id,
            line,
            status: Status::Invalid,
            exit_code: ExitCode::Usage,
            output: None,
            overall_score: None,
            first_score: None,
            convergence_reason: None,
            run_id: None,
            attempts: 0,
            iterations_used: 0,
            token_usage: TokenUsage::default(),
            cost: None,
            execution_time: None,
            error: Some(error),
            error_category: Some(ErrorCategory::Validation),
            replanned: Vec::new(),
            extra: Map::new(),
        }
    }

    /// Returns the duration of the last attempt in seconds. `execution_time` covers all attempts.
    pub(super) fn last_time(&self) -> Option<f64> {
        let earlier = self.replanned.iter().filter_map(|it| it.execution_time);
        let before: f64 = earlier.sum();
        self.execution_time.map(|all| (all - before).max(0.0))
    }

    /// Combines the row of a failed attempt with that of the next one. `adjusted` describes the change. The
    /// last attempt decides the result, but a draft is kept from an earlier attempt if the last one has none.
    #[must_use]
    pub(super) fn then(self, adjusted: String, again: Self) -> Self {
        let last_time = self.last_time();
        let mut replanned = self.replanned;
        replanned.push(Replanned {
            run_id: self.run_id,
            error: self.error,
            error_category: self.error_category,
            execution_time: last_time,
            adjusted,
        });
        let keeps = again.output.is_none();
        let mut token_usage = self.token_usage;
        token_usage += again.token_usage;
        Self {
            output: if keeps { self.output } else { again.output },
            overall_score: if keeps {
                self.overall_score
            } else {
                again.overall_score
            },
            first_score: self.first_score.or(again.first_score),
            attempts: self.attempts + again.attempts,
            iterations_used: self.iterations_used + again.iterations_used,
            token_usage,
            cost: self.cost.zip(again.cost).map(|(one, other)| one + other),
            execution_time: self
                .execution_time
                .zip(again.execution_time)
                .map(|(one, other)| one + other),
            replanned,
            ..again
        }
    }

    /// Returns the row as a line of JSON, with its line end.
    pub fn to_line(&self) -> String {
        // A row can always be serialized.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}
