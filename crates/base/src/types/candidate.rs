//! Candidates: several drafts for one version, of which the best becomes the version.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{evaluation::Evaluation, settings::Strategy, version::EditCounts};

/// The most candidates for one version. Each one is written and evaluated in full.
pub const MAX_CANDIDATES: u32 = 8;

/// The number of candidates for each version after the first: 1 to [`MAX_CANDIDATES`], or `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidates {
    /// A fixed number.
    Number(u32),
    /// One, and two after a version that did not improve.
    Auto,
}

impl Candidates {
    /// Whether the number is in range; `auto` always is.
    pub fn is_valid(self) -> bool {
        match self {
            Self::Number(number) => (1..=MAX_CANDIDATES).contains(&number),
            Self::Auto => true,
        }
    }
}

impl Default for Candidates {
    fn default() -> Self {
        Self::Number(1)
    }
}

impl FromStr for Candidates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = match text {
            "auto" => Some(Self::Auto),
            text => text.parse().ok().map(Self::Number),
        };
        read.filter(|read| read.is_valid())
            .ok_or_else(|| format!("it must be a number from 1 to {MAX_CANDIDATES}, or `auto`"))
    }
}

impl Serialize for Candidates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u32(*number),
            Self::Auto => serializer.serialize_str("auto"),
        }
    }
}

impl<'de> Deserialize<'de> for Candidates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Candidates;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number from 1 to {MAX_CANDIDATES} or \"auto\"")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Candidates, E> {
                let read = u32::try_from(number).ok().map(Candidates::Number);
                read.filter(|read| read.is_valid())
                    .ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Candidates, E> {
                match u64::try_from(number) {
                    Ok(number) => self.visit_u64(number),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
                }
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Candidates, E> {
                match text {
                    "auto" => Ok(Candidates::Auto),
                    text => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Candidates {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Candidates".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": MAX_CANDIDATES },
                { "const": "auto" }
            ]
        })
    }
}

/// What happens to a candidate, step by step. In JSON the variant name is the field `step`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum CandidateStep {
    /// The candidate is being written.
    Begun {
        /// The number of candidates for this version.
        of: u32,
        /// A description of how it differs from the others.
        difference: String,
    },
    /// The candidate is written and is a valid draft.
    Written {
        /// The text.
        output: String,
        /// The strategy that was used in the end; `None` for a fresh draft.
        strategy: Option<Strategy>,
        /// How the edits applied, if the strategy used edits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edits: Option<EditCounts>,
    },
    /// The candidate failed: a model error, a rejected reply, or a failed evaluation.
    Lost {
        /// The reason, as a message.
        reason: String,
        /// The rejected text, if a reply was rejected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Whether `reflect` stopped the reply early, because it could no longer become a usable draft.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stopped_early: bool,
    },
    /// The candidate is evaluated.
    Judged {
        /// The evaluation.
        evaluation: Evaluation,
    },
    /// The candidate becomes the version.
    Chosen {
        /// The reason, as a message.
        reason: String,
    },
}

/// A draft written for a version, chosen or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The version it was written for.
    pub iteration: u32,
    /// Its number among the candidates for that version, from 1.
    pub candidate: u32,
    /// A description of how it differs from the others.
    pub difference: String,
    /// Whether it became the version.
    pub chosen: bool,
    /// The text; `None` if the candidate failed.
    pub output: Option<String>,
    /// The strategy that was used in the end; `None` for a fresh draft.
    pub strategy: Option<Strategy>,
    /// How the edits applied, if the strategy used edits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<EditCounts>,
    /// Its evaluation, if there is one.
    pub evaluation: Option<Evaluation>,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

impl Candidate {
    /// Applies one step to a list of candidates.
    pub(super) fn apply(
        list: &mut Vec<Self>,
        iteration: u32,
        candidate: u32,
        step: &CandidateStep,
    ) {
        if let CandidateStep::Begun { difference, .. } = step {
            list.push(Self {
                iteration,
                candidate,
                difference: difference.clone(),
                chosen: false,
                output: None,
                strategy: None,
                edits: None,
                evaluation: None,
                lost: None,
            });
            return;
        }
        // Use the last one with that number: a failed version may be tried again.
        let known = list
            .iter_mut()
            .rfind(|known| (known.iteration, known.candidate) == (iteration, candidate));
        let Some(known) = known else { return };
        match step {
            CandidateStep::Begun { .. } => {}
            CandidateStep::Written {
                output,
                strategy,
                edits,
            } => {
                known.output = Some(output.clone());
                known.strategy = *strategy;
                known.edits = *edits;
            }
            CandidateStep::Lost { reason, .. } => known.lost = Some(reason.clone()),
            CandidateStep::Judged { evaluation } => known.evaluation = Some(evaluation.clone()),
            CandidateStep::Chosen { .. } => known.chosen = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_a_number_in_range_or_auto() {
        for (text, read) in [
            ("1", Candidates::Number(1)),
            ("8", Candidates::Number(8)),
            ("auto", Candidates::Auto),
        ] {
            assert_eq!(text.parse(), Ok(read));
            let json = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<Candidates>(&json).unwrap(), read);
        }
        for bad in ["0", "9", "-1", "1.5", "Auto", ""] {
            assert!(bad.parse::<Candidates>().is_err(), "{bad}");
        }
        for bad in ["0", "9", "-1", "1.5", "\"two\"", "true", "99999999999"] {
            assert!(serde_json::from_str::<Candidates>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn steps_fold_into_candidates() {
        let mut all = Vec::new();
        let begun = |difference: &str| CandidateStep::Begun {
            of: 2,
            difference: difference.to_owned(),
        };
        let written = CandidateStep::Written {
            output: "text".to_owned(),
            strategy: Some(Strategy::FullRewrite),
            edits: None,
        };
        let lost = CandidateStep::Lost {
            reason: "refused".to_owned(),
            text: None,
            stopped_early: false,
        };
        let chosen = CandidateStep::Chosen {
            reason: "the best".to_owned(),
        };
        for (candidate, step) in [
            (1, begun("as usual")),
            (2, begun("warmer")),
            (2, written),
            (1, lost.clone()),
            (2, chosen),
        ] {
            Candidate::apply(&mut all, 3, candidate, &step);
        }
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].lost.as_deref(), Some("refused"));
        assert_eq!((all[0].chosen, all[1].chosen), (false, true));
        assert_eq!(all[1].output.as_deref(), Some("text"));
        // A step of an unknown candidate is ignored.
        let before = all.clone();
        Candidate::apply(&mut all, 4, 1, &lost);
        assert_eq!(all, before);
    }
}
