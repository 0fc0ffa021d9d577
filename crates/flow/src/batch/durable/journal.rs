//! Records a run of the loop as steps in the server's journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::job::Done;
use crate::batch::row::{Row, Status};
use crate::engine::{Decider, Moment, Observer, RunJournal};
use crate::model::{
    CallReport, ChatModel, ChatRequest, ChatStream, Exchange, Middleware, ModelError,
};
use crate::types::{
    Comparison, ConvergenceReason, Event, ExitCode, RunRecord, Stamped, TokenUsage, UserDecision,
};

/// An entry of the server's journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Identifies the attempt at the task. It changes when another worker takes over.
    pub(super) attempt: u32,
    /// The number of model calls in progress.
    pub(super) calls: u32,
    pub(super) step: Step,
}

/// A step of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// The worker is about to do something that must not happen twice, such as a model call. It waits until
    /// this is in the journal. The server rejects it once another worker has the task.
    Holds,
    /// The run made progress.
    Progressed(Box<Progress>),
    /// The run waits for a decision about a draft.
    Asks(Box<Question>),
    /// The run is over.
    Ended(Box<Done>),
}

/// A draft that waits for a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Question {
    /// The draft's number.
    pub(super) draft: u32,
    output: String,
    #[serde(alias = "score")]
    overall_score: Option<f64>,
    /// Why the loop would stop without a decision; null if it would continue.
    stops: Option<ConvergenceReason>,
}

/// The progress of a run between two steps.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// The positions of earlier events that are void.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    void: Vec<usize>,
    events: Vec<Stamped>,
    /// The completed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<Exchange>,
}

impl Progress {
    /// Adds it to the earlier progress.
    pub(super) fn add_to(self, journal: &mut RunJournal) {
        let mut place = 0;
        journal.events.retain(|_| {
            place += 1;
            !self.void.contains(&(place - 1))
        });
        journal.events.extend(self.events);
        journal.calls.extend(self.call);
    }
}

/// Counts the model calls of a task whose replies were lost with their worker. They are repeated and paid for
/// twice.
#[derive(Debug, Default)]
pub(super) struct LostCalls {
    attempt: u32,
    under_way: u32,
    answered: u32,
    lost: u32,
}

impl LostCalls {
    /// Records the next entry.
    pub(super) fn see(&mut self, entry: &Entry) {
        if entry.attempt != self.attempt {
            self.attempt = entry.attempt;
            self.lost += self.under_way;
        }
        self.under_way = entry.calls;
        if let Step::Progressed(progress) = &entry.step {
            self.answered += u32::from(progress.call.is_some());
        }
    }

    /// Adds the lost calls to a row. Their actual usage is unknown, so each counts as an average call of the
    /// task.
    pub(super) fn charge(&self, row: &mut Row) {
        if self.lost == 0 {
            return;
        }
        row.extra.insert("lost_calls".to_owned(), json!(self.lost));
        let answered = self.answered.max(1);
        let share = |tokens: Option<u64>| {
            tokens.map(|tokens| tokens * u64::from(self.lost) / u64::from(answered))
        };
        let used = row.token_usage;
        row.token_usage += TokenUsage {
            estimated: share(used.total),
            ..TokenUsage::new(share(used.prompt), share(used.completion), None)
        };
        row.cost = row
            .cost
            .map(|cost| cost * (1.0 + f64::from(self.lost) / f64::from(answered)));
    }
}

/// A step on its way to the server's journal.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) entry: Entry,
    pub(super) reply: Reply,
}

/// What the run waits for after a step.
#[derive(Debug, Default)]
pub(super) enum Reply {
    /// Nothing.
    #[default]
    None,
    /// Confirmation that the step is in the journal.
    Kept(oneshot::Sender<()>),
    /// A decision.
    Decided(oneshot::Sender<UserDecision>),
}

