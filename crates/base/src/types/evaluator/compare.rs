use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::criteria::DEFAULT_THRESHOLD;

/// The configuration of the `compare` evaluator: what a draft is compared with, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "CompareKeys", into = "CompareKeys")]
pub enum CompareConfig {
    /// Compares the words and their order with another text.
    Similarity {
        /// The other text.
        to: CompareTarget,
        /// The required similarity.
        bounds: Bounds,
    },
    /// Counts how many of the key terms the draft contains.
    Terms {
        /// Where the terms come from.
        of: Terms,
        /// The required share of the terms, above 0 and up to 1.
        min: f64,
    },
    /// Asks a judge which text is better, in both orders. The score is 1 if the draft is better, [`TIE_SCORE`] for a
    /// tie, 0 if the other text is better.
    Pairwise {
        /// The other text.
        to: CompareTarget,
    },
}

/// The score of a tie between the draft and the other text. It equals the default overall threshold, so a tie passes
/// with default settings. A criterion with a higher `threshold` requires a better draft.
pub const TIE_SCORE: f64 = DEFAULT_THRESHOLD;

/// The text that a draft is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompareTarget {
    /// A fixed text.
    Reference(String),
    /// The version that the draft revises. A first draft has none and passes.
    Prior,
}

/// Bounds on similarity, each from 0 (nothing in common) to 1 (the same words). `min` is at most `max`, and the range
/// must exclude something.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

/// Where key terms come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Terms {
    /// A fixed list; each term contains a word.
    Listed(Vec<String>),
    /// The most frequent words of another text, without stop words.
    Drawn(CompareTarget),
}

/// The default share of listed terms: all of them.
const DEFAULT_LISTED_SHARE: f64 = 1.0;
/// The default share of drawn terms. A good text on the same subject uses other words for some of them.
const DEFAULT_DRAWN_SHARE: f64 = 0.5;

/// The longest reference text, in bytes. The record of each run contains it.
pub const MAX_REFERENCE: usize = 256 << 10;

/// The most listed terms.
const MAX_TERMS: usize = 1000;

/// The keys of a `compare` criterion as written in the file. [`CompareConfig`] is the validated form.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["reference"]},
    {"required": ["reference_file"]},
    {"required": ["with"]},
    {"required": ["terms"]},
]))]
pub struct CompareKeys {
    /// How the texts are compared. Default: similarity.
    #[serde(default)]
    pub method: CompareMethod,
    /// The text that drafts are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub reference: Option<String>,
    /// A file that contains the reference text, in the criteria file's folder or below it. It is read together with
    /// the criteria file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub reference_file: Option<String>,
    /// `prior` compares with the version that a draft revises instead of a reference. A first draft has no prior
    /// version and meets the criterion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<CompareWith>,
    /// With the method `terms`: the words and phrases that the draft must contain, instead of those of a reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1)))]
    pub terms: Option<Vec<String>>,
    /// The minimum similarity, or the minimum share of terms. Default: none for similarity, 1 for listed terms, 0.5
    /// for the terms of a reference. Not allowed with `pairwise`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub min: Option<f64>,
    /// The maximum similarity. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub max: Option<f64>,
}

/// How a draft is compared with another text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompareMethod {
    /// By the words that both have in the same order.
    #[default]
    Similarity,
    /// By the key terms that both have.
    Terms,
    /// By a judge that says which text is better, in both orders. If the two answers disagree, it is a tie. The judge
    /// uses the `description` if there is one, otherwise all criteria. The score is 1 if the draft is better, 0.8 for
    /// a tie, 0 if the other text is better.
    Pairwise,
}

/// What replaces a reference text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompareWith {
    /// The version that a draft revises.
    Prior,
}

