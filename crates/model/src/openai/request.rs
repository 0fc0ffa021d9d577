//! The request body, and adjustments to what a server rejects.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::presets::{Dialect, ThinkStyle};
use super::{OpenAiOptions, StructuredOutput};
use crate::http::failure::Failure;
use crate::{ChatRequest, Message, ResponseSchema, Think};

/// What was learned about a server, starting with its dialect.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenAiQuirks {
    structured: StructuredOutput,
    max_completion_tokens: bool,
    /// Whether the token limit was already renamed.
    limit_renamed: bool,
    /// Whether the lowest effort was already tried instead of a rejected one.
    effort_lowered: bool,
    dropped: BTreeSet<&'static str>,
}

impl OpenAiQuirks {
    /// How to request JSON from the server.
    pub(crate) fn structured_output(&self) -> StructuredOutput {
        if self.dropped.contains("response_format") {
            StructuredOutput::Prompt
        } else {
            self.structured
        }
    }

    pub(crate) fn new(dialect: Dialect, options: &OpenAiOptions) -> Self {
        Self {
            structured: options.structured_output.unwrap_or(dialect.structured),
            max_completion_tokens: dialect.max_completion_tokens,
            limit_renamed: false,
            effort_lowered: false,
            dropped: (!options.stream).then_some("stream").into_iter().collect(),
        }
    }
}

#[derive(Serialize)]
struct OpenAiBody<'a> {
    model: &'a str,
    messages: &'a [Message],
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prediction: Option<Prediction<'a>>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonSchema { json_schema: JsonSchema<'a> },
    JsonObject,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'a str,
    strict: bool,
    schema: Schema<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Schema<'a> {
    AsItIs(&'a RawValue),
    Changed(Value),
}

#[derive(Serialize)]
struct Prediction<'a> {
    r#type: &'static str,
    content: &'a str,
}

/// The schema in the form that the server accepts. `OpenAI`'s strict mode, and servers that follow its rules, reject
/// `maxLength`. Local servers compile it into their grammar, which keeps small models short.
fn without_lengths<'a>(options: &OpenAiOptions, schema: &'a ResponseSchema) -> Schema<'a> {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(object) => {
                object.retain(|key, limit| key != "maxLength" || !limit.is_number());
                object.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    if options.connection.base_url.is_loopback() {
        return Schema::AsItIs(schema.text());
    }
    let mut schema = schema.schema().clone();
    strip(&mut schema);
    Schema::Changed(schema)
}

/// The request body. It borrows the text, because prompts can be large.
pub(crate) fn body(
    options: &OpenAiOptions,
    dialect: Dialect,
    request: &ChatRequest,
    quirks: &OpenAiQuirks,
) -> Result<Vec<u8>, serde_json::Error> {
    let extra = &options.extra_body;
    // The user's `extra_body` overrides our fields.
    let free = |name: &str| !quirks.dropped.contains(name) && !extra.contains_key(name);
    let sampling = &request.sampling;
    let response_format = request
        .schema
        .as_deref()
        .filter(|_| free("response_format"))
        .and_then(|schema| match quirks.structured {
            StructuredOutput::JsonSchema if schema.is_any_object() => {
                Some(ResponseFormat::JsonObject)
            }
            StructuredOutput::JsonSchema => Some(ResponseFormat::JsonSchema {
                json_schema: JsonSchema {
                    name: schema.name(),
                    strict: true,
                    schema: without_lengths(options, schema),
                },
            }),
            StructuredOutput::JsonObject => Some(ResponseFormat::JsonObject),
            StructuredOutput::Prompt => None,
        });
    let stream = free("stream") && (dialect.streams_schema || response_format.is_none());
    let limit_free = free("max_tokens") && free("max_completion_tokens");
    let limit = sampling.max_tokens.filter(|_| limit_free);
    let logprobs = request
        .top_logprobs
        .filter(|_| free("logprobs") && free("top_logprobs"));
    // OpenAI does not support it together with any of these.
    let predicts = dialect.prediction
        && free("prediction")
        && limit.is_none()
        && logprobs.is_none()
        && response_format.is_none();
    serde_json::to_vec(&OpenAiBody {
        model: &options.id.model,
        messages: &request.messages,
        stream,
        stream_options: (stream && free("stream_options")).then(|| json!({"include_usage": true})),
        temperature: sampling.temperature.filter(|_| free("temperature")),
        top_p: sampling.top_p.filter(|_| free("top_p")),
        seed: sampling.seed.filter(|_| free("seed")),
        max_tokens: limit.filter(|_| !quirks.max_completion_tokens),
        max_completion_tokens: limit.filter(|_| quirks.max_completion_tokens),
        response_format,
        logprobs: logprobs.map(|_| true),
        top_logprobs: logprobs.filter(|&count| count > 0),
        reasoning_effort: effort(request.think, dialect, quirks)
            .filter(|_| free("reasoning_effort")),
        chat_template_kwargs: template(request, dialect).filter(|_| free("chat_template_kwargs")),
        prediction: request
            .prediction
            .as_deref()
            .filter(|_| predicts)
            .map(|content| Prediction {
                r#type: "content",
                content,
            }),
        extra,
    })
}

