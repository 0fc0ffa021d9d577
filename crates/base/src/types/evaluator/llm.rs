use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::origin::Origin;

/// The configuration of the `llm` evaluator. At most one of `anchors`, `checks` and `scale` is set; without any, the
/// built-in anchors apply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlmConfig {
    /// What the scores 1 to 5 mean for this criterion: five sentences, or a table with a sentence for at least `1`
    /// and `5`. Default: the built-in anchors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchors: Option<Anchors>,
    /// Yes/no questions, phrased so that yes is good. The score is the share of yes answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// The lowest and the highest score that the judge may give, for a custom `prompt` with its own scale. Default: 1
    /// to 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScoreRange>,
    /// A custom question for the judge: a `MiniJinja` template with the variables `draft`, `criterion` and
    /// `description`. The draft is placed before it unless the template includes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Whether `prompt` itself describes the JSON to return. `None`: detect it from the text.
    #[serde(skip)]
    pub own_form: Option<bool>,
    /// Evaluated drafts that the judge sees as examples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<JudgeExample>,
    /// The model that judges this criterion, as `provider:model`. Default: the run's judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where the criterion is defined.
    #[serde(skip)]
    pub origin: Origin,
}

impl LlmConfig {
    /// The rule as a sentence for writers and judges; `None` if the criterion's description is sufficient.
    pub fn describe(&self) -> Option<String> {
        (!self.checks.is_empty()).then(|| {
            format!(
                "Each of these questions must be answered with yes: {}",
                self.checks.join(" ")
            )
        })
    }

    /// How many characters this configuration adds to the judge's prompt.
    pub fn characters(&self) -> usize {
        let anchors = self.anchors.iter().flat_map(Anchors::steps);
        let examples = self.examples.iter().flat_map(|example| {
            [Some(&example.draft), example.reason.as_ref()]
                .into_iter()
                .flatten()
        });
        anchors
            .filter_map(|(_, meaning)| meaning)
            .chain(self.checks.iter().map(String::as_str))
            .chain(self.prompt.as_deref())
            .chain(examples.map(String::as_str))
            .map(str::len)
            .sum()
    }
}

/// A draft with its verdict, as an example for the judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JudgeExample {
    /// The draft. Alias: `input`.
    #[serde(alias = "input")]
    pub draft: String,
    /// Its score, on the scale of the criterion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Whether it meets the criterion, if it has no score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<bool>,
    /// The rationale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The lowest and the highest score of a custom scale. In a file: `[0, 1]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "[f64; 2]", into = "[f64; 2]")]
pub struct ScoreRange {
    low: f64,
    high: f64,
}

impl ScoreRange {
    /// Creates a scale; `None` unless both bounds are finite and `low` is below `high`.
    pub fn new(low: f64, high: f64) -> Option<Self> {
        (low.is_finite() && high.is_finite() && low < high).then_some(Self { low, high })
    }

    /// The lowest score.
    pub fn low(self) -> f64 {
        self.low
    }

    /// The highest score.
    pub fn high(self) -> f64 {
        self.high
    }

    /// Maps a score to 0 to 1. A score below the scale maps to 0, which passes nothing. A score above the scale maps
    /// to `None`, because the judge may have used another scale.
    pub fn share(self, score: f64) -> Option<f64> {
        (score <= self.high).then(|| ((score - self.low) / (self.high - self.low)).max(0.0))
    }
}

impl TryFrom<[f64; 2]> for ScoreRange {
    type Error = String;

    fn try_from([low, high]: [f64; 2]) -> Result<Self, String> {
        Self::new(low, high)
            .ok_or_else(|| "expected the lowest and the highest score, such as `[0, 1]`".to_owned())
    }
}

impl From<ScoreRange> for [f64; 2] {
    fn from(range: ScoreRange) -> Self {
        [range.low, range.high]
    }
}

impl JsonSchema for ScoreRange {
    fn schema_name() -> Cow<'static, str> {
        "ScoreRange".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "items": { "type": "number" },
            "minItems": 2,
            "maxItems": 2,
        })
    }
}

/// The number of scores on the judge's scale.
const STEPS: usize = 5;

/// What the scores on the scale mean for a criterion: at least the first and the last are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchors([Option<String>; STEPS]);

