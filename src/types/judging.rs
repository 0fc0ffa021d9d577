use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the judge is asked. As [`LoopSettings`](super::LoopSettings), every field is optional, since each layer
/// sets only some; the accessors give the default where no layer spoke.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JudgeSettings {
    /// One call for all criteria, or one for each. Default: joint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<JudgeMode>,
    /// How often the judge is asked about each draft; the median counts. 1 to 16; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub samples: Option<u32>,
    /// What is taken for the score: the step that the judge writes, or the mean of all steps, weighted by their
    /// probabilities. Default: verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<JudgeScore>,
    /// Whether the judge is tried on planted texts first. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<bool>,
    /// Whether the judge is asked even where a required criterion is not met. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always: Option<bool>,
    /// Whether verdicts are kept, so that the same draft is not judged twice. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<bool>,
}

/// The most samples: beyond, they cost more than they tell.
pub const MAX_SAMPLES: u32 = 16;

impl JudgeSettings {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This layer, with what it leaves open taken from `below`.
    #[must_use]
    pub fn or(self, below: &Self) -> Self {
        Self {
            mode: self.mode.or(below.mode),
            samples: self.samples.or(below.samples),
            score: self.score.or(below.score),
            probe: self.probe.or(below.probe),
            always: self.always.or(below.always),
            cache: self.cache.or(below.cache),
        }
    }

    /// Says which value is outside of its range: its key, and a sentence about what is wrong.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        match self.samples {
            Some(samples) if !(1..=MAX_SAMPLES).contains(&samples) => Err((
                "samples",
                format!("`samples` must be from 1 to {MAX_SAMPLES}"),
            )),
            _ => Ok(()),
        }
    }

    /// One call for all criteria, or one for each.
    pub fn mode(&self) -> JudgeMode {
        self.mode.unwrap_or_default()
    }

    /// How often the judge is asked about each draft, 1 to [`MAX_SAMPLES`].
    pub fn samples(&self) -> u32 {
        self.samples.unwrap_or(1).clamp(1, MAX_SAMPLES)
    }

    /// What is taken for the score.
    pub fn score(&self) -> JudgeScore {
        self.score.unwrap_or_default()
    }

    /// Whether the judge is tried on planted texts first.
    pub fn probe(&self) -> bool {
        self.probe.unwrap_or(false)
    }

    /// Whether the judge is asked even where a required criterion is not met.
    pub fn always(&self) -> bool {
        self.always.unwrap_or(false)
    }

    /// Whether verdicts are kept.
    pub fn cache(&self) -> bool {
        self.cache.unwrap_or(true)
    }
}

/// How many criteria a call to the judge is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeMode {
    /// All of them: the cheapest.
    #[default]
    Joint,
    /// One: no criterion's verdict colours another's.
    Separate,
}

/// What is taken for a judge's score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeScore {
    /// The step that it writes.
    #[default]
    Verdict,
    /// The mean of the steps that it might have written, weighted by their probabilities, where the server
    /// gives these; else the median of some samples.
    Expected,
}

/// Texts of known quality that a judge is tried on, for a set of criteria. They are planted: the judge is not
/// told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeTexts {
    /// What both texts are said to be written for. Default: that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// A text that meets every criterion. Default: none, and only leniency is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good: Option<String>,
    /// A text that meets hardly any. Default: words without sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad: Option<String>,
}

impl ProbeTexts {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