fn effort(think: Think, dialect: Dialect, quirks: &OpenAiQuirks) -> Option<&'static str> {
    if dialect.think != ThinkStyle::Effort {
        return None;
    }
    match think {
        Think::Auto => None,
        Think::Off if quirks.effort_lowered => Some("low"),
        Think::Off => Some("none"),
        Think::Low => Some("low"),
        Think::On | Think::Medium => Some("medium"),
        Think::High => Some("high"),
    }
}

/// Templates without reasoning ignore this. Reasoning is off for replies with a schema unless requested: servers
/// apply the schema only after the reasoning, or not at all.
fn template(request: &ChatRequest, dialect: Dialect) -> Option<Value> {
    let think = request.think;
    if dialect.think != ThinkStyle::Template || think == Think::Auto && request.schema.is_none() {
        return None;
    }
    Some(json!({"enable_thinking": think.is_requested()}))
}

/// The parameters that can be dropped, longer names first.
const DROPPABLE: [&str; 12] = [
    "chat_template_kwargs",
    "reasoning_effort",
    "stream_options",
    "top_logprobs",
    "temperature",
    "prediction",
    "logprobs",
    "top_p",
    "seed",
    "max_completion_tokens",
    "max_tokens",
    "stream",
];

/// If the server rejects a parameter that can be changed or dropped: changes `quirks` and returns a message about it.
pub(crate) fn adjust(
    options: &OpenAiOptions,
    dialect: Dialect,
    failure: &Failure,
    request: &ChatRequest,
    quirks: &mut OpenAiQuirks,
) -> Option<String> {
    // 403: OpenAI for log-probabilities. 500 and 501: llama.cpp for unsupported schemas.
    if !matches!(failure.status, Some(400 | 403 | 422 | 500 | 501)) {
        return None;
    }
    let who = &options.id;
    let sent: Value = body(options, dialect, request, quirks)
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok())?;
    let is_ours = |name: &str| sent.get(name).is_some() && !options.extra_body.contains_key(name);

    // A rejected schema: use the next weaker way to request JSON.
    let speaks_of_format = [
        "response_format",
        "json_schema",
        "json_object",
        "JSON schema",
        "structured output",
        "structured outputs",
        "grammar",
    ]
    .iter()
    .any(|name| failure.names(name));
    if is_ours("response_format") && speaks_of_format && options.structured_output.is_none() {
        let (next, words) = match quirks.structured {
            StructuredOutput::JsonSchema => (StructuredOutput::JsonObject, "some JSON object"),
            _ => (StructuredOutput::Prompt, "JSON in the prompt only"),
        };
        quirks.structured = next;
        return Some(format!(
            "{who} does not support this JSON mode ({}); reflect now requests {words}",
            failure.message
        ));
    }
    // The message of an internal error may name a parameter by accident.
    if !failure.is_unsupported() || matches!(failure.status, Some(500 | 501)) {
        return None;
    }

    // The token limit has two names.
    for (name, other, completion) in [
        ("max_tokens", "max_completion_tokens", true),
        ("max_completion_tokens", "max_tokens", false),
    ] {
        if is_ours(name) && failure.names(name) && !quirks.limit_renamed {
            quirks.limit_renamed = true;
            quirks.max_completion_tokens = completion;
            return Some(format!(
                "{who} does not support `{name}`; reflect now sends `{other}`"
            ));
        }
    }
    if is_ours("reasoning_effort")
        && failure.names("reasoning_effort")
        && request.think == Think::Off
        && !quirks.effort_lowered
    {
        quirks.effort_lowered = true;
        return Some(format!(
            "{who} cannot turn off reasoning; reflect now requests low effort"
        ));
    }
    // Ollama and LiteLLM name the feature instead of the field: `"m" does not support thinking`.
    let reasons = |name: &str| {
        matches!(name, "chat_template_kwargs" | "reasoning_effort")
            && ["thinking", "reasoning"]
                .iter()
                .any(|word| failure.names(word))
    };
    let name = DROPPABLE
        .into_iter()
        .find(|name| is_ours(name) && (failure.names(name) || reasons(name)))?;
    // A field that was sent with another value was not rejected by its name.
    if name == "stream" && sent.get(name) != Some(&Value::Bool(true)) {
        return None;
    }
    quirks.dropped.insert(name);
    Some(format!(
        "{who} does not accept `{name}` ({}); reflect no longer sends it",
        failure.message
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::types::ModelId;
    use crate::{BaseUrl, Connection, Purpose, ResponseSchema};

    fn sent(provider: &str, url: &str, request: &ChatRequest) -> Value {
        let base_url = BaseUrl::openai(url).unwrap();
        let dialect = Dialect::of(provider, &base_url);
        let id = ModelId {
            provider: provider.to_owned(),
            model: "m".to_owned(),
        };
        let options = OpenAiOptions::new(id, Connection::new(base_url));
        let quirks = OpenAiQuirks::new(dialect, &options);
        serde_json::from_slice(&body(&options, dialect, request, &quirks).unwrap()).unwrap()
    }

    fn request() -> ChatRequest {
        let mut request = ChatRequest::new(Purpose::Judge, Vec::new());
        request.sampling.max_tokens = Some(9);
        request.prediction = Some("as before".to_owned());
        request
    }

    #[test]
    fn only_local_servers_get_length_limits() {
        let mut request = request();
        request.schema = Some(Arc::new(ResponseSchema::new(
            "verdict",
            // A property with that name is not a limit.
            json!({"properties": {"maxLength": {"type": "string", "maxLength": 9}}}),
        )));
        let schema = |url| {
            sent("openai", url, &request)["response_format"]["json_schema"]["schema"]["properties"]
                ["maxLength"]
                .clone()
        };
        assert_eq!(
            schema("https://api.openai.com/v1"),
            json!({"type": "string"})
        );
        assert_eq!(
            schema("http://127.0.0.1:8080/v1"),
            json!({"type": "string", "maxLength": 9})
        );
    }

    fn with_schema() -> ChatRequest {
        ChatRequest {
            schema: Some(Arc::new(ResponseSchema::new("verdict", json!({})))),
            think: Think::Off,
            ..request()
        }
    }

    #[test]
    fn every_server_gets_its_dialect() {
        let openai = "https://api.openai.com/v1";
        let body = sent("openai", openai, &request());
        assert_eq!(body["max_completion_tokens"], json!(9));
        assert!(body.get("max_tokens").is_none());
        // Not together with a token limit.
        assert!(body.get("prediction").is_none());
        let mut unlimited = request();
        unlimited.sampling.max_tokens = None;
        let body = sent("openai", openai, &unlimited);
        assert_eq!(
            body["prediction"],
            json!({"type": "content", "content": "as before"})
        );
        let body = sent("x", "http://localhost:8080", &unlimited);
        assert!(body.get("prediction").is_none());

        let body = sent("groq", "https://api.groq.com/openai/v1", &with_schema());
        assert_eq!(body["stream"], json!(false));
        assert!(body.get("stream_options").is_none());
        let body = sent("groq", "https://api.groq.com/openai/v1", &request());
        assert_eq!(body["stream"], json!(true));

        let body = sent("deepseek", "https://api.deepseek.com", &with_schema());
        assert_eq!(body["response_format"], json!({"type": "json_object"}));
        let body = sent("anthropic", "https://api.anthropic.com/v1", &with_schema());
        assert!(body.get("response_format").is_none());
        let body = sent("llamacpp", "http://localhost:8080", &with_schema());
        assert_eq!(
            body["chat_template_kwargs"],
            json!({"enable_thinking": false})
        );
        assert!(body.get("reasoning_effort").is_none());
    }
}
