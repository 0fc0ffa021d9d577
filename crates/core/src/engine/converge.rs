//! When to stop although the criteria are not met: one function for each rule. `docs/loop.md` has the evidence.

use crate::types::{ConvergenceReason, LoopSettings, Strategy};

/// Texts that are more similar than this count as the same text.
const STABLE: f64 = 0.98;
/// Scores are rounded to a millionth; a smaller difference does not count.
const SAME: f64 = 1e-9;
/// The number of scores that shows an oscillation: three changes.
const OSCILLATION: usize = 4;
/// The number of equal attempts in a row that is no coincidence.
const AGAIN: usize = 2;

/// The result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Outcome {
    /// It was worse, by more than noise.
    Worse,
    /// It was no better, or a rejected reply.
    #[default]
    Nothing,
    /// It became the incumbent.
    Gain,
    /// It became the incumbent because it is the first to meet the criteria, or all required ones.
    TierGain,
}

/// An attempt to improve on the incumbent: a judged draft or a rejected reply.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Attempt {
    /// Its result.
    pub(super) outcome: Outcome,
    /// Its score; `None` for a rejected reply.
    pub(super) score: Option<f64>,
    /// The incumbent's score after it.
    pub(super) best: f64,
    /// How similar it is to the version that it revises, if it revises one.
    pub(super) similarity: Option<f64>,
    /// Whether it has exactly the issues of the version that it should improve on, and at least one.
    pub(super) same_issues: bool,
    /// The strategy of a judged revision.
    pub(super) strategy: Option<Strategy>,
}

impl Attempt {
    /// Whether it became the incumbent.
    pub(super) fn is_gain(&self) -> bool {
        matches!(self.outcome, Outcome::Gain | Outcome::TierGain)
    }
}

/// The attempts since the loop began, or since another model took over.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct AttemptHistory {
    /// The incumbent's score before the first of them.
    pub(super) start: f64,
    /// In order.
    pub(super) attempts: Vec<Attempt>,
}

/// Whether it is time to stop, and why.
pub(super) fn converged(
    trail: &AttemptHistory,
    settings: &LoopSettings,
) -> Option<ConvergenceReason> {
    let window = settings.plateau_iterations() as usize;
    let threshold = settings.improvement_threshold();
    let oscillates =
        |without_gain| settings.detect_oscillation() && oscillation(trail, threshold, without_gain);
    if plateau(trail, window) {
        // A plateau may have a cause that says more.
        Some(if stable(trail) {
            ConvergenceReason::Stable
        } else if repeated_issues(trail) {
            ConvergenceReason::RepeatedIssues
        } else if oscillates(AGAIN) {
            ConvergenceReason::Oscillation
        } else {
            ConvergenceReason::Plateau
        })
    } else if oscillates(OSCILLATION - 1) {
        Some(ConvergenceReason::Oscillation)
    } else if diminishing(trail, window, threshold, settings.threshold()) {
        Some(ConvergenceReason::Diminishing)
    } else {
        None
    }
}

/// The text hardly changes any more: the last two revisions are more than 98 % similar to the versions that they
/// revise ([`super::similarity`]), and brought no gain.
fn stable(trail: &AttemptHistory) -> bool {
    let revisions = trail.attempts.iter().rev();
    again(revisions.filter_map(|attempt| Some((attempt, attempt.similarity? > STABLE))))
}

/// The same issues again: the last two drafts brought no gain and have exactly the issues of the version that they
/// should improve on, by their ids in the ledger.
fn repeated_issues(trail: &AttemptHistory) -> bool {
    let judged = trail.attempts.iter().rev();
    let judged = judged.filter(|attempt| attempt.score.is_some());
    again(judged.map(|attempt| (attempt, attempt.same_issues)))
}

/// Whether the first of these attempts all have a property, and none brought a gain.
fn again<'t>(attempts: impl Iterator<Item = (&'t Attempt, bool)>) -> bool {
    let mut last = attempts
        .take(AGAIN)
        .map(|(attempt, has)| has && !attempt.is_gain());
    (0..AGAIN).all(|_| last.next() == Some(true))
}

