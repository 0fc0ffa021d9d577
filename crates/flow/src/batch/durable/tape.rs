//! A run of the loop, told in steps that somebody keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{StreamExt as _, stream};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};

use super::job::Done;
use crate::batch::row::{Row, Status};
use crate::engine::{Decider, Moment, Observer, RunJournal};
use crate::model::{
    CallReport, ChatModel, ChatRequest, ChatStream, Exchange, ModelError, ModelInfo,
};
use crate::types::{
    Comparison, ConvergenceReason, Event, ExitCode, ModelId, RunRecord, Stamped, UserDecision,
};

/// A step of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// The run went on.
    Went(Box<Stretch>),
    /// Somebody is to say how it goes on.
    Asks(Box<Question>),
    /// It is over.
    Ended(Box<Done>),
}

/// A draft that somebody decides about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Question {
    /// Its number.
    pub(super) draft: u32,
    output: String,
    score: Option<f64>,
    /// Why the loop would stop if it were left alone; null if it would go on.
    stops: Option<ConvergenceReason>,
}

/// What a run did from one step to the next.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Stretch {
    /// Which of the events before are void, by their places among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    void: Vec<usize>,
    events: Vec<Stamped>,
    /// The call that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<Exchange>,
}

impl Stretch {
    /// Adds it to what was done before.
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

/// Where a run tells its steps. Clones belong to the same run.
#[derive(Debug, Clone)]
pub struct Tape {
    steps: mpsc::UnboundedSender<Step>,
    told: Arc<AtomicU64>,
    /// How many of them are kept.
    kept: watch::Receiver<u64>,
    /// What was decided last, and about which draft.
    decided: watch::Receiver<Option<(u32, UserDecision)>>,
    /// Why the last call failed, if it did, and was made here.
    failure: Arc<Mutex<Option<ModelError>>>,
}

/// Who keeps the steps of a run.
#[derive(Debug)]
pub(super) struct Keeper {
    steps: mpsc::UnboundedReceiver<Step>,
    kept: watch::Sender<u64>,
    decided: watch::Sender<Option<(u32, UserDecision)>>,
}

impl Keeper {
    /// The next step; `None` where the run is gone.
    pub(super) async fn next(&mut self) -> Option<Step> {
        self.steps.recv().await
    }

    /// Says that one more step is kept.
    pub(super) fn kept(&self) {
        self.kept.send_modify(|kept| *kept += 1);
    }

    /// Says what was decided about a draft.
    pub(super) fn decided(&self, draft: u32, decision: UserDecision) {
        self.decided.send_replace(Some((draft, decision)));
    }
}

impl Tape {
    /// A tape, and its other end.
    pub(super) fn new() -> (Self, Keeper) {
        let (told, steps) = mpsc::unbounded_channel();
        let (kept, is_kept) = watch::channel(0);
        let (decided, is_decided) = watch::channel(None);
        let tape = Self {
            steps: told,
            told: Arc::default(),
            kept: is_kept,
            decided: is_decided,
            failure: Arc::default(),
        };
        let keeper = Keeper {
            steps,
            kept,
            decided,
        };
        (tape, keeper)
    }

    /// An observer of the run, who tells what happens.
    pub fn observer(&self) -> impl Observer + use<> {
        Teller {
            tape: self.clone(),
            stretch: Stretch::default(),
        }
    }

    /// Asks whoever keeps the steps how the run goes on.
    pub fn decider(&self) -> impl Decider + use<> {
        Asker(self.clone())
    }

    /// This model, which is asked nothing before all that has happened is kept.
    pub fn before(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        Arc::new(Careful {
            model,
            tape: self.clone(),
        })
    }

    /// The run has ended with this, and with this comparison, if it was told something from memory. If it was
    /// interrupted, nothing has come of it, and somebody else goes on.
    pub fn end(&self, line: u64, id: String, record: &RunRecord, compared: Option<Comparison>) {
        let failure = self.failure();
        if let Some(row) = Row::of(line, id, record, failure.as_ref()) {
            self.tell(Step::Ended(Box::new(Done { row, compared })));
        }
    }

