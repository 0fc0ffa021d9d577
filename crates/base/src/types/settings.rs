use std::time::Duration;

#[cfg(feature = "clap")]
use clap::ArgAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::candidate::{Candidates, MAX_CANDIDATES};
use super::table::{Switch, settings};
#[cfg(feature = "clap")]
use super::table::{switch, word};

settings! {
/// How the loop behaves. Every field is optional, because each layer (flags, environment, criteria file, profile,
/// configuration file) sets only some. [`LoopSettings::or`] lays one layer over another, and the accessors return the
/// default where no layer sets a value.
#[command(next_help_heading = "Loop")]
pub struct LoopSettings {
    /// The maximum number of drafts, including the first. At least 1; default 5.
    #[arg(short = 'n', long, value_name = "N", display_order = 0)]
    #[arg(help = "Maximum number of drafts [default: 5]")]
    pub max_iterations: Option<u32> from 1 = 5,
    /// The minimum number of drafts: before that, only a limit ends a run. At least 1, at most `max_iterations`; default
    /// 1.
    #[arg(long, value_name = "N", hide_short_help = true, display_order = 2)]
    #[arg(help = "Minimum number of drafts [default: 1]")]
    pub min_iterations: Option<u32> from 1 = 1,
    /// The overall threshold; overrides that of the criteria file. 0 to 1.
    #[arg(long, value_name = "SCORE", display_order = 1)]
    #[arg(help = "Score to reach [default: the criteria's own]")]
    pub threshold: Option<f64> from 0 to 1,
    /// How a draft is revised. Default: `hybrid`.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    #[arg(value_parser = word::<Strategy>(&["hybrid", "full_rewrite", "targeted_edit", "incremental"]))]
    #[arg(help = "How to revise [default: hybrid]")]
    pub strategy: Option<Strategy> = Strategy::default(),
    /// The number of drafts for each version except the first, written concurrently and in different ways; the best
    /// becomes the version. 1 to 8, or `auto`: 1, and 2 after a revision without improvement. Default: 1.
    #[arg(long, value_name = "N|auto", hide_short_help = true)]
    #[arg(help = "Drafts per revision, 1 to 8; the best one counts. `auto`: 2 after a revision that did not help \
        [default: 1]")]
    pub candidates: Option<Candidates> = Candidates::default(),
    /// The maximum number of tokens of a revision. At least 1; default: as for any other reply.
    #[arg(long, value_name = "N", hide = true)]
    #[arg(help = "Maximum tokens of a revision")]
    pub max_revision_tokens: Option<u32> from 1,
    /// Show each revision the latest drafts as well as the one that it revises. Default: false.
    #[arg(long, hide = true, action = ArgAction::SetTrue, value_parser = switch(true))]
    #[arg(help = "Show each revision the latest drafts as well")]
    pub include_prior_versions: Switch<bool> = false,
    /// Show each revision what earlier ones fixed and which attempts failed. Default: true.
    #[arg(long = "no-include-reflection-history", hide = true, action = ArgAction::SetTrue, value_parser = switch(false))]
    #[arg(help = "Do not show revisions what earlier ones fixed")]
    pub include_reflection_history: Switch<bool> = true,
    /// Which version the run returns. Default: `highest_score`.
    #[arg(long, value_name = "RULE", hide_short_help = true)]
    #[arg(value_parser = word::<Select>(&["highest_score", "latest", "first_satisfactory", "weighted_recency"]))]
    #[arg(help = "Which draft to print [default: highest_score]")]
    pub select: Option<Select> = Select::default(),
    /// What the run returns if the criteria are not met. Default: `return_best`.
    #[arg(long, value_name = "RULE", hide_short_help = true)]
    #[arg(value_parser = word::<OnFailure>(&["return_best", "return_last", "raise"]))]
    #[arg(help = "What to print if the criteria are not met; `raise`: nothing [default: return_best]")]
    pub on_failure: Option<OnFailure> = OnFailure::default(),
    /// Stop after this many consecutive drafts without improvement. At least 1; default 4.
    #[arg(long, value_name = "N", hide = true, display_order = 3)]
    #[arg(help = "Stop after this many consecutive drafts without improvement [default: 4]")]
    pub plateau_iterations: Option<u32> from 1 = 4,
    /// Stop once the last `plateau_iterations` drafts together have raised the score by less than this. 0 to 1, 0 to
    /// disable; default 0.05.
    #[arg(long, value_name = "SCORE", hide = true, display_order = 4)]
    #[arg(help = "Stop once that many drafts together gain less than this, 0 to 1 [default: 0.05]")]
    pub improvement_threshold: Option<f64> from 0 to 1 = 0.05,
    /// Stop if scores go up and down without a trend. Default: true.
    #[arg(long = "no-detect-oscillation", hide = true, action = ArgAction::SetTrue, value_parser = switch(false))]
    #[arg(help = "Do not stop if scores go up and down without a trend", display_order = 5)]
    pub detect_oscillation: Switch<bool> = true,
    /// If the best draft scores less than this above the first one, a judge compares both before the run stops without
    /// meeting the criteria. 0 to 1, 0 to disable; default 0.1.
    #[serde(alias = "grey_zone")]
    #[arg(long, alias = "grey-zone", value_name = "SCORE", hide = true, display_order = 6)]
    #[arg(help = "Compare the best draft with the first if it gains less than this, 0 to disable [default: 0.1]")]
    pub tie_margin: Option<f64> from 0 to 1 = 0.1,
    /// Learn from what helped: write a fresh draft or change the strategy if revisions do not help, and use the
    /// stronger model, if there is one, before the run stops. If disabled, every draft revises the best one. Default:
    /// true.
    #[arg(long = "no-adapt", hide_short_help = true, action = ArgAction::SetTrue, value_parser = switch(false))]
    #[arg(help = "Always revise the best draft, even if revisions do not help", display_order = 7)]
    pub adapt: Switch<bool> = true,
    /// Reflect before the next revision if a version's score falls by more than this below the best one's. 0 to 1, 0 to
    /// disable; default 0. A judge's noise is about 0.1, so smaller values say little.
    #[arg(long, value_name = "SCORE", hide = true, display_order = 8)]
    #[arg(help = "Reflect if a score falls by more than this below the best, 0 to disable [default: 0]")]
    pub quality_drop_threshold: Option<f64> from 0 to 1 = 0.0,
    /// Reflect on rejected replies, and ask once more. Default: false.
    #[arg(long, hide = true, action = ArgAction::SetTrue, value_parser = switch(true))]
    #[arg(help = "Reflect on rejected replies, and ask once more", display_order = 9)]
    pub reflect_on_error: Switch<bool> = false,
    /// The names of the tools whose results are reflected on. Default: all tools.
    #[arg(long, value_name = "NAMES", hide = true, value_delimiter = ',', display_order = 10)]
    #[arg(help = "Reflect on the results of these tools only, separated by commas; '' for none")]
    pub reflect_on_tools: Option<Vec<String>>,
    /// Write the first draft in steps: an outline, then section by section. Default: false.
    #[arg(long, hide_short_help = true, action = ArgAction::SetTrue, value_parser = switch(true))]
    #[arg(help = "Write the first draft in steps: an outline, then section by section", display_order = 11)]
    pub steps: Switch<bool> = false,
    /// With `steps`, reflect after every N sections; 0 to disable. Default 3.
    #[arg(long, value_name = "N", hide = true, display_order = 12)]
    #[arg(help = "With --steps, reflect after every N sections; 0 to disable [default: 3]")]
    pub reflection_interval: Option<u32> = 3,
    /// Cut off a draft while it is being written once it cannot meet a hard check any more: far too long, or with
    /// forbidden content. Default: true.
    #[arg(long = "no-early-stop", hide = true, action = ArgAction::SetTrue, value_parser = switch(false))]
    #[arg(help = "Do not cut off drafts that can no longer meet a hard check", display_order = 13)]
    pub early_stop: Switch<bool> = true,
    /// Stop before a call once this many tokens are used. Default: no limit.
    #[schemars(range(min = 1))]
    #[arg(skip)]
    pub max_total_tokens: Option<u64>,
    /// Stop before a call once the run has cost this much, in the unit of the user's prices. Above 0; default: no limit.
    #[arg(skip)]
    pub max_cost: Option<f64>,
    /// Stop once the run has taken this many seconds. Default: no limit.
    #[arg(skip)]
    pub max_time: Option<f64>,
}
}

