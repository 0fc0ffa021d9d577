use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use uuid::Uuid;

use super::replay::{Replay, RunJournal};
use super::spent::Spent;
use super::tool::{self, ToolOutput};
use crate::model::{CallEvent, CallReport, ChatEvent, Exchange};
use crate::types::{
    CHARACTERS_PER_TOKEN, CandidateStep, ConvergenceReason, DeltaKind, Evaluation, Event, Evidence,
    ExitCode, Phase, Prices, RunRecord, SCHEMA_VERSION, Stamped, UserDecision,
};

/// Sees every event of a run, in order, as it happens. What it does is done before the run goes on.
pub trait Observer: Send {
    /// Takes an event in.
    fn on_event(&mut self, event: &Stamped);

    /// Takes in the event of a call that is over, with what was asked and answered: for those who keep it or show
    /// it. Without this, the event is one like the others.
    fn on_call(&mut self, event: &Stamped, _call: &CallReport<'_>) {
        self.on_event(event);
    }

    /// A run is resumed, and an event that was recorded has happened again; it has its time of then. Who keeps or
    /// shows events has done so then.
    fn on_replayed(&mut self, _event: &Stamped) {}

    /// A run is resumed, and the recorded events at these places, counted from 0, are void: the run's end, and what
    /// came of it.
    fn on_void(&mut self, _places: &[usize]) {}
}

impl<F: FnMut(&Stamped) + Send> Observer for F {
    fn on_event(&mut self, event: &Stamped) {
        self(event);
    }
}

/// Where events go: to the observer, and into the record of the run.
pub(super) struct Log<'a> {
    inner: Mutex<LogInner<'a>>,
}

struct LogInner<'a> {
    observer: &'a mut dyn Observer,
    record: RunRecord,
    prices: Prices,
    spent: Spent,
    /// What is recorded and has not happened again yet, until the run goes on from there.
    replay: Option<Replay>,
    /// How long the run took before it was resumed.
    used: Duration,
    /// What has happened, where it may have to happen again in this process.
    journal: Option<RunJournal>,
}

impl<'a> Log<'a> {
    pub(super) fn new(observer: &'a mut dyn Observer, prices: Prices) -> Self {
        Self {
            inner: Mutex::new(LogInner {
                observer,
                record: RunRecord::default(),
                prices,
                spent: Spent::default(),
                replay: None,
                used: Duration::ZERO,
                journal: None,
            }),
        }
    }

    /// Keeps the journal of the run from its start.
    pub(super) fn keep_journal(&self) {
        self.lock().journal = Some(RunJournal::default());
    }

    /// The journal of the run so far, if it is kept.
    pub(super) fn journal(&self) -> Option<RunJournal> {
        self.lock().journal.clone()
    }

    /// The run is one that is recorded: what happens from now on is taken from there, as far as it goes.
    pub(super) fn replay(&self, mut replay: Replay) {
        let start = replay.take_start();
        let mut inner = self.lock();
        inner.used = replay.used();
        inner.replay = Some(replay);
        if let Some(start) = start {
            inner.keep(&start, 0);
        }
    }

    pub(super) fn emit(&self, event: Event) {
        self.lock().take(event, None);
    }

    /// How long the run took before it was resumed.
    pub(super) fn used(&self) -> Duration {
        self.lock().used
    }

    /// The verdict on a version that was given before the run was resumed and not taken in yet.
    pub(super) fn recorded_evaluation(&self, version: u32) -> Option<Evaluation> {
        self.recorded(|event| match event {
            Event::Evaluation {
                iteration,
                evaluation,
            } if *iteration == version => Some(evaluation.clone()),
            _ => None,
        })
    }

    /// What was decided after this version was judged, before the run was resumed. Who ended the run has not decided
    /// how it goes on.
    pub(super) fn recorded_decision(&self, version: u32) -> Option<UserDecision> {
        let decided = self.recorded(|event| match event {
            Event::UserDecision {
                iteration,
                decision,
            } if *iteration == version => Some(decision.clone()),
            _ => None,
        });
        match decided {
            Some(UserDecision::Stop) => None,
            Some(decision) => Some(decision),
            // The one decision that is not recorded. The run may have ended while the question was open.
            None => self
                .lock()
                .replay
                .as_ref()
                .is_some_and(Replay::worked_on)
                .then_some(UserDecision::Auto),
        }
    }

    /// Whether there is a decision of somebody's that was recorded before the run was resumed.
    pub(super) fn was_decided(&self) -> bool {
        let decided = |event: &Event| matches!(event, Event::UserDecision { .. }).then_some(());
        self.recorded(decided).is_some()
    }

