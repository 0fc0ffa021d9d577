//! Ollama's native API, the only one that can set the context window.

mod context;
mod details;
mod preferred;
mod request;
mod wire;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};

pub use context::{NumCtx, estimate_tokens, num_ctx_for};
pub use preferred::{Preferred, preferred};

use self::details::Details;
use self::request::OllamaQuirks;
use self::wire::OllamaWire;
use super::http::Connection;
use super::http::call::{self, Adapter, Endpoint};
use super::http::decoder::Decoder;
use super::http::failure::Failure;
use super::http::framing::Framing;
use super::http::json::Surrogates;
use super::http::retry::duration_with_units;
use super::listing::{ListedModel, nearest};
use super::openai::StructuredOutput;
use super::{ChatModel, ChatRequest, ChatStream, ErrorClass, ModelError, ModelInfo};
use crate::source::redact;
use crate::types::ModelId;

/// The options of an Ollama model.
#[derive(Debug, Clone)]
pub struct OllamaOptions {
    /// The model; the server receives `id.model`.
    pub id: ModelId,
    /// The server; see [`super::BaseUrl::ollama`].
    pub connection: Connection,
    /// The context window of the run.
    pub num_ctx: NumCtx,
    /// How long the model stays loaded after a call: a duration such as `15m`, or seconds. Default: the server's
    /// setting.
    pub keep_alive: Option<String>,
    /// Whether to stream replies. Default: true.
    pub stream: bool,
}

impl OllamaOptions {
    /// The default options for a model on a server.
    pub fn new(id: ModelId, connection: Connection) -> Self {
        Self {
            id,
            connection,
            num_ctx: NumCtx::default(),
            keep_alive: None,
            stream: true,
        }
    }
}

/// A model on an Ollama server. Clones share what was learned about the server.
#[derive(Debug, Clone)]
pub struct OllamaModel {
    options: OllamaOptions,
    endpoint: Endpoint<OllamaQuirks>,
    overflow_reported: Arc<AtomicBool>,
    /// The model's details, once looked up.
    details: Arc<OnceLock<Details>>,
}

impl OllamaModel {
    /// Creates the model. Sends nothing before the first call.
    pub fn new(options: OllamaOptions) -> Self {
        Self {
            endpoint: Endpoint::new(
                options.connection.clone(),
                "api/chat",
                OllamaQuirks::default(),
            ),
            options,
            overflow_reported: Arc::default(),
            details: Arc::default(),
        }
    }

    /// The context window of the run; set it before the first call.
    pub fn num_ctx(&self) -> &NumCtx {
        &self.options.num_ctx
    }
}

/// Whether this is a valid `keep_alive`: a Go duration (`15m`, `1h30m`) or an integer number of seconds. A negative
/// value keeps the model loaded forever.
pub fn is_keep_alive(time: &str) -> bool {
    let size = time.strip_prefix('-').unwrap_or(time);
    !size.is_empty() && (time.parse::<i64>().is_ok() || duration_with_units(size).is_some())
}

/// Lists the installed models, newest first.
///
/// # Errors
/// If the server is unreachable or rejects the key.
pub async fn list_installed(connection: &Connection) -> Result<Vec<ListedModel>, ModelError> {
    installed(connection, None).await.map_err(with_serve_hint)
}

/// The assumed host of a cloud model if the server names none.
const CLOUD: &str = "ollama.com";

/// The host that runs a model, if it is not the server itself, according to the server or the model's name.
fn remote_host(name: &str, said: &Value) -> Option<String> {
    let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
    let host = text("remote_host");
    if !host.is_empty() {
        return Some(redact(host).into_owned());
    }
    (!text("remote_model").is_empty() || is_cloud(name)).then(|| CLOUD.to_owned())
}

/// Whether the model's name marks it as an Ollama cloud model.
pub fn is_cloud(name: &str) -> bool {
    name.ends_with(":cloud") || name.ends_with("-cloud")
}

/// Lists the models of an Ollama server, if there is one. If a server accepts connections but does not answer at
/// once, it is busy: calls `busy` and waits longer. Returns `None` if nothing, or something other than Ollama,
/// listens.
///
/// # Errors
/// If a busy server does not answer the second time, or the server rejects the request.
pub async fn find_ollama(
    connection: &Connection,
    (soon, late): (Duration, Duration),
    busy: impl FnOnce(),
) -> Result<Option<Vec<ListedModel>>, ModelError> {
    let error = match installed(connection, Some(soon)).await {
        Ok(models) => return Ok(Some(models)),
        Err(error) => error,
    };
    match error.class {
        ErrorClass::Auth => return Err(error),
        ErrorClass::Transient | ErrorClass::Rate => {}
        _ => return Ok(None),
    }
    if error.status.is_none() && !accepts(connection, soon).await {
        return Ok(None);
    }
    busy();
    installed(connection, Some(late)).await.map(Some)
}

