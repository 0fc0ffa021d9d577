mod contest;
mod continuation;
mod prefetch;
mod reflect;
mod steps;
mod tools;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::ahead::Ahead;
use super::builder::LoopBuilder;
use super::critique::describe;
use super::decide::{self, Decider};
use super::drive::{Worker, drive};
use super::early::{EarlyStop, Reading};
use super::ending::ending;
use super::evidence;
use super::gate::{self, NotADraft, Occasion};
use super::ledger::Ledger;
use super::log::{Log, Observer};
use super::machine::{Abilities, Given, Happened, Next, State};
use super::policy::Approach;
use super::replay::{Replay, RunJournal};
use super::similarity::similarity;
use super::start::Start;
use super::tool::WriterTool;
use super::verdict::Verdict;
use super::{critics, lessons, past};
use crate::evaluate::{
    ComparisonError, Earlier, JudgeModel, Pair, Panel, Progress, Subject, Tools, prefer,
};
use crate::evidence::Gatherer;
use crate::model::{
    ChatModel, ChatRequest, EndReason, ErrorClass, Message, ModelError, Purpose, Reply, Sampling,
    Think, call_until,
};
use crate::prompt::{Prompts, Templates};
use crate::revise::{self, Revision};
use crate::types::{
    ConvergenceReason, Criteria, EditCounts, Evaluation, Evaluator, Event, ExitCode, Issue,
    LoopSettings, Models, Phase, Prices, RunRecord, SCHEMA_VERSION, Setup, Strategy, Task,
    UserDecision, Version,
};

/// What to do about a judge whose verdicts cannot be read: most often it is too small for the task.
const JUDGE_HINT: &str =
    "let another model judge with `--judge-model`, or use criteria with fewer points";

/// A loop, ready to run. It may run on any number of tasks.
#[derive(Clone)]
pub struct Loop {
    /// What it begins with.
    pub(super) start: Start,
    /// Writes and revises.
    pub(super) writer: Arc<dyn ChatModel>,
    /// How the writer chooses tokens.
    pub(super) writer_sampling: Sampling,
    /// How much the writer reasons.
    pub(super) think: Think,
    /// Writes where the writer makes no progress any more, if there is one.
    pub(super) stronger: Option<Arc<dyn ChatModel>>,
    /// Judges, and compares drafts whose scores are too close to say.
    pub(super) judge: JudgeModel,
    /// What drafts are measured by.
    pub(super) criteria: Arc<Criteria>,
    /// How the loop behaves, all layers laid over each other.
    pub(super) settings: LoopSettings,
    /// What the criteria may use beside models.
    pub(super) tools: Tools,
    /// What the models cost; empty where that is not known.
    pub(super) prices: Prices,
    /// Finds evidence for the task, and for each revision anew; `None` to look for none.
    pub(super) evidence: Option<Arc<Gatherer>>,
    /// Templates of the user's own; `None` for the built-in ones.
    pub(super) templates: Option<Arc<Templates>>,
    /// Programs whose output the writer is shown before it writes.
    pub(super) writer_tools: Vec<WriterTool>,
    /// What it takes to go on with a run later: it is recorded with the start. `None` where nobody will.
    pub(super) setup: Option<Setup>,
    /// Whether the writer is asked ahead while somebody decides.
    pub(super) prefetch: bool,
    /// The evaluators, once they were made: they are the same for each run.
    pub(super) panel: OnceLock<Arc<Panel>>,
}

impl Loop {
    /// Begins a loop in which this model writes, drafts are measured by these criteria, and all else is as by
    /// default.
    pub fn builder(writer: Arc<dyn ChatModel>, criteria: Arc<Criteria>) -> LoopBuilder {
        LoopBuilder::new(writer, criteria)
    }

    pub(super) fn new(model: Arc<dyn ChatModel>, criteria: Arc<Criteria>) -> Self {
        let (sampling, think) = (Sampling::default(), Think::default());
        Self {
            start: Start::Task,
            judge: JudgeModel::new(Arc::clone(&model), sampling.clone(), think),
            writer: model,
            writer_sampling: sampling,
            think,
            stronger: None,
            criteria,
            settings: LoopSettings::default(),
            tools: Tools::none(),
            prices: Prices::default(),
            evidence: None,
            templates: None,
            writer_tools: Vec::new(),
            setup: None,
            prefetch: false,
            panel: OnceLock::new(),
        }
    }

    /// Runs the loop. The record holds every version and the one selected; the observer has seen every
    /// event when this returns, [`Event::RunEnd`] included.
    ///
    /// Cancelling the token ends the run at the next await, with what it has produced so far.
    pub async fn run(
        &self,
        task: &Task,
        observer: &mut dyn Observer,
        cancel: &CancellationToken,
    ) -> RunRecord {
        let begun = RunJournal::default();
        self.run_over(task, begun, observer, None, cancel).await
    }

