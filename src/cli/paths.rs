//! Paths of the run log and the caches, and the environment variables that set them.

use std::ffi::OsString;
use std::path::PathBuf;

use super::error::CliError;
use crate::config;

/// Returns a variable of this process's environment.
pub(super) fn env(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Returns an environment variable that is UTF-8 and not blank.
pub(super) fn env_text(name: &str) -> Option<String> {
    env(name)?
        .into_string()
        .ok()
        .filter(|text| !text.trim().is_empty())
}

/// Returns the path of the run log.
pub(super) fn store() -> Result<PathBuf, CliError> {
    config::store_file(&env).ok_or_else(|| {
        CliError::failure("no home directory for the run log")
            .hint("set `REFLECT_STATE_DIR`, or disable the log with `--no-log`")
    })
}

/// Returns the folder of embedded model weights.
#[cfg(feature = "embedded")]
pub(super) fn models() -> Result<PathBuf, CliError> {
    cache("models")
}

/// Returns the folder of downloaded benchmark sets.
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
