//! Opening a model: its provider's address, the key that belongs to it, the connection.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::ExposeSecret as _;

use super::choose::default_model;
use super::name::{ModelName, unknown};
use super::window::RunWindow;
use crate::cli::error::CliError;
use crate::cli::paths;
use crate::config::{
    self, Config, FoundKey, Provider, ProviderKind, Settings, StructuredOutputMode,
};
use crate::model::ollama::{self, OllamaModel, OllamaOptions};
use crate::model::openai::{self, OpenAiModel, OpenAiOptions, Preset};
use crate::model::{
    ApiKey, BaseUrl, ChatModel, Connection, HttpClient, RetryPolicy, ScriptedModel,
};
use crate::types::{ExitCode, ModelId};

/// How long a running Ollama may take to say so.
const OLLAMA_PATIENCE: Duration = Duration::from_millis(300);

/// A model that is ready to be asked.
#[derive(Clone)]
pub(super) struct OpenModel {
    pub(super) model: Arc<dyn ChatModel>,
    /// Whether it runs on hardware of the user's own, with sampling defaults that nobody chose.
    pub(super) local: bool,
    /// Where it is, if that is not on this machine.
    pub(super) remote: Option<String>,
}

impl OpenModel {
    /// What people must know of where their prompt goes.
    pub(super) fn leaves(&self) -> String {
        self.remote.as_ref().map_or_else(String::new, |address| {
            format!("; your prompt leaves this machine for {address}")
        })
    }
}

/// Where models come from, by the settings of a run.
pub(in crate::cli) struct Providers<'a> {
    config: &'a Config,
    settings: &'a Settings,
    /// One for all, so that the writer and the judge share connections.
    client: HttpClient,
    retries: RetryPolicy,
    /// The provider that the user's `base_url` is meant for; others stay where they are.
    at_given_address: Option<String>,
    /// The keys that were looked up, by provider: a command that prints one may ask for a password.
    keys: Mutex<HashMap<String, Option<FoundKey>>>,
}

/// A provider, ready to be asked for its models.
pub(in crate::cli) enum Backend {
    Ollama(Connection),
    OpenAi(Connection),
    Embedded,
    Scripted,
}

impl<'a> Providers<'a> {
    pub(in crate::cli) fn new(config: &'a Config, settings: &'a Settings) -> Self {
        let mut retries = RetryPolicy::default();
        if let Some(number) = settings.retries {
            retries.max_retries = number;
        }
        Self {
            config,
            settings,
            client: HttpClient::new(settings.timeouts.get()),
            retries,
            at_given_address: None,
            keys: Mutex::default(),
        }
    }

    /// The same, with other waits before failed calls are made again: the longest before the first, and of all.
    pub(super) fn with_waits(mut self, first: Option<Duration>, longest: Option<Duration>) -> Self {
        self.retries.base = first.unwrap_or(self.retries.base);
        self.retries.cap = longest.unwrap_or(self.retries.cap);
        self
    }

    /// The same, over these connections.
    pub(super) fn with_client(mut self, client: HttpClient) -> Self {
        self.client = client;
        self
    }

    /// The same, with the address that the user gives for this provider.
    pub(in crate::cli) fn with_given_address(mut self, provider: &str) -> Self {
        self.at_given_address = Some(provider.to_owned());
        // The key for another address is another one.
        self.keys = Mutex::default();
        self
    }

    /// Where Ollama runs, with its most recently used model, if it has one.
    pub(super) async fn running_ollama(&self) -> Option<(String, Option<String>)> {
        let Ok(Backend::Ollama(connection)) = self.backend("ollama") else {
            return None;
        };
        let installed = ollama::ollama_is_running(&connection, OLLAMA_PATIENCE).await?;
        let model = installed.into_iter().find(|model| writes(&model.name));
        Some((
            connection.base_url.to_string(),
            model.map(|model| model.name),
        ))
    }

    /// Finds out early that a provider is not known.
    pub(super) fn check(&self, name: &ModelName) -> Result<(), CliError> {
        self.backend(&name.provider).map(|_| ())
    }

