//! The journal of a run, and its replay when the run is resumed.
//!
//! A resumed run is the same loop, started again. The result of every effect comes from the journal: replies from its
//! calls; evaluations, decisions, evidence and tool output from its events. So the loop produces the same events as
//! before. The first event that is not recorded ends the replay.

use std::time::Duration;

use uuid::Uuid;

use crate::model::Exchange;
use crate::types::{CandidateStep, Event, LoopSettings, RunRecord, Stamped, Task};

/// The results of a run's effects. A run over a journal repeats none of them.
///
/// The default is the journal of a new run. An [`Observer`](super::Observer) keeps one: on the command line the run
/// log in
/// `SQLite`, in a batch worker the server.
#[derive(Debug, Clone, Default)]
pub struct RunJournal {
    /// The lasting events in order; the first is the start of the run.
    pub events: Vec<Stamped>,
    /// The calls with a reply, in the order in which they ended.
    pub calls: Vec<Exchange>,
}

impl RunJournal {
    /// The run's id and task; `None` if the run has not started.
    pub fn start(&self) -> Option<(Uuid, &Task)> {
        match &self.events.first()?.event {
            Event::RunStart { run_id, task, .. } => Some((*run_id, task)),
            _ => None,
        }
    }
}

/// The recorded events that the resumed run has not reached yet.
pub(super) struct Replay {
    run_id: Uuid,
    /// The events at their positions; `None` once an event was replayed.
    left: Vec<Option<Stamped>>,
    /// The settings of the resumed run.
    settings: LoopSettings,
    /// How many times the run was resumed before it had a valid draft, including this time.
    resumed_without_draft: u32,
    /// How long the run took before.
    used: Duration,
}

/// What is left of the journal when the replay ends.
pub(super) struct Rest {
    /// Events that count even if they are not repeated: failed calls, retries.
    pub(super) kept: Vec<Stamped>,
    /// The positions of events that no longer hold: the run's end, and what was decided because of it.
    pub(super) void: Vec<usize>,
}

impl Replay {
    pub(super) fn new(run_id: Uuid, events: Vec<Stamped>, settings: LoopSettings) -> Self {
        let record = RunRecord::from_events(&events);
        let used = record.execution_time().unwrap_or_default();
        Self {
            run_id,
            resumed_without_draft: resumed_without_draft(&events, &record),
            used: Duration::try_from_secs_f64(used).unwrap_or_default(),
            left: events.into_iter().map(Some).collect(),
            settings,
        }
    }

    /// Takes the start of the run, which is not repeated.
    pub(super) fn take_start(&mut self) -> Option<Stamped> {
        self.left.first_mut()?.take()
    }

    /// Takes the recorded event that equals `event`, after the incidental events that precede it.
    pub(super) fn again(&mut self, event: &Event) -> Option<Vec<Stamped>> {
        let is_same = |left: &Option<Stamped>| left.as_ref().is_some_and(|it| same(it, event));
        let place = self.left.iter().position(is_same)?;
        let (before, at) = self.left.split_at_mut(place);
        let by_the_way = before
            .iter_mut()
            .filter_map(|left| left.take_if(|it| is_by_the_way(&it.event)));
        let mut events: Vec<Stamped> = by_the_way.collect();
        events.extend(at.first_mut().and_then(Option::take));
        Some(events)
    }

    /// The events that have not been replayed yet, in order.
    pub(super) fn left(&self) -> impl Iterator<Item = &Event> {
        self.left.iter().flatten().map(|stamped| &stamped.event)
    }

    /// How long the run took before.
    pub(super) fn used(&self) -> Duration {
        self.used
    }

    /// How many times the run was resumed before it had a valid draft, including this time.
    pub(super) fn resumed_without_draft(&self) -> u32 {
        self.resumed_without_draft
    }

    /// Whether the journal goes on from here.
    pub(super) fn went_on(&self) -> bool {
        self.left().any(|event| !is_about_the_whole(event))
    }

    /// Whether the journal has work from here on, and not only the run's end. A call alone does not count: it may
    /// have been prefetched and discarded.
    pub(super) fn worked_on(&self) -> bool {
        let is_work = |event: &Event| {
            !is_about_the_whole(event)
                && !is_for_good(event)
                && !matches!(
                    event,
                    Event::Warning { .. } | Event::Decision { .. } | Event::UserDecision { .. }
                )
        };
        self.left().any(is_work)
    }

