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

/// A reply that reaches its limit is asked for once more with so many times as much, for reasoning models spend
/// many tokens before the first one of the answer.
const CAP_FACTOR: u32 = 4;

/// How often an answer is asked for: once, and once more if the reply cannot be used.
const TRIES: u32 = 2;

/// How much of an unreadable reply is shown to people, in characters.
const SHOWN: usize = 200;

/// The temperature of a judge that is asked several times, where it would always take the likeliest token: the
/// answers would all be the same, and their spread nothing.
pub(super) const SAMPLING_TEMPERATURE: f64 = 0.7;

/// Tokens that a judge that reasons may spend on it, next to its verdict; more where a reply has shown that it needs
/// more.
const REASONING_ROOM: u32 = 4096;

/// A model that answers in JSON, and how it is asked.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) sampling: Sampling,
    pub(super) think: Think,
    /// See [`REASONING_ROOM`]; 0 as long as no reply came with reasoning.
    pub(super) reasoning_room: Arc<AtomicU32>,
    /// Keeps what it said.
    pub(super) cache: Option<Arc<dyn VerdictCache>>,
    /// Whether an answer came that its server should not have let through.
    pub(super) ignores_schemas: Arc<AtomicBool>,
}

/// A question to it.
pub(super) struct Inquiry {
    pub(super) messages: Vec<Message>,
    pub(super) schema: Arc<ResponseSchema>,
    /// Whether the messages leave the form of the answer to the schema.
    pub(super) enforced: bool,
    /// The most tokens of an answer, at first.
    pub(super) cap: u32,
    /// How many alternatives to each token are asked for, with their probabilities.
    pub(super) alternatives: Option<u8>,
    /// The criteria, in the order of their questions.
    pub(super) names: Vec<String>,
    /// Which of several answers to the same question, from 0.
    pub(super) sample: u32,
    /// Whether there are several.
    pub(super) sampled: bool,
}

/// What a judge said, as far as it is kept: its own words, so that they are read by the rules of today.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Said {
    pub(super) text: String,
    /// The expected score of each criterion, where the probabilities tell.
    #[serde(default)]
    pub(super) expected: Vec<Option<f64>>,
    /// Whether the server gave probabilities.
    #[serde(default)]
    pub(super) has_probabilities: bool,
}

impl Said {
    fn new(reply: &Reply, names: &[String]) -> Self {
        let only = names.len() == 1;
        Self {
            expected: names
                .iter()
                .map(|name| expected(&reply.logprobs, name, only))
                .collect(),
            has_probabilities: !reply.logprobs.is_empty(),
            // Where a server takes the whole reply for reasoning, the verdict is in there.
            text: if reply.text.trim().is_empty() {
                reply.reasoning.clone()
            } else {
                reply.text.clone()
            },
        }
    }
}

impl Asker {
    /// Whether its server holds an answer to a JSON Schema, as far as that is known by now: some take one and ignore it.
    pub(super) fn enforces(&self) -> bool {
        self.model.structured_output() == Some(StructuredOutput::JsonSchema)
            && !self.ignores_schemas.load(Relaxed)
    }

    /// What was answered before, if that was kept and can be read.
    pub(super) fn recall<T>(
        &self,
        inquiry: &Inquiry,
        read: impl Fn(&Said) -> Result<T, String>,
    ) -> Option<T> {
        let cache = self.cache.as_ref()?;
        let request = self.request(inquiry, inquiry.messages.clone(), 0);
        let journal = self.model.journal();
        if journal.is_some_and(|journal| journal.holds(self.model.id(), &request)) {
            // In this very run it was asked, and is taken from there as an answer of its own.
            return None;
        }
        let kept = cache.get(&self.key(inquiry, &request))?;
        read(&serde_json::from_str(&kept).ok()?).ok()
    }

    /// Asks: one call; one more if the reply was cut off or cannot be read; then there is no answer, for the
    /// reason in the inner error.
    ///
    /// # Errors
    /// If the model fails for good.
    pub(super) async fn ask<T>(
        &self,
        inquiry: &Inquiry,
        attempt: u32,
        read: impl Fn(&Said) -> Result<T, String>,
        observer: &CallObserver<'_>,
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
                // Nothing in the prompt differs, and without chance the reply would be the same.
                let temperature = request.sampling.temperature;
                request.sampling.temperature = temperature.map(|it| it.max(SAMPLING_TEMPERATURE));
            }
            let reply = call(&*self.model, request, observer).await?;
            self.learn_reasoning(&reply);
            problem = match &reply.end {
                Some(EndReason::Length) => {
                    // What is left of a verdict that was cut off must not be pieced together.
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
                    let said = Said::new(&reply, &inquiry.names);
                    match read(&said) {
                        Ok(answer) => {
                            self.keep(inquiry, &said);
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

    /// How many tokens a reply may have beyond its verdict.
    fn reasoning_room(&self) -> u32 {
        match self.reasoning_room.load(Relaxed) {
            0 if self.think.is_requested() => REASONING_ROOM,
            room => room,
        }
    }

    /// Makes room for twice the reasoning of this reply in those to come.
    fn learn_reasoning(&self, reply: &Reply) {
        let tokens = reply.reasoning.len() / CHARACTERS_PER_TOKEN;
        if tokens > 0 {
            let room = u32::try_from(tokens.saturating_mul(2)).unwrap_or(u32::MAX);
            self.reasoning_room
                .fetch_max(room.max(REASONING_ROOM), Relaxed);
        }
    }

    fn keep(&self, inquiry: &Inquiry, said: &Said) {
        if let Some(cache) = &self.cache
            && let Ok(text) = serde_json::to_string(said)
        {
            let request = self.request(inquiry, inquiry.messages.clone(), 0);
            cache.put(&self.key(inquiry, &request), &text);
        }
    }

    /// The key under which an answer to the first request is kept. With a server that has no seeds, the requests of several samples
    /// do not differ, and their answers do.
    fn key(&self, inquiry: &Inquiry, first: &ChatRequest) -> String {
        let key = cache::key(&*self.model, first);
        match inquiry.sample {
            0 => key,
            sample => format!("{key}-{sample}"),
        }
    }

    fn request(&self, inquiry: &Inquiry, messages: Vec<Message>, offset: u32) -> ChatRequest {
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