/// An invalid combination of keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
pub struct CompareError {
    /// The offending key; empty if a key is missing.
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

fn wrong(key: &'static str, message: impl Into<String>) -> CompareError {
    CompareError {
        key,
        message: message.into(),
        hint: None,
    }
}

impl CompareError {
    fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl TryFrom<CompareKeys> for CompareConfig {
    type Error = CompareError;

    /// Validates the keys. The content of a `reference_file` must already be in `reference`.
    fn try_from(keys: CompareKeys) -> Result<Self, CompareError> {
        for (key, value) in [("min", keys.min), ("max", keys.max)] {
            if let Some(value) = value
                && !(0.0..=1.0).contains(&value)
            {
                let error = wrong(key, format!("`{key}` must be from 0 to 1, not {value}"));
                return Err(if value > 1.0 && value <= 100.0 {
                    error.hint(format!("did you mean {}?", value / 100.0))
                } else {
                    error
                });
            }
        }
        match keys.method {
            CompareMethod::Similarity => similarity(keys),
            CompareMethod::Terms => terms(keys),
            CompareMethod::Pairwise => pairwise(keys),
        }
    }
}

fn no_terms(keys: &CompareKeys) -> Result<(), CompareError> {
    match keys.terms {
        Some(_) => {
            Err(wrong("terms", "`terms` requires the method `terms`")
                .hint("add `method = \"terms\"`"))
        }
        None => Ok(()),
    }
}

fn pairwise(keys: CompareKeys) -> Result<CompareConfig, CompareError> {
    no_terms(&keys)?;
    for (key, value) in [("min", keys.min), ("max", keys.max)] {
        if value.is_some() {
            return Err(wrong(
                key,
                format!("`{key}` is not allowed with the method `pairwise`: a judge prefers one text or neither"),
            )
            .hint(
                "remove it: a tie passes; with `threshold = 1`, only a better draft passes",
            ));
        }
    }
    Ok(CompareConfig::Pairwise { to: against(keys)? })
}

fn similarity(keys: CompareKeys) -> Result<CompareConfig, CompareError> {
    no_terms(&keys)?;
    let bounds = match (keys.min, keys.max) {
        (None, None) => {
            return Err(
                wrong("", "the method `similarity` needs `min`, `max` or both")
                    .hint("for example: min = 0.6, where 1 means the same words in the same order"),
            );
        }
        (Some(min), Some(max)) if min > max => {
            return Err(wrong(
                "min",
                format!("`min` ({min}) is above `max` ({max})"),
            ));
        }
        (min, max) => Bounds {
            min: min.unwrap_or(0.0),
            max: max.unwrap_or(1.0),
        },
    };
    if bounds.min <= 0.0 && bounds.max >= 1.0 {
        return Err(wrong("", "bounds of 0 and 1 allow every text"));
    }
    Ok(CompareConfig::Similarity {
        to: against(keys)?,
        bounds,
    })
}

fn terms(keys: CompareKeys) -> Result<CompareConfig, CompareError> {
    if keys.max.is_some() {
        return Err(wrong("max", "`max` requires the method `similarity`")
            .hint("to forbid texts, use the evaluator `contains` with `none`"));
    }
    if keys.min == Some(0.0) {
        return Err(wrong(
            "min",
            "`min` must be above 0: with 0, every draft passes",
        ));
    }
    let min = keys.min;
    let of = match &keys.terms {
        None => Terms::Drawn(against(keys)?),
        Some(_) if keys.reference.is_some() || keys.with.is_some() => {
            return Err(
                wrong("terms", "`terms` cannot be combined with a reference text")
                    .hint("remove either `terms`, or `reference`, `reference_file` and `with`"),
            );
        }
        Some(terms) if terms.is_empty() => return Err(wrong("terms", "`terms` is empty")),
        Some(terms) if terms.len() > MAX_TERMS => {
            let message = format!(
                "`terms` has {}; at most {MAX_TERMS} are allowed",
                terms.len()
            );
            return Err(wrong("terms", message));
        }
        Some(terms) => {
            if let Some(term) = terms.iter().find(|t| !t.chars().any(char::is_alphanumeric)) {
                return Err(
                    wrong("terms", format!("the term `{term}` contains no word"))
                        .hint("for punctuation, use the evaluator `contains`"),
                );
            }
            Terms::Listed(terms.clone())
        }
    };
    let default = match of {
        Terms::Listed(_) => DEFAULT_LISTED_SHARE,
        Terms::Drawn(_) => DEFAULT_DRAWN_SHARE,
    };
    Ok(CompareConfig::Terms {
        of,
        min: min.unwrap_or(default),
    })
}

fn against(keys: CompareKeys) -> Result<CompareTarget, CompareError> {
    match (keys.reference, keys.with) {
        (Some(_), Some(_)) => Err(wrong(
            "with",
            "a reference text and `with` cannot be combined",
        )),
        (None, Some(CompareWith::Prior)) => Ok(CompareTarget::Prior),
        (Some(text), None) if text.trim().is_empty() => {
            Err(wrong("reference", "the reference text is empty"))
        }
        (Some(text), None) if text.len() > MAX_REFERENCE => Err(wrong(
            "reference",
            format!(
                "the reference text has {} bytes; at most {MAX_REFERENCE} are allowed",
                text.len()
            ),
        )),
        (Some(text), None) => Ok(CompareTarget::Reference(text)),
        (None, None) => Err(wrong("", "missing text to compare with")
            .hint("add `reference = \"...\"`, `reference_file = \"...\"`, or `with = \"prior\"`")),
    }
}

impl From<CompareConfig> for CompareKeys {
    fn from(config: CompareConfig) -> Self {
        let (method, against, terms, min, max) = match config {
            CompareConfig::Similarity { to, bounds } => (
                CompareMethod::Similarity,
                Some(to),
                None,
                Some(bounds.min),
                Some(bounds.max),
            ),
            CompareConfig::Terms {
                of: Terms::Listed(terms),
                min,
            } => (CompareMethod::Terms, None, Some(terms), Some(min), None),
            CompareConfig::Terms {
                of: Terms::Drawn(from),
                min,
            } => (CompareMethod::Terms, Some(from), None, Some(min), None),
            CompareConfig::Pairwise { to } => (CompareMethod::Pairwise, Some(to), None, None, None),
        };
        let (reference, with) = match against {
            Some(CompareTarget::Reference(text)) => (Some(text), None),
            Some(CompareTarget::Prior) => (None, Some(CompareWith::Prior)),
            None => (None, None),
        };
        Self {
            method,
            reference,
            reference_file: None,
            with,
            terms,
            min,
            max,
        }
    }
}

impl CompareConfig {
    /// Whether the evaluator runs without a model.
    pub fn is_hard(&self) -> bool {
        !matches!(self, Self::Pairwise { .. })
    }

