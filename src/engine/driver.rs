use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::critique::describe;
use super::evidence;
use super::gate::{self, NotADraft};
use super::log::{Log, Observer};
use super::machine::{Happened, Next, State, step};
use super::select::select;
use crate::evaluate::{
    Earlier, JudgeModel, OtherModel, Panel, Progress, Subject, Tools, VerdictCache,
};
use crate::evidence::Gatherer;
use crate::model::{ChatModel, ChatRequest, Message, ModelError, Purpose, Sampling, call};
use crate::prompt::Prompts;
use crate::revise;
use crate::types::{
    ConvergenceReason, Criteria, Event, ExitCode, LoopSettings, Models, Phase, RunRecord,
    SCHEMA_VERSION, Strategy, Task, Version,
};

/// What to do about a judge whose verdicts cannot be read: most often it is too small for the task.
const JUDGE_HINT: &str =
    "let another model judge with `--judge-model`, or use criteria with fewer points";

/// A loop over one task, ready to run.
pub struct Loop {
    /// Writes and revises.
    pub writer: Arc<dyn ChatModel>,
    /// Judges.
    pub judge: Arc<dyn ChatModel>,
    /// What drafts are measured by.
    pub criteria: Arc<Criteria>,
    /// How the loop behaves, all layers laid over each other.
    pub settings: LoopSettings,
    /// How the writer chooses tokens.
    pub writer_sampling: Sampling,
    /// How the judge chooses tokens.
    pub judge_sampling: Sampling,
    /// How much the models reason.
    pub think: crate::model::Think,
    /// What the criteria may use beside models.
    pub tools: Tools,
    /// The models that criteria name for themselves, by what they write there.
    pub other_judges: BTreeMap<String, OtherModel>,
    /// Keeps verdicts; `None` to ask the judge each time.
    pub verdicts: Option<Arc<dyn VerdictCache>>,
    /// Finds evidence for the task, and for each revision anew; `None` to look for none.
    pub evidence: Option<Arc<Gatherer>>,
}

impl Loop {
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
        log.emit(Event::RunStart {
            schema_version: SCHEMA_VERSION,
            run_id,
            command: "draft".to_owned(),
            file: None,
            task: task.clone(),
            criteria: Box::new((*self.criteria).clone()),
            settings: self.settings.clone(),
            models: Models {
                writer: Some(self.writer.id().clone()),
                judge: Some(self.judge.id().clone()),
            },
        });
        let panel = match Panel::new(
            Arc::clone(&self.criteria),
            Some(JudgeModel {
                model: Arc::clone(&self.judge),
                sampling: self.judge_sampling.clone(),
                think: self.think,
                others: self.other_judges.clone(),
                cache: self.verdicts.clone(),
            }),
            &self.tools,
        ) {
            Ok(panel) => panel,
            Err(problem) => {
                log.end(run_id, None, false, None, ExitCode::Usage, Some(problem));
                return log.into_record();
            }
        };
        let mut prompts = Prompts::new(task, &self.criteria);
        let gatherer = self.evidence.as_deref();
        evidence::for_task(gatherer, task, &self.criteria, &mut prompts, &log);
        let run = Run {
            plan: self,
            task,
            prompts,
            panel,
            log: &log,
            note: None,
            error: None,
            written: 0,
        };
        run.drive(run_id, cancel).await;
        log.into_record()
    }
}

/// A run under way.
struct Run<'a, 'o> {
    plan: &'a Loop,
    task: &'a Task,
    prompts: Prompts,
    panel: Panel,
    log: &'a Log<'o>,
    /// What the writer is told with its next call: why its last reply was no draft.
    note: Option<String>,
    /// What went wrong, for the end of the run.
    error: Option<String>,
    /// How often the writer was asked. Each time with another seed, or a repeatable model would answer the
    /// same question with the same text.
    written: u64,
}