/// Whether the address accepts connections.
async fn accepts(connection: &Connection, time: Duration) -> bool {
    let url = connection.base_url.url();
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return false;
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let connecting = tokio::net::TcpStream::connect((host, port));
    matches!(tokio::time::timeout(time, connecting).await, Ok(Ok(_)))
}

async fn installed(
    connection: &Connection,
    time: Option<Duration>,
) -> Result<Vec<ListedModel>, ModelError> {
    let url = connection.base_url.join("api/tags");
    let value = connection.json(&url, None, time).await?;
    let items = value.get("models").and_then(Value::as_array);
    let items = items.ok_or_else(|| {
        let mut error =
            ModelError::new(ErrorClass::Protocol, "the response is not a list of models")
                .with_hint("is this an Ollama server?");
        error.url = Some(redact(url.as_str()).into_owned());
        error
    })?;
    Ok(items
        .iter()
        .filter_map(|item| {
            let detail = |name: &str| item.pointer(&format!("/details/{name}"))?.as_str();
            let details: Vec<&str> = ["parameter_size", "quantization_level"]
                .into_iter()
                .filter_map(detail)
                .filter(|text| !text.is_empty())
                .collect();
            let name = item.get("name").or_else(|| item.get("model"))?.as_str()?;
            Some(ListedModel {
                name: name.to_owned(),
                remote: remote_host(name, item),
                context_window: None,
                size: item.get("size").and_then(Value::as_u64),
                parameters: detail("parameter_size").and_then(parameters),
                writes: item
                    .get("capabilities")
                    .and_then(Value::as_array)
                    .map(|all| {
                        let can = |what: &str| all.iter().any(|it| it == what);
                        can("completion") && !can("embedding") && !can("image")
                    }),
                details: (!details.is_empty()).then(|| details.join(" ")),
            })
        })
        .collect())
}

/// Parses a number of parameters such as `134.52M` or `8.0B`.
fn parameters(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let factor = match unit {
        "K" => 1e3,
        "M" => 1e6,
        "B" => 1e9,
        "T" => 1e12,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast saturates, and a fraction of a parameter does not matter"
    )]
    Some((number * factor) as u64)
}

/// The server's version, such as `0.32.1`; `None` if unknown.
pub async fn version(connection: &Connection) -> Option<String> {
    let url = connection.base_url.join("api/version");
    let value = connection.json(&url, None, None).await.ok()?;
    Some(value.get("version")?.as_str()?.to_owned())
}

/// A model in the server's memory.
pub(super) struct Loaded {
    pub(super) name: String,
    /// The context window that it is loaded with, in tokens; `None` if not reported.
    pub(super) window: Option<u64>,
}

/// The loaded models; `None` if not reported.
pub(super) async fn loaded(connection: &Connection) -> Option<Vec<Loaded>> {
    let url = connection.base_url.join("api/ps");
    let value = connection.json(&url, None, None).await.ok()?;
    let models = value.get("models")?.as_array()?.iter();
    Some(
        models
            .filter_map(|model| {
                Some(Loaded {
                    name: model.get("name")?.as_str()?.to_owned(),
                    window: model.get("context_length").and_then(Value::as_u64),
                })
            })
            .collect(),
    )
}

/// The context window that a model is loaded with; `None` if it is not loaded, or not reported.
async fn loaded_window(connection: &Connection, model: &str) -> Option<u64> {
    let names = [model.to_owned(), format!("{model}:latest")];
    let mut loaded = loaded(connection).await?.into_iter();
    loaded.find(|it| names.contains(&it.name))?.window
}

fn with_serve_hint(mut error: ModelError) -> ModelError {
    if error.class == ErrorClass::Unreachable && error.message == "connection refused" {
        let url = error.url.clone().unwrap_or_default();
        error.hint = Some(format!("is `ollama serve` running? tried {url}"));
    }
    error
}

#[async_trait::async_trait]
impl Adapter for OllamaModel {
    type Wire = OllamaWire;
    type Quirks = OllamaQuirks;

    fn endpoint(&self) -> &Endpoint<OllamaQuirks> {
        &self.endpoint
    }

