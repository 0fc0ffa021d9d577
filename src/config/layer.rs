use std::{fmt, path::PathBuf};

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::settings::{HistorySettings, Settings, TimeoutSettings};
use crate::{
    source,
    types::{JudgeSettings, LoopSettings, ReflectorSettings},
};

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A flag, such as `--model`.
    Flag(String),
    /// An environment variable.
    Variable(&'static str),
    /// The criteria of this name.
    Criteria(String),
    /// A line of the user file, counted from 1.
    File {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The profile, if the line is in one.
        profile: Option<String>,
    },
    /// A line of a project file, counted from 1. Project files are untrusted.
    Project {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// The record of a run that is resumed.
    Record,
    /// The program's own default.
    BuiltIn,
}

impl Origin {
    /// Whether the value applies to this invocation only.
    pub fn is_of_session(&self) -> bool {
        matches!(self, Self::Flag(_) | Self::Variable(_) | Self::Record)
    }

    /// The precedence of the layer: a higher rank overrides a lower one. The user file and project files
    /// share a rank.
    pub fn rank(&self) -> u8 {
        match self {
            Self::BuiltIn => 0,
            Self::Project { .. } | Self::File { profile: None, .. } => 1,
            Self::File { .. } => 2,
            Self::Criteria(_) => 3,
            Self::Variable(_) => 4,
            Self::Flag(_) | Self::Record => 5,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => f.write_str(name),
            Self::Variable(name) => f.write_str(name),
            Self::Criteria(name) => write!(f, "criteria `{name}`"),
            Self::File {
                path,
                line,
                profile,
            } => {
                write!(f, "{}:{line}", path.display())?;
                match profile {
                    Some(profile) => write!(f, " (profile `{profile}`)"),
                    None => Ok(()),
                }
            }
            Self::Project { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Record => f.write_str("the record of the run"),
            Self::BuiltIn => f.write_str("built-in"),
        }
    }
}

/// Values under their dotted keys (`loop.max_iterations`), each with its origin.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Layer(IndexMap<String, (Value, Origin)>);

impl Layer {
    /// Creates a layer from the settings that have a value.
    pub(super) fn new(settings: &Settings, origin: impl Fn(&str) -> Origin) -> Self {
        let mut layer = Self::default();
        let Ok(Value::Object(all)) = serde_json::to_value(settings) else {
            return layer;
        };
        for (key, value) in all {
            match value {
                Value::Null => {}
                Value::Object(table) if table_keys(&key).is_some() => {
                    for (inner, value) in table.into_iter().filter(|(_, v)| !v.is_null()) {
                        let key = format!("{key}.{inner}");
                        let origin = origin(&key);
                        layer.set(&key, value, origin);
                    }
                }
                value => {
                    let origin = origin(&key);
                    layer.set(&key, value, origin);
                }
            }
        }
        layer
    }

    pub(super) fn set(&mut self, key: &str, value: Value, origin: Origin) {
        self.0.insert(key.to_owned(), (value, origin));
    }

    pub(super) fn text(&self, key: &str) -> Option<(&str, &Origin)> {
        let (value, origin) = self.0.get(key)?;
        Some((value.as_str()?, origin))
    }

    /// Overrides this layer with the values of `above`.
    pub(super) fn override_with(&mut self, above: &Self) {
        for (key, value) in &above.0 {
            self.0.insert(key.clone(), value.clone());
        }
    }

    /// Like [`Self::override_with`], but the number under `key` stays if it is lower than the new one.
    pub(super) fn override_unless_lower(&mut self, above: &Self, key: &str) {
        let mine = self.0.get(key).cloned();
        self.override_with(above);
        let number = |entry: &(Value, Origin)| entry.0.as_f64();
        if let Some(mine) = mine
            && let (Some(old), Some(new)) = (number(&mine), self.0.get(key).and_then(number))
            && old < new
        {
            self.0.insert(key.to_owned(), mine);
        }
    }

    /// Converts the values to settings.
    pub(super) fn settings(&self) -> Result<Settings, ValueError> {
        let mut root = Map::new();
        for (key, (value, _)) in &self.0 {
            // Parse keys one by one, so that an error names its key.
            let single = nest(Map::new(), key, value.clone());
            serde_json::from_value::<Settings>(Value::Object(single)).map_err(|error| {
                ValueError {
                    key: key.clone(),
                    message: error.to_string(),
                }
            })?;
            root = nest(root, key, value.clone());
        }
        serde_json::from_value(Value::Object(root)).map_err(|error| ValueError {
            key: String::new(),
            message: error.to_string(),
        })
    }

    pub(super) fn resolved(self) -> Result<Resolved, ValueError> {
        Ok(Resolved {
            settings: self.settings()?,
            layer: self,
        })
    }
}

fn nest(mut root: Map<String, Value>, key: &str, value: Value) -> Map<String, Value> {
    match key.split_once('.') {
        Some((table, inner)) => {
            let entry = root
                .entry(table)
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(table) = entry {
                table.insert(inner.to_owned(), value);
            }
        }
        None => {
            root.insert(key.to_owned(), value);
        }
    }
    root
}

/// A setting with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ValueError {
    /// The dotted key of the setting; empty if it is not known.
    pub key: String,
    /// What is wrong with the value.
    pub message: String,
}

/// The settings after merging all layers.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The values.
    pub settings: Settings,
    layer: Layer,
}

/// A line of `reflect config show`.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The dotted key.
    pub key: String,
    /// The value and its origin; `None` if it is not set and has no default.
    pub value: Option<(Value, Origin)>,
}

impl Resolved {
    /// Restores the settings of a recorded run. Current files and environment variables do not affect them.
    ///
    /// # Errors
    /// If they are invalid in this version.
    pub fn recorded(settings: &Settings) -> Result<Self, ValueError> {
        let mut all = Layer::new(&Settings::defaults(), |_| Origin::BuiltIn);
        all.override_with(&Layer::new(settings, |_| Origin::Record));
        all.resolved()
    }

    /// The origin of the value under a dotted key; `None` if it is not set.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.layer.0.get(key).map(|(_, origin)| origin)
    }

    /// All keys, in the order of the example file.
    pub fn entries(&self) -> Vec<Entry> {
        keys()
            .into_iter()
            .map(|key| Entry {
                value: self.layer.0.get(&key).cloned(),
                key,
            })
            .collect()
    }
}

/// The keys of a table in the settings, which is merged key by key; `None` if there is no such table.
fn table_keys(table: &str) -> Option<&'static [&'static str]> {
    Some(match table {
        "loop" => source::fields::<LoopSettings>(),
        "judge" => source::fields::<JudgeSettings>(),
        "reflector" => source::fields::<ReflectorSettings>(),
        "timeouts" => source::fields::<TimeoutSettings>(),
        "history" => source::fields::<HistorySettings>(),
        _ => return None,
    })
}

/// Former names of settings, which files may still use.
const OLD_NAMES: [&str; 1] = ["grey_zone"];

/// All dotted keys of the settings, from the types.
pub(super) fn keys() -> Vec<String> {
    source::fields::<Settings>()
        .iter()
        .flat_map(|key| match table_keys(key) {
            Some(inner) => inner
                .iter()
                .filter(|name| !OLD_NAMES.contains(name))
                .map(|name| format!("{key}.{name}"))
                .collect(),
            None => vec![(*key).to_owned()],
        })
        .collect()
}
