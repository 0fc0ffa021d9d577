//! One arm on one task with one seed: a row.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::arm::Arm;
use crate::batch::Row;
use crate::types::TokenUsage;

/// What a row of a benchmark says in addition to a row of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The task's id.
    pub task: String,
    /// The arm.
    pub arm: Arm,
    /// The seed.
    pub seed: u64,
    /// Whether the answer meets all checks of the task, hidden ones included; `None` without a verdict.
    pub met: Option<bool>,
    /// Per check whether it is met.
    pub checks: BTreeMap<String, bool>,
    /// The checks that the arm did not see.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hidden: BTreeSet<String>,
    /// Requests to models, scoring left out.
    pub calls: u32,
    /// Output tokens and prompt tokens that the server had to evaluate: what arms are matched on.
    pub cost_tokens: u64,
    /// All tokens.
    pub total_tokens: u64,
    /// Stands for the task, its criteria, the models and the settings: rows with another one are not comparable.
    pub setup: String,
}

/// A row as far as the report needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What was tried.
    pub trial: Trial,
    /// Tokens as the server counted them.
    pub usage: TokenUsage,
    /// How long it took, without the waits for other trials and without scoring.
    pub seconds: f64,
}

impl Measured {
    /// Reads a row; `None` if it is none of a benchmark.
    pub fn of(row: &Row) -> Option<Self> {
        let extra = serde_json::Value::Object(row.extra.clone());
        Some(Self {
            trial: serde_json::from_value(extra).ok()?,
            usage: row.token_usage,
            seconds: row.execution_time.unwrap_or(0.0),
        })
    }

    /// What the trial is about.
    pub fn key(&self) -> Key {
        Key {
            task: self.trial.task.clone(),
            arm: self.trial.arm,
            seed: self.trial.seed,
        }
    }
}

/// What a trial is about. As text it is the id of its row.
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
