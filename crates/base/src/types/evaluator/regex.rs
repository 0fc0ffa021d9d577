use std::ops::RangeInclusive;

use ::regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::{self, Piece};

/// Configuration of the `regex` evaluator. Bounds go with matches that are wanted, `min_count` not above
/// `max_count`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegexConfig {
    /// A regular expression in the syntax of Rust's `regex` crate: no look-around, no
    /// back-references, linear time on any draft.
    pub pattern: String,
    /// Whether a match is wanted. Default: present.
    #[serde(default)]
    pub expect: Expect,
    /// The fewest matches that are wanted. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_count: Option<u64>,
    /// The most matches that are allowed. Default: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_count: Option<u64>,
    /// What the reviser is told about a match that must not be there, or about one that is missing; a
    /// sentence about the pattern by default. `{match}` stands for the match, `{1}` and `{name}` for
    /// what a group of the pattern has matched, `{{name}}` for `{name}` itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Bound on a compiled pattern, in bytes: a criteria file is not ours, and `(a{1000}){1000}` would
/// otherwise take gigabytes. The regex crate's own default is 10 MB.
const PATTERN_SIZE_LIMIT: usize = 2 << 20;

/// The name that stands for the whole match in a message.
pub const WHOLE_MATCH: &str = "match";

impl RegexConfig {
    /// The rule in words, as writers and judges read it.
    pub fn describe(&self) -> String {
        // A message that names a match belongs to a failure.
        let plain = self.message().filter(|pieces| {
            let names_a_match = |piece: &Piece<'_>| matches!(piece, Piece::Value(_));
            !pieces.iter().any(names_a_match)
        });
        if let Some(message) = plain.and_then(|_| self.say(|_| String::new())) {
            return message;
        }
        let pattern = &self.pattern;
        let what = format!("match the regular expression `{pattern}`");
        match (self.expect, self.min_count, self.max_count) {
            (Expect::Absent, ..) => format!("nothing in the text may {what}"),
            (Expect::Present, None, None) => format!("the text must {what}"),
            (Expect::Present, min, max) => {
                format!(
                    "the text must {what}; matches required: {}",
                    allowed(min, max)
                )
            }
        }
    }

    /// How many matches are allowed, in words.
    pub fn allowed(&self) -> String {
        match self.expect {
            Expect::Present => allowed(self.min_count, self.max_count),
            Expect::Absent => "none".to_owned(),
        }
    }

    /// How many matches are allowed.
    pub fn counts(&self) -> RangeInclusive<u64> {
        match self.expect {
            Expect::Present => self.min_count.unwrap_or(1)..=self.max_count.unwrap_or(u64::MAX),
            Expect::Absent => 0..=0,
        }
    }

    /// The message, taken apart; `None` if there is none.
    pub fn message(&self) -> Option<Vec<Piece<'_>>> {
        self.message.as_deref().map(message::pieces)
    }

    /// The message, with what `value` says for the names in it; `None` if there is none.
    pub fn say(&self, value: impl Fn(&str) -> String) -> Option<String> {
        let pieces = self.message()?.into_iter();
        Some(
            pieces
                .map(|piece| match piece {
                    Piece::Text(text) => text.to_owned(),
                    Piece::Value(name) => value(name),
                })
                .collect(),
        )
    }

    /// Compiles the pattern.
    ///
    /// # Errors
    /// What is wrong with it, in the words of the regex crate.
    pub fn compile(&self) -> Result<Regex, ::regex::Error> {
        compile(&self.pattern)
    }
}

/// Compiles a pattern of a criteria file.
///
/// # Errors
/// What is wrong with it, in the words of the regex crate.
pub fn compile(pattern: &str) -> Result<Regex, ::regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(PATTERN_SIZE_LIMIT)
        .build()
}

fn allowed(min: Option<u64>, max: Option<u64>) -> String {
    match (min.unwrap_or(1), max) {
        (min, Some(max)) if min == max => format!("exactly {min}"),
        (0, Some(max)) => format!("at most {max}"),
        (min, Some(max)) => format!("{min} to {max}"),
        (min, None) => format!("at least {min}"),
    }
}

/// Whether a pattern is to be found in the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// At least one match, or as many as the bounds say.
    #[default]
    Present,
    /// No match.
    Absent,
}
