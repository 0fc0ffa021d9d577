use std::sync::Arc;

use super::{Finding, JudgeModel, verdict};
use crate::model::{
    CallObserver, ChatModel, ChatRequest, EndReason, Message, ModelError, Purpose, Reply,
    ResponseSchema, Sampling, Think, call,
};
use crate::prompt::Prompts;
use crate::types::{Criteria, Evaluator, Issue, Status};

/// Tokens that a verdict may take: its frame and issues, and this much for each criterion. It bounds a
/// judge that rambles; a reply that reaches it is asked for once more with [`CAP_FACTOR`] times as much,
/// for reasoning models spend many tokens before the first one of the answer.
const BASE_TOKENS: u32 = 1024;
const TOKENS_PER_CRITERION: u32 = 192;
const CAP_FACTOR: u32 = 4;

/// How often a verdict is asked for: once, and once more if the reply cannot be used.
const TRIES: u32 = 2;

/// How much of an unreadable reply is shown to people, in characters.
const SHOWN: usize = 200;

/// The `llm` evaluator: one call judges a draft on all of its criteria.
pub(super) struct Judge {
    model: Arc<dyn ChatModel>,
    sampling: Sampling,
    think: Think,
    names: Vec<String>,
    schema: Arc<ResponseSchema>,
    cap: u32,
}

/// The most tokens that a verdict on these criteria may take, at first.
pub fn verdict_tokens(criteria: &Criteria) -> u32 {
    let judged = criteria.criteria.iter().filter(|c| !c.evaluator.is_hard());
    let count = u32::try_from(judged.count()).unwrap_or(u32::MAX);
    BASE_TOKENS.saturating_add(TOKENS_PER_CRITERION.saturating_mul(count))
}

/// What the judge says, one finding for each of its criteria.
pub(super) struct Judgement {
    pub(super) findings: Vec<Finding>,
    pub(super) issues: Vec<Issue>,
    pub(super) confidence: Option<f64>,
}

impl Judge {
    /// A judge for the `llm` criteria of a set; `None` if it has none.
    pub(super) fn for_criteria(criteria: &Criteria, judge: JudgeModel) -> Option<Self> {
        let names: Vec<String> = criteria
            .criteria
            .iter()
            .filter(|criterion| matches!(criterion.evaluator, Evaluator::Llm(_)))
            .map(|criterion| criterion.name.clone())
            .collect();
        if names.is_empty() {
            return None;
        }
        let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
        let schema = Arc::new(ResponseSchema {
            name: "verdict".to_owned(),
            schema: verdict::schema(&borrowed),
        });
        let cap = verdict_tokens(criteria);
        Some(Self {
            model: judge.model,
            sampling: judge.sampling,
            think: judge.think,
            names,
            schema,
            cap,
        })
    }

    /// Judges a draft: one call; one more if the reply was cut off or cannot be read; then the verdict
    /// is `unparsed`, which is neither a pass nor a zero.
    ///
    /// # Errors
    /// If the model fails for good.
    pub(super) async fn judge(
        &self,
        prompts: &Prompts,
        draft: &str,
        attempt: u32,
        observer: &CallObserver<'_>,
    ) -> Result<Judgement, ModelError> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let mut conversation = prompts.evaluate(draft, &names);
        let mut cap = self.sampling.max_tokens.unwrap_or(self.cap);
        let mut problem = String::new();
        for try_number in 0..TRIES {
            let seed_offset = u64::from(attempt * TRIES + try_number);
            let reply = self
                .ask(conversation.clone(), cap, seed_offset, observer)
                .await?;
            problem = match &reply.end {
                Some(EndReason::Length) => {
                    // What is left of a verdict that was cut off must not be pieced together.
                    cap = cap.saturating_mul(CAP_FACTOR);
                    format!(
                        "it was cut off after {} characters",
                        reply.text.chars().count()
                    )
                }
                Some(EndReason::Repetition) => {
                    format!("it repeats itself: {}", clip(&reply.text))
                }
                Some(EndReason::Refused(why)) => {
                    return Ok(self.unparsed(&format!("the judge refused: {why}")));
                }
                _ => match verdict::read(&reply.text, &names) {
                    Ok(verdict) => return Ok(judgement(verdict)),
                    Err(problem) => {
                        if !reply.text.trim().is_empty() {
                            conversation = Prompts::repair(conversation, &reply.text, &problem);
                        }
                        match clip(&reply.text) {
                            shown if shown.is_empty() => problem,
                            shown => format!("{problem}: {shown}"),
                        }
                    }
                },
            };
        }
        Ok(self.unparsed(&format!("the judge's reply could not be used: {problem}")))
    }

    async fn ask(
        &self,
        messages: Vec<Message>,
        cap: u32,
        seed_offset: u64,
        observer: &CallObserver<'_>,
    ) -> Result<Reply, ModelError> {
        let mut request = ChatRequest::new(Purpose::Judge, messages);
        request.sampling = Sampling {
            max_tokens: Some(cap),
            seed: self
                .sampling
                .seed
                .map(|seed| seed.wrapping_add(seed_offset)),
            ..self.sampling.clone()
        };
        request.think = self.think;
        request.schema = Some(self.schema.clone());
        call(&*self.model, request, observer).await
    }

    fn unparsed(&self, problem: &str) -> Judgement {
        let finding = Finding::none(Status::Unparsed, problem);
        Judgement {
            findings: vec![finding; self.names.len()],
            issues: Vec::new(),
            confidence: None,
        }
    }
}

fn judgement(verdict: verdict::Verdict) -> Judgement {
    let findings = verdict
        .scores
        .into_iter()
        .map(|(score, evidence)| Finding::graded(score, evidence))
        .collect();
    Judgement {
        findings,
        issues: verdict.issues,
        confidence: verdict.confidence,
    }
}

fn clip(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
