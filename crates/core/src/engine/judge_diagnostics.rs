//! Warnings about judges that are never, or always, satisfied.

use crate::types::{Criteria, Evaluation, RunRecord, Version};

/// This many perfect criteria at once in the first draft are too good to be true.
const ALL_PERFECT: usize = 3;
/// This many judged versions show that a judge cannot be satisfied.
const MANY: usize = 3;
/// After this share of its own issues is fixed, a judge should raise the score.
const MENDED: f64 = 0.7;
/// Scores from here on round to 1.00.
const PERFECT: f64 = 0.995;

/// Warns that the judge may be too lenient: it gives perfect scores for three or more criteria in the first draft,
/// and there is no check next to it.
pub(super) fn undercritical(criteria: &Criteria, record: &RunRecord) -> Option<String> {
    let only_judge = criteria
        .criteria
        .iter()
        .all(|criterion| !criterion.evaluator.is_hard());
    let first = record.versions.first()?.evaluation.as_ref()?;
    let perfect = first.issues.is_empty()
        && first.criteria.len() >= ALL_PERFECT
        && first
            .criteria
            .iter()
            .all(|result| result.score.is_some_and(|score| score >= PERFECT));
    (only_judge && perfect).then(|| {
        "the judge gave the first draft full scores, and nothing else checks it\nhint: add hard checks to the \
         criteria (`regex`, `length`), or use another judge with `--judge-model`"
            .to_owned()
    })
}

/// Says that the judge may never be satisfied, where the criteria were not met, every hard check holds in the best
/// version, and one of these shows that it may be the judge's fault, the strongest first:
/// - the probe: a planted text that is known to be good was not good enough (`harsh` says so);
/// - in three judged versions or more, the spread: the scores of the best version's judgements lie so far apart
///   that some reach the threshold, or the floor of a criterion that is not met;
/// - in as many, that the judge moves the goal: most of the issues that it named are fixed, and yet the score rose
///   by less than `small` from the first version to the best.
pub(super) fn overcritical(
    criteria: &Criteria,
    record: &RunRecord,
    small: f64,
    harsh: Option<String>,
) -> Option<String> {
    let best = record.best()?;
    let evaluation = best.evaluation.as_ref()?;
    if record.success || evaluation.satisfactory || !hard_checks_hold(criteria, evaluation) {
        return None;
    }
    let judged = record.versions.iter().filter_map(Version::rank).count();
    let doubt = || {
        (judged >= MANY)
            .then(|| torn(criteria, evaluation).or_else(|| moved_goal(record, best, small)))
            .flatten()
    };
    let says = harsh.or_else(doubt)?;
    Some(format!(
        "the judge may be too strict: {says}\nhint: lower `--threshold`, make the criteria more specific, or \
         use another judge with `--judge-model`"
    ))
}

/// That several judgements of one draft contradict each other about whether it is good enough, in words.
fn torn(criteria: &Criteria, evaluation: &Evaluation) -> Option<String> {
    let on_both_sides = |score: f64, spread: Option<f64>, bar: f64| {
        score < bar && spread.is_some_and(|spread| score + spread / 2.0 >= bar)
    };
    let overall = evaluation.overall_score?;
    if on_both_sides(overall, evaluation.spread, criteria.threshold) {
        let says = "repeated verdicts on the best draft lie on both sides of the threshold";
        return Some(says.to_owned());
    }
    let torn = criteria
        .criteria
        .iter()
        .zip(&evaluation.criteria)
        .filter(|(criterion, result)| !criterion.evaluator.is_hard() && !result.passed)
        .find(|(_, result)| {
            let score = result.score;
            score.is_some_and(|score| on_both_sides(score, result.spread, result.threshold))
        });
    torn.map(|(criterion, _)| {
        format!(
            "repeated verdicts on `{}` of the best draft lie on both sides of its floor",
            criterion.name
        )
    })
}

/// That what the judge named is fixed and the score has not risen for it, in words.
fn moved_goal(record: &RunRecord, best: &Version, small: f64) -> Option<String> {
    let issues = record.issues()?;
    let rise = best.score()? - record.versions.first()?.score()?;
    (issues.share_resolved? >= MENDED && rise < small).then(|| {
        format!(
            "{} of {} issues are fixed, but the score has hardly improved",
            issues.resolved, issues.found
        )
    })
}

