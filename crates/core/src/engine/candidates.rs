//! How many candidates a version has, how they differ, and which one wins. Pure; the driver writes and judges them.

use crate::types::{Candidates, Rank, Severity, Strategy};

/// The temperature to start from if none is set: servers have defaults between 0.7 and 1.
const USUAL_TEMPERATURE: f64 = 0.7;
/// How much warmer each further candidate is.
const WARMER_BY: f64 = 0.2;
/// The highest temperature; above it, texts become incoherent.
const WARMEST: f64 = 1.3;

/// How many candidates the next version is chosen from. `helped` says whether the last attempt improved on the best
/// version; `None` if there was no attempt yet.
///
/// `auto` means one, and two if the last attempt did not help: a second draft costs as much as the first, so it is
/// only worth it where one was not enough.
pub(super) fn how_many(candidates: Candidates, helped: Option<bool>) -> u32 {
    match candidates {
        Candidates::Number(number) => number.max(1),
        Candidates::Auto if helped == Some(false) => 2,
        Candidates::Auto => 1,
    }
}

/// How a candidate differs from the first one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Variation {
    /// Not at all: the draft that would be written without candidates.
    Usual,
    /// It is a full rewrite instead of edits.
    Rewrite,
    /// It receives only this many issues, the most severe ones.
    MostSevere(usize),
    /// It receives all issues except this many of the most severe.
    Others(usize),
    /// It has this temperature.
    Warmer(f64),
}

impl Variation {
    /// Describes the difference. `issues` is the number of issues.
    pub(super) fn describe(self, issues: usize) -> String {
        match self {
            Self::Usual => "as usual".to_owned(),
            Self::Rewrite => "a rewrite of the whole".to_owned(),
            Self::MostSevere(count) => format!("only the most severe issues ({count} of {issues})"),
            Self::Others(left_out) => {
                let count = issues.saturating_sub(left_out);
                format!("only the other issues ({count} of {issues})")
            }
            Self::Warmer(temperature) => format!("warmer (temperature {temperature:.1})"),
        }
    }

    /// The issues that the candidate receives, out of all, most severe first.
    pub(super) fn issues<T>(self, issues: &[T]) -> &[T] {
        match self {
            Self::MostSevere(count) => &issues[..count.min(issues.len())],
            Self::Others(left_out) => &issues[left_out.min(issues.len())..],
            Self::Usual | Self::Rewrite | Self::Warmer(_) => issues,
        }
    }
}

/// The variations for a number of candidates. `strategy` is that of the first one, `issues` are the severities of its
/// issues, most severe first, and `temperature` is the configured one.
///
/// The first is the default one. Then, as far as they differ from it: a rewrite instead of edits; only the most
/// severe issues; a higher temperature; only the other issues; and from there on ever higher temperatures, up to a
/// limit.
pub(super) fn variations(
    count: u32,
    strategy: Strategy,
    issues: &[Severity],
    temperature: Option<f64>,
) -> Vec<Variation> {
    let base = temperature.unwrap_or(USUAL_TEMPERATURE);
    let mut degree = base;
    let mut warmer = || {
        degree = (degree + WARMER_BY).min(WARMEST.max(base));
        Variation::Warmer(degree)
    };
    let severe = most_severe(issues);
    let edits = strategy != Strategy::FullRewrite;
    let mut all = vec![Variation::Usual];
    all.extend(edits.then_some(Variation::Rewrite));
    all.extend(severe.map(Variation::MostSevere));
    all.push(warmer());
    all.extend(severe.map(Variation::Others));
    let count = count as usize;
    while all.len() < count {
        all.push(warmer());
    }
    all.truncate(count);
    all
}

/// How many of the issues are the most severe: those of the highest severity, or the first half if all are equally
/// severe. `None` if they cannot be divided.
fn most_severe(issues: &[Severity]) -> Option<usize> {
    let first = issues.first()?;
    let equally_severe = issues.iter().take_while(|issue| *issue == first).count();
    match issues.len() {
        1 => None,
        all if equally_severe < all => Some(equally_severe),
        all => Some(all.div_ceil(2)),
    }
}

/// The position of the best rank, the first of equal ones; `None` if there is no rank.
pub(super) fn best(ranks: &[Option<Rank>]) -> Option<usize> {
    let mut best: Option<(usize, Rank)> = None;
    for (place, rank) in ranks.iter().enumerate() {
        if let Some(rank) = rank
            && best.is_none_or(|(_, best)| *rank > best)
        {
            best = Some((place, *rank));
        }
    }
    best.map(|(place, _)| place)
}