    /// The same with somebody who may decide for the loop, and is asked after each evaluation.
    ///
    /// The limits of the run hold whatever is decided; who wants to go on for longer sets them higher. A text
    /// of the user's own is taken in at the iteration limit all the same, and ends the run then.
    pub async fn run_with_decider(
        &self,
        task: &Task,
        observer: &mut dyn Observer,
        decider: &mut dyn Decider,
        cancel: &CancellationToken,
    ) -> RunRecord {
        let begun = RunJournal::default();
        self.run_over(task, begun, observer, Some(decider), cancel)
            .await
    }

    /// Runs the loop over the journal of a run, which goes on from there: the task must be the same, and the loop built as
    /// it was then, but for limits. Over an empty one this is [`Loop::run`]; with a decider, if there is one,
    /// [`Loop::run_with_decider`].
    ///
    /// What happens again as it was recorded keeps its time, and the observer is told so
    /// ([`Observer::on_replayed`]); the first new event is [`Event::Resumed`]. Limits count what was used before. Nobody
    /// is asked again what is decided already; but who ended the run is, since it goes on.
    pub async fn run_over(
        &self,
        task: &Task,
        journal: RunJournal,
        observer: &mut dyn Observer,
        decider: Option<&mut dyn Decider>,
        cancel: &CancellationToken,
    ) -> RunRecord {
        let log = Log::new(observer, self.prices.clone());
        if self.prefetch && decider.is_some() {
            log.keep_journal();
        }
        let begun = journal.start().map(|(run_id, _)| run_id);
        let run_id = begun.unwrap_or_else(Uuid::now_v7);
        if begun.is_some() {
            let settings = self.settings.clone();
            log.replay(Replay::new(run_id, journal.events, settings));
        } else {
            log.emit(self.started(run_id, task));
        }
        let answered;
        let plan = if journal.calls.is_empty() {
            self
        } else {
            answered = self.after(journal.calls);
            &answered
        };
        Box::pin(plan.go(run_id, task, log, decider, cancel)).await
    }

    /// The event that a run of this task begins.
    fn started(&self, run_id: Uuid, task: &Task) -> Event {
        Event::RunStart {
            schema_version: SCHEMA_VERSION,
            run_id,
            command: self.start.command().to_owned(),
            file: self.start.text().and_then(|text| text.file.clone()),
            task: Box::new(task.clone()),
            criteria: Box::new((*self.criteria).clone()),
            settings: self.settings.clone(),
            models: Models {
                writer: Some(self.writer.id().clone()),
                judge: (self.start.is_judged()).then(|| self.judge.model.id().clone()),
            },
            setup: self.setup.clone().map(Box::new),
        }
    }

    /// Does all that a run does after it is recorded that it begins.
    async fn go(
        &self,
        run_id: Uuid,
        task: &Task,
        log: Log<'_>,
        decider: Option<&mut dyn Decider>,
        cancel: &CancellationToken,
    ) -> RunRecord {
        let panel = match self.panel() {
            Ok(panel) => panel,
            Err(problem) => {
                log.end(run_id, None, false, None, ExitCode::Usage, Some(problem));
                return log.into_record();
            }
        };
        let mut prompts = Prompts::new(task, &self.criteria).with_templates(self.templates.clone());
        let gatherer = self.evidence.as_deref();
        let text = self.start.text().map(|text| text.content.as_str());
        evidence::for_run(gatherer, task, text, &self.criteria, &mut prompts, &log);
        let run = Run {
            plan: self,
            task,
            // The rules of convergence measure by the threshold that the evaluators measure by.
            settings: LoopSettings {
                threshold: Some(self.criteria.threshold),
                ..self.settings.clone()
            },
            prompts,
            panel,
            log: &log,
            decider: match decider {
                Some(decider) => Some(decider),
                None => None,
            },
            edit: String::new(),
            guided: false,
            ledger: Ledger::default(),
            note: None,
            guidance: None,
            consulted: tools::Consulted::default(),
            in_steps: self.settings.steps(),
            error: None,
            written: AtomicU64::new(0),
            candidates: 1,
            history: revise::History::default(),
            early: EarlyStop::new(&self.criteria, &self.settings),
            ahead: Mutex::new(None),
            rejected: None,
            flaws: BTreeMap::new(),
            endless: AtomicBool::new(false),
        };
        run.go(run_id, cancel).await;
        log.into_record()
    }

    /// The writer, or the stronger model if it is wanted and there is one.
    fn who_writes(&self, stronger: bool) -> &dyn ChatModel {
        match &self.stronger {
            Some(model) if stronger => &**model,
            _ => &*self.writer,
        }
    }

