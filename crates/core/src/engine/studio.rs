//! A run in which others write and judge: the machine decides as in any run, and what it wants done is done by
//! a [`Studio`].

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::critique::describe;
use super::drive::{Worker, drive};
use super::ending::ending;
use super::log::{Log, Observer};
use super::machine::{Abilities, Happened, Next, State};
use super::verdict::Verdict;
use crate::model::{CallObserver, ModelError};
use crate::types::{
    Criteria, Evaluation, Event, LoopSettings, Models, Phase, Prices, RunRecord, SCHEMA_VERSION,
    Task, UserDecision,
};

/// Who writes the versions of a run, and who judges them: a workflow's own actions instead of models with our
/// prompts.
#[async_trait(?Send)]
pub trait Studio: Send {
    /// Writes a version: the first draft, or one that is made of those before it.
    async fn write(
        &mut self,
        iteration: u32,
        calls: &CallObserver<'_>,
    ) -> Result<Written, StudioError>;

    /// Judges a version, for the `attempt`th time, from 0. Satisfactory is what it says to be.
    async fn judge(
        &mut self,
        iteration: u32,
        attempt: u32,
        calls: &CallObserver<'_>,
    ) -> Result<Evaluation, StudioError>;
}

/// A version that a studio has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its text; a value that is no text as JSON.
    pub output: String,
    /// The version that it was made of, if it was.
    pub based_on: Option<u32>,
}

/// Why a studio cannot go on. The run ends.
#[derive(Debug)]
pub enum StudioError {
    /// A model failed for good.
    Model(ModelError),
    /// Something else did.
    Other(String),
}

/// A run in a studio, ready to begin.
///
/// The rules that look for progress are for models that revise; here the limits on iterations, tokens, cost and
/// time end the run, or a version that is satisfactory.
pub struct Workshop {
    /// What is recorded as what drafts are measured by.
    pub criteria: Arc<Criteria>,
    /// The limits, and what is returned.
    pub settings: LoopSettings,
    /// What the models cost; empty where that is not known.
    pub prices: Prices,
}

impl Workshop {
    /// Runs it. The record holds every version and the one selected; the observer has seen every event when
    /// this returns, [`Event::RunEnd`] included.
    pub async fn run(
        &self,
        task: &Task,
        studio: &mut dyn Studio,
        observer: &mut dyn Observer,
        cancel: &CancellationToken,
    ) -> RunRecord {
        let run_id = Uuid::now_v7();
        let log = Log::new(observer, self.prices.clone());
        let settings = LoopSettings {
            plateau_iterations: Some(u32::MAX),
            detect_oscillation: Some(false),
            grey_zone: Some(0.0),
            adapt: Some(false),
            early_stop: Some(false),
            quality_drop_threshold: Some(0.0),
            ..self.settings.clone()
        };
        log.emit(Event::RunStart {
            schema_version: SCHEMA_VERSION,
            run_id,
            command: "run".to_owned(),
            file: None,
            task: Box::new(task.clone()),
            criteria: Box::new((*self.criteria).clone()),
            settings: settings.clone(),
            models: Models {
                writer: None,
                judge: None,
            },
            // Its file is run again.
            setup: None,
        });
        let mut run = Run {
            log: &log,
            studio,
            error: None,
        };
        let begin = (State::new(Abilities::default()), Happened::Begun);
        let (reason, state) = drive(&mut run, &log, &settings, begin, cancel).await;
        let error = run.error;
        let last = log.with(|record| record.versions.last().map(|v| v.iteration));
        let ending = ending(reason, &state, last, &settings);
        log.end(
            run_id,
            Some(reason),
            ending.success,
            ending.selected,
            ending.exit_code,
            error,
        );
        log.into_record()
    }
}

struct Run<'a, 'o> {
    log: &'a Log<'o>,
    studio: &'a mut dyn Studio,
    error: Option<String>,
}

impl Worker for Run<'_, '_> {
    async fn perform(&mut self, next: Next, _: &State) -> Happened {
        match next {
            Next::Draft { iteration } | Next::Fresh { iteration, .. } => {
                self.write(Phase::Draft, iteration).await
            }
            Next::Revise { iteration, .. } => self.write(Phase::Revise, iteration).await,
            Next::Evaluate { iteration, attempt } => self.judge(iteration, attempt).await,
            // There is nobody who compares, looks back or decides, which the machine was told.
            Next::Compare { .. } => Happened::Compared(None),
            Next::Reflect { .. } => Happened::Reflected,
            Next::TakeRejected { .. } => Happened::NoDraft,
            Next::AskUser { .. } => Happened::Decided(UserDecision::Auto),
            Next::TakeEdit { .. } | Next::Stop(_) => Happened::Cancelled,
        }
    }
}

impl Run<'_, '_> {
    async fn write(&mut self, phase: Phase, iteration: u32) -> Happened {
        self.log.emit(Event::Phase { phase, iteration });
        let calls = self.log.calls(phase, iteration);
        match self.studio.write(iteration, &calls).await {
            Ok(written) => {
                self.log.emit(Event::Draft {
                    iteration,
                    output: written.output,
                    based_on: written.based_on,
                    strategy: None,
                    edits: None,
                });
                Happened::Written(None)
            }
            Err(error) => self.failed(&error, Happened::ModelFailed),
        }
    }

    async fn judge(&mut self, iteration: u32, attempt: u32) -> Happened {
        let phase = Phase::Evaluate;
        self.log.emit(Event::Phase { phase, iteration });
        let calls = self.log.calls(phase, iteration);
        let evaluation = match self.studio.judge(iteration, attempt, &calls).await {
            Ok(evaluation) => evaluation,
            Err(error) => return self.failed(&error, Happened::CheckFailed),
        };
        self.log.emit(Event::Evaluation {
            iteration,
            evaluation: evaluation.clone(),
        });
        // Without issues and likeness, which only the rules for progress look at.
        let verdict = Verdict::new(&evaluation, BTreeSet::new(), None);
        match (verdict, evaluation.failure()) {
            (Some(verdict), _) => {
                self.error = None;
                Happened::Judged(verdict)
            }
            (None, Some(failure)) => {
                self.error = Some(failure);
                Happened::CheckFailed
            }
            (None, None) => {
                self.error = evaluation.problem().map(str::to_owned);
                Happened::Unreadable
            }
        }
    }

    /// A model's failure is one, wherever it happens.
    fn failed(&mut self, error: &StudioError, otherwise: Happened) -> Happened {
        match error {
            StudioError::Model(error) => {
                self.error = Some(describe(error));
                Happened::ModelFailed
            }
            StudioError::Other(message) => {
                self.error = Some(message.clone());
                otherwise
            }
        }
    }
}
