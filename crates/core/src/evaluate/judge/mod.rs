//! The `llm` evaluator: a model as judge.
//!
//! A call asks about some criteria at once (`question`). A `JudgeRunner` makes all calls of one
//! model (`runner`). Replies are parsed (`reply`, `verdict`), quotes are verified against the draft
//! (`evidence`), and several verdicts are combined into one (`samples`). Replies are cached
//! (`cache`). `probe` tests whether the judge is reliable.

mod ask;
mod cache;
mod copied;
mod expected;
pub(super) mod pairwise;
mod parse_verdict;
mod probe;
mod question;
mod quotes;
mod reply;
mod runner;
mod samples;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use futures_util::future::try_join_all;
use tokio::sync::OnceCell;

use self::ask::JudgeClient;
pub use self::cache::{MemoryCache, VerdictCache};
use self::probe::Probe;
use self::question::Question;
use self::runner::{Call, JudgeRunner, SampleResult};
use super::Finding;
use crate::model::{CallEvent, CallObserver, ChatEvent, ChatModel, ModelError, Sampling, Think};
use crate::prompt::Prompts;
use crate::types::{Criteria, Criterion, Evaluator, Issue, JudgeMode, ModelId};

/// The judge's model and its request settings. The criteria hold the other settings
/// ([`Criteria::judge_settings`]).
#[derive(Clone)]
pub struct JudgeModel {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// Its sampling settings.
    pub sampling: Sampling,
    /// How much it reasons.
    pub think: Think,
    /// The models that criteria name (`model = "..."`), by that name.
    pub others: BTreeMap<String, OtherModel>,
    /// Stores verdicts. `None` asks the model every time.
    pub cache: Option<Arc<dyn VerdictCache>>,
    /// The number of reasoning tokens that a reply may use in addition to its verdict, once the
    /// model has been seen to reason.
    pub reasoning_room: Arc<AtomicU32>,
}

/// A model that judges some criteria only.
#[derive(Clone)]
pub struct OtherModel {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// Its sampling settings.
    pub sampling: Sampling,
    /// How much it reasons.
    pub think: Think,
}

impl JudgeModel {
    /// Returns a judge of all criteria, without a cache.
    pub fn new(model: Arc<dyn ChatModel>, sampling: Sampling, think: Think) -> Self {
        Self {
            model,
            sampling,
            think,
            others: BTreeMap::new(),
            cache: None,
            reasoning_room: Arc::default(),
        }
    }

    /// Returns the same judge with each of its models wrapped by `behind`.
    #[must_use]
    pub fn behind(self, mut behind: impl FnMut(Arc<dyn ChatModel>) -> Arc<dyn ChatModel>) -> Self {
        let others = self.others.into_iter().map(|(name, other)| {
            let model = behind(other.model);
            (name, OtherModel { model, ..other })
        });
        Self {
            others: others.collect(),
            model: behind(self.model),
            ..self
        }
    }

    /// Returns the model that judges a criterion with this configuration.
    fn asker(&self, other: Option<&OtherModel>) -> JudgeClient {
        let own = (&self.model, &self.sampling, self.think);
        let (model, sampling, think) =
            other.map_or(own, |other| (&other.model, &other.sampling, other.think));
        JudgeClient {
            model: Arc::clone(model),
            sampling: sampling.clone(),
            think,
            reasoning_room: Arc::clone(&self.reasoning_room),
            cache: self.cache.clone(),
            ignores_schemas: Arc::default(),
        }
    }
}

/// Returns the initial token limit for a verdict on these criteria.
pub fn verdict_tokens(criteria: &Criteria) -> u32 {
    let scored = |criterion: &&Criterion| matches!(criterion.evaluator, Evaluator::Llm(_));
    // A choice between two texts takes as many tokens as a verdict on one criterion.
    runner::cap(criteria.criteria.iter().filter(scored).count().max(1))
}

/// A call to the judge that is made for each draft.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictCall<'c> {
    /// The model that the criteria name, or `None` for the judge of the run.
    pub model: Option<&'c str>,
    /// The criteria that the call is about.
    pub criteria: Vec<&'c Criterion>,
    /// The number of samples. More are taken if probabilities are requested but not returned.
    pub samples: u32,
}

