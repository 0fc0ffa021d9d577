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

use super::builder::LoopBuilder;
use super::decide::{self, Decider};
use super::drive::{Worker, drive};
use super::early::{EarlyStop, Reading};
use super::ending::ending;
use super::evaluate_once::describe;
use super::evidence;
use super::gate::{self, DraftContext, NotADraft};
use super::ledger::Ledger;
use super::log::{Log, Observer};
use super::machine::{Abilities, Effect, Given, Input, State};
use super::policy::Approach;
use super::prefetched::PrefetchedCall;
use super::replay::RunJournal;
use super::similarity::similarity;
use super::start::Start;
use super::tool::WriterTool;
use super::verdict::Verdict;
use super::{judge_diagnostics, lessons, past};
use crate::evaluate::{
    ComparisonError, Earlier, EvaluatorError, EvaluatorSet, JudgeModel, Pair, Progress, Subject,
    Tools, prefer,
};
use crate::evidence::Gatherer;
use crate::model::{
    ChatModel, ChatRequest, EndReason, ErrorClass, Message, ModelError, Purpose, Reply, Sampling,
    Think, call_until, call_with,
};
use crate::prompt::{Prompts, Templates};
use crate::revise::{self, Revision};
use crate::types::{
    ConvergenceReason, Criteria, EditCounts, Evaluation, Evaluator, Event, ExitCode, Issue,
    LoopSettings, Models, Phase, Prices, RunRecord, SCHEMA_VERSION, Setup, Strategy, Task,
    UserDecision, Version,
};

/// A hint for a judge whose verdicts cannot be parsed: usually it is too small for the task.
const JUDGE_HINT: &str = "use another judge with `--judge-model`, or fewer criteria";

/// A loop, ready to run on any number of tasks.
#[derive(Clone)]
pub struct Loop {
    /// What a run starts from.
    pub(super) start: Start,
    /// The model that writes and revises.
    pub(super) writer: Arc<dyn ChatModel>,
    /// The writer's sampling parameters.
    pub(super) writer_sampling: Sampling,
    /// How much the writer reasons.
    pub(super) think: Think,
    /// The model that takes over when the writer stops making progress.
    pub(super) stronger: Option<Arc<dyn ChatModel>>,
    /// The model that judges, and compares drafts whose scores are too close.
    pub(super) judge: JudgeModel,
    /// The criteria that drafts are measured by.
    pub(super) criteria: Arc<Criteria>,
    /// The loop settings, with all layers merged.
    pub(super) settings: LoopSettings,
    /// What evaluators may use apart from models.
    pub(super) tools: Tools,
    /// The prices of the models; empty where they are not known.
    pub(super) prices: Prices,
    /// Searches for evidence for the task and again for each revision; `None` to search for none.
    pub(super) evidence: Option<Arc<Gatherer>>,
    /// Custom templates; `None` for the built-in ones.
    pub(super) templates: Option<Arc<Templates>>,
    /// Programs whose output the writer sees before it writes.
    pub(super) writer_tools: Vec<WriterTool>,
    /// What is needed to resume the run, recorded with its start. `None` if it is never resumed.
    pub(super) setup: Option<Setup>,
    /// Whether the next revision is prefetched while the user decides.
    pub(super) prefetch: bool,
    /// The evaluators, prepared once: they are the same for each run.
    pub(super) panel: OnceLock<Arc<EvaluatorSet>>,
}

impl Loop {
    /// Starts building a loop with this writer and these criteria, and defaults for the rest.
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

    /// Runs the loop. Returns the record with every version and the one selected. The observer has received every
    /// event by then, including [`Event::RunEnd`].
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

    /// As [`Loop::run`], with a decider that is asked after each evaluation.
    ///
    /// The limits of the run hold whatever it decides; to continue for longer, set higher limits. A text that the
    /// user edits is accepted even at the iteration limit, and then ends the run.
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

