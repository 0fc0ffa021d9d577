//! A trial: one arm on one task with one seed, stored as a row.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::arm::Arm;
use crate::batch::Row;
use crate::types::TokenUsage;

/// The data of a benchmark row in addition to that of a batch row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The task's id.
    pub task: String,
    /// The arm.
    pub arm: Arm,
    /// The seed.
    pub seed: u64,
    /// Whether the answer meets all checks of the task, including hidden ones, or `None` without a
    /// verdict.
    pub met: Option<bool>,
    /// Whether each check is met.
    pub checks: BTreeMap<String, bool>,
    /// The checks that the arm did not see.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hidden: BTreeSet<String>,
    /// The number of requests to models, without scoring.
    pub calls: u32,
    /// The number of output tokens and evaluated prompt tokens, by which arms are matched.
    pub cost_tokens: u64,
    /// The number of all tokens.
    pub total_tokens: u64,
    /// A hash of the task, its criteria, the models and the settings. Rows with different hashes
    /// are not comparable.
    pub setup: String,
}

/// The parts of a row that the report needs.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRow {
    /// The trial.
    pub trial: Trial,
    /// The token usage that the server reports.
    pub usage: TokenUsage,
    /// The duration in seconds, without waiting for other trials and without scoring.
    pub seconds: f64,
}

impl TrialRow {
    /// Parses a row. Returns `None` if it does not belong to a benchmark.
    pub fn of(row: &Row) -> Option<Self> {
        let extra = serde_json::Value::Object(row.extra.clone());
        Some(Self {
            trial: serde_json::from_value(extra).ok()?,
            usage: row.token_usage,
            seconds: row.execution_time.unwrap_or(0.0),
        })
    }

    /// Returns the key of the trial.
    pub fn key(&self) -> Key {
        Key {
            task: self.trial.task.clone(),
            arm: self.trial.arm,
            seed: self.trial.seed,
        }
    }
}

/// Identifies a trial. Its text form is the id of its row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The task's id.
    pub task: String,
    /// The arm.
    pub arm: Arm,
    /// The seed.
    pub seed: u64,
}

impl Key {
    pub(super) fn id(&self) -> String {
        format!("{}/{}/{}", self.task, self.arm.as_str(), self.seed)
    }

    pub(super) fn parse(id: &str) -> Option<Self> {
        let mut parts = id.rsplitn(3, '/');
        let (seed, arm, task) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self {
            task: task.to_owned(),
            arm: arm.parse().ok()?,
            seed: seed.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_what_the_trial_is_about() {
        let key = Key {
            task: "a/b c".to_owned(),
            arm: Arm::BestOfN,
            seed: 3,
        };
        assert_eq!(key.id(), "a/b c/best-of-n/3");
        assert_eq!(Key::parse(&key.id()), Some(key));
        assert_eq!(Key::parse("a/b"), None);
    }
}