impl LoopSettings {
    /// Returns the key of the first value out of range, and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.check_ranges()?;
        if self.max_total_tokens == Some(0) {
            let message = "`max_total_tokens` must be at least 1".to_owned();
            return Err(("max_total_tokens", message));
        }
        if self
            .candidates
            .is_some_and(|candidates| !candidates.is_valid())
        {
            let message =
                format!("`candidates` must be a number from 1 to {MAX_CANDIDATES}, or \"auto\"");
            return Err(("candidates", message));
        }
        if let (Some(min), Some(max)) = (self.min_iterations, self.max_iterations)
            && min > max
        {
            return Err((
                "min_iterations",
                format!("`min_iterations` ({min}) is greater than `max_iterations` ({max})"),
            ));
        }
        // Written so that NaN fails.
        if self
            .max_cost
            .is_some_and(|cost| !(cost > 0.0 && cost.is_finite()))
        {
            return Err(("max_cost", "`max_cost` must be above 0".to_owned()));
        }
        if self.max_time.is_some_and(|_| self.max_time().is_none())
            || self.max_time().is_some_and(|t| t.is_zero())
        {
            let message = "`max_time` must be above 0 (seconds)".to_owned();
            return Err(("max_time", message));
        }
        Ok(())
    }

    /// The overall threshold.
    pub fn threshold(&self) -> f64 {
        self.threshold.unwrap_or(super::criteria::DEFAULT_THRESHOLD)
    }

    /// The time limit, if there is one.
    pub fn max_time(&self) -> Option<Duration> {
        self.max_time
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }
}