    /// The next step of a candidate. A failed candidate stays failed only if the run went on without it: a model that
    /// failed may answer now.
    pub(super) fn candidate(&self, version: u32, number: u32) -> Option<&CandidateStep> {
        let mut left = self.left();
        let step = left.find_map(|event| match event {
            Event::Candidate {
                iteration,
                candidate,
                step,
            } if (*iteration, *candidate) == (version, number) => Some(step),
            _ => None,
        })?;
        let went_on = |event: &Event| {
            matches!(
                event,
                Event::Phase { .. }
                    | Event::Candidate {
                        step: CandidateStep::Chosen { .. },
                        ..
                    }
            )
        };
        let stands = !matches!(step, CandidateStep::Lost { text: None, .. }) || left.any(went_on);
        stands.then_some(step)
    }

    /// Ends the replay: sorts what is left into what is kept and what is void.
    pub(super) fn rest(self) -> Rest {
        let mut rest = Rest {
            kept: Vec::new(),
            void: Vec::new(),
        };
        for (place, stamped) in self.left.into_iter().enumerate() {
            match stamped {
                Some(stamped) if is_for_good(&stamped.event) => rest.kept.push(stamped),
                Some(_) => rest.void.push(place),
                None => {}
            }
        }
        rest
    }

    /// The event that says that the run continues, with the version in progress.
    pub(super) fn resumed(&self, iteration: u32) -> Event {
        Event::Resumed {
            run_id: self.run_id,
            iteration,
            settings: self.settings.clone(),
        }
    }
}

/// How many times a run was resumed before it had a valid draft, including this time.
fn resumed_without_draft(events: &[Stamped], record: &RunRecord) -> u32 {
    let is_draft = |event: &Event| matches!(event, Event::Draft { .. });
    // A given text precedes all work.
    let mut all = events
        .iter()
        .map(|stamped| &stamped.event)
        .skip_while(|event| !matches!(event, Event::Phase { .. }));
    let has_draft = all.clone().any(is_draft);
    let before = all.by_ref().take_while(|event| !is_draft(event));
    let resumed = before
        .filter(|event| matches!(event, Event::Resumed { .. }))
        .count();
    let now = !has_draft || record.ended_without_draft();
    u32::try_from(resumed)
        .unwrap_or(u32::MAX)
        .saturating_add(u32::from(now))
}

/// Whether an event equals the recorded one. A replayed call has another duration and number of attempts.
fn same(recorded: &Stamped, event: &Event) -> bool {
    match (&recorded.event, event) {
        (
            Event::Call {
                phase,
                iteration,
                model,
                usage,
                error: None,
                ..
            },
            Event::Call {
                phase: phase_now,
                iteration: iteration_now,
                model: model_now,
                usage: usage_now,
                ..
            },
        ) => (phase, iteration, model, usage) == (phase_now, iteration_now, model_now, usage_now),
        (Event::RunEnd { .. }, _) => false,
        (recorded, event) => recorded == event,
    }
}

/// Events that count whatever came of them.
fn is_for_good(event: &Event) -> bool {
    matches!(
        event,
        Event::Call { .. } | Event::Retry { .. } | Event::Resumed { .. }
    )
}

/// Events that a replay does not produce by itself, but that happened if a later event did: those that count in
/// any case, and warnings of a provider.
fn is_by_the_way(event: &Event) -> bool {
    is_for_good(event) || matches!(event, Event::Warning { .. })
}

