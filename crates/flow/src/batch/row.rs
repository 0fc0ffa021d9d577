use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::failure;
use crate::model::ModelError;
use crate::reflector::ErrorCategory;
use crate::types::{ConvergenceReason, ExitCode, RunRecord, TokenUsage, Version};

/// What became of a task: one line of the output. The names are those of the JSON result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The task's id; null where its line is bad and has none that is its own.
    pub id: Option<String>,
    /// Its line in the input.
    pub line: u64,
    /// What became of it, in a word.
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
    /// Why the run stopped; null where there was none.
    pub convergence_reason: Option<ConvergenceReason>,
    /// The run, for `reflect history show`; null where there was none.
    pub run_id: Option<Uuid>,
    /// How often it was tried: 1 unless it was tried again; 0 where there was no run.
    #[serde(default)]
    pub attempts: u32,
    /// How many drafts were tried, in all attempts.
    pub iterations_used: u32,
    /// Tokens of all attempts.
    pub token_usage: TokenUsage,
    /// What it cost, in the unit of the user's prices; null where that is not known.
    pub cost: Option<f64>,
    /// Seconds, of all attempts; null where there was no run.
    pub execution_time: Option<f64>,
    /// What went wrong, if something did.
    pub error: Option<String>,
    /// What kind of failure it is; null for what has a verdict.
    #[serde(default)]
    pub error_category: Option<ErrorCategory>,
    /// The attempts that failed before, in order, if it was tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replanned: Vec<Replanned>,
    /// Further fields of whoever did the task: a benchmark has some.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// An attempt that failed, and what was changed for the next one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replanned {
    /// Its run.
    pub run_id: Option<Uuid>,
    /// What went wrong.
    pub error: Option<String>,
    /// What kind of failure it was.
    pub error_category: Option<ErrorCategory>,
    /// How long it took, in seconds.
    pub execution_time: Option<f64>,
    /// What the next attempt did otherwise, in words.
    pub adjusted: String,
}

/// What became of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The criteria are met.
    Met,
    /// They are not.
    NotMet,
    /// A limit of the run was reached first.
    Stopped,
    /// No verdict could be had.
    Unjudged,
    /// The model, or this machine, failed.
    Failed,
    /// The line is no task, or its criteria cannot be used.
    Invalid,
}

impl Status {
    /// All of them, the best first.
    pub const ALL: [Self; 6] = [
        Self::Met,
        Self::NotMet,
        Self::Stopped,
        Self::Unjudged,
        Self::Failed,
        Self::Invalid,
    ];

    /// What the exit code of a run stands for.
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

    /// Whether the task came to no verdict, for a reason that may be gone the next time: what `--retry-failed` does
    /// again, and `--fail-fast` stops at.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Unjudged | Self::Failed | Self::Invalid)
    }

    /// In words, to follow a number.
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
    /// Of a finished run; `None` if it was interrupted, which is no result. `last` is the failure of the run's last
    /// call, where that is known.
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

    /// Of a line that is no task.
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

    /// How long the last attempt took, in seconds: what is there holds all of them.
    pub(super) fn last_time(&self) -> Option<f64> {
        let earlier = self.replanned.iter().filter_map(|it| it.execution_time);
        let before: f64 = earlier.sum();
        self.execution_time.map(|all| (all - before).max(0.0))
    }

    /// The row of a task that failed as `self` says, was changed as `adjusted` says, and was tried again. What the
    /// last attempt came to is what the task came to, but for a draft that only an earlier one has.
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

    /// As a line of the output, with its end.
    pub fn to_line(&self) -> String {
        // Nothing in a row cannot be written as JSON.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}
