//! Tests whether a judge can tell good from bad, by letting it judge texts of known quality.
//!
//! The texts come from the criteria (`[probe]`); each built-in set has a pair. Few-shot examples
//! are not used, because the judge sees their verdicts. A set without a good text is probed with a
//! meaningless text only, which must not reach the floors. Only scores are probed; the result
//! applies to comparisons as well.
//! for the judge's comparisons, too.

use super::{Judge, JudgeCase};
use crate::model::{CallObserver, ModelError};
use crate::prompt::Prompts;
use crate::types::{Criteria, Task};

/// The bad text for criteria without their own: no sentence has a meaning.
const WITHOUT_SENSE: &str = "\
Seventeen of the under purple, because window. Therefore the, as was not shown, eleven spoons eleven. \
Quickly table table, however asdf: blue is the opposite of Tuesday and so on and so on.

TODO lorem. Which whereas Whereas it had. In conclusion, banana.";

/// The minimum by which a good text's score must exceed a bad one's: almost one step of the scale.
const LEAST_DIFFERENCE: f64 = 0.2;

/// The maximum share of the total weight for a judge that failed the probe, if there are other
/// evaluators.
const CAPPED_SHARE: f64 = 0.25;

/// The judge's scores for the probe texts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Probe {
    /// The mean score of the good text, or `None` without a good text or a parseable verdict.
    good: Option<f64>,
    /// The mean score of the bad text, or `None` without a parseable verdict.
    bad: Option<f64>,
    /// The mean of the floors.
    floor: f64,
}

impl Probe {
    /// Lets the judge score the probe texts like any other draft.
    pub(super) async fn run(
        judge: &Judge,
        criteria: &Criteria,
        prompts: &Prompts,
        observer: &dyn CallObserver,
    ) -> Result<Self, ModelError> {
        let texts = &criteria.probe;
        let task = Task::new(texts.prompt.as_deref().unwrap_or_default());
        let prompts = prompts.for_task(&task, criteria);
        let mean = async |text: &str| -> Result<Option<f64>, ModelError> {
            let case = JudgeCase {
                prompts: &prompts,
                draft: text,
                attempt: 0,
                observer,
            };
            let judgement = judge.judge(&case, |_| false).await?;
            let scores: Option<Vec<f64>> = judgement.findings.iter().map(|f| f.score).collect();
            Ok(scores.and_then(|scores| judge.mean(&scores)))
        };
        let bad = mean(texts.bad.as_deref().unwrap_or(WITHOUT_SENSE)).await?;
        let good = match &texts.good {
            Some(text) => mean(text).await?,
            None => None,
        };
        let floors: Vec<f64> = judge.questions().map(|question| question.floor).collect();
        Ok(Self {
            good,
            bad,
            floor: judge.mean(&floors).unwrap_or_default(),
        })
    }

    /// Returns a message if the judge rejects the good text. `None` if it accepts it or there is
    /// none.
    pub(super) fn over_strict(&self) -> Option<String> {
        let (good, floor) = (self.good?, self.floor);
        (good < floor).then(|| {
            format!(
                "a planted good text has the score {good:.2} from it, and {floor:.2} is required"
            )
        })
    }

    /// Returns what is wrong with the judge, or `None` if it can tell good from bad as far as
    /// probed.
    pub(super) fn problem(&self) -> Option<String> {
        let floor = self.floor;
        match (self.good, self.bad) {
            (Some(good), Some(bad)) if good - bad < LEAST_DIFFERENCE => Some(format!(
                "it is blind: a planted good text has the score {good:.2}, a planted bad one {bad:.2}"
            )),
            (_, Some(bad)) if bad >= floor => Some(format!(
                "it is too lenient: a planted bad text has the score {bad:.2}, and {floor:.2} is enough"
            )),
            (Some(good), _) if good < floor => Some(format!(
                "it is too harsh: a planted good text has the score {good:.2}, and {floor:.2} is required"
            )),
            (_, None) => Some("its verdict on a planted text could not be read".to_owned()),
            _ => None,
        }
    }
}

/// Returns the factor for the weight of each criterion of a failed judge, so that together they
/// have at most [`CAPPED_SHARE`] of the total. 1 if there are no other evaluators, because there is
/// nothing else to rely on.
pub(super) fn capped(criteria: &Criteria) -> f64 {
    let (mut judged, mut hard) = (0.0, 0.0);
    for criterion in &criteria.criteria {
        if criterion.evaluator.is_hard() {
            hard += criterion.weight;
        } else {
            judged += criterion.weight;
        }
    }
    if hard > 0.0 && judged > 0.0 {
        (hard * CAPPED_SHARE / (1.0 - CAPPED_SHARE) / judged).min(1.0)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_that_cannot_tell_good_from_bad_is_found() {
        let problem = |good, bad| {
            let probe = Probe {
                good,
                bad,
                floor: 0.7,
            };
            probe.problem().unwrap_or_default()
        };
        assert_eq!(problem(Some(1.0), Some(0.0)), "");
        assert_eq!(problem(None, Some(0.3)), "");
        assert!(problem(Some(0.85), Some(0.85)).contains("blind"));
        assert!(problem(Some(0.3), Some(1.0)).contains("blind"));
        assert!(problem(Some(1.0), Some(0.75)).contains("lenient"));
        assert!(problem(None, Some(0.7)).contains("lenient"));
        assert!(problem(Some(0.6), Some(0.0)).contains("harsh"));
        assert!(problem(Some(1.0), None).contains("could not be read"));
    }

    #[test]
    fn a_judge_for_whom_a_good_text_is_not_good_enough_is_harsh() {
        let is_harsh = |good, bad| {
            let probe = Probe {
                good,
                bad,
                floor: 0.7,
            };
            probe.over_strict().is_some()
        };
        assert!(is_harsh(Some(0.6), Some(0.0)));
        assert!(is_harsh(Some(0.6), Some(0.55)), "blind and harsh");
        assert!(!is_harsh(Some(0.7), Some(0.0)));
        assert!(!is_harsh(None, Some(0.0)), "nobody has tried");
    }

    #[test]
    fn a_failed_judge_has_a_quarter_of_the_weight_where_others_speak() {
        let criteria = |text: &str| crate::criteria::parse(text, "c.toml").unwrap();
        let judged = "[[criteria]]\nname = 'a'\nweight = 3\n[[criteria]]\nname = 'b'\nweight = 3\n";
        let hard = "[[criteria]]\nname = 'c'\nevaluator = 'length'\nmax = 9\nweight = 2\n";
        let factor = capped(&criteria(&format!("{judged}{hard}")));
        let share = 6.0 * factor / (6.0 * factor + 2.0);
        assert!((share - CAPPED_SHARE).abs() < 1e-9, "{share}");
        assert!((capped(&criteria(judged)) - 1.0).abs() < 1e-9);
        let light = "[[criteria]]\nname = 'a'\nweight = 0.1\n";
        assert!((capped(&criteria(&format!("{light}{hard}"))) - 1.0).abs() < 1e-9);
    }
}
