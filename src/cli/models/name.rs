use std::fmt;

use super::trust::NamedBy;
use crate::cli::error::CliError;
use crate::config::Config;
use crate::model::openai;
use crate::source;

/// A resolved model: a provider and, unless it has a default, its name for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct ModelName {
    pub(in crate::cli) provider: String,
    pub(in crate::cli) model: Option<String>,
    /// Who named it.
    pub(in crate::cli) by: NamedBy,
}

impl ModelName {
    /// Creates the name of a model that was found, not named.
    pub(super) fn found(provider: &str, model: Option<String>) -> Self {
        Self {
            provider: provider.to_owned(),
            model,
            by: NamedBy::User,
        }
    }

    /// Whether both are the same model, whoever named them.
    pub(super) fn is(&self, other: &Self) -> bool {
        (&self.provider, &self.model) == (&other.provider, &other.model)
    }
}

impl ModelName {
    /// Whether the model may be able to judge. False only for models that are known not to.
    pub(super) fn can_judge(&self) -> bool {
        self.provider != "embedded" || embedded_can_judge(self.model.as_deref())
    }
}

#[cfg(feature = "embedded")]
fn embedded_can_judge(model: Option<&str>) -> bool {
    use reflect_embedded::weights::{DEFAULT_MODEL, ModelSpec};
    let spec = model.unwrap_or(DEFAULT_MODEL).parse::<ModelSpec>();
    spec.map_or(true, |spec| spec.can_judge())
}

#[cfg(not(feature = "embedded"))]
fn embedded_can_judge(_: Option<&str>) -> bool {
    true
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = self.model.as_deref().unwrap_or_default();
        write!(f, "{}:{model}", self.provider)
    }
}

/// A model as someone wrote it, with or without a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) by: NamedBy,
}

impl Written {
    /// Parses `PROVIDER:MODEL`, `MODEL` or `PROVIDER:`. A colon is part of the model name, as in `qwen3:8b`,
    /// unless a provider precedes it. The value of an alias counts as named by the user.
    pub(super) fn read(text: &str, by: NamedBy, config: &Config) -> Self {
        let (text, by) = match config.aliases().get(text) {
            Some(model) => (model.as_str(), NamedBy::User),
            None => (text, by),
        };
        let text = text.trim();
        let named = |provider: Option<&str>, model: &str| Self {
            provider: provider.map(str::to_owned),
            model: Some(model.to_owned()).filter(|model| !model.is_empty()),
            by: by.clone(),
        };
        if text.starts_with("hf:") || text.to_ascii_lowercase().ends_with(".gguf") {
            let model = text.strip_prefix("embedded:").unwrap_or(text);
            return named(Some("embedded"), model);
        }
        match text.split_once(':') {
            Some((provider, model)) if is_known(provider, config) => named(Some(provider), model),
            _ => named(None, text),
        }
    }

    /// Parses a provider; `scripted:FILE` also names its file.
    pub(super) fn provider(text: &str, by: NamedBy, config: &Config) -> Result<Self, CliError> {
        let text = text.trim();
        let (provider, model) = match text.split_once(':') {
            Some((provider, model)) => (provider, Some(model.to_owned())),
            None => (text, None),
        };
        if !is_known(provider, config) {
            return Err(unknown(provider, config));
        }
        Ok(Self {
            provider: Some(provider.to_owned()),
            model,
            by,
        })
    }
}

/// Creates the error for an unknown provider, with a suggestion.
pub(super) fn unknown(provider: &str, config: &Config) -> CliError {
    let known = known(config);
    let near = source::similar(provider, known.iter().map(String::as_str));
    let hint = near.map_or_else(
        || {
            let names = source::list(known.iter().map(String::as_str));
            format!("known providers: {names}")
        },
        |near| format!("did you mean `{near}`?"),
    );
    CliError::usage(format!("unknown provider `{provider}`")).hint(hint)
}

/// Corrects a model name that starts with a misspelt provider; `None` if it does not. Never suggests Ollama:
/// its model names contain colons, and some resemble its name.
pub(super) fn misspelt_provider(model: Option<&str>, config: &Config) -> Option<String> {
    let (provider, model) = model?.split_once(':')?;
    let known = known(config);
    let near = source::similar(provider, known.iter().map(String::as_str))?;
    (near != "ollama").then(|| format!("{near}:{model}"))
}

/// Returns the names of all providers.
pub(in crate::cli) fn known(config: &Config) -> Vec<String> {
    let own = ["ollama", "embedded", "scripted"].map(str::to_owned);
    let presets = openai::PRESETS.iter().map(|preset| preset.name.to_owned());
    let mut known: Vec<String> = own.into_iter().chain(presets).collect();
    known.extend(config.providers().keys().cloned());
    known.dedup();
    known
}

/// Whether a provider of this name exists.
pub(super) fn is_known(provider: &str, config: &Config) -> bool {
    known(config).iter().any(|known| known == provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_belongs_to_the_model_unless_a_provider_precedes_it() {
        let config = Config::default();
        for (text, provider, model) in [
            ("qwen3", None, Some("qwen3")),
            ("qwen3:8b", None, Some("qwen3:8b")),
            ("ollama:qwen3:8b", Some("ollama"), Some("qwen3:8b")),
            ("openai:gpt-5-mini", Some("openai"), Some("gpt-5-mini")),
            ("groq:", Some("groq"), None),
            ("hf:a/b/c.gguf", Some("embedded"), Some("hf:a/b/c.gguf")),
            ("./my.GGUF", Some("embedded"), Some("./my.GGUF")),
            ("embedded:x.gguf", Some("embedded"), Some("x.gguf")),
            ("scripted:demo.toml", Some("scripted"), Some("demo.toml")),
        ] {
            let written = Written::read(text, NamedBy::User, &config);
            assert_eq!(
                (written.provider.as_deref(), written.model.as_deref()),
                (provider, model),
                "{text}"
            );
        }
    }

    #[test]
    fn an_unknown_provider_is_an_error_with_a_suggestion() {
        let error = Written::provider("olama", NamedBy::User, &Config::default()).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("did you mean `ollama`?"));
    }
}
