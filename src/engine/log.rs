use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use uuid::Uuid;

use super::spent::Spent;
use crate::model::{CallEvent, CallReport, ChatEvent};
use crate::types::{
    ConvergenceReason, DeltaKind, Event, ExitCode, Phase, Prices, RunRecord, SCHEMA_VERSION,
    Stamped,
};

/// Sees every event of a run, in order, as it happens. What it does is done before the run goes on.
pub trait Observer: Send {
    /// Takes an event in.
    fn on_event(&mut self, event: &Stamped);
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
}

/// The usual estimate where a server does not count tokens: about four characters make one.
const CHARACTERS_PER_TOKEN: usize = 4;

impl<'a> Log<'a> {
    pub(super) fn new(observer: &'a mut dyn Observer, prices: Prices) -> Self {
        Self {
            inner: Mutex::new(LogInner {
                observer,
                record: RunRecord::default(),
                prices,
                spent: Spent::default(),
            }),
        }
    }

    /// A log that goes on from here, to another observer.
    pub(super) fn copied<'b>(&self, observer: &'b mut dyn Observer) -> Log<'b> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        Log {
            inner: Mutex::new(LogInner {
                observer,
                record: inner.record.clone(),
                prices: inner.prices.clone(),
                spent: inner.spent,
            }),
        }
    }

    pub(super) fn emit(&self, event: Event) {
        let stamped = Stamped {
            time: Timestamp::now(),
            event,
        };
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.record.apply(&stamped);
        inner.observer.on_event(&stamped);
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
        read(
            &self
                .inner
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .record,
        )
    }

    pub(super) fn spent(&self) -> Spent {
        self.inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .spent
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
                    let cost = self.spend(&report);
                    self.emit(Event::Call {
                        phase,
                        iteration,
                        model: report.model.clone(),
                        usage: report.usage,
                        cost,
                        duration_ms: u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
                        attempts: report.attempts,
                        error: report.error.map(ToString::to_string),
                    });
                }
            }
        }
    }

    /// Takes in what a call used; gives what it cost, if that is known.
    fn spend(&self, report: &CallReport<'_>) -> Option<f64> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let estimate = (report.characters / CHARACTERS_PER_TOKEN) as u64;
        let tokens = report.usage.total.unwrap_or(estimate);
        let price = inner.prices.of(report.model);
        let cost = price.and_then(|price| price.cost(&report.usage));
        let at_most = price.map_or(0.0, |price| price.at_most(tokens));
        inner.spent.tokens += tokens;
        inner.spent.cost += cost.unwrap_or(at_most);
        cost
    }

    pub(super) fn into_record(self) -> RunRecord {
        self.inner
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .record
    }
}
