use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::LoopSettings;

/// The overall threshold where a criteria file names none (seed 003 §2.2, `quality_threshold`).
pub const DEFAULT_THRESHOLD: f64 = 0.8;
/// The floor of a criterion that names none (seed 003 §2.4.2, `threshold`).
pub const DEFAULT_FLOOR: f64 = 0.7;
/// The floor of a hard check that names none: it is met or it is not. A poem of four lines is no haiku, though
/// it is three quarters of one; who wants to allow that sets a lower floor.
pub const DEFAULT_HARD_FLOOR: f64 = 1.0;

/// What drafts are measured by: the set of criteria with an overall threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Criteria {
    /// The set's name, as shown to people.
    pub name: String,
    /// One sentence about the set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The weighted mean of the criteria's scores must reach this, 0 to 1.
    pub threshold: f64,
    /// Defaults of the loop for these criteria; flags and environment go before them.
    #[serde(default, rename = "loop")]
    pub loop_settings: LoopSettings,
    /// At least one, names unique.
    pub criteria: Vec<Criterion>,
}

/// One thing a draft is measured by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Criterion {
    /// Unique in its set; the key of `criteria_scores`.
    pub name: String,
    /// What is measured, in words; the judge and the writer read it. Empty for a hard check that
    /// speaks for itself.
    #[serde(default)]
    pub description: String,
    /// Share in the weighted mean; above 0, default 1.
    pub weight: f64,
    /// The floor: a draft with a lower score is not satisfactory, whatever the mean. 0 to 1; default
    /// [`DEFAULT_FLOOR`], of a hard check [`DEFAULT_HARD_FLOOR`].
    pub threshold: f64,
    /// What gives the score.
    #[serde(flatten)]
    pub evaluator: Evaluator,
}

/// What gives a criterion its score, with the evaluator's own configuration.
///
/// A new kind is a variant here and a file in `evaluate/`.
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

    /// Whether the verdict needs no model.
    pub fn is_hard(&self) -> bool {
        !matches!(self, Self::Llm(_))
    }
}

/// Configuration of the `llm` evaluator.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlmConfig {}

/// Configuration of the `regex` evaluator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegexConfig {
    /// A regular expression in the syntax of Rust's `regex` crate: no look-around, no
    /// back-references, linear time on any draft.
    pub pattern: String,
    /// Whether a match is wanted. Default: present.
    #[serde(default)]
    pub expect: Expect,
    /// What the reviser is told when the check fails; a sentence about the pattern by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Bound on a compiled pattern, in bytes: a criteria file is not ours, and `(a{1000}){1000}` would
/// otherwise take gigabytes. The regex crate's own default is 10 MB.
const PATTERN_SIZE_LIMIT: usize = 2 << 20;

impl RegexConfig {
    /// Compiles the pattern.
    ///
    /// # Errors
    /// What is wrong with it, in the words of the regex crate.
    pub fn compile(&self) -> Result<Regex, regex::Error> {
        RegexBuilder::new(&self.pattern)
            .size_limit(PATTERN_SIZE_LIMIT)
            .build()
    }
}

/// Whether a pattern is to be found in the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// At least one match.
    #[default]
    Present,
    /// No match.
    Absent,
}

/// Configuration of the `length` evaluator: at least one bound, `min` not above `max`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LengthConfig {
    /// What is counted. Default: words.
    #[serde(default)]
    pub unit: LengthUnit,
    /// The least that is allowed, itself included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// The most that is allowed, itself included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// What the `length` evaluator counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LengthUnit {
    /// Words by the Unicode standard's word boundaries (UAX #29).
    #[default]
    Words,
    /// Unicode scalar values.
    Characters,
    /// Lines; a final newline does not start another one.
    Lines,
    /// Sentences by the Unicode standard's sentence boundaries (UAX #29).
    Sentences,
    /// Blocks of text separated by blank lines.
    Paragraphs,
}

impl LengthUnit {
    /// The unit's plural, as written in a criteria file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Characters => "characters",
            Self::Lines => "lines",
            Self::Sentences => "sentences",
            Self::Paragraphs => "paragraphs",
        }
    }
}