    /// Runs the loop over the journal of a run, and continues it: the task must be the same, and the loop must be
    /// built as before, except for limits. Over an empty journal this is [`Loop::run`], or with a decider
    /// [`Loop::run_with_decider`].
    ///
    /// Recorded events keep their time, and the observer receives them through [`Observer::on_replayed`]. The
    /// first new event is [`Event::Resumed`]. Limits include what was used before. Recorded decisions are not
    /// asked for again, except a decision to stop.
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
            log.replay(run_id, journal, self.settings.clone());
        } else {
            log.emit(self.started(run_id, task));
        }
        Box::pin(self.execute(run_id, task, log, decider, cancel)).await
    }

    /// The first event of a run of this task.
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

    /// Executes a run whose start is recorded.
    async fn execute(
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
                let problem = problem.to_string();
                log.end(run_id, None, false, None, ExitCode::Usage, Some(problem));
                return log.into_record();
            }
        };
        let mut prompts = Prompts::new(task, &self.criteria).with_templates(self.templates.clone());
        let gatherer = self.evidence.as_deref();
        let text = self.start.text().map(|text| text.content.as_str());
        evidence::for_run(gatherer, task, text, &self.criteria, &mut prompts, &log);
        let mut run = Run {
            plan: self,
            task,
            // The convergence rules use the same threshold as the evaluators.
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
            tool_notes: tools::ToolNotes::default(),
            in_steps: self.settings.steps(),
            error: None,
            written: AtomicU64::new(0),
            candidates: 1,
            history: revise::StrategyHistory::default(),
            early: EarlyStop::new(&self.criteria, &self.settings),
            prefetched: Mutex::new(None),
            rejected: None,
            flaws: BTreeMap::new(),
            endless: AtomicBool::new(false),
        };
        let begin = (State::new(run.abilities()), run.begin());
        let settings = run.settings.clone();
        let (reason, state) = drive(&mut run, &log, &settings, begin, cancel).await;
        run.warn_of_templates();
        run.end(run_id, reason, &state);
        log.into_record()
    }

    /// The writer, or the stronger model if it is requested and there is one.
    fn who_writes(&self, stronger: bool) -> &dyn ChatModel {
        match &self.stronger {
            Some(model) if stronger => &**model,
            _ => &*self.writer,
        }
    }

    /// The evaluators for a run; `None` if nothing is judged.
    pub(super) fn panel(&self) -> Result<Option<EvaluatorSet>, EvaluatorError> {
        if !self.start.is_judged() {
            return Ok(None);
        }
        let made = if let Some(made) = self.panel.get() {
            made
        } else {
            let criteria = Arc::clone(&self.criteria);
            let panel = EvaluatorSet::new(criteria, Some(self.judge.clone()), &self.tools)?;
            self.panel.get_or_init(|| Arc::new(panel))
        };
        Ok(Some(made.for_another_run()))
    }
}

/// A run in progress.
struct Run<'a, 'o> {
    plan: &'a Loop,
    task: &'a Task,
    settings: LoopSettings,
    prompts: Prompts,
    /// `None` where nothing is judged.
    panel: Option<EvaluatorSet>,
    log: &'a Log<'o>,
    /// Makes decisions in place of the loop.
    decider: Option<&'a mut dyn Decider>,
    /// The user's edit that becomes the next version.
    edit: String,
    /// Whether there is an instruction of the user that no revision has received yet.
    guided: bool,
    ledger: Ledger,
    /// What the writer receives with its next call: why its last reply was rejected.
    note: Option<String>,
    /// What the writer also receives: its own reflection on the last failure.
    guidance: Option<String>,
    /// What the tools have reported.
    tool_notes: tools::ToolNotes,
    /// Whether first drafts are written in steps.
    in_steps: bool,
    /// What went wrong, for the end of the run.
    error: Option<String>,
    /// How many calls the writer got. Each has its own seed, or a deterministic model would return the same text
    /// again.
    written: AtomicU64,
    /// How many candidates the next version is chosen from.
    candidates: u32,
    /// Which kinds of revision worked.
    history: revise::StrategyHistory,
    /// Decides which replies are stopped early.
    early: EarlyStop,
    /// The prefetched call, until it is used or discarded.
    prefetched: Mutex<Option<PrefetchedCall<'a>>>,
    /// The best of the rejected replies, while there is no draft.
    rejected: Option<Rejected>,
    /// The flaws of versions that are rejected replies.
    flaws: BTreeMap<u32, NotADraft>,
    /// Whether a truncated reply remained truncated after it was continued.
    endless: AtomicBool,
}