/// Whether all criteria without a judge are met.
fn hard_checks_hold(criteria: &Criteria, evaluation: &Evaluation) -> bool {
    criteria
        .criteria
        .iter()
        .zip(&evaluation.criteria)
        .all(|(criterion, result)| !criterion.evaluator.is_hard() || result.passed)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::types::{
        Criterion, CriterionResult, Evaluator, LengthConfig, LengthUnit, LlmConfig, LoopSettings,
        Status, TokenUsage,
    };

    fn criteria(judged: usize, hard: bool) -> Criteria {
        let length = Evaluator::Length(LengthConfig {
            unit: LengthUnit::Words,
            min: Some(1),
            max: None,
        });
        let evaluators = std::iter::repeat_n(Evaluator::Llm(LlmConfig::default()), judged)
            .chain(hard.then_some(length));
        Criteria {
            name: "test".to_owned(),
            description: None,
            threshold: 0.8,
            loop_settings: LoopSettings::default(),
            judge_settings: crate::types::JudgeSettings::default(),
            probe: crate::types::ProbeTexts::default(),
            criteria: evaluators
                .enumerate()
                .map(|(number, evaluator)| Criterion {
                    name: format!("c{number}"),
                    description: String::new(),
                    weight: 1.0,
                    threshold: 0.7,
                    required: false,
                    evaluator,
                })
                .collect(),
        }
    }

    /// A run whose versions got these scores in everything.
    fn record(criteria: &Criteria, scores: &[f64]) -> RunRecord {
        let mut record = RunRecord::default();
        for (iteration, &score) in (1..).zip(scores) {
            record.versions.push(Version {
                iteration,
                output: String::new(),
                based_on: iteration.checked_sub(1).filter(|base| *base > 0),
                strategy: None,
                edits: None,
                improvements_applied: Vec::new(),
                evaluation: Some(Evaluation {
                    overall_score: Some(score),
                    criteria: criteria
                        .criteria
                        .iter()
                        .map(|criterion| CriterionResult {
                            name: criterion.name.clone(),
                            evaluator: criterion.evaluator.kind().to_owned(),
                            score: Some(score),
                            threshold: 0.7,
                            passed: criterion.evaluator.is_hard() || score >= 0.7,
                            required: false,
                            status: Status::Ok,
                            evidence: None,
                            value: None,
                            spread: None,
                            cached: false,
                        })
                        .collect(),
                    ..Evaluation::default()
                }),
                timestamp: Timestamp::UNIX_EPOCH,
                token_usage: TokenUsage::default(),
                duration_ms: 0,
            });
        }
        record
    }

    #[test]
    fn perfection_at_once_is_suspicious_where_nothing_else_checks() {
        let says = |judged, hard, score| {
            let criteria = criteria(judged, hard);
            undercritical(&criteria, &record(&criteria, &[score])).is_some()
        };
        assert!(says(3, false, 1.0));
        assert!(!says(3, false, 0.85), "good is not perfect");
        assert!(!says(3, true, 1.0), "a hard check stands beside the judge");
        assert!(!says(1, false, 1.0), "one criterion may well be met");
    }

    #[test]
    fn a_judge_who_moves_the_goal_is_never_satisfied() {
        let criteria = criteria(1, true);
        let with = |scores: &[f64], open: &[&[u32]]| {
            let mut record = record(&criteria, scores);
            for (iteration, ids) in (1..).zip(open) {
                record
                    .open_issues
                    .insert(iteration, ids.iter().copied().collect());
            }
            overcritical(&criteria, &record, 0.05, None)
        };
        let moving: [&[u32]; 3] = [&[1, 2], &[3, 4], &[5]];
        let said = with(&[0.6, 0.6, 0.61], &moving).unwrap();
        assert!(said.contains("4 of 5 issues"), "{said}");
        assert_eq!(
            with(&[0.6, 0.6, 0.7], &moving),
            None,
            "he does say that it is better"
        );
        let unmended: [&[u32]; 3] = [&[1, 2], &[1, 2], &[1, 2]];
        assert_eq!(with(&[0.6, 0.6, 0.61], &unmended), None, "he is right");
        assert_eq!(with(&[0.6, 0.61], &moving[..2]), None, "too early to say");
    }

    #[test]
    fn a_judge_who_contradicts_himself_is_named() {
        let criteria = criteria(1, true);
        let mut record = record(&criteria, &[0.6, 0.7, 0.75]);
        let says = |record: &RunRecord| overcritical(&criteria, record, 0.05, None);
        assert_eq!(says(&record), None);
        record.versions[2].evaluation.as_mut().unwrap().spread = Some(0.2);
        assert!(
            says(&record)
                .unwrap()
                .contains("both sides of the threshold")
        );
        // A hard check that does not hold is reason enough to fail.
        record.versions[2].evaluation.as_mut().unwrap().criteria[1].passed = false;
        assert_eq!(says(&record), None);
    }

    #[test]
    fn a_judge_who_is_torn_about_one_criterion_is_named() {
        let criteria = criteria(2, true);
        let mut record = record(&criteria, &[0.85, 0.86, 0.87]);
        let result = &mut record.versions[2].evaluation.as_mut().unwrap().criteria[1];
        (result.score, result.passed) = (Some(0.65), false);
        let says = |record: &RunRecord| overcritical(&criteria, record, 0.01, None);
        assert_eq!(says(&record), None);
        let torn = |record: &mut RunRecord, spread| {
            let evaluation = record.versions[2].evaluation.as_mut().unwrap();
            evaluation.criteria[1].spread = Some(spread);
        };
        torn(&mut record, 0.05);
        assert_eq!(says(&record), None, "all of them are below the floor");
        torn(&mut record, 0.2);
        let said = says(&record).unwrap();
        assert!(
            said.contains("`c1`") && said.contains("its floor"),
            "{said}"
        );
    }

    #[test]
    fn a_judge_for_whom_good_texts_are_not_good_enough_is_named_at_once() {
        let criteria = criteria(1, true);
        let harsh = || Some("a planted good text has the score 0.30".to_owned());
        let mut record = record(&criteria, &[0.6]);
        let said = overcritical(&criteria, &record, 0.05, harsh()).unwrap();
        assert!(said.contains("too strict: a planted good text"), "{said}");
        assert!(said.contains("hint: "), "{said}");
        // Whose draft is good enough, or fails a hard check, has no reason to complain.
        record.success = true;
        assert_eq!(overcritical(&criteria, &record, 0.05, harsh()), None);
        record.success = false;
        record.versions[0].evaluation.as_mut().unwrap().criteria[1].passed = false;
        assert_eq!(overcritical(&criteria, &record, 0.05, harsh()), None);
    }
}