    /// The evaluators for a run, unless nothing is judged.
    pub(super) fn panel(&self) -> Result<Option<Panel>, String> {
        if !self.start.is_judged() {
            return Ok(None);
        }
        let made = if let Some(made) = self.panel.get() {
            made
        } else {
            let criteria = Arc::clone(&self.criteria);
            let panel = Panel::new(criteria, Some(self.judge.clone()), &self.tools)?;
            self.panel.get_or_init(|| Arc::new(panel))
        };
        Ok(Some(made.for_another_run()))
    }
}

/// A run under way.
struct Run<'a, 'o> {
    plan: &'a Loop,
    task: &'a Task,
    settings: LoopSettings,
    prompts: Prompts,
    /// `None` where nothing is judged.
    panel: Option<Panel>,
    log: &'a Log<'o>,
    /// Who may decide for the loop.
    decider: Option<&'a mut dyn Decider>,
    /// The text of the user's own that is the next version.
    edit: String,
    /// Whether there is a wish that no revision was told yet.
    guided: bool,
    ledger: Ledger,
    /// What the writer is told with its next call: why its last reply was no draft.
    note: Option<String>,
    /// What the writer is told besides: what it said when it looked back.
    guidance: Option<String>,
    /// What the tools have said.
    consulted: tools::Consulted,
    /// Whether first drafts are written in steps.
    in_steps: bool,
    /// What went wrong, for the end of the run.
    error: Option<String>,
    /// How often the writer was asked. Each time with another seed, or a repeatable model would answer the
    /// same question with the same text.
    written: AtomicU64,
    /// How many candidates the next version is chosen from.
    candidates: u32,
    /// Which kinds of revision have worked.
    history: revise::History,
    /// Which replies are ended before they are complete.
    early: EarlyStop,
    /// A call of the writer that was begun before it was known to be wanted.
    ahead: Mutex<Option<Ahead<'a>>>,
    /// The best of the rejected replies, while there is no draft.
    rejected: Option<Rejected>,
    /// What is wrong with the versions that are rejected replies.
    flaws: BTreeMap<u32, NotADraft>,
    /// Whether a reply that was cut off did not end when it was continued.
    endless: AtomicBool,
}

/// A reply that was rejected, as far as it is a text.
struct Rejected {
    iteration: u32,
    why: NotADraft,
    text: String,
}

/// A draft that is being written, and what it is made of.
#[derive(Clone)]
struct Work {
    phase: Phase,
    iteration: u32,
    /// Whether the stronger model writes it.
    stronger: bool,
    /// Its temperature, if that is not the usual one.
    temperature: Option<f64>,
    /// Its number, if it is one of several candidates.
    candidate: Option<u32>,
    /// When its writer is asked, if it is one of several candidates.
    turns: Option<Turns>,
    /// What is revised, and how.
    from: Option<(u32, Strategy)>,
    /// How edits applied, if they were tried.
    edits: Option<EditCounts>,
    /// The text that is revised.
    base: Option<String>,
    /// What the writer is told to fix, or to avoid.
    issues: Vec<Issue>,
}

impl Work {
    /// A remark about it, with its number if it is one of several candidates.
    fn says(&self, remark: String) -> String {
        match self.candidate {
            Some(candidate) => format!("candidate {candidate}: {remark}"),
            None => remark,
        }
    }

    /// Its writer was asked.
    fn took_turn(&mut self) {
        if let Some(turns) = &mut self.turns {
            turns.next += turns.of;
        }
    }

    fn new(phase: Phase, iteration: u32) -> Self {
        Self {
            phase,
            iteration,
            stronger: false,
            temperature: None,
            candidate: None,
            turns: None,
            from: None,
            edits: None,
            base: None,
            issues: Vec::new(),
        }
    }
}

/// When the writer of a candidate is asked: the candidates take turns. They are written at the same time, so that which
/// one asks first is chance, and their seeds must not be.
#[derive(Debug, Clone, Copy)]
struct Turns {
    /// How often the writer was asked before its next turn.
    next: u64,
    /// How many take turns.
    of: u64,
}

/// How a draft is written.
enum How {
    /// As the answer to this.
    Anew(Vec<Message>),
    /// By revising that version.
    Revise(Box<Revision>, u32),
}

/// A draft that was written, or why there is none.
struct Made {
    work: Work,
    output: Result<String, Lost>,
    /// What kinds of revision have worked, this one included; `None` if it was none.
    history: Option<revise::History>,
}

/// A draft that is to be judged.
struct Draft<'a> {
    iteration: u32,
    based_on: Option<u32>,
    output: &'a str,
    /// How often it was judged before without a readable verdict.
    attempt: u32,
}

/// Why there is no draft.
enum Lost {
    /// The model failed for good: why, and what to do about it.
    Failed(String),
    /// What the model wrote is no draft.
    NoDraft {
        why: NotADraft,
        text: String,
        stopped_early: bool,
    },
}

