use ::regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The rule in words, as writers and judges read it.
    pub fn describe(&self) -> String {
        let pattern = &self.pattern;
        match (&self.message, self.expect) {
            (Some(message), _) => message.clone(),
            (None, Expect::Present) => {
                format!("the text must match the regular expression `{pattern}`")
            }
            (None, Expect::Absent) => {
                format!("nothing in the text may match the regular expression `{pattern}`")
            }
        }
    }

    /// Compiles the pattern.
    ///
    /// # Errors
    /// What is wrong with it, in the words of the regex crate.
    pub fn compile(&self) -> Result<Regex, ::regex::Error> {
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