/// Records the steps of a run in the server's journal. Clones belong to the same run.
#[derive(Debug, Clone)]
pub struct DurableJournal {
    messages: mpsc::UnboundedSender<Message>,
    attempt: u32,
    calls: Arc<AtomicU32>,
    /// Why the last call of this attempt failed, if it did.
    failure: Arc<Mutex<Option<ModelError>>>,
}

/// A model call in progress.
struct OpenCall(Arc<AtomicU32>);

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl DurableJournal {
    /// Creates a journal and the channel of its steps.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Message>) {
        let (messages, steps) = mpsc::unbounded_channel();
        let journal = Self {
            messages,
            attempt: fastrand::u32(1..),
            calls: Arc::default(),
            failure: Arc::default(),
        };
        (journal, steps)
    }

    /// Returns an observer that records the run.
    pub fn observer(&self) -> impl Observer + use<> {
        Recorder {
            journal: self.clone(),
            progress: Progress::default(),
        }
    }

    /// Returns a decider that waits for external decisions.
    pub fn decider(&self) -> impl Decider + use<> {
        Asker(self.clone())
    }

    /// Wraps a model. Each call waits until all earlier steps are in the server's journal and this worker
    /// still has the task.
    pub fn before(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        Arc::new(WriteAheadModel {
            model,
            journal: self.clone(),
        })
    }

    /// Waits until all earlier steps are in the server's journal. Never returns if another worker has taken
    /// over the task, because this run is about to be cancelled.
    pub async fn hold(&self) {
        let (kept, is_kept) = oneshot::channel();
        self.send(Step::Holds, Reply::Kept(kept));
        if is_kept.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Ends the task with the row of this run, and with its comparison if memory was used. An interrupted run
    /// does not end the task: another worker continues it.
    pub fn end(&self, line: u64, id: String, record: &RunRecord, compared: Option<Comparison>) {
        let row = Row::of(line, id, record, self.failure.lock().as_ref());
        if let Some(row) = row {
            self.send(Step::Ended(Box::new(Done { row, compared })), Reply::None);
        }
    }

    /// Ends a task that cannot run.
    pub fn refuse(&self, line: u64, id: String, code: ExitCode, problem: String) {
        let row = Row {
            status: Status::of(code),
            exit_code: code,
            ..Row::invalid(line, Some(id), problem)
        };
        let compared = None;
        self.send(Step::Ended(Box::new(Done { row, compared })), Reply::None);
    }

    fn send(&self, step: Step, reply: Reply) {
        let entry = Entry {
            attempt: self.attempt,
            calls: self.calls.load(Ordering::SeqCst),
            step,
        };
        // Fails if the receiver is gone. The run is then about to be cancelled.
        let _ = self.messages.send(Message { entry, reply });
    }
}

struct Recorder {
    journal: DurableJournal,
    progress: Progress,
}

impl Recorder {
    fn add(&mut self, event: &Stamped) {
        if event.event.is_recorded() {
            self.progress.events.push(event.clone());
        }
    }

    fn record(&mut self) {
        let progress = std::mem::take(&mut self.progress);
        let step = Step::Progressed(Box::new(progress));
        self.journal.send(step, Reply::None);
    }
}

impl Observer for Recorder {
    fn on_event(&mut self, event: &Stamped) {
        self.add(event);
        // The results of the user's programs are recorded too, so they are not recomputed.
        if matches!(
            event.event,
            Event::Evaluation { .. } | Event::ToolResult { .. } | Event::Evidence { .. }
        ) {
            self.record();
        }
    }

    fn on_call(&mut self, event: &Stamped, call: &CallReport<'_>) {
        self.add(event);
        *self.journal.failure.lock() = call.error.cloned();
        // Omits the prompt, because the resumed run rebuilds it.
        self.progress.call = Exchange::of(call, Vec::new());
        self.record();
    }

    fn on_void(&mut self, places: &[usize]) {
        self.progress.void = places.to_vec();
    }
}

struct Asker(DurableJournal);