impl Worker for Run<'_, '_> {
    async fn perform(&mut self, next: Next, state: &State) -> Happened {
        self.candidates = state.candidates(&self.settings);
        let happened = match next {
            Next::Draft { iteration } => {
                if let Err(happened) = self.consult(iteration, None).await {
                    return happened;
                }
                let told = self.told();
                if self.in_steps {
                    return self.draft_in_steps(iteration, told).await;
                }
                let messages = self.prompts.draft(told.as_deref());
                self.draft(iteration, messages, Vec::new()).await
            }
            Next::Fresh { iteration, lessons } => self.fresh(iteration, lessons).await,
            Next::Revise {
                iteration,
                based_on,
                approach,
            } => self.revise(iteration, based_on, approach).await,
            Next::Evaluate { iteration, attempt } => self.evaluate(iteration, attempt).await,
            Next::Compare { first, best } => self.compare(first, best).await,
            Next::AskUser { iteration, stops } => self.ask_user(state, iteration, stops).await,
            Next::TakeEdit {
                iteration,
                based_on,
            } => self.take_edit(iteration, based_on),
            Next::Reflect { iteration, on } => self.reflect(iteration, on).await,
            Next::TakeRejected { .. } => self.take_rejected(),
            Next::Stop(_) => Happened::Cancelled,
        };
        self.warn_of_templates();
        happened
    }
}

impl Run<'_, '_> {
    /// Runs to the end.
    async fn go(mut self, run_id: Uuid, cancel: &CancellationToken) {
        let state = State::new(Abilities {
            judge: self.plan.criteria.need_judge(),
            stronger: self.plan.stronger.is_some(),
            // What was decided before is done again, also where nobody decides any more.
            decide: self.decider.is_some() || self.log.was_decided(),
            resumed: self.log.resumed_without_draft(),
            varied: self.plan.writer_sampling.temperature != Some(0.0),
        });
        let begin = (state, self.begin());
        let (log, settings) = (self.log, self.settings.clone());
        let (reason, state) = drive(&mut self, log, &settings, begin, cancel).await;
        self.warn_of_templates();
        self.end(run_id, reason, &state);
    }

    /// Says what went wrong with the templates.
    fn warn_of_templates(&self) {
        if let Some(message) = self.prompts.problem() {
            self.log.emit(Event::Warning { message });
        }
    }

    /// Takes in what the run begins with.
    fn begin(&mut self) -> Happened {
        let iteration = 1;
        let Some(text) = self.plan.start.text() else {
            return Happened::Begun;
        };
        self.log.emit(Event::Draft {
            iteration,
            output: text.content.clone(),
            based_on: None,
            strategy: None,
            edits: None,
        });
        let Start::Correction { issues, .. } = &self.plan.start else {
            return Happened::Given(Given::ToJudge);
        };
        let known = Evaluation {
            issues: issues.clone(),
            ..Evaluation::default()
        };
        let open = self.ledger.take(iteration, None, &known).open;
        self.log.emit(Event::Issues {
            iteration,
            open,
            resolved: Vec::new(),
        });
        Happened::Given(Given::ToMend)
    }

    /// Says what the answer is, and what people should know about it.
    fn end(mut self, run_id: Uuid, reason: ConvergenceReason, state: &State) {
        let last = |run: &Self| {
            let last = |record: &RunRecord| record.versions.last().map(|v| v.iteration);
            run.log.with(last)
        };
        self.unwanted(self.keep(None), last(&self).unwrap_or(0) + 1);
        if last(&self).is_none()
            && let Some(rejected) = self.rejected.take()
        {
            self.stand_in(rejected);
        }
        let mut ending = ending(reason, state, last(&self), &self.settings);
        if let Some(flawed) = ending.selected.and_then(|version| self.flaws.get(&version)) {
            let reason = &flawed.reason;
            ending.warning = Some(format!("the answer is not a proper draft: {reason}"));
            self.error = None;
        }
        let criteria = &self.plan.criteria;
        let small = self.settings.improvement_threshold();
        let harsh = self.panel.as_ref().and_then(Panel::harshness);
        let (too_easy, too_hard) = self.log.with(|record| {
            (
                critics::undercritical(criteria, record),
                critics::overcritical(criteria, record, small, harsh),
            )
        });
        for message in [ending.warning, too_easy, too_hard].into_iter().flatten() {
            self.log.emit(Event::Warning { message });
        }
        self.log.end(
            run_id,
            Some(reason),
            ending.success,
            ending.selected,
            ending.exit_code,
            self.error,
        );
    }

