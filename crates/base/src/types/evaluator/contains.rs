use ::regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of the `contains` evaluator: texts that the draft must or must not hold. At least one
/// list, and none of them empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [{"required": ["all"]}, {"required": ["any"]}, {"required": ["none"]}]))]
pub struct ContainsConfig {
    /// Each of these texts must be in the draft.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1)))]
    pub all: Vec<String>,
    /// At least one of these texts must be in the draft.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1)))]
    pub any: Vec<String>,
    /// None of these texts may be in the draft.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1)))]
    pub none: Vec<String>,
    /// Whether upper and lower case are the same. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_case: bool,
    /// Whether only whole words count: `art` is not in `start`. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub words: bool,
}

/// The most texts of one list: more is a dictionary, and each is searched for.
pub const MAX_TEXTS: usize = 1000;

impl ContainsConfig {
    /// The rule in words, as writers and judges read it.
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

    /// What finds one of the texts in a draft.
    ///
    /// # Errors
    /// If the text is too long to be searched for.
    pub fn finder(&self, text: &str) -> Result<Regex, ::regex::Error> {
        Regex::new(&self.pattern(text))
    }

    /// The regular expression that finds one of the texts.
    pub fn pattern(&self, text: &str) -> String {
        let mut pattern = ::regex::escape(text);
        // A border lies only between a character of a word and another; `C++` has none at its end.
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

/// Texts in backticks; the word goes before the last.
pub(super) fn listed(texts: &[String], word: &str) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("`{text}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {word} {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
