use std::sync::Arc;

use super::driver::Loop;
use super::start::Start;
use super::tool::WriterTool;
use crate::evaluate::{EvaluatorError, JudgeModel, Tools};
use crate::evidence::Gatherer;
use crate::model::{ChatModel, Sampling, Think};
use crate::prompt::Templates;
use crate::types::{Criteria, LoopSettings, Prices, Setup};

/// Builds a [`Loop`]. Everything except the writer and the criteria has a default.
pub struct LoopBuilder {
    plan: Loop,
    judge: Option<JudgeModel>,
}

/// A loop cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A setting is outside of its range, or two contradict each other.
    #[error("{message}")]
    Settings {
        /// The setting's key.
        key: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// The evaluators of the criteria cannot be prepared: they need a permission that the tools do not have, or a
    /// configuration that was not read from a file is invalid.
    #[error(transparent)]
    Evaluators(#[from] EvaluatorError),
    /// The text to revise is empty.
    #[error("the text to revise is empty")]
    EmptyText,
    /// A correction names no issue.
    #[error("there is nothing to correct: no issue is named")]
    NothingToCorrect,
}

impl LoopBuilder {
    pub(super) fn new(writer: Arc<dyn ChatModel>, criteria: Arc<Criteria>) -> Self {
        Self {
            plan: Loop::new(writer, criteria),
            judge: None,
        }
    }

    /// What a run starts from. Default: the task alone.
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.plan.start = start;
        self
    }

    /// The writer's sampling parameters. Default: those of its server.
    #[must_use]
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.plan.writer_sampling = sampling;
        self
    }

    /// How much the writer reasons. Default: the model's own.
    #[must_use]
    pub fn think(mut self, think: Think) -> Self {
        self.plan.think = think;
        self
    }

    /// The model that judges, and compares drafts whose scores are too close. Default: the writer.
    #[must_use]
    pub fn judge(mut self, judge: JudgeModel) -> Self {
        self.judge = Some(judge);
        self
    }

    /// The model that takes over when the writer stops making progress. Default: none.
    #[must_use]
    pub fn stronger(mut self, model: impl Into<Option<Arc<dyn ChatModel>>>) -> Self {
        self.plan.stronger = model.into();
        self
    }

    /// The loop settings. Unset ones come from the criteria, then from the defaults of [`LoopSettings`]; a
    /// threshold in them overrides that of the criteria.
    #[must_use]
    pub fn settings(mut self, settings: LoopSettings) -> Self {
        self.plan.settings = settings;
        self
    }

    /// What evaluators may use apart from models. Default: nothing.
    #[must_use]
    pub fn tools(mut self, tools: Tools) -> Self {
        self.plan.tools = tools;
        self
    }

    /// Programs whose output the writer sees before it writes. Default: none.
    #[must_use]
    pub fn writer_tools(mut self, tools: Vec<WriterTool>) -> Self {
        self.plan.writer_tools = tools;
        self
    }

    /// The prices of the models. Default: unknown.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.plan.prices = prices;
        self
    }

    /// Searches for evidence for the task, and again for each revision. Default: no search.
    #[must_use]
    pub fn evidence(mut self, gatherer: impl Into<Option<Arc<Gatherer>>>) -> Self {
        self.plan.evidence = gatherer.into();
        self
    }

    /// The prompt templates. Default: the built-in ones.
    #[must_use]
    pub fn templates(mut self, templates: impl Into<Option<Arc<Templates>>>) -> Self {
        self.plan.templates = templates.into();
        self
    }

    /// What is needed to resume the run, recorded with its start. Default: the run cannot be resumed.
    #[must_use]
    pub fn setup(mut self, setup: impl Into<Option<Setup>>) -> Self {
        self.plan.setup = setup.into();
        self
    }

    /// Whether to prefetch the next revision while a [`Decider`](super::Decider) decides, if the loop alone would
    /// continue. The prefetched reply is used if that revision is needed; otherwise the call is ended, and its
    /// usage counts. Default: false.
    #[must_use]
    pub fn prefetch(mut self, prefetch: bool) -> Self {
        self.plan.prefetch = prefetch;
        self
    }

    /// Builds the loop.
    ///
    /// # Errors
    /// If it could not run: see [`BuildError`].
    pub fn build(self) -> Result<Loop, BuildError> {
        let Self { mut plan, judge } = self;
        match &plan.start {
            Start::Correction { issues, .. } if issues.is_empty() => {
                return Err(BuildError::NothingToCorrect);
            }
            start if start.text().is_some_and(|t| t.content.trim().is_empty()) => {
                return Err(BuildError::EmptyText);
            }
            _ => {}
        }
        plan.settings = plan.settings.or(&plan.criteria.loop_settings);
        plan.settings
            .check()
            .map_err(|(key, message)| BuildError::Settings { key, message })?;
        if let Some(threshold) = plan.settings.threshold {
            Arc::make_mut(&mut plan.criteria).threshold = threshold;
        }
        plan.judge = judge.unwrap_or_else(|| {
            let (sampling, think) = (plan.writer_sampling.clone(), plan.think);
            JudgeModel::new(Arc::clone(&plan.writer), sampling, think)
        });
        plan.panel()?;
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::engine::Text;
    use crate::model::ScriptedModel;

    fn builder(criteria: &str) -> LoopBuilder {
        let script = "[[reply]]\ntext = 'one'";
        let model = ScriptedModel::parse(Path::new("script.toml"), script).unwrap();
        let criteria = crate::criteria::parse(criteria, "criteria.toml").unwrap();
        Loop::builder(Arc::new(model), Arc::new(criteria))
    }

    const PLAIN: &str = "name = 'short'\nthreshold = 0.5\n[loop]\nmax_iterations = 4\n[[criteria]]\nname = 'length'\n\
                         evaluator = 'length'\nunit = 'words'\nmax = 3";

    fn error(builder: LoopBuilder) -> BuildError {
        builder.build().err().expect("it must not be built")
    }

    #[test]
    fn settings_are_laid_over_those_of_the_criteria() {
        let built = builder(PLAIN).build().unwrap();
        assert_eq!(built.settings.max_iterations(), 4);
        assert!((built.criteria.threshold - 0.5).abs() < 1e-9);
        let settings = LoopSettings {
            threshold: Some(0.9),
            max_iterations: Some(2),
            ..LoopSettings::default()
        };
        let built = builder(PLAIN).settings(settings).build().unwrap();
        assert_eq!(built.settings.max_iterations(), 2);
        assert!((built.criteria.threshold - 0.9).abs() < 1e-9);
    }

    #[test]
    fn what_could_not_run_is_not_built() {
        let contradiction = LoopSettings {
            min_iterations: Some(5),
            ..LoopSettings::default()
        };
        let BuildError::Settings { key, message } = error(builder(PLAIN).settings(contradiction))
        else {
            panic!("settings that contradict each other");
        };
        assert_eq!(key, "min_iterations");
        assert!(message.contains("`max_iterations` (4)"), "{message}");

        let text = |content: &str| Text {
            content: content.to_owned(),
            file: None,
        };
        let empty = Start::Text(text(" \n"));
        assert_eq!(error(builder(PLAIN).start(empty)), BuildError::EmptyText);
        let nothing = Start::Correction {
            text: text("one"),
            issues: Vec::new(),
        };
        assert_eq!(
            error(builder(PLAIN).start(nothing)),
            BuildError::NothingToCorrect
        );
        let script = "name = 's'\n[[criteria]]\nname = 'lua'\nevaluator = 'script'\nlanguage = 'lua'\ncode = 'return 1'";
        assert!(matches!(
            error(builder(script)),
            BuildError::Evaluators(EvaluatorError::Unusable(message)) if !message.is_empty()
        ));
    }
}
