//! Connections to models: the provider's address, its key and its client.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use secrecy::ExposeSecret as _;

use super::choose::default_model;
use super::name::{ModelName, Written, is_known, misspelt_provider, unknown};
use super::trust::{self, NamedBy, Refusal};
use super::window::RunWindow;
use crate::cli::error::CliError;
use crate::cli::{paths, printer};
use crate::config::{
    self, Config, FoundKey, Provider, ProviderKind, Settings, StructuredOutputMode,
};
use crate::model::ollama::{self, OllamaModel, OllamaOptions};
use crate::model::openai::{self, OpenAiModel, OpenAiOptions, Preset};
use crate::model::{
    ApiKey, BaseUrl, BaseUrlError, ChatModel, Connection, ErrorClass, Exchange, HttpClient,
    ModelError, Reasoning, RetryPolicy, ScriptedModel, trust_certificates,
};
use crate::types::{ExitCode, ModelId};

/// How long a running Ollama may take to respond.
const OLLAMA_PATIENCE: Duration = Duration::from_millis(300);

/// A model that is ready for calls.
#[derive(Clone)]
pub(super) struct OpenModel {
    pub(super) model: Arc<dyn ChatModel>,
    /// Whether it runs on the user's hardware, with default sampling settings.
    pub(super) local: bool,
    /// Whether the user's own server forwards prompts to another host.
    pub(super) in_cloud: bool,
    /// The address of the model, if it is on another machine.
    pub(super) remote: Option<String>,
    /// Whether its reasoning cannot be turned off.
    pub(super) always_reasons: bool,
    /// Why it was picked from the server's models, if none was named.
    pub(super) why: Option<&'static str>,
}

impl OpenModel {
    /// Describes the model, to follow its name: why it was picked, and where the prompt goes.
    pub(super) fn about(&self) -> String {
        let why = self.why.map_or_else(String::new, |why| format!(", {why}"));
        let leaves = self.remote.as_ref().map_or_else(String::new, |address| {
            format!("; your prompt leaves this machine for {address}")
        });
        why + &leaves
    }
}

/// The providers of a run, with its settings.
pub(in crate::cli) struct Providers<'a> {
    config: &'a Config,
    settings: &'a Settings,
    /// One client for all models, so that the writer and the judge share connections.
    client: HttpClient,
    retries: RetryPolicy,
    /// The provider that the user's `base_url` applies to. Others keep their own address.
    at_given_address: Option<String>,
    /// Whether a workflow file sets this address, not the user.
    address_of_file: bool,
    quiet: bool,
    /// The calls that a resumed run has already made. A script continues after them.
    answered: &'a [Exchange],
    /// Cached keys by provider. A command that prints a key may ask for a password.
    keys: Mutex<HashMap<String, Option<FoundKey>>>,
    /// The providers that the user has chosen. Untrusted files may name other models of these.
    accepted: Mutex<BTreeSet<String>>,
}

/// The location of a provider, before its key is looked up.
enum Server {
    Ollama(BaseUrl),
    OpenAi(BaseUrl),
    Embedded,
    Scripted,
}

/// A provider that is ready for requests.
pub(in crate::cli) enum Backend {
    Ollama(Connection),
    OpenAi(Connection),
    Embedded,
    Scripted,
}

