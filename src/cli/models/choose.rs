//! Which model is used: what flags, environment or configuration say; else a running Ollama with a model;
//! else a provider whose key is set; else the embedded one.

use super::connect::{Providers, openai_env_url};
use super::name::{ModelName, Written};
use crate::cli::error::CliError;
use crate::cli::paths;
use crate::cli::settings::Plan;
use crate::config::{Config, Origin};
use crate::model::openai;

/// The providers that are tried by their keys, and the model that is taken of each: good at writing and
/// not dear; names that the providers keep up to date where they have such.
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

const CHANGE: &str = "choose another with `--model PROVIDER:MODEL`";

/// A model, and why it was chosen, in words that follow its name.
pub(super) struct Chosen {
    pub(super) name: ModelName,
    pub(super) why: String,
    /// Whether the address that the user gives (`base_url`) is meant for its provider.
    pub(super) at_given_address: bool,
}

/// The default model of a provider that has one.
pub(super) fn default_model(provider: &str) -> Option<&'static str> {
    CLOUD
        .iter()
        .find(|(name, _)| *name == provider)
        .map(|(_, model)| *model)
}

/// The model that writes.
pub(super) async fn writer(plan: &Plan, providers: &Providers<'_>) -> Result<Chosen, CliError> {
    match said(plan)? {
        Said::Provider(chosen) => Ok(chosen),
        Said::Model(model) => found(plan, providers, model).await,
    }
}

/// What somebody says about the model that writes.
pub(super) enum Said {
    /// Of which provider it is.
    Provider(Chosen),
    /// Nothing about its provider, but perhaps its name.
    Model(Option<String>),
}

/// What flags, environment and configuration say about the model that writes. Asks nobody.
pub(super) fn said(plan: &Plan) -> Result<Said, CliError> {
    let settings = plan.settings();
    let rank = |key| plan.resolved.origin(key).map_or(0, Origin::rank);
    let mut wanted = Written {
        provider: None,
        model: None,
    };
    let mut named = 0;
    if let Some(provider) = &settings.provider {
        wanted = Written::provider(provider, &plan.config)?;
        named = rank("provider");
    }
    // Who names a provider means it, whatever model a lower layer may have set: it may be a provider that
    // the prompt must not go to.
    if let Some(model) = settings.model.as_deref().filter(|_| rank("model") >= named) {
        let written = Written::read(model, &plan.config);
        if written.provider.is_some() {
            named = rank("model");
        }
        wanted = Written {
            provider: written.provider.or(wanted.provider),
            model: written.model,
        };
    }
    let said_by = ["model", "provider", "base_url"]
        .iter()
        .filter_map(|key| plan.resolved.origin(key))
        .filter(|origin| !matches!(origin, Origin::BuiltIn))
        .max_by_key(|origin| origin.rank());
    // An address in a file is for the provider that is named there, too; one that is given for this
    // session is for whatever provider this session uses.
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
                || format!("as OPENAI_BASE_URL says; {CHANGE}"),
                |origin| format!("as {origin} says"),
            );
            Ok(Said::Provider(Chosen {
                name: ModelName {
                    provider,
                    model: wanted.model,
                },
                why,
                at_given_address: given,
            }))
        }
        None => Ok(Said::Model(wanted.model)),
    }
}

/// The model that writes, where a file names one without its provider: of the provider that is set, or that is
/// there.
pub(super) async fn writer_named(
    plan: &Plan,
    providers: &Providers<'_>,
    model: Option<String>,
) -> Result<Chosen, CliError> {
    let Some(model) = model else {
        return writer(plan, providers).await;
    };
    if plan.settings().provider.is_none() && plan.settings().base_url.is_none() {
        return found(plan, providers, Some(model)).await;
    }
    let chosen = writer(plan, providers).await?;
    Ok(Chosen {
        name: ModelName {
            model: Some(model),
            ..chosen.name
        },
        ..chosen
    })
}

/// The model that judges, if it is another one.
pub(super) fn judge(
    plan: &Plan,
    providers: &Providers<'_>,
    writer: &ModelName,
) -> Result<Option<ModelName>, CliError> {
    other(
        plan,
        providers,
        writer,
        plan.settings().judge_model.as_deref(),
    )
}

/// The model that takes over where the writer makes no progress any more, if there is one.
pub(super) fn stronger(
    plan: &Plan,
    providers: &Providers<'_>,
    writer: &ModelName,
) -> Result<Option<ModelName>, CliError> {
    other(
        plan,
        providers,
        writer,
        plan.settings().stronger_model.as_deref(),
    )
}

/// A model that is used beside the writer, if somebody wrote one.
fn other(
    plan: &Plan,
    providers: &Providers<'_>,
    writer: &ModelName,
    text: Option<&str>,
) -> Result<Option<ModelName>, CliError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let name = beside(text, &plan.config, writer);
    providers.check(&name)?;
    Ok(Some(name))
}

/// The model that somebody wrote; without a provider, one of the same provider as another.
pub(super) fn beside(text: &str, config: &Config, other: &ModelName) -> ModelName {
    let written = Written::read(text, config);
    ModelName {
        provider: written.provider.unwrap_or_else(|| other.provider.clone()),
        model: written.model,
    }
}

/// What is there, where nobody says which provider is meant.
async fn found(
    plan: &Plan,
    providers: &Providers<'_>,
    model: Option<String>,
) -> Result<Chosen, CliError> {
    let change = if model.is_some() {
        "name another provider with `--model PROVIDER:MODEL`"
    } else {
        CHANGE
    };
    if let Some((address, installed)) = providers.running_ollama().await {
        let name = model.clone().or(installed);
        if let Some(name) = name {
            return Ok(Chosen {
                name: ModelName {
                    provider: "ollama".to_owned(),
                    model: Some(name),
                },
                why: format!("since Ollama runs at {address}; {change}"),
                at_given_address: false,
            });
        }
    }
    if plan.settings().offline != Some(true) {
        for (provider, _) in CLOUD {
            let variable = openai::preset(provider).and_then(|preset| preset.key_env);
            let Some(variable) = variable.filter(|name| paths::env_text(name).is_some()) else {
                continue;
            };
            return Ok(Chosen {
                name: ModelName {
                    provider: provider.to_owned(),
                    model,
                },
                why: format!("since {variable} is set; {change}"),
                at_given_address: false,
            });
        }
    }
    if let Some(model) = model {
        return Err(CliError::usage(format!(
            "it is not known which provider has the model `{model}`"
        ))
        .hint(
            "no Ollama is running and no provider's key is set; say which one is meant, for \
             instance `--model openai:NAME`, or give `--base-url`",
        ));
    }
    Ok(Chosen {
        name: ModelName::default_of("embedded"),
        why: format!(
            "since no Ollama with a model is running and no provider's key is set; it is tiny, good for \
             trying things out and not for real drafts; {change}"
        ),
        at_given_address: false,
    })
}
