//! Settings from the user file, project files, profiles and the environment, merged in a fixed order. Each
//! value records its origin.
//!
//! Precedence, highest first: flags, `--set`, `REFLECT_*`, the criteria file, the selected profile, the
//! project file, the user file, the built-in defaults.

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

/// The text of a new config file: every key with its default, commented out.
pub const EXAMPLE: &str = include_str!("../../config.example.toml");

#[cfg(test)]
mod tests;
