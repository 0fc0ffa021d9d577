use serde::{Deserialize, Serialize};

use super::evaluator::Evaluator;
use super::judging::{JudgeSettings, ProbeTexts};
use super::settings::LoopSettings;

/// The overall threshold of a criteria file that does not set one.
pub const DEFAULT_THRESHOLD: f64 = 0.8;
/// The default minimum score of a criterion.
pub const DEFAULT_FLOOR: f64 = 0.7;
/// The default minimum score of a check that measures a single fact, which is either met or not. A poem of four lines
/// is not a haiku, however close it comes. Set a lower threshold to allow partial success.
pub const DEFAULT_HARD_FLOOR: f64 = 1.0;

/// What drafts are evaluated on: a set of criteria with an overall threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Criteria {
    /// The display name of the set.
    pub name: String,
    /// A one-sentence description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The minimum for the weighted mean of the criteria's scores, 0 to 1.
    pub threshold: f64,
    /// Loop settings for these criteria. Flags and environment variables override them.
    #[serde(default, rename = "loop")]
    pub loop_settings: LoopSettings,
    /// Judge settings for these criteria. Flags and environment variables override them.
    #[serde(
        default,
        rename = "judge",
        skip_serializing_if = "JudgeSettings::is_empty"
    )]
    pub judge_settings: JudgeSettings,
    /// Texts of known quality for testing the judge.
    #[serde(default, skip_serializing_if = "ProbeTexts::is_empty")]
    pub probe: ProbeTexts,
    /// The criteria: at least one, with unique names.
    pub criteria: Vec<Criterion>,
}

impl Criteria {
    /// Criteria with the default threshold and settings.
    pub fn new(name: impl Into<String>, criteria: Vec<Criterion>) -> Self {
        Self {
            name: name.into(),
            description: None,
            threshold: DEFAULT_THRESHOLD,
            loop_settings: LoopSettings::default(),
            judge_settings: JudgeSettings::default(),
            probe: ProbeTexts::default(),
            criteria,
        }
    }

    /// Whether a judge evaluates drafts: at least one criterion needs one, and the judge is enabled.
    pub fn need_judge(&self) -> bool {
        self.judge_settings.enabled() && self.for_judge().next().is_some()
    }

    /// The criteria that need a model as their judge.
    pub fn for_judge(&self) -> impl Iterator<Item = &Criterion> {
        self.criteria
            .iter()
            .filter(|criterion| !criterion.evaluator.is_hard())
    }
}

/// One property that a draft is evaluated on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Criterion {
    /// The name: unique in its set, and the key in `criteria_scores`.
    pub name: String,
    /// What the criterion requires; the judge and the writer read it. May be empty for a check whose configuration says it
    /// all.
    #[serde(default)]
    pub description: String,
    /// The weight in the weighted mean; above 0, default 1.
    pub weight: f64,
    /// The minimum score of this criterion, 0 to 1: a draft below it is not satisfactory, whatever the mean. Default:
    /// see [`Evaluator::default_floor`].
    pub threshold: f64,
    /// Whether this criterion is required. If it is not met, the judge is skipped. A revision that breaks it is
    /// rejected. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// What computes the score.
    #[serde(flatten)]
    pub evaluator: Evaluator,
}
