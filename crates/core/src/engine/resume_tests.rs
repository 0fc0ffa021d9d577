//! A run that stops after any of its events ends as if it had not.

use std::path::Path;
use std::sync::Arc;

use jiff::ToSpan as _;
use tokio_util::sync::CancellationToken;

use super::{Loop, Observer, RunJournal};
use crate::model::{CallReport, Exchange, ScriptedModel};
use crate::types::{
    ConvergenceReason, Criteria, Event, LoopSettings, RunRecord, Stamped, Task, Version,
};

const CRITERIA: &str = "name = 'house'
[[criteria]]
name = 'clear'
description = 'It is clear.'
[[criteria]]
name = 'short'
evaluator = 'length'
unit = 'words'
max = 40
";

fn judge(contains: &str, step: u8) -> String {
    format!(
        "[[reply]]\npurpose = 'judge'\ncontains = '{contains}'\ntimes = 0\nusage = {{ prompt = 900, completion = 10 }}\n\
         json = {{ scores = {{ clear = {{ reason = 'r', score = {step} }} }}, issues = [], confidence = 0.5 }}\n"
    )
}

/// Answers by what it is asked, so that it may be asked in any order. The second draft is refused once: it is
/// far too long, and is stopped.
fn model() -> Arc<ScriptedModel> {
    model_that_waits(0)
}

/// The same, which takes so many milliseconds to write.
fn model_that_waits(delay: u64) -> Arc<ScriptedModel> {
    let write = |contains: &str, text: &str| {
        format!(
            "[[reply]]\npurpose = 'write'\n{contains}times = 0\ndelay_ms = {delay}\ntext = '{text}'\n"
        )
    };
    let script = [
        judge("gamma draft", 5),
        judge("beta draft", 3),
        judge("alpha draft", 2),
        write("contains = 'beta draft'\n", "The gamma draft, at last."),
        write(
            "contains = 'stopped before its end'\n",
            "The beta draft is better.",
        ),
        write("contains = 'alpha draft'\n", &"word ".repeat(200)),
        write("", "The alpha draft."),
    ];
    Arc::new(ScriptedModel::parse(Path::new("s.toml"), &script.concat()).unwrap())
}

fn criteria() -> Arc<Criteria> {
    Arc::new(crate::criteria::parse(CRITERIA, "c.toml").unwrap())
}

fn settings() -> LoopSettings {
    LoopSettings {
        max_iterations: Some(6),
        strategy: Some(crate::types::Strategy::FullRewrite),
        ..LoopSettings::default()
    }
}

/// A run log in memory.
#[derive(Default, Clone)]
struct Kept {
    events: Vec<Stamped>,
    /// The calls that were answered, each with the place of its event.
    calls: Vec<(usize, Exchange)>,
    /// Calls that were made.
    made: usize,
    replayed: Vec<Stamped>,
    void: Vec<usize>,
}

impl Observer for Kept {
    fn on_event(&mut self, event: &Stamped) {
        if event.event.is_recorded() {
            self.events.push(event.clone());
        }
    }

    fn on_call(&mut self, event: &Stamped, call: &CallReport<'_>) {
        self.made += 1;
        if let Some(exchange) = Exchange::of(call, call.request.messages.clone()) {
            self.calls.push((self.events.len(), exchange));
        }
        self.on_event(event);
    }

    fn on_replayed(&mut self, event: &Stamped) {
        self.replayed.push(event.clone());
    }

    fn on_void(&mut self, places: &[usize]) {
        self.void = places.to_vec();
    }
}

impl Kept {
    /// What was on disk after so many events.
    fn until(&self, end: usize) -> Self {
        Self {
            events: self.events[..end].to_vec(),
            calls: self
                .calls
                .iter()
                .filter(|(place, _)| *place < end)
                .cloned()
                .collect(),
            ..Self::default()
        }
    }

    fn journal(&self) -> RunJournal {
        RunJournal {
            events: self.events.clone(),
            calls: self.calls.iter().map(|(_, call)| call.clone()).collect(),
        }
    }

    fn reason(&self) -> Option<ConvergenceReason> {
        RunRecord::from_events(&self.events).convergence_reason
    }
}

/// What must be the same, however often a run was stopped.
fn essence(record: &RunRecord) -> Vec<Version> {
    let strip = |version: &Version| Version {
        timestamp: jiff::Timestamp::UNIX_EPOCH,
        duration_ms: 0,
        ..version.clone()
    };
    record.versions.iter().map(strip).collect()
}

