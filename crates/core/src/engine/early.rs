//! Stops a reply early once it cannot become a valid draft.

use super::bound;
use super::gate::{self, DraftContext, NotADraft};
use crate::evaluate::{Violation, Watch};
use crate::types::{Criteria, LoopSettings, RunRecord, Task};

/// After this many stopped replies in a row, no reply is stopped for a criterion: the writer cannot do better.
const IN_A_ROW: u32 = 2;
/// A reply is checked again after this many more bytes...
const STEP: usize = 256;
/// ...and this share of its length, so that the checks take linear time in total.
const SHARE: usize = 4;

/// Which replies of a run are stopped.
///
/// Every reply is stopped once it is far longer than requested: see [`Self::longest`]. A revision is also stopped
/// for a criterion that the best version meets and the revision can no longer meet, because it could not win. A
/// first draft is not stopped for that: a draft with a fault can be revised. draft is not: a text with a fault can
/// be revised, and is better than none.
#[derive(Clone)]
pub(super) struct EarlyStop {
    watch: Watch,
    /// The longest text that the criteria allow, if they say.
    allowed: Option<usize>,
    in_a_row: u32,
    on: bool,
}

impl EarlyStop {
    pub(super) fn new(criteria: &Criteria, settings: &LoopSettings) -> Self {
        Self {
            watch: Watch::new(criteria),
            allowed: bound::of_criteria(criteria),
            in_a_row: 0,
            on: settings.early_stop(),
        }
    }

    /// The longest reply to a task that is not stopped, in bytes.
    pub(super) fn longest(&self, task: &Task, base: Option<&str>) -> usize {
        if !self.on {
            return usize::MAX;
        }
        bound::longest(self.allowed, &task.prompt, base)
    }

    /// The criteria that are watched during the next reply, which is to be the whole draft.
    pub(super) fn watch(&self, record: &RunRecord) -> Option<Watch> {
        let best = record.best()?.evaluation.as_ref()?;
        if !self.on || self.in_a_row >= IN_A_ROW {
            return None;
        }
        // The first draft that meets all required criteria wins, whatever else it loses.
        let leap = best
            .rank()
            .is_some_and(|rank| !rank.required_met || !rank.clean);
        let met = |name: &str| {
            let mut results = best.criteria.iter();
            results.any(|result| result.name == name && result.passed)
        };
        let watch = self
            .watch
            .only(|name, required| met(name) && (required || !leap));
        Some(watch).filter(|watch| !watch.is_empty())
    }

    /// Counts a stopped reply.
    pub(super) fn stopped(&mut self) {
        self.in_a_row += 1;
    }

    /// Resets the count after a draft.
    pub(super) fn drafted(&mut self) {
        if self.in_a_row < IN_A_ROW {
            self.in_a_row = 0;
        }
    }
}

/// A reply that is being written.
pub(super) struct Reading<'a> {
    watch: Option<Watch>,
    longest: usize,
    context: DraftContext<'a>,
    /// Its length in bytes at the last check.
    looked_at: usize,
    found: Option<Found>,
}

/// Why a reply is stopped.
enum Found {
    TooLong,
    Violation(Violation),
}

impl<'a> Reading<'a> {
    pub(super) fn new(watch: Option<Watch>, longest: usize, context: DraftContext<'a>) -> Self {
        Self {
            watch,
            longest,
            context,
            looked_at: 0,
            found: None,
        }
    }

    /// Whether to stop the reply here. Cheap enough to ask after every piece.
    pub(super) fn is_hopeless(&mut self, reply: &str) -> bool {
        if reply.len() > self.longest {
            self.found = Some(Found::TooLong);
            return true;
        }
        let Some(watch) = &self.watch else {
            return false;
        };
        if reply.len() < self.looked_at {
            // The reply was restarted.
            self.looked_at = 0;
        }
        if reply.len() < self.looked_at + STEP.max(self.looked_at / SHARE) {
            return false;
        }
        self.looked_at = reply.len();
        self.found = gate::settled(reply, &self.context)
            .and_then(|(text, settled)| watch.look(text, settled))
            .map(Found::Violation);
        self.found.is_some()
    }

