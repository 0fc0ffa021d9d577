//! `reflect models`: lists models, and downloads embedded ones.

use std::fmt::Write as _;

use console::{Alignment, pad_str};
use serde::Serialize;

use crate::cli::args::{GlobalArgs, ModelsArgs, ModelsCommand};
use crate::cli::error::CliError;
use crate::cli::models::{Backend, Providers};
use crate::cli::{printer, settings};
use crate::config::Settings;
use crate::model::{ListedModel, ModelError, ollama, openai};
use crate::types::ExitCode;

/// An available model, as `models list --json` prints it.
#[derive(Debug, Serialize)]
struct Available {
    /// The provider's name.
    provider: String,
    /// The model's name at the provider.
    model: String,
    /// The context window in tokens, if known.
    context_window: Option<u64>,
    /// The size on disk in bytes, if known.
    size: Option<u64>,
    /// The host that runs it, if it is not the provider's server.
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<String>,
    /// Parameters and quantization, if known.
    details: Option<String>,
    /// False for an embedded model that is not downloaded yet.
    fetched: bool,
}

/// Runs one of the models commands.
pub(in crate::cli) async fn run(
    args: &ModelsArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    match &args.command {
        None => list(global, None, None, false).await,
        Some(ModelsCommand::List {
            provider,
            base_url,
            json,
        }) => list(global, provider.as_deref(), base_url.as_deref(), *json).await,
        Some(ModelsCommand::Pull { model }) => pull(global, model.as_deref()).await,
        Some(ModelsCommand::Path) => path(),
    }
}

async fn list(
    global: &GlobalArgs,
    provider: Option<&str>,
    base_url: Option<&str>,
    json: bool,
) -> Result<ExitCode, CliError> {
    let config = settings::load(global)?;
    let flags = Settings {
        profile: global.profile.clone(),
        base_url: base_url.map(str::to_owned),
        ..Settings::default()
    };
    let settings = config.resolve(&flags, None)?.settings;
    let mut providers = Providers::new(&config, &settings);
    let asked = provider
        .map(str::to_owned)
        .or_else(|| settings.provider.clone());
    let asked = asked.or_else(|| base_url.map(|_| "openai".to_owned()));
    let mut found = Vec::new();
    if let Some(name) = asked {
        if base_url.is_some() {
            providers = providers.with_given_address(&name);
        }
        found = of_provider(&providers, &name).await?;
    } else {
        // Without a provider, list local models and those of the providers in the user file.
        match of_provider(&providers, "ollama").await {
            Ok(models) => {
                if models.is_empty() && !global.quiet {
                    printer::say(
                        "ollama: no models installed; download one, for example with `ollama pull qwen3:4b`",
                    );
                }
                found.extend(models);
            }
            Err(error) => unlisted("ollama", &error, global),
        }
        found.extend(embedded()?);
        for name in config.providers().keys() {
            match of_provider(&providers, name).await {
                Ok(models) => found.extend(models),
                Err(error) => unlisted(name, &error, global),
            }
        }
    }
    printer::print(&if json {
        printer::json(&found)?
    } else {
        table(&found)
    })?;
    Ok(ExitCode::Success)
}

