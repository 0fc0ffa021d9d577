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
/// How the loop behaves. Every field is optional, because each of flags, environment, criteria file,
/// profile and config file sets only some; [`LoopSettings::or`] lays one layer over another, and the
/// accessors give the default where no layer spoke.
#[command(next_help_heading = "Loop")]
pub struct LoopSettings {
    /// The most drafts a run makes, the first included. At least 1; default 5.
    #[arg(short = 'n', long, value_name = "N", display_order = 0)]
    #[arg(help = "The most drafts to make, the first included [default: 5]")]
    pub max_iterations: Option<u32> from 1 = 5,
    /// The fewest drafts a run makes: before that only a limit ends it. At least 1, at most
    /// `max_iterations`; default 1.
    #[arg(long, value_name = "N", hide_short_help = true, display_order = 2)]
    #[arg(help = "The fewest drafts to make, the first included [default: 1]")]
    pub min_iterations: Option<u32> from 1 = 1,
    /// The overall threshold; overrides that of the criteria file. 0 to 1.
    #[arg(long, value_name = "SCORE", display_order = 1)]
    #[arg(help = "The score that is good enough, 0 to 1 [default: the criteria's own, else 0.8]")]
    pub threshold: Option<f64> from 0 to 1,
    /// How a draft is revised. Default: `hybrid`.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    #[arg(value_parser = word::<Strategy>(&["hybrid", "full_rewrite", "targeted_edit", "incremental"]))]
    #[arg(help = "How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)")]
    pub strategy: Option<Strategy> = Strategy::default(),
    /// How many drafts are written for each version but the first, at the same time and in different ways; the best
    /// becomes the version. 1 to 8, or `auto`: 1, and 2 after a version that was no gain. Default: 1.
    #[arg(long, value_name = "N|auto", hide_short_help = true)]
    #[arg(help = "Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a \
        revision that did not help [default: 1]")]
    pub candidates: Option<Candidates> = Candidates::default(),
    /// The most tokens of a reply that revises. At least 1; default: as for any other reply.
    #[arg(long, value_name = "N", hide_short_help = true)]
    #[arg(help = "The most tokens of one reply that revises")]
    pub max_revision_tokens: Option<u32> from 1,
    /// Show each revision the latest drafts as well as the one that it revises. Default: false.
    #[arg(long, value_name = "BOOL", hide_short_help = true)]
    #[arg(help = "Whether to show each revision the last drafts before, besides the one that it revises [default: false]")]
    pub include_prior_versions: Option<bool> = false,
    /// Show each revision what earlier ones fixed and which attempts failed. Default: true.
    #[arg(long, value_name = "BOOL", hide_short_help = true)]
    #[arg(help = "Whether to show each revision what earlier ones fixed and what failed [default: true]")]
    pub include_reflection_history: Option<bool> = true,
    /// Which version the run returns. Default: `highest_score`.
    #[arg(long, value_name = "RULE", hide_short_help = true)]
    #[arg(value_parser = word::<Select>(&["highest_score", "latest", "first_satisfactory", "weighted_recency"]))]
    #[arg(help = "Which draft is the answer; the one with the highest score by default")]
    pub select: Option<Select> = Select::default(),
    /// What the run returns where the criteria are not met. Default: `return_best`.
    #[arg(long, value_name = "RULE", hide_short_help = true)]
    #[arg(value_parser = word::<OnFailure>(&["return_best", "return_last", "raise"]))]
    #[arg(help = "Which draft is the answer where the criteria are not met; by default what --select says")]
    pub on_failure: Option<OnFailure> = OnFailure::default(),
    /// Stop after so many drafts in a row that are no better than the best one. At least 1; default 4.
    #[arg(long, value_name = "N", hide_short_help = true, display_order = 3)]
    #[arg(help = "Stop after so many drafts in a row without a gain [default: 4]")]
    pub plateau_iterations: Option<u32> from 1 = 4,
    /// Stop once the last `plateau_iterations` drafts together have raised the score by less than this. 0 to 1, 0 for never; default 0.05.
    #[arg(long, value_name = "SCORE", hide_short_help = true, display_order = 4)]
    #[arg(help = "Stop once as many drafts together gain less than this, 0 to 1 [default: 0.05]")]
    pub improvement_threshold: Option<f64> from 0 to 1 = 0.05,
    /// Stop where scores go up and down without a trend. Default: true.
    #[arg(long, value_name = "BOOL", hide_short_help = true, display_order = 5)]
    #[arg(help = "Whether to stop where scores go up and down without a trend [default: true]")]
    pub detect_oscillation: Option<bool> = true,
    /// Where the best draft's score is not higher than the first one's by this much, a judge compares both before the
    /// run stops without meeting the criteria. 0 to 1, 0 for never; default 0.1.
    #[arg(long, value_name = "SCORE", hide_short_help = true, display_order = 6)]
    #[arg(help = "Compare the best draft with the first where it gains less, 0 for never [default: 0.1]")]
    pub grey_zone: Option<f64> from 0 to 1 = 0.1,
    /// Learn from what helped: draw a fresh draft, or revise in another way, where revisions do not help; use the
    /// stronger model, if there is one, before the run stops. Otherwise every draft revises the best one. Default:
    /// true.
    #[arg(long, value_name = "BOOL", hide_short_help = true, display_order = 7)]
    #[arg(help = "Whether to draw fresh drafts, or revise in another way, where revisions do not help [default: true]")]
    pub adapt: Option<bool> = true,
    /// Reflect before the next revision where a version's score fell by more than this below the best one's. 0 to 1, 0
    /// for never; default 0. A judge's noise is about 0.1, so smaller values say little.
    #[arg(long, value_name = "SCORE", hide_short_help = true, display_order = 8)]
    #[arg(help = "Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]")]
    pub quality_drop_threshold: Option<f64> from 0 to 1 = 0.0,
    /// Reflect on rejected replies, and ask once more. Default: false.
    #[arg(long, value_name = "BOOL", hide_short_help = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", display_order = 9)]
    #[arg(help = "Whether to reflect on replies that are no drafts, and to ask once more [default: false]")]
    pub reflect_on_error: Option<bool> = false,
    /// Which tools' results are reflected on, by their names. Default: those of all tools.
    #[arg(long, value_name = "NAMES", hide_short_help = true, value_delimiter = ',', display_order = 10)]
    #[arg(help = "Reflect on the results of these tools only, by the names of their programs, with commas; '' for none")]
    pub reflect_on_tools: Option<Vec<String>>,
    /// Write the first draft in steps: an outline, then section by section. Default: false.
    #[arg(long, value_name = "BOOL", hide_short_help = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", display_order = 11)]
    #[arg(help = "Whether to write the first draft in steps, an outline and then section by section [default: false]")]
    pub steps: Option<bool> = false,
    /// Where drafts are written in steps, reflect after every so many sections; 0 for never.
    /// Default 3.
    #[arg(long, value_name = "N", hide_short_help = true, display_order = 12)]
    #[arg(help = "With --steps, reflect after every so many sections; 0 for never [default: 3]")]
    pub reflection_interval: Option<u32> = 3,
    /// End a reply early that can no longer become a draft of use: one that is far too long already, or holds what
    /// must not be there. Default: true.
    #[arg(long = "no-early-stop", action = ArgAction::SetTrue, value_parser = switch(false), hide_short_help = true)]
    #[arg(display_order = 13)]
    #[arg(help = "Let every draft be written to its end, even where it can no longer meet a hard check")]
    pub early_stop: Switch<bool> = true,
    /// Stop before a call once so many tokens are used. Default: no limit.
    #[schemars(range(min = 1))]
    #[arg(skip)]
    pub max_total_tokens: Option<u64>,
    /// Stop before a call once the run has cost so much, in the unit of the user's prices. Above 0; default: no limit.
    #[arg(skip)]
    pub max_cost: Option<f64>,
    /// Stop once the run has taken so many seconds. Default: no limit.
    #[arg(skip)]
    pub max_time: Option<f64>,
}
}

