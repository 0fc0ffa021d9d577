use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A language that scripts are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// Lua 5.4, inside a worker of our own. It can reach nothing, and needs no permission.
    Lua,
    /// The user's `python3`. It is limited, but it is not confined: it needs permission.
    Python,
    /// The user's SWI-Prolog. Goals are checked by its `library(sandbox)`; it needs permission.
    Prolog,
}

impl Language {
    /// As it is written in a criteria file.
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

/// The language is not one of ours.
#[derive(Debug, thiserror::Error)]
#[error("Unknown language: {0}; use `lua`, `python` or `prolog`")]
pub struct UnknownLanguage(
    /// As written.
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

/// What a script is given.
///
/// It sees `output`, `state`, and three names taken out of `state` where they are there:
/// `reflection_output` (else `output`), `reflection_iteration` (else 0) and `reflection_errors`
/// (else an empty list). Lua and Python also have `json`, Python has `re`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptRequest {
    /// The script.
    pub code: String,
    /// The draft: usually a text, or any JSON value.
    pub output: Value,
    /// The state of the loop.
    #[serde(default)]
    pub state: Map<String, Value>,
    /// Whether Lua and Python also see each name of the state by itself, but for those that the language has.
    #[serde(default)]
    pub bare_names: bool,
}

/// What a script returned.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptOutcome {
    /// Exactly what it returned: a boolean, number, text, null, list or object.
    pub value: Value,
    /// What it printed.
    pub prints: String,
    /// Wall-clock time, with the start of the interpreter where one had to be started.
    pub duration: Duration,
}

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptErrorKind {
    /// The script is not valid code.
    Syntax,
    /// It failed while it ran.
    Runtime,
    /// It ran too long.
    Time,
    /// It used too much memory.
    Memory,
    /// It printed or returned too much.
    Output,
    /// The interpreter is not installed or does not start.
    MissingInterpreter,
    /// What it returned cannot be carried (not a number, a function), or the worker broke down.
    Protocol,
}

/// Why a script gave no value: neither a pass nor a zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// The script's language.
    pub language: Language,
    /// The kind of failure.
    pub kind: ScriptErrorKind,
    /// What happened, in the interpreter's words where it has some.
    pub message: String,
    /// The line, counted from 1 in the script's own text.
    pub line: Option<u32>,
    /// What it printed before it failed, where that is known.
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
