use std::sync::Arc;

use super::driver::Loop;
use super::start::Start;
use super::tool::WriterTool;
use crate::evaluate::{JudgeModel, Tools};
use crate::evidence::Gatherer;
use crate::model::{ChatModel, Sampling, Think};
use crate::prompt::Templates;
use crate::types::{Criteria, LoopSettings, Prices, Setup};

/// What a [`Loop`] is made of. Everything has a default but the model that writes and the criteria.
pub struct LoopBuilder {
    plan: Loop,
    judge: Option<JudgeModel>,
}

/// Why a loop cannot run.
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
    /// The evaluators of the criteria cannot be prepared: code is to run that the tools do not allow, or a
    /// configuration that was not read from a file is wrong.
    #[error("{0}")]
    Evaluators(String),
    /// The text that is to be revised is empty.
    #[error("the text to revise is empty")]
    EmptyText,
    /// A text is to be corrected, and nothing is said to be wrong with it.
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

    /// What the run begins with. Default: the task alone.
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.plan.start = start;
        self
    }

    /// How the writer chooses tokens. Default: as its server does.
    #[must_use]
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.plan.writer_sampling = sampling;
        self
    }

    /// How much the writer reasons. Default: as the model does by itself.
    #[must_use]
    pub fn think(mut self, think: Think) -> Self {
        self.plan.think = think;
        self
    }

    /// Who judges, and compares drafts whose scores are too close to say. Default: the model that writes.
    #[must_use]
    pub fn judge(mut self, judge: JudgeModel) -> Self {
        self.judge = Some(judge);
        self
    }

    /// Who writes where the writer makes no progress any more. Default: nobody.
    #[must_use]
    pub fn stronger(mut self, model: impl Into<Option<Arc<dyn ChatModel>>>) -> Self {
        self.plan.stronger = model.into();
        self
    }

    /// How the loop behaves. What they leave open is as the criteria say, else as [`LoopSettings`] do; a
    /// threshold in them goes before that of the criteria.
    #[must_use]
    pub fn settings(mut self, settings: LoopSettings) -> Self {
        self.plan.settings = settings;
        self
    }

    /// What the criteria may use beside models. Default: nothing.
    #[must_use]
    pub fn tools(mut self, tools: Tools) -> Self {
        self.plan.tools = tools;
        self
    }

    /// Programs whose output the writer is shown before it writes. Default: none.
    #[must_use]
    pub fn writer_tools(mut self, tools: Vec<WriterTool>) -> Self {
        self.plan.writer_tools = tools;
        self
    }

    /// What the models cost. Default: nothing is known of it.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.plan.prices = prices;
        self
    }

    /// Who finds evidence for the task, and for each revision anew. Default: nobody.
    #[must_use]
    pub fn evidence(mut self, gatherer: impl Into<Option<Arc<Gatherer>>>) -> Self {
        self.plan.evidence = gatherer.into();
        self
    }

    /// What models are told. Default: the built-in templates.
    #[must_use]
    pub fn templates(mut self, templates: impl Into<Option<Arc<Templates>>>) -> Self {
        self.plan.templates = templates.into();
        self
    }

    /// What it takes to go on with a run later: it is recorded with the start. Default: nobody will.
    #[must_use]
    pub fn setup(mut self, setup: impl Into<Option<Setup>>) -> Self {
        self.plan.setup = setup.into();
        self
    }

    /// Whether the writer is asked for the next revision while a [`Decider`](super::Decider) makes up its mind, wherever
    /// the loop alone would go on. The answer is taken if that revision is wanted; otherwise the call is ended, and what
    /// it has used counts all the same. Not by default.
    #[must_use]
    pub fn prefetch(mut self, prefetch: bool) -> Self {
        self.plan.prefetch = prefetch;
        self
    }

    /// The loop, ready to run.
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
        plan.panel().map_err(BuildError::Evaluators)?;
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
        assert!(message.contains("`max_iterations` is 4"), "{message}");

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
            BuildError::Evaluators(message) if !message.is_empty()
        ));
    }
}