    async fn ask_user(
        &mut self,
        state: &State,
        iteration: u32,
        stops: Option<ConvergenceReason>,
    ) -> Happened {
        let best = self.log.with(|record| record.incumbent);
        // Where the loop alone would stop, most people will, too.
        let mut ahead = match stops {
            None => self.prefetch(state, iteration),
            Some(_) => None,
        };
        let decision = match (
            self.log.recorded_decision(iteration),
            self.decider.as_deref_mut(),
        ) {
            (Some(decision), _) => decide::again(decision, self.log, iteration),
            (None, Some(decider)) => {
                let best = best.unwrap_or(iteration);
                let asked = decide::ask(decider, self.log, iteration, best, stops);
                match &mut ahead {
                    Some(ahead) => tokio::select! {
                        biased;
                        decision = asked => decision,
                        never = ahead.gather() => match never {},
                    },
                    None => asked.await,
                }
            }
            (None, None) => UserDecision::Auto,
        };
        let goes_on = matches!(decision, UserDecision::Auto | UserDecision::Continue);
        let before = self.keep(ahead.take_if(|_| goes_on));
        self.unwanted(before.or(ahead), iteration + 1);
        match &decision {
            UserDecision::Guide(wish) => {
                self.prompts.add_wish(wish);
                self.guided = true;
            }
            UserDecision::Edit { text, .. } => self.edit.clone_from(text),
            _ => {}
        }
        Happened::Decided(decision)
    }

    /// The user's text is taken as it is: it is no reply of a model.
    fn take_edit(&mut self, iteration: u32, based_on: u32) -> Happened {
        self.log.emit(Event::Draft {
            iteration,
            output: std::mem::take(&mut self.edit),
            based_on: Some(based_on),
            strategy: None,
            edits: None,
        });
        Happened::Written(None)
    }

    async fn fresh(&mut self, iteration: u32, lessons: u32) -> Happened {
        if let Err(happened) = self.consult(iteration, None).await {
            return happened;
        }
        let issues: Vec<Issue> = self
            .ledger
            .issues_of(lessons)
            .iter()
            .map(|tracked| tracked.issue.clone())
            .collect();
        let told = self.told();
        let messages = self.prompts.fresh(&issues, told.as_deref());
        self.draft(iteration, messages, issues).await
    }

    /// A draft that revises no other.
    async fn draft(
        &mut self,
        iteration: u32,
        messages: Vec<Message>,
        issues: Vec<Issue>,
    ) -> Happened {
        let phase = Phase::Draft;
        self.log.emit(Event::Phase { phase, iteration });
        let work = Work {
            issues,
            ..Work::new(phase, iteration)
        };
        if self.candidates > 1 {
            return self.fresh_contest(work, &messages).await;
        }
        let made = self.make(work, How::Anew(messages)).await;
        self.made(made)
    }

    async fn revise(&mut self, iteration: u32, based_on: u32, approach: Approach) -> Happened {
        let mut strategy = approach.strategy(self.settings.strategy());
        let open = self.ledger.issues_of(based_on);
        let found = self.log.with(|record| {
            let base = record.version(based_on)?;
            let worse = (approach == Approach::Careful)
                .then(|| {
                    record
                        .versions
                        .iter()
                        .rfind(|version| version.based_on.is_some())
                })
                .flatten()
                .map(|failed| lessons::of_regression(base, failed));
            let past = past::of(record, based_on, &self.settings);
            Some((lessons::to_revise(base, open), worse, past))
        });
        if approach == Approach::Careful {
            self.history = self.history.careful();
        }
        let Some((base, worse, past)) = found else {
            self.error = Some(format!("version {based_on} is not there to be revised"));
            return Happened::ModelFailed;
        };
        if let Err(happened) = self.consult(iteration, Some(&base.output)).await {
            return happened;
        }
        self.prompts.show_past(past);
        let phase = Phase::Revise;
        self.log.emit(Event::Phase { phase, iteration });
        evidence::for_revision(
            self.plan.evidence.as_deref(),
            issues_of(&base),
            iteration,
            &mut self.prompts,
            self.log,
        );
        if std::mem::take(&mut self.guided) && strategy == Strategy::Hybrid {
            strategy = Strategy::FullRewrite;
            self.log.emit(Event::Strategy {
                iteration,
                strategy,
                reason: "the user's wish may concern the whole text".to_owned(),
            });
        }
        let notes: Vec<String> = [self.told(), worse].into_iter().flatten().collect();
        let note = (!notes.is_empty()).then(|| notes.join(" "));
        let work = Work {
            stronger: approach == Approach::Stronger,
            base: Some(base.output.clone()),
            issues: issues_of(&base).to_vec(),
            ..Work::new(phase, iteration)
        };
        if self.candidates > 1 {
            return self.contest(work, strategy, &base, note).await;
        }
        let revision = Revision::new(strategy, self.history, &self.prompts, &base, note);
        let how = How::Revise(Box::new(revision), based_on);
        let made = self.make(work, how).await;
        self.made(made)
    }

