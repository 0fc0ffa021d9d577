use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    evaluation::{Evaluation, Rank},
    settings::Strategy,
    usage::TokenUsage,
};
use crate::text::counted;

/// A draft with its evaluation and its origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Its number. The first draft, or the text that the run started with, is 1.
    pub iteration: u32,
    /// The text.
    pub output: String,
    /// The version it revises; `None` for a fresh draft and for the text that the run started with.
    pub based_on: Option<u32>,
    /// The strategy that was used in the end, after any fallback, so never [`Strategy::Hybrid`]. `None` for a fresh
    /// draft, and (with `based_on`) for a user's edit of that version.
    pub strategy: Option<Strategy>,
    /// How the edits applied, if the strategy used edits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<EditCounts>,
    /// The descriptions of the issues of `based_on` that this version fixed.
    pub improvements_applied: Vec<String>,
    /// The evaluation; `None` if the run ended before it.
    pub evaluation: Option<Evaluation>,
    /// When the text was complete.
    pub timestamp: Timestamp,
    /// The token usage of the calls that wrote and evaluated it.
    pub token_usage: TokenUsage,
    /// The time to write and evaluate it, in milliseconds.
    pub duration_ms: u64,
}

/// How the edits of a revision applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EditCounts {
    /// Matched byte for byte.
    pub exact: u32,
    /// Matched except for white space and look-alike characters.
    pub tolerant: u32,
    /// Matched approximately.
    pub fuzzy: u32,
    /// Matched nowhere or in several places, even after a retry.
    pub failed: u32,
}

impl EditCounts {
    /// The number of edits that applied.
    pub fn applied(&self) -> u32 {
        self.exact + self.tolerant + self.fuzzy
    }

    /// The counts as text: `3 edits applied (2 exactly, 1 nearly), 1 did not`.
    pub fn describe(&self) -> String {
        let parts: Vec<String> = [
            (self.exact, "exactly"),
            (self.tolerant, "but for white space"),
            (self.fuzzy, "nearly"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, how)| format!("{count} {how}"))
        .collect();
        let applied = self.applied();
        let mut out = format!("{} applied", counted(applied, "edit"));
        if !parts.is_empty() {
            out = format!("{out} ({})", parts.join(", "));
        }
        if self.failed > 0 {
            out = format!("{out}, {} did not", self.failed);
        }
        out
    }
}

impl Version {
    /// A text that was just written, without an evaluation.
    pub(super) fn new(iteration: u32, output: &str, timestamp: Timestamp) -> Self {
        Self {
            iteration,
            output: output.to_owned(),
            based_on: None,
            strategy: None,
            edits: None,
            improvements_applied: Vec::new(),
            evaluation: None,
            timestamp,
            token_usage: TokenUsage::default(),
            duration_ms: 0,
        }
    }

    /// The overall score, if there is one.
    pub fn score(&self) -> Option<f64> {
        self.evaluation.as_ref()?.overall_score
    }

    /// The rank; `None` if a criterion has no verdict.
    pub fn rank(&self) -> Option<Rank> {
        self.evaluation.as_ref()?.rank()
    }
}
