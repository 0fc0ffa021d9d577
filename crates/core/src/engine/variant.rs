//! Loops that differ from another one in a few points.

use std::sync::{Arc, OnceLock};

use super::driver::Loop;
use super::evaluate_once::{EvaluateOnce, describe};
use crate::evaluate::{
    ComparisonError, EvaluatorError, MemoryCache, Pair, Preference, VerdictCache, prefer,
};
use crate::model::{
    CallObserver, ChatModel, ChatRequest, Message, ModelError, Purpose, Reply, call,
};
use crate::prompt::Prompts;
use crate::types::{Criteria, ModelId, Prices, Strategy, Task};

impl Loop {
    /// The writer.
    pub fn writer(&self) -> &ModelId {
        self.writer.id()
    }

    /// The criteria that drafts are measured by.
    pub fn criteria(&self) -> &Criteria {
        &self.criteria
    }

    /// The revision strategy.
    pub fn strategy(&self) -> Strategy {
        self.settings.strategy()
    }

    /// The model that takes over when the writer stops making progress, if there is one.
    pub fn stronger(&self) -> Option<&ModelId> {
        self.stronger.as_ref().map(|model| model.id())
    }

    /// The same loop, in which the stronger model writes from the start; `None` if there is none.
    pub fn by_stronger(&self) -> Option<Self> {
        let stronger = self.stronger.as_ref()?;
        Some(Self {
            writer: Arc::clone(stronger),
            stronger: None,
            ..self.clone()
        })
    }

    /// The same loop with this revision strategy.
    #[must_use]
    pub fn with_strategy(&self, strategy: Strategy) -> Self {
        let mut other = self.clone();
        other.settings.strategy = Some(strategy);
        other
    }

    /// The same loop, with each of its models wrapped.
    pub(crate) fn behind(&self, behind: impl Fn(Arc<dyn ChatModel>) -> Arc<dyn ChatModel>) -> Self {
        Self {
            writer: behind(Arc::clone(&self.writer)),
            stronger: self.stronger.clone().map(&behind),
            judge: self.judge.clone().behind(&behind),
            panel: OnceLock::new(),
            ..self.clone()
        }
    }

    /// The same loop with these criteria.
    #[must_use]
    pub fn with_criteria(&self, criteria: Criteria) -> Self {
        Self {
            criteria: Arc::new(criteria),
            panel: OnceLock::new(),
            ..self.clone()
        }
    }

    /// The same loop with this token limit.
    #[must_use]
    pub fn with_max_total_tokens(&self, tokens: u64) -> Self {
        let mut other = self.clone();
        other.settings.max_total_tokens = Some(tokens);
        other
    }

    /// The same loop for one trial: with this seed, and with a verdict cache of its own.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Self {
        let mut other = self.clone();
        other.writer_sampling.seed = Some(seed);
        // Servers that were not sent a seed for the judge may reject one.
        if other.judge.sampling.seed.is_some() {
            other.judge.sampling.seed = Some(seed);
        }
        let caches = self.criteria.judge_settings.cache();
        let fresh = || Arc::new(MemoryCache::default()) as Arc<dyn VerdictCache>;
        other.judge.cache = caches.then(fresh);
        other.panel = OnceLock::new();
        other
    }

    /// Asks the writer for a reply to these messages as the loop would, with the seed of its `number`th call, from 0.
    ///
    /// # Errors
    /// If the call fails for good.
    pub async fn ask(
        &self,
        messages: Vec<Message>,
        number: u64,
        observer: &dyn CallObserver,
    ) -> Result<Reply, ModelError> {
        let mut request = ChatRequest::new(Purpose::Write, messages);
        request.sampling = self.writer_sampling.clone();
        request.sampling.seed = request.sampling.seed.map(|seed| seed.wrapping_add(number));
        request.think = self.think;
        call(&*self.writer, request, observer).await
    }

    /// Evaluates single texts as this loop evaluates its drafts.
    ///
    /// # Errors
    /// If the evaluators cannot be prepared.
    pub fn critique(&self) -> Result<EvaluateOnce, EvaluatorError> {
        let (criteria, judge) = (Arc::clone(&self.criteria), self.judge.clone());
        let critique = EvaluateOnce::new(criteria, Some(judge), &self.tools)?;
        Ok(critique
            .with_evidence(self.evidence.clone())
            .with_prices(self.prices.clone())
            .with_templates(self.templates.clone()))
    }

    /// Which of two texts the judge prefers, asked in both orders; `None` if its answer cannot be parsed.
    ///
    /// # Errors
    /// If its model fails for good.
    pub async fn prefer(
        &self,
        task: &Task,
        first: &str,
        second: &str,
    ) -> Result<Option<Preference>, String> {
        let prompts = Prompts::new(task, &self.criteria).with_templates(self.templates.clone());
        let pair = Pair {
            first,
            second,
            criterion: None,
            attempt: 0,
        };
        match prefer(&self.judge, &prompts, &pair, &()).await {
            Ok(comparison) => Ok(Some(comparison.preference)),
            Err(ComparisonError::Unparsed(_)) => Ok(None),
            Err(ComparisonError::Model(error)) => Err(describe(&error)),
        }
    }

    /// The prices of the models.
    pub fn prices(&self) -> &Prices {
        &self.prices
    }

    /// The model that judges.
    pub fn judge(&self) -> &ModelId {
        self.judge.model.id()
    }

    /// Everything that a run depends on except the task, the criteria and the servers, as text that differs if they
    /// do.
    pub fn fingerprint(&self) -> String {
        format!(
            "{} {} {:?} {:?} {:?} {:?}",
            self.writer.id(),
            self.judge.model.id(),
            self.settings,
            self.writer_sampling,
            self.think,
            self.criteria
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model::{ChatModel, ScriptedModel};

    #[test]
    fn a_variant_differs_in_one_thing() {
        let model = |name: &str| -> Arc<dyn ChatModel> {
            let script = "[[reply]]\ntext = 'one'";
            Arc::new(ScriptedModel::parse(Path::new(name), script).unwrap())
        };
        let criteria = "name = 'c'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 9";
        let criteria = Arc::new(crate::criteria::parse(criteria, "c.toml").unwrap());
        let plain = Loop::builder(model("weak.toml"), Arc::clone(&criteria));
        assert!(plain.build().unwrap().by_stronger().is_none());
        let both = Loop::builder(model("weak.toml"), criteria).stronger(model("strong.toml"));
        let both = both.build().unwrap();
        let stronger = both.by_stronger().unwrap();
        assert_ne!(stronger.writer(), both.writer());
        assert_eq!(both.stronger(), Some(stronger.writer()));
        assert_eq!(stronger.stronger(), None);
        assert_eq!(stronger.criteria().name, "c");
        let edits = both.with_strategy(Strategy::TargetedEdit);
        assert_eq!(edits.strategy(), Strategy::TargetedEdit);
        assert_eq!(edits.writer(), both.writer());
    }
}
