//! Settings: the user's file, the project's file, the environment, profiles; laid over each other in a
//! fixed order, each value with where it comes from. Only stores and merges: it opens no model.
//!
//! Highest first: flags, `REFLECT_*`, the criteria file, the selected profile, the project's file, the
//! user's file, the built-in defaults.

mod assign;
mod dirs;
mod env;
mod file;
mod key;
mod layer;
mod load;
mod mask;
mod owner;
mod provider;
mod schema;
mod settings;

pub use dirs::{PROJECT_FILE, cache_dir, project_file, state_dir, store_file, user_file};
pub use env::{Env, VARIABLES, Variable};
pub use file::PROJECT_KEYS;
pub use key::{FoundKey, api_key};
pub use layer::{Entry, Origin, Resolved, ValueError};
pub use load::{Config, IgnoredProject, check_user_file};
pub use provider::{KeyCommand, Provider, ProviderKind};
pub use schema::schema;
pub use settings::{HistorySettings, Settings, StructuredOutputMode, TimeoutSettings};

pub use crate::types::HumanDuration;

/// The text of a new config file: every key, commented, with its default.
pub const EXAMPLE: &str = include_str!("../../config.example.toml");

#[cfg(test)]
mod tests;
