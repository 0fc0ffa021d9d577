#[cfg(feature = "clap")]
use clap::ArgAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Think;
use super::table::{Switch, settings};
#[cfg(feature = "clap")]
use super::table::{switch, word};

/// The maximum number of samples: more cost more than they tell.
pub const MAX_SAMPLES: u32 = 16;

settings! {
/// How the judge is asked. As with [`LoopSettings`](super::LoopSettings), every field is optional, because each layer
/// sets only some; the accessors return the default where no layer sets a value.
#[command(next_help_heading = "Judge")]
pub struct JudgeSettings {
    /// Whether a judge evaluates drafts. Without one, only checks do: criteria for a judge stay unevaluated, so a
    /// draft cannot meet them. Default: true, but false for models that are known to be unable to judge.
    #[arg(long = "no-judge", action = ArgAction::SetTrue, value_parser = switch(false), hide_short_help = true)]
    #[arg(help = "Evaluate with checks only; criteria that need a judge are not met")]
    pub enabled: Switch<bool> = true,
    /// One call for all criteria, or one for each. Default: joint.
    #[arg(long = "judge-mode", value_name = "MODE", hide = true)]
    #[arg(value_parser = word::<JudgeMode>(&["joint", "separate"]))]
    #[arg(help = "One call for all criteria, or one for each [default: joint]")]
    pub mode: Option<JudgeMode> = JudgeMode::default(),
    /// How many times the judge evaluates each draft; the median counts. 1 to 16; default 1.
    #[arg(long = "judge-samples", value_name = "N", hide_short_help = true)]
    #[arg(help = "Judge each draft N times and take the median, 1 to 16 [default: 1]")]
    pub samples: Option<u32> from 1 to MAX_SAMPLES = 1,
    /// A draft that passes by less than this is judged again, and both verdicts count. No effect if `samples` is above 1
    /// or `score` is `expected`. 0 to 1, 0 to disable; default 0.1.
    #[arg(long = "judge-confirm", value_name = "MARGIN", hide = true)]
    #[arg(help = "Judge a draft again if it passes by less than this, 0 to disable [default: 0.1]")]
    pub confirm: Option<f64> from 0 to 1 = 0.1,
    /// The score: the step that the judge writes, or the mean of all steps weighted by their probabilities. Default:
    /// verdict.
    #[arg(long = "judge-score", value_name = "SCORE", hide = true)]
    #[arg(value_parser = word::<JudgeScore>(&["verdict", "expected"]))]
    #[arg(help = "The score as the judge writes it, or its expected value [default: verdict]")]
    pub score: Option<JudgeScore> = JudgeScore::default(),
    /// Whether to test the judge on texts of known quality first. Default: false.
    #[arg(long = "judge-probe", action = ArgAction::SetTrue, value_parser = switch(true), hide_short_help = true)]
    #[arg(help = "Test the judge on a good and a bad text first; warn if it cannot tell them apart")]
    pub probe: Switch<bool> = false,
    /// Whether to call the judge even if a required criterion is not met. Default: false.
    #[arg(long = "judge-always", action = ArgAction::SetTrue, value_parser = switch(true), hide = true)]
    #[arg(help = "Call the judge even if a required criterion is not met")]
    pub always: Switch<bool> = false,
    /// Whether verdicts are cached, so that the same draft is not judged twice. Default: true.
    #[arg(long = "no-cache", action = ArgAction::SetTrue, value_parser = switch(false), hide_short_help = true)]
    #[arg(help = "Do not reuse earlier verdicts")]
    pub cache: Switch<bool> = true,
    /// How much the judge reasons before its verdict. Default: auto: not at all where that can be switched off, as little
    /// as possible elsewhere.
    #[arg(skip)]
    pub think: Option<Think> = Think::default(),
}
}

impl JudgeSettings {
    /// Whether no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the key of the first value out of range, and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.check_ranges()
    }

    /// The margin below which a passing draft is judged again; 0 for never. A score that comes from several verdicts
    /// already needs no other.
    pub fn margin(&self) -> f64 {
        if self.samples() > 1 || self.score() == JudgeScore::Expected {
            return 0.0;
        }
        self.confirm()
    }
}

/// How many criteria one call to the judge covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeMode {
    /// All criteria; the cheapest.
    #[default]
    Joint,
    /// One: no criterion's verdict influences another's.
    Separate,
}

/// How a judge's score is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeScore {
    /// The step that the judge writes.
    #[default]
    Verdict,
    /// The mean of the steps that it might have written, weighted by their probabilities if the server returns them;
    /// else the median of several samples.
    Expected,
}

/// Texts of known quality that a judge is tested on, for a set of criteria. The judge does not know that they are a
/// test.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeTexts {
    /// The prompt that both texts answer. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// A text that meets every criterion. Default: none; then only leniency is detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good: Option<String>,
    /// A text that meets hardly any criterion. Default: random words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad: Option<String>,
}

impl ProbeTexts {
    /// Whether no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
