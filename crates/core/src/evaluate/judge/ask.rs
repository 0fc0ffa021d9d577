use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use super::cache::{self, VerdictCache};
use super::expected::expected;
use crate::model::openai::StructuredOutput;
use crate::model::{
    CallObserver, ChatModel, ChatRequest, EndReason, Message, ModelError, Purpose, Reply,
    ResponseSchema, Sampling, Think, call,
};
use crate::prompt::Prompts;
use crate::text::clip;
use crate::types::{CHARACTERS_PER_TOKEN, MAX_SAMPLES};

/// The factor for the token limit when a reply that reached it is requested again. Reasoning models
/// spend many tokens before the answer begins.
const CAP_FACTOR: u32 = 4;

/// The number of attempts per answer: the first, and one retry if the reply is unusable.
const TRIES: u32 = 2;

/// The length of the excerpt of an unparseable reply in messages, in characters.
const SHOWN: usize = 200;

/// The minimum temperature of a judge that is sampled several times. At temperature 0 all samples
/// would be equal and their spread 0.
pub(super) const SAMPLING_TEMPERATURE: f64 = 0.7;

/// The number of tokens that a reasoning judge may spend before its verdict. Grows if a reply shows
/// that more are needed.
const REASONING_ROOM: u32 = 4096;

/// A model that answers in JSON, with its request settings.
#[derive(Clone)]
pub(super) struct JudgeClient {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) sampling: Sampling,
    pub(super) think: Think,
    /// See [`REASONING_ROOM`]. 0 until a reply contains reasoning.
    pub(super) reasoning_room: Arc<AtomicU32>,
    /// Stores its replies.
    pub(super) cache: Option<Arc<dyn VerdictCache>>,
    /// Whether the server has let through a reply that violates its schema.
    pub(super) ignores_schemas: Arc<AtomicBool>,
}

/// A request to the judge.
pub(super) struct JudgeRequest {
    pub(super) messages: Vec<Message>,
    pub(super) schema: Arc<ResponseSchema>,
    /// Whether the server enforces the schema, so that the messages need not describe the form.
    pub(super) enforced: bool,
    /// The initial token limit of a reply.
    pub(super) cap: u32,
    /// The number of alternatives per token to request, with their probabilities.
    pub(super) alternatives: Option<u8>,
    /// The names of the criteria, in the order of their questions.
    pub(super) names: Vec<String>,
    /// The index of this sample of the same question, from 0.
    pub(super) sample: u32,
    /// Whether several samples are taken.
    pub(super) sampled: bool,
}

/// A stored reply of a judge. Keeps the original text, so that later versions of the parser apply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct StoredReply {
    pub(super) text: String,
    /// The expected score of each criterion, where the token probabilities determine it.
    #[serde(default)]
    pub(super) expected: Vec<Option<f64>>,
    /// Whether the server returned probabilities.
    #[serde(default)]
    pub(super) has_probabilities: bool,
}

impl StoredReply {
    fn new(reply: &Reply, names: &[String]) -> Self {
        let only = names.len() == 1;
        Self {
            expected: names
                .iter()
                .map(|name| expected(&reply.logprobs, name, only))
                .collect(),
            has_probabilities: !reply.logprobs.is_empty(),
            // Some servers return the whole reply as reasoning; the verdict is then in there.
            text: if reply.text.trim().is_empty() {
                reply.reasoning.clone()
            } else {
                reply.text.clone()
            },
        }
    }
}

impl JudgeClient {
    /// Returns whether the server enforces a JSON Schema, as far as known: some accept one and
    /// ignore it.
    pub(super) fn enforces(&self) -> bool {
        self.model.structured_output() == Some(StructuredOutput::JsonSchema)
            && !self.ignores_schemas.load(Relaxed)
    }

    /// Returns the stored reply if there is one and it can be parsed.
    pub(super) fn recall<T>(
        &self,
        inquiry: &JudgeRequest,
        read: impl Fn(&StoredReply) -> Result<T, String>,
        observer: &dyn CallObserver,
    ) -> Option<T> {
        let cache = self.cache.as_ref()?;
        let request = self.request(inquiry, inquiry.messages.clone(), 0);
        if observer.is_recorded(self.model.id(), &request) {
            // The reply was given in this run, where it counts as a reply, not as a cached one.
            return None;
        }
        let entries = cache.get(&self.key(inquiry, &request))?;
        read(&serde_json::from_str(&entries).ok()?).ok()
    }

