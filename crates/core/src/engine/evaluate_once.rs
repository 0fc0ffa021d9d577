use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::evidence;
use super::log::{Log, Observer};
use crate::evaluate::{EvaluatorError, EvaluatorSet, JudgeModel, Progress, Subject, Tools};
use crate::evidence::Gatherer;
use crate::model::ModelError;
use crate::prompt::{Prompts, Templates};
use crate::types::{
    ConvergenceReason, Criteria, Event, ExitCode, LoopSettings, Models, Phase, Prices, RunRecord,
    SCHEMA_VERSION, Task,
};

/// The iteration of a text that is judged once.
const ONLY: u32 = 1;

/// Evaluates existing texts once each: nothing is written or revised.
pub struct EvaluateOnce {
    criteria: Arc<Criteria>,
    panel: EvaluatorSet,
    models: Models,
    evidence: Option<Arc<Gatherer>>,
    prices: Prices,
    templates: Option<Arc<Templates>>,
}

/// A text to judge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text {
    /// The text.
    pub content: String,
    /// The file it comes from, if it comes from one.
    pub file: Option<String>,
}

impl EvaluateOnce {
    /// Prepares the evaluators of these criteria. Without a model, none of them may need one.
    ///
    /// # Errors
    /// If the criteria cannot be used, or need a model or tools that are not there.
    pub fn new(
        criteria: Arc<Criteria>,
        judge: Option<JudgeModel>,
        tools: &Tools,
    ) -> Result<Self, EvaluatorError> {
        let models = Models {
            writer: None,
            judge: judge.as_ref().map(|judge| judge.model.id().clone()),
        };
        Ok(Self {
            panel: EvaluatorSet::new(Arc::clone(&criteria), judge, tools)?,
            criteria,
            models,
            evidence: None,
            prices: Prices::default(),
            templates: None,
        })
    }

    /// Searches for evidence in these texts, and shows it to the judge.
    #[must_use]
    pub fn with_evidence(self, gatherer: Option<Arc<Gatherer>>) -> Self {
        Self {
            evidence: gatherer,
            ..self
        }
    }

    /// Counts the cost of the judge.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        Self { prices, ..self }
    }

    /// Uses custom templates for the judge.
    #[must_use]
    pub fn with_templates(self, templates: Option<Arc<Templates>>) -> Self {
        Self { templates, ..self }
    }

    /// Evaluates one text. The observer has received every event when this returns, including [`Event::RunEnd`].
    ///
    /// Cancelling the token ends it at the next await.
    pub async fn run(
        &self,
        task: &Task,
        text: Text,
        observer: &mut dyn Observer,
        cancel: &CancellationToken,
    ) -> RunRecord {
        let run_id = Uuid::now_v7();
        let log = Log::new(observer, self.prices.clone());
        log.emit(Event::RunStart {
            schema_version: SCHEMA_VERSION,
            run_id,
            command: "evaluate".to_owned(),
            file: text.file,
            task: Box::new(task.clone()),
            criteria: Box::new((*self.criteria).clone()),
            settings: LoopSettings::default(),
            models: self.models.clone(),
            setup: None,
        });
        log.emit(Event::Draft {
            iteration: ONLY,
            output: text.content.clone(),
            based_on: None,
            strategy: None,
            edits: None,
        });
        log.emit(Event::Phase {
            phase: Phase::Evaluate,
            iteration: ONLY,
        });
        let mut prompts = Prompts::new(task, &self.criteria).with_templates(self.templates.clone());
        let gatherer = self.evidence.as_deref();
        evidence::for_text(gatherer, task, &text.content, &mut prompts, &log);
        let subject = Subject {
            draft: &text.content,
            prior: None,
            attempt: 0,
            progress: Progress {
                iteration: ONLY,
                task,
                earlier: &[],
            },
        };
        let judged = {
            let calls = log.calls(Phase::Evaluate, ONLY);
            tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                judged = self.panel.evaluate(&prompts, &subject, &calls) => Some(judged),
            }
        };
        if let Some(message) = prompts.problem() {
            log.emit(Event::Warning { message });
        }
        let (reason, satisfactory, code, error) = match judged {
            None => (
                Some(ConvergenceReason::Interrupted),
                false,
                ExitCode::Interrupted,
                None,
            ),
            Some(Err(error)) => (
                Some(ConvergenceReason::ModelError),
                false,
                ExitCode::Provider,
                Some(describe(&error)),
            ),
            Some(Ok(evaluation)) => {
                let satisfactory = evaluation.satisfactory;
                let (reason, code) = match evaluation.rank() {
                    None => (
                        Some(ConvergenceReason::JudgeFailed),
                        ExitCode::JudgeUnusable,
                    ),
                    Some(_) if satisfactory => {
                        (Some(ConvergenceReason::QualityMet), ExitCode::Success)
                    }
                    Some(_) => (None, ExitCode::NotMet),
                };
                let problem = evaluation
                    .failure()
                    .or_else(|| evaluation.problem().map(str::to_owned));
                log.emit(Event::Evaluation {
                    iteration: ONLY,
                    evaluation,
                });
                (reason, satisfactory, code, problem)
            }
        };
        log.end(run_id, reason, satisfactory, Some(ONLY), code, error);
        log.into_record()
    }
}

/// The message of a model's failure, with its hint.
pub(super) fn describe(error: &ModelError) -> String {
    match &error.hint {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}