/// Returns the calls for verdicts on the `llm` criteria of a set, for one draft. Excludes
/// comparisons.
pub fn verdict_calls(criteria: &Criteria) -> Vec<VerdictCall<'_>> {
    let settings = &criteria.judge_settings;
    let scored = |criterion: &&Criterion| matches!(criterion.evaluator, Evaluator::Llm(_));
    let judged: Vec<&Criterion> = criteria.criteria.iter().filter(scored).collect();
    groups(judged.iter().copied(), settings.mode())
        .into_iter()
        .flat_map(|group| group.calls.into_iter().map(move |call| (group.model, call)))
        .map(|(model, call)| VerdictCall {
            model,
            criteria: call.into_iter().map(|(_, criterion)| criterion).collect(),
            samples: settings.samples(),
        })
        .collect()
}

/// The criteria of one model, grouped by call, each with its index among the judge's criteria.
struct Group<'a> {
    /// The model that the criteria name, or `None` for the judge of the run.
    model: Option<&'a str>,
    calls: Vec<Vec<(usize, &'a Criterion)>>,
}

/// Groups the criteria by model and call.
fn groups<'a>(judged: impl Iterator<Item = &'a Criterion>, mode: JudgeMode) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let has_own_prompt = |criterion: &Criterion| matches!(&criterion.evaluator, Evaluator::Llm(config) if config.prompt.is_some());
    for (place, criterion) in judged.enumerate() {
        let model = match &criterion.evaluator {
            Evaluator::Llm(config) => config.model.as_deref(),
            _ => None,
        };
        let at = groups
            .iter()
            .position(|group| group.model == model)
            .unwrap_or_else(|| {
                let calls = Vec::new();
                groups.push(Group { model, calls });
                groups.len() - 1
            });
        let calls = &mut groups[at].calls;
        // A custom prompt covers only its own criterion.
        let alone = mode == JudgeMode::Separate || has_own_prompt(criterion);
        let joint = calls
            .iter_mut()
            .find(|call| !alone && !call.iter().any(|(_, other)| has_own_prompt(other)));
        match joint {
            Some(call) => call.push((place, criterion)),
            None => calls.push(vec![(place, criterion)]),
        }
    }
    groups
}

/// The judge for the `llm` criteria of a set.
pub(super) struct Judge {
    id: ModelId,
    runners: Arc<[JudgeRunner]>,
    /// The questions in the order of the criteria, each with the criterion's weight.
    questions: Arc<[(Question, f64)]>,
    /// The result of the probe once it has run, or `None` if it is disabled.
    probe: Option<OnceCell<Probe>>,
}

/// The input of a judgement.
pub(super) struct JudgeCase<'a> {
    pub(super) prompts: &'a Prompts,
    pub(super) draft: &'a str,
    /// How often the draft was judged before without a parseable verdict.
    pub(super) attempt: u32,
    pub(super) observer: &'a dyn CallObserver,
}

/// The judge's result for a draft.
pub(super) struct Judgement {
    /// One finding per criterion, in order.
    pub(super) findings: Vec<Finding>,
    pub(super) issues: Vec<Issue>,
    /// The lowest confidence of its calls.
    pub(super) confidence: Option<f64>,
}

impl Judge {
    /// Returns a judge for the `llm` criteria of a set, or `None` if it has none.
    ///
    /// # Errors
    /// If a criterion names an unknown model.
    pub(super) fn for_criteria(
        criteria: &Criteria,
        judge: &JudgeModel,
    ) -> Result<Option<Self>, String> {
        let settings = &criteria.judge_settings;
        let judged: Vec<(&Criterion, Question)> = criteria
            .criteria
            .iter()
            .filter_map(|criterion| Some((criterion, Question::of(criterion)?)))
            .collect();
        let groups = groups(judged.iter().map(|(c, _)| *c), settings.mode());
        let questions: Arc<[(Question, f64)]> = judged
            .into_iter()
            .map(|(criterion, question)| (question, criterion.weight))
            .collect();
        if questions.is_empty() {
            return Ok(None);
        }
        let runners = groups
            .into_iter()
            .map(|group| {
                let other = group
                    .model
                    .map(|name| {
                        judge.others.get(name).ok_or_else(|| {
                            format!("a criterion names the model `{name}`, which is not configured")
                        })
                    })
                    .transpose()?;
                Ok(JudgeRunner::new(
                    judge.asker(other),
                    settings.samples(),
                    settings.score(),
                    group.calls.iter().map(|call| Call::new(call)).collect(),
                ))
            })
            .collect::<Result<_, String>>()?;
        Ok(Some(Self {
            id: judge.model.id().clone(),
            runners,
            questions,
            probe: settings.probe().then(OnceCell::new),
        }))
    }

