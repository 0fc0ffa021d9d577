use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a model reasons before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Think {
    /// The default of the model, or of the server. A reply under a JSON Schema does without reasoning, where the
    /// server can switch it off.
    #[default]
    Auto,
    /// With reasoning.
    On,
    /// Without.
    Off,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

impl Think {
    /// Whether reasoning is requested.
    pub fn is_requested(self) -> bool {
        !matches!(self, Self::Auto | Self::Off)
    }
}