    /// The provider of this name.
    pub(in crate::cli) fn backend(&self, name: &str) -> Result<Backend, CliError> {
        let entry = self.config.provider(name);
        let preset = openai::preset(name);
        let kind = entry.and_then(|entry| entry.kind);
        match (name, kind) {
            ("embedded", None) => Ok(Backend::Embedded),
            ("scripted", None) => Ok(Backend::Scripted),
            ("ollama", None) | (_, Some(ProviderKind::Ollama)) => {
                let address = self.address(name, entry, || paths::env_text("OLLAMA_HOST"));
                let base_url = BaseUrl::ollama(address.as_deref().unwrap_or_default())
                    .map_err(|error| CliError::usage(error.to_string()))?;
                let connection = self.connection(name, entry, base_url, Some("OLLAMA_API_KEY"))?;
                Ok(Backend::Ollama(connection))
            }
            _ if entry.is_some() || preset.is_some() => {
                let address = self
                    .address(name, entry, || {
                        Some(name).filter(|name| *name == "openai")?;
                        openai_env_url()
                    })
                    .or_else(|| preset.map(|preset| preset.base_url.to_owned()))
                    .ok_or_else(|| {
                        CliError::usage(format!("the provider `{name}` has no address"))
                            .hint(format!("set `base_url` under `[providers.{name}]`"))
                    })?;
                let base_url = BaseUrl::openai(&address)
                    .map_err(|error| CliError::usage(error.to_string()))?;
                let key_env = preset.and_then(|preset| preset.key_env);
                let connection = self.connection(name, entry, base_url, key_env)?;
                Ok(Backend::OpenAi(connection))
            }
            _ => Err(unknown(name, self.config)),
        }
    }

