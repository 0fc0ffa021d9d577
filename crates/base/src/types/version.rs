use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    evaluation::{Evaluation, Rank},
    settings::Strategy,
    usage::TokenUsage,
};
use crate::text::counted;

/// A draft with its evaluation and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Its number; the first draft, or the text that the run began with, is 1.
    pub iteration: u32,
    /// The text.
    pub output: String,
    /// The version it revises; `None` for a draft of its own and for a text that the run began with.
    pub based_on: Option<u32>,
    /// How it was revised in the end, after any fall-back, so never [`Strategy::Hybrid`]; `None` for a first
    /// draft, and with `based_on` for a text that a user made of that version.
    pub strategy: Option<Strategy>,
    /// How the edits applied, if edits were tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<EditCounts>,
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

/// How the edits of a revision applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EditCounts {
    /// Found in the draft byte for byte.
    pub exact: u32,
    /// Found but for white space and characters that look alike.
    pub tolerant: u32,
    /// Found nearly.
    pub fuzzy: u32,
    /// Not found, or in more than one place, also when they were asked for again.
    pub failed: u32,
}

impl EditCounts {
    /// How many applied.
    pub fn applied(&self) -> u32 {
        self.exact + self.tolerant + self.fuzzy
    }

    /// The figures in words: `3 edits applied (2 exactly, 1 nearly), 1 did not`.
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
    /// A text that was written just now, of which nothing else is known.
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

    /// How good it is; `None` without a verdict on all of it.
    pub fn rank(&self) -> Option<Rank> {
        self.evaluation.as_ref()?.rank()
    }
}