    /// How often the run was resumed before it had a draft, this time included.
    pub(super) fn resumed_without_draft(&self) -> u32 {
        self.lock()
            .replay
            .as_ref()
            .map_or(0, Replay::resumed_without_draft)
    }

    /// What became of a candidate next, before the run was resumed.
    pub(super) fn recorded_step(&self, version: u32, number: u32) -> Option<CandidateStep> {
        let inner = self.lock();
        inner.replay.as_ref()?.candidate(version, number).cloned()
    }

    /// What a tool had said before the run was resumed: nothing was found out where it could not be run.
    pub(super) fn recorded_tool(
        &self,
        version: u32,
        name: &str,
    ) -> Option<Result<ToolOutput, String>> {
        let problem = tool::problem(name, "");
        self.recorded(|event| match event {
            Event::ToolResult {
                iteration,
                tool,
                end,
                exit_code,
                output,
            } if *iteration == version && tool == name => Some(Ok(ToolOutput {
                end: end.clone(),
                exit_code: *exit_code,
                text: output.clone(),
            })),
            Event::Warning { message } => {
                let problem = message.strip_prefix(&problem)?;
                Some(Err(problem.to_owned()))
            }
            _ => None,
        })
    }

    /// The evidence for a version that was found before the run was resumed; empty if it was looked for without effect. It
    /// is looked for at once when the version's step has begun: if the run went on, it had been.
    pub(super) fn recorded_evidence(&self, version: u32) -> Option<Vec<Evidence>> {
        let found = self.recorded(|event| match event {
            Event::Evidence {
                iteration,
                evidence,
            } if *iteration == version => Some(evidence.clone()),
            _ => None,
        });
        found.or_else(|| self.went_on().then(Vec::new))
    }

    /// The first of the events that were recorded before the run was resumed, and that have not happened again yet,
    /// in which something is found. Whatever the loop does that is neither computed from what it knows nor said by
    /// a model is taken from here, so that it comes to the same again.
    pub(super) fn recorded<T>(&self, find: impl FnMut(&Event) -> Option<T>) -> Option<T> {
        self.lock().replay.as_ref()?.left().find_map(find)
    }

    /// Whether what was recorded before the run was resumed still happens again.
    pub(super) fn replays(&self) -> bool {
        self.lock().replay.is_some()
    }

    /// Whether the run had gone on from where it is now, before it was resumed.
    pub(super) fn went_on(&self) -> bool {
        self.lock().replay.as_ref().is_some_and(Replay::went_on)
    }

    fn lock(&self) -> MutexGuard<'_, LogInner<'a>> {
        self.inner.lock()
    }

    pub(super) fn end(
        &self,
        run_id: Uuid,
        convergence_reason: Option<ConvergenceReason>,
        success: bool,
        selected: Option<u32>,
        exit_code: ExitCode,
        error: Option<String>,
    ) {
        self.emit(Event::RunEnd {
            schema_version: SCHEMA_VERSION,
            run_id: Some(run_id),
            convergence_reason,
            success,
            selected,
            exit_code,
            error: error.filter(|_| {
                matches!(
                    convergence_reason,
                    None | Some(
                        ConvergenceReason::ModelError
                            | ConvergenceReason::NoDraft
                            | ConvergenceReason::JudgeFailed
                    )
                )
            }),
        });
    }

    pub(super) fn with<T>(&self, read: impl FnOnce(&RunRecord) -> T) -> T {
        read(&self.lock().record)
    }

    pub(super) fn spent(&self) -> Spent {
        self.lock().spent
    }

    /// An observer of model calls that turns what they say into events of this step.
    pub(super) fn calls(
        &self,
        phase: Phase,
        iteration: u32,
    ) -> impl Fn(CallEvent<'_>) + Send + Sync {
        self.calls_of(phase, iteration, true)
    }

    /// The same. Of calls that are made at the same time only one may be `live`: the pieces of the others are left
    /// out, since nobody could tell them apart.
    pub(super) fn calls_of(
        &self,
        phase: Phase,
        iteration: u32,
        live: bool,
    ) -> impl Fn(CallEvent<'_>) + Send + Sync {
        move |event| {
            let delta = |kind, text: &str| Event::Delta {
                phase,
                iteration,
                kind,
                text: text.to_owned(),
            };
            match event {
                CallEvent::Chat(ChatEvent::Text(_) | ChatEvent::Reasoning(_)) if !live => {}
                CallEvent::Chat(ChatEvent::Text(text)) => {
                    self.emit(delta(DeltaKind::Text, text));
                }
                CallEvent::Chat(ChatEvent::Reasoning(text)) => {
                    self.emit(delta(DeltaKind::Reasoning, text));
                }
                CallEvent::Chat(ChatEvent::Retry { error, wait }) => self.emit(Event::Retry {
                    phase,
                    iteration,
                    message: error.to_string(),
                    wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                }),
                CallEvent::Chat(ChatEvent::Notice(message)) => {
                    let known = self.with(|record| record.warnings.contains(message));
                    if !known {
                        self.emit(Event::Warning {
                            message: message.clone(),
                        });
                    }
                }
                CallEvent::Chat(_) => {}
                CallEvent::End(report) => {
                    let cost = self.lock().cost(&report);
                    let event = Event::Call {
                        phase,
                        iteration,
                        model: report.model.clone(),
                        usage: report.reply.usage,
                        cost,
                        duration_ms: u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
                        attempts: report.reply.attempts,
                        error: report.error.map(ToString::to_string),
                    };
                    self.lock().take(event, Some(&report));
                }
            }
        }
    }

