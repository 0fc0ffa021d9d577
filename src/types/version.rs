use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    evaluation::{Evaluation, Rank},
    settings::Strategy,
    usage::TokenUsage,
};

/// A draft with its evaluation and where it comes from (seed 003 §2.7.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Its number; the first draft is 1.
    pub iteration: u32,
    /// The text.
    pub output: String,
    /// The version it revises; `None` for a first draft.
    pub based_on: Option<u32>,
    /// How it was revised; `None` for a first draft.
    pub strategy: Option<Strategy>,
    /// Descriptions of the issues of `based_on` that this version no longer has.
    pub improvements_applied: Vec<String>,
    /// The verdict; `None` if the run ended before there was one.
    pub evaluation: Option<Evaluation>,
    /// When the text was complete.
    pub timestamp: Timestamp,
    /// Tokens of the calls that wrote and judged it.
    pub token_usage: TokenUsage,
    /// How long writing and judging it took, in milliseconds.
    pub duration_ms: u64,
}

impl Version {
    /// The overall score, if there is one.
    pub fn score(&self) -> Option<f64> {
        self.evaluation.as_ref()?.overall_score
    }

    /// How good it is; `None` without a verdict on all of it.
    pub fn rank(&self) -> Option<Rank> {
        self.evaluation.as_ref()?.rank()
    }
}