/// Explains why this candidate wins.
pub(super) fn why(ranks: &[Option<Rank>], chosen: usize) -> String {
    let score = |rank: &Option<Rank>| match rank {
        Some(rank) => format!("{:.2}", rank.score),
        None => "none".to_owned(),
    };
    let others: Vec<String> = ranks
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != chosen)
        .map(|(_, rank)| score(rank))
        .collect();
    format!(
        "candidate {} of {} is the best: score {}, the {} {}",
        chosen + 1,
        ranks.len(),
        ranks.get(chosen).map_or_else(String::new, score),
        if others.len() == 1 { "other" } else { "others" },
        others.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy as _, any, prop, prop_assert, prop_assert_eq, proptest};

    use super::Severity::{Critical, Major, Minor};
    use super::Variation::{MostSevere, Others, Rewrite, Usual, Warmer};
    use super::*;

    fn rank(score: f64, satisfactory: bool) -> Rank {
        Rank {
            clean: true,
            satisfactory,
            required_met: true,
            score,
        }
    }

    #[test]
    fn auto_is_two_only_after_what_did_not_help() {
        for (helped, count) in [(None, 1), (Some(true), 1), (Some(false), 2)] {
            assert_eq!(how_many(Candidates::Auto, helped), count, "{helped:?}");
            assert_eq!(how_many(Candidates::Number(3), helped), 3);
        }
        assert_eq!(how_many(Candidates::default(), Some(false)), 1);
    }

    #[test]
    fn candidates_differ_by_strategy_issues_and_temperature() {
        let issues = [Critical, Major, Minor];
        let five = variations(5, Strategy::TargetedEdit, &issues, Some(0.5));
        assert_eq!(
            five,
            [Usual, Rewrite, MostSevere(1), Warmer(0.7), Others(1)]
        );
        // A rewrite is not a variation of a rewrite, and one issue cannot be divided.
        let two = variations(2, Strategy::FullRewrite, &[Major], Some(0.5));
        assert_eq!(two, [Usual, Warmer(0.7)]);
        let two = variations(2, Strategy::FullRewrite, &[Major, Major, Major], None);
        assert_eq!(two, [Usual, MostSevere(2)]);
        assert_eq!(variations(1, Strategy::Incremental, &issues, None), [Usual]);
    }

    #[test]
    fn a_part_of_the_issues_is_told() {
        let issues = [1, 2, 3];
        assert_eq!(MostSevere(1).issues(&issues), [1]);
        assert_eq!(Others(1).issues(&issues), [2, 3]);
        assert_eq!(Rewrite.issues(&issues), issues);
        assert_eq!(Others(1).describe(3), "only the other issues (2 of 3)");
        assert_eq!(Warmer(0.9).describe(3), "warmer (temperature 0.9)");
    }

    #[test]
    fn the_best_wins_and_of_equals_the_first() {
        let of = |all: &[(f64, bool)]| {
            let ranks: Vec<_> = all.iter().map(|(s, good)| Some(rank(*s, *good))).collect();
            best(&ranks)
        };
        assert_eq!(of(&[(0.5, false), (0.7, false), (0.7, false)]), Some(1));
        assert_eq!(of(&[(0.9, false), (0.7, true)]), Some(1));
        assert_eq!(best(&[None, Some(rank(0.1, false))]), Some(1));
        assert_eq!(best(&[None, None]), None);
        let ranks = [Some(rank(0.5, false)), Some(rank(0.75, false)), None];
        assert_eq!(
            why(&ranks, 1),
            "candidate 2 of 3 is the best: score 0.75, the others 0.50, none"
        );
    }

    fn severity() -> impl proptest::strategy::Strategy<Value = Severity> {
        (0..3_u8).prop_map(|n| [Minor, Major, Critical][usize::from(n)])
    }

    proptest! {
        #[test]
        fn there_are_as_many_as_were_asked_for_and_the_first_is_the_usual_one(
            count in 1..=8_u32, edits in any::<bool>(),
            mut issues in prop::collection::vec(severity(), 0..6),
            temperature in prop::option::of(0.0..=2.0_f64),
        ) {
            issues.sort_by_key(|severity| std::cmp::Reverse(*severity));
            let strategy = if edits { Strategy::Incremental } else { Strategy::FullRewrite };
            let all = variations(count, strategy, &issues, temperature);
            prop_assert_eq!(all.len(), count as usize);
            prop_assert_eq!(all[0], Usual);
            prop_assert_eq!(all.iter().filter(|variation| **variation == Usual).count(), 1);
            for variation in all {
                if let Warmer(warmer) = variation {
                    prop_assert!(warmer >= temperature.unwrap_or(0.0) && warmer <= 2.0);
                }
                // A candidate that has issues at all has some in every variation.
                prop_assert!(issues.is_empty() || !variation.issues(&issues).is_empty());
            }
        }
    }
}
