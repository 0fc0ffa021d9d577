use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::candidate::{Candidates, MAX_CANDIDATES};

/// How the loop behaves. Every field is optional, because each of flags, environment, criteria file,
/// profile and config file sets only some; [`LoopSettings::or`] lays one layer over another, and the
/// accessors give the default where no layer spoke.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopSettings {
    /// The most drafts a run makes, the first included. At least 1; default 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_iterations: Option<u32>,
    /// The fewest drafts a run makes: before that only a limit ends it. At least 1, at most
    /// `max_iterations`; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_iterations: Option<u32>,
    /// The overall threshold; goes before the criteria file's own. 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub threshold: Option<f64>,
    /// How a draft is revised. Default: `hybrid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// How many drafts are written for each version but the first, at the same time and in different ways; the best
    /// becomes the version. 1 to 8, or `auto`: 1, and 2 after a version that was no gain. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Candidates>,
    /// The most tokens of one reply that revises (seed 003 §2.5.2). At least 1; default: as for any other
    /// reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_revision_tokens: Option<u32>,
    /// Show each revision the last drafts before, besides the one that it revises (seed 003 §2.5.2). Default:
    /// false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_prior_versions: Option<bool>,
    /// Tell each revision what earlier ones have mended and what they tried in vain (seed 003 §2.5.2).
    /// Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_reflection_history: Option<bool>,
    /// Which version the run returns. Default: `highest_score`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Select>,
    /// What the run returns where the criteria are not met. Default: `return_best`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Stop after so many drafts in a row that are no better than the best one. At least 1; default 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub plateau_iterations: Option<u32>,
    /// Stop once the last `plateau_iterations` drafts together have raised the score by less than this. 0 to 1, 0 for never; default 0.05.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub improvement_threshold: Option<f64>,
    /// Stop where scores go up and down without a trend (seed 003 §2.6.2). Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detect_oscillation: Option<bool>,
    /// Where the best draft's score is not higher than the first one's by this much, a judge compares both before the
    /// run stops without meeting the criteria. 0 to 1, 0 for never; default 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub grey_zone: Option<f64>,
    /// Learn from what helped: draw a fresh draft, or revise in another way, where revisions do not help; use the
    /// stronger model, if there is one, before the run stops. Otherwise every draft revises the best one. Default:
    /// true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapt: Option<bool>,
    /// Reflect before the next revision where a version's score fell by more than this below the best one's (seed
    /// 003 §2.3). 0 to 1, 0 for never; default 0, since the seed's only default trigger is `completion`. 0.1 is
    /// about the noise of a judge, so that less says little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub quality_drop_threshold: Option<f64>,
    /// Reflect on replies that are no drafts, and ask once more (seed 003 §2.3). Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reflect_on_error: Option<bool>,
    /// Which tools' results are reflected on, by their names (seed 003 §2.3). Default: those of all tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reflect_on_tools: Option<Vec<String>>,
    /// Write the first draft in steps: an outline, then section by section. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<bool>,
    /// Where drafts are written in steps, reflect after every so many sections (seed 003 §2.3); 0 for never.
    /// Default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reflection_interval: Option<u32>,
    /// End a reply early that can no longer become a draft of use: one that is far too long already, or holds what
    /// must not be there. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_stop: Option<bool>,
    /// Stop before a call once so many tokens are used. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_total_tokens: Option<u64>,
    /// Stop before a call once the run has cost so much, in the unit of the user's prices. Above 0; default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// Stop once the run has taken so many seconds. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time: Option<f64>,
}

impl LoopSettings {
    /// This layer, with what it leaves open taken from `below`.
    #[must_use]
    pub fn or(self, below: &Self) -> Self {
        Self {
            max_iterations: self.max_iterations.or(below.max_iterations),
            min_iterations: self.min_iterations.or(below.min_iterations),
            threshold: self.threshold.or(below.threshold),
            strategy: self.strategy.or(below.strategy),
            candidates: self.candidates.or(below.candidates),
            max_revision_tokens: self.max_revision_tokens.or(below.max_revision_tokens),
            include_prior_versions: self.include_prior_versions.or(below.include_prior_versions),
            include_reflection_history: self
                .include_reflection_history
                .or(below.include_reflection_history),
            select: self.select.or(below.select),
            on_failure: self.on_failure.or(below.on_failure),
            plateau_iterations: self.plateau_iterations.or(below.plateau_iterations),
            improvement_threshold: self.improvement_threshold.or(below.improvement_threshold),
            detect_oscillation: self.detect_oscillation.or(below.detect_oscillation),
            grey_zone: self.grey_zone.or(below.grey_zone),
            adapt: self.adapt.or(below.adapt),
            quality_drop_threshold: self.quality_drop_threshold.or(below.quality_drop_threshold),
            reflect_on_error: self.reflect_on_error.or(below.reflect_on_error),
            reflect_on_tools: self
                .reflect_on_tools
                .or_else(|| below.reflect_on_tools.clone()),
            steps: self.steps.or(below.steps),
            reflection_interval: self.reflection_interval.or(below.reflection_interval),
            early_stop: self.early_stop.or(below.early_stop),
            max_total_tokens: self.max_total_tokens.or(below.max_total_tokens),
            max_cost: self.max_cost.or(below.max_cost),
            max_time: self.max_time.or(below.max_time),
        }
    }