impl Anchors {
    /// The scores 1 to 5, each with its sentence if it has one.
    pub fn steps(&self) -> impl Iterator<Item = (u8, Option<&str>)> {
        (1..).zip(self.0.iter().map(Option::as_deref))
    }

    fn new(steps: [Option<String>; STEPS]) -> Result<Self, &'static str> {
        if steps.iter().flatten().any(|text| text.trim().is_empty()) {
            return Err("the sentence for a score is empty");
        }
        if steps[0].is_none() || steps[STEPS - 1].is_none() {
            return Err("at least the scores `1` and `5` need a sentence");
        }
        Ok(Self(steps))
    }
}

impl Serialize for Anchors {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table: BTreeMap<String, &str> = self
            .steps()
            .filter_map(|(step, meaning)| Some((step.to_string(), meaning?)))
            .collect();
        table.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Anchors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnchorsVisitor)
    }
}

struct AnchorsVisitor;

impl<'de> Visitor<'de> for AnchorsVisitor {
    type Value = Anchors;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of five sentences, or a table with sentences for the scores 1 to 5")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Anchors, A::Error> {
        let mut sentences: Vec<Option<String>> = Vec::new();
        while let Some(sentence) = list.next_element()? {
            sentences.push(Some(sentence));
        }
        let count = sentences.len();
        let steps = sentences.try_into().map_err(|_| {
            A::Error::custom(format!(
                "expected {STEPS} sentences, one for each score, not {count}"
            ))
        })?;
        Anchors::new(steps).map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Anchors, A::Error> {
        let mut steps: [Option<String>; STEPS] = Default::default();
        while let Some((step, sentence)) = map.next_entry::<String, String>()? {
            let place = step
                .parse::<usize>()
                .ok()
                .and_then(|step| steps.get_mut(step.checked_sub(1)?))
                .ok_or_else(|| {
                    A::Error::custom(format!("expected a score from 1 to {STEPS}, not `{step}`"))
                })?;
            *place = Some(sentence);
        }
        Anchors::new(steps).map_err(A::Error::custom)
    }
}

impl JsonSchema for Anchors {
    fn schema_name() -> Cow<'static, str> {
        "Anchors".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let sentence = serde_json::json!({ "type": "string", "minLength": 1 });
        json_schema!({
            "anyOf": [
                { "type": "array", "items": sentence, "minItems": STEPS, "maxItems": STEPS },
                {
                    "type": "object",
                    "properties": { "1": sentence, "2": sentence, "3": sentence, "4": sentence, "5": sentence },
                    "required": ["1", "5"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchors(json: &str) -> Result<Anchors, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn anchors_are_five_sentences_or_at_least_the_ends() {
        let all = anchors(r#"["a", "b", "c", "d", "e"]"#).unwrap();
        assert_eq!(all.steps().nth(3), Some((4, Some("d"))));
        let ends = anchors(r#"{"1": "bad", "5": "good"}"#).unwrap();
        assert_eq!(ends.steps().nth(1), Some((2, None)));
        for there in [all, ends] {
            let text = serde_json::to_string(&there).unwrap();
            assert_eq!(anchors(&text).unwrap(), there, "{text}");
        }
        for (json, problem) in [
            (r#"["a", "b"]"#, "expected 5 sentences"),
            (r#"{"1": "a"}"#, "at least the scores `1` and `5`"),
            (r#"{"0": "a"}"#, "not `0`"),
            (r#"{"6": "a"}"#, "not `6`"),
            (r#"{"1": " ", "5": "b"}"#, "is empty"),
            ("5", "a list of five sentences"),
        ] {
            let error = anchors(json).unwrap_err();
            assert!(error.contains(problem), "{json}: {error}");
        }
    }

    #[test]
    fn a_custom_scale_maps_linearly_to_0_to_1() {
        let scale = ScoreRange::new(0.0, 10.0).unwrap();
        assert_eq!(scale.share(7.0), Some(0.7));
        assert_eq!(scale.share(-1.0), Some(0.0), "below the scale: fails");
        assert_eq!(
            scale.share(85.0),
            None,
            "above the scale: perhaps out of 100"
        );
        assert_eq!(scale.share(f64::NAN), None);
        assert_eq!(ScoreRange::new(1.0, 1.0), None);
        assert_eq!(ScoreRange::new(0.0, f64::INFINITY), None);
        assert!(serde_json::from_str::<ScoreRange>("[1, 0]").is_err());
    }
}
