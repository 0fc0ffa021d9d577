use super::compare::nothing_before;
use super::judge::JudgeModel;
use super::judge::pairwise::{Comparison, ComparisonError, Pair, Preference, prefer};
use super::subject::Subject;
use super::{Fault, Finding};
use crate::model::{CallObserver, ModelError};
use crate::prompt::Prompts;
use crate::types::{Against, Criterion, IssueType, Status, TIE_SCORE};

/// The `compare` evaluator's method `pairwise`: a judge says which of two texts is better.
pub(super) struct PreferenceCheck {
    to: Against,
    judge: JudgeModel,
}

impl PreferenceCheck {
    pub(super) fn new(to: Against, judge: JudgeModel) -> Self {
        Self { to, judge }
    }

    /// Asks which of the two meets this criterion better; all criteria, if it says nothing of its own. A first
    /// draft, and one that is the other text, are not asked about.
    ///
    /// # Errors
    /// If the model fails for good.
    pub(super) async fn check(
        &self,
        criterion: &Criterion,
        prompts: &Prompts,
        subject: &Subject<'_>,
        observer: &CallObserver<'_>,
    ) -> Result<Finding, ModelError> {
        let Some(other) = self.to.text(subject.prior) else {
            return Ok(nothing_before());
        };
        let weigh = |comparison| weighed(&comparison, self.to.name(), criterion.threshold);
        if subject.draft.trim() == other.trim() {
            let same = || "the two texts are the same".to_owned();
            return Ok(weigh(Comparison {
                preference: Preference::Tie,
                reasons: [same(), same()],
                cached: false,
            }));
        }
        let pair = Pair {
            first: subject.draft,
            second: other,
            criterion: (!criterion.description.trim().is_empty())
                .then_some(criterion.name.as_str()),
            attempt: subject.attempt,
        };
        match prefer(&self.judge, prompts, &pair, observer).await {
            Ok(comparison) => Ok(weigh(comparison)),
            Err(ComparisonError::Unparsed(why)) => Ok(Finding::none(Status::Unparsed, why)),
            Err(ComparisonError::Model(error)) => Err(error),
        }
    }
}

/// What a comparison of a draft with this other text comes to. The judge saw the draft as A first, then as B.
fn weighed(comparison: &Comparison, other: &str, floor: f64) -> Finding {
    let (score, verdict) = match comparison.preference {
        Preference::First => (1.0, format!("better than {other}")),
        Preference::Tie => (TIE_SCORE, format!("neither better nor worse than {other}")),
        Preference::Second => (0.0, format!("worse than {other}")),
    };
    let [forth, back] = comparison
        .reasons
        .each_ref()
        .map(|reason| match &reason[..] {
            "" => "no reason given",
            reason => reason,
        });
    let evidence = if forth == back {
        format!("{verdict}: {forth}")
    } else {
        format!("{verdict}. With the draft as A: {forth} With the draft as B: {back}")
    };
    let finding = Finding {
        cached: comparison.cached,
        ..Finding::graded(score, evidence)
    };
    // A tie that is enough leaves nothing to fix.
    if comparison.preference == Preference::First || score >= floor && score > 0.0 {
        return finding;
    }
    let fault = Fault::new(
        IssueType::Incorrect,
        format!("a judge who compared this text (A) with {other} (B) finds it {verdict}: {forth}"),
    )
    .fix(format!("fix what the judge says of this text, A: {forth}"));
    finding.with_faults([fault])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(preference: Preference, floor: f64) -> Finding {
        let comparison = Comparison {
            preference,
            reasons: ["A is vague.".to_owned(), "B is vague.".to_owned()],
            cached: true,
        };
        weighed(&comparison, "the reference text", floor)
    }

    #[test]
    fn only_what_falls_short_of_the_floor_is_a_fault() {
        let scores = |floor| {
            [Preference::First, Preference::Tie, Preference::Second].map(|preference| {
                let finding = said(preference, floor);
                (finding.score, finding.faults.len())
            })
        };
        let (better, tie, worse) = (Some(1.0), Some(TIE_SCORE), Some(0.0));
        assert_eq!(scores(0.7), [(better, 0), (tie, 0), (worse, 1)]);
        assert_eq!(scores(1.0), [(better, 0), (tie, 1), (worse, 1)]);
        assert_eq!(scores(0.0), [(better, 0), (tie, 0), (worse, 1)]);
    }

    #[test]
    fn the_reasons_of_both_orders_are_the_evidence() {
        let finding = said(Preference::Second, 0.7);
        assert_eq!(
            finding.evidence,
            "worse than the reference text. With the draft as A: A is vague. With the draft as B: B is vague."
        );
        assert!(finding.cached);
        assert_eq!(
            finding.faults[0].description,
            "a judge who compared this text (A) with the reference text (B) finds it worse than the reference \
             text: A is vague."
        );
        assert_eq!(
            finding.faults[0].suggested_fix.as_deref(),
            Some("fix what the judge says of this text, A: A is vague.")
        );
    }
}