/// How a draft is revised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The model rewrites the whole text with the feedback.
    FullRewrite,
    /// The model replaces passages; the rest stays byte for byte.
    TargetedEdit,
    /// The model rewrites section by section, only those that have issues or are missing.
    Incremental,
    /// One of the others, chosen by the size of the draft, the share of it that the issues concern, and what has worked
    /// in this run.
    #[default]
    Hybrid,
}

impl Strategy {
    /// Returns its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FullRewrite => "full_rewrite",
            Self::TargetedEdit => "targeted_edit",
            Self::Incremental => "incremental",
            Self::Hybrid => "hybrid",
        }
    }
}

/// Which version a run returns. Default: `highest_score`, because in a third of all runs the last draft is worse than
/// the best one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Select {
    /// The version with the highest score, the earliest of equals.
    #[default]
    HighestScore,
    /// The last evaluated version.
    Latest,
    /// The first satisfactory version; without one, the highest score.
    FirstSatisfactory,
    /// Of the versions in the best tier (satisfactory, or no required criterion missed), the one with the highest
    /// score, minus 5 % for each version judged later. So a version must be clearly better to win over a later one. Of
    /// equals the earliest.
    WeightedRecency,
}

/// What a run returns if the criteria are not met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The version that `select` chooses.
    #[default]
    ReturnBest,
    /// The last version, evaluated or not.
    ReturnLast,
    /// No version: only the history is returned.
    Raise,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_values_are_rejected() {
        let key = |settings: LoopSettings| settings.check().map_err(|(key, _)| key);
        let default = LoopSettings::default();
        assert_eq!(key(default.clone()), Ok(()));
        let zero = LoopSettings {
            max_iterations: Some(0),
            ..default.clone()
        };
        assert_eq!(key(zero), Err("max_iterations"));
        for bad in [0, MAX_CANDIDATES + 1] {
            let settings = LoopSettings {
                candidates: Some(Candidates::Number(bad)),
                ..default.clone()
            };
            assert_eq!(key(settings), Err("candidates"), "{bad}");
        }
        for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            let settings = LoopSettings {
                threshold: Some(bad),
                ..default.clone()
            };
            assert_eq!(key(settings), Err("threshold"), "{bad}");
        }
        let contradiction = LoopSettings {
            min_iterations: Some(4),
            max_iterations: Some(3),
            ..default.clone()
        };
        assert_eq!(key(contradiction), Err("min_iterations"));
        for bad in [-0.1, 1.1, f64::NAN] {
            let settings = LoopSettings {
                improvement_threshold: Some(bad),
                ..default.clone()
            };
            assert_eq!(key(settings), Err("improvement_threshold"), "{bad}");
            let settings = LoopSettings {
                tie_margin: Some(bad),
                ..default.clone()
            };
            assert_eq!(key(settings), Err("tie_margin"), "{bad}");
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            let settings = LoopSettings {
                max_time: Some(bad),
                ..default.clone()
            };
            assert_eq!(key(settings), Err("max_time"), "{bad}");
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let settings = LoopSettings {
                max_cost: Some(bad),
                ..default.clone()
            };
            assert_eq!(key(settings), Err("max_cost"), "{bad}");
        }
    }
}
