use std::ffi::{OsStr, OsString};

use serde_json::{Value, json};

use super::{
    layer::{Layer, Origin, ValueError},
    settings::Settings,
};
use crate::source::SourceError;

/// Looks up an environment variable: `std::env::var_os` in the program, a table in tests.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// An environment variable of `reflect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The setting that it sets; `None` if it sets none.
    pub key: Option<&'static str>,
    /// Its description in the command reference.
    pub help: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Flag,
    Whole,
    Number,
    Paths,
}

const fn variable(
    name: &'static str,
    key: Option<&'static str>,
    kind: Kind,
    help: &'static str,
) -> Variable {
    Variable {
        name,
        key,
        help,
        kind,
    }
}

/// All `REFLECT_*` variables. An empty variable counts as not set.
pub const VARIABLES: &[Variable] = &[
    variable("REFLECT_CONFIG", None, Kind::Text, "the configuration file"),
    variable(
        "REFLECT_STATE_DIR",
        None,
        Kind::Text,
        "the folder of the run log",
    ),
    variable(
        "REFLECT_CACHE_DIR",
        None,
        Kind::Text,
        "the folder of embedded models",
    ),
    variable(
        "REFLECT_API_KEY",
        None,
        Kind::Text,
        "the key for the server of --base-url or REFLECT_BASE_URL",
    ),
    variable(
        "REFLECT_PROFILE",
        Some("profile"),
        Kind::Text,
        "the profile to use",
    ),
    variable("REFLECT_MODEL", Some("model"), Kind::Text, "writer"),
    variable(
        "REFLECT_JUDGE_MODEL",
        Some("judge_model"),
        Kind::Text,
        "judge",
    ),
    variable(
        "REFLECT_PROVIDER",
        Some("provider"),
        Kind::Text,
        "the provider of models without one",
    ),
    variable(
        "REFLECT_BASE_URL",
        Some("base_url"),
        Kind::Text,
        "the server's address",
    ),
    variable(
        "REFLECT_CRITERIA",
        Some("criteria"),
        Kind::Text,
        "the default criteria",
    ),
    variable(
        "REFLECT_CRITERIA_PATH",
        Some("criteria_path"),
        Kind::Paths,
        "folders of criteria, separated as in PATH",
    ),
    variable(
        "REFLECT_OFFLINE",
        Some("offline"),
        Kind::Flag,
        "1: no requests to other machines",
    ),
    variable(
        "REFLECT_CA_FILE",
        Some("ca_file"),
        Kind::Text,
        "certificates to trust as well as the system's",
    ),
    variable(
        "REFLECT_RETRIES",
        Some("retries"),
        Kind::Whole,
        "retries of a failed call",
    ),
    variable(
        "REFLECT_NUM_CTX",
        Some("num_ctx"),
        Kind::Whole,
        "Ollama's context window in tokens",
    ),
    variable(
        "REFLECT_SEED",
        Some("seed"),
        Kind::Whole,
        "seed for reproducible replies",
    ),
    variable(
        "REFLECT_TEMPERATURE",
        Some("temperature"),
        Kind::Number,
        "sampling temperature, 0 to 2",
    ),
    variable(
        "REFLECT_MAX_ITERATIONS",
        Some("loop.max_iterations"),
        Kind::Whole,
        "maximum number of drafts",
    ),
    variable(
        "REFLECT_THRESHOLD",
        Some("loop.threshold"),
        Kind::Number,
        "the overall threshold, 0 to 1",
    ),
];

/// Reads the settings from the environment.
pub(super) fn layer(env: Env<'_>) -> Result<Layer, SourceError> {
    let mut layer = Layer::default();
    for variable in VARIABLES {
        let Some(key) = variable.key else { continue };
        let Some(text) = env(variable.name).filter(|t| !t.is_empty()) else {
            continue;
        };
        let value = value(variable.kind, &text).map_err(|expected| {
            error(
                variable.name,
                &format!("expected {expected}, not `{}`", text.display()),
            )
        })?;
        layer.set(key, value, Origin::Variable(variable.name));
    }
    let checked: Result<Settings, _> = layer.settings().and_then(|s| {
        s.check().map(|()| s).map_err(|(path, message)| ValueError {
            key: path.join("."),
            message,
        })
    });
    if let Err(ValueError { key, message }) = checked {
        let name = VARIABLES.iter().find(|v| v.key == Some(key.as_str()));
        return Err(error(name.map_or("REFLECT_*", |v| v.name), &message));
    }
    Ok(layer)
}

fn error(name: &str, message: &str) -> SourceError {
    SourceError::for_file(&format!("the environment variable {name}"), message)
}

fn value(kind: Kind, text: &OsStr) -> Result<Value, &'static str> {
    if kind == Kind::Paths {
        let paths: Vec<String> = std::env::split_paths(text)
            .map(|p| p.to_str().map(str::to_owned).ok_or("a list of UTF-8 paths"))
            .collect::<Result<_, _>>()?;
        return Ok(json!(
            paths
                .into_iter()
                .filter(|p| !p.is_empty())
                .collect::<Vec<_>>()
        ));
    }
    let text = text.to_str().ok_or("UTF-8 text")?.trim();
    match kind {
        Kind::Flag => match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(json!(true)),
            "0" | "false" | "no" | "off" => Ok(json!(false)),
            _ => Err("`1` or `0`"),
        },
        Kind::Whole => text
            .parse::<u64>()
            .map(|n| json!(n))
            .map_err(|_| "a non-negative integer"),
        Kind::Number => text
            .parse::<f64>()
            .ok()
            .filter(|n| n.is_finite())
            .map(|n| json!(n))
            .ok_or("a number"),
        Kind::Text | Kind::Paths => Ok(json!(text)),
    }
}
