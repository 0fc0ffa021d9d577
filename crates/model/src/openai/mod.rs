//! `OpenAI` and servers with a compatible chat completions API.

mod presets;
mod request;
mod wire;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use presets::{Dialect, PLAIN, PRESETS, Preset, ThinkStyle, preset};

use self::request::OpenAiQuirks;
use self::wire::OpenAiWire;
use super::http::Connection;
use super::http::call::{self, Adapter, Endpoint};
use super::http::decoder::Decoder;
use super::http::failure::Failure;
use super::http::framing::Framing;
use super::listing::{ListedModel, nearest};
use super::{ChatModel, ChatRequest, ChatStream, ErrorClass, ModelError, ModelInfo};
use crate::source::redact;
use crate::types::ModelId;

/// How a server is asked for JSON, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// The server enforces the schema.
    JsonSchema,
    /// The server enforces some JSON object.
    JsonObject,
    /// The server enforces nothing; the prompt describes the schema.
    Prompt,
}

/// The options of an OpenAI-compatible model.
#[derive(Debug, Clone)]
pub struct OpenAiOptions {
    /// The model; the server receives `id.model`.
    pub id: ModelId,
    /// The server.
    pub connection: Connection,
    /// How to request JSON. `None`: the strongest way that the server accepts.
    pub structured_output: Option<StructuredOutput>,
    /// Additional fields for every request body; they override ours of the same name. `model`, `messages` and
    /// `stream` are not allowed.
    pub extra_body: Map<String, Value>,
    /// Whether to stream replies. Default: true.
    pub stream: bool,
}

impl OpenAiOptions {
    /// The default options for a model on a server.
    pub fn new(id: ModelId, connection: Connection) -> Self {
        Self {
            id,
            connection,
            structured_output: None,
            extra_body: Map::new(),
            stream: true,
        }
    }
}

/// A model on a server with the chat completions API. Clones share what was learned about the server.
#[derive(Debug, Clone)]
pub struct OpenAiModel {
    options: OpenAiOptions,
    dialect: Dialect,
    endpoint: Endpoint<OpenAiQuirks>,
    /// Whether a truncated prompt was already reported.
    cut_reported: Arc<AtomicBool>,
}

impl OpenAiModel {
    /// Creates the model. Sends nothing before the first call.
    ///
    /// # Errors
    /// If `extra_body` sets a forbidden field.
    pub fn new(options: OpenAiOptions) -> Result<Self, ModelError> {
        if let Some(name) = ["model", "messages", "stream"]
            .into_iter()
            .find(|name| options.extra_body.contains_key(*name))
        {
            return Err(ModelError::new(
                ErrorClass::Rejected,
                format!("`extra_body` of {} cannot set `{name}`", options.id),
            ));
        }
        let connection = options.connection.clone();
        let dialect = Dialect::of(&options.id.provider, &connection.base_url);
        let quirks = OpenAiQuirks::new(dialect, &options);
        Ok(Self {
            options,
            dialect,
            endpoint: Endpoint::new(connection, "chat/completions", quirks),
            cut_reported: Arc::default(),
        })
    }

    async fn listed(&self, name: &str) -> Result<Value, ModelError> {
        let url = self
            .endpoint
            .connection
            .base_url
            .join(&format!("models/{name}"));
        self.endpoint.connection.json(&url, None, None).await
    }
}

/// Lists the models of a server.
///
/// # Errors
/// If the server is unreachable, rejects the key, or has no list.
pub async fn list_models(connection: &Connection) -> Result<Vec<ListedModel>, ModelError> {
    let url = connection.base_url.join("models");
    let value = connection
        .json(&url, None, None)
        .await
        .map_err(with_url_hint)?;
    // Together returns a bare list.
    let items = value
        .get("data")
        .or_else(|| value.get("models"))
        .unwrap_or(&value)
        .as_array()
        .ok_or_else(|| {
            let mut error =
                ModelError::new(ErrorClass::Protocol, "the response is not a list of models");
            error.url = Some(redact(url.as_str()).into_owned());
            with_url_hint(error)
        })?;
    let mut models: Vec<ListedModel> = items
        .iter()
        .filter_map(|item| {
            let name = item.get("id").or_else(|| item.get("name"))?.as_str()?;
            Some(ListedModel {
                // Gemini lists `models/NAME` and accepts both forms.
                name: name.strip_prefix("models/").unwrap_or(name).to_owned(),
                context_window: context_window(item),
                ..ListedModel::default()
            })
        })
        .collect();
    models.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(models)
}