/// A rejected reply, as far as it contains text.
struct Rejected {
    iteration: u32,
    why: NotADraft,
    text: String,
}

/// A draft in progress, and what it is made from.
#[derive(Clone)]
struct Work {
    phase: Phase,
    iteration: u32,
    /// Whether the stronger model writes it.
    stronger: bool,
    /// Its temperature, if it differs from the writer's.
    temperature: Option<f64>,
    /// Its number, if it is one of several candidates.
    candidate: Option<u32>,
    /// When it may call the writer, if it is one of several candidates.
    turns: Option<Turns>,
    /// The version that it revises, and by which strategy.
    from: Option<(u32, Strategy)>,
    /// How many edits applied, if edits were tried.
    edits: Option<EditCounts>,
    /// The text that it revises.
    base: Option<String>,
    /// The issues that the writer has to fix or avoid.
    issues: Vec<Issue>,
}

impl Work {
    /// A message about it, with its number if it is one of several candidates.
    fn says(&self, remark: String) -> String {
        match self.candidate {
            Some(candidate) => format!("candidate {candidate}: {remark}"),
            None => remark,
        }
    }

    /// Its writer was called.
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

/// When a candidate may call the writer: the candidates take turns. They are written concurrently, so the order of
/// their calls is random, but their seeds must not be.
#[derive(Debug, Clone, Copy)]
struct Turns {
    /// The number of writer calls before its next turn.
    next: u64,
    /// How many candidates take turns.
    of: u64,
}

/// How a draft is written.
enum DraftMethod {
    /// As the reply to these messages.
    Anew(Vec<Message>),
    /// By revising that version.
    Revise(Box<Revision>, u32),
}

/// A draft, or why there is none.
struct DraftResult {
    work: Work,
    output: Result<String, DraftError>,
    /// Which kinds of revision worked, including this one; `None` if it was not a revision.
    history: Option<revise::StrategyHistory>,
}

/// A draft to be judged.
struct Draft<'a> {
    iteration: u32,
    based_on: Option<u32>,
    output: &'a str,
    /// How many times it was judged before without a parseable verdict.
    attempt: u32,
}

/// Why there is no draft.
enum DraftError {
    /// The model failed for good; with the message and its hint.
    Failed(String),
    /// The reply is not a valid draft.
    NoDraft {
        why: NotADraft,
        text: String,
        stopped_early: bool,
    },
}

impl Worker for Run<'_, '_> {
    async fn perform(&mut self, next: Effect, state: &State) -> Input {
        self.candidates = state.candidates(&self.settings);
        let input = match next {
            Effect::Draft { iteration } => {
                if let Err(input) = self.run_tools(iteration, None).await {
                    return input;
                }
                let told = self.notes_for_writer();
                if self.in_steps {
                    return self.draft_in_steps(iteration, told).await;
                }
                let messages = self.prompts.draft(told.as_deref());
                self.draft(iteration, messages, Vec::new()).await
            }
            Effect::Fresh { iteration, lessons } => self.fresh(iteration, lessons).await,
            Effect::Revise {
                iteration,
                based_on,
                approach,
            } => self.revise(iteration, based_on, approach).await,
            Effect::Evaluate { iteration, attempt } => self.evaluate(iteration, attempt).await,
            Effect::Compare { first, best } => self.compare(first, best).await,
            Effect::AskUser { iteration, stops } => self.ask_user(state, iteration, stops).await,
            Effect::TakeEdit {
                iteration,
                based_on,
            } => self.take_edit(iteration, based_on),
            Effect::Reflect { iteration, on } => self.reflect(iteration, on).await,
            Effect::TakeRejected { .. } => self.take_rejected(),
            Effect::Stop(_) => Input::Cancelled,
        };
        self.warn_of_templates();
        input
    }
}

