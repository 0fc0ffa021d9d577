use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::error::ModelError;
use super::openai::StructuredOutput;
use crate::types::{ModelId, Think, TokenUsage};

/// The events of one call: any number of pieces, then exactly one [`ChatEvent::End`] or one error,
/// then nothing. Dropping the stream cancels the call.
pub type ChatStream<'a> = BoxStream<'a, Result<ChatEvent, ModelError>>;

/// A model that answers chats.
#[async_trait::async_trait]
pub trait ChatModel: Send + Sync {
    /// Who it is.
    fn id(&self) -> &ModelId;

    /// Where it answers, if that is a certain place: the same name elsewhere may be another model.
    fn address(&self) -> Option<String> {
        None
    }

    /// Whether the model runs on this machine, in this process or behind a server.
    fn is_local(&self) -> bool {
        false
    }

    /// How it is asked for JSON, as far as that has been found out by now; `None` if there is no such thing.
    fn structured_output(&self) -> Option<StructuredOutput> {
        None
    }

    /// Answers a chat. Retries are made inside: [`ChatEvent::Retry`] says so, and makes void what came
    /// before it.
    fn chat(&self, request: ChatRequest) -> ChatStream<'_>;

    /// What can be found out about the model without asking it anything.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses the key, or does not have the model.
    async fn info(&self) -> Result<ModelInfo, ModelError>;
}

/// A model in front of another one. It changes how calls are made, and nothing else: everything that is known about the
/// model behind it stays known.
pub trait Middleware: Send + Sync {
    /// The model behind it.
    fn inner(&self) -> &dyn ChatModel;

    /// Makes a call.
    fn call(&self, request: ChatRequest) -> ChatStream<'_>;
}

#[async_trait::async_trait]
impl<M: Middleware> ChatModel for M {
    fn id(&self) -> &ModelId {
        self.inner().id()
    }

    fn address(&self) -> Option<String> {
        self.inner().address()
    }

    fn is_local(&self) -> bool {
        self.inner().is_local()
    }

    fn structured_output(&self) -> Option<StructuredOutput> {
        self.inner().structured_output()
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        self.call(request)
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        self.inner().info().await
    }
}

/// What a server tells about a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelInfo {
    /// Tokens of prompt and answer together, if the server tells.
    pub context_window: Option<u64>,
    /// The window that the model is loaded with now, on a server that loads models by demand.
    pub loaded_window: Option<u64>,
    /// The window that the model's own parameters set.
    pub set_window: Option<u64>,
    /// Whether the server says that it has the model.
    pub known: bool,
    /// The host that runs it, if that is another one than the server: a cloud model of Ollama.
    pub remote: Option<String>,
    /// Whether it reasons before it answers.
    pub reasoning: Reasoning,
    /// Whether it comes with a system message of its own, which ours replaces.
    pub sets_system: bool,
    /// Whether it comes with messages of its own, which stand before ours.
    pub sets_messages: bool,
}

/// Whether a model reasons before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reasoning {
    /// The server does not say.
    #[default]
    Unknown,
    /// It cannot.
    Never,
    /// Unless it is switched off.
    Optional,
    /// In levels, none of which is off, as in the gpt-oss family.
    Always,
}

/// One question to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// What the call is for.
    pub purpose: Purpose,
    /// The conversation; the last message is the user's.
    pub messages: Vec<Message>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// The JSON that the answer has to be, for servers that can enforce it. The prompt describes it
    /// too, so an answer without enforcement is possible; callers validate in any case.
    pub schema: Option<Arc<ResponseSchema>>,
    /// How many alternatives to report with each token's log-probability; `None` for no
    /// log-probabilities.
    pub top_logprobs: Option<u8>,
    /// How much the model reasons before it answers.
    pub think: Think,
    /// Text that the answer will mostly repeat, for servers that draft from it (`OpenAI`'s
    /// `prediction`).
    pub prediction: Option<String>,
}

