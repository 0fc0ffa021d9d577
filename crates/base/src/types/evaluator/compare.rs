use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::criteria::DEFAULT_THRESHOLD;

/// Configuration of the `compare` evaluator: what a draft is held against, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "CompareKeys", into = "CompareKeys")]
pub enum CompareConfig {
    /// How much of the draft's words, in their order, are those of the other text.
    Similarity {
        /// The other text.
        to: Against,
        /// The likeness that is wanted.
        bounds: Bounds,
    },
    /// How many of the key terms are in the draft.
    Terms {
        /// Where the terms come from.
        of: Terms,
        /// The share of them that is wanted, above 0 and up to 1.
        min: f64,
    },
    /// Which of the two a judge prefers, asked in both orders. The score is 1 for the draft,
    /// [`TIE_SCORE`] for neither, 0 for the other text.
    Pairwise {
        /// The other text.
        to: Against,
    },
}

/// The score of a draft that a judge finds neither better nor worse than the other text. It is what is good
/// enough where nothing is said: above the default floor, and no reason to miss the default threshold. A
/// criterion whose `threshold` is above it wants a draft that is better.
pub const TIE_SCORE: f64 = DEFAULT_THRESHOLD;

/// What a draft is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Against {
    /// A text that stays the same.
    Reference(String),
    /// The version that the draft revises. A first draft has none, and then there is nothing to say.
    Prior,
}

/// Bounds on likeness, each from 0 (nothing in common) to 1 (the same words); `min` not above `max`, and
/// not all that there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

/// Where key terms come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Terms {
    /// These; each has a word in it.
    Listed(Vec<String>),
    /// The most frequent words of another text, without those that every text has.
    Drawn(Against),
}

/// The share of listed terms that is wanted where nothing is said: all of them.
const DEFAULT_LISTED_SHARE: f64 = 1.0;
/// The share of drawn terms that is wanted where nothing is said: another text on the same subject has
/// other words for some of them.
const DEFAULT_DRAWN_SHARE: f64 = 0.5;

/// The longest reference text, in bytes. Each run's record holds it.
pub const MAX_REFERENCE: usize = 256 << 10;

/// The most listed terms.
const MAX_TERMS: usize = 1000;

/// The keys of a `compare` criterion, as they are written; what they mean together is a
/// [`CompareConfig`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["reference"]},
    {"required": ["reference_file"]},
    {"required": ["with"]},
    {"required": ["terms"]},
]))]
pub struct CompareKeys {
    /// How they are compared. Default: similarity.
    #[serde(default)]
    pub method: CompareMethod,
    /// The text that drafts are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub reference: Option<String>,
    /// A file with that text, in the criteria file's folder or below it. It is read with the criteria file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub reference_file: Option<String>,
    /// Instead of a reference, the version that a draft revises: `prior`. A first draft has none, and
    /// meets the criterion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<CompareWith>,
    /// With the method `terms`: the words and phrases that must be in the draft, instead of those of a
    /// reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1)))]
    pub terms: Option<Vec<String>>,
    /// The least likeness, or the least share of the terms. Default: of likeness none, of listed
    /// terms 1, of a reference's terms 0.5. The method `pairwise` has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub min: Option<f64>,
    /// The most likeness. Default: no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub max: Option<f64>,
}

/// How a draft is compared with another text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompareMethod {
    /// By the words that they share in the same order.
    #[default]
    Similarity,
    /// By the key terms that they share.
    Terms,
    /// By a judge, who is asked which of the two is better, in both orders; one who says something else in
    /// the other order has no preference. With a `description`, by that alone, else by all criteria.
    /// The score is 1 where the draft is better, 0.8 where neither is, 0 where the other text is.
    Pairwise,
}

/// What takes the place of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompareWith {
    /// The version that a draft revises.
    Prior,
}

/// Keys that do not go together: the key at fault, empty for the lack of one; what is wrong; and what to
/// do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
pub struct CompareError {
    /// The key.
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

    /// What the keys mean together. A `reference_file` must have been read and put into `reference`.
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
        Some(_) => Err(wrong("terms", "`terms` belongs to the method `terms`")
            .hint("add `method = \"terms\"` if that is meant")),
        None => Ok(()),
    }
}