    /// Writes a draft.
    async fn make(&self, mut work: Work, how: How) -> Made {
        let (output, history) = match how {
            How::Anew(messages) => {
                let ask = revise::Ask {
                    messages,
                    prediction: None,
                    whole: true,
                };
                let reply = self.write(&work, ask).await;
                work.took_turn();
                (reply.map(|reply| self.clean(&work, &reply.text)), None)
            }
            How::Revise(mut revision, based_on) => {
                let output = self.follow(&mut work, &mut revision, based_on).await;
                (output, Some(revision.history()))
            }
        };
        let output =
            output.and_then(
                |output| match gate::check_text(&output, &self.occasion(&work)) {
                    Ok(()) => Ok(output),
                    Err(why) => Err(Lost::NoDraft {
                        why,
                        text: output,
                        stopped_early: false,
                    }),
                },
            );
        Made {
            work,
            output,
            history,
        }
    }

    /// Does what a revision says, to its end.
    async fn follow(
        &self,
        work: &mut Work,
        revision: &mut Revision,
        based_on: u32,
    ) -> Result<String, Lost> {
        let revised = loop {
            match revision.step() {
                revise::Step::Say(strategy, reason) => self.log.emit(Event::Strategy {
                    iteration: work.iteration,
                    strategy,
                    reason: work.says(reason),
                }),
                revise::Step::Ask(ask) => {
                    let reply = self.write(work, ask).await;
                    work.took_turn();
                    revision.answer(&reply?);
                }
                revise::Step::Done(revised) => break revised,
            }
        };
        work.from = Some((based_on, revised.strategy));
        work.edits = revised.edits;
        // What is around an edit is no part of the text; what is around a whole text may seem to be.
        Ok(match revised.strategy {
            Strategy::FullRewrite => self.clean(work, &revised.output),
            _ => revised.output,
        })
    }

    /// Takes in what was written: a draft is a version.
    fn made(&mut self, made: Made) -> Happened {
        self.history = made.history.unwrap_or(self.history);
        let work = made.work;
        let output = match made.output {
            Ok(output) => output,
            Err(lost) => return self.lost(&work, lost),
        };
        self.drafted(&work, output);
        Happened::Written(work.from.map(|(_, strategy)| strategy))
    }

    /// Asks the writer, or the stronger model. A reply that is the whole text must be complete; it is ended
    /// early where it can no longer become a draft of use.
    async fn write(&self, work: &Work, ask: revise::Ask) -> Result<Reply, Lost> {
        let mut request = ChatRequest::new(Purpose::Write, ask.messages);
        request.prediction = ask.prediction;
        request.sampling = self.plan.writer_sampling.clone();
        let written = match work.turns {
            Some(turns) => turns.next,
            None => self.written.fetch_add(1, Ordering::Relaxed),
        };
        request.sampling.seed = request.sampling.seed.map(|seed| seed.wrapping_add(written));
        request.sampling.temperature = work.temperature.or(request.sampling.temperature);
        if work.phase == Phase::Revise {
            let limits = [
                request.sampling.max_tokens,
                self.plan.settings.max_revision_tokens,
            ];
            request.sampling.max_tokens = limits.into_iter().flatten().min();
        }
        request.think = self.plan.think;
        let live = work.candidate.is_none_or(|candidate| candidate == 1);
        let observer = self.log.calls_of(work.phase, work.iteration, live);
        let mut reading = ask.whole.then(|| self.reading(work));
        let stop = |text: &str| {
            let reading = reading.as_mut();
            reading.is_some_and(|reading| reading.is_hopeless(text))
        };
        let writer = self.plan.who_writes(work.stronger);
        let asked = ask.whole.then(|| request.clone());
        let called = match self.keep(None) {
            Some(ahead) if ahead.is(writer, &request) => {
                call_until(&ahead.into_model(), request, &observer, stop).await
            }
            other => {
                self.unwanted(other, work.iteration);
                call_until(writer, request, &observer, stop).await
            }
        };
        let reply = match called {
            Ok(reply) => reply,
            // What is too long in pieces may fit as a whole: the revision takes it for a reply of no use.
            Err(error) if !ask.whole && error.class == ErrorClass::ContextTooLong => Reply {
                end: Some(EndReason::Length),
                ..Reply::default()
            },
            Err(error) => return Err(Lost::Failed(describe(&error))),
        };
        let messages = asked.as_ref().map(|asked| asked.messages.clone());
        let reply = match asked {
            Some(request) => {
                let reply = self.continued(work, request, reply).await;
                self.cut_back(work, reply)
            }
            None => reply,
        };
        let stopped = reading.and_then(|reading| reading.verdict(&reply.text));
        let stopped_early = stopped.is_some();
        let rejected = messages.and_then(|messages| {
            gate::check_reply(&reply)
                .and_then(|()| gate::check_frame(&reply.text, &messages, &self.occasion(work)))
                .err()
        });
        match stopped.or(rejected) {
            Some(why) => Err(Lost::NoDraft {
                why,
                text: reply.text,
                stopped_early,
            }),
            None => Ok(reply),
        }
    }