#[async_trait::async_trait]
impl Decider for Asker {
    async fn decide(&mut self, moment: Moment<'_>) -> UserDecision {
        let version = moment.version();
        let evaluation = version.and_then(|version| version.evaluation.as_ref());
        let question = Question {
            draft: moment.iteration,
            output: version.map_or_else(String::new, |version| version.output.clone()),
            overall_score: evaluation.and_then(|evaluation| evaluation.overall_score),
            stops: moment.stops,
        };
        let (decided, decision) = oneshot::channel();
        let reply = Reply::Decided(decided);
        self.0.send(Step::Asks(Box::new(question)), reply);
        match decision.await {
            Ok(decision) => decision,
            // The run is about to be cancelled.
            Err(_) => std::future::pending().await,
        }
    }
}

struct WriteAheadModel {
    model: Arc<dyn ChatModel>,
    journal: DurableJournal,
}

impl Middleware for WriteAheadModel {
    fn inner(&self) -> &dyn ChatModel {
        &*self.model
    }

    fn call(&self, request: ChatRequest) -> ChatStream<'_> {
        stream::once(async move {
            self.journal.calls.fetch_add(1, Ordering::SeqCst);
            let open = OpenCall(Arc::clone(&self.journal.calls));
            self.journal.hold().await;
            self.model.chat(request).inspect(move |_| {
                let _ = &open;
            })
        })
        .flatten()
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::engine::Loop;
    use crate::model::ScriptedModel;
    use crate::reflector::ErrorCategory;
    use crate::types::{Task, Version};

    /// The second draft is short enough.
    const SCRIPT: &str =
        "[[reply]]\ntext = 'one two three four five six'\n[[reply]]\ntext = 'one two'\n";
    const CRITERIA: &str =
        "name = 'c'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nunit = 'words'\nmax = 3";

    fn scripted(script: &str) -> Arc<dyn ChatModel> {
        Arc::new(ScriptedModel::parse(Path::new("s.toml"), script).unwrap())
    }

    /// Resumes a run from `past` and records it in this journal.
    async fn run(past: RunJournal, journal: &DurableJournal, script: &str) -> RunRecord {
        let model = journal.before(scripted(script));
        let criteria = crate::criteria::parse(CRITERIA, "c.toml").unwrap();
        let plan = Loop::builder(model, Arc::new(criteria)).build().unwrap();
        let (task, cancel) = (Task::new("Write."), CancellationToken::new());
        let mut observer = journal.observer();
        let record = plan
            .run_over(&task, past, &mut observer, None, &cancel)
            .await;
        journal.end(1, "a".to_owned(), &record, None);
        record
    }

    /// Acts as a server that records every step immediately. Returns the entries.
    async fn keep_all(mut steps: mpsc::UnboundedReceiver<Message>) -> Vec<Entry> {
        let mut entries = Vec::new();
        while let Some(Message { entry, reply }) = steps.recv().await {
            if let Reply::Kept(kept) = reply {
                kept.send(()).unwrap();
            }
            let is_last = matches!(entry.step, Step::Ended(_));
            entries.push(entry);
            if is_last {
                break;
            }
        }
        entries
    }

    /// Runs to the end. Returns the record and the new entries.
    async fn entries(past: RunJournal, script: &str) -> (RunRecord, Vec<Entry>) {
        let (journal, steps) = DurableJournal::new();
        tokio::join!(run(past, &journal, script), keep_all(steps))
    }

    fn texts(record: &RunRecord) -> Vec<&str> {
        record
            .versions
            .iter()
            .map(|version: &Version| version.output.as_str())
            .collect()
    }

