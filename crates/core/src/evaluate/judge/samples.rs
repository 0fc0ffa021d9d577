//! Combines several verdicts into one.

use super::Judgement;
use super::parse_verdict::ParsedVerdict;
use super::runner::SampleResult;
use crate::evaluate::Finding;
use crate::types::Status;

/// Scores that differ by less are equal.
const SAME: f64 = 1e-9;

/// Takes the median of each criterion's scores, with the reasons and issues of the verdict closest
/// to it. Returns no verdict if fewer than half of the verdicts could be parsed.
pub(super) fn combine(criteria: usize, samples_taken: &[SampleResult]) -> Judgement {
    let verdicts: Vec<&ParsedVerdict> = samples_taken
        .iter()
        .filter_map(|samples_taken| samples_taken.verdict.as_ref().ok())
        .collect();
    let medians: Vec<f64> = (0..criteria)
        .map(|place| median(verdicts.iter().map(|verdict| score(verdict, place))))
        .collect();
    let distance = |verdict: &ParsedVerdict| -> f64 {
        let scores = medians.iter().enumerate();
        scores
            .map(|(place, median)| (score(verdict, place) - median).abs())
            .sum()
    };
    let sum =
        |verdict: &ParsedVerdict| -> f64 { (0..criteria).map(|place| score(verdict, place)).sum() };
    // Between two equally close verdicts, take the stricter one, because it names the issues.
    let order = |a: &ParsedVerdict, b: &ParsedVerdict| {
        let difference = distance(a) - distance(b);
        if difference.abs() < SAME {
            sum(a).total_cmp(&sum(b))
        } else {
            difference.total_cmp(&0.0)
        }
    };
    let typical = verdicts
        .iter()
        .min_by(|a, b| order(a, b))
        .filter(|_| verdicts.len() * 2 >= samples_taken.len());
    let Some(typical) = typical else {
        let why = samples_taken
            .iter()
            .find_map(|samples_taken| samples_taken.verdict.as_ref().err());
        let (status, problem) = why
            .cloned()
            .unwrap_or((Status::Failed, "the judge was not asked".to_owned()));
        return Judgement {
            findings: vec![Finding::none(status, problem); criteria],
            issues: Vec::new(),
            confidence: None,
        };
    };
    let findings = medians
        .iter()
        .enumerate()
        .zip(&typical.answers)
        .map(|((place, median), answer)| Finding {
            valid: answer.valid,
            samples: samples_taken
                .iter()
                .map(|samples_taken| samples_taken.verdict.as_ref().ok().map(|v| score(v, place)))
                .collect(),
            cached: samples_taken
                .iter()
                .all(|samples_taken| samples_taken.cached),
            ..Finding::graded(*median, answer.reason.clone())
        })
        .collect();
    Judgement {
        findings,
        issues: typical.issues.clone(),
        confidence: typical.confidence,
    }
}

fn score(verdict: &ParsedVerdict, place: usize) -> f64 {
    verdict
        .answers
        .get(place)
        .map_or(0.0, |answer| answer.score)
}

/// Returns the median: the middle value, or the mean of the two middle ones. 0 for an empty list.
fn median(scores: impl Iterator<Item = f64>) -> f64 {
    let mut scores: Vec<f64> = scores.collect();
    scores.sort_by(f64::total_cmp);
    let middle = scores.len() / 2;
    match scores.get(middle) {
        None => 0.0,
        Some(upper) if scores.len().is_multiple_of(2) => f64::midpoint(scores[middle - 1], *upper),
        Some(middle) => *middle,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse_verdict::CriterionVerdict;
    use super::*;

    fn samples_taken(scores: &[f64], reason: &str) -> SampleResult {
        SampleResult {
            verdict: Ok(ParsedVerdict {
                answers: scores
                    .iter()
                    .map(|score| CriterionVerdict {
                        score: *score,
                        valid: None,
                        reason: reason.to_owned(),
                    })
                    .collect(),
                issues: Vec::new(),
                confidence: Some(scores[0]),
                has_probabilities: false,
            }),
            cached: false,
        }
    }

    fn unread() -> SampleResult {
        SampleResult {
            verdict: Err((Status::Unparsed, "no JSON".to_owned())),
            cached: false,
        }
    }

    #[test]
    fn the_median_counts_and_the_nearest_verdict_speaks() {
        let samples_taken = [
            samples_taken(&[0.0, 0.3], "low"),
            samples_taken(&[0.85, 0.6], "middle"),
            samples_taken(&[1.0, 0.6], "high"),
        ];
        let combined = combine(2, &samples_taken);
        assert_eq!(combined.findings[0].score, Some(0.85));
        assert_eq!(combined.findings[1].score, Some(0.6));
        assert_eq!(combined.findings[0].evidence, "middle");
        assert_eq!(combined.confidence, Some(0.85));
        assert_eq!(
            combined.findings[0].samples,
            [Some(0.0), Some(0.85), Some(1.0)]
        );
    }

    #[test]
    fn half_of_the_verdicts_must_be_readable() {
        let one_of_two = combine(1, &[unread(), samples_taken(&[0.6], "")]);
        assert_eq!(one_of_two.findings[0].score, Some(0.6));
        let one_of_three = combine(1, &[unread(), samples_taken(&[0.6], ""), unread()]);
        assert_eq!(one_of_three.findings[0].status, Status::Unparsed);
        assert_eq!(one_of_three.findings[0].evidence, "no JSON");
        assert_eq!(combine(1, &[]).findings[0].status, Status::Failed);
    }

    #[test]
    fn only_what_was_remembered_throughout_is_cached() {
        let cached = SampleResult {
            cached: true,
            ..samples_taken(&[1.0], "")
        };
        assert!(combine(1, &[cached.clone(), cached.clone()]).findings[0].cached);
        assert!(!combine(1, &[cached, samples_taken(&[1.0], "")]).findings[0].cached);
    }

    proptest! {
        #[test]
        fn the_median_has_as_many_above_as_below(scores in prop::collection::vec(0.0f64..=1.0, 1..17)) {
            let middle = median(scores.iter().copied());
            let above = scores.iter().filter(|score| **score > middle).count();
            let below = scores.iter().filter(|score| **score < middle).count();
            prop_assert!(above * 2 <= scores.len() && below * 2 <= scores.len());
        }
    }
}
