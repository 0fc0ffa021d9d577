use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a model reasons before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Think {
    /// The default of the model or server. For a reply with a JSON Schema, reasoning is turned off if the server
    /// supports that.
    #[default]
    Auto,
    /// On.
    On,
    /// Off.
    Off,
    /// Low effort.
    Low,
    /// Medium effort.
    Medium,
    /// High effort.
    High,
}

impl Think {
    /// Whether reasoning is requested.
    pub fn is_requested(self) -> bool {
        !matches!(self, Self::Auto | Self::Off)
    }
}
