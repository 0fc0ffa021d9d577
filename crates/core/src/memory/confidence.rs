use jiff::Timestamp;

use crate::types::{Knowledge, KnownInsight, KnownProcedure, Memory};

/// What is weaker than this is not offered any more. An insight keeps above it as long as its runs are better than
/// those without it five times in eight.
pub const FLOOR: f64 = 0.25;

/// After so many days without use an insight has half of its strength.
pub const HALF_LIFE_DAYS: f64 = 90.0;

/// How many uses what was known before them weighs as much as.
const PRIOR: f64 = 4.0;

/// What counts for a figure that nobody knows.
const UNKNOWN: f64 = 0.5;

/// One-sided 90 % of the normal distribution.
const Z: f64 = 1.2816;

/// The lower bound of a share of which `seen` of `all` are a sample, 0 to 1, by Wilson's score interval, one-sided at
/// 90 %; 0 without a sample.
pub fn wilson_lower(seen: usize, all: usize) -> f64 {
    if all == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of runs")]
    let (seen, all) = (seen.min(all) as f64, all as f64);
    let share = seen / all;
    let spread = (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).sqrt();
    ((share + Z * Z / (2.0 * all) - Z * spread) / (1.0 + Z * Z / all)).clamp(0.0, 1.0)
}

/// How sure an insight is, 0 to 1: what it was learned with, and its use, each use weighing a quarter as much.
///
/// Its use is worth `2 m - 1`, at least 0, where `m` is the mean share of runs without it that its own were better than.
/// At one half, which is no better, it is worth nothing, and the confidence falls with each further use.
pub fn confidence(insight: &KnownInsight) -> f64 {
    let uses = f64::from(insight.compared);
    let help = if insight.compared == 0 {
        0.0
    } else {
        (2.0 * insight.points / uses - 1.0).clamp(0.0, 1.0)
    };
    ((PRIOR * insight.learned + uses * help) / (PRIOR + uses)).clamp(0.0, 1.0)
}

/// How often a procedure works, 0 to 1: what was given with it counts as four uses; without that, Laplace's rule of
/// succession. `None` where nothing was given and it was never used.
pub fn success_rate(procedure: &KnownProcedure) -> Option<f64> {
    let (uses, successes) = (f64::from(procedure.uses), f64::from(procedure.successes));
    match procedure.given {
        Some(given) => Some((PRIOR * given + successes) / (PRIOR + uses)),
        None if procedure.uses == 0 => None,
        None => Some((successes + 1.0) / (uses + 2.0)),
    }
}

/// How much a memory counts now, 0 to 1: of a fact its confidence, of a procedure its success rate, one half where
/// they are not known; of an insight its confidence, which fades while it is not used. Facts and procedures are the
/// user's own, and do not fade.
pub fn strength(memory: &Memory, now: Timestamp) -> f64 {
    match &memory.what {
        Knowledge::Fact(fact) => fact.confidence.unwrap_or(UNKNOWN),
        Knowledge::Procedure(procedure) => success_rate(procedure).unwrap_or(UNKNOWN),
        Knowledge::Insight(insight) => {
            let days = (now.as_second() - memory.touched.as_second()).max(0);
            #[expect(clippy::cast_precision_loss, reason = "days")]
            let days = days as f64 / 86_400.0;
            confidence(insight) * 0.5_f64.powf(days / HALF_LIFE_DAYS)
        }
    }
}

/// Whether a memory is too weak to be offered.
pub fn is_faded(memory: &Memory, now: Timestamp) -> bool {
    strength(memory, now) < FLOOR
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use proptest::prelude::*;

    use super::*;
    use crate::types::Fact;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.005
    }

    #[test]
    fn few_runs_say_less_than_many() {
        assert!(near(wilson_lower(2, 2), 0.549));
        assert!(near(wilson_lower(20, 20), 0.924));
        assert!(near(wilson_lower(5, 10), 0.312));
        assert!(near(wilson_lower(0, 10), 0.0) && near(wilson_lower(0, 0), 0.0));
    }

    #[test]
    fn use_that_is_no_better_takes_confidence_away_and_use_that_helps_keeps_it() {
        let mut insight = KnownInsight::new("general", "x", 0.6);
        assert!(near(confidence(&insight), 0.6));
        (insight.compared, insight.points) = (1, 0.5);
        assert!(near(confidence(&insight), 0.48));
        (insight.compared, insight.points) = (6, 3.0);
        assert!(confidence(&insight) < FLOOR);
        (insight.compared, insight.points) = (50, 25.0 * 1.25 + 1.0);
        assert!(confidence(&insight) > FLOOR);
        (insight.compared, insight.points) = (10, 9.0);
        assert!(near(confidence(&insight), (2.4 + 8.0) / 14.0));
    }

    #[test]
    fn a_procedure_goes_on_from_what_was_given() {
        let procedure = |given, uses, successes| KnownProcedure {
            name: None,
            content: "x".to_owned(),
            given,
            uses,
            successes,
        };
        assert_eq!(success_rate(&procedure(None, 0, 0)), None);
        assert_eq!(success_rate(&procedure(None, 2, 2)), Some(0.75));
        assert_eq!(success_rate(&procedure(Some(0.5), 0, 0)), Some(0.5));
        assert_eq!(success_rate(&procedure(Some(1.0), 4, 0)), Some(0.5));
    }

    #[test]
    fn insights_fade_while_they_are_not_used_and_facts_do_not() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let memory = |days: i64, what| Memory {
            id: 1,
            added: now,
            touched: now - SignedDuration::from_hours(24 * days),
            what,
        };
        let insight = || Knowledge::Insight(KnownInsight::new("general", "x", 0.8));
        assert!(near(strength(&memory(0, insight()), now), 0.8));
        assert!(near(strength(&memory(90, insight()), now), 0.4));
        assert!(!is_faded(&memory(90, insight()), now));
        assert!(is_faded(&memory(200, insight()), now));
        // A clock that was set back is no reason to be surer.
        assert!(near(strength(&memory(-90, insight()), now), 0.8));
        let fact = Knowledge::Fact(Fact {
            content: "x".to_owned(),
            confidence: Some(0.9),
            supports_claim: None,
        });
        assert!(near(strength(&memory(2000, fact), now), 0.9));
    }

    proptest! {
        #[test]
        fn figures_are_shares(learned in 0.0f64..=1.0, compared in 0u32..100, share in 0.0f64..=1.0, seen in 0usize..50) {
            let mut insight = KnownInsight::new("general", "x", learned);
            insight.compared = compared;
            insight.points = share * f64::from(compared);
            prop_assert!((0.0..=1.0).contains(&confidence(&insight)));
            prop_assert!(wilson_lower(seen, 50) < wilson_lower(seen + 1, 50));
        }
    }
}