    #[tokio::test]
    async fn a_run_resumes_from_any_step_without_repeating_completed_calls() {
        let (whole, all) = entries(RunJournal::default(), SCRIPT).await;
        assert_eq!(texts(&whole), ["one two three four five six", "one two"]);
        // Two calls, each preceded by a hold; two verdicts; the end.
        assert_eq!(all.len(), 7);
        for kept in 0..all.len() {
            let mut past = RunJournal::default();
            let mut calls = LostCalls::default();
            let mut answered = 0;
            let is_under_way = kept > 0 && matches!(all[kept - 1].step, Step::Holds);
            for entry in &all[..kept] {
                calls.see(entry);
                // Round-trip through the journal.
                let json = serde_json::to_string(entry).unwrap();
                let entry: Entry = serde_json::from_str(&json).unwrap();
                if let Step::Progressed(progress) = entry.step {
                    answered += usize::from(progress.call.is_some());
                    progress.add_to(&mut past);
                }
            }
            // A worker whose model has only the remaining replies.
            let left: Vec<&str> = SCRIPT.split_inclusive("'\n").skip(answered).collect();
            let (record, more) = entries(past, &left.concat()).await;
            assert_eq!(texts(&record), texts(&whole), "after {kept} steps");
            let again = usize::from(is_under_way);
            assert_eq!(more.len() + kept, all.len() + again, "after {kept} steps");
            if kept > 1 {
                assert_eq!(record.run_id, whole.run_id);
            }
            for entry in &more {
                calls.see(entry);
            }
            assert_eq!(calls.lost, u32::from(is_under_way), "after {kept} steps");
        }
    }

    #[test]
    fn a_lost_call_counts_as_an_average_call_of_its_task() {
        let row = Row {
            token_usage: TokenUsage::new(Some(200), Some(40), Some(100)),
            cost: Some(0.5),
            ..Row::invalid(1, None, String::new())
        };
        let calls = LostCalls {
            answered: 2,
            lost: 1,
            ..LostCalls::default()
        };
        let mut charged = row.clone();
        calls.charge(&mut charged);
        assert_eq!(charged.extra["lost_calls"], 1);
        let usage = TokenUsage {
            cached: Some(100),
            estimated: Some(120),
            ..TokenUsage::new(Some(300), Some(60), None)
        };
        assert_eq!((charged.token_usage, charged.cost), (usage, Some(0.75)));
        let mut same = row.clone();
        LostCalls::default().charge(&mut same);
        assert_eq!(same, row);
    }

    #[tokio::test]
    async fn a_call_waits_until_all_earlier_steps_are_recorded() {
        let (journal, mut steps) = DurableJournal::new();
        let keep = async {
            let pause = Duration::from_millis(50);
            for calls in [0, 1] {
                let hold = steps.recv().await.unwrap();
                let Reply::Kept(kept) = hold.reply else {
                    panic!("no step may come before the hold");
                };
                assert_eq!(hold.entry.calls, 1);
                assert!(tokio::time::timeout(pause, steps.recv()).await.is_err());
                kept.send(()).unwrap();
                // The reply and its verdict, which need no confirmation.
                for _ in 0..2 {
                    let step = steps.recv().await.unwrap();
                    assert!(matches!(step.entry.step, Step::Progressed(_)), "{calls}");
                    assert_eq!(step.entry.calls, 0);
                }
            }
        };
        let past = RunJournal::default();
        tokio::join!(run(past, &journal, SCRIPT), keep);
    }

    /// By its text alone, the rejection would count as a timeout, and the task would be retried.
    #[tokio::test]
    async fn the_row_has_the_category_of_the_failure() {
        let script = "[[reply]]\nerror = { class = 'rejected', message = 'it timed out' }\n";
        let (_, mut all) = entries(RunJournal::default(), script).await;
        let Some(Step::Ended(done)) = all.pop().map(|entry| entry.step) else {
            panic!("the last step is the end");
        };
        assert_eq!(done.row.error_category, Some(ErrorCategory::Validation));
    }

    #[test]
    fn void_events_are_removed() {
        let warning = |text: &str| Stamped {
            time: jiff::Timestamp::UNIX_EPOCH,
            event: Event::Warning {
                message: text.to_owned(),
            },
        };
        let mut past = RunJournal::default();
        for (void, text) in [(vec![], "a"), (vec![], "b"), (vec![0], "c")] {
            let progress = Progress {
                void,
                events: vec![warning(text)],
                call: None,
            };
            progress.add_to(&mut past);
        }
        assert_eq!(past.events, [warning("b"), warning("c")]);
    }
}
