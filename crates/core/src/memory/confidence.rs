use jiff::Timestamp;

use crate::types::{Knowledge, KnownInsight, KnownProcedure, Memory};

/// The minimum strength at which a memory is offered. An insight stays above it as long as its runs
/// are better than those without it in at least five of eight comparisons.
pub const FLOOR: f64 = 0.25;

/// The number of days without use after which an insight has half of its strength.
pub const HALF_LIFE_DAYS: f64 = 90.0;

/// The weight of the prior, in uses.
const PRIOR: f64 = 4.0;

/// The value assumed for an unknown figure.
const UNKNOWN: f64 = 0.5;

/// The one-sided 90 % quantile of the normal distribution.
const Z: f64 = 1.2816;

/// Returns the lower bound of the share of `seen` among `all`, 0 to 1, by Wilson's score interval,
/// one-sided at 90 %. Returns 0 for an empty sample.
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

/// Returns the confidence of an insight, 0 to 1: a weighted mean of the confidence it was learned
/// with, which weighs as much as four uses, and the value of its uses.
///
/// The value of its uses is `2 m - 1`, at least 0, where `m` is the mean share of runs without it
/// that its own runs beat. At one half, which is no improvement, the value is 0, and the confidence
/// falls with each use.
pub fn confidence(insight: &KnownInsight) -> f64 {
    let uses = f64::from(insight.compared);
    let help = if insight.compared == 0 {
        0.0
    } else {
        (2.0 * insight.points / uses - 1.0).clamp(0.0, 1.0)
    };
    ((PRIOR * insight.learned + uses * help) / (PRIOR + uses)).clamp(0.0, 1.0)
}

/// Returns the success rate of a procedure, 0 to 1. A given rate weighs as much as four uses;
/// without one, Laplace's rule of succession applies. Returns `None` without a given rate and
/// without uses.
pub fn success_rate(procedure: &KnownProcedure) -> Option<f64> {
    let (uses, successes) = (f64::from(procedure.uses), f64::from(procedure.successes));
    match procedure.given {
        Some(given) => Some((PRIOR * given + successes) / (PRIOR + uses)),
        None if procedure.uses == 0 => None,
        None => Some((successes + 1.0) / (uses + 2.0)),
    }
}

/// Returns the current strength of a memory, 0 to 1: the confidence of a fact or the success rate
/// of a procedure (one half if unknown), and the confidence of an insight, which decays while it is
/// unused. Facts and procedures come from the user and do not decay.
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

/// Returns whether a memory is too weak to be offered.
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
        // A clock that was set back must not raise the confidence.
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
