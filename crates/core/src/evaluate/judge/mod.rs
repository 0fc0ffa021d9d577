//! The `llm` evaluator: a model that judges.
//!
//! A call asks about some criteria at once (`question`), a bench makes all calls of one model (`bench`), their
//! replies are read (`reply`, `verdict`), what they quote is looked up in the draft (`evidence`), and several
//! verdicts come to one (`samples`). What was said before is remembered (`cache`). Whether the judge is any good
//! can be tried (`probe`).

mod ask;
mod bench;
mod cache;
mod evidence;
mod expected;
pub(super) mod pairwise;
mod probe;
mod question;
mod reply;
mod samples;
mod verdict;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use futures_util::future::try_join_all;
use tokio::sync::OnceCell;

use self::ask::Asker;
use self::bench::{Bench, Call, Told};
pub use self::cache::{MemoryCache, VerdictCache};
use self::probe::Probe;
use self::question::Question;
use super::Finding;
use crate::model::{CallEvent, CallObserver, ChatEvent, ChatModel, ModelError, Sampling, Think};
use crate::prompt::Prompts;
use crate::types::{Criteria, Criterion, Evaluator, Issue, JudgeMode, ModelId};

/// The model that judges, and how it is asked. The rest is said by the criteria
/// ([`Criteria::judge_settings`]).
#[derive(Clone)]
pub struct JudgeModel {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// How it chooses tokens.
    pub sampling: Sampling,
    /// How much it reasons.
    pub think: Think,
    /// The models that criteria name for themselves (`model = "..."`), by what they write there.
    pub others: BTreeMap<String, OtherModel>,
    /// Keeps verdicts; `None` to ask each time.
    pub cache: Option<Arc<dyn VerdictCache>>,
    /// Tokens that a reply is allowed for reasoning, next to its verdict, once a model has been seen to reason.
    pub reasoning_room: Arc<AtomicU32>,
}

/// A model that judges some criteria only.
#[derive(Clone)]
pub struct OtherModel {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// How it chooses tokens.
    pub sampling: Sampling,
    /// How much it reasons.
    pub think: Think,
}

impl JudgeModel {
    /// A judge of all criteria, which keeps nothing.
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

    /// The same judge, each of whose models stands behind something.
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

    /// The model that judges a criterion with this configuration.
    fn asker(&self, other: Option<&OtherModel>) -> Asker {
        let own = (&self.model, &self.sampling, self.think);
        let (model, sampling, think) =
            other.map_or(own, |other| (&other.model, &other.sampling, other.think));
        Asker {
            model: Arc::clone(model),
            sampling: sampling.clone(),
            think,
            reasoning_room: Arc::clone(&self.reasoning_room),
            cache: self.cache.clone(),
            ignores_schemas: Arc::default(),
        }
    }
}

/// The most tokens that a verdict on these criteria may take, at first.
pub fn verdict_tokens(criteria: &Criteria) -> u32 {
    let scored = |criterion: &&Criterion| matches!(criterion.evaluator, Evaluator::Llm(_));
    // A choice between two texts takes as much as a verdict on one criterion.
    bench::cap(criteria.criteria.iter().filter(scored).count().max(1))
}

/// A call that a judge is asked with, each time a draft is judged.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictCall<'c> {
    /// The model that the criteria name for themselves; `None` for the judge of the run.
    pub model: Option<&'c str>,
    /// What it is asked about.
    pub criteria: Vec<&'c Criterion>,
    /// How often it is made. More often where probabilities are asked for and do not come.
    pub samples: u32,
}

/// The calls for verdicts on the `llm` criteria of a set, for one draft. Comparisons are not among them.
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

/// The criteria of one model, as its calls are about them; each with its place among those of the judge.
struct Group<'a> {
    /// As the criteria name it; `None` for the judge of the run.
    model: Option<&'a str>,
    calls: Vec<Vec<(usize, &'a Criterion)>>,
}

/// Which criteria are judged by which model in which call.
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
        // A prompt of its own is about nothing else.
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

/// What judges the `llm` criteria of a set.
pub(super) struct Judge {
    id: ModelId,
    benches: Arc<[Bench]>,
    /// In the order of the criteria, each with the criterion's weight.
    questions: Arc<[(Question, f64)]>,
    /// What came of the probe, once it was made in this run; `None` if none is wanted.
    probe: Option<OnceCell<Probe>>,
}

