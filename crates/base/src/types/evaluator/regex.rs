use std::ops::RangeInclusive;

use ::regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::{self, Piece};

/// The configuration of the `regex` evaluator. Bounds are allowed only with `expect = "present"`; `min_count` is at
/// most `max_count`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegexConfig {
    /// A regular expression in the syntax of Rust's `regex` crate: no look-around, no back-references, linear time on
    /// any draft.
    pub pattern: String,
    /// Whether the pattern must match or must not match. Default: present.
    #[serde(default)]
    pub expect: Expect,
    /// The minimum number of matches. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_count: Option<u64>,
    /// The maximum number of matches. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_count: Option<u64>,
    /// The message to the reviser about a forbidden or missing match. Default: a sentence about the pattern.
    /// `{match}` is replaced with the match, `{1}` and `{name}` with a group of the pattern; `{{name}}` is the
    /// literal text `{name}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The limit on the size of a compiled pattern, in bytes. Criteria files are untrusted, and `(a{1000}){1000}` would
/// otherwise take gigabytes. The regex crate's default is 10 MB.
const PATTERN_SIZE_LIMIT: usize = 2 << 20;

/// The placeholder for the whole match in a message.
pub const WHOLE_MATCH: &str = "match";

impl RegexConfig {
    /// The rule as a sentence for writers and judges.
    pub fn describe(&self) -> String {
        // A message that quotes a match only makes sense for a failure.
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

    /// The allowed number of matches, as text.
    pub fn allowed(&self) -> String {
        match self.expect {
            Expect::Present => allowed(self.min_count, self.max_count),
            Expect::Absent => "none".to_owned(),
        }
    }

    /// The allowed number of matches.
    pub fn counts(&self) -> RangeInclusive<u64> {
        match self.expect {
            Expect::Present => self.min_count.unwrap_or(1)..=self.max_count.unwrap_or(u64::MAX),
            Expect::Absent => 0..=0,
        }
    }

    /// The parsed message; `None` if there is none.
    pub fn message(&self) -> Option<Vec<Piece<'_>>> {
        self.message.as_deref().map(message::pieces)
    }

    /// The message with its placeholders replaced by `value`; `None` if there is none.
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
    /// If the regex crate rejects it.
    pub fn compile(&self) -> Result<Regex, ::regex::Error> {
        compile(&self.pattern)
    }
}

/// Compiles a pattern of a criteria file.
///
/// # Errors
/// If the regex crate rejects it.
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

/// Whether a pattern must match the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// It must match at least once, or as often as the bounds require.
    #[default]
    Present,
    /// It must not match.
    Absent,
}
