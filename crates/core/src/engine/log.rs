use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use uuid::Uuid;

use super::replay::{Replay, RunJournal};
use super::spent::Spent;
use super::tool::{self, ToolOutput};
use crate::model::{
    CallEvent, CallObserver, CallReport, ChatEvent, ChatRequest, Exchange, Replies, Reply,
};
use crate::types::{
    CHARACTERS_PER_TOKEN, CandidateStep, ConvergenceReason, DeltaKind, Evaluation, Event, Evidence,
    ExitCode, LoopSettings, ModelId, Phase, Prices, RunRecord, SCHEMA_VERSION, Stamped,
    UserDecision,
};

/// Receives every event of a run in order, as it happens. The run waits until each call returns.
pub trait Observer: Send {
    /// Receives an event.
    fn on_event(&mut self, event: &Stamped);

    /// Receives the event of a call that has ended, together with its request and reply. By default it is passed to
    /// [`Observer::on_event`].
    fn on_call(&mut self, event: &Stamped, _call: &CallReport<'_>) {
        self.on_event(event);
    }

    /// Receives a recorded event of a resumed run, with the time at which it first happened. Observers that store or
    /// show events have already done so in the earlier process.
    fn on_replayed(&mut self, _event: &Stamped) {}

    /// Receives the positions, counted from 0, of recorded events that no longer hold because the run was resumed: its
    /// end, and what followed from it.
    fn on_void(&mut self, _places: &[usize]) {}
}

impl<F: FnMut(&Stamped) + Send> Observer for F {
    fn on_event(&mut self, event: &Stamped) {
        self(event);
    }
}

/// The events of a run: they go to the observer and into the record. In a resumed run, the results of its effects come
/// from the journal that it replays.
pub(super) struct Log<'a> {
    inner: Mutex<LogInner<'a>>,
}

struct LogInner<'a> {
    observer: &'a mut dyn Observer,
    record: RunRecord,
    prices: Prices,
    spent: Spent,
    /// The recorded events that the resumed run has not reached yet; `None` once the run makes new ones.
    replay: Option<Replay>,
    /// The recorded replies that the resumed run has not used yet.
    replies: Replies,
    /// How long the run took before it was resumed.
    used: Duration,
    /// The journal of this run, where prefetch needs one.
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
                replies: Replies::default(),
                used: Duration::ZERO,
                journal: None,
            }),
        }
    }

    /// Keeps a journal of the run from its start.
    pub(super) fn keep_journal(&self) {
        self.lock().journal = Some(RunJournal::default());
    }

    /// The journal of the run so far, if it is kept.
    pub(super) fn journal(&self) -> Option<RunJournal> {
        self.lock().journal.clone()
    }

    /// Replays a journal: as far as it goes, the results of effects are taken from there.
    pub(super) fn replay(&self, run_id: Uuid, journal: RunJournal, settings: LoopSettings) {
        let mut replay = Replay::new(run_id, journal.events, settings);
        let start = replay.take_start();
        let mut inner = self.lock();
        inner.used = replay.used();
        inner.replay = Some(replay);
        inner.replies = Replies::new(journal.calls);
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

    /// The recorded evaluation of a version that the resumed run has not reached yet.
    pub(super) fn recorded_evaluation(&self, version: u32) -> Option<Evaluation> {
        self.recorded(|event| match event {
            Event::Evaluation {
                iteration,
                evaluation,
            } if *iteration == version => Some(evaluation.clone()),
            _ => None,
        })
    }

    /// The recorded decision after the evaluation of a version. A recorded [`UserDecision::Stop`] does not count: the
    /// user who stopped the run is asked again when it is resumed.
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
            // `Auto` is the one decision without an event. If the run did more work, that was the decision; if
            // not, it may have ended while the question was open.
            None => self
                .lock()
                .replay
                .as_ref()
                .is_some_and(Replay::worked_on)
                .then_some(UserDecision::Auto),
        }
    }

    /// Whether a decision of the user is recorded.
    pub(super) fn was_decided(&self) -> bool {
        let decided = |event: &Event| matches!(event, Event::UserDecision { .. }).then_some(());
        self.recorded(decided).is_some()
    }

    /// How many times the run was resumed before it had a draft, including this time.
    pub(super) fn resumed_without_draft(&self) -> u32 {
        self.lock()
            .replay
            .as_ref()
            .map_or(0, Replay::resumed_without_draft)
    }

    /// The next recorded step of a candidate.
    pub(super) fn recorded_step(&self, version: u32, number: u32) -> Option<CandidateStep> {
        let inner = self.lock();
        inner.replay.as_ref()?.candidate(version, number).cloned()
    }

    /// The recorded output of a tool, or the recorded problem if it could not run.
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

    /// The recorded evidence for a version. It is empty if there is no event for it but the run went on: the search comes
    /// first in a step, so it was made and found nothing.
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

    /// The first result that `find` returns for the recorded events which the resumed run has not reached yet. The results
    /// of all effects except model calls are taken from here.
    fn recorded<T>(&self, find: impl FnMut(&Event) -> Option<T>) -> Option<T> {
        self.lock().replay.as_ref()?.left().find_map(find)
    }

    /// Whether a resumed run is still replaying recorded events.
    pub(super) fn replays(&self) -> bool {
        self.lock().replay.is_some()
    }

    /// Whether the journal goes on from where the resumed run is now.
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

    /// The calls of a step, whose events become events of the run.
    pub(super) fn calls(&self, phase: Phase, iteration: u32) -> StepCalls<'_, 'a> {
        self.calls_of(phase, iteration, true)
    }

    /// As [`Log::calls`]. Of concurrent calls only one may be `live`: the deltas of the others are dropped, because
    /// readers could not tell them apart.
    pub(super) fn calls_of(&self, phase: Phase, iteration: u32, live: bool) -> StepCalls<'_, 'a> {
        StepCalls {
            log: self,
            phase,
            iteration,
            live,
        }
    }

    pub(super) fn into_record(self) -> RunRecord {
        self.inner.into_inner().record
    }
}

