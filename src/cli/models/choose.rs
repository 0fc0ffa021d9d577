//! The choice of the model: from flags, environment or configuration; else a running Ollama that has a model;
//! else a provider whose key is set; else the embedded model.

use super::connect::{Providers, openai_env_url};
use super::name::{ModelName, Written, misspelt_provider};
use super::trust::NamedBy;
use crate::cli::error::CliError;
use crate::cli::paths;
use crate::cli::settings::Plan;
use crate::config::{Config, Origin};
use crate::model::openai;

/// The providers that are tried by their keys, with the default model of each: good at writing and
/// inexpensive. Uses the provider's evergreen name if there is one.
const CLOUD: [(&str, &str); 8] = [
    ("openai", "gpt-5-mini"),
    ("anthropic", "claude-sonnet-4-5"),
    ("gemini", "gemini-flash-latest"),
    ("openrouter", "openrouter/auto"),
    ("groq", "llama-3.3-70b-versatile"),
    ("mistral", "mistral-medium-latest"),
    ("deepseek", "deepseek-chat"),
    ("together", "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
];

const CHANGE: &str = "choose another with `--model PROVIDER:NAME`";

/// A model and the reason for its choice, phrased to follow its name.
pub(super) struct Chosen {
    pub(super) name: ModelName,
    pub(super) why: String,
    /// Whether the user's `base_url` applies to its provider.
    pub(super) at_given_address: bool,
}

/// Returns the default model of a provider, if it has one.
pub(super) fn default_model(provider: &str) -> Option<&'static str> {
    CLOUD
        .iter()
        .find(|(name, _)| *name == provider)
        .map(|(_, model)| *model)
}

/// Chooses the writer.
pub(super) async fn writer(plan: &Plan, providers: &Providers<'_>) -> Result<Chosen, CliError> {
    let chosen = match said(plan)? {
        Said::Provider(chosen) => chosen,
        Said::Model(wanted) => found(plan, providers, wanted).await?,
    };
    // Other models may use its provider, whatever `base_url` is.
    providers.permit(&chosen.name)?;
    Ok(chosen)
}

/// What the settings say about the writer.
pub(super) enum Said {
    /// The provider, and perhaps the model.
    Provider(Chosen),
    /// No provider, but perhaps the model's name.
    Model(Written),
}

/// Reads the writer from flags, environment and configuration, without network calls.
pub(super) fn said(plan: &Plan) -> Result<Said, CliError> {
    let settings = plan.settings();
    let rank = |key| plan.resolved.origin(key).map_or(0, Origin::rank);
    let mut wanted = Written {
        provider: None,
        model: None,
        by: NamedBy::User,
    };
    let mut named = 0;
    if let Some(provider) = &settings.provider {
        wanted = Written::provider(provider, NamedBy::User, &plan.config)?;
        named = rank("provider");
    }
    // A provider overrides a model from a lower layer: the prompt may not be meant for that model's provider.
    if let Some(model) = settings.model.as_deref().filter(|_| rank("model") >= named) {
        let by = NamedBy::setting(plan.resolved.origin("model"), &plan.config);
        let written = Written::read(model, by, &plan.config);
        if written.provider.is_some() {
            named = rank("model");
        }
        wanted = Written {
            provider: written.provider.or(wanted.provider),
            ..written
        };
    }
    let said_by = ["model", "provider", "base_url"]
        .iter()
        .filter_map(|key| plan.resolved.origin(key))
        .filter(|origin| !matches!(origin, Origin::BuiltIn))
        .max_by_key(|origin| origin.rank());
    // An address in a file applies to the provider named there. An address of this session applies to the
    // provider that the session uses.
    let for_session = plan
        .resolved
        .origin("base_url")
        .is_some_and(Origin::is_of_session);
    let given = settings.base_url.is_some() && (for_session || rank("base_url") >= named);
    if wanted.provider.is_none() && (given || openai_env_url().is_some()) {
        wanted.provider = Some("openai".to_owned());
    }
    match wanted.provider {
        Some(provider) => {
            let why = said_by.map_or_else(
                || format!("from OPENAI_BASE_URL; {CHANGE}"),
                |origin| format!("from {origin}"),
            );
            Ok(Said::Provider(Chosen {
                name: ModelName {
                    provider,
                    model: wanted.model,
                    by: wanted.by,
                },
                why,
                at_given_address: given,
            }))
        }
        None => Ok(Said::Model(wanted)),
    }
}