impl Run<'_, '_> {
    fn abilities(&self) -> Abilities {
        Abilities {
            judge: self.plan.criteria.need_judge(),
            unjudged: !self.plan.criteria.need_judge()
                && self.plan.criteria.for_judge().next().is_some(),
            stronger: self.plan.stronger.is_some(),
            // A recorded decision is applied again, even if the resumed run has no decider.
            decide: self.decider.is_some() || self.log.was_decided(),
            resumed: self.log.resumed_without_draft(),
            varied: self.plan.writer_sampling.temperature != Some(0.0),
        }
    }

    /// Warns of a template that could not be rendered.
    fn warn_of_templates(&self) {
        if let Some(message) = self.prompts.problem() {
            self.log.emit(Event::Warning { message });
        }
    }

    /// Takes the text that the run starts from, if there is one.
    fn begin(&mut self) -> Input {
        let iteration = 1;
        let Some(text) = self.plan.start.text() else {
            return Input::Begun;
        };
        self.log.emit(Event::Draft {
            iteration,
            output: text.content.clone(),
            based_on: None,
            strategy: None,
            edits: None,
        });
        let Start::Correction { issues, .. } = &self.plan.start else {
            return Input::Given(Given::ToJudge);
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
        Input::Given(Given::FixOnly)
    }

    /// Selects the answer and reports what the user should know about it.
    fn end(mut self, run_id: Uuid, reason: ConvergenceReason, state: &State) {
        let last = |run: &Self| {
            let last = |record: &RunRecord| record.versions.last().map(|v| v.iteration);
            run.log.with(last)
        };
        self.discard(self.swap_prefetched(None), last(&self).unwrap_or(0) + 1);
        if last(&self).is_none()
            && let Some(rejected) = self.rejected.take()
        {
            self.use_rejected(rejected);
        }
        let mut ending = ending(reason, state, last(&self), &self.settings);
        if let Some(flawed) = ending.selected.and_then(|version| self.flaws.get(&version)) {
            let reason = &flawed.reason;
            ending.warning = Some(format!("the reply is not a valid draft: {reason}"));
            self.error = None;
        }
        let criteria = &self.plan.criteria;
        let small = self.settings.improvement_threshold();
        let harsh = self.panel.as_ref().and_then(EvaluatorSet::over_strict);
        let (too_easy, too_hard) = self.log.with(|record| {
            (
                judge_diagnostics::undercritical(criteria, record),
                judge_diagnostics::overcritical(criteria, record, small, harsh),
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
    ) -> Input {
        let best = self.log.with(|record| record.incumbent);
        // Where the loop would stop, most users will stop, too.
        let mut prefetched = match stops {
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
                match &mut prefetched {
                    Some(prefetched) => tokio::select! {
                        biased;
                        decision = asked => decision,
                        never = prefetched.gather() => match never {},
                    },
                    None => asked.await,
                }
            }
            (None, None) => UserDecision::Auto,
        };
        let goes_on = matches!(decision, UserDecision::Auto | UserDecision::Continue);
        let before = self.swap_prefetched(prefetched.take_if(|_| goes_on));
        self.discard(before.or(prefetched), iteration + 1);
        match &decision {
            UserDecision::Guide(wish) => {
                self.prompts.add_instruction(wish);
                self.guided = true;
            }
            UserDecision::Edit { text, .. } => self.edit.clone_from(text),
            _ => {}
        }
        Input::Decided(decision)
    }

    /// The user's text is taken as it is: it is not a model's reply.
    fn take_edit(&mut self, iteration: u32, based_on: u32) -> Input {
        self.log.emit(Event::Draft {
            iteration,
            output: std::mem::take(&mut self.edit),
            based_on: Some(based_on),
            strategy: None,
            edits: None,
        });
        Input::Written(None)
    }

    async fn fresh(&mut self, iteration: u32, lessons: u32) -> Input {
        if let Err(input) = self.run_tools(iteration, None).await {
            return input;
        }
        let issues: Vec<Issue> = self
            .ledger
            .issues_of(lessons)
            .iter()
            .map(|tracked| tracked.issue.clone())
            .collect();
        let told = self.notes_for_writer();
        let messages = self.prompts.fresh(&issues, told.as_deref());
        self.draft(iteration, messages, issues).await
    }

    /// Writes a draft that is not a revision.
    async fn draft(&mut self, iteration: u32, messages: Vec<Message>, issues: Vec<Issue>) -> Input {
        let phase = Phase::Draft;
        self.log.emit(Event::Phase { phase, iteration });
        let work = Work {
            issues,
            ..Work::new(phase, iteration)
        };
        if self.candidates > 1 {
            return self.fresh_contest(work, &messages).await;
        }
        let made = self.make(work, DraftMethod::Anew(messages)).await;
        self.take_result(made)
    }

    async fn revise(&mut self, iteration: u32, based_on: u32, approach: Approach) -> Input {
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
            self.error = Some(format!("no version {based_on} to revise"));
            return Input::ModelFailed;
        };
        if let Err(input) = self.run_tools(iteration, Some(&base.output)).await {
            return input;
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
                reason: "the user's instruction may concern the whole text".to_owned(),
            });
        }
        let notes: Vec<String> = [self.notes_for_writer(), worse]
            .into_iter()
            .flatten()
            .collect();
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
        let method = DraftMethod::Revise(Box::new(revision), based_on);
        let made = self.make(work, method).await;
        self.take_result(made)
    }

