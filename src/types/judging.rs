use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Think;

/// How the judge is asked. As [`LoopSettings`](super::LoopSettings), every field is optional, since each layer
/// sets only some; the accessors give the default where no layer spoke.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JudgeSettings {
    /// One call for all criteria, or one for each. Default: joint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<JudgeMode>,
    /// How often the judge is asked about each draft; the median counts. 1 to 16; default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub samples: Option<u32>,
    /// A draft that meets the criteria by less than this is judged once more, and both verdicts count; not where
    /// `samples` is above 1 or `score` is `expected`. 0 to 1, 0 for never; default 0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub confirm: Option<f64>,
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
    /// How much the judge reasons before its verdict. Default: auto, which is not at all where that can be switched
    /// off, and as little as possible where it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Think>,
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
            confirm: self.confirm.or(below.confirm),
            score: self.score.or(below.score),
            probe: self.probe.or(below.probe),
            always: self.always.or(below.always),
            cache: self.cache.or(below.cache),
            think: self.think.or(below.think),
        }
    }

    /// Says which value is outside of its range: its key, and a sentence about what is wrong.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if (self.samples).is_some_and(|samples| !(1..=MAX_SAMPLES).contains(&samples)) {
            let message = format!("`samples` must be from 1 to {MAX_SAMPLES}");
            return Err(("samples", message));
        }
        // Written so that NaN is wrong, too.
        if (self.confirm).is_some_and(|margin| !(0.0..=1.0).contains(&margin)) {
            let message = "`confirm` must be a number from 0 to 1".to_owned();
            return Err(("confirm", message));
        }
        Ok(())
    }

    /// One call for all criteria, or one for each.
    pub fn mode(&self) -> JudgeMode {
        self.mode.unwrap_or_default()
    }

    /// How often the judge is asked about each draft, 1 to [`MAX_SAMPLES`].
    pub fn samples(&self) -> u32 {
        self.samples.unwrap_or(1).clamp(1, MAX_SAMPLES)
    }

    /// The margin below which a draft that meets the criteria is judged once more; 0 for never.
    pub fn confirm(&self) -> f64 {
        if self.samples() > 1 || self.score() == JudgeScore::Expected {
            return 0.0;
        }
        self.confirm.unwrap_or(0.1)
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

    /// How much the judge reasons before its verdict.
    pub fn think(&self) -> Think {
        self.think.unwrap_or_default()
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