    /// Why the reply was stopped, if it was.
    pub(super) fn verdict(self, reply: &str) -> Option<NotADraft> {
        let words = reply.split_whitespace().count();
        Some(match self.found? {
            Found::TooLong => NotADraft::flaw(
                format!(
                    "it was stopped after {words} words, far more than requested; `--no-early-stop` disables \
                     this"
                ),
                "The last reply was far too long and was stopped. Write a much shorter text and end it properly.",
            ),
            Found::Violation(Violation {
                criterion,
                fault,
                fix,
            }) => NotADraft::new(
                format!(
                    "it was stopped after {words} words, because it can no longer meet `{criterion}`: it {fault}"
                ),
                format!("The last reply was stopped before its end: it {fault}. {fix}"),
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{Criterion, Evaluator, Expect, LengthConfig, LengthUnit, RegexConfig};

    fn criteria() -> Criteria {
        let of = |name: &str, evaluator| Criterion {
            name: name.to_owned(),
            description: String::new(),
            weight: 1.0,
            threshold: 1.0,
            required: false,
            evaluator,
        };
        let short = LengthConfig {
            unit: LengthUnit::Words,
            min: None,
            max: Some(60),
        };
        let plain = RegexConfig {
            pattern: "(?i)sorry|revised|key|here".to_owned(),
            expect: Expect::Absent,
            min_count: None,
            max_count: None,
            message: None,
        };
        Criteria {
            name: "test".to_owned(),
            description: None,
            threshold: 0.8,
            loop_settings: LoopSettings::default(),
            judge_settings: crate::types::JudgeSettings::default(),
            probe: crate::types::ProbeTexts::default(),
            criteria: vec![
                of("short", Evaluator::Length(short)),
                of("plain", Evaluator::Regex(plain)),
            ],
        }
    }

    fn draft_context(criteria: &Criteria) -> DraftContext<'_> {
        DraftContext {
            prompt: "Tell of the storm.",
            criteria,
            base: None,
            issues: &[],
        }
    }

    /// Where the reply is stopped, if it comes in pieces of so many characters.
    fn stopped(reply: &str, piece: usize) -> Option<usize> {
        let criteria = criteria();
        let mut reading = Reading::new(
            Some(Watch::new(&criteria)),
            usize::MAX,
            draft_context(&criteria),
        );
        let ends = reply
            .char_indices()
            .map(|(at, _)| at)
            .skip(1)
            .step_by(piece);
        ends.chain([reply.len()])
            .find(|end| reading.is_hopeless(&reply[..*end]))
    }

    #[test]
    fn a_reply_far_too_long_is_ended_soon_and_one_that_is_not_is_not() {
        let sentence = "The storm took the roof and the door. ";
        let at = stopped(&sentence.repeat(100), 5).unwrap();
        assert!(at < 1200, "{at}");
        assert_eq!(stopped(&sentence.repeat(7), 5), None);
    }

    #[test]
    fn what_the_gate_takes_away_is_not_held_against_a_reply() {
        let draft = "The storm took the roof and the door. ".repeat(6);
        let changes = "- I wrote of the storm and of the roof as a key to it.\n".repeat(5);
        let reply = format!(
            "Here is the revised text:\n\n{draft}\n\nKey changes:\n\n{changes}\n\nI hope this revised draft is good."
        );
        for piece in [1, 7, 100] {
            assert_eq!(stopped(&reply, piece), None, "{piece}");
        }
        let bad = draft.replacen("roof", "sorry roof", 1);
        let more = "The day after it was as calm as a stone. ".repeat(20);
        assert!(stopped(&format!("{bad}\n\n{more}"), 7).is_some());
    }

    proptest! {
        #[test]
        fn no_reply_is_stopped_whose_draft_passes(
            parts in prop::collection::vec(prop_oneof![
                Just("Here is the revised text:\n\n"),
                Just("Sure!\n"),
                Just("```\n"),
                Just("<draft>\n"),
                Just("The storm came at night and took the roof with it.\n"),
                Just("The storm came at night, and it took all that we had built in ten years or more. "),
                Just("Rain fell.\n\n"),
                Just("\n\n"),
                Just("---\n\n"),
                Just("Sorry for the roof. "),
                Just("# Night\n\n"),
                Just("Key changes:\n- the roof\n"),
                Just("- the door, the wall and the key\n"),
                Just("\n\nI've revised the draft as you asked."),
                Just("\n\nLet me know if the revised version fits."),
            ], 0..24),
            piece in 1..90_usize,
        ) {
            let reply = parts.concat();
            // More than three remarks in a row are not foreseen.
            prop_assume!(reply.matches("revised").count() <= 3);
            if stopped(&reply, piece).is_some() {
                let criteria = criteria();
                let (draft, _) = gate::clean(&reply, &draft_context(&criteria));
                let words = draft.split_whitespace().filter(|w| w.contains(char::is_alphanumeric)).count();
                let lower = draft.to_lowercase();
                let bad = ["sorry", "revised", "key", "here"].iter().any(|w| lower.contains(w));
                prop_assert!(words > 60 || bad, "{reply:?} became {draft:?}");
            }
        }
    }
}