    fn body(&self, request: &ChatRequest, quirks: &OllamaQuirks) -> Result<Vec<u8>, ModelError> {
        let assumed;
        let details = if let Some(details) = self.details.get() {
            details
        } else {
            assumed = Details::by_name(&self.options.id.model);
            &assumed
        };
        request::body(&self.options, request, quirks, details)
            .map_err(|error| ModelError::new(ErrorClass::Rejected, error.to_string()))
    }

    fn decoder(&self, request: &ChatRequest) -> Decoder<OllamaWire> {
        let min_tokens = request.least_tokens();
        let wire = OllamaWire {
            overflow: self
                .options
                .num_ctx
                .get()
                .filter(|&window| min_tokens > window)
                .map(|window| (min_tokens, window)),
            reported: Arc::clone(&self.overflow_reported),
            surrogates: Surrogates::default(),
            last: Default::default(),
        };
        Decoder::new(Framing::lines(), wire, request)
    }

    fn adjust(
        &self,
        failure: &Failure,
        request: &ChatRequest,
        quirks: &mut OllamaQuirks,
    ) -> Option<String> {
        request::adjust(&self.options, failure, request, quirks)
    }

    async fn explain(&self, mut error: ModelError) -> ModelError {
        let model = &self.options.id.model;
        match error.class {
            ErrorClass::NotFound if error.message.contains("model") => {
                let installed = installed(&self.endpoint.connection, None).await;
                let installed = installed.unwrap_or_default();
                let names = installed.iter().map(|model| model.name.as_str());
                let near = nearest(model, names.filter(|name| name != model), 3);
                let pull = format!("run `ollama pull {model}`");
                error.with_hint(if near.is_empty() {
                    pull
                } else {
                    format!("{pull}, or use an installed one: `{}`", near.join("`, `"))
                })
            }
            ErrorClass::Auth if error.message.contains("cloud is disabled") => {
                error.with_hint("this Ollama server has its cloud disabled: use a local model")
            }
            ErrorClass::Auth if is_cloud(model) || error.message.contains("sign in at") => {
                error.with_hint("run `ollama signin`, or use a local model")
            }
            ErrorClass::NotFound => error.with_hint(
                "no API at that address: check `--base-url` or OLLAMA_HOST; \
                 the server may be an OpenAI-compatible one instead of Ollama",
            ),
            ErrorClass::ContextTooLong => {
                let window = self
                    .options
                    .num_ctx
                    .get()
                    .map_or_else(String::new, |window| format!(" (currently {window})"));
                let hint = error.hint.take().unwrap_or_default();
                error.with_hint(format!(
                    "{hint}; to use a larger window, set num_ctx{window}"
                ))
            }
            _ => with_serve_hint(error),
        }
    }
}

#[async_trait::async_trait]
impl ChatModel for OllamaModel {
    fn id(&self) -> &ModelId {
        &self.options.id
    }

    fn address(&self) -> Option<String> {
        Some(self.options.connection.base_url.to_string())
    }

    fn is_local(&self) -> bool {
        self.options.connection.base_url.is_loopback()
    }

    fn structured_output(&self) -> Option<StructuredOutput> {
        Some(if self.endpoint.learned().enforces_schemas() {
            StructuredOutput::JsonSchema
        } else {
            StructuredOutput::Prompt
        })
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        call::chat(self, request)
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        let connection = &self.endpoint.connection;
        let url = connection.base_url.join("api/show");
        let body = json!({"model": self.options.id.model});
        let value = match connection.json(&url, Some(&body), None).await {
            Ok(value) => value,
            Err(error) => return Err(self.explain(error).await),
        };
        let details = self.details.get_or_init(|| Details::read(&value));
        Ok(ModelInfo {
            context_window: details.context_window,
            set_window: details.num_ctx,
            known: true,
            remote: remote_host(&self.options.id.model, &value),
            reasoning: details.reasoning,
            sets_system: details.sets_system,
            sets_messages: details.sets_messages,
            loaded_window: loaded_window(connection, &self.options.id.model).await,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_counts_are_parsed() {
        for (text, number) in [
            ("134.52M", Some(134_520_000)),
            ("8.0B", Some(8_000_000_000)),
            ("", None),
            ("8é", None),
            ("big", None),
        ] {
            assert_eq!(parameters(text), number, "{text}");
        }
    }

    #[test]
    fn keep_alive_values_are_validated() {
        for time in ["15m", "1h30m", "1.5h", "90", "0", "-1", "-1m", "500ms"] {
            assert!(is_keep_alive(time), "{time}");
        }
        for time in ["", "-", "1d", "5x", "1.5", "m", "soon", " 5m", "1e3"] {
            assert!(!is_keep_alive(time), "{time}");
        }
    }
}
