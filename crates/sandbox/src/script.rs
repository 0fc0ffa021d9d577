use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A scripting language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// Lua 5.4, in our own worker. It has no access to anything outside and runs without permission.
    Lua,
    /// The user's `python3`. It has limits but no isolation, so it requires permission.
    Python,
    /// The user's SWI-Prolog. Its `library(sandbox)` checks goals; it requires permission.
    Prolog,
}

impl Language {
    /// The name, as in a criteria file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lua => "lua",
            Self::Python => "python",
            Self::Prolog => "prolog",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown language.
#[derive(Debug, thiserror::Error)]
#[error("Unknown language: {0}; use `lua`, `python` or `prolog`")]
pub struct UnknownLanguage(
    /// The name, as given.
    pub String,
);

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(name: &str) -> Result<Self, UnknownLanguage> {
        match name {
            "lua" => Ok(Self::Lua),
            "python" => Ok(Self::Python),
            "prolog" => Ok(Self::Prolog),
            _ => Err(UnknownLanguage(name.to_owned())),
        }
    }
}

/// The input of a script.
///
/// The script sees `output`, `state`, and three names taken from `state` if present: `reflection_output` (default:
/// `output`), `reflection_iteration` (default: 0) and `reflection_errors` (default: an empty list). Lua and Python
/// also have `json`, Python has `re`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptRequest {
    /// The source code.
    pub code: String,
    /// The draft: usually a string, or any JSON value.
    pub output: Value,
    /// The state of the loop.
    #[serde(default)]
    pub state: Map<String, Value>,
    /// Whether Lua and Python also see each name of the state as a global variable, except for names that the
    /// language defines.
    #[serde(default)]
    pub bare_names: bool,
}

/// The result of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptOutcome {
    /// The returned value: a boolean, number, string, null, list or object.
    pub value: Value,
    /// The printed text.
    pub prints: String,
    /// The wall-clock time, including the start of the interpreter if one was started.
    pub duration: Duration,
}

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptErrorKind {
    /// The script has a syntax error.
    Syntax,
    /// The script failed while running.
    Runtime,
    /// The script exceeded the time limit.
    Time,
    /// The script exceeded the memory limit.
    Memory,
    /// The script printed or returned too much.
    Output,
    /// The interpreter is not installed or fails to start.
    MissingInterpreter,
    /// JSON cannot represent the returned value (NaN, a function), or the worker failed.
    Protocol,
}

/// Why a script returned no value. Counts as neither pass nor fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// The script's language.
    pub language: Language,
    /// The kind of failure.
    pub kind: ScriptErrorKind,
    /// What happened, in the interpreter's words if it has any.
    pub message: String,
    /// The line of the script, counted from 1.
    pub line: Option<u32>,
    /// What it printed before it failed, if known.
    pub prints: String,
}

impl ScriptError {
    pub(super) fn new(
        language: Language,
        kind: ScriptErrorKind,
        message: impl Into<String>,
    ) -> Self {
        Self {
            language,
            kind,
            message: message.into(),
            line: None,
            prints: String::new(),
        }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == ScriptErrorKind::MissingInterpreter {
            return f.write_str(&self.message);
        }
        write!(f, "the {} script failed", self.language)?;
        if let Some(line) = self.line {
            write!(f, " in line {line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ScriptError {}