fn pairwise(keys: CompareKeys) -> Result<CompareConfig, CompareError> {
    no_terms(&keys)?;
    for (key, value) in [("min", keys.min), ("max", keys.max)] {
        if value.is_some() {
            return Err(wrong(
                key,
                format!("the method `pairwise` has no `{key}`: a judge prefers a text, or does not"),
            )
            .hint(
                "leave it out: a draft that is as good passes; with `threshold = 1`, only one that is better",
            ));
        }
    }
    Ok(CompareConfig::Pairwise { to: against(keys)? })
}

fn similarity(keys: CompareKeys) -> Result<CompareConfig, CompareError> {
    no_terms(&keys)?;
    let bounds = match (keys.min, keys.max) {
        (None, None) => {
            return Err(wrong("", "likeness needs `min`, `max` or both")
                .hint("for example: min = 0.6, where 1 is the same words in the same order"));
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
        return Err(wrong(
            "",
            "any text is that much alike: the bounds are 0 and 1",
        ));
    }
    Ok(CompareConfig::Similarity {
        to: against(keys)?,
        bounds,
    })
}

fn terms(keys: CompareKeys) -> Result<CompareConfig, CompareError> {
    if keys.max.is_some() {
        return Err(wrong("max", "`max` belongs to the method `similarity`")
            .hint("texts that must not be there are for the evaluator `contains` and its `none`"));
    }
    if keys.min == Some(0.0) {
        return Err(wrong(
            "min",
            "`min` must be above 0: none of the terms would do",
        ));
    }
    let min = keys.min;
    let of = match &keys.terms {
        None => Terms::Drawn(against(keys)?),
        Some(_) if keys.reference.is_some() || keys.with.is_some() => {
            return Err(wrong(
                "terms",
                "`terms` goes without another text to draw terms from",
            )
            .hint("leave out either `terms`, or `reference`, `reference_file` and `with`"));
        }
        Some(terms) if terms.is_empty() => return Err(wrong("terms", "`terms` is empty")),
        Some(terms) if terms.len() > MAX_TERMS => {
            let message = format!(
                "`terms` has {}, at most {MAX_TERMS} are allowed",
                terms.len()
            );
            return Err(wrong("terms", message));
        }
        Some(terms) => {
            if let Some(term) = terms.iter().find(|t| !t.chars().any(char::is_alphanumeric)) {
                return Err(
                    wrong("terms", format!("the term `{term}` has no word in it"))
                        .hint("signs are for the evaluator `contains`"),
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

fn against(keys: CompareKeys) -> Result<Against, CompareError> {
    match (keys.reference, keys.with) {
        (Some(_), Some(_)) => Err(wrong(
            "with",
            "a draft is compared either with a reference or with the prior version, not with both",
        )),
        (None, Some(CompareWith::Prior)) => Ok(Against::Prior),
        (Some(text), None) if text.trim().is_empty() => {
            Err(wrong("reference", "the reference text is empty"))
        }
        (Some(text), None) if text.len() > MAX_REFERENCE => Err(wrong(
            "reference",
            format!(
                "the reference text has {} bytes, at most {MAX_REFERENCE} are allowed",
                text.len()
            ),
        )),
        (Some(text), None) => Ok(Against::Reference(text)),
        (None, None) => Err(wrong("", "there is nothing to compare with")
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
            Some(Against::Reference(text)) => (Some(text), None),
            Some(Against::Prior) => (None, Some(CompareWith::Prior)),
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
    /// Whether the verdict needs no model.
    pub fn is_hard(&self) -> bool {
        !matches!(self, Self::Pairwise { .. })
    }

    /// The rule in words, as writers and judges read it. A reference text itself is not shown: a writer
    /// would copy it.
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

impl Against {
    /// What it is called in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reference(_) => "the reference text",
            Self::Prior => "the version before",
        }
    }
    /// The other text, where `prior` is the version that the draft revises; `None` if there is none.
    pub fn text<'t>(&'t self, prior: Option<&'t str>) -> Option<&'t str> {
        match self {
            Self::Reference(text) => Some(text),
            Self::Prior => prior,
        }
    }
}
