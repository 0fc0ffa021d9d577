//! Judges that are never, or always, satisfied (seed 003 §4.4): what a run shows of them, in words for people.

use crate::types::{Criteria, Evaluation, RunRecord};

/// So many criteria that are all perfect at once, in the first draft, are too good to be true.
const ALL_PERFECT: usize = 3;
/// So many judged versions show that a judge is not to be satisfied.
const MANY: usize = 3;
/// A judge who has seen this share of his own issues mended ought to say that the text is better.
const MENDED: f64 = 0.7;
/// A score is perfect that rounds to 1.00.
const PERFECT: f64 = 0.995;

/// Says that the judge may be too easily satisfied: he finds nothing but perfection in the first draft, by three
/// criteria or more, and no hard check stands beside him.
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
        "the judge finds the first draft perfect in everything, and nothing else checks it\n\
         hint: add hard checks to the criteria (`regex`, `length`), or let another model judge with \
         `--judge-model`"
            .to_owned()
    })
}

/// Says that the judge may never be satisfied, where the criteria were not met in three judged versions or more,
/// every hard check holds in the best one, and either
/// - the judge contradicts himself: the scores of the best version's judgements lie so far apart that some
///   reach the threshold, or
/// - he moves the goal: most of the issues that he named are mended, and yet the score rose by less than
///   `small` from the first version to the best.
pub(super) fn overcritical(criteria: &Criteria, record: &RunRecord, small: f64) -> Option<String> {
    let judged = record
        .versions
        .iter()
        .filter(|version| version.rank().is_some())
        .count();
    let best = record.best()?;
    let evaluation = best.evaluation.as_ref()?;
    if record.success
        || evaluation.satisfactory
        || judged < MANY
        || !hard_checks_hold(criteria, evaluation)
    {
        return None;
    }
    let score = evaluation.overall_score?;
    let says = if evaluation.spread.is_some_and(|spread| {
        score < criteria.threshold && score + spread / 2.0 >= criteria.threshold
    }) {
        "the judge's own scores for the best draft lie on both sides of the threshold".to_owned()
    } else {
        let issues = record.issues()?;
        let rise = score - record.versions.first()?.score()?;
        if issues.share_resolved? < MENDED || rise >= small {
            return None;
        }
        format!(
            "{} of the {} issues that were named are mended, but the score has hardly risen",
            issues.resolved, issues.found
        )
    };
    Some(format!(
        "the judge seems never satisfied: {says}\n\
         hint: lower the bar with `--threshold`, make the criteria more definite, or let another model judge with \
         `--judge-model`"
    ))
}

/// Whether everything that a model has no say in is met.
fn hard_checks_hold(criteria: &Criteria, evaluation: &Evaluation) -> bool {
    criteria
        .criteria
        .iter()
        .zip(&evaluation.criteria)
        .all(|(criterion, result)| !criterion.evaluator.is_hard() || result.passed)
}