    /// There can be no run, for this reason.
    pub fn refuse(&self, line: u64, id: String, code: ExitCode, problem: String) {
        let row = Row {
            status: Status::of(code),
            exit_code: code,
            ..Row::invalid(line, Some(id), problem)
        };
        let compared = None;
        self.tell(Step::Ended(Box::new(Done { row, compared })));
    }

    fn failure(&self) -> MutexGuard<'_, Option<ModelError>> {
        self.failure.lock()
    }

    fn tell(&self, step: Step) {
        self.told.fetch_add(1, Ordering::SeqCst);
        // Where nobody listens any more the run is about to be cancelled.
        let _ = self.steps.send(step);
    }

    /// Waits until all that was told is kept.
    async fn settled(&self) {
        let told = self.told.load(Ordering::SeqCst);
        if self
            .kept
            .clone()
            .wait_for(|kept| *kept >= told)
            .await
            .is_err()
        {
            // Nobody keeps anything any more: the run ends here, before it pays for more.
            std::future::pending::<()>().await;
        }
    }
}

struct Teller {
    tape: Tape,
    stretch: Stretch,
}

impl Teller {
    fn keep(&mut self, event: &Stamped) {
        if event.event.is_lasting() {
            self.stretch.events.push(event.clone());
        }
    }

    fn tell(&mut self) {
        let stretch = std::mem::take(&mut self.stretch);
        self.tape.tell(Step::Went(Box::new(stretch)));
    }
}

impl Observer for Teller {
    fn on_event(&mut self, event: &Stamped) {
        self.keep(event);
        // What a program of the user's said is not to be asked for again either.
        if matches!(
            event.event,
            Event::Evaluation { .. } | Event::ToolResult { .. } | Event::Evidence { .. }
        ) {
            self.tell();
        }
    }

    fn on_call(&mut self, event: &Stamped, call: &CallReport<'_>) {
        self.keep(event);
        *self.tape.failure() = call.error.cloned();
        // What was asked is not kept: it comes about again.
        self.stretch.call = Exchange::of(call, Vec::new());
        self.tell();
    }

    fn on_void(&mut self, places: &[usize]) {
        self.stretch.void = places.to_vec();
    }
}

struct Asker(Tape);

#[async_trait::async_trait]
impl Decider for Asker {
    async fn decide(&mut self, moment: Moment<'_>) -> UserDecision {
        let (draft, version) = (moment.iteration, moment.version());
        let evaluation = version.and_then(|version| version.evaluation.as_ref());
        self.0.tell(Step::Asks(Box::new(Question {
            draft,
            output: version.map_or_else(String::new, |version| version.output.clone()),
            score: evaluation.and_then(|evaluation| evaluation.overall_score),
            stops: moment.stops,
        })));
        let is_answer = |decided: &Option<(u32, UserDecision)>| {
            decided.as_ref().is_some_and(|(about, _)| *about == draft)
        };
        let answer = match self.0.decided.wait_for(is_answer).await {
            Ok(answer) => answer.clone(),
            Err(_) => None,
        };
        match answer {
            Some((_, decision)) => decision,
            // Nobody waits for the run any more: it is about to be cancelled.
            None => std::future::pending().await,
        }
    }
}

struct Careful {
    model: Arc<dyn ChatModel>,
    tape: Tape,
}

#[async_trait::async_trait]
impl ChatModel for Careful {
    fn id(&self) -> &ModelId {
        self.model.id()
    }

