use serde::{Deserialize, Serialize};

use super::evaluator::Evaluator;
use super::judging::{JudgeSettings, ProbeTexts};
use super::settings::LoopSettings;

/// The overall threshold where a criteria file names none.
pub const DEFAULT_THRESHOLD: f64 = 0.8;
/// The floor of a criterion that names none.
pub const DEFAULT_FLOOR: f64 = 0.7;
/// The floor of a hard check that names none and that measures one plain fact: it is met or it is not. A poem of four lines is no haiku, though
/// it is three quarters of one; who wants to allow that sets a lower floor.
pub const DEFAULT_HARD_FLOOR: f64 = 1.0;

/// What drafts are measured by: the set of criteria with an overall threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Criteria {
    /// The set's name, as shown to people.
    pub name: String,
    /// One sentence about the set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The weighted mean of the criteria's scores must reach this, 0 to 1.
    pub threshold: f64,
    /// Defaults of the loop for these criteria; flags and environment go before them.
    #[serde(default, rename = "loop")]
    pub loop_settings: LoopSettings,
    /// How the judge is asked for these criteria; flags and environment go before it.
    #[serde(
        default,
        rename = "judge",
        skip_serializing_if = "JudgeSettings::is_empty"
    )]
    pub judge_settings: JudgeSettings,
    /// Texts that the judge is tried on.
    #[serde(default, skip_serializing_if = "ProbeTexts::is_empty")]
    pub probe: ProbeTexts,
    /// At least one, names unique.
    pub criteria: Vec<Criterion>,
}

impl Criteria {
    /// Whether one of them is a matter of judgement: then a model must judge.
    pub fn need_judge(&self) -> bool {
        self.criteria
            .iter()
            .any(|criterion| !criterion.evaluator.is_hard())
    }
}

/// One thing a draft is measured by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Criterion {
    /// Unique in its set; the key of `criteria_scores`.
    pub name: String,
    /// What is measured, in words; the judge and the writer read it. Empty for a hard check that
    /// speaks for itself.
    #[serde(default)]
    pub description: String,
    /// Share in the weighted mean; above 0, default 1.
    pub weight: f64,
    /// The floor: a draft with a lower score is not satisfactory, whatever the mean. 0 to 1; default
    /// [`DEFAULT_FLOOR`] or [`DEFAULT_HARD_FLOOR`], see [`Evaluator::default_floor`].
    pub threshold: f64,
    /// Whether nothing else counts where it is not met: the judge is not asked then, and no revision
    /// that loses it is taken. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// What gives the score.
    #[serde(flatten)]
    pub evaluator: Evaluator,
}
