//! A rough estimate of the calls and tokens of a run.

use crate::evaluate::verdict_calls;
use crate::model::Message;
use crate::model::ollama::estimate_tokens;
use crate::prompt::{Prompts, Rubric};
use crate::types::{CompareConfig, Criteria, Criterion, Evaluator};

/// Tokens of the feedback in a revision prompt.
const FEEDBACK: u64 = 300;

/// Tokens of a verdict: a fixed part, and a part for each criterion.
const VERDICT: u64 = 120;
const PER_CRITERION: u64 = 80;

/// Tokens of the reply to a comparison.
const CHOICE: u64 = 80;

/// The judge compares two drafts in both orders.
const ORDERS: u64 = 2;

/// The input of an estimate.
pub(super) struct Work {
    pub(super) prompts: Prompts,
    /// Tokens of one draft.
    pub(super) draft: u64,
    /// How many drafts are written from scratch or corrected.
    pub(super) drafted: u32,
    /// How many first drafts are judged.
    pub(super) judged: u32,
    /// The minimum and maximum number of revisions.
    pub(super) revisions: (u32, u32),
}

/// The minimum and maximum of each figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Estimate {
    pub(super) calls: (u64, u64),
    /// Input tokens.
    pub(super) read: (u64, u64),
    /// Output tokens.
    pub(super) written: (u64, u64),
}

/// Calls, input tokens, output tokens.
#[derive(Clone, Copy, Default)]
struct Cost(u64, u64, u64);

impl Cost {
    fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0, self.1 + other.1, self.2 + other.2)
    }

    fn times(self, number: u32) -> Self {
        let number = u64::from(number);
        Self(self.0 * number, self.1 * number, self.2 * number)
    }
}

impl Estimate {
    /// Estimates this work. `first` is the size of the writer's first prompt in tokens.
    pub(super) fn of(criteria: &Criteria, work: &Work, first: u64) -> Self {
        let draft = work.draft;
        let verdict = verdict(criteria, work);
        let begin = Cost(1, first, draft)
            .times(work.drafted)
            .plus(verdict.times(work.judged))
            .plus(probe(criteria, work));
        let task = task(work);
        let revision = Cost(1, task + draft + FEEDBACK, draft).plus(verdict);
        // At the end, the best draft may be compared with the first. Each verdict may be requested twice.
        let (fewest, most) = work.revisions;
        let compared = if verdict.0 > 0 && most > 0 {
            Cost(ORDERS, ORDERS * (task + 2 * draft), ORDERS * CHOICE)
        } else {
            Cost::default()
        };
        let least = begin.plus(revision.times(fewest));
        let confirmed = match criteria.judge_settings.margin() {
            margin if margin > 0.0 => verdict.times(work.judged.saturating_add(most)),
            _ => Cost::default(),
        };
        let most = begin
            .plus(revision.times(most))
            .plus(compared)
            .plus(confirmed);
        Self {
            calls: (least.0, most.0),
            read: (least.1, most.1),
            written: (least.2, most.2),
        }
    }

    /// Adds another estimate.
    pub(super) fn add(&mut self, other: &Self) {
        let add = |a: &mut (u64, u64), b: (u64, u64)| *a = (a.0 + b.0, a.1 + b.1);
        add(&mut self.calls, other.calls);
        add(&mut self.read, other.read);
        add(&mut self.written, other.written);
    }
}

/// Returns the number of judge calls for one draft.
pub(super) fn verdicts(criteria: &Criteria) -> u64 {
    let asked = verdict_calls(criteria);
    let asked: u64 = asked.iter().map(|call| u64::from(call.samples)).sum();
    asked + comparisons(criteria)
}

/// Returns the number of comparison calls for one draft.
fn comparisons(criteria: &Criteria) -> u64 {
    let compares = |criterion: &&Criterion| {
        matches!(
            criterion.evaluator,
            Evaluator::Compare(CompareConfig::Pairwise { .. })
        )
    };
    ORDERS * criteria.criteria.iter().filter(compares).count() as u64
}

/// Returns the cost of judging one draft.
fn verdict(criteria: &Criteria, work: &Work) -> Cost {
    let mut cost = Cost::default();
    for call in verdict_calls(criteria) {
        // A prompt that cannot be rendered costs no call.
        let Ok(messages) = work
            .prompts
            .evaluate("", &Rubric::new(&call.criteria), true)
        else {
            continue;
        };
        let written = VERDICT + PER_CRITERION * call.criteria.len() as u64;
        cost = cost.plus(Cost(1, tokens(&messages) + work.draft, written).times(call.samples));
    }
    let compared = comparisons(criteria);
    let read = tokens(&work.prompts.compare("", "", None, true)) + 2 * work.draft;
    cost.plus(Cost(compared, compared * read, compared * CHOICE))
}

/// Returns the cost of probing the judge with two planted texts.
fn probe(criteria: &Criteria, work: &Work) -> Cost {
    if criteria.judge_settings.probe() && !verdict_calls(criteria).is_empty() {
        verdict(criteria, work).times(2)
    } else {
        Cost::default()
    }
}

/// Returns the tokens of the prefix that every prompt of a run shares.
fn task(work: &Work) -> u64 {
    tokens(&work.prompts.draft(None))
}

/// Estimates the tokens of messages.
pub(super) fn tokens(messages: &[Message]) -> u64 {
    messages
        .iter()
        .map(|message| estimate_tokens(&message.content))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Task;

    fn criteria(text: &str) -> Criteria {
        crate::criteria::parse(&format!("name = 'x'\n{text}"), "x.toml").unwrap()
    }

    fn of(criteria: &Criteria, revisions: (u32, u32)) -> Estimate {
        let work = Work {
            prompts: Prompts::new(&Task::new("Write."), criteria),
            draft: 100,
            drafted: 1,
            judged: 1,
            revisions,
        };
        Estimate::of(criteria, &work, 50)
    }

    const HARD: &str = "[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 9\n";
    const SOFT: &str = "[[criteria]]\nname = 'clear'\ndescription = 'Clear.'\n";

    #[test]
    fn hard_checks_take_no_calls() {
        let estimate = of(&criteria(HARD), (0, 2));
        assert_eq!(estimate.calls, (1, 3));
        assert_eq!(estimate.written, (100, 300));
        assert!(
            estimate.read.0 == 50 && estimate.read.1 > 250,
            "{estimate:?}"
        );
    }

    #[test]
    fn each_draft_and_each_sample_takes_a_judge_call() {
        // A draft and its verdict, then twice a revision and its verdict. Each verdict may be requested once
        // more, and the final comparison runs in both orders.
        assert_eq!(of(&criteria(SOFT), (0, 2)).calls, (2, 6 + 3 + 2));
        let thrice = criteria(&format!("[judge]\nsamples = 3\n{SOFT}"));
        assert_eq!(of(&thrice, (0, 0)).calls, (4, 4));
        let apart = criteria(&format!(
            "[judge]\nmode = 'separate'\n{SOFT}[[criteria]]\nname = 'warm'\ndescription = 'Warm.'\n"
        ));
        assert_eq!(of(&apart, (1, 1)).calls.0, 1 + 2 + 1 + 2);
        assert_eq!(verdicts(&apart), 2);
    }
}
