#[cfg(feature = "clap")]
use clap::ArgAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Think;
use super::table::{Switch, settings};
#[cfg(feature = "clap")]
use super::table::{switch, word};

/// The most samples: beyond, they cost more than they tell.
pub const MAX_SAMPLES: u32 = 16;

settings! {
/// How the judge is asked. As [`LoopSettings`](super::LoopSettings), every field is optional, since each layer
/// sets only some; the accessors give the default where no layer spoke.
#[command(next_help_heading = "Judge")]
pub struct JudgeSettings {
    /// One call for all criteria, or one for each. Default: joint.
    #[arg(long = "judge-mode", value_name = "MODE", hide_short_help = true)]
    #[arg(value_parser = word::<JudgeMode>(&["joint", "separate"]))]
    #[arg(help = "One call for all criteria, or one for each [default: joint]")]
    pub mode: Option<JudgeMode> = JudgeMode::default(),
    /// How often the judge is asked about each draft; the median counts. 1 to 16; default 1.
    #[arg(long = "judge-samples", value_name = "N", hide_short_help = true)]
    #[arg(help = "Ask so often, and take the median [default: 1]")]
    pub samples: Option<u32> from 1 to MAX_SAMPLES = 1,
    /// A draft that meets the criteria by less than this is judged once more, and both verdicts count; not where
    /// `samples` is above 1 or `score` is `expected`. 0 to 1, 0 for never; default 0.1.
    #[arg(long = "judge-confirm", value_name = "MARGIN", hide_short_help = true)]
    #[arg(help = "Judge a draft again that passes by less than this, 0 for never [default: 0.1]")]
    pub confirm: Option<f64> from 0 to 1 = 0.1,
    /// What is taken for the score: the step that the judge writes, or the mean of all steps, weighted by their
    /// probabilities. Default: verdict.
    #[arg(long = "judge-score", value_name = "SCORE", hide_short_help = true)]
    #[arg(value_parser = word::<JudgeScore>(&["verdict", "expected"]))]
    #[arg(help = "The score: as the judge writes it, or as its probabilities say [default: verdict]")]
    pub score: Option<JudgeScore> = JudgeScore::default(),
    /// Whether the judge is tried on planted texts first. Default: false.
    #[arg(long = "judge-probe", action = ArgAction::SetTrue, value_parser = switch(true), hide_short_help = true)]
    #[arg(help = "Try the judge on planted texts first, and trust it less if it cannot tell good from bad")]
    pub probe: Switch<bool> = false,
    /// Whether the judge is asked even where a required criterion is not met. Default: false.
    #[arg(long = "judge-always", action = ArgAction::SetTrue, value_parser = switch(true), hide_short_help = true)]
    #[arg(help = "Ask the judge even where a required criterion is not met")]
    pub always: Switch<bool> = false,
    /// Whether verdicts are kept, so that the same draft is not judged twice. Default: true.
    #[arg(long = "no-cache", action = ArgAction::SetTrue, value_parser = switch(false), hide_short_help = true)]
    #[arg(help = "Judge anew what was judged before")]
    pub cache: Switch<bool> = true,
    /// How much the judge reasons before its verdict. Default: auto, which is not at all where that can be switched
    /// off, and as little as possible where it cannot.
    #[arg(skip)]
    pub think: Option<Think> = Think::default(),
}
}

impl JudgeSettings {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Says which value is outside of its range: its key, and a sentence about what is wrong.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.check_ranges()
    }

    /// The margin below which a draft that meets the criteria is judged once more; 0 for never. Where a score is made
    /// of several verdicts already, it needs no other.
    pub fn margin(&self) -> f64 {
        if self.samples() > 1 || self.score() == JudgeScore::Expected {
            return 0.0;
        }
        self.confirm()
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