impl ChatRequest {
    /// A request with nothing but its messages.
    pub fn new(purpose: Purpose, messages: Vec<Message>) -> Self {
        Self {
            purpose,
            messages,
            sampling: Sampling::default(),
            schema: None,
            top_logprobs: None,
            think: Think::default(),
            prediction: None,
        }
    }

    /// How long its messages are together, in bytes.
    pub fn characters(&self) -> usize {
        let messages = self.messages.iter();
        messages.map(|message| message.content.len()).sum()
    }

    /// The fewest tokens that its messages can have: one for every eight bytes.
    pub(crate) fn least_tokens(&self) -> u64 {
        u64::try_from(self.characters() / 8).unwrap_or(u64::MAX)
    }
}

/// What a call is for. Engines in the process keep one prompt cache for each purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Writing or revising text.
    Write,
    /// Judging text.
    Judge,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
}

impl Message {
    /// A message.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
        }
    }
}

/// Who speaks in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    System,
    /// The question.
    User,
    /// The model's answer.
    Assistant,
}

/// How tokens are chosen. What is `None` is not sent, and the server's or the model's own default
/// holds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sampling {
    /// 0 for the most likely token; up to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling, above 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Makes sampling repeatable where the server can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The most tokens of the answer, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

impl Sampling {
    /// What is set here, and where nothing is, what is set below.
    #[must_use]
    pub fn or(&self, below: &Self) -> Self {
        Self {
            temperature: self.temperature.or(below.temperature),
            top_p: self.top_p.or(below.top_p),
            seed: self.seed.or(below.seed),
            max_tokens: self.max_tokens.or(below.max_tokens),
        }
    }
}

/// The JSON that an answer has to be.
#[derive(Debug, Clone)]
pub struct ResponseSchema {
    name: String,
    schema: Value,
    /// The schema as it is sent: it is the same in each request.
    text: Box<RawValue>,
}

impl ResponseSchema {
    /// A JSON Schema of the strict kind (objects closed, every property required), with a short name: letters, digits,
    /// `_` and `-` only (`OpenAI`'s rule).
    pub fn new(name: impl Into<String>, schema: Value) -> Self {
        Self {
            name: name.into(),
            text: to_raw_value(&schema).expect("JSON can be written as JSON"),
            schema,
        }
    }

    /// What every JSON object meets, and nothing else.
    pub fn any_object() -> Self {
        Self::new("object", any_object())
    }

    /// Whether every JSON object meets it: some servers have a way of their own to say so.
    pub fn is_any_object(&self) -> bool {
        self.schema == any_object()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The schema as JSON.
    pub fn text(&self) -> &RawValue {
        &self.text
    }
}

impl PartialEq for ResponseSchema {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.schema) == (&other.name, &other.schema)
    }
}

fn any_object() -> Value {
    json!({ "type": "object" })
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatEvent {
    /// More of the answer.
    Text(String),
    /// More of the reasoning. Never part of the answer.
    Reasoning(String),
    /// Log-probabilities of tokens of the answer, in order.
    Logprobs(Vec<TokenLogprob>),
    /// Token counts so far; a later one replaces an earlier one.
    Usage(TokenUsage),
    /// The call failed and is made again after a wait: everything before is void, usage included
    /// unless the server charged for it.
    Retry {
        /// What went wrong.
        error: ModelError,
        /// How long is waited.
        wait: Duration,
    },
    /// Something that people should know: a parameter that the server rejects and that is left out
    /// from now on.
    Notice(String),
    /// The answer is complete, in the way that the reason says.
    End(EndReason),
}

/// Why a model stopped writing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// It was done.
    Stop,
    /// The token limit or the context window was reached: the text is cut off.
    Length,
    /// It had lost itself in repeating one passage, and was stopped.
    Repetition,
    /// We wanted no more of it, and stopped it.
    Unwanted,
    /// It refused, or a filter stopped it; with what it said about it.
    Refused(String),
}

/// A token with its log-probability and the alternatives to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    /// The token's text.
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f64,
    /// The likeliest tokens at this place, this one among them, with their log-probabilities.
    pub top: Vec<(String, f64)>,
}