    /// Writes a draft.
    async fn make(&self, mut work: Work, method: DraftMethod) -> DraftResult {
        let (output, history) = match method {
            DraftMethod::Anew(messages) => {
                let ask = revise::Ask {
                    messages,
                    prediction: None,
                    whole: true,
                };
                let reply = self.write(&work, ask).await;
                work.took_turn();
                (reply.map(|reply| self.clean(&work, &reply.text)), None)
            }
            DraftMethod::Revise(mut revision, based_on) => {
                let output = self.follow(&mut work, &mut revision, based_on).await;
                (output, Some(revision.history()))
            }
        };
        let output =
            output.and_then(
                |output| match gate::check_text(&output, &self.draft_context(&work)) {
                    Ok(()) => Ok(output),
                    Err(why) => Err(DraftError::NoDraft {
                        why,
                        text: output,
                        stopped_early: false,
                    }),
                },
            );
        DraftResult {
            work,
            output,
            history,
        }
    }

    /// Performs all steps of a revision.
    async fn follow(
        &self,
        work: &mut Work,
        revision: &mut Revision,
        based_on: u32,
    ) -> Result<String, DraftError> {
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
        // Text around an edit was removed already; text around a complete draft may still be there.
        Ok(match revised.strategy {
            Strategy::FullRewrite => self.clean(work, &revised.output),
            _ => revised.output,
        })
    }

    /// Takes the result of a writing step: a draft becomes a version.
    fn take_result(&mut self, made: DraftResult) -> Input {
        self.history = made.history.unwrap_or(self.history);
        let work = made.work;
        let output = match made.output {
            Ok(output) => output,
            Err(lost) => return self.draft_failed(&work, lost),
        };
        self.drafted(&work, output);
        Input::Written(work.from.map(|(_, strategy)| strategy))
    }