/// Revisions whose scores go up and down without a trend: the last three changes from score to score alternate in sign,
/// each is at least `threshold`, and none of the last `without_gain` drafts was a gain. Going up and down on the way up
/// is not oscillation. Rejected replies have no score and do not count. Fresh drafts are samples of their own: their
/// scores scatter, and say nothing about revisions that loop.
fn oscillation(trail: &AttemptHistory, threshold: f64, without_gain: usize) -> bool {
    let scores: Vec<f64> = std::iter::once(trail.start)
        .chain(trail.attempts.iter().filter_map(|attempt| attempt.score))
        .collect();
    let Some(first) = scores.len().checked_sub(OSCILLATION) else {
        return false;
    };
    let judged = trail.attempts.iter().rev().filter(|it| it.score.is_some());
    if judged.take(OSCILLATION - 1).any(|it| it.strategy.is_none()) {
        return false;
    }
    let changes: Vec<f64> = scores[first..].windows(2).map(|w| w[1] - w[0]).collect();
    changes
        .iter()
        .all(|change| change.abs() >= threshold.max(SAME) - SAME / 2.0)
        && changes
            .windows(2)
            .all(|w| w[0].signum() * w[1].signum() < 0.0)
        && trail
            .attempts
            .iter()
            .filter(|attempt| attempt.score.is_some())
            .rev()
            .take(without_gain)
            .all(|attempt| !attempt.is_gain())
}

/// No better draft: none of the last `window` attempts brought a gain, including rejected replies.
fn plateau(trail: &AttemptHistory, window: usize) -> bool {
    last(trail, window).is_some_and(|attempts| attempts.iter().all(|attempt| !attempt.is_gain()))
}

/// Improvements too small: the last `window` attempts brought a gain, but raised the score by less than
/// `threshold` in total, and none of them was the first to meet the criteria or all required ones. The rule does
/// not apply if the same rise once more would reach `goal`.
fn diminishing(trail: &AttemptHistory, window: usize, threshold: f64, goal: f64) -> bool {
    let Some(attempts) = last(trail, window) else {
        return false;
    };
    let before = trail
        .attempts
        .len()
        .checked_sub(window + 1)
        .map_or(trail.start, |index| trail.attempts[index].best);
    let now = attempts.last().map_or(before, |last| last.best);
    let rise = now - before;
    attempts.iter().any(Attempt::is_gain)
        && !attempts
            .iter()
            .any(|attempt| attempt.outcome == Outcome::TierGain)
        && rise < threshold - SAME
        && now + rise < goal - SAME
}

