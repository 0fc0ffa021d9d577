//! Ollama, by its own interface: only that one can set the context window.

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
use self::request::Quirks;
use self::wire::OllamaWire;
use super::http::Connection;
use super::http::answer::Decoder;
use super::http::call::{self, Adapter, Endpoint};
use super::http::failure::Failure;
use super::http::framing::Framing;
use super::http::json::Surrogates;
use super::http::retry::duration_with_units;
use super::listing::{ListedModel, nearest};
use super::openai::StructuredOutput;
use super::{ChatModel, ChatRequest, ChatStream, ErrorClass, ModelError, ModelInfo};
use crate::source::redact;
use crate::types::ModelId;

/// Which model, where, and how.
#[derive(Debug, Clone)]
pub struct OllamaOptions {
    /// Who it is; `id.model` is what the server is asked for.
    pub id: ModelId,
    /// The server; see [`super::BaseUrl::ollama`].
    pub connection: Connection,
    /// The context window of the run.
    pub num_ctx: NumCtx,
    /// How long the model stays loaded after a call: a duration such as `15m`, or seconds. Default: as the server
    /// is set up.
    pub keep_alive: Option<String>,
    /// Whether answers are streamed. Default: true.
    pub stream: bool,
}

impl OllamaOptions {
    /// With nothing but the model and the server.
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

/// A model behind an Ollama server. Clones share what was learned about the server.
#[derive(Debug, Clone)]
pub struct OllamaModel {
    options: OllamaOptions,
    endpoint: Endpoint<Quirks>,
    overflow_reported: Arc<AtomicBool>,
    /// What the server says of the model, once it was asked.
    details: Arc<OnceLock<Details>>,
}

impl OllamaModel {
    /// A model. Nothing is sent before the first call.
    pub fn new(options: OllamaOptions) -> Self {
        Self {
            endpoint: Endpoint::new(options.connection.clone(), "api/chat", Quirks::default()),
            options,
            overflow_reported: Arc::default(),
            details: Arc::default(),
        }
    }

    /// The context window of the run, to be decided before the first call.
    pub fn num_ctx(&self) -> &NumCtx {
        &self.options.num_ctx
    }
}

/// Whether Ollama understands this as a time to keep a model loaded: a duration as Go writes it (`15m`, `1h30m`), or
/// a whole number of seconds. A negative time means always.
pub fn is_keep_alive(time: &str) -> bool {
    let size = time.strip_prefix('-').unwrap_or(time);
    !size.is_empty() && (time.parse::<i64>().is_ok() || duration_with_units(size).is_some())
}

/// The models that are installed, in the server's order: the newest first.
///
/// # Errors
/// If the server cannot be reached or refuses the key.
pub async fn list_installed(connection: &Connection) -> Result<Vec<ListedModel>, ModelError> {
    installed(connection, None).await.map_err(with_serve_hint)
}

/// The host that is taken to run a cloud model whose server names none.
const CLOUD: &str = "ollama.com";

/// The host that runs a model, if that is another one than the server, by what the server says of it or by its name.
fn remote_host(name: &str, said: &Value) -> Option<String> {
    let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
    let host = text("remote_host");
    if !host.is_empty() {
        return Some(redact(host).into_owned());
    }
    (!text("remote_model").is_empty() || is_cloud(name)).then(|| CLOUD.to_owned())
}

/// Whether a model's name says that Ollama's cloud runs it.
pub fn is_cloud(name: &str) -> bool {
    name.ends_with(":cloud") || name.ends_with("-cloud")
}

/// The models of an Ollama server, if there is one. A server that does not answer at once, but accepts connections, is
/// busy: `busy` is called, and it is waited for a second time. `None` if nothing listens, or something else than
/// Ollama.
///
/// # Errors
/// If it does not answer the second time either, or refuses to.
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

/// Whether something accepts connections at the address.
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
        let mut error = ModelError::new(ErrorClass::Protocol, "the answer is no list of models")
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

/// Reads a number of parameters such as `134.52M` or `8.0B`.
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

/// The server's version, such as `0.32.1`; `None` if it does not say.
pub async fn version(connection: &Connection) -> Option<String> {
    let url = connection.base_url.join("api/version");
    let value = connection.json(&url, None, None).await.ok()?;
    Some(value.get("version")?.as_str()?.to_owned())
}

/// A model that the server has in memory now.
pub(super) struct Loaded {
    pub(super) name: String,
    /// The window that it is loaded with, in tokens; `None` if the server does not say.
    pub(super) window: Option<u64>,
}

/// The models that are loaded now; `None` if the server does not say.
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

/// The window that a model is loaded with now; `None` if it is not loaded, or the server does not say.
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
    type Quirks = Quirks;

    fn endpoint(&self) -> &Endpoint<Quirks> {
        &self.endpoint
    }

    fn body(&self, request: &ChatRequest, quirks: &Quirks) -> Result<Vec<u8>, ModelError> {
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
        let surely = request.least_tokens();
        let wire = OllamaWire {
            overflow: self
                .options
                .num_ctx
                .get()
                .filter(|&window| surely > window)
                .map(|window| (surely, window)),
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
        quirks: &mut Quirks,
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
            ErrorClass::Auth if error.message.contains("cloud is disabled") => error.with_hint(
                "this Ollama has its cloud switched off: use a model that it runs itself",
            ),
            ErrorClass::Auth if is_cloud(model) || error.message.contains("sign in at") => {
                error.with_hint("run `ollama signin`, or use a model that Ollama runs itself")
            }
            ErrorClass::NotFound => error.with_hint(
                "nothing is at that address: check `--base-url` or OLLAMA_HOST; \
                 is this an Ollama server, or one that speaks OpenAI's chat completions?",
            ),
            ErrorClass::ContextTooLong => {
                let window = self
                    .options
                    .num_ctx
                    .get()
                    .map_or_else(String::new, |window| format!(" (now {window})"));
                let hint = error.hint.take().unwrap_or_default();
                error.with_hint(format!(
                    "{hint}; a larger window is set with num_ctx{window}"
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
    fn numbers_of_parameters_are_read() {
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
    fn times_to_keep_a_model_loaded() {
        for time in ["15m", "1h30m", "1.5h", "90", "0", "-1", "-1m", "500ms"] {
            assert!(is_keep_alive(time), "{time}");
        }
        for time in ["", "-", "1d", "5x", "1.5", "m", "soon", " 5m", "1e3"] {
            assert!(!is_keep_alive(time), "{time}");
        }
    }
}
