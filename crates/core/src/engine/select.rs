use crate::types::{Rank, Select};

/// What a version's value loses with every later judged version.
const RECENCY: f64 = 0.95;

/// Selects the version that a run returns from the judged ones, in order; `None` if there is none. `incumbent` is
/// the best one: the one with the highest score, unless a judge that saw both preferred another.
pub(super) fn select(rule: Select, judged: &[(u32, Rank)], incumbent: Option<u32>) -> Option<u32> {
    let number = |version: Option<&(u32, Rank)>| version.map(|(iteration, _)| *iteration);
    match rule {
        Select::HighestScore => incumbent,
        Select::Latest => {
            let clean = judged.iter().rfind(|(_, rank)| rank.clean);
            number(clean.or(judged.last()))
        }
        Select::FirstSatisfactory => {
            number(judged.iter().find(|(_, rank)| rank.satisfactory)).or(incumbent)
        }
        Select::WeightedRecency => weighted(judged, incumbent),
    }
}

/// The highest score after the discount for later versions, among the versions that are as good in kind as the best.
fn weighted(judged: &[(u32, Rank)], incumbent: Option<u32>) -> Option<u32> {
    let best = judged
        .iter()
        .find(|(iteration, _)| Some(*iteration) == incumbent)?;
    let mut chosen: Option<(u32, f64)> = None;
    for (age, (iteration, rank)) in (0..).zip(judged.iter().rev()) {
        let value = rank.score * RECENCY.powi(age);
        // From the last to the first: of equal ones the earliest.
        if rank.class() == best.1.class() && chosen.is_none_or(|(_, most)| value >= most) {
            chosen = Some((*iteration, value));
        }
    }
    chosen.map(|(iteration, _)| iteration)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judged(ranks: &[(bool, f64)]) -> Vec<(u32, Rank)> {
        (1..)
            .zip(ranks.iter().map(|&(satisfactory, score)| Rank {
                clean: true,
                satisfactory,
                required_met: true,
                score,
            }))
            .collect()
    }

    #[test]
    fn the_highest_score_is_the_incumbent() {
        let runs = judged(&[(false, 0.5), (false, 0.7), (false, 0.7), (false, 0.6)]);
        assert_eq!(select(Select::HighestScore, &runs, Some(2)), Some(2));
    }

    #[test]
    fn latest_and_first_satisfactory() {
        let runs = judged(&[(false, 0.9), (true, 0.85), (true, 0.9), (false, 0.1)]);
        assert_eq!(select(Select::Latest, &runs, Some(3)), Some(4));
        assert_eq!(select(Select::FirstSatisfactory, &runs, Some(3)), Some(2));
        let none = judged(&[(false, 0.1), (false, 0.2), (false, 0.15)]);
        assert_eq!(select(Select::FirstSatisfactory, &none, Some(2)), Some(2));
    }

    #[test]
    fn a_later_version_wins_unless_an_earlier_one_is_clearly_better() {
        let rule = Select::WeightedRecency;
        let near = judged(&[(false, 0.70), (false, 0.68)]);
        assert_eq!(select(rule, &near, Some(1)), Some(2));
        let far = judged(&[(false, 0.70), (false, 0.60)]);
        assert_eq!(select(rule, &far, Some(1)), Some(1));
        let equal = judged(&[(false, 0.0), (false, 0.0)]);
        assert_eq!(
            select(rule, &equal, Some(1)),
            Some(1),
            "of equals the earlier"
        );
        let kind = judged(&[(true, 0.81), (false, 0.85)]);
        assert_eq!(
            select(rule, &kind, Some(1)),
            Some(1),
            "meeting the criteria goes first"
        );
    }

    #[test]
    fn without_a_verdict_nothing_is_selected() {
        for rule in [
            Select::HighestScore,
            Select::Latest,
            Select::FirstSatisfactory,
            Select::WeightedRecency,
        ] {
            assert_eq!(select(rule, &[], None), None);
        }
    }

    proptest! {
        #[test]
        fn recency_never_takes_a_version_that_is_earlier_and_worse(
            scores in prop::collection::vec(0.0f64..=1.0, 1..8)
        ) {
            let ranks: Vec<(bool, f64)> = scores.iter().map(|score| (false, *score)).collect();
            let runs = judged(&ranks);
            let best = runs.iter().reduce(|a, b| if b.1 > a.1 { b } else { a }).map(|v| v.0);
            let chosen = select(Select::WeightedRecency, &runs, best).unwrap();
            prop_assert!(chosen >= best.unwrap());
        }
    }
}