impl<'a> Providers<'a> {
    pub(in crate::cli) fn new(config: &'a Config, settings: &'a Settings) -> Self {
        if let Some(file) = &settings.ca_file
            && let Err(problem) = trust_certificates(file)
        {
            printer::say(&format!("warning: `ca_file` {} {problem}", file.display()));
        }
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
            address_of_file: false,
            quiet: false,
            answered: &[],
            keys: Mutex::default(),
            accepted: Mutex::new(
                config
                    .own_models()
                    .chain(settings.provider.as_deref())
                    .filter_map(|name| {
                        let named = Written::read(name, NamedBy::User, config).provider;
                        named.or_else(|| is_known(name, config).then(|| name.to_owned()))
                    })
                    .collect(),
            ),
        }
    }

    /// Turns messages on stderr off.
    pub(super) fn quietly(mut self, quiet: bool) -> Self {
        self.quiet = quiet;
        self
    }

    /// Adds the calls that a resumed run has already made.
    pub(super) fn with_answered(mut self, answered: &'a [Exchange]) -> Self {
        self.answered = answered;
        self
    }

    /// Lets untrusted files choose models of this provider.
    pub(super) fn accept(&self, provider: &str) {
        let mut accepted = self.accepted.lock();
        accepted.insert(provider.to_owned());
    }

    fn is_accepted(&self, provider: &str) -> bool {
        let accepted = self.accepted.lock();
        accepted.contains(provider)
    }

    /// Checks that a model may be opened; every model passes here. The user may name any model. Untrusted
    /// files may not name local files, and need the user's permission to use another provider or to download
    /// a model.
    ///
    /// # Errors
    /// If the model may not be opened, or its provider does not exist.
    pub(super) fn permit(&self, name: &ModelName) -> Result<(), CliError> {
        let server = self.server(&name.provider)?;
        if self.config.serves_tasks() {
            self.serve(name, &server)?;
        }
        let NamedBy::File {
            place,
            file,
            trusted,
        } = &name.by
        else {
            self.accept(&name.provider);
            return Ok(());
        };
        let allowed = *trusted || self.settings.allow_models == Some(true);
        let problem = match server {
            Server::Scripted => Some(Refusal::LocalFile),
            Server::Embedded => trust::weights(name, allowed)?,
            Server::Ollama(url) | Server::OpenAi(url) => {
                let known = url.is_loopback() || self.is_accepted(&name.provider);
                (!allowed && !known).then(|| Refusal::Elsewhere(url.to_string()))
            }
        };
        match problem {
            Some(problem) => Err(problem.error(name, place, file.as_deref(), self.config)),
            None => Ok(()),
        }
    }

    /// Checks that a task from another machine may use a model: no local files, no downloads, and only
    /// providers that are on this machine or set up by its owner.
    fn serve(&self, name: &ModelName, server: &Server) -> Result<(), CliError> {
        let provider = name.provider.as_str();
        let is_set = |variable: Option<&str>| {
            variable.is_some_and(|variable| paths::env_text(variable).is_some())
        };
        let problem = match server {
            Server::Scripted => Some(Refusal::LocalFile),
            Server::Embedded => trust::weights(name, false)?,
            Server::Ollama(url) | Server::OpenAi(url) => {
                let has = url.is_loopback()
                    || self.config.provider(provider).is_some()
                    || self.is_accepted(provider)
                    || self.given_address(provider).is_some()
                    || is_set(openai::preset(provider).and_then(|preset| preset.key_env))
                    || provider == "openai" && openai_env_url().is_some()
                    || provider == "ollama" && is_set(Some("OLLAMA_HOST"));
                (!has).then_some(Refusal::NotSetUp)
            }
        };
        match problem {
            Some(problem) => Err(problem.error(name, "the task", None, self.config)),
            None => Ok(()),
        }
    }

    /// Converts the error for a model that Ollama does not have. Suggests the provider that its name may
    /// start with.
    fn meant(&self, name: &ModelName, mut error: ModelError) -> CliError {
        if error.class == ErrorClass::NotFound
            && let Some(meant) = misspelt_provider(name.model.as_deref(), self.config)
        {
            error.hint = Some(format!("did you mean `{meant}`?"));
        }
        error.into()
    }

    /// Checks that a model which Ollama runs on another host may be opened.
    fn permit_remote(&self, name: &ModelName, host: &str) -> Result<(), CliError> {
        if self.settings.offline == Some(true) {
            return Err(CliError::usage(format!(
                "`{name}` runs at {host}, which --offline forbids"
            ))
            .hint("remove `--offline`, or use a model that Ollama runs locally"));
        }
        match &name.by {
            NamedBy::File {
                place,
                file,
                trusted: false,
            } if self.settings.allow_models != Some(true) => {
                let refusal = Refusal::Elsewhere(host.to_owned());
                Err(refusal.error(name, place, file.as_deref(), self.config))
            }
            _ => Ok(()),
        }
    }

    /// Sets other retry delays: the first, and the longest.
    pub(super) fn with_waits(mut self, first: Option<Duration>, longest: Option<Duration>) -> Self {
        self.retries.base = first.unwrap_or(self.retries.base);
        self.retries.cap = longest.unwrap_or(self.retries.cap);
        self
    }

    /// Uses the connections of this client.
    pub(super) fn with_client(mut self, client: HttpClient) -> Self {
        self.client = client;
        self
    }

    /// Applies the user's address to this provider.
    pub(in crate::cli) fn with_given_address(mut self, provider: &str) -> Self {
        self.at_given_address = Some(provider.to_owned());
        // Another address needs another key.
        self.keys = Mutex::default();
        self
    }

    /// Finds a running Ollama and its most recently used model, if it has one. Waits for a busy server.
    ///
    /// # Errors
    /// If the server is there but does not respond. The prompt must not go to another provider in that case.
    pub(super) async fn running_ollama(
        &self,
    ) -> Result<Option<(String, Option<ollama::Preferred>)>, CliError> {
        let Ok(Backend::Ollama(connection)) = self.backend("ollama") else {
            return Ok(None);
        };
        let address = connection.base_url.to_string();
        let late = self.settings.timeouts.get().connect;
        let busy = || {
            if !self.quiet {
                printer::say(&format!(
                    "Ollama at {address} accepts connections but does not respond yet; waiting up to {} s",
                    late.as_secs().max(1)
                ));
            }
        };
        let found = ollama::find_ollama(&connection, (OLLAMA_PATIENCE, late), busy).await;
        let found = found.map_err(|error| {
            CliError::new(
                ExitCode::Provider,
                format!("Ollama at {address} does not respond: {}", error.message),
            )
            .hint(
                "wait until it is idle, restart it, or choose another provider with `--model PROVIDER:NAME`",
            )
        })?;
        Ok(match found {
            Some(installed) => Some((address, ollama::preferred(&connection, &installed).await)),
            None => None,
        })
    }

    /// Applies the address of a trusted file to this provider. The only key sent there is the provider's own,
    /// and only if the address is on the same server.
    pub(super) fn with_address_of_file(self, provider: &str) -> Self {
        Self {
            address_of_file: true,
            ..self.with_given_address(provider)
        }
    }

    /// Whether an address in a file is the provider's own address.
    pub(super) fn is_at(&self, provider: &str, address: &str) -> Result<bool, CliError> {
        let unusable =
            |error: BaseUrlError| CliError::usage(format!("the address in the file: {error}"));
        let same = |ours: &BaseUrl, theirs: BaseUrl| ours.is_same(&theirs);
        match self.server_at(provider, None)? {
            Server::Ollama(url) => Ok(same(&url, BaseUrl::ollama(address).map_err(unusable)?)),
            Server::OpenAi(url) => Ok(same(&url, BaseUrl::openai(address).map_err(unusable)?)),
            Server::Embedded | Server::Scripted => Ok(true),
        }
    }

    /// Reports an unknown provider early.
    pub(super) fn check(&self, name: &ModelName) -> Result<(), CliError> {
        self.permit(name)?;
        self.backend(&name.provider).map(|_| ())
    }

    /// Locates the provider of this name.
    fn server(&self, name: &str) -> Result<Server, CliError> {
        self.server_at(name, self.given_address(name))
    }

    /// Locates the provider of this name, with this address if one is given.
    fn server_at(&self, name: &str, given: Option<&str>) -> Result<Server, CliError> {
        let entry = self.config.provider(name);
        let preset = openai::preset(name);
        let kind = entry.and_then(|entry| entry.kind);
        let unusable = |error: BaseUrlError| CliError::usage(error.to_string());
        let address = |environment: &dyn Fn() -> Option<String>| {
            given
                .map(str::to_owned)
                .or_else(|| entry?.base_url.clone())
                .or_else(environment)
        };
        match (name, kind) {
            ("embedded", None) => Ok(Server::Embedded),
            ("scripted", None) => Ok(Server::Scripted),
            ("ollama", None) | (_, Some(ProviderKind::Ollama)) => {
                let address = address(&|| paths::env_text("OLLAMA_HOST"));
                let url = BaseUrl::ollama(address.as_deref().unwrap_or_default());
                url.map(Server::Ollama).map_err(unusable)
            }
            _ if entry.is_some() || preset.is_some() => {
                let openai = || openai_env_url().filter(|_| name == "openai");
                let address = address(&openai)
                    .or_else(|| preset.map(|preset| preset.base_url.to_owned()))
                    .ok_or_else(|| {
                        CliError::usage(format!("provider `{name}` has no address"))
                            .hint(format!("set `base_url` under `[providers.{name}]`"))
                    })?;
                BaseUrl::openai(&address)
                    .map(Server::OpenAi)
                    .map_err(unusable)
            }
            _ => Err(unknown(name, self.config)),
        }
    }

    /// Connects to the provider of this name.
    pub(in crate::cli) fn backend(&self, name: &str) -> Result<Backend, CliError> {
        let entry = self.config.provider(name);
        match self.server(name)? {
            Server::Embedded => Ok(Backend::Embedded),
            Server::Scripted => Ok(Backend::Scripted),
            Server::Ollama(url) => {
                let connection = self.connection(name, entry, url, Some("OLLAMA_API_KEY"))?;
                Ok(Backend::Ollama(connection))
            }
            Server::OpenAi(url) => {
                let key_env = openai::preset(name).and_then(|preset| preset.key_env);
                let connection = self.connection(name, entry, url, key_env)?;
                Ok(Backend::OpenAi(connection))
            }
        }
    }

    /// Returns the preset of a provider if the connection goes to its official address.
    fn official(&self, provider: &str, connection: &Connection) -> Option<&'static Preset> {
        openai::preset(provider)
            .filter(|_| self.given_address(provider).is_none())
            .filter(|preset| connection.base_url.to_string() == preset.base_url)
    }

    /// Reports a missing key before the server rejects the call.
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

    /// Opens a model that is called later than the writer. Asks servers that list their models whether it
    /// exists, before any paid call. (Ollama is asked for every model.)
    pub(super) async fn open_beside(
        &self,
        name: &ModelName,
        window: &RunWindow,
        quiet: bool,
    ) -> Result<OpenModel, CliError> {
        let opened = self.open(name, window, quiet).await?;
        if matches!(self.backend(&name.provider)?, Backend::OpenAi(_))
            && let Err(error) = opened.model.info().await
            && error.class == ErrorClass::NotFound
        {
            return Err(self.meant(name, error));
        }
        Ok(opened)
    }

    /// Opens a model.
    pub(super) async fn open(
        &self,
        name: &ModelName,
        window: &RunWindow,
        quiet: bool,
    ) -> Result<OpenModel, CliError> {
        self.permit(name)?;
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
                self.ollama(name, wanted, connection, window, quiet).await
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
                options.stream = entry.and_then(|entry| entry.stream).unwrap_or(true);
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
                    in_cloud: false,
                    remote,
                    always_reasons: false,
                    why: None,
                })
            }
            Backend::Scripted => {
                let file = wanted.ok_or_else(|| {
                    CliError::usage("the scripted provider needs a file")
                        .hint("write `--provider scripted:FILE`")
                })?;
                let model = ScriptedModel::open(Path::new(&file))
                    .map_err(|error| CliError::usage(error.to_string()))?;
                model.skip(self.answered);
                Ok(OpenModel {
                    model: Arc::new(model),
                    local: true,
                    in_cloud: false,
                    remote: None,
                    always_reasons: false,
                    why: None,
                })
            }
            Backend::Embedded => self.embedded(wanted, quiet).await,
        }
    }

    /// Opens a model of an Ollama server, and sets the run's context window from its metadata.
    async fn ollama(
        &self,
        name: &ModelName,
        wanted: Option<String>,
        connection: Connection,
        window: &RunWindow,
        quiet: bool,
    ) -> Result<OpenModel, CliError> {
        let elsewhere = elsewhere(&connection);
        let (model, why) = if let Some(model) = wanted {
            (model, None)
        } else {
            let preferred = installed_model(&connection).await?;
            (preferred.name, Some(preferred.why))
        };
        if ollama::is_cloud(&model) {
            self.permit_remote(name, "ollama.com")?;
        }
        let id = ModelId {
            provider: name.provider.clone(),
            model,
        };
        let entry = self.config.provider(&name.provider);
        let mut options = OllamaOptions::new(id, connection);
        options.num_ctx = window.num_ctx.clone();
        options.keep_alive.clone_from(&self.settings.keep_alive);
        options.stream = entry.and_then(|entry| entry.stream).unwrap_or(true);
        let model = OllamaModel::new(options);
        let info = model
            .info()
            .await
            .map_err(|error| self.meant(name, error))?;
        if let Some(host) = &info.remote {
            self.permit_remote(name, host)?;
        } else if window.num_ctx.get().is_none() {
            window.decide(&info);
        } else if let (Some(wanted), Some(most)) = (self.settings.num_ctx, info.context_window)
            && wanted > most
            && !quiet
        {
            printer::say(&format!(
                "warning: num_ctx is {wanted}, but {} supports at most {most} tokens; Ollama uses {most}",
                model.id()
            ));
        }
        Ok(OpenModel {
            model: Arc::new(model),
            local: info.remote.is_none(),
            in_cloud: info.remote.is_some(),
            remote: info.remote.or(elsewhere),
            always_reasons: info.reasoning == Reasoning::Always,
            why,
        })
    }

    #[cfg(feature = "embedded")]
    async fn embedded(&self, wanted: Option<String>, quiet: bool) -> Result<OpenModel, CliError> {
        use reflect_embedded::weights::{DEFAULT_MODEL, ModelSpec};
        use reflect_embedded::{EmbeddedModel, EmbeddedOptions};
        let text = wanted.unwrap_or_else(|| DEFAULT_MODEL.to_owned());
        let spec: ModelSpec =
            text.parse()
                .map_err(|error: reflect_embedded::weights::SpecError| {
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
            in_cloud: false,
            remote: None,
            always_reasons: false,
            why: None,
        })
    }

    #[cfg(not(feature = "embedded"))]
    #[expect(clippy::unused_async, reason = "the same signature as with the model")]
    async fn embedded(&self, _: Option<String>, _: bool) -> Result<OpenModel, CliError> {
        Err(
            CliError::usage("this build of reflect has no embedded model").hint(
                "start Ollama, set a provider's key, pass `--base-url`, or build with the feature `embedded`",
            ),
        )
    }

    /// Returns the user's address if it applies to this provider.
    fn given_address(&self, provider: &str) -> Option<&str> {
        self.settings
            .base_url
            .as_deref()
            .filter(|_| self.at_given_address.as_deref() == Some(provider))
    }

    /// Creates a connection with the key that belongs to its address, and no other key.
    fn connection(
        &self,
        name: &str,
        entry: Option<&Provider>,
        base_url: BaseUrl,
        default_env: Option<&str>,
    ) -> Result<Connection, CliError> {
        let at_home = || match self.server_at(name, None) {
            Ok(Server::Ollama(url) | Server::OpenAi(url)) => {
                url.url().origin() == base_url.url().origin()
            }
            _ => false,
        };
        let key = if self.address_of_file && !at_home() {
            None
        } else {
            self.key(name, entry, default_env)?
        };
        let key = key
            .map(|key| {
                ApiKey::for_url(key.secret.expose_secret(), base_url.url().as_str())
                    .map_err(|error| CliError::usage(format!("{}: {error}", key.origin)))
            })
            .transpose()?;
        let mut connection = Connection::new(base_url).with_key(key);
        if connection.key.is_none() {
            connection.missing_key_hint =
                Some(self.without_key(name, entry, default_env, &connection));
        }
        connection.client = self.client.clone();
        connection.retries = self.retries;
        self.allowed(name, &connection)?;
        // An entry's headers belong to its own address.
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

    /// Returns the hint on why a provider gets no key, and how to set one.
    fn without_key(
        &self,
        name: &str,
        entry: Option<&Provider>,
        default_env: Option<&str>,
        connection: &Connection,
    ) -> String {
        let host = connection.base_url.url().host_str().unwrap_or_default();
        let variable = entry.and_then(|entry| entry.api_key_env.as_deref());
        if self.given_address(name).is_some() && !self.address_of_file {
            let withheld = variable
                .or(default_env)
                .filter(|name| paths::env_text(name).is_some());
            return match withheld {
                Some(other) => format!(
                    "{other} is not sent to the custom address {host}; set REFLECT_API_KEY for it"
                ),
                None => format!("no key was sent: set REFLECT_API_KEY to the key for {host}"),
            };
        }
        match (variable, default_env) {
            (Some(variable), _) => {
                format!(
                    "no key was sent: `api_key_env` of `{name}` names {variable}, which is not set"
                )
            }
            (None, Some(variable)) => format!("no key was sent: set {variable}"),
            (None, None) => format!(
                "no key was sent: set `api_key_env` or `api_key_cmd` under `[providers.{name}]`"
            ),
        }
    }

    /// Looks up the key for a provider's address, once. A missing key is cached too.
    fn key(
        &self,
        name: &str,
        entry: Option<&Provider>,
        default_env: Option<&str>,
    ) -> Result<Option<FoundKey>, CliError> {
        let mut keys = self.keys.lock();
        if let Some(found) = keys.get(name) {
            return Ok(found.clone());
        }
        let found = if self.given_address(name).is_some() && !self.address_of_file {
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

    /// Describes where the key of a connected provider was found; `None` if it has none.
    pub(super) fn key_origin(&self, name: &str) -> Option<String> {
        let keys = self.keys.lock();
        Some(keys.get(name)?.as_ref()?.origin.clone())
    }

    /// Rejects servers on other machines if `--offline` is set.
    fn allowed(&self, provider: &str, connection: &Connection) -> Result<(), CliError> {
        if self.settings.offline == Some(true) && !connection.base_url.is_loopback() {
            return Err(CliError::usage(format!(
                "`{provider}` is at {}, which --offline forbids",
                connection.base_url
            ))
            .hint("remove `--offline`, or use Ollama or the embedded model"));
        }
        Ok(())
    }
}

/// Returns the address of a server on another machine.
fn elsewhere(connection: &Connection) -> Option<String> {
    (!connection.base_url.is_loopback()).then(|| connection.base_url.to_string())
}

/// Returns the address in `OpenAI`'s variable, or in the older one that many tools still use.
pub(super) fn openai_env_url() -> Option<String> {
    paths::env_text("OPENAI_BASE_URL").or_else(|| paths::env_text("OPENAI_API_BASE"))
}

/// Picks a model of an Ollama server if none is named.
async fn installed_model(connection: &Connection) -> Result<ollama::Preferred, CliError> {
    let installed = ollama::list_installed(connection).await?;
    let preferred = ollama::preferred(connection, &installed).await;
    preferred.ok_or_else(|| {
        CliError::new(
            ExitCode::Provider,
            format!("Ollama at {} has no models", connection.base_url),
        )
        .hint("download one, for example with `ollama pull qwen3:4b`")
    })
}

/// Returns the model of a server that has only one, as local servers often do.
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
        0 => format!("the server at {address} has no models"),
        number => format!("the server at {address} has {number} models"),
    };
    names.truncate(8);
    let hint = if names.is_empty() {
        "choose one with `--model NAME`".to_owned()
    } else {
        format!("choose one with `--model NAME`: {}", names.join(", "))
    };
    Err(CliError::usage(message).hint(hint))
}

fn no_key(provider: &str, variable: &str) -> CliError {
    CliError::new(ExitCode::Provider, format!("no key for `{provider}`")).hint(format!(
        "set {variable}, or `api_key_cmd` under `[providers.{provider}]` in the configuration"
    ))
}
