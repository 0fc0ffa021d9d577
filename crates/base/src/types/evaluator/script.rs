use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::origin::Origin;
use crate::types::{HumanDuration, HumanSize};

/// The configuration of the `script` evaluator, including the script's source code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptConfig {
    /// The language of the script.
    #[serde(default)]
    pub language: ScriptLanguage,
    /// The source code.
    pub code: String,
    /// The time limit for one evaluation.
    #[serde(default = "ScriptConfig::default_timeout")]
    pub timeout: HumanDuration,
    /// The memory limit for one evaluation.
    #[serde(default = "ScriptConfig::default_memory")]
    pub memory: HumanSize,
    /// Where the criterion is defined.
    #[serde(skip)]
    pub origin: Origin,
}

impl ScriptConfig {
    /// The longest allowed `timeout`.
    pub const MAX_TIMEOUT: HumanDuration = HumanDuration::from_secs(600);
    /// The smallest allowed `memory`; the interpreter itself needs some.
    pub const MIN_MEMORY: HumanSize = HumanSize::from_mib(16);
    /// The largest allowed `memory`.
    pub const MAX_MEMORY: HumanSize = HumanSize::from_mib(4096);

    /// The default `timeout`: 10 s.
    pub fn default_timeout() -> HumanDuration {
        HumanDuration::from_secs(10)
    }

    /// The default `memory`: 256 MB.
    pub fn default_memory() -> HumanSize {
        HumanSize::from_mib(256)
    }
}

/// A scripting language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScriptLanguage {
    /// Lua 5.4, built in. It has no access to anything outside and runs without permission.
    #[default]
    Lua,
    /// The user's `python3`, 3.8 or newer. Requires permission.
    Python,
    /// The user's SWI-Prolog, 9 or newer. Requires permission.
    Prolog,
}

impl ScriptLanguage {
    /// The name, as in a criteria file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lua => "lua",
            Self::Python => "python",
            Self::Prolog => "prolog",
        }
    }
}
