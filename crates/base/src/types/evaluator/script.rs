use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::origin::Origin;
use crate::types::{HumanDuration, HumanSize};

/// Configuration of the `script` evaluator, with the script's text wherever it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptConfig {
    /// What it is written in.
    #[serde(default)]
    pub language: ScriptLanguage,
    /// The script.
    pub code: String,
    /// How long one evaluation may take.
    #[serde(default = "ScriptConfig::default_timeout")]
    pub timeout: HumanDuration,
    /// How much memory one evaluation may use.
    #[serde(default = "ScriptConfig::default_memory")]
    pub memory: HumanSize,
    /// Where it is written.
    #[serde(skip)]
    pub origin: Origin,
}

impl ScriptConfig {
    /// The longest `timeout`.
    pub const MAX_TIMEOUT: HumanDuration = HumanDuration::from_secs(600);
    /// The least `memory`: an interpreter itself takes some.
    pub const MIN_MEMORY: HumanSize = HumanSize::from_mib(16);
    /// The most `memory`.
    pub const MAX_MEMORY: HumanSize = HumanSize::from_mib(4096);

    /// The `timeout` of a script that names none: 10 s.
    pub fn default_timeout() -> HumanDuration {
        HumanDuration::from_secs(10)
    }

    /// The `memory` of a script that names none: 256 MB.
    pub fn default_memory() -> HumanSize {
        HumanSize::from_mib(256)
    }
}

/// A language that scripts are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScriptLanguage {
    /// Lua 5.4, built in: it can reach nothing outside, and needs no permission.
    #[default]
    Lua,
    /// The user's `python3`, 3.8 or newer: runs only where the user allowed it.
    Python,
    /// The user's SWI-Prolog, 9 or newer: runs only where the user allowed it.
    Prolog,
}

impl ScriptLanguage {
    /// As it is written in a criteria file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lua => "lua",
            Self::Python => "python",
            Self::Prolog => "prolog",
        }
    }
}