/// Chooses the writer if a file names a model without its provider: the provider that is set, or one that is
/// found.
pub(super) async fn writer_named(
    plan: &Plan,
    providers: &Providers<'_>,
    wanted: Written,
) -> Result<Chosen, CliError> {
    if wanted.model.is_none() {
        return writer(plan, providers).await;
    }
    if plan.settings().provider.is_none() && plan.settings().base_url.is_none() {
        return found(plan, providers, wanted).await;
    }
    let chosen = writer(plan, providers).await?;
    Ok(Chosen {
        name: ModelName {
            model: wanted.model,
            by: wanted.by,
            ..chosen.name
        },
        ..chosen
    })
}

/// Returns the judge, if it is another model.
pub(super) fn judge(
    plan: &Plan,
    providers: &Providers<'_>,
    writer: &ModelName,
) -> Result<Option<ModelName>, CliError> {
    let text = plan.settings().judge_model.as_deref();
    other(plan, providers, writer, text, "judge_model")
}

/// Returns the model that takes over if the writer stops making progress.
pub(super) fn stronger(
    plan: &Plan,
    providers: &Providers<'_>,
    writer: &ModelName,
) -> Result<Option<ModelName>, CliError> {
    let text = plan.settings().stronger_model.as_deref();
    other(plan, providers, writer, text, "stronger_model")
}

/// Returns a model used next to the writer, if one is set.
fn other(
    plan: &Plan,
    providers: &Providers<'_>,
    writer: &ModelName,
    text: Option<&str>,
    key: &str,
) -> Result<Option<ModelName>, CliError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let by = NamedBy::setting(plan.resolved.origin(key), &plan.config);
    let name = beside(text, by, &plan.config, writer);
    providers.check(&name)?;
    Ok(Some(name))
}

/// Parses a model name. Without a provider, it uses that of another model.
pub(super) fn beside(text: &str, by: NamedBy, config: &Config, other: &ModelName) -> ModelName {
    let written = Written::read(text, by, config);
    ModelName {
        provider: written.provider.unwrap_or_else(|| other.provider.clone()),
        model: written.model,
        by: written.by,
    }
}

/// Finds an available provider if the settings name none.
async fn found(
    plan: &Plan,
    providers: &Providers<'_>,
    wanted: Written,
) -> Result<Chosen, CliError> {
    let Written { model, by, .. } = wanted;
    let change = if model.is_some() {
        "choose another provider with `--model PROVIDER:NAME`"
    } else {
        CHANGE
    };
    let chosen = |provider: &str, model: Option<String>, why: String| {
        providers.accept(provider);
        Chosen {
            name: ModelName {
                by: by.clone(),
                ..ModelName::found(provider, model)
            },
            why: format!("{why}; {change}"),
            at_given_address: false,
        }
    };
    let mut no_ollama = "Ollama is not running".to_owned();
    if let Some((address, installed)) = providers.running_ollama().await? {
        if model.is_some() {
            let why = format!("Ollama runs at {address}");
            return Ok(chosen("ollama", model, why));
        }
        if let Some(installed) = installed {
            let why = format!("{} (Ollama at {address})", installed.why);
            return Ok(chosen("ollama", Some(installed.name), why));
        }
        no_ollama = format!("Ollama at {address} has no models (`ollama pull qwen3:4b`)");
    }
    if let Some(meant) = misspelt_provider(model.as_deref(), &plan.config) {
        let model = model.unwrap_or_default();
        return Err(
            CliError::usage(format!("no known provider has the model `{model}`"))
                .hint(format!("did you mean `{meant}`?")),
        );
    }
    if plan.settings().offline != Some(true) {
        for (provider, _) in CLOUD {
            let variable = openai::preset(provider).and_then(|preset| preset.key_env);
            let Some(variable) = variable.filter(|name| paths::env_text(name).is_some()) else {
                continue;
            };
            return Ok(chosen(provider, model, format!("{variable} is set")));
        }
    }
    if let Some(model) = model {
        return Err(CliError::usage(format!(
            "unknown provider of the model `{model}`"
        ))
        .hint(format!(
            "{no_ollama}, and no provider's key is set; name the provider, for example `--model openai:NAME`, \
             or pass `--base-url`"
        )));
    }
    let why = format!(
        "{no_ollama}, and no provider's key is set; a tiny model for trying reflect, not for real drafts"
    );
    Ok(chosen("embedded", None, why))
}
