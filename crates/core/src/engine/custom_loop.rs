//! A run whose drafts and evaluations come from a [`LoopBackend`]: the machine decides as in any run, and the backend
//! performs the effects.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::drive::{Worker, drive};
use super::ending::ending;
use super::evaluate_once::describe;
use super::log::{Log, Observer};
use super::machine::{Abilities, Effect, Input, State};
use super::verdict::Verdict;
use crate::model::{CallObserver, ModelError};
use crate::types::{
    Criteria, Evaluation, Event, LoopSettings, Models, Phase, Prices, RunRecord, SCHEMA_VERSION,
    Task, UserDecision,
};

/// Writes and judges the versions of a run: the actions of a workflow instead of models with the built-in prompts.
#[async_trait(?Send)]
pub trait LoopBackend: Send {
    /// Writes a version: the first draft, or one that is based on earlier versions.
    async fn write(
        &mut self,
        iteration: u32,
        calls: &dyn CallObserver,
    ) -> Result<Written, BackendError>;

    /// Judges a version, for the `attempt`th time, from 0. Its evaluation decides whether the version is
    /// satisfactory.
    async fn judge(
        &mut self,
        iteration: u32,
        attempt: u32,
        calls: &dyn CallObserver,
    ) -> Result<Evaluation, BackendError>;
}

/// A version that a backend has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its text; a value that is not text as JSON.
    pub output: String,
    /// The version that it is based on, if any.
    pub based_on: Option<u32>,
}

/// A failure of a backend. It ends the run.
#[derive(Debug)]
pub enum BackendError {
    /// A model failed for good.
    Model(ModelError),
    /// Another failure.
    Other(String),
}

/// A run over a backend, ready to start.
///
/// The rules that look for progress are for models that revise. Here only the limits on iterations, tokens, cost and
/// time end the run, or a satisfactory version.
pub struct CustomLoop {
    /// The criteria that are recorded.
    pub criteria: Arc<Criteria>,
    /// The limits, and which version is returned.
    pub settings: LoopSettings,
    /// The prices of the models; empty where they are not known.
    pub prices: Prices,
}

impl CustomLoop {
    /// Runs the loop. Returns the record with every version and the one selected. The observer has received every
    /// event by then, including [`Event::RunEnd`].
    pub async fn run(
        &self,
        task: &Task,
        backend: &mut dyn LoopBackend,
        observer: &mut dyn Observer,
        cancel: &CancellationToken,
    ) -> RunRecord {
        let run_id = Uuid::now_v7();
        let log = Log::new(observer, self.prices.clone());
        let settings = LoopSettings {
            plateau_iterations: Some(u32::MAX),
            detect_oscillation: Some(false),
            tie_margin: Some(0.0),
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
            // To resume it, its workflow is run again.
            setup: None,
        });
        let mut run = CustomRun {
            log: &log,
            backend,
            error: None,
        };
        let begin = (State::new(Abilities::default()), Input::Begun);
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

struct CustomRun<'a, 'o> {
    log: &'a Log<'o>,
    backend: &'a mut dyn LoopBackend,
    error: Option<String>,
}

impl Worker for CustomRun<'_, '_> {
    async fn perform(&mut self, next: Effect, _: &State) -> Input {
        match next {
            Effect::Draft { iteration } | Effect::Fresh { iteration, .. } => {
                self.write(Phase::Draft, iteration).await
            }
            Effect::Revise { iteration, .. } => self.write(Phase::Revise, iteration).await,
            Effect::Evaluate { iteration, attempt } => self.judge(iteration, attempt).await,
            // The abilities rule these effects out.
            Effect::Compare { .. } => Input::Compared(None),
            Effect::Reflect { .. } => Input::Reflected,
            Effect::TakeRejected { .. } => Input::NoDraft,
            Effect::AskUser { .. } => Input::Decided(UserDecision::Auto),
            Effect::TakeEdit { .. } | Effect::Stop(_) => Input::Cancelled,
        }
    }
}

impl CustomRun<'_, '_> {
    async fn write(&mut self, phase: Phase, iteration: u32) -> Input {
        self.log.emit(Event::Phase { phase, iteration });
        let calls = self.log.calls(phase, iteration);
        match self.backend.write(iteration, &calls).await {
            Ok(written) => {
                self.log.emit(Event::Draft {
                    iteration,
                    output: written.output,
                    based_on: written.based_on,
                    strategy: None,
                    edits: None,
                });
                Input::Written(None)
            }
            Err(error) => self.failed(&error, Input::ModelFailed),
        }
    }

    async fn judge(&mut self, iteration: u32, attempt: u32) -> Input {
        let phase = Phase::Evaluate;
        self.log.emit(Event::Phase { phase, iteration });
        let calls = self.log.calls(phase, iteration);
        let evaluation = match self.backend.judge(iteration, attempt, &calls).await {
            Ok(evaluation) => evaluation,
            Err(error) => return self.failed(&error, Input::CheckFailed),
        };
        self.log.emit(Event::Evaluation {
            iteration,
            evaluation: evaluation.clone(),
        });
        // Issues and similarity are used only by the rules for progress.
        let verdict = Verdict::new(&evaluation, BTreeSet::new(), None);
        match (verdict, evaluation.failure()) {
            (Some(verdict), _) => {
                self.error = None;
                Input::Judged(verdict)
            }
            (None, Some(failure)) => {
                self.error = Some(failure);
                Input::CheckFailed
            }
            (None, None) => {
                self.error = evaluation.problem().map(str::to_owned);
                Input::Unreadable
            }
        }
    }

    /// A model's failure is reported as one, wherever it happens.
    fn failed(&mut self, error: &BackendError, otherwise: Input) -> Input {
        match error {
            BackendError::Model(error) => {
                self.error = Some(describe(error));
                Input::ModelFailed
            }
            BackendError::Other(message) => {
                self.error = Some(message.clone());
                otherwise
            }
        }
    }
}
