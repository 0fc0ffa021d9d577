//! Where things are kept, and the environment that says so.

use std::ffi::OsString;
use std::path::PathBuf;

use super::error::CliError;
use crate::config;

/// The environment of this process.
pub(super) fn env(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// A variable of the environment that is text and not empty.
pub(super) fn env_text(name: &str) -> Option<String> {
    env(name)?
        .into_string()
        .ok()
        .filter(|text| !text.trim().is_empty())
}

/// The run log.
pub(super) fn store() -> Result<PathBuf, CliError> {
    config::store_file(&env).ok_or_else(|| {
        CliError::failure("no home directory for the run log")
            .hint("set `REFLECT_STATE_DIR`, or disable the log with `--no-log`")
    })
}

/// The folder for the weights of embedded models.
#[cfg(feature = "embedded")]
pub(super) fn models() -> Result<PathBuf, CliError> {
    cache("models")
}

/// The folder for sets of tasks that are published elsewhere.
pub(super) fn sets() -> Result<PathBuf, CliError> {
    cache("sets")
}

fn cache(what: &str) -> Result<PathBuf, CliError> {
    config::cache_dir(&env)
        .map(|folder| folder.join(what))
        .ok_or_else(|| {
            CliError::failure(format!("no home directory for {what}"))
                .hint("set `REFLECT_CACHE_DIR`")
        })
}