/// The last `window` attempts, if there are as many.
fn last(trail: &AttemptHistory, window: usize) -> Option<&[Attempt]> {
    let start = trail.attempts.len().checked_sub(window)?;
    Some(&trail.attempts[start..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The trail of these scores, the first draft's first; the highest so far is the incumbent's.
    fn trail(scores: &[f64]) -> AttemptHistory {
        let mut best = scores[0];
        let attempts = scores[1..]
            .iter()
            .map(|&score| {
                let outcome = if score > best {
                    Outcome::Gain
                } else {
                    Outcome::Nothing
                };
                best = best.max(score);
                Attempt {
                    score: Some(score),
                    outcome,
                    best,
                    strategy: Some(crate::types::Strategy::FullRewrite),
                    ..Attempt::default()
                }
            })
            .collect();
        AttemptHistory {
            start: scores[0],
            attempts,
        }
    }

    #[test]
    fn a_plateau_is_as_many_attempts_without_a_gain() {
        assert!(plateau(&trail(&[0.5, 0.6, 0.6, 0.55]), 2));
        assert!(!plateau(&trail(&[0.5, 0.5, 0.6]), 2));
        assert!(!plateau(&trail(&[0.5, 0.5]), 2));
        assert!(plateau(&trail(&[0.5, 0.5]), 1));
        let mut rejected = trail(&[0.5]);
        rejected.attempts = vec![Attempt::default(); 2];
        assert!(plateau(&rejected, 2));
    }

    #[test]
    fn up_and_down_without_a_trend_is_oscillation() {
        assert!(oscillation(&trail(&[0.5, 0.65, 0.5, 0.65]), 0.05, 2));
        assert!(oscillation(&trail(&[0.7, 0.5, 0.6, 0.4]), 0.05, 2));
        assert!(
            !oscillation(&trail(&[0.5, 0.65, 0.5, 0.65]), 0.05, 3),
            "a gain among the last three"
        );
        assert!(oscillation(&trail(&[0.7, 0.5, 0.65, 0.5]), 0.05, 3));
        assert!(!oscillation(&trail(&[0.5, 0.65, 0.5]), 0.05, 2), "too few");
        assert!(
            !oscillation(&trail(&[0.4, 0.6, 0.5, 0.7]), 0.05, 2),
            "a trend"
        );
        assert!(
            !oscillation(&trail(&[0.5, 0.53, 0.5, 0.53]), 0.05, 2),
            "noise"
        );
        assert!(
            !oscillation(&trail(&[0.5, 0.4, 0.3, 0.4]), 0.05, 2),
            "no turns"
        );
        assert!(
            !oscillation(&trail(&[0.5, 0.5, 0.5, 0.5]), 0.0, 2),
            "no change"
        );
        let mut drawn = trail(&[0.7, 0.5, 0.6, 0.4]);
        drawn.attempts[1].strategy = None;
        assert!(!oscillation(&drawn, 0.05, 2), "a fresh draft among them");
    }

    #[test]
    fn small_rises_are_diminishing_unless_the_goal_is_near() {
        assert!(diminishing(&trail(&[0.5, 0.52, 0.54]), 2, 0.05, 0.8));
        assert!(
            !diminishing(&trail(&[0.5, 0.53, 0.56]), 2, 0.05, 0.8),
            "0.06 together"
        );
        assert!(
            !diminishing(&trail(&[0.5, 0.52]), 2, 0.05, 0.8),
            "one is not two"
        );
        assert!(
            !diminishing(&trail(&[0.75, 0.77, 0.78]), 2, 0.05, 0.8),
            "0.81 is in sight"
        );
        assert!(
            !diminishing(&trail(&[0.5, 0.5, 0.5]), 2, 0.05, 0.8),
            "a plateau, not this"
        );
        assert!(
            !diminishing(&trail(&[0.5, 0.51, 0.52]), 2, 0.0, 0.8),
            "switched off"
        );
        assert!(
            diminishing(&trail(&[0.3, 0.5, 0.52, 0.54]), 2, 0.05, 0.8),
            "only the window counts"
        );
        let mut leap = trail(&[0.5, 0.51, 0.52]);
        leap.attempts[0].outcome = Outcome::TierGain;
        assert!(!diminishing(&leap, 2, 0.05, 0.8));
    }

    #[test]
    fn the_same_text_or_issues_count_only_twice_in_a_row_and_without_a_gain() {
        let mut flat = trail(&[0.5, 0.5, 0.5]);
        assert!(!stable(&flat) && !repeated_issues(&flat));
        flat.attempts[1].similarity = Some(0.981);
        flat.attempts[1].same_issues = true;
        assert!(!stable(&flat) && !repeated_issues(&flat), "only once");
        flat.attempts[0] = flat.attempts[1];
        assert!(stable(&flat) && repeated_issues(&flat));
        flat.attempts[0].outcome = Outcome::Gain;
        assert!(!stable(&flat) && !repeated_issues(&flat));
        flat.attempts[0].outcome = Outcome::Nothing;
        flat.attempts[1].similarity = Some(0.98);
        assert!(!stable(&flat));
        flat.attempts[1].similarity = None;
        assert!(!stable(&flat), "a fresh draft is like no other");
    }

    #[test]
    fn of_several_rules_the_one_that_says_most_is_named() {
        let patient = |window| LoopSettings {
            plateau_iterations: Some(window),
            ..LoopSettings::default()
        };
        let zigzag = trail(&[0.5, 0.65, 0.5, 0.65]);
        assert_eq!(
            converged(&zigzag, &patient(2)),
            Some(ConvergenceReason::Oscillation)
        );
        assert_eq!(
            converged(&zigzag, &patient(3)),
            None,
            "one draft more may help"
        );
        let off = LoopSettings {
            detect_oscillation: Some(false),
            ..patient(2)
        };
        assert_eq!(converged(&zigzag, &off), Some(ConvergenceReason::Plateau));
        let mut same = trail(&[0.5, 0.5, 0.5]);
        for attempt in &mut same.attempts {
            attempt.same_issues = true;
        }
        assert_eq!(
            converged(&same, &patient(2)),
            Some(ConvergenceReason::RepeatedIssues)
        );
        assert_eq!(converged(&same, &patient(3)), None);
        assert_eq!(converged(&trail(&[0.5]), &patient(2)), None);
        assert_eq!(converged(&trail(&[0.5, 0.6]), &patient(2)), None);
    }

    proptest! {
        /// A draft that was clearly better is never the moment to stop.
        #[test]
        fn a_clear_gain_never_stops(
            scores in prop::collection::vec(0.0f64..0.9, 1..8), rise in 0.05f64..0.1,
            window in 1u32..4,
        ) {
            let mut scores = scores;
            let best = scores.iter().copied().fold(0.0, f64::max);
            scores.push(best + rise);
            let settings = LoopSettings { plateau_iterations: Some(window), ..LoopSettings::default() };
            prop_assert_eq!(converged(&trail(&scores), &settings), None);
        }

        /// What came long before does not matter.
        #[test]
        fn only_the_end_of_the_trail_counts(
            early in prop::collection::vec(0.0f64..0.5, 2..20),
            late in prop::collection::vec(0.5f64..1.0, 6..10),
        ) {
            let settings = LoopSettings::default();
            let all: Vec<f64> = early.iter().chain(&late).copied().collect();
            prop_assert_eq!(converged(&trail(&all), &settings), converged(&trail(&late), &settings));
        }
    }
}