/// Reports on one line why the models of a provider are not in the list.
fn unlisted(provider: &str, error: &CliError, global: &GlobalArgs) {
    if global.quiet {
        return;
    }
    let parts: Vec<&str> = [Some(error.message.as_str()), error.hint.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    printer::say(&format!("{provider}: {}", parts.join("; ")));
}

async fn of_provider(providers: &Providers<'_>, name: &str) -> Result<Vec<Available>, CliError> {
    let listed: Result<Vec<ListedModel>, ModelError> = match providers.backend(name)? {
        Backend::Ollama(connection) => ollama::list_installed(&connection).await,
        Backend::OpenAi(connection) => {
            providers.check_key(name, &connection)?;
            openai::list_models(&connection).await
        }
        Backend::Embedded => return embedded(),
        Backend::Scripted => {
            return Err(CliError::usage("the scripted provider cannot list models"));
        }
    };
    Ok(listed?
        .into_iter()
        .map(|model| Available {
            provider: name.to_owned(),
            model: model.name,
            context_window: model.context_window,
            size: model.size.filter(|_| model.remote.is_none()),
            remote: model.remote,
            details: model.details,
            fetched: true,
        })
        .collect())
}

fn table(models: &[Available]) -> String {
    let name = |model: &Available| format!("{}:{}", model.provider, model.model);
    let width = models
        .iter()
        .map(|model| name(model).chars().count())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for model in models {
        let mut about = Vec::new();
        about.extend(model.remote.as_ref().map(|host| format!("runs at {host}")));
        about.extend(model.details.clone());
        about.extend(model.size.map(|bytes| format!("{} MB", bytes / 1_000_000)));
        about.extend(
            model
                .context_window
                .map(|tokens| format!("{tokens} tokens")),
        );
        about.extend((!model.fetched).then(|| "not downloaded".to_owned()));
        let name = name(model);
        let name = pad_str(&name, width, Alignment::Left, None);
        let line = format!("{name}  {}", about.join(", "));
        let _ = writeln!(out, "{}", printer::without_controls(line.trim_end()));
    }
    out
}

#[cfg(feature = "embedded")]
fn embedded() -> Result<Vec<Available>, CliError> {
    use reflect_embedded::weights::{ModelSpec, NAMED, NamedModel};
    let available = |spec: &ModelSpec, size, fetched| Available {
        provider: "embedded".to_owned(),
        model: spec.to_string(),
        context_window: None,
        size,
        remote: None,
        details: spec.licence().map(str::to_owned),
        fetched,
    };
    let local = crate::cli::models::local()?;
    let mut all: Vec<Available> = local
        .iter()
        .map(|model| available(&model.spec, Some(model.bytes), true))
        .collect();
    let named = NAMED.iter().map(NamedModel::spec);
    for spec in std::iter::once(ModelSpec::Default).chain(named) {
        if !local.iter().any(|model| model.spec == spec) {
            all.push(available(&spec, spec.bytes(), false));
        }
    }
    Ok(all)
}

#[cfg(feature = "embedded")]
async fn pull(global: &GlobalArgs, model: Option<&str>) -> Result<ExitCode, CliError> {
    use reflect_embedded::weights::{DEFAULT_MODEL, ModelSpec, SpecError};
    let config = settings::load(global)?;
    let settings = config.resolve(&Settings::default(), None)?.settings;
    let spec: ModelSpec = model
        .unwrap_or(DEFAULT_MODEL)
        .parse()
        .map_err(|error: SpecError| CliError::usage(error.to_string()))?;
    let offline = settings.offline == Some(true);
    let path = crate::cli::models::fetch(&spec, offline, global.quiet).await?;
    printer::print(&format!("{}\n", path.display()))?;
    Ok(ExitCode::Success)
}

#[cfg(feature = "embedded")]
fn path() -> Result<ExitCode, CliError> {
    let path = crate::cli::paths::models()?;
    printer::print(&format!("{}\n", path.display()))?;
    Ok(ExitCode::Success)
}

#[cfg(not(feature = "embedded"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature as with the feature"
)]
fn embedded() -> Result<Vec<Available>, CliError> {
    Ok(Vec::new())
}

#[cfg(not(feature = "embedded"))]
#[expect(
    clippy::unused_async,
    reason = "the same signature as with the feature"
)]
async fn pull(_: &GlobalArgs, _: Option<&str>) -> Result<ExitCode, CliError> {
    Err(CliError::usage(
        "this build of reflect has no embedded model",
    ))
}

#[cfg(not(feature = "embedded"))]
fn path() -> Result<ExitCode, CliError> {
    Err(CliError::usage(
        "this build of reflect has no embedded model",
    ))
}
