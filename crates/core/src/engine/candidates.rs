//! How many candidates there are for a version, how they differ, and which one wins. Pure; the driver has them
//! written and judged.

use crate::types::{Candidates, Rank, Severity, Strategy};

/// The temperature that is raised where none is set: servers have defaults between 0.7 and 1.
const USUAL_TEMPERATURE: f64 = 0.7;
/// By how much each warmer candidate is warmer than the one before.
const WARMER_BY: f64 = 0.2;
/// Beyond, texts fall apart.
const WARMEST: f64 = 1.3;

/// How many candidates the next version is chosen from. `helped` says whether the last try to better the best
/// version did; `None` where there was no try yet.
///
/// `auto` is one, and two where the last try did not help: a second draft costs as much as the first, and is worth
/// it only where one was not enough.
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
    /// Not at all: it is the draft that would be made if it were alone.
    Usual,
    /// The whole is written again, instead of edits.
    Rewrite,
    /// It is told only so many issues, the most severe.
    Gravest(usize),
    /// It is told all issues but so many, the most severe.
    Others(usize),
    /// It is written at this temperature.
    Warmer(f64),
}

impl Variation {
    /// What is different, in words. `issues` is how many there are.
    pub(super) fn describe(self, issues: usize) -> String {
        match self {
            Self::Usual => "as usual".to_owned(),
            Self::Rewrite => "a rewrite of the whole".to_owned(),
            Self::Gravest(told) => format!("only the most severe issues ({told} of {issues})"),
            Self::Others(left_out) => {
                let told = issues.saturating_sub(left_out);
                format!("only the other issues ({told} of {issues})")
            }
            Self::Warmer(temperature) => format!("warmer (temperature {temperature:.1})"),
        }
    }

    /// The issues that the candidate is told, of all, most severe first.
    pub(super) fn told<T>(self, issues: &[T]) -> &[T] {
        match self {
            Self::Gravest(told) => &issues[..told.min(issues.len())],
            Self::Others(left_out) => &issues[left_out.min(issues.len())..],
            Self::Usual | Self::Rewrite | Self::Warmer(_) => issues,
        }
    }
}

/// The variations for so many candidates. `strategy` is how the first one begins to revise, `issues` is how severe
/// what it is told is, most severe first, and `temperature` is what is set for it.
///
/// The first is the usual one. Then, as far as they are different from it: a rewrite beside edits; the most severe issues
/// alone; a warmer one; the other issues alone; and from there on each one warmer, up to a bound.
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
    let grave = gravest(issues);
    let edits = strategy != Strategy::FullRewrite;
    let mut all = vec![Variation::Usual];
    all.extend(edits.then_some(Variation::Rewrite));
    all.extend(grave.map(Variation::Gravest));
    all.push(warmer());
    all.extend(grave.map(Variation::Others));
    let count = count as usize;
    while all.len() < count {
        all.push(warmer());
    }
    all.truncate(count);
    all
}

/// How many of the issues are the most severe: those of the highest severity; where all are equally severe, the first
/// half. `None` if they cannot be divided.
fn gravest(issues: &[Severity]) -> Option<usize> {
    let first = issues.first()?;
    let as_grave = issues.iter().take_while(|issue| *issue == first).count();
    match issues.len() {
        1 => None,
        all if as_grave < all => Some(as_grave),
        all => Some(all.div_ceil(2)),
    }
}

/// The best of those that have a rank, by its place; of equals the first. `None` if none has one.
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

/// Why that one of the candidates wins, in words.
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
    use super::Variation::{Gravest, Others, Rewrite, Usual, Warmer};
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
        assert_eq!(five, [Usual, Rewrite, Gravest(1), Warmer(0.7), Others(1)]);
        // A rewrite is no variation of a rewrite, and one issue is no choice of issues.
        let two = variations(2, Strategy::FullRewrite, &[Major], Some(0.5));
        assert_eq!(two, [Usual, Warmer(0.7)]);
        let two = variations(2, Strategy::FullRewrite, &[Major, Major, Major], None);
        assert_eq!(two, [Usual, Gravest(2)]);
        assert_eq!(variations(1, Strategy::Incremental, &issues, None), [Usual]);
    }

    #[test]
    fn a_part_of_the_issues_is_told() {
        let issues = [1, 2, 3];
        assert_eq!(Gravest(1).told(&issues), [1]);
        assert_eq!(Others(1).told(&issues), [2, 3]);
        assert_eq!(Rewrite.told(&issues), issues);
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
                // Who is told something at all is told something in every variation.
                prop_assert!(issues.is_empty() || !variation.told(&issues).is_empty());
            }
        }
    }
}