/// The context window of a listed model, under any of its names.
fn context_window(item: &Value) -> Option<u64> {
    [
        // llama.cpp: the window that the server was started with, then the one that the model was trained on.
        "/meta/n_ctx",
        "/meta/n_ctx_train",
        "/top_provider/context_length",
        "/context_length",
        "/context_window",
        "/max_model_len",
        "/max_context_length",
        "/max_input_tokens",
    ]
    .into_iter()
    .find_map(|pointer| item.pointer(pointer)?.as_u64())
}

fn with_url_hint(error: ModelError) -> ModelError {
    let lost = matches!(error.class, ErrorClass::NotFound | ErrorClass::Protocol);
    if !lost || error.hint.is_some() {
        return error;
    }
    let has_version = error.url.as_deref().is_some_and(|url| url.contains("/v1"));
    error.with_hint(if has_version {
        "no API at that address: check the base URL"
    } else {
        "no API at that address: check the base URL; most end with /v1"
    })
}

#[async_trait::async_trait]
impl Adapter for OpenAiModel {
    type Wire = OpenAiWire;
    type Quirks = OpenAiQuirks;

    fn endpoint(&self) -> &Endpoint<OpenAiQuirks> {
        &self.endpoint
    }

    fn body(&self, request: &ChatRequest, quirks: &OpenAiQuirks) -> Result<Vec<u8>, ModelError> {
        request::body(&self.options, self.dialect, request, quirks)
            .map_err(|error| ModelError::new(ErrorClass::Rejected, error.to_string()))
    }

    fn decoder(&self, request: &ChatRequest) -> Decoder<OpenAiWire> {
        let wire = OpenAiWire::new(request, Arc::clone(&self.cut_reported));
        Decoder::new(Framing::events_or_json(), wire, request)
    }

    fn adjust(
        &self,
        failure: &Failure,
        request: &ChatRequest,
        quirks: &mut OpenAiQuirks,
    ) -> Option<String> {
        request::adjust(&self.options, self.dialect, failure, request, quirks)
    }

    async fn explain(&self, error: ModelError) -> ModelError {
        let model = &self.options.id.model;
        if error.class != ErrorClass::NotFound || error.hint.is_some() {
            return error;
        }
        let speaks_of_model = error.message.contains(model.as_str())
            || error.message.to_lowercase().contains("model");
        if !speaks_of_model {
            return with_url_hint(error);
        }
        let Ok(models) = list_models(&self.endpoint.connection).await else {
            return error.with_hint(format!("check the model name `{model}`"));
        };
        let near = nearest(model, models.iter().map(|model| model.name.as_str()), 3);
        error.with_hint(if near.is_empty() {
            format!("check the model name `{model}`")
        } else {
            format!("did you mean `{}`?", near.join("`, `"))
        })
    }
}

#[async_trait::async_trait]
impl ChatModel for OpenAiModel {
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
        Some(self.endpoint.learned().structured_output())
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        call::chat(self, request)
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        let model = &self.options.id.model;
        let models = match list_models(&self.endpoint.connection).await {
            Ok(models) => models,
            // A server without a list may still have the model.
            Err(error) if matches!(error.class, ErrorClass::NotFound | ErrorClass::Rejected) => {
                return Ok(ModelInfo::default());
            }
            Err(error) => return Err(error),
        };
        let listed = match models.as_slice() {
            // A server with a single model uses it for every name.
            [only] => Some(only),
            all => all.iter().find(|listed| listed.name == *model),
        };
        if let Some(listed) = listed {
            return Ok(ModelInfo {
                context_window: listed.context_window,
                known: true,
                ..ModelInfo::default()
            });
        }
        // Aliases of a model are not listed but can be looked up.
        match self.listed(model).await {
            Ok(value) => Ok(ModelInfo {
                context_window: context_window(&value),
                known: true,
                ..ModelInfo::default()
            }),
            Err(error) if error.class == ErrorClass::NotFound && !models.is_empty() => {
                Err(self.explain(error).await)
            }
            Err(_) => Ok(ModelInfo::default()),
        }
    }
}
