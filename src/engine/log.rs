use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::replay::{Recorded, Replay};
use crate::model::{CallEvent, CallReport, ChatEvent};
use crate::types::{
    ConvergenceReason, DeltaKind, Evaluation, Event, Evidence, ExitCode, LoopSettings, Phase,
    RunRecord, SCHEMA_VERSION, Stamped,
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
    /// Tokens used; those of calls whose server does not count are estimated.
    tokens: u64,
    /// What is recorded and has not happened again yet, until the run goes on from there.
    replay: Option<Replay>,
    /// How long the run took before it was resumed.
    used: Duration,
}

/// The usual estimate where a server does not count tokens: about four characters make one.
const CHARACTERS_PER_TOKEN: usize = 4;

impl<'a> Log<'a> {
    pub(super) fn new(observer: &'a mut dyn Observer) -> Self {
        Self {
            inner: Mutex::new(LogInner {
                observer,
                record: RunRecord::default(),
                tokens: 0,
                replay: None,
                used: Duration::ZERO,
            }),
        }
    }

    /// The log of a run that is resumed, which behaves in this way from now on.
    pub(super) fn resumed(
        observer: &'a mut dyn Observer,
        recorded: Recorded,
        settings: LoopSettings,
    ) -> Self {
        let used = RunRecord::from_events(recorded.events()).execution_time();
        let mut replay = Replay::new(recorded, settings);
        let start = replay.take_start();
        let mut inner = LogInner {
            observer,
            record: RunRecord::default(),
            tokens: 0,
            replay: Some(replay),
            used: Duration::try_from_secs_f64(used.unwrap_or_default()).unwrap_or_default(),
        };
        if let Some(start) = start {
            inner.keep(&start);
        }
        Self {
            inner: Mutex::new(inner),
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

    /// The evidence for a version that was found before the run was resumed; empty if it was looked for in vain. It
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

    /// Whether the run had gone on from where it is now, before it was resumed.
    pub(super) fn went_on(&self) -> bool {
        self.lock().replay.as_ref().is_some_and(Replay::went_on)
    }

    fn lock(&self) -> MutexGuard<'_, LogInner<'a>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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
                    None | Some(ConvergenceReason::ModelError | ConvergenceReason::JudgeFailed)
                )
            }),
        });
    }

    pub(super) fn with<T>(&self, read: impl FnOnce(&RunRecord) -> T) -> T {
        read(&self.lock().record)
    }

    pub(super) fn tokens(&self) -> u64 {
        self.lock().tokens
    }

    /// An observer of model calls that turns what they say into events of this step.
    pub(super) fn calls(
        &self,
        phase: Phase,
        iteration: u32,
    ) -> impl Fn(CallEvent<'_>) + Send + Sync {
        move |event| {
            let delta = |kind, text: &str| Event::Delta {
                phase,
                iteration,
                kind,
                text: text.to_owned(),
            };
            match event {
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
                    let event = Event::Call {
                        phase,
                        iteration,
                        model: report.model.clone(),
                        usage: report.usage,
                        duration_ms: u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
                        attempts: report.attempts,
                        error: report.error.map(ToString::to_string),
                    };
                    self.lock().take(event, Some(&report));
                }
            }
        }
    }

    pub(super) fn into_record(self) -> RunRecord {
        self.inner
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .record
    }
}

impl LogInner<'_> {
    /// An event happens. Of a call there is a report.
    fn take(&mut self, event: Event, call: Option<&CallReport<'_>>) {
        if self.is_recorded(&event, call) {
            return;
        }
        self.go_on();
        let stamped = Stamped {
            time: Timestamp::now(),
            event,
        };
        self.record.apply(&stamped);
        match call {
            Some(call) => {
                self.tokens += call.usage.total.unwrap_or_else(|| estimate(call));
                self.observer.on_call(&stamped, call);
            }
            None => self.observer.on_event(&stamped),
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
        let Some(events) = again else {
            // What a replayed call took is counted already, if not at its own place then with what came later.
            return replayed;
        };
        for event in &events {
            self.keep(event);
        }
        if let Some(call) = call.filter(|call| call.usage.total.is_none()) {
            self.tokens += estimate(call);
        }
        true
    }

    /// Takes a recorded event in.
    fn keep(&mut self, stamped: &Stamped) {
        if let Event::Call { usage, .. } = &stamped.event {
            self.tokens += usage.total.unwrap_or(0);
        }
        self.record.apply(stamped);
        self.observer.on_replayed(stamped);
    }

    /// Ends the replay, if there is one: from here on the run does what it has not done yet.
    fn go_on(&mut self) {
        let Some(replay) = self.replay.take() else {
            return;
        };
        let resumed = replay.resumed(self.record.iterations().max(1));
        let rest = replay.rest();
        for stamped in &rest.kept {
            self.keep(stamped);
        }
        self.observer.on_void(&rest.void);
        self.take(resumed, None);
    }
}

/// The tokens of a call whose server does not count them.
fn estimate(call: &CallReport<'_>) -> u64 {
    (call.characters / CHARACTERS_PER_TOKEN) as u64
}
