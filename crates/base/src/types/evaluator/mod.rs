//! The configurations of the evaluators, one file each.

mod command;
mod compare;
mod contains;
mod length;
mod llm;
mod message;
mod origin;
mod regex;
mod schema;
mod script;

use serde::{Deserialize, Serialize};

pub use self::command::{CommandConfig, CommandSyntaxError, CommandVerdict, DRAFT_FILE};
pub use self::compare::{
    Bounds, CompareConfig, CompareError, CompareKeys, CompareMethod, CompareTarget, CompareWith,
    MAX_REFERENCE, TIE_SCORE, Terms,
};
pub use self::contains::{ContainsConfig, MAX_TEXTS};
pub use self::length::{LengthConfig, LengthUnit};
pub use self::llm::{Anchors, JudgeExample, LlmConfig, ScoreRange};
pub use self::message::Piece;
pub use self::origin::Origin;
pub use self::regex::compile;
pub use self::regex::{Expect, RegexConfig, WHOLE_MATCH};
pub use self::schema::SchemaConfig;
pub use self::script::{ScriptConfig, ScriptLanguage};
use super::criteria::{DEFAULT_FLOOR, DEFAULT_HARD_FLOOR};

/// What computes the score of a criterion, with its configuration.
///
/// A new kind needs a variant and a file here, a row in `criteria/kinds/`, and a file in `evaluate/`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "evaluator", rename_all = "snake_case")]
pub enum Evaluator {
    /// A language model judges the draft.
    Llm(LlmConfig),
    /// A regular expression must match, match a number of times, or not match.
    Regex(RegexConfig),
    /// The draft's length must be within bounds.
    Length(LengthConfig),
    /// The JSON value in the draft must be valid against a JSON Schema.
    Schema(SchemaConfig),
    /// The draft must or must not contain certain texts.
    Contains(ContainsConfig),
    /// The draft is compared with another text.
    Compare(CompareConfig),
    /// A script computes the verdict.
    Script(ScriptConfig),
    /// A program determines the verdict.
    Command(CommandConfig),
}

impl Evaluator {
    /// The names of all kinds, as in a criteria file.
    pub const KINDS: &'static [&'static str] = &[
        "llm", "regex", "length", "contains", "compare", "schema", "script", "command",
    ];

    /// The name of this kind, as in a criteria file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Llm(_) => "llm",
            Self::Regex(_) => "regex",
            Self::Length(_) => "length",
            Self::Schema(_) => "schema",
            Self::Contains(_) => "contains",
            Self::Compare(_) => "compare",
            Self::Script(_) => "script",
            Self::Command(_) => "command",
        }
    }

    /// The rule as a sentence for writers and judges; `None` if the criterion's description is sufficient.
    pub fn describe(&self) -> Option<String> {
        match self {
            Self::Llm(config) => config.describe(),
            Self::Script(_) => None,
            Self::Regex(config) => Some(config.describe()),
            Self::Length(config) => Some(config.describe()),
            Self::Schema(config) => Some(config.describe()),
            Self::Contains(config) => Some(config.describe()),
            Self::Compare(config) => Some(config.describe()),
            Self::Command(config) => Some(config.describe()),
        }
    }

    /// Whether the evaluator runs without a model.
    pub fn is_hard(&self) -> bool {
        match self {
            Self::Llm(_) => false,
            Self::Compare(config) => config.is_hard(),
            Self::Regex(_)
            | Self::Length(_)
            | Self::Schema(_)
            | Self::Contains(_)
            | Self::Script(_)
            | Self::Command(_) => true,
        }
    }

    /// The default minimum score of a criterion with this evaluator.
    pub fn default_floor(&self) -> f64 {
        match self {
            Self::Llm(_) | Self::Script(_) | Self::Command(_) => DEFAULT_FLOOR,
            Self::Compare(config) if !config.is_hard() => DEFAULT_FLOOR,
            Self::Regex(_)
            | Self::Length(_)
            | Self::Contains(_)
            | Self::Compare(_)
            | Self::Schema(_) => DEFAULT_HARD_FLOOR,
        }
    }
}