async fn whole(settings: LoopSettings) -> (RunRecord, Kept) {
    let plan = Loop {
        settings,
        ..Loop::new(model(), criteria())
    };
    let mut kept = Kept::default();
    let nobody = CancellationToken::new();
    let record = plan
        .run(&Task::new("Write a line."), &mut kept, &nobody)
        .await;
    (record, kept)
}

/// Goes on with what is kept; gives the record, and what is kept then.
async fn resume(kept: &Kept, settings: LoopSettings) -> (RunRecord, Kept) {
    resume_with(kept, settings, model(), &CancellationToken::new()).await
}

async fn resume_with(
    kept: &Kept,
    settings: LoopSettings,
    model: Arc<ScriptedModel>,
    cancel: &CancellationToken,
) -> (RunRecord, Kept) {
    resume_by(&criteria(), kept, settings, model, cancel).await
}

async fn resume_by(
    criteria: &Arc<Criteria>,
    kept: &Kept,
    settings: LoopSettings,
    model: Arc<ScriptedModel>,
    cancel: &CancellationToken,
) -> (RunRecord, Kept) {
    let plan = Loop {
        settings,
        ..Loop::new(model, Arc::clone(criteria))
    };
    let mut now = Kept::default();
    let task = Task::new("Write a line.");
    let record = plan
        .run_over(&task, kept.journal(), &mut now, None, cancel)
        .await;
    let mut all = kept.clone();
    let offset = all.events.len();
    all.events.extend(now.events);
    all.calls.extend(
        now.calls
            .into_iter()
            .map(|(place, call)| (place + offset, call)),
    );
    (all.made, all.replayed, all.void) = (now.made, now.replayed, now.void);
    (record, all)
}

/// Stops a run by these criteria after each of its events, and goes on with it.
async fn stopped_anywhere(criteria: &str, calls: usize) {
    let criteria = Arc::new(crate::criteria::parse(criteria, "c.toml").unwrap());
    let plan = Loop {
        settings: settings(),
        ..Loop::new(model(), Arc::clone(&criteria))
    };
    let (task, nobody) = (Task::new("Write a line."), CancellationToken::new());
    let mut kept = Kept::default();
    let record = plan.run(&task, &mut kept, &nobody).await;
    assert_eq!(
        record.convergence_reason,
        Some(ConvergenceReason::QualityMet)
    );
    assert_eq!((record.versions.len(), record.stopped_early), (3, 1));
    assert_eq!((kept.calls.len(), kept.made), (calls, calls));
    for end in 1..kept.events.len() {
        let before = kept.until(end);
        let (resumed, all) = resume_by(&criteria, &before, settings(), model(), &nobody).await;
        assert_eq!(essence(&resumed), essence(&record), "after {end} events");
        assert_eq!(resumed.convergence_reason, record.convergence_reason);
        assert_eq!(resumed.token_usage, record.token_usage, "after {end}");
        assert_eq!(resumed.total_llm_calls, record.total_llm_calls);
        assert_eq!(resumed.stopped_early, 1, "after {end}");
        assert_eq!(all.made, calls - before.calls.len(), "after {end} events");
        assert!(all.void.is_empty(), "after {end}: {:?}", all.void);
        assert_eq!(all.replayed, before.events, "after {end}");
        // What is on disk then tells the same.
        let told = RunRecord::from_events(&all.events);
        assert_eq!(essence(&told), essence(&record), "after {end}");
        assert_eq!(told.selected, record.selected);
    }
}

#[tokio::test]
async fn a_run_that_stops_after_any_event_ends_as_if_it_had_not() {
    stopped_anywhere(CRITERIA, 7).await;
}

/// The requests of several samples are the same where there is no seed; their replies are taken in turn.
#[tokio::test]
async fn so_does_one_that_stops_among_several_judgements() {
    let samples = CRITERIA.replacen('\n', "\n[judge]\nsamples = 3\n", 1);
    stopped_anywhere(&samples, 4 + 3 * 3).await;
}

#[tokio::test]
async fn a_run_may_be_stopped_again_and_again() {
    let (record, kept) = whole(settings()).await;
    let mut now = kept.until(1);
    let mut made = 0;
    // Each time it gets three events further, the one that says that it goes on included.
    loop {
        let recorded = now.events.len();
        let (resumed, all) = resume(&now, settings()).await;
        if all.events.len() <= recorded + 3 {
            assert_eq!(essence(&resumed), essence(&record));
            assert_eq!(resumed.token_usage, record.token_usage);
            break;
        }
        now = all.until(recorded + 3);
        made += now.calls.len();
        assert!(made < 1000, "it does not get on");
    }
    assert!(now.calls.len() <= kept.calls.len());
}