    /// Says which value is outside of its range: its key, and a sentence about what is wrong.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let at_least_one = [
            ("max_iterations", self.max_iterations.map(u64::from)),
            ("min_iterations", self.min_iterations.map(u64::from)),
            ("plateau_iterations", self.plateau_iterations.map(u64::from)),
            ("max_total_tokens", self.max_total_tokens),
            (
                "max_revision_tokens",
                self.max_revision_tokens.map(u64::from),
            ),
        ];
        for (key, value) in at_least_one {
            if value == Some(0) {
                return Err((key, format!("`{key}` must be at least 1")));
            }
        }
        let shares = [
            ("threshold", self.threshold),
            ("improvement_threshold", self.improvement_threshold),
            ("grey_zone", self.grey_zone),
            ("quality_drop_threshold", self.quality_drop_threshold),
        ];
        for (key, value) in shares {
            // Written so that NaN is wrong, too.
            if value.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
                return Err((key, format!("`{key}` must be a number from 0 to 1")));
            }
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

    /// The most drafts a run makes, at least 1.
    pub fn max_iterations(&self) -> u32 {
        self.max_iterations.unwrap_or(5).max(1)
    }

    /// The fewest drafts a run makes, at least 1.
    pub fn min_iterations(&self) -> u32 {
        self.min_iterations.unwrap_or(1).max(1)
    }

    /// The overall threshold.
    pub fn threshold(&self) -> f64 {
        self.threshold.unwrap_or(super::criteria::DEFAULT_THRESHOLD)
    }

    /// How a draft is revised.
    pub fn strategy(&self) -> Strategy {
        self.strategy.unwrap_or_default()
    }

    /// How many drafts are written for each version but the first.
    pub fn candidates(&self) -> Candidates {
        self.candidates.unwrap_or_default()
    }

    /// Whether a revision is shown the last drafts before, besides the one that it revises.
    pub fn include_prior_versions(&self) -> bool {
        self.include_prior_versions.unwrap_or(false)
    }

    /// Whether a revision is told what earlier ones have mended and what they tried in vain.
    pub fn include_reflection_history(&self) -> bool {
        self.include_reflection_history.unwrap_or(true)
    }

    /// Which version the run returns.
    pub fn select(&self) -> Select {
        self.select.unwrap_or_default()
    }

    /// What the run returns where the criteria are not met.
    pub fn on_failure(&self) -> OnFailure {
        self.on_failure.unwrap_or_default()
    }

    /// The rise of the score over `plateau_iterations` drafts below which the run stops.
    pub fn improvement_threshold(&self) -> f64 {
        self.improvement_threshold.unwrap_or(0.05)
    }

    /// Whether scores that go up and down without a trend end the run.
    pub fn detect_oscillation(&self) -> bool {
        self.detect_oscillation.unwrap_or(true)
    }

    /// The gain on the first draft below which a judge compares it with the best one.
    pub fn grey_zone(&self) -> f64 {
        self.grey_zone.unwrap_or(0.1)
    }

    /// Whether the next draft is made by what has helped in this run.
    pub fn adapt(&self) -> bool {
        self.adapt.unwrap_or(true)
    }

    /// The fall of the score below the best one's from which on it is reflected on; 0 for never.
    pub fn quality_drop_threshold(&self) -> f64 {
        self.quality_drop_threshold.unwrap_or(0.0)
    }

    /// Whether replies that are no drafts are reflected on.
    pub fn reflect_on_error(&self) -> bool {
        self.reflect_on_error.unwrap_or(false)
    }

    /// Whether the first draft is written in steps.
    pub fn steps(&self) -> bool {
        self.steps.unwrap_or(false)
    }

    /// The sections of a draft in steps after which it is reflected on; 0 for never.
    pub fn reflection_interval(&self) -> u32 {
        self.reflection_interval.unwrap_or(3)
    }

    /// Whether a reply that can no longer become a draft of use is ended early.
    pub fn early_stop(&self) -> bool {
        self.early_stop.unwrap_or(true)
    }

    /// Drafts in a row without a gain after which the run stops, at least 1.
    pub fn plateau_iterations(&self) -> u32 {
        self.plateau_iterations.unwrap_or(4).max(1)
    }

    /// The time limit, if there is one.
    pub fn max_time(&self) -> Option<Duration> {
        self.max_time
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }
}

/// How a draft is revised (seed 003 §2.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The model writes the whole text again, with the feedback.
    FullRewrite,
    /// The model names passages and what takes their place; the rest stays byte for byte.
    TargetedEdit,
    /// The model writes one section after the other, those only that have something to mend or are missing.
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

/// Which version a run returns (seed 003 §2.7.2). The seed's two defaults disagree; ours is the one of
/// its interface, `highest_score`: the last draft is worse than the best one in a third of all runs.
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
