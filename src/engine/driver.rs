use std::pin::pin;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::adapt::Approach;
use super::critique::describe;
use super::early::{EarlyStop, Reading};
use super::ending::ending;
use super::evidence;
use super::gate::{self, NotADraft, Occasion};
use super::ledger::Ledger;
use super::log::{Log, Observer};
use super::machine::{Abilities, Given, Happened, Next, State, step};
use super::similarity::similarity;
use super::start::Start;
use super::verdict::Verdict;
use super::{critics, lessons};
use crate::evaluate::{
    ComparisonError, Earlier, JudgeModel, Pair, Panel, Progress, Subject, Tools, prefer,
};
use crate::evidence::Gatherer;
use crate::model::{
    ChatModel, ChatRequest, EndReason, ErrorClass, Message, ModelError, Purpose, Reply, Sampling,
    Think, call_until,
};
use crate::prompt::Prompts;
use crate::revise::{self, Revision};
use crate::types::{
    ConvergenceReason, Criteria, EditCounts, Evaluation, Event, ExitCode, Issue, LoopSettings,
    Models, Phase, RunRecord, SCHEMA_VERSION, Strategy, Task, Version,
};

/// What to do about a judge whose verdicts cannot be read: most often it is too small for the task.
const JUDGE_HINT: &str =
    "let another model judge with `--judge-model`, or use criteria with fewer points";

/// A loop over one task, ready to run.
pub struct Loop {
    /// What it begins with.
    pub start: Start,
    /// Writes and revises.
    pub writer: Arc<dyn ChatModel>,
    /// How the writer chooses tokens.
    pub writer_sampling: Sampling,
    /// How much the writer reasons.
    pub think: Think,
    /// Writes where the writer makes no progress any more, if there is one.
    pub stronger: Option<Arc<dyn ChatModel>>,
    /// Judges, and compares drafts whose scores are too close to say.
    pub judge: JudgeModel,
    /// What drafts are measured by.
    pub criteria: Arc<Criteria>,
    /// How the loop behaves, all layers laid over each other.
    pub settings: LoopSettings,
    /// What the criteria may use beside models.
    pub tools: Tools,
    /// Finds evidence for the task, and for each revision anew; `None` to look for none.
    pub evidence: Option<Arc<Gatherer>>,
}

impl Loop {
    /// A loop in which one model writes and judges, with default settings throughout.
    pub fn new(model: Arc<dyn ChatModel>, criteria: Arc<Criteria>) -> Self {
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
            evidence: None,
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
        let run_id = Uuid::now_v7();
        let log = Log::new(observer);
        let given = self.start.text();
        log.emit(Event::RunStart {
            schema_version: SCHEMA_VERSION,
            run_id,
            command: self.start.command().to_owned(),
            file: given.and_then(|text| text.file.clone()),
            task: Box::new(task.clone()),
            criteria: Box::new((*self.criteria).clone()),
            settings: self.settings.clone(),
            models: Models {
                writer: Some(self.writer.id().clone()),
                judge: (self.start.is_judged()).then(|| self.judge.model.id().clone()),
            },
        });
        let panel = match self.panel() {
            Ok(panel) => panel,
            Err(problem) => {
                log.end(run_id, None, false, None, ExitCode::Usage, Some(problem));
                return log.into_record();
            }
        };
        let mut prompts = Prompts::new(task, &self.criteria);
        let gatherer = self.evidence.as_deref();
        let text = given.map(|text| text.content.as_str());
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
            ledger: Ledger::default(),
            note: None,
            error: None,
            written: 0,
            history: revise::History::default(),
            early: EarlyStop::new(&self.criteria, &self.settings),
        };
        run.drive(run_id, cancel).await;
        log.into_record()
    }

    /// The evaluators, unless nothing is judged.
    fn panel(&self) -> Result<Option<Panel>, String> {
        if !self.start.is_judged() {
            return Ok(None);
        }
        let criteria = Arc::clone(&self.criteria);
        Panel::new(criteria, Some(self.judge.clone()), &self.tools).map(Some)
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
    ledger: Ledger,
    /// What the writer is told with its next call: why its last reply was no draft.
    note: Option<String>,
    /// What went wrong, for the end of the run.
    error: Option<String>,
    /// How often the writer was asked. Each time with another seed, or a repeatable model would answer the
    /// same question with the same text.
    written: u64,
    /// Which kinds of revision have worked.
    history: revise::History,
    /// Which replies are ended before they are complete.
    early: EarlyStop,
}