    /// What is known of a provider, if the connection is to its own server.
    fn official(&self, provider: &str, connection: &Connection) -> Option<&'static Preset> {
        openai::preset(provider)
            .filter(|_| self.given_address(provider).is_none())
            .filter(|preset| connection.base_url.to_string() == preset.base_url)
    }

    /// Says which key is missing before the server refuses to talk without it.
    pub(in crate::cli) fn check_key(
        &self,
        provider: &str,
        connection: &Connection,
    ) -> Result<(), CliError> {
        let official = self.official(provider, connection);
        match official.and_then(|preset| preset.key_env) {
            Some(variable) if connection.key.is_none() => Err(no_key(provider, variable)),
            _ => Ok(()),
        }
    }

    /// Opens a model.
    pub(super) async fn open(
        &self,
        name: &ModelName,
        window: &RunWindow,
        quiet: bool,
    ) -> Result<OpenModel, CliError> {
        let settings = self.settings;
        let entry = self.config.provider(&name.provider);
        let wanted = name
            .model
            .clone()
            .or_else(|| entry.and_then(|entry| entry.model.clone()));
        let id = |model: String| ModelId {
            provider: name.provider.clone(),
            model,
        };
        match self.backend(&name.provider)? {
            Backend::Ollama(connection) => {
                let remote = elsewhere(&connection);
                let model = match wanted {
                    Some(model) => model,
                    None => installed_model(&connection).await?,
                };
                let mut options = OllamaOptions::new(id(model), connection);
                options.num_ctx = window.num_ctx.clone();
                options.keep_alive.clone_from(&settings.keep_alive);
                let model = OllamaModel::new(options);
                if window.num_ctx.get().is_none() {
                    window.decide(model.info().await?);
                }
                Ok(OpenModel {
                    model: Arc::new(model),
                    local: true,
                    remote,
                })
            }
            Backend::OpenAi(connection) => {
                let at_home = connection.base_url.is_loopback();
                let remote = elsewhere(&connection);
                self.check_key(&name.provider, &connection)?;
                let default = self
                    .official(&name.provider, &connection)
                    .and_then(|_| default_model(&name.provider));
                let model = match wanted.or(default.map(str::to_owned)) {
                    Some(model) => model,
                    None => only_model(&connection).await?,
                };
                let mut options = OpenAiOptions::new(id(model), connection);
                options.structured_output = settings
                    .structured_output
                    .and_then(StructuredOutputMode::get);
                if let Some(entry) = entry {
                    options.extra_body = entry
                        .extra_body
                        .iter()
                        .map(|(key, value)| (key.clone(), value.clone()))
                        .collect();
                }
                Ok(OpenModel {
                    model: Arc::new(OpenAiModel::new(options)?),
                    local: at_home,
                    remote,
                })
            }
            Backend::Scripted => {
                let file = wanted.ok_or_else(|| {
                    CliError::usage("the scripted provider needs its file")
                        .hint("write `--provider scripted:FILE`")
                })?;
                let model = ScriptedModel::open(Path::new(&file))
                    .map_err(|error| CliError::usage(error.to_string()))?;
                Ok(OpenModel {
                    model: Arc::new(model),
                    local: true,
                    remote: None,
                })
            }
            Backend::Embedded => self.embedded(wanted, quiet).await,
        }
    }

    #[cfg(feature = "embedded")]
    async fn embedded(&self, wanted: Option<String>, quiet: bool) -> Result<OpenModel, CliError> {
        use crate::model::embedded::weights::{DEFAULT_MODEL, ModelSpec};
        use crate::model::embedded::{EmbeddedModel, EmbeddedOptions};
        let text = wanted.unwrap_or_else(|| DEFAULT_MODEL.to_owned());
        let spec: ModelSpec =
            text.parse()
                .map_err(|error: crate::model::embedded::weights::SpecError| {
                    CliError::usage(error.to_string())
                })?;
        let settings = self.settings;
        let path = super::embedded::fetch(&spec, settings.offline == Some(true), quiet).await?;
        let id = ModelId {
            provider: "embedded".to_owned(),
            model: text,
        };
        let options = EmbeddedOptions {
            context: settings
                .num_ctx
                .and_then(|tokens| usize::try_from(tokens).ok())
                .and_then(std::num::NonZeroUsize::new),
            ..EmbeddedOptions::default()
        };
        Ok(OpenModel {
            model: Arc::new(EmbeddedModel::open(path, id, options)),
            local: true,
            remote: None,
        })
    }

    #[cfg(not(feature = "embedded"))]
    #[expect(clippy::unused_async, reason = "the same signature as with the model")]
    async fn embedded(&self, _: Option<String>, _: bool) -> Result<OpenModel, CliError> {
        Err(
            CliError::usage("this build of reflect has no model of its own").hint(
                "start Ollama, set a provider's key, give `--base-url`, or build with the feature \
                 `embedded`",
            ),
        )
    }

    /// The address that the user gives for this provider.
    fn given_address(&self, provider: &str) -> Option<&str> {
        self.settings
            .base_url
            .as_deref()
            .filter(|_| self.at_given_address.as_deref() == Some(provider))
    }

    fn address(
        &self,
        name: &str,
        entry: Option<&Provider>,
        environment: impl FnOnce() -> Option<String>,
    ) -> Option<String> {
        self.given_address(name)
            .map(str::to_owned)
            .or_else(|| entry?.base_url.clone())
            .or_else(environment)
    }

    /// A connection with the key that belongs to its address, and no other.
    fn connection(
        &self,
        name: &str,
        entry: Option<&Provider>,
        base_url: BaseUrl,
        default_env: Option<&str>,
    ) -> Result<Connection, CliError> {
        let key = self
            .key(name, entry, default_env)?
            .map(|key| {
                ApiKey::for_url(key.secret.expose_secret(), base_url.url().as_str())
                    .map_err(|error| CliError::usage(format!("{}: {error}", key.origin)))
            })
            .transpose()?;
        let mut connection = Connection::new(base_url).with_key(key);
        connection.client = self.client.clone();
        connection.retries = self.retries;
        self.allowed(name, &connection)?;
        // The headers of an entry are for its own address.
        let headers = entry
            .filter(|_| self.given_address(name).is_none())
            .map(|entry| &entry.headers);
        for (header, value) in headers.into_iter().flatten() {
            connection = connection
                .with_header(header, value.expose_secret())
                .map_err(|error| CliError::usage(error.to_string()))?;
        }
        Ok(connection)
    }

    /// The key for a provider's address. What is found is kept, also that there is none.
    fn key(
        &self,
        name: &str,
        entry: Option<&Provider>,
        default_env: Option<&str>,
    ) -> Result<Option<FoundKey>, CliError> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = keys.get(name) {
            return Ok(found.clone());
        }
        let found = if self.given_address(name).is_some() {
            paths::env_text("REFLECT_API_KEY").map(|secret| FoundKey {
                secret: secret.into(),
                origin: "the environment variable REFLECT_API_KEY".to_owned(),
            })
        } else {
            config::api_key(name, entry, default_env, &paths::env)?
        };
        keys.insert(name.to_owned(), found.clone());
        Ok(found)
    }

    /// Where the key of a provider that is connected to was found, in words; `None` if it has none.
    pub(super) fn key_origin(&self, name: &str) -> Option<String> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        Some(keys.get(name)?.as_ref()?.origin.clone())
    }

    /// Offline, only servers of this machine may be asked.
    fn allowed(&self, provider: &str, connection: &Connection) -> Result<(), CliError> {
        if self.settings.offline == Some(true) && !connection.base_url.is_loopback() {
            return Err(CliError::usage(format!(
                "`{provider}` is at {}, and offline only this machine is asked",
                connection.base_url
            ))
            .hint("leave out `--offline`, or use Ollama or the embedded model"));
        }
        Ok(())
    }
}