impl LoopSettings {
    /// Says which value is outside of its range: its key, and a sentence about what is wrong.
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
                format!(
                    "`min_iterations` is {min}, but `max_iterations` is {max}: a run cannot make both"
                ),
            ));
        }
        // Written so that NaN is wrong, too.
        if self
            .max_cost
            .is_some_and(|cost| !(cost > 0.0 && cost.is_finite()))
        {
            return Err(("max_cost", "`max_cost` must be a number above 0".to_owned()));
        }
        if self.max_time.is_some_and(|_| self.max_time().is_none())
            || self.max_time().is_some_and(|t| t.is_zero())
        {
            let message = "`max_time` must be a number of seconds above 0".to_owned();
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
    /// The model writes the whole text again, with the feedback.
    FullRewrite,
    /// The model names passages and what takes their place; the rest stays byte for byte.
    TargetedEdit,
    /// The model writes one section after the other, those only that have something to fix or are missing.
    Incremental,
    /// Whichever of the others fits: by the size of the draft, by how much of it the issues concern, and by
    /// what has worked in this run.
    #[default]
    Hybrid,
}

impl Strategy {
    /// The word for it, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FullRewrite => "full_rewrite",
            Self::TargetedEdit => "targeted_edit",
            Self::Incremental => "incremental",
            Self::Hybrid => "hybrid",
        }
    }
}

/// Which version a run returns. Default: `highest_score`, because the last draft is worse than the best one in a third
/// of all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Select {
    /// The version with the highest score; of equals the earliest.
    #[default]
    HighestScore,
    /// The last version that was evaluated.
    Latest,
    /// The first satisfactory version; without one, the highest score.
    FirstSatisfactory,
    /// Of the versions that are as good in kind as the best (satisfactory, nothing required missing), the
    /// one with the highest score, where each version that was judged later takes 5 % off. So a version
    /// must be clearly better to win over a later one. Of equals the earliest.
    WeightedRecency,
}

/// What a run returns where the criteria are not met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The version that `select` chooses.
    #[default]
    ReturnBest,
    /// The last version, judged or not.
    ReturnLast,
    /// None: nothing is printed but the history.
    Raise,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_of_their_range_are_found() {
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
                grey_zone: Some(bad),
                ..default.clone()
            };
            assert_eq!(key(settings), Err("grey_zone"), "{bad}");
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
