use super::verdict::Verdict;

/// Scores are rounded to a millionth; a smaller difference does not count.
const SAME: f64 = 1e-9;

/// The best version so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Incumbent {
    pub(super) iteration: u32,
    pub(super) verdict: Verdict,
}

/// How a new version compares with the incumbent, and why.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Challenge {
    /// It becomes the incumbent.
    Won(String),
    /// The incumbent stays.
    Lost(String),
}

/// Compares a new version with the incumbent.
///
/// First come properties that no score outweighs: satisfactory, then all required criteria met. Among versions
/// that are equal in that, one that fails a criterion which the incumbent meets never wins (a check, a floor or a
/// required criterion). Then the score decides; on a tie the incumbent stays.
pub(super) fn challenge(best: &Incumbent, new: &Verdict) -> Challenge {
    let (old_class, new_class) = (best.verdict.class(), new.class());
    if new_class > old_class {
        return Challenge::Won(won(best, new));
    }
    let falls = new_class < old_class || !new.newly_failing(&best.verdict).is_empty();
    if falls || new.rank.score <= best.verdict.rank.score + SAME {
        return Challenge::Lost(reason_to_reject(best, new));
    }
    Challenge::Won(won(best, new))
}

/// Whether a version that did not win is worse by more than noise: it newly fails a criterion, or the score fell
/// by at least `noise`.
pub(super) fn is_regression(best: &Incumbent, new: &Verdict, noise: f64) -> bool {
    new.class() < best.verdict.class()
        || !new.newly_failing(&best.verdict).is_empty()
        || best.verdict.rank.score - new.rank.score >= noise.max(SAME)
}

fn won(best: &Incumbent, new: &Verdict) -> String {
    let (score, before) = (new.rank.score, best.verdict.rank.score);
    if score > before + SAME {
        format!("score {score:.2}, up from {before:.2}")
    } else if new.rank.satisfactory {
        "meets the criteria, unlike the best draft so far".to_owned()
    } else {
        "meets all required criteria, unlike the best draft so far".to_owned()
    }
}

fn reason_to_reject(best: &Incumbent, new: &Verdict) -> String {
    let (score, before) = (new.rank.score, best.verdict.rank.score);
    let failing: Vec<String> = new
        .newly_failing(&best.verdict)
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    if score < before - SAME {
        "lower score".to_owned()
    } else if !failing.is_empty() {
        format!("breaks {}", failing.join(" and "))
    } else if new.class() < best.verdict.class() {
        "does not meet the criteria".to_owned()
    } else {
        "no improvement".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn incumbent(verdict: Verdict) -> Incumbent {
        Incumbent {
            iteration: 1,
            verdict,
        }
    }

    fn has_won(challenge: &Challenge) -> bool {
        matches!(challenge, Challenge::Won(_))
    }

    #[test]
    fn a_higher_score_wins_and_equals_stay() {
        let best = incumbent(Verdict::scored(0.6, false));
        assert!(has_won(&challenge(&best, &Verdict::scored(0.7, false))));
        let same = challenge(&best, &Verdict::scored(0.6, false));
        let reason = "no improvement".to_owned();
        assert_eq!(same, Challenge::Lost(reason));
    }

    #[test]
    fn what_newly_fails_outweighs_any_score() {
        let best =
            incumbent(Verdict::scored(0.4, false).meeting(&[("tone", true), ("length", false)]));
        let new = Verdict::scored(0.9, false).meeting(&[("tone", false), ("length", true)]);
        let Challenge::Lost(reason) = challenge(&best, &new) else {
            panic!("it must not win");
        };
        assert!(reason.contains("breaks `tone`"), "{reason}");
        // What failed before may go on failing.
        let new = Verdict::scored(0.9, false).meeting(&[("tone", true), ("length", false)]);
        assert!(has_won(&challenge(&best, &new)));
        // A criterion that was not judged before does not newly fail.
        let new = Verdict::scored(0.9, false).meeting(&[("tone", true), ("depth", false)]);
        assert!(has_won(&challenge(&best, &new)));
    }

    #[test]
    fn what_is_required_goes_before_the_score() {
        let mut without = Verdict::scored(0.9, false).meeting(&[("a", false), ("b", true)]);
        without.rank.required_met = false;
        let with = Verdict::scored(0.5, false).meeting(&[("a", true), ("b", false)]);
        assert!(has_won(&challenge(&incumbent(without.clone()), &with)));
        assert!(!has_won(&challenge(&incumbent(with), &without)));
    }

    proptest! {
        #[test]
        fn only_a_higher_score_or_class_wins(
            old in 0.0f64..=1.0, new in 0.0f64..=1.0, was in any::<bool>(), is in any::<bool>(),
            met in prop::collection::vec((any::<bool>(), any::<bool>()), 0..5),
        ) {
            let names: Vec<String> = (0..met.len()).map(|n| format!("c{n}")).collect();
            let side = |which: fn(&(bool, bool)) -> bool| -> Vec<(&str, bool)> {
                names.iter().map(String::as_str).zip(met.iter().map(which)).collect()
            };
            let best = incumbent(Verdict::scored(old, was).meeting(&side(|m| m.0)));
            let verdict = Verdict::scored(new, is).meeting(&side(|m| m.1));
            let fails = met.iter().any(|(before, now)| *before && !now);
            let expected = (is && !was) || (is == was && !fails && new > old + SAME);
            prop_assert_eq!(has_won(&challenge(&best, &verdict)), expected);
        }
    }
}