/// A draft that is being written, and what it is made of.
#[derive(Default)]
struct Work {
    iteration: u32,
    /// What is revised, and how.
    from: Option<(u32, Strategy)>,
    /// How edits applied, if they were tried.
    edits: Option<EditCounts>,
    /// The text that is revised.
    base: Option<String>,
    /// What the writer is told to mend, or to avoid.
    issues: Vec<Issue>,
}

impl Run<'_, '_> {
    /// Does what the machine says until it says stop.
    async fn drive(mut self, run_id: Uuid, cancel: &CancellationToken) {
        let deadline = self.settings.max_time().map(|limit| Instant::now() + limit);
        let mut state = State::new(Abilities {
            compare: self.plan.criteria.need_judge(),
            stronger: self.plan.stronger.is_some(),
        });
        let mut happened = self.begin();
        let reason = loop {
            let (new, next, decisions) = step(state, happened, &self.settings, self.log.tokens());
            state = new;
            for decision in decisions {
                self.log.emit(Event::Decision {
                    iteration: decision.iteration,
                    choice: decision.choice,
                    incumbent: decision.incumbent,
                    reason: decision.reason,
                });
            }
            if let Next::Stop(reason) = next {
                break reason;
            }
            happened = {
                let work = pin!(self.perform(next));
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => Happened::Cancelled,
                    () = sleep_until(deadline) => Happened::TimeUp,
                    happened = work => happened,
                }
            };
        };
        self.end(run_id, reason, &state);
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
    fn end(self, run_id: Uuid, reason: ConvergenceReason, state: &State) {
        let last = self
            .log
            .with(|record| record.versions.last().map(|v| v.iteration));
        let ending = ending(reason, state, last, &self.settings);
        let criteria = &self.plan.criteria;
        let small = self.settings.improvement_threshold();
        let (too_easy, too_hard) = self.log.with(|record| {
            (
                critics::undercritical(criteria, record),
                critics::overcritical(criteria, record, small),
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

    async fn perform(&mut self, next: Next) -> Happened {
        match next {
            Next::Draft { iteration } => {
                let messages = self.prompts.draft(self.note.take().as_deref());
                self.draft(iteration, messages, Vec::new()).await
            }
            Next::Fresh { iteration, lessons } => self.fresh(iteration, lessons).await,
            Next::Revise {
                iteration,
                based_on,
                approach,
            } => self.revise(iteration, based_on, approach).await,
            Next::Evaluate { iteration, attempt } => self.evaluate(iteration, attempt).await,
            Next::Compare {
                incumbent,
                challenger,
            } => self.compare(incumbent, challenger).await,
            Next::Stop(_) => Happened::Cancelled,
        }
    }

    async fn fresh(&mut self, iteration: u32, lessons: u32) -> Happened {
        let issues: Vec<Issue> = self
            .ledger
            .issues_of(lessons)
            .iter()
            .map(|tracked| tracked.issue.clone())
            .collect();
        let messages = self.prompts.fresh(&issues, self.note.take().as_deref());
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
            iteration,
            issues,
            ..Work::default()
        };
        let ask = revise::Ask {
            messages,
            prediction: None,
            whole: true,
        };
        match self.write(phase, &work, ask, false).await {
            Ok(reply) => {
                let output = self.clean(&work, &reply.text);
                self.drafted(&work, output)
            }
            Err(happened) => happened,
        }
    }

    async fn revise(&mut self, iteration: u32, based_on: u32, approach: Approach) -> Happened {
        let strategy = approach.strategy(self.settings.strategy());
        let open = self.ledger.issues_of(based_on);
        let found = self.log.with(|record| {
            let base = record.version(based_on)?;
            let worse = (approach == Approach::Differently)
                .then(|| record.versions.last())
                .flatten()
                .map(|failed| lessons::of_regression(base, failed));
            Some((lessons::to_revise(base, open), worse))
        });
        let Some((base, worse)) = found else {
            self.error = Some(format!("version {based_on} is not there to be revised"));
            return Happened::ModelFailed;
        };
        let phase = Phase::Revise;
        self.log.emit(Event::Phase { phase, iteration });
        evidence::for_revision(
            self.plan.evidence.as_deref(),
            issues_of(&base),
            iteration,
            &mut self.prompts,
            self.log,
        );
        let notes: Vec<String> = [self.note.take(), worse].into_iter().flatten().collect();
        let note = (!notes.is_empty()).then(|| notes.join(" "));
        let stronger = approach == Approach::Stronger;
        let mut work = Work {
            iteration,
            base: Some(base.output.clone()),
            issues: issues_of(&base).to_vec(),
            ..Work::default()
        };
        let mut revision = Revision::new(strategy, self.history, &self.prompts, &base, note);
        let revised = loop {
            match revision.step() {
                revise::Step::Say(strategy, reason) => self.log.emit(Event::Strategy {
                    iteration,
                    strategy,
                    reason,
                }),
                revise::Step::Ask(ask) => match self.write(phase, &work, ask, stronger).await {
                    Ok(reply) => revision.answer(&reply),
                    Err(happened) => return happened,
                },
                revise::Step::Done(revised) => break revised,
            }
            self.history = revision.history();
        };
        work.from = Some((based_on, revised.strategy));
        work.edits = revised.edits;
        // What is around an edit is no part of the text; what is around a whole text may seem to be.
        let output = match revised.strategy {
            Strategy::FullRewrite => self.clean(&work, &revised.output),
            _ => revised.output,
        };
        self.drafted(&work, output)
    }

    /// Asks the writer, or the stronger model. A reply that is the whole text must be complete; it is ended
    /// early where it can no longer become a draft of use.
    async fn write(
        &mut self,
        phase: Phase,
        work: &Work,
        ask: revise::Ask,
        stronger: bool,
    ) -> Result<Reply, Happened> {
        let mut request = ChatRequest::new(Purpose::Write, ask.messages);
        request.prediction = ask.prediction;
        request.sampling = self.plan.writer_sampling.clone();
        request.sampling.seed = request
            .sampling
            .seed
            .map(|seed| seed.wrapping_add(self.written));
        if phase == Phase::Revise {
            let limits = [
                request.sampling.max_tokens,
                self.plan.settings.max_revision_tokens,
            ];
            request.sampling.max_tokens = limits.into_iter().flatten().min();
        }
        self.written += 1;
        request.think = self.plan.think;
        let observer = self.log.calls(phase, work.iteration);
        let watch = self.log.with(|record| self.early.watch(record));
        let mut reading = watch
            .filter(|_| ask.whole)
            .map(|watch| Reading::new(watch, self.occasion(work)));
        let stop = |text: &str| {
            let reading = reading.as_mut();
            reading.is_some_and(|reading| reading.is_hopeless(text))
        };
        let writer = match &self.plan.stronger {
            Some(model) if stronger => model,
            _ => &self.plan.writer,
        };
        let reply = match call_until(&**writer, request, &observer, stop).await {
            Ok(reply) => reply,
            // What is too long in pieces may fit as a whole: the revision takes it for a reply of no use.
            Err(error) if !ask.whole && error.class == ErrorClass::ContextTooLong => Reply {
                end: Some(EndReason::Length),
                ..Reply::default()
            },
            Err(error) => return Err(self.failed(&error)),
        };
        if let Some(no_draft) = reading.and_then(|reading| reading.verdict(&reply.text)) {
            self.early.stopped();
            return Err(self.rejected(work.iteration, no_draft, reply.text, true));
        }
        match gate::check_reply(&reply) {
            Err(no_draft) if ask.whole => {
                Err(self.rejected(work.iteration, no_draft, reply.text, false))
            }
            _ => Ok(reply),
        }
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

    /// A text is there; if it is a draft, it is a version.
    fn drafted(&mut self, work: &Work, output: String) -> Happened {
        if let Err(no_draft) = gate::check_text(&output, &self.occasion(work)) {
            return self.rejected(work.iteration, no_draft, output, false);
        }
        self.error = None;
        self.early.drafted();
        self.log.emit(Event::Draft {
            iteration: work.iteration,
            output,
            based_on: work.from.map(|(base, _)| base),
            strategy: work.from.map(|(_, strategy)| strategy),
            edits: work.edits,
        });
        Happened::Written(work.from.map(|(_, strategy)| strategy))
    }

    fn rejected(
        &mut self,
        iteration: u32,
        no_draft: NotADraft,
        text: String,
        stopped_early: bool,
    ) -> Happened {
        let NotADraft { reason, note } = no_draft;
        self.error = Some(format!("no usable draft: {reason}"));
        self.note = Some(note);
        self.log.emit(Event::Rejected {
            iteration,
            reason,
            text,
            stopped_early,
        });
        if stopped_early {
            Happened::Stopped
        } else {
            Happened::Rejected
        }
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
    async fn compare(&mut self, incumbent: u32, challenger: u32) -> Happened {
        let (phase, iteration) = (Phase::Evaluate, challenger);
        self.log.emit(Event::Phase { phase, iteration });
        let observer = self.log.calls(phase, iteration);
        let first = self.output_of(incumbent).unwrap_or_default();
        let second = self.output_of(challenger).unwrap_or_default();
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
        let Some(panel) = &self.panel else {
            self.error = Some("there is nobody to judge".to_owned());
            return Happened::CheckFailed;
        };
        let phase = Phase::Evaluate;
        self.log.emit(Event::Phase { phase, iteration });
        let (based_on, earlier) = self.log.with(|record| {
            let before = |version: &&Version| version.iteration < iteration;
            (
                record.version(iteration).and_then(|v| v.based_on),
                Earlier::latest(record.versions.iter().filter(before)),
            )
        });
        let draft = self.output_of(iteration).unwrap_or_default();
        let prior = based_on.and_then(|base| self.output_of(base));
        let subject = Subject {
            draft: &draft,
            prior: prior.as_deref(),
            attempt,
            progress: Progress {
                iteration,
                task: self.task,
                earlier: &earlier,
            },
        };
        let observer = self.log.calls(phase, iteration);
        let evaluation = match panel.evaluate(&self.prompts, &subject, &observer).await {
            Ok(evaluation) => evaluation,
            Err(error) => return self.failed(&error),
        };
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
        let change = self.ledger.take(iteration, based_on, &evaluation);
        let open = change.open.iter().map(|issue| issue.id).collect();
        self.log.emit(Event::Issues {
            iteration,
            open: change.open,
            resolved: change.resolved,
        });
        let alike = prior.map(|prior| similarity(&prior, &draft));
        match Verdict::new(&evaluation, open, alike) {
            Some(verdict) => Happened::Judged(verdict),
            None => Happened::Unreadable,
        }
    }

    fn failed(&mut self, error: &ModelError) -> Happened {
        self.error = Some(describe(error));
        Happened::ModelFailed
    }
}

/// The issues that a version was found to have.
fn issues_of(version: &Version) -> &[Issue] {
    let evaluation = version.evaluation.as_ref();
    evaluation.map_or(&[], |evaluation| &evaluation.issues)
}

pub(super) async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
