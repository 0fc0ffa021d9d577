use crate::types::{Rank, Select};

/// The version that a run returns, of those that were judged, in order. `None` if none was.
pub(super) fn select(rule: Select, judged: &[(u32, Rank)]) -> Option<u32> {
    let highest = || {
        judged
            .iter()
            .reduce(|best, next| if next.1 > best.1 { next } else { best })
    };
    let chosen = match rule {
        Select::HighestScore => highest(),
        Select::Latest => judged.last(),
        Select::FirstSatisfactory => judged
            .iter()
            .find(|(_, rank)| rank.satisfactory)
            .or_else(highest),
    };
    chosen.map(|(iteration, _)| *iteration)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ranks: &[(bool, f64)]) -> Vec<(u32, Rank)> {
        (1..)
            .zip(ranks.iter().map(|&(satisfactory, score)| Rank {
                satisfactory,
                required_met: true,
                score,
            }))
            .collect()
    }

    #[test]
    fn highest_score_takes_the_earliest_of_equals() {
        let runs = judged(&[(false, 0.5), (false, 0.7), (false, 0.7), (false, 0.6)]);
        assert_eq!(select(Select::HighestScore, &runs), Some(2));
    }

    #[test]
    fn a_satisfactory_version_goes_before_a_higher_mean() {
        let runs = judged(&[(false, 0.95), (true, 0.85)]);
        assert_eq!(select(Select::HighestScore, &runs), Some(2));
    }

    #[test]
    fn latest_and_first_satisfactory() {
        let runs = judged(&[(false, 0.9), (true, 0.85), (true, 0.9), (false, 0.1)]);
        assert_eq!(select(Select::Latest, &runs), Some(4));
        assert_eq!(select(Select::FirstSatisfactory, &runs), Some(2));
        let none = judged(&[(false, 0.1), (false, 0.2), (false, 0.15)]);
        assert_eq!(select(Select::FirstSatisfactory, &none), Some(2));
    }

    #[test]
    fn without_a_verdict_nothing_is_selected() {
        for rule in [
            Select::HighestScore,
            Select::Latest,
            Select::FirstSatisfactory,
        ] {
            assert_eq!(select(rule, &[]), None);
        }
    }
}