    /// The rule as a sentence for writers and judges. It omits the reference text, because a writer would copy it.
    pub fn describe(&self) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        match self {
            Self::Similarity { to, bounds } => {
                let other = to.name();
                let Bounds { min, max } = *bounds;
                if max >= 1.0 {
                    format!(
                        "At least {} of its words must be as in {other}.",
                        percent(min)
                    )
                } else if min <= 0.0 {
                    format!(
                        "At most {} of its words may be as in {other}.",
                        percent(max)
                    )
                } else {
                    format!(
                        "{} to {} of its words must be as in {other}.",
                        percent(min),
                        percent(max)
                    )
                }
            }
            Self::Terms {
                of: Terms::Listed(terms),
                min,
            } => {
                let terms = super::contains::listed(terms, "and");
                if *min >= 1.0 {
                    format!("It must use the terms {terms}.")
                } else {
                    format!(
                        "It must use at least {} of the terms {terms}.",
                        percent(*min)
                    )
                }
            }
            Self::Terms {
                of: Terms::Drawn(from),
                min,
            } => format!(
                "It must use at least {} of the key terms of {}.",
                percent(*min),
                from.name()
            ),
            Self::Pairwise { to } => format!(
                "A judge who compares it with {} must not find it worse.",
                to.name()
            ),
        }
    }
}

impl CompareTarget {
    /// The name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reference(_) => "the reference text",
            Self::Prior => "the version before",
        }
    }
    /// The text to compare with, given the version that the draft revises; `None` if there is none.
    pub fn text<'t>(&'t self, prior: Option<&'t str>) -> Option<&'t str> {
        match self {
            Self::Reference(text) => Some(text),
            Self::Prior => prior,
        }
    }
}