/// What a draft is judged with.
pub(super) struct Case<'a> {
    pub(super) prompts: &'a Prompts,
    pub(super) draft: &'a str,
    /// How often it was judged before without a readable verdict.
    pub(super) attempt: u32,
    pub(super) observer: &'a CallObserver<'a>,
}

/// What the judge says.
pub(super) struct Judgement {
    /// One for each of its criteria, in their order.
    pub(super) findings: Vec<Finding>,
    pub(super) issues: Vec<Issue>,
    /// The lowest of its calls.
    pub(super) confidence: Option<f64>,
}

impl Judge {
    /// A judge for the `llm` criteria of a set; `None` if it has none.
    ///
    /// # Errors
    /// If a criterion names a model that is not there.
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
        let benches = groups
            .into_iter()
            .map(|group| {
                let other = group
                    .model
                    .map(|name| {
                        judge.others.get(name).ok_or_else(|| {
                            format!("a criterion is to be judged by the model `{name}`, which is not there")
                        })
                    })
                    .transpose()?;
                Ok(Bench::new(
                    judge.asker(other),
                    settings.samples(),
                    settings.score(),
                    group.calls.iter().map(|call| Call::new(call)).collect(),
                ))
            })
            .collect::<Result<_, String>>()?;
        Ok(Some(Self {
            id: judge.model.id().clone(),
            benches,
            questions,
            probe: settings.probe().then(OnceCell::new),
        }))
    }

    /// The same judge for another run, which has not been tried in it.
    pub(super) fn untried(&self) -> Self {
        Self {
            id: self.id.clone(),
            benches: Arc::clone(&self.benches),
            questions: Arc::clone(&self.questions),
            probe: self.probe.as_ref().map(|_| OnceCell::new()),
        }
    }

    /// Judges a draft; once more if the judgement is `doubtful`. A verdict that cannot be read is `unparsed`, which is
    /// neither a pass nor a zero.
    ///
    /// # Errors
    /// If a model fails for good.
    pub(super) async fn judge(
        &self,
        case: &Case<'_>,
        doubtful: impl Fn(&Judgement) -> bool,
    ) -> Result<Judgement, ModelError> {
        let mut told = try_join_all(self.benches.iter().map(|bench| bench.judge(case))).await?;
        let judgement = self.combine(&told);
        if !doubtful(&judgement) {
            return Ok(judgement);
        }
        let again = try_join_all(self.benches.iter().map(|bench| bench.again(case))).await?;
        for ((_, told), again) in told.iter_mut().flatten().zip(again.into_iter().flatten()) {
            told.push(again);
        }
        Ok(self.combine(&told))
    }

    /// One judgement of all that was said.
    fn combine(&self, told: &[Vec<(&Call, Vec<Told>)>]) -> Judgement {
        let mut findings: Vec<Option<Finding>> = vec![None; self.questions.len()];
        let mut issues = Vec::new();
        let mut confidence: Option<f64> = None;
        for (call, told) in told.iter().flatten() {
            let combined = samples::combine(call.questions.len(), told);
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
            // Every question is in one call.
            findings: findings.into_iter().flatten().collect(),
            issues,
            confidence,
        }
    }

    /// What the weights of its criteria are multiplied with: 1, or less for a judge that cannot tell good from
    /// bad, which is also said to the observer. The first time, it may be tried for that.
    ///
    /// # Errors
    /// If a model fails for good.
    pub(super) async fn weight(
        &self,
        criteria: &Criteria,
        prompts: &Prompts,
        observer: &CallObserver<'_>,
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
            "its criteria count for no more than a quarter of the score"
        } else {
            "let another one judge with `--judge-model`"
        };
        let message = format!("do not trust the judge {}: {problem}; {so}", self.id);
        observer(CallEvent::Chat(&ChatEvent::Notice(message)));
        Ok(weight)
    }

    /// That a good text is not good enough for it, in words, if it was tried and the probe says so.
    pub(super) fn harshness(&self) -> Option<String> {
        self.probe.as_ref()?.get()?.harshness()
    }

    fn questions(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().map(|(question, _)| question)
    }

    /// The weighted mean of a value of each criterion.
    fn mean(&self, values: &[f64]) -> Option<f64> {
        let weights = self.questions.iter().map(|(_, weight)| weight);
        let sum: f64 = weights.clone().zip(values).map(|(w, v)| w * v).sum();
        let weights: f64 = weights.sum();
        (weights > 0.0).then(|| sum / weights)
    }
}

#[cfg(test)]
mod tests;
