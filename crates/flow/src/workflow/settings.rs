use serde_json::Value;

use super::part::Part;
use super::template::Names;
use super::world::ModelChoice;
use crate::model::Sampling;
use crate::source::SourceError;

/// The supported keys of a workflow's `settings:`.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    /// The default model of calls, and their time limit.
    llm: ModelChoice,
    /// The default sampling settings of calls that write. Judges ignore them, because their
    /// verdicts should be repeatable.
    sampling: Sampling,
}

impl Settings {
    /// Parses the settings. Ignores those of other tools.
    pub(super) fn read(part: &Part) -> Result<Self, SourceError> {
        if !part.value().is_object() {
            return Err(part.expected("an object"));
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
        let text = |key| llm.text_at(key);
        Ok(Self {
            llm: ModelChoice {
                provider: text("provider")?,
                model: text("model")?.or(text("default_model")?),
                api_base: text("api_base")?.or(text("base_url")?),
                timeout: llm.get("timeout").map(|part| part.time()).transpose()?,
                ..ModelChoice::default()
            },
            sampling: Sampling {
                temperature: llm
                    .get("temperature")
                    .map(|part| part.number(0.0, 2.0))
                    .transpose()?,
                max_tokens: llm.get("max_tokens").map(|part| part.count()).transpose()?,
                ..Sampling::default()
            },
        })
    }

    /// Fills in what a call leaves open: from the state's `llm_model` and `llm_provider` first,
    /// then from the file's settings.
    pub(super) fn complete(&self, choice: ModelChoice, names: &Names) -> ModelChoice {
        let choice = from_state(choice, names);
        ModelChoice {
            provider: choice.provider.or_else(|| self.llm.provider.clone()),
            model: choice.model.or_else(|| self.llm.model.clone()),
            api_base: choice.api_base.or_else(|| self.llm.api_base.clone()),
            timeout: choice.timeout.or(self.llm.timeout),
            ..choice
        }
    }

    /// Fills in the sampling settings that a call leaves open.
    pub(super) fn sampling(&self, own: &Sampling) -> Sampling {
        own.or(&self.sampling)
    }
}

fn from_state(choice: ModelChoice, names: &Names) -> ModelChoice {
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
