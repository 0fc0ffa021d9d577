use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The configuration of the `length` evaluator: at least one bound, `min` at most `max`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [{"required": ["min"]}, {"required": ["max"]}]))]
pub struct LengthConfig {
    /// What to count. Default: words.
    #[serde(default)]
    pub unit: LengthUnit,
    /// The minimum, inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// The maximum, inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

impl LengthConfig {
    /// The rule as a sentence for writers and judges.
    pub fn describe(&self) -> String {
        let unit = self.unit.as_str();
        match (self.min, self.max) {
            (Some(min), Some(max)) if min == max => format!("Exactly {min} {unit}."),
            (Some(min), Some(max)) => format!("{min} to {max} {unit}."),
            (Some(min), None) => format!("At least {min} {unit}."),
            (None, Some(max)) => format!("At most {max} {unit}."),
            (None, None) => String::new(),
        }
    }
}

/// What the `length` evaluator counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LengthUnit {
    /// Words, split at Unicode word boundaries (UAX #29).
    #[default]
    Words,
    /// Unicode scalar values.
    Characters,
    /// Lines. A final newline does not start another line.
    Lines,
    /// Sentences, split at Unicode sentence boundaries (UAX #29).
    Sentences,
    /// Blocks of text separated by blank lines.
    Paragraphs,
}

impl LengthUnit {
    /// The unit's plural, as in a criteria file.
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
