//! Statistics of paired outcomes. Deterministic, so that the same rows always give the same report.

use serde::Serialize;

/// The number of bootstrap resamples.
const RESAMPLES: usize = 10_000;

/// The seed of the resampling.
const SEED: u64 = 20_240_601;

/// The significance level.
pub const ALPHA: f64 = 0.05;

/// An estimate with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The sample mean.
    pub estimate: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// Returns the arithmetic mean, or 0 for an empty slice.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<f64>() / count(values.len())
}

/// Returns the mean of these values with its percentile bootstrap interval. Each value stands for
/// one task: its seeds are averaged first, because they are not independent.
pub fn bootstrap(values: &[f64]) -> Interval {
    let estimate = mean(values);
    if values.is_empty() {
        return Interval {
            estimate,
            low: estimate,
            high: estimate,
        };
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = (0..values.len()).map(|_| values[random.usize(..values.len())]);
            drawn.sum::<f64>() / count(values.len())
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    Interval {
        estimate,
        low: means[tail],
        high: means[RESAMPLES - 1 - tail],
    }
}

/// Returns the p-value of the exact two-sided sign test: the probability of a split at least this
/// uneven if neither side is better. Ties do not count.
pub fn sign_test(better: usize, worse: usize) -> f64 {
    let n = better + worse;
    let tail: f64 = (0..=better.min(worse))
        .map(|k| (ln_choose(n, k) - count(n) * std::f64::consts::LN_2).exp())
        .sum();
    (2.0 * tail).min(1.0)
}

/// Returns the natural logarithm of the binomial coefficient `n` over `k`.
fn ln_choose(n: usize, k: usize) -> f64 {
    (0..k)
        .map(|i| (count(n - i) / count(i + 1)).ln())
        .sum::<f64>()
}

/// Returns Spearman's rank correlation, or `None` if one side is constant.
pub fn spearman(one: &[f64], other: &[f64]) -> Option<f64> {
    let (a, b) = (ranks(one), ranks(other));
    let (mean_a, mean_b) = (mean(&a), mean(&b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        let pairs = a.iter().zip(&b);
        pairs.map(|(a, b)| f(a - mean_a, b - mean_b)).sum()
    };
    let spread = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    (spread > 0.0).then(|| sum(&|a, b| a * b) / spread)
}

/// Returns the rank of each value from 1. Equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count();
    let equal = |value: f64| {
        let same = |other: &&f64| other.total_cmp(&value).is_eq();
        values.iter().filter(same).count()
    };
    let rank = |value: &f64| count(below(*value)) + f64::midpoint(1.0, count(equal(*value)));
    values.iter().map(rank).collect()
}

/// Returns Cohen's kappa of two binary raters: agreement beyond chance, 1 for perfect agreement, 0
/// for chance. `None` if chance alone explains everything.
pub fn kappa(pairs: &[(bool, bool)]) -> Option<f64> {
    let share = |which: &dyn Fn(&(bool, bool)) -> bool| {
        count(pairs.iter().filter(|pair| which(pair)).count()) / count(pairs.len().max(1))
    };
    let agreed = share(&|(a, b)| a == b);
    let (yes_a, yes_b) = (share(&|(a, _)| *a), share(&|(_, b)| *b));
    let chance = yes_a * yes_b + (1.0 - yes_a) * (1.0 - yes_b);
    (chance < 1.0 && !pairs.is_empty()).then(|| (agreed - chance) / (1.0 - chance))
}

/// Converts a count to a float.
pub fn count(n: usize) -> f64 {
    u32::try_from(n).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
    }

    #[test]
    fn the_sign_test_is_exact() {
        // scipy.stats.binomtest(k, n, 0.5).pvalue
        near(sign_test(0, 0), 1.0);
        near(sign_test(5, 5), 1.0);
        near(sign_test(0, 5), 0.0625);
        near(sign_test(0, 6), 0.03125);
        near(sign_test(2, 19), 0.000_221_252);
        near(sign_test(19, 2), 0.000_221_252);
        near(sign_test(15, 7), 0.133_800_5);
        // Large counts neither overflow nor underflow.
        near(sign_test(480, 520), 0.217_448_3);
    }

    #[test]
    fn the_interval_holds_the_mean_and_is_the_same_each_time() {
        let values: Vec<f64> = (0..60).map(|i| f64::from(u8::from(i % 3 == 0))).collect();
        let interval = bootstrap(&values);
        assert_eq!(interval, bootstrap(&values));
        near(interval.estimate, 1.0 / 3.0);
        // The normal approximation: 1.96 * sqrt(p * (1 - p) / 60) = 0.119.
        assert!((interval.low - 0.214).abs() < 0.02, "{interval:?}");
        assert!((interval.high - 0.452).abs() < 0.02, "{interval:?}");
        let constant = bootstrap(&[0.5, 0.5]);
        assert_eq!((constant.low, constant.high), (0.5, 0.5));
        assert_eq!(bootstrap(&[]).estimate.to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn ranks_are_correlated_with_ties() {
        // scipy.stats.spearmanr
        near(spearman(&[1., 2., 3., 4.], &[2., 3., 5., 9.]).unwrap(), 1.0);
        near(
            spearman(&[1., 2., 3., 4.], &[4., 3., 2., 1.]).unwrap(),
            -1.0,
        );
        near(
            spearman(&[1., 2., 2., 4., 5.], &[1., 3., 2., 4., 4.]).unwrap(),
            0.947_368_4,
        );
        assert_eq!(spearman(&[1., 1.], &[1., 2.]), None);
    }

    #[test]
    fn kappa_is_agreement_beyond_chance() {
        let times = |n: usize, pair: (bool, bool)| std::iter::repeat_n(pair, n);
        // The textbook example: 20 and 15 agreements, 5 and 10 disagreements, kappa 0.4.
        let pairs: Vec<(bool, bool)> = times(20, (true, true))
            .chain(times(15, (false, false)))
            .chain(times(5, (true, false)))
            .chain(times(10, (false, true)))
            .collect();
        near(kappa(&pairs).unwrap(), 0.4);
        assert_eq!(kappa(&[(true, true)]), None);
        assert_eq!(kappa(&[]), None);
    }
}
