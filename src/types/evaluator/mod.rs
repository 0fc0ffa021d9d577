//! The evaluators' own configurations, one file each.

mod length;
mod llm;
mod regex;

use serde::{Deserialize, Serialize};

pub use self::length::{LengthConfig, LengthUnit};
pub use self::llm::{Anchors, JudgeExample, LlmConfig, ScoreRange};
pub use self::regex::{Expect, RegexConfig};

/// What gives a criterion its score, with the evaluator's own configuration.
///
/// A new kind is a variant and a file here, a row in `criteria/kinds/`, and a file in `evaluate/`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "evaluator", rename_all = "snake_case")]
pub enum Evaluator {
    /// A language model judges.
    Llm(LlmConfig),
    /// A regular expression must be present or absent.
    Regex(RegexConfig),
    /// The draft's length must be within bounds.
    Length(LengthConfig),
}

impl Evaluator {
    /// The names of all kinds, as written in a criteria file.
    pub const KINDS: &'static [&'static str] = &["llm", "regex", "length"];

    /// This evaluator's kind, as written in a criteria file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Llm(_) => "llm",
            Self::Regex(_) => "regex",
            Self::Length(_) => "length",
        }
    }

    /// The rule in words, as writers and judges read it; `None` if the criterion's description is all
    /// there is.
    pub fn describe(&self) -> Option<String> {
        match self {
            Self::Llm(config) => config.describe(),
            Self::Regex(config) => Some(config.describe()),
            Self::Length(config) => Some(config.describe()),
        }
    }

    /// Whether the verdict needs no model.
    pub fn is_hard(&self) -> bool {
        !matches!(self, Self::Llm(_))
    }
}