    /// Returns the same judge for another run, in which it has not been probed.
    pub(super) fn without_probe(&self) -> Self {
        Self {
            id: self.id.clone(),
            runners: Arc::clone(&self.runners),
            questions: Arc::clone(&self.questions),
            probe: self.probe.as_ref().map(|_| OnceCell::new()),
        }
    }

    /// Judges a draft, and once more if the judgement is `doubtful`. An unparseable verdict has the
    /// status `unparsed`, which counts as neither pass nor fail.
    ///
    /// # Errors
    /// If a model fails permanently.
    pub(super) async fn judge(
        &self,
        case: &JudgeCase<'_>,
        doubtful: impl Fn(&Judgement) -> bool,
    ) -> Result<Judgement, ModelError> {
        let mut samples_taken =
            try_join_all(self.runners.iter().map(|bench| bench.judge(case))).await?;
        let judgement = self.combine(&samples_taken);
        if !doubtful(&judgement) {
            return Ok(judgement);
        }
        let again = try_join_all(self.runners.iter().map(|bench| bench.again(case))).await?;
        for ((_, samples_taken), again) in samples_taken
            .iter_mut()
            .flatten()
            .zip(again.into_iter().flatten())
        {
            samples_taken.push(again);
        }
        Ok(self.combine(&samples_taken))
    }

    /// Combines all samples into one judgement.
    fn combine(&self, samples_taken: &[Vec<(&Call, Vec<SampleResult>)>]) -> Judgement {
        let mut findings: Vec<Option<Finding>> = vec![None; self.questions.len()];
        let mut issues = Vec::new();
        let mut confidence: Option<f64> = None;
        for (call, samples_taken) in samples_taken.iter().flatten() {
            let combined = samples::combine(call.questions.len(), samples_taken);
            for (place, finding) in call.places.iter().zip(combined.findings) {
                findings[*place] = Some(finding);
            }
            issues.extend(combined.issues);
            confidence = match (confidence, combined.confidence) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        Judgement {
            // Every question is in exactly one call.
            findings: findings.into_iter().flatten().collect(),
            issues,
            confidence,
        }
    }

    /// Returns the factor for the weights of the judge's criteria: 1, or less for a judge that
    /// cannot tell good from bad, which the observer also receives as a warning. Runs the probe on
    /// first use, if enabled.
    ///
    /// # Errors
    /// If a model fails permanently.
    pub(super) async fn weight(
        &self,
        criteria: &Criteria,
        prompts: &Prompts,
        observer: &dyn CallObserver,
    ) -> Result<f64, ModelError> {
        let Some(cell) = &self.probe else {
            return Ok(1.0);
        };
        let probe = cell
            .get_or_try_init(|| Probe::run(self, criteria, prompts, observer))
            .await?;
        let Some(problem) = probe.problem() else {
            return Ok(1.0);
        };
        let weight = probe::capped(criteria);
        let so = if weight < 1.0 {
            "its criteria count for at most a quarter of the score"
        } else {
            "use another judge with `--judge-model`"
        };
        let message = format!("do not trust the judge {}: {problem}; {so}", self.id);
        observer.on_event(CallEvent::Chat(&ChatEvent::Notice(message)));
        Ok(weight)
    }

    /// Returns a message if the probe found that the judge rejects a good text.
    pub(super) fn over_strict(&self) -> Option<String> {
        self.probe.as_ref()?.get()?.over_strict()
    }

    fn questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().map(|(question, _)| question)
    }

    /// Returns the weighted mean of a value per criterion.
    fn mean(&self, values: &[f64]) -> Option<f64> {
        let weights = self.questions.iter().map(|(_, weight)| weight);
        let sum: f64 = weights.clone().zip(values).map(|(w, v)| w * v).sum();
        let weights: f64 = weights.sum();
        (weights > 0.0).then(|| sum / weights)
    }
}

#[cfg(test)]
mod tests;