    pub(super) fn into_record(self) -> RunRecord {
        self.inner.into_inner().record
    }
}

impl LogInner<'_> {
    /// An event happens. Of a call there is a report.
    fn take(&mut self, event: Event, call: Option<&CallReport<'_>>) {
        if let Some(journal) = &mut self.journal {
            let answered = call.and_then(|call| Exchange::of(call, Vec::new()));
            journal.calls.extend(answered);
        }
        if self.is_recorded(&event, call) {
            return;
        }
        self.go_on();
        let stamped = Stamped {
            time: Timestamp::now(),
            event,
        };
        self.apply(&stamped);
        self.spend(&stamped.event, call.map_or(0, estimate));
        match call {
            Some(call) => self.observer.on_call(&stamped, call),
            None => self.observer.on_event(&stamped),
        }
    }

    /// What a call cost, if that is known.
    fn cost(&self, report: &CallReport<'_>) -> Option<f64> {
        self.prices.of(report.model)?.cost(&report.reply.usage)
    }

    /// Takes in what a call used: as many tokens as estimated where its server did not count them. What it cost, where
    /// that is not known, is as much as it may have.
    fn spend(&mut self, event: &Event, estimate: u64) {
        if let Event::Call {
            model, usage, cost, ..
        } = event
        {
            let tokens = usage.total.unwrap_or(estimate);
            let at_most = || {
                let price = self.prices.of(model);
                price.map_or(0.0, |price| price.at_most(tokens))
            };
            self.spent.cost += cost.unwrap_or_else(at_most);
            self.spent.tokens += tokens;
            let cached = usage.cached.unwrap_or(0).min(usage.prompt.unwrap_or(0));
            self.spent.work += tokens.saturating_sub(cached);
        }
    }

    /// Whether the event is one that is recorded; then it is taken in as it was.
    fn is_recorded(&mut self, event: &Event, call: Option<&CallReport<'_>>) -> bool {
        let replayed = call.is_some_and(|call| call.replayed);
        // A call that is made now is none of those that were made then.
        let is_new = call.is_some() && !replayed || matches!(event, Event::Retry { .. });
        let again = match &mut self.replay {
            Some(replay) if !is_new => replay.again(event),
            _ => None,
        };
        let Some(mut events) = again else {
            // What a replayed call took is counted already, if not at its own place then with what came later; but for
            // what only its text tells.
            if let Some(call) = call.filter(|call| replayed && call.reply.usage.total.is_none()) {
                self.spend(event, estimate(call));
            }
            return replayed;
        };
        let last = events.pop();
        for event in &events {
            self.keep(event, 0);
        }
        if let Some(last) = last {
            self.keep(&last, call.map_or(0, estimate));
        }
        true
    }

    /// Takes a recorded event in; if it is a call, of so many tokens as estimated.
    fn keep(&mut self, stamped: &Stamped, estimate: u64) {
        self.spend(&stamped.event, estimate);
        self.apply(stamped);
        self.observer.on_replayed(stamped);
    }

    fn apply(&mut self, stamped: &Stamped) {
        self.record.apply(stamped);
        if let Some(journal) = &mut self.journal
            && stamped.event.is_lasting()
        {
            journal.events.push(stamped.clone());
        }
    }

    /// Ends the replay, if there is one: from here on the run does what it has not done yet.
    fn go_on(&mut self) {
        let Some(replay) = self.replay.take() else {
            return;
        };
        let resumed = replay.resumed(self.record.iterations().max(1));
        let rest = replay.rest();
        for stamped in &rest.kept {
            self.keep(stamped, 0);
        }
        self.observer.on_void(&rest.void);
        self.take(resumed, None);
    }
}

/// The tokens of a call whose server does not count them.
fn estimate(call: &CallReport<'_>) -> u64 {
    (call.characters() / CHARACTERS_PER_TOKEN) as u64
}
