use super::compare::nothing_before;
use super::judge::JudgeModel;
use super::judge::pairwise::{Comparison, ComparisonError, Pair, Preference, prefer};
use super::subject::Subject;
use super::{CheckIssue, Finding};
use crate::model::{CallObserver, ModelError};
use crate::prompt::Prompts;
use crate::types::{CompareTarget, Criterion, IssueType, Status, TIE_SCORE};

/// The `compare` evaluator with the method `pairwise`: a judge decides which of two texts is
/// better.
pub(super) struct PreferenceCheck {
    to: CompareTarget,
    judge: JudgeModel,
}

impl PreferenceCheck {
    pub(super) fn new(to: CompareTarget, judge: JudgeModel) -> Self {
        Self { to, judge }
    }

    /// Asks which of the two texts better meets this criterion, or all criteria if it has no
    /// description. Skips a first draft and a draft that equals the other text.
    ///
    /// # Errors
    /// If the model fails permanently.
    pub(super) async fn check(
        &self,
        criterion: &Criterion,
        prompts: &Prompts,
        subject: &Subject<'_>,
        observer: &dyn CallObserver,
    ) -> Result<Finding, ModelError> {
        let Some(other) = self.to.text(subject.prior) else {
            return Ok(nothing_before());
        };
        let weigh =
            |comparison| comparison_finding(&comparison, self.to.name(), criterion.threshold);
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

/// Returns the finding for a comparison with the other text. The judge saw the draft first as A,
/// then as B.
fn comparison_finding(comparison: &Comparison, other: &str, floor: f64) -> Finding {
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
    // A tie that reaches the floor leaves nothing to fix.
    if comparison.preference == Preference::First || score >= floor && score > 0.0 {
        return finding;
    }
    let issue = CheckIssue::new(
        IssueType::Incorrect,
        format!("a judge who compared this text (A) with {other} (B) finds it {verdict}: {forth}"),
    )
    .fix(format!("fix what the judge says of this text, A: {forth}"));
    finding.with_issues([issue])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding_for(preference: Preference, floor: f64) -> Finding {
        let comparison = Comparison {
            preference,
            reasons: ["A is vague.".to_owned(), "B is vague.".to_owned()],
            cached: true,
        };
        comparison_finding(&comparison, "the reference text", floor)
    }

    #[test]
    fn only_what_falls_short_of_the_floor_is_a_fault() {
        let scores = |floor| {
            [Preference::First, Preference::Tie, Preference::Second].map(|preference| {
                let finding = finding_for(preference, floor);
                (finding.score, finding.issues.len())
            })
        };
        let (better, tie, worse) = (Some(1.0), Some(TIE_SCORE), Some(0.0));
        assert_eq!(scores(0.7), [(better, 0), (tie, 0), (worse, 1)]);
        assert_eq!(scores(1.0), [(better, 0), (tie, 1), (worse, 1)]);
        assert_eq!(scores(0.0), [(better, 0), (tie, 0), (worse, 1)]);
    }

    #[test]
    fn the_reasons_of_both_orders_are_the_evidence() {
        let finding = finding_for(Preference::Second, 0.7);
        assert_eq!(
            finding.evidence,
            "worse than the reference text. With the draft as A: A is vague. With the draft as B: B is vague."
        );
        assert!(finding.cached);
        assert_eq!(
            finding.issues[0].description,
            "a judge who compared this text (A) with the reference text (B) finds it worse than the reference \
             text: A is vague."
        );
        assert_eq!(
            finding.issues[0].suggested_fix.as_deref(),
            Some("fix what the judge says of this text, A: A is vague.")
        );
    }
}