impl Run<'_, '_> {
    /// Does what the machine says until it says stop.
    async fn drive(mut self, run_id: Uuid, cancel: &CancellationToken) {
        let settings = &self.plan.settings;
        let deadline = settings.max_time().map(|limit| Instant::now() + limit);
        let mut state = State::default();
        let mut happened = Happened::Begun;
        let reason = loop {
            let (new, next, decisions) = step(state, happened, settings, self.log.tokens());
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
        let judged = select(settings.select(), &state.judged);
        let last = self
            .log
            .with(|record| record.versions.last().map(|v| v.iteration));
        let selected = match reason {
            // Nobody has judged it, so nobody may take it for an answer.
            ConvergenceReason::ModelError => judged,
            ConvergenceReason::JudgeFailed => last,
            _ => judged.or(last),
        };
        let success = state
            .judged
            .iter()
            .any(|(iteration, rank)| Some(*iteration) == selected && rank.satisfactory);
        let exit_code = reason.exit_code(success);
        self.log.end(
            run_id,
            Some(reason),
            success,
            selected,
            exit_code,
            self.error,
        );
    }

    async fn perform(&mut self, next: Next) -> Happened {
        match next {
            Next::Draft { iteration } => {
                let messages = self.prompts.draft(self.note.take().as_deref());
                self.write(Phase::Draft, iteration, messages, None).await
            }
            Next::Revise {
                iteration,
                based_on,
            } => {
                self.gather_evidence(iteration, based_on);
                let strategy = self.plan.settings.strategy();
                let note = self.note.take();
                let messages = self.log.with(|record| {
                    record
                        .version(based_on)
                        .map(|base| revise::request(strategy, &self.prompts, base, note.as_deref()))
                });
                let Some(messages) = messages else {
                    self.error = Some(format!("version {based_on} is not there to be revised"));
                    return Happened::ModelFailed;
                };
                let from = Some((based_on, strategy));
                self.write(Phase::Revise, iteration, messages, from).await
            }
            Next::Evaluate { iteration, attempt } => self.evaluate(iteration, attempt).await,
            Next::Stop(_) => Happened::Cancelled,
        }
    }

    /// Evidence for what is to be mended of a version.
    fn gather_evidence(&mut self, iteration: u32, based_on: u32) {
        let issues = self.log.with(|record| {
            let base = record.version(based_on)?.evaluation.as_ref()?;
            Some(base.issues.clone())
        });
        let gatherer = self.plan.evidence.as_deref();
        let (issues, prompts) = (issues.unwrap_or_default(), &mut self.prompts);
        evidence::for_revision(gatherer, &issues, iteration, prompts, self.log);
    }

    async fn write(
        &mut self,
        phase: Phase,
        iteration: u32,
        messages: Vec<Message>,
        from: Option<(u32, Strategy)>,
    ) -> Happened {
        self.log.emit(Event::Phase { phase, iteration });
        let mut request = ChatRequest::new(Purpose::Write, messages);
        request.sampling = self.plan.writer_sampling.clone();
        request.sampling.seed = request
            .sampling
            .seed
            .map(|seed| seed.wrapping_add(self.written));
        self.written += 1;
        request.think = self.plan.think;
        let observer = self.log.calls(phase, iteration);
        let reply = match call(&*self.plan.writer, request, &observer).await {
            Ok(reply) => reply,
            Err(error) => return self.failed(&error),
        };
        if let Err(NotADraft { reason, note }) = gate::check(&reply) {
            self.error = Some(format!("no usable draft: {reason}"));
            self.note = Some(note);
            self.log.emit(Event::Rejected {
                iteration,
                reason,
                text: reply.text,
            });
            return Happened::Rejected;
        }
        self.error = None;
        let output = match from {
            None => reply.text.trim().to_owned(),
            Some((_, strategy)) => revise::apply(strategy, &reply.text),
        };
        self.log.emit(Event::Draft {
            iteration,
            output,
            based_on: from.map(|(base, _)| base),
            strategy: from.map(|(_, strategy)| strategy),
        });
        Happened::Written
    }

    async fn evaluate(&mut self, iteration: u32, attempt: u32) -> Happened {
        let phase = Phase::Evaluate;
        self.log.emit(Event::Phase { phase, iteration });
        let output = |record: &RunRecord, iteration| {
            record
                .version(iteration)
                .map(|version| version.output.clone())
        };
        let (draft, prior, earlier) = self.log.with(|record| {
            let prior = record.version(iteration).and_then(|v| v.based_on);
            let before = |version: &&Version| version.iteration < iteration;
            (
                output(record, iteration).unwrap_or_default(),
                prior.and_then(|prior| output(record, prior)),
                Earlier::latest(record.versions.iter().filter(before)),
            )
        });
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
        let evaluation = match self
            .panel
            .evaluate(&self.prompts, &subject, &observer)
            .await
        {
            Ok(evaluation) => evaluation,
            Err(error) => return self.failed(&error),
        };
        let (happened, error) = match (evaluation.rank(), evaluation.failure()) {
            (Some(rank), _) => (Happened::Judged(rank), None),
            (None, Some(failure)) => (Happened::CheckFailed, Some(failure)),
            (None, None) => (
                Happened::Unreadable,
                evaluation
                    .problem()
                    .map(|problem| format!("{problem}\nhint: {JUDGE_HINT}")),
            ),
        };
        self.error = error;
        self.log.emit(Event::Evaluation {
            iteration,
            evaluation,
        });
        happened
    }

    fn failed(&mut self, error: &ModelError) -> Happened {
        self.error = Some(describe(error));
        Happened::ModelFailed
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