/// The model calls of one step of a run.
pub(super) struct StepCalls<'l, 'a> {
    log: &'l Log<'a>,
    phase: Phase,
    iteration: u32,
    /// Whether pieces of replies become events.
    live: bool,
}

impl StepCalls<'_, '_> {
    fn delta(&self, kind: DeltaKind, text: &str) {
        if self.live {
            self.log.emit(Event::Delta {
                phase: self.phase,
                iteration: self.iteration,
                kind,
                text: text.to_owned(),
            });
        }
    }
}

impl CallObserver for StepCalls<'_, '_> {
    fn on_event(&self, event: CallEvent<'_>) {
        let (log, phase, iteration) = (self.log, self.phase, self.iteration);
        match event {
            CallEvent::Chat(ChatEvent::Text(text)) => self.delta(DeltaKind::Text, text),
            CallEvent::Chat(ChatEvent::Reasoning(text)) => self.delta(DeltaKind::Reasoning, text),
            CallEvent::Chat(ChatEvent::Retry { error, wait }) => log.emit(Event::Retry {
                phase,
                iteration,
                message: error.to_string(),
                wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            }),
            CallEvent::Chat(ChatEvent::Notice(message)) => {
                let known = log.with(|record| record.warnings.contains(message));
                if !known {
                    log.emit(Event::Warning {
                        message: message.clone(),
                    });
                }
            }
            CallEvent::Chat(_) => {}
            CallEvent::End(report) => {
                let mut inner = log.lock();
                let event = Event::Call {
                    phase,
                    iteration,
                    model: report.model.clone(),
                    usage: report.reply.usage,
                    cost: inner.cost(&report),
                    duration_ms: u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
                    attempts: report.reply.attempts,
                    error: report.error.map(ToString::to_string),
                };
                inner.take(event, Some(&report));
            }
        }
    }

    fn take_recorded(&self, model: &ModelId, request: &ChatRequest) -> Option<Reply> {
        self.log.lock().replies.take(model, request)
    }

    fn is_recorded(&self, model: &ModelId, request: &ChatRequest) -> bool {
        self.log.lock().replies.holds(model, request)
    }
}

impl LogInner<'_> {
    /// Takes an event in, with the report if it is a call.
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

    /// The cost of a call, if the model's price is known.
    fn cost(&self, report: &CallReport<'_>) -> Option<f64> {
        self.prices.of(report.model)?.cost(&report.reply.usage)
    }

    /// Adds the tokens and the cost of a call to what the run has spent. Tokens that the server did not count are
    /// estimated; an unknown cost counts as the most that these tokens can cost.
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

    /// Whether the event is recorded already. If it is, the recorded one is taken in.
    fn is_recorded(&mut self, event: &Event, call: Option<&CallReport<'_>>) -> bool {
        let replayed = call.is_some_and(|call| call.replayed);
        // A call that reaches a model now is not in the journal.
        let is_new = call.is_some() && !replayed || matches!(event, Event::Retry { .. });
        let again = match &mut self.replay {
            Some(replay) if !is_new => replay.again(event),
            _ => None,
        };
        let Some(mut events) = again else {
            // The usage of a replayed call was counted with its recorded event. If the server did not count tokens,
            // they are estimated from the text, which the event does not have.
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

    /// Takes a recorded event in. `estimate` is the number of tokens of a call whose server did not count them.
    fn keep(&mut self, stamped: &Stamped, estimate: u64) {
        self.spend(&stamped.event, estimate);
        self.apply(stamped);
        self.observer.on_replayed(stamped);
    }

    fn apply(&mut self, stamped: &Stamped) {
        self.record.apply(stamped);
        if let Some(journal) = &mut self.journal
            && stamped.event.is_recorded()
        {
            journal.events.push(stamped.clone());
        }
    }

    /// Ends the replay, if there is one. From here on, events are new.
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

/// Estimates the tokens of a call from its length.
fn estimate(call: &CallReport<'_>) -> u64 {
    (call.characters() / CHARACTERS_PER_TOKEN) as u64
}