    fn address(&self) -> Option<String> {
        self.model.address()
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        stream::once(async move {
            self.tape.settled().await;
            self.model.chat(request)
        })
        .flatten()
        .boxed()
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        self.model.info().await
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

    /// A run with this past, told on this tape.
    async fn run(past: RunJournal, tape: &Tape, script: &str) -> RunRecord {
        let model = tape.before(scripted(script));
        let criteria = crate::criteria::parse(CRITERIA, "c.toml").unwrap();
        let plan = Loop::builder(model, Arc::new(criteria)).build().unwrap();
        let (task, cancel) = (Task::new("Write."), CancellationToken::new());
        let mut observer = tape.observer();
        let record = plan
            .run_over(&task, past, &mut observer, None, &cancel)
            .await;
        tape.end(1, "a".to_owned(), &record, None);
        record
    }

    /// The steps of a whole run, all of which are kept at once.
    async fn steps(past: RunJournal, script: &str) -> (RunRecord, Vec<Step>) {
        let (tape, mut keeper) = Tape::new();
        let told = async {
            let mut steps = Vec::new();
            while let Some(step) = keeper.next().await {
                keeper.kept();
                let is_last = matches!(step, Step::Ended(_));
                steps.push(step);
                if is_last {
                    break;
                }
            }
            steps
        };
        tokio::join!(run(past, &tape, script), told)
    }

    fn texts(record: &RunRecord) -> Vec<&str> {
        record
            .versions
            .iter()
            .map(|version: &Version| version.output.as_str())
            .collect()
    }

    #[tokio::test]
    async fn from_whichever_step_a_run_goes_on_it_comes_to_the_same_and_repeats_nothing() {
        let (whole, all) = steps(RunJournal::default(), SCRIPT).await;
        assert_eq!(texts(&whole), ["one two three four five six", "one two"]);
        // Two calls, two verdicts, the end.
        assert_eq!(all.len(), 5);
        for kept in 0..all.len() {
            let mut past = RunJournal::default();
            let mut answered = 0;
            for step in &all[..kept] {
                // As it comes back from the journal.
                let json = serde_json::to_string(step).unwrap();
                let Step::Went(stretch) = serde_json::from_str(&json).unwrap() else {
                    panic!("only the last step is an end");
                };
                answered += usize::from(stretch.call.is_some());
                stretch.add_to(&mut past);
            }
            // A machine whose model has only the answers that are still to come.
            let left: Vec<&str> = SCRIPT.split_inclusive("'\n").skip(answered).collect();
            let (record, more) = steps(past, &left.concat()).await;
            assert_eq!(texts(&record), texts(&whole), "after {kept} steps");
            assert_eq!(more.len() + kept, all.len(), "after {kept} steps");
            if kept > 0 {
                assert_eq!(record.run_id, whole.run_id);
            }
        }
    }

    #[tokio::test]
    async fn nothing_is_asked_before_what_was_done_is_kept() {
        let (tape, mut keeper) = Tape::new();
        let hold = async {
            let first = keeper.next().await;
            assert!(matches!(first, Some(Step::Went(_))));
            // The verdict is computed, and told; the next call is not made.
            assert!(matches!(keeper.next().await, Some(Step::Went(_))));
            let pause = Duration::from_millis(50);
            assert!(tokio::time::timeout(pause, keeper.next()).await.is_err());
            keeper.kept();
            assert!(tokio::time::timeout(pause, keeper.next()).await.is_err());
            keeper.kept();
            assert!(keeper.next().await.is_some());
        };
        let past = RunJournal::default();
        tokio::join!(run(past, &tape, SCRIPT), hold);
    }

    /// By its words alone a refusal would be taken for a failure of time, and the task be tried again.
    #[tokio::test]
    async fn the_row_says_what_kind_of_failure_it_was() {
        let (tape, mut keeper) = Tape::new();
        let script = "[[reply]]\nerror = { class = 'rejected', message = 'it timed out' }\n";
        let keep = async {
            while let Some(step) = keeper.next().await {
                keeper.kept();
                if let Step::Ended(done) = step {
                    return done.row.error_category;
                }
            }
            None
        };
        let (_, category) = tokio::join!(run(RunJournal::default(), &tape, script), keep);
        assert_eq!(category, Some(ErrorCategory::Validation));
    }

    #[test]
    fn what_is_void_is_taken_out() {
        let warning = |text: &str| Stamped {
            time: jiff::Timestamp::UNIX_EPOCH,
            event: Event::Warning {
                message: text.to_owned(),
            },
        };
        let mut past = RunJournal::default();
        for (void, text) in [(vec![], "a"), (vec![], "b"), (vec![0], "c")] {
            let stretch = Stretch {
                void,
                events: vec![warning(text)],
                call: None,
            };
            stretch.add_to(&mut past);
        }
        assert_eq!(past.events, [warning("b"), warning("c")]);
    }
}