    /// What a reply that is to be the whole text is watched for while it is being written.
    fn reading<'w>(&'w self, work: &'w Work) -> Reading<'w> {
        let watch = self.log.with(|record| self.early.watch(record));
        let longest = self.early.longest(self.task, work.base.as_deref());
        Reading::new(watch, longest, self.occasion(work))
    }

    /// The text that a reply is, without what stands around it.
    fn clean(&self, work: &Work, reply: &str) -> String {
        let (text, removed) = gate::clean(reply, &self.occasion(work));
        for removed in removed {
            self.log.emit(Event::Cleaned {
                iteration: work.iteration,
                what: removed.what.to_owned(),
                removed: removed.text,
            });
        }
        text
    }

    /// A draft is a version.
    fn drafted(&mut self, work: &Work, output: String) {
        self.error = None;
        self.early.drafted();
        self.log.emit(Event::Draft {
            iteration: work.iteration,
            output,
            based_on: work.from.map(|(base, _)| base),
            strategy: work.from.map(|(_, strategy)| strategy),
            edits: work.edits,
        });
    }

    fn lost(&mut self, work: &Work, lost: Lost) -> Happened {
        let iteration = work.iteration;
        let (why, text, stopped_early) = match lost {
            Lost::Failed(why) => return self.failed_so(why),
            Lost::NoDraft {
                why,
                text,
                stopped_early,
            } => (why, text, stopped_early),
        };
        self.log.emit(Event::Rejected {
            iteration,
            reason: why.reason.clone(),
            text: text.clone(),
            stopped_early,
        });
        self.reject(work, why, &text, stopped_early)
    }

    /// Takes in a reply that was rejected: the writer is told why with its next call.
    fn reject(&mut self, work: &Work, why: NotADraft, text: &str, stopped_early: bool) -> Happened {
        self.error = Some(format!("no usable draft: {}", why.reason));
        self.note = Some(why.note.clone());
        if stopped_early {
            self.early.stopped();
        }
        let (text, _) = gate::clean(gate::without_loop(text), &self.occasion(work));
        let better = self
            .rejected
            .as_ref()
            .is_none_or(|kept| why.is_flaw >= kept.why.is_flaw);
        if better && !text.is_empty() {
            self.rejected = Some(Rejected {
                iteration: work.iteration,
                why,
                text,
            });
        }
        Happened::Rejected
    }

    /// Takes the best of the rejected replies as the version, unless there is more wrong with it than a flaw.
    fn take_rejected(&mut self) -> Happened {
        match self.rejected.take_if(|rejected| rejected.why.is_flaw) {
            Some(rejected) => {
                self.stand_in(rejected);
                Happened::Written(None)
            }
            None => Happened::NoDraft,
        }
    }

    /// A rejected reply is a version, for want of a better one.
    fn stand_in(&mut self, rejected: Rejected) {
        let Rejected {
            iteration,
            why,
            text,
        } = rejected;
        self.flaws.insert(iteration, why);
        self.drafted(&Work::new(Phase::Draft, iteration), text);
    }

    fn occasion<'w>(&'w self, work: &'w Work) -> Occasion<'w> {
        Occasion {
            prompt: &self.task.prompt,
            criteria: &self.plan.criteria,
            base: work.base.as_deref(),
            issues: &work.issues,
        }
    }

    fn output_of(&self, version: u32) -> Option<String> {
        self.log
            .with(|record| record.version(version).map(|v| v.output.clone()))
    }

    /// Asks the judge which of two drafts is better.
    async fn compare(&mut self, first: u32, best: u32) -> Happened {
        let (phase, iteration) = (Phase::Evaluate, best);
        self.log.emit(Event::Phase { phase, iteration });
        let observer = self.log.calls(phase, iteration);
        let first = self.output_of(first).unwrap_or_default();
        let second = self.output_of(best).unwrap_or_default();
        let pair = Pair {
            first: &first,
            second: &second,
            criterion: None,
            attempt: 0,
        };
        match prefer(&self.plan.judge, &self.prompts, &pair, &observer).await {
            Ok(comparison) => Happened::Compared(Some(comparison.preference)),
            // What cannot be read is no tie: the scores decide.
            Err(ComparisonError::Unparsed(_)) => Happened::Compared(None),
            Err(ComparisonError::Model(error)) => self.failed(&error),
        }
    }