    /// Sends the request, and retries once if the reply is truncated or unparseable. The inner
    /// error is the reason why there is no answer.
    ///
    /// # Errors
    /// If the model fails permanently.
    pub(super) async fn ask<T>(
        &self,
        inquiry: &JudgeRequest,
        attempt: u32,
        read: impl Fn(&StoredReply) -> Result<T, String>,
        observer: &dyn CallObserver,
    ) -> Result<Result<T, String>, ModelError> {
        let mut conversation = inquiry.messages.clone();
        let mut cap = self.sampling.max_tokens.unwrap_or(inquiry.cap);
        let mut problem = String::new();
        for try_number in 0..TRIES {
            let offset = attempt.saturating_mul(MAX_SAMPLES * TRIES) + try_number;
            let mut request = self.request(inquiry, conversation.clone(), offset);
            let limit = cap.saturating_add(self.reasoning_room());
            request.sampling.max_tokens = Some(limit);
            if try_number > 0 && conversation == inquiry.messages {
                // The prompt is the same, so at temperature 0 the reply would be the same, too.
                let temperature = request.sampling.temperature;
                request.sampling.temperature = temperature.map(|it| it.max(SAMPLING_TEMPERATURE));
            }
            let reply = call(&*self.model, request, observer).await?;
            self.learn_reasoning(&reply);
            problem = match &reply.end {
                Some(EndReason::Length) => {
                    // A truncated verdict must not be parsed from its pieces.
                    cap = cap.saturating_mul(CAP_FACTOR);
                    let characters = reply.text.chars().count();
                    let written = reply.usage.completion.unwrap_or(u64::MAX);
                    if written < u64::from(limit) {
                        format!(
                            "it was cut off after {characters} characters because the context window was full; \
                             `--num-ctx` sets a larger one on Ollama"
                        )
                    } else {
                        format!("it was cut off after {characters} characters, at {limit} tokens")
                    }
                }
                Some(EndReason::Repetition) => {
                    format!("it repeats itself: {}", clip(reply.text.trim(), SHOWN))
                }
                Some(EndReason::Refused(why)) => {
                    return Ok(Err(format!("the judge refused: {why}")));
                }
                _ => {
                    let stored = StoredReply::new(&reply, &inquiry.names);
                    match read(&stored) {
                        Ok(answer) => {
                            self.keep(inquiry, &stored);
                            return Ok(Ok(answer));
                        }
                        Err(problem) => {
                            self.ignores_schemas.store(true, Relaxed);
                            if !reply.text.trim().is_empty() {
                                let form = inquiry.schema.text().get();
                                let form = inquiry.enforced.then_some(form);
                                conversation =
                                    Prompts::repair(conversation, &reply.text, &problem, form);
                            }
                            match clip(reply.text.trim(), SHOWN) {
                                shown if shown.is_empty() => problem,
                                shown => format!("{problem}: {shown}"),
                            }
                        }
                    }
                }
            };
        }
        Ok(Err(format!(
            "the judge's reply could not be used: {problem}"
        )))
    }

    /// Returns the number of tokens that a reply may use in addition to its verdict.
    fn reasoning_room(&self) -> u32 {
        match self.reasoning_room.load(Relaxed) {
            0 if self.think.is_requested() => REASONING_ROOM,
            room => room,
        }
    }

    /// Allows later replies twice the reasoning of this one.
    fn learn_reasoning(&self, reply: &Reply) {
        let tokens = reply.reasoning.len() / CHARACTERS_PER_TOKEN;
        if tokens > 0 {
            let room = u32::try_from(tokens.saturating_mul(2)).unwrap_or(u32::MAX);
            self.reasoning_room
                .fetch_max(room.max(REASONING_ROOM), Relaxed);
        }
    }

    fn keep(&self, inquiry: &JudgeRequest, stored: &StoredReply) {
        if let Some(cache) = &self.cache
            && let Ok(text) = serde_json::to_string(stored)
        {
            let request = self.request(inquiry, inquiry.messages.clone(), 0);
            cache.put(&self.key(inquiry, &request), &text);
        }
    }

    /// Returns the cache key for an answer to the first request. On servers without seeds the
    /// requests of several samples are equal although their answers differ, so the key includes the
    /// sample.
    fn key(&self, inquiry: &JudgeRequest, first: &ChatRequest) -> String {
        let key = cache::key(&*self.model, first);
        match inquiry.sample {
            0 => key,
            sample => format!("{key}-{sample}"),
        }
    }

    fn request(&self, inquiry: &JudgeRequest, messages: Vec<Message>, offset: u32) -> ChatRequest {
        let mut request = ChatRequest::new(Purpose::Judge, messages);
        let offset = u64::from(inquiry.sample * TRIES) + u64::from(offset);
        request.sampling = Sampling {
            seed: self.sampling.seed.map(|seed| seed.wrapping_add(offset)),
            temperature: match self.sampling.temperature {
                Some(temperature) if inquiry.sampled && temperature <= 0.0 => {
                    Some(SAMPLING_TEMPERATURE)
                }
                temperature => temperature,
            },
            ..self.sampling.clone()
        };
        request.think = self.think;
        request.schema = Some(Arc::clone(&inquiry.schema));
        request.top_logprobs = inquiry.alternatives;
        request
    }
}