    /// Calls the writer or the stronger model. A reply that is to be the whole draft must be complete, and is
    /// stopped early once it cannot become a valid draft.
    async fn write(&self, work: &Work, ask: revise::Ask) -> Result<Reply, DraftError> {
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
        let called = match self.swap_prefetched(None) {
            Some(prefetched) if prefetched.is(writer, &request) => {
                call_with(
                    writer,
                    request,
                    |_| prefetched.into_stream(),
                    &observer,
                    stop,
                )
                .await
            }
            other => {
                self.discard(other, work.iteration);
                call_until(writer, request, &observer, stop).await
            }
        };
        let reply = match called {
            Ok(reply) => reply,
            // An edit that is too long may fit as a whole draft: the revision treats the reply as unusable.
            Err(error) if !ask.whole && error.class == ErrorClass::ContextTooLong => Reply {
                end: Some(EndReason::Length),
                ..Reply::default()
            },
            Err(error) => return Err(DraftError::Failed(describe(&error))),
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
                .and_then(|()| gate::check_frame(&reply.text, &messages, &self.draft_context(work)))
                .err()
        });
        match stopped.or(rejected) {
            Some(why) => Err(DraftError::NoDraft {
                why,
                text: reply.text,
                stopped_early,
            }),
            None => Ok(reply),
        }
    }

    /// What a reply is checked for while it is being written.
    fn reading<'w>(&'w self, work: &'w Work) -> Reading<'w> {
        let watch = self.log.with(|record| self.early.watch(record));
        let longest = self.early.longest(self.task, work.base.as_deref());
        Reading::new(watch, longest, self.draft_context(work))
    }

    /// The draft in a reply, without boilerplate around it.
    fn clean(&self, work: &Work, reply: &str) -> String {
        let (text, removed) = gate::clean(reply, &self.draft_context(work));
        for removed in removed {
            self.log.emit(Event::Cleaned {
                iteration: work.iteration,
                what: removed.what.to_owned(),
                removed: removed.text,
            });
        }
        text
    }

    /// Makes a draft a version.
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

    fn draft_failed(&mut self, work: &Work, lost: DraftError) -> Input {
        let iteration = work.iteration;
        let (why, text, stopped_early) = match lost {
            DraftError::Failed(why) => return self.failed_so(why),
            DraftError::NoDraft {
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

    /// Keeps a rejected reply. The writer receives the reason with its next call.
    fn reject(&mut self, work: &Work, why: NotADraft, text: &str, stopped_early: bool) -> Input {
        self.error = Some(format!("no valid draft: {}", why.reason));
        self.note = Some(why.note.clone());
        if stopped_early {
            self.early.stopped();
        }
        let (text, _) = gate::clean(gate::without_loop(text), &self.draft_context(work));
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
        Input::Rejected
    }

    /// Makes the best rejected reply a version, if it is merely flawed.
    fn take_rejected(&mut self) -> Input {
        match self.rejected.take_if(|rejected| rejected.why.is_flaw) {
            Some(rejected) => {
                self.use_rejected(rejected);
                Input::Written(None)
            }
            None => Input::NoDraft,
        }
    }

    /// Makes a rejected reply a version, because there is no better one.
    fn use_rejected(&mut self, rejected: Rejected) {
        let Rejected {
            iteration,
            why,
            text,
        } = rejected;
        self.flaws.insert(iteration, why);
        self.drafted(&Work::new(Phase::Draft, iteration), text);
    }

    fn draft_context<'w>(&'w self, work: &'w Work) -> DraftContext<'w> {
        DraftContext {
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
    async fn compare(&mut self, first: u32, best: u32) -> Input {
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
            Ok(comparison) => Input::Compared(Some(comparison.preference)),
            // An unparseable comparison is not a tie: the scores decide.
            Err(ComparisonError::Unparsed(_)) => Input::Compared(None),
            Err(ComparisonError::Model(error)) => self.failed(&error),
        }
    }

    async fn evaluate(&mut self, iteration: u32, attempt: u32) -> Input {
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
            self.error = Some("no judge".to_owned());
            return Input::CheckFailed;
        };
        self.log.emit(Event::Phase { phase, iteration });
        // A recorded evaluation is not repeated: a command might return something else today.
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

    /// The evaluation of an earlier version with the same text, if it depends only on the text.
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

    /// Evaluates a draft. Only the deltas of a `live` evaluation are shown.
    async fn judge(
        &self,
        panel: &EvaluatorSet,
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

    /// Takes the evaluation of a version.
    fn judged(&mut self, text: &Draft<'_>, evaluation: &Evaluation) -> Input {
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
                return Input::CheckFailed;
            }
            self.error = evaluation
                .problem()
                .map(|problem| format!("{problem}\nhint: {JUDGE_HINT}"));
            return Input::Unreadable;
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
            Some(verdict) => Input::Judged(verdict),
            None => Input::Unreadable,
        }
    }

    fn failed(&mut self, error: &ModelError) -> Input {
        self.failed_so(describe(error))
    }

    fn failed_so(&mut self, why: String) -> Input {
        self.error = Some(why);
        Input::ModelFailed
    }
}

/// The issues of a version.
fn issues_of(version: &Version) -> &[Issue] {
    let evaluation = version.evaluation.as_ref();
    evaluation.map_or(&[], |evaluation| &evaluation.issues)
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