/// The address of a server that is not this machine.
fn elsewhere(connection: &Connection) -> Option<String> {
    (!connection.base_url.is_loopback()).then(|| connection.base_url.to_string())
}

/// The address of `OpenAI`'s own variable, or of the older name that many tools still use.
pub(super) fn openai_env_url() -> Option<String> {
    paths::env_text("OPENAI_BASE_URL").or_else(|| paths::env_text("OPENAI_API_BASE"))
}

/// Whether a model can write: embedding models cannot.
fn writes(name: &str) -> bool {
    !["embed", "bge-", "minilm", "rerank"]
        .iter()
        .any(|part| name.to_lowercase().contains(part))
}

async fn installed_model(connection: &Connection) -> Result<String, CliError> {
    let installed = ollama::list_installed(connection).await?;
    installed
        .into_iter()
        .map(|model| model.name)
        .find(|name| writes(name))
        .ok_or_else(|| {
            CliError::new(
                ExitCode::Provider,
                format!("Ollama at {} has no model", connection.base_url),
            )
            .hint("get one, for instance with `ollama pull qwen3:4b`")
        })
}

/// The model of a server that has just one, as local servers do.
async fn only_model(connection: &Connection) -> Result<String, CliError> {
    let mut names: Vec<String> = openai::list_models(connection)
        .await?
        .into_iter()
        .map(|model| model.name)
        .collect();
    if names.len() == 1 {
        return Ok(names.remove(0));
    }
    let address = &connection.base_url;
    let message = match names.len() {
        0 => format!("the server at {address} offers no model"),
        number => format!("the server at {address} offers {number} models"),
    };
    names.truncate(8);
    let hint = if names.is_empty() {
        "say which is meant with `--model NAME`".to_owned()
    } else {
        format!(
            "say which is meant with `--model NAME`: {}",
            names.join(", ")
        )
    };
    Err(CliError::usage(message).hint(hint))
}

fn no_key(provider: &str, variable: &str) -> CliError {
    CliError::new(
        ExitCode::Provider,
        format!("there is no key for `{provider}`"),
    )
    .hint(format!(
        "looked in the environment variable {variable} and under `[providers.{provider}]` in the \
         configuration; set the variable, or `api_key_cmd` there"
    ))
}
