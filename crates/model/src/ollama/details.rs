//! The response of `/api/show`.

use serde_json::Value;

use crate::Reasoning;

/// The details of a model that affect requests to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Details {
    /// The largest context window that the model supports, in tokens.
    pub(crate) context_window: Option<u64>,
    /// The window that the Modelfile sets (`PARAMETER num_ctx`), in tokens.
    pub(crate) num_ctx: Option<u64>,
    /// Whether the Modelfile sets `repeat_penalty`.
    pub(crate) sets_repeat_penalty: bool,
    /// Whether the Modelfile has a `SYSTEM` entry.
    pub(crate) sets_system: bool,
    /// Whether the Modelfile has `MESSAGE` entries.
    pub(crate) sets_messages: bool,
    /// Whether the model reasons; unknown on old servers.
    pub(crate) reasoning: Reasoning,
}

impl Details {
    /// Parses the response of `/api/show`. Missing or malformed fields count as unset.
    pub(crate) fn read(shown: &Value) -> Self {
        let context_window = shown
            .get("model_info")
            .and_then(Value::as_object)
            .and_then(|info| {
                info.iter()
                    .find(|(name, _)| name.ends_with(".context_length"))?
                    .1
                    .as_u64()
            });
        // Each line has a parameter's name, white space, and its value.
        let parameters = shown
            .get("parameters")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let parameter = |name: &str| {
            parameters.lines().find_map(|line| {
                let (found, value) = line.trim().split_once(char::is_whitespace)?;
                (found == name).then(|| value.trim())
            })
        };
        let family = shown
            .pointer("/details/family")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Self {
            context_window,
            num_ctx: parameter("num_ctx").and_then(|value| value.parse().ok()),
            sets_repeat_penalty: parameter("repeat_penalty").is_some(),
            sets_system: shown
                .get("system")
                .and_then(Value::as_str)
                .is_some_and(|text| !text.trim().is_empty()),
            sets_messages: shown
                .get("messages")
                .and_then(Value::as_array)
                .is_some_and(|messages| !messages.is_empty()),
            reasoning: match shown.get("capabilities").and_then(Value::as_array) {
                _ if matches!(family, "gptoss" | "gpt-oss") => Reasoning::Always,
                None => Reasoning::Unknown,
                Some(all) if all.iter().any(|it| it == "thinking") => Reasoning::Optional,
                Some(_) => Reasoning::Never,
            },
        }
    }

    /// The assumed details of a model that was not looked up, based on its name.
    pub(crate) fn by_name(model: &str) -> Self {
        Self {
            reasoning: if model.contains("gpt-oss") {
                Reasoning::Always
            } else {
                Reasoning::Unknown
            },
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_and_family_are_read() {
        let shown = json!({
            "capabilities": ["completion", "tools", "thinking"],
            "details": {"family": "gptoss"},
            "system": "Be brief.",
            "messages": [{"role": "user", "content": "Hi"}],
            "model_info": {"general.architecture": "gptoss", "gptoss.context_length": 131_072},
            "parameters": "num_ctx                        8192\nrepeat_penalty 1.2\nstop \"<|end|>\"",
        });
        assert_eq!(
            Details::read(&shown),
            Details {
                context_window: Some(131_072),
                num_ctx: Some(8192),
                sets_repeat_penalty: true,
                sets_system: true,
                sets_messages: true,
                reasoning: Reasoning::Always,
            }
        );
        assert_eq!(Details::read(&json!({"parameters": 7})), Details::default());
        let plain = Details::read(&json!({"capabilities": ["completion"]}));
        assert_eq!(plain.reasoning, Reasoning::Never);
        let thinks = Details::read(&json!({"capabilities": ["completion", "thinking"]}));
        assert_eq!(thinks.reasoning, Reasoning::Optional);
    }
}