    async fn evaluate(&mut self, iteration: u32, attempt: u32) -> Happened {
        let phase = Phase::Evaluate;
        let text = Draft {
            iteration,
            based_on: self
                .log
                .with(|record| record.version(iteration).and_then(|v| v.based_on)),
            output: &self.output_of(iteration).unwrap_or_default(),
            attempt,
        };
        let Some(panel) = &self.panel else {
            self.error = Some("there is nobody to judge".to_owned());
            return Happened::CheckFailed;
        };
        self.log.emit(Event::Phase { phase, iteration });
        // A verdict that is recorded is not asked for again: a command might judge otherwise today.
        if let Some(evaluation) = self.log.recorded_evaluation(iteration) {
            return self.judged(&text, &evaluation);
        }
        if let Some(evaluation) = self.known(&text) {
            return self.judged(&text, &evaluation);
        }
        match self.judge(panel, &text, true).await {
            Ok(evaluation) => self.judged(&text, &evaluation),
            Err(error) => self.failed(&error),
        }
    }

    /// The evaluation of an earlier version with the same text, where it depends on nothing else.
    fn known(&self, text: &Draft<'_>) -> Option<Evaluation> {
        let by_text_alone = self.plan.criteria.criteria.iter().all(|criterion| {
            let script = matches!(criterion.evaluator, Evaluator::Script(_));
            let command = matches!(criterion.evaluator, Evaluator::Command(_));
            !script && !command && !matches!(criterion.evaluator, Evaluator::Compare(_))
        });
        if text.attempt > 0 || !by_text_alone || !self.plan.criteria.need_judge() {
            return None;
        }
        let mut evaluation = self.log.with(|record| {
            let earlier = record
                .versions
                .iter()
                .filter(|version| version.iteration < text.iteration);
            let mut same = earlier.filter(|version| version.output == text.output);
            same.find_map(|version| {
                version
                    .evaluation
                    .clone()
                    .filter(|known| known.rank().is_some())
            })
        })?;
        for result in &mut evaluation.criteria {
            result.cached = true;
        }
        Some(evaluation)
    }

    /// Has a draft judged. Only what is `live` is shown as it comes.
    async fn judge(
        &self,
        panel: &Panel,
        text: &Draft<'_>,
        live: bool,
    ) -> Result<Evaluation, ModelError> {
        let iteration = text.iteration;
        let earlier = self.log.with(|record| {
            let before = |version: &&Version| version.iteration < iteration;
            Earlier::latest(record.versions.iter().filter(before))
        });
        let prior = text.based_on.and_then(|base| self.output_of(base));
        let subject = Subject {
            draft: text.output,
            prior: prior.as_deref(),
            attempt: text.attempt,
            progress: Progress {
                iteration,
                task: self.task,
                earlier: &earlier,
            },
        };
        let observer = self.log.calls_of(Phase::Evaluate, iteration, live);
        panel.evaluate(&self.prompts, &subject, &observer).await
    }

    /// Takes in the verdict on a version.
    fn judged(&mut self, text: &Draft<'_>, evaluation: &Evaluation) -> Happened {
        let iteration = text.iteration;
        let mut evaluation = Cow::Borrowed(evaluation);
        if let Some(flaw) = self.flaws.get(&iteration)
            && evaluation.flaw.is_none()
        {
            evaluation.to_mut().mark_flawed(&flaw.reason, &flaw.note);
        }
        let evaluation = &*evaluation;
        self.log.emit(Event::Evaluation {
            iteration,
            evaluation: evaluation.clone(),
        });
        if evaluation.rank().is_none() {
            if let Some(failure) = evaluation.failure() {
                self.error = Some(failure);
                return Happened::CheckFailed;
            }
            self.error = evaluation
                .problem()
                .map(|problem| format!("{problem}\nhint: {JUDGE_HINT}"));
            return Happened::Unreadable;
        }
        self.error = None;
        let change = self.ledger.take(iteration, text.based_on, evaluation);
        let open = change.open.iter().map(|issue| issue.id).collect();
        self.log.emit(Event::Issues {
            iteration,
            open: change.open,
            resolved: change.resolved,
        });
        let prior = text.based_on.and_then(|base| self.output_of(base));
        let alike = prior.map(|prior| similarity(&prior, text.output));
        match Verdict::new(evaluation, open, alike) {
            Some(verdict) => Happened::Judged(verdict),
            None => Happened::Unreadable,
        }
    }

    fn failed(&mut self, error: &ModelError) -> Happened {
        self.failed_so(describe(error))
    }

    fn failed_so(&mut self, why: String) -> Happened {
        self.error = Some(why);
        Happened::ModelFailed
    }
}

/// The issues that a version was found to have.
fn issues_of(version: &Version) -> &[Issue] {
    let evaluation = version.evaluation.as_ref();
    evaluation.map_or(&[], |evaluation| &evaluation.issues)
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