/// Whether an event belongs to the run and not to a step.
fn is_about_the_whole(event: &Event) -> bool {
    matches!(event, Event::RunEnd { .. } | Event::Resumed { .. })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::types::{
        ConvergenceReason, ExitCode, ModelId, Models, Phase, SCHEMA_VERSION, TokenUsage,
    };

    fn start() -> Event {
        Event::RunStart {
            schema_version: SCHEMA_VERSION,
            run_id: Uuid::nil(),
            command: "draft".to_owned(),
            file: None,
            task: Box::new(Task::new("Write.")),
            criteria: Box::new(crate::criteria::builtin("writing").unwrap()),
            settings: LoopSettings::default(),
            models: Models {
                writer: None,
                judge: None,
            },
            setup: None,
        }
    }

    fn call(iteration: u32, tokens: u64, attempts: u32, error: Option<&str>) -> Event {
        Event::Call {
            phase: Phase::Draft,
            iteration,
            model: ModelId {
                provider: "p".to_owned(),
                model: "m".to_owned(),
            },
            usage: TokenUsage::new(Some(tokens), Some(0), None),
            cost: None,
            duration_ms: u64::from(attempts),
            attempts,
            error: error.map(str::to_owned),
        }
    }

    fn draft(iteration: u32, text: &str) -> Event {
        Event::Draft {
            iteration,
            output: text.to_owned(),
            based_on: None,
            strategy: None,
            edits: None,
        }
    }

    fn phase(iteration: u32) -> Event {
        let phase = Phase::Draft;
        Event::Phase { phase, iteration }
    }

    fn warning(text: &str) -> Event {
        Event::Warning {
            message: text.to_owned(),
        }
    }

    fn end() -> Event {
        Event::RunEnd {
            schema_version: SCHEMA_VERSION,
            run_id: Some(Uuid::nil()),
            convergence_reason: Some(ConvergenceReason::Interrupted),
            success: false,
            selected: None,
            exit_code: ExitCode::Interrupted,
            error: None,
        }
    }

    /// The replay of a run that begins as usual and goes on with these.
    fn replay(events: &[Event]) -> Replay {
        let all = std::iter::once(start()).chain(events.iter().cloned());
        let events = (0..).zip(all).map(|(second, event)| Stamped {
            time: Timestamp::from_second(second).unwrap(),
            event,
        });
        let mut replay = Replay::new(Uuid::nil(), events.collect(), LoopSettings::default());
        assert_eq!(replay.take_start().unwrap().event, start());
        replay
    }

    fn seconds(events: &[Stamped]) -> Vec<i64> {
        events.iter().map(|it| it.time.as_second()).collect()
    }

    #[test]
    fn what_happens_again_has_its_recorded_time_and_brings_what_came_by_the_way() {
        let retry = Event::Retry {
            phase: Phase::Draft,
            iteration: 1,
            message: "busy".to_owned(),
            wait_ms: 1,
        };
        let mut replay = replay(&[
            phase(1),
            retry,
            warning("left out"),
            call(1, 9, 2, None),
            draft(1, "a"),
            phase(2),
        ]);
        assert_eq!(seconds(&replay.again(&phase(1)).unwrap()), [1]);
        // A replayed call takes no time, and one try.
        let again = replay.again(&call(1, 9, 1, None)).unwrap();
        assert_eq!(seconds(&again), [2, 3, 4]);
        assert!(replay.again(&draft(1, "b")).is_none(), "another text");
        assert_eq!(seconds(&replay.again(&draft(1, "a")).unwrap()), [5]);
        assert!(replay.again(&draft(1, "a")).is_none(), "only once");
        let rest = replay.rest();
        assert!(rest.kept.is_empty());
        assert_eq!(rest.void, [6]);
    }

    #[test]
    fn the_end_is_void_and_what_was_paid_for_is_kept() {
        let replay = {
            let mut replay = replay(&[
                phase(1),
                call(1, 9, 1, Some("gone")),
                warning("nobody has judged it"),
                end(),
            ]);
            replay.again(&phase(1)).unwrap();
            assert!(
                replay.again(&call(1, 9, 1, None)).is_none(),
                "a failed call is none that was answered"
            );
            assert!(replay.again(&end()).is_none());
            replay
        };
        let rest = replay.rest();
        assert_eq!(seconds(&rest.kept), [2]);
        assert_eq!(rest.void, [3, 4]);
    }

    #[test]
    fn what_came_in_another_order_is_found_all_the_same() {
        // Two drafts that are written at the same time.
        let mut replay = replay(&[
            call(1, 2, 1, None),
            draft(2, "b"),
            call(1, 1, 1, None),
            draft(1, "a"),
        ]);
        assert_eq!(
            seconds(&replay.again(&call(1, 1, 1, None)).unwrap()),
            [1, 3]
        );
        assert_eq!(seconds(&replay.again(&draft(1, "a")).unwrap()), [4]);
        assert!(replay.again(&call(1, 2, 1, None)).is_none(), "known by now");
        assert_eq!(seconds(&replay.again(&draft(2, "b")).unwrap()), [2]);
    }

    #[test]
    fn a_run_went_on_if_it_did_more_than_end() {
        assert!(replay(&[phase(1)]).went_on());
        assert!(!replay(&[]).went_on());
        assert!(!replay(&[end()]).went_on());
        let mut done = replay(&[phase(1), end()]);
        done.again(&phase(1)).unwrap();
        assert!(!done.went_on());
    }

    #[test]
    fn a_call_that_was_begun_ahead_is_no_work() {
        let unwanted = || call(2, 9, 1, Some("it was not wanted"));
        assert!(!replay(&[unwanted(), warning("why"), end()]).worked_on());
        assert!(replay(&[unwanted(), phase(2), call(2, 9, 1, None)]).worked_on());
    }

    #[test]
    fn a_journal_begins_with_the_start_of_its_run() {
        let journal = |event| RunJournal {
            events: vec![Stamped {
                time: Timestamp::UNIX_EPOCH,
                event,
            }],
            calls: Vec::new(),
        };
        assert!(RunJournal::default().start().is_none());
        assert!(journal(phase(1)).start().is_none());
        assert!(journal(start()).start().is_some());
    }
}