#[tokio::test]
async fn the_next_call_of_a_run_is_told_and_not_made() {
    let (_, kept) = whole(settings()).await;
    let plan = Loop {
        settings: settings(),
        ..Loop::new(model(), criteria())
    };
    let task = Task::new("Write a line.");
    let mut told = std::collections::BTreeSet::new();
    for end in 0..kept.events.len() {
        // Nothing is told in the midst of a step, nor of a run that makes no more calls.
        if let Some(next) = plan.next_call(&task, kept.until(end).journal()) {
            let made = kept.calls.iter().find(|(place, _)| *place >= end);
            let (place, made) = made.expect("a call that the run does not make");
            assert_eq!(next.request.key(), made.key, "after {end} events");
            told.insert(*place);
        }
    }
    assert_eq!(told.len(), kept.calls.len(), "each call of the run");
}

#[tokio::test]
async fn what_came_of_the_end_is_void_and_limits_count_what_was_used() {
    // The model's calls that write say nothing of tokens; those that judge use 100 each.
    let limited = LoopSettings {
        max_total_tokens: Some(600),
        ..settings()
    };
    let (stopped, kept) = whole(limited.clone()).await;
    assert_eq!(kept.reason(), Some(ConvergenceReason::TokenBudget));
    assert!(!stopped.versions.is_empty());
    let (record, _) = whole(settings()).await;
    // With the same limit, it stops at the same place, and asks nobody.
    let (again, all) = resume(&kept, limited).await;
    assert_eq!(
        again.convergence_reason,
        Some(ConvergenceReason::TokenBudget)
    );
    assert_eq!((all.made, all.void.len()), (0, 1), "only the end is void");
    assert_eq!(essence(&again), essence(&stopped));
    // With more, it goes on.
    let more = LoopSettings {
        max_total_tokens: Some(100_000),
        ..settings()
    };
    let (resumed, all) = resume(&kept, more).await;
    assert_eq!(essence(&resumed), essence(&record));
    assert!(all.void.len() >= 2, "the decision to stop, too");
    assert_eq!(resumed.token_usage, record.token_usage);
    let settings = all.events.iter().find_map(|stamped| match &stamped.event {
        Event::Resumed { settings, .. } => settings.max_total_tokens,
        _ => None,
    });
    assert_eq!(settings, Some(100_000));
}

#[tokio::test]
async fn the_time_in_between_is_not_the_runs() {
    let (_, kept) = whole(settings()).await;
    // As if it had been stopped yesterday, an hour after it began.
    let mut before = kept.until(8);
    let now = jiff::Timestamp::now();
    for (place, stamped) in (0_i64..).zip(&mut before.events) {
        stamped.time = now - 24.hours() + (place * 3600 / 7).seconds();
    }
    let (resumed, all) = resume(&before, settings()).await;
    let time = resumed.execution_time().unwrap();
    assert!((3600.0..3700.0).contains(&time), "{time}");
    let told = RunRecord::from_events(&all.events).execution_time();
    assert!((3600.0..3700.0).contains(&told.unwrap()), "{told:?}");
    for version in &resumed.versions {
        assert!(version.duration_ms < 3_700_000, "{}", version.duration_ms);
    }
    // Its hour was all that it had; what is recorded is there all the same.
    let limited = LoopSettings {
        max_time: Some(3600.0),
        ..settings()
    };
    let nobody = CancellationToken::new();
    let (resumed, _) = resume_with(&before, limited, model_that_waits(500), &nobody).await;
    assert_eq!(
        resumed.convergence_reason,
        Some(ConvergenceReason::TimeLimit)
    );
    let recorded = RunRecord::from_events(&before.events);
    assert_eq!(essence(&resumed), essence(&recorded));
}

#[tokio::test]
async fn who_interrupts_a_run_that_is_being_resumed_loses_nothing() {
    let (_, kept) = whole(settings()).await;
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    for end in 1..kept.events.len() {
        let before = kept.until(end);
        let (resumed, all) = resume_with(&before, settings(), model(), &cancelled).await;
        let recorded = RunRecord::from_events(&before.events);
        assert!(
            resumed.versions.len() >= recorded.versions.len(),
            "after {end}"
        );
        assert!(all.void.is_empty(), "after {end}: {:?}", all.void);
    }
}

#[path = "resume_kinds_tests.rs"]
mod kinds;
