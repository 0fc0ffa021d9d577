use serde_json::Value;

use super::part::Part;
use super::template::Names;
use super::world::ModelChoice;
use crate::source::SourceError;

/// `settings:` of a workflow, as far as it is ours.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    /// The model of every call that names none.
    llm: ModelChoice,
}

impl Settings {
    /// Reads them. Settings of other tools' parts are left alone.
    pub(super) fn read(part: &Part) -> Result<Self, SourceError> {
        if !part.value().is_object() {
            return Err(part.wanted("an object"));
        }
        let Some(llm) = part.get("llm") else {
            return Ok(Self::default());
        };
        llm.check_keys(&[
            "provider",
            "model",
            "default_model",
            "api_base",
            "base_url",
            "temperature",
            "max_tokens",
            "timeout",
        ])?;
        let text = |key: &str| {
            llm.get(key)
                .map(|part| part.text().map(str::to_owned))
                .transpose()
        };
        Ok(Self {
            llm: ModelChoice {
                provider: text("provider")?,
                model: text("model")?.or(text("default_model")?),
                api_base: text("api_base")?.or(text("base_url")?),
                ..ModelChoice::default()
            },
        })
    }

    /// What a call wants, with what it leaves open.
    pub(super) fn complete(&self, choice: ModelChoice) -> ModelChoice {
        ModelChoice {
            provider: choice.provider.or_else(|| self.llm.provider.clone()),
            model: choice.model.or_else(|| self.llm.model.clone()),
            api_base: choice.api_base.or_else(|| self.llm.api_base.clone()),
            ..choice
        }
    }
}

/// What a call wants, with what the state says of models, as the reference has it.
pub(super) fn from_state(choice: ModelChoice, names: &Names) -> ModelChoice {
    let text = |key: &str| {
        let found = names.state.get(key).and_then(Value::as_str);
        found.map(str::to_owned)
    };
    if choice.model.is_some() {
        return choice;
    }
    ModelChoice {
        model: text("llm_model"),
        provider: choice.provider.clone().or_else(|| text("llm_provider")),
        ..choice
    }
}
