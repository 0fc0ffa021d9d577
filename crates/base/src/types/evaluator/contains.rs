use ::regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The configuration of the `contains` evaluator: texts that the draft must or must not contain. At least one list is
/// set, and set lists are not empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [{"required": ["all"]}, {"required": ["any"]}, {"required": ["none"]}]))]
pub struct ContainsConfig {
    /// The draft must contain each of these texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1)))]
    pub all: Vec<String>,
    /// The draft must contain at least one of these texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1)))]
    pub any: Vec<String>,
    /// The draft must not contain any of these texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1)))]
    pub none: Vec<String>,
    /// Whether to ignore case. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_case: bool,
    /// Whether to match whole words only: `art` does not match in `start`. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub words: bool,
}

/// The most texts per list. Each one is a separate search.
pub const MAX_TEXTS: usize = 1000;

impl ContainsConfig {
    /// The rule as a sentence for writers and judges.
    pub fn describe(&self) -> String {
        let rule = |lead: &str, texts: &[String], last: &str| {
            (!texts.is_empty()).then(|| format!("{lead} {}.", listed(texts, last)))
        };
        let rules = [
            rule("The text must contain", &self.all, "and"),
            rule("It must contain at least one of", &self.any, "and"),
            rule("It must not contain", &self.none, "or"),
        ];
        let mut said: Vec<String> = rules.into_iter().flatten().collect();
        if self.words {
            said.push("Only whole words count.".to_owned());
        }
        said.join(" ")
    }

    /// Compiles the search for one of the texts.
    ///
    /// # Errors
    /// If the text is too long to compile.
    pub fn finder(&self, text: &str) -> Result<Regex, ::regex::Error> {
        Regex::new(&self.pattern(text))
    }

    /// The regular expression for one of the texts.
    pub fn pattern(&self, text: &str) -> String {
        let mut pattern = ::regex::escape(text);
        // `\b` only matches next to a word character; `C++` has none at its end.
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        if self.words && text.starts_with(is_word) {
            pattern.insert_str(0, r"\b");
        }
        if self.words && text.ends_with(is_word) {
            pattern.push_str(r"\b");
        }
        if self.ignore_case {
            pattern.insert_str(0, "(?i)");
        }
        pattern
    }
}

/// The texts in backticks, with `word` before the last one.
pub(super) fn listed(texts: &[String], word: &str) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("`{text}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {word} {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
