//! The request body, and adjustments to what a server rejects.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::value::RawValue;

use super::OllamaOptions;
use super::context::estimate_tokens;
use super::details::Details;
use crate::http::failure::Failure;
use crate::{ChatRequest, Message, Purpose, Reasoning, ResponseSchema, Think};

/// What was learned about a server and its model.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct OllamaQuirks {
    /// The server supports reasoning on and off, but no levels.
    think_is_switch: bool,
    dropped: BTreeSet<&'static str>,
}

impl OllamaQuirks {
    /// Whether the server enforces schemas.
    pub(crate) fn enforces_schemas(&self) -> bool {
        !self.dropped.contains("format")
    }
}

#[derive(Serialize)]
struct OllamaBody<'a> {
    model: &'a str,
    messages: &'a [Message],
    stream: bool,
    /// Reject a prompt that is too long instead of cutting off its beginning.
    truncate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<KeepAlive<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<ThinkValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u8>,
    options: Options,
}

#[derive(Serialize)]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    num_ctx: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat_penalty: Option<f64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum KeepAlive<'a> {
    /// A bare number is in seconds and must be a number in JSON too.
    Seconds(i64),
    Duration(&'a str),
}

#[derive(Serialize)]
#[serde(untagged)]
enum ThinkValue {
    Switch(bool),
    Level(&'static str),
}

/// The request body. It borrows the text, because prompts can be large.
pub(crate) fn body(
    options: &OllamaOptions,
    request: &ChatRequest,
    quirks: &OllamaQuirks,
    model: &Details,
) -> Result<Vec<u8>, serde_json::Error> {
    let free = |name: &str| !quirks.dropped.contains(name);
    let sampling = &request.sampling;
    let logprobs = request.top_logprobs.filter(|_| free("logprobs"));
    serde_json::to_vec(&OllamaBody {
        model: &options.id.model,
        messages: &request.messages,
        stream: options.stream,
        truncate: false,
        keep_alive: options
            .keep_alive
            .as_deref()
            .map(|time| match time.parse() {
                Ok(seconds) => KeepAlive::Seconds(seconds),
                Err(_) => KeepAlive::Duration(time),
            }),
        format: request
            .schema
            .as_deref()
            .filter(|_| free("format"))
            .map(ResponseSchema::text),
        think: think(model, wanted_reasoning(request), quirks).filter(|_| free("think")),
        logprobs: logprobs.map(|_| true),
        top_logprobs: logprobs.filter(|&count| count > 0),
        options: Options {
            num_ctx: options.num_ctx.get(),
            num_predict: num_predict(options.num_ctx.get(), request),
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            seed: sampling.seed,
            repeat_penalty: repeat_penalty(request, model),
        },
    })
}

/// The token limit of the reply, chosen so that prompt and reply fit the context window. In a full window Ollama
/// drops the beginning of the prompt and keeps writing. `shift: false` would prevent that, but makes Ollama (0.30 and
/// later) reload the model.
fn num_predict(window: Option<u64>, request: &ChatRequest) -> Option<u32> {
    /// The smallest limit: the size of the prompt is only an estimate.
    const LEAST: u64 = 256;
    let room = window.map(|window| {
        let prompt: u64 = request
            .messages
            .iter()
            .map(|message| estimate_tokens(&message.content))
            .sum();
        let room = window.saturating_sub(prompt).max(LEAST);
        u32::try_from(room).unwrap_or(u32::MAX)
    });
    match (request.sampling.max_tokens, room) {
        (Some(limit), Some(room)) => Some(limit.min(room)),
        (limit, room) => limit.or(room),
    }
}

/// A penalty on repeated tokens damages JSON and quoted text. Ollama's default was 1.1 up to 0.32.9.
fn repeat_penalty(request: &ChatRequest, model: &Details) -> Option<f64> {
    let exact = request.purpose == Purpose::Judge || request.schema.is_some();
    (exact && !model.sets_repeat_penalty).then_some(1.0)
}

/// How much the model reasons. Replies with a schema default to none: reasoning counts towards the token limit, and
/// Ollama does not apply `format` while the model reasons.
fn wanted_reasoning(request: &ChatRequest) -> Think {
    match request.think {
        Think::Auto if request.schema.is_some() => Think::Off,
        think => think,
    }
}

fn think(model: &Details, think: Think, quirks: &OllamaQuirks) -> Option<ThinkValue> {
    let levels_only = model.reasoning == Reasoning::Always;
    Some(match think {
        Think::Auto => return None,
        // Reasoning is always off.
        Think::Off if model.reasoning == Reasoning::Never => return None,
        Think::On if levels_only => ThinkValue::Level("medium"),
        Think::Off if levels_only => ThinkValue::Level("low"),
        Think::On => ThinkValue::Switch(true),
        Think::Off => ThinkValue::Switch(false),
        Think::Low | Think::Medium | Think::High if quirks.think_is_switch => {
            ThinkValue::Switch(true)
        }
        Think::Low => ThinkValue::Level("low"),
        Think::Medium => ThinkValue::Level("medium"),
        Think::High => ThinkValue::Level("high"),
    })
}

/// If the server rejects a parameter that can be changed or dropped: changes `quirks` and returns a message about it.
pub(crate) fn adjust(
    options: &OllamaOptions,
    failure: &Failure,
    request: &ChatRequest,
    quirks: &mut OllamaQuirks,
) -> Option<String> {
    let message = failure.message.to_lowercase();
    // Before 0.30, an unsupported schema was an internal error.
    let schema_fault = failure.status == Some(500)
        && ["json schema in format", "invalid format:"]
            .iter()
            .any(|words| message.contains(words));
    if failure.status != Some(400) && !schema_fault {
        return None;
    }
    let who = &options.id;
    let thinks = wanted_reasoning(request) != Think::Auto && !quirks.dropped.contains("think");
    if thinks
        && (message.contains("think") || message.contains("unmarshal") && message.contains("bool"))
    {
        let has_level = matches!(request.think, Think::Low | Think::Medium | Think::High);
        if has_level && !message.contains("does not support thinking") && !quirks.think_is_switch {
            quirks.think_is_switch = true;
            return Some(format!(
                "{who} does not support levels of reasoning; reflect now only turns it on"
            ));
        }
        quirks.dropped.insert("think");
        return Some(format!(
            "{who} does not accept `think` ({}); reflect no longer sends it",
            failure.message
        ));
    }
    let asks = |name: &str, words: &[&str]| {
        !quirks.dropped.contains(name) && words.iter().any(|word| message.contains(word))
    };
    let name = if request.top_logprobs.is_some() && asks("logprobs", &["logprobs"]) {
        "logprobs"
    } else if request.schema.is_some()
        && asks(
            "format",
            &["format", "grammar", "schema", "structured output"],
        )
    {
        "format"
    } else {
        return None;
    };
    quirks.dropped.insert(name);
    Some(format!(
        "{who} does not accept `{name}` ({}); reflect no longer sends it",
        failure.message
    ))
}
