//! Who names a model, and why it may be refused.

use std::path::{Path, PathBuf};

use super::name::ModelName;
use crate::cli::error::CliError;
use crate::cli::exec::trust_entry;
use crate::config::{Config, Origin};
use crate::types;

/// Who names a model. Opening a model requires it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum NamedBy {
    /// The user: a flag, a variable, their own configuration or the record of a run. Also a model that was
    /// found, not named.
    User,
    /// A file that may be untrusted.
    File {
        /// The file, and the line if known, for messages.
        place: String,
        /// The file's full path, if it has one.
        file: Option<PathBuf>,
        /// Whether the user's configuration lets it choose any model.
        trusted: bool,
    },
}

impl NamedBy {
    /// Returns who names the model in a setting of this origin.
    pub(super) fn setting(origin: Option<&Origin>, config: &Config) -> Self {
        match origin {
            Some(origin @ Origin::Project { path, .. }) => {
                Self::place(origin.to_string(), path, config)
            }
            _ => Self::User,
        }
    }

    /// Returns who names the model in a criterion of this origin.
    pub(super) fn criterion(origin: &types::Origin, config: &Config) -> Self {
        match &origin.file {
            Some(file) => {
                let place = format!("{}:{}", file.display(), origin.line);
                Self::place(place, file, config)
            }
            None => Self::File {
                place: "the criteria".to_owned(),
                file: None,
                trusted: false,
            },
        }
    }

    /// Returns who names the model in a file.
    pub(super) fn file(file: &Path, config: &Config) -> Self {
        Self::place(file.display().to_string(), file, config)
    }

    fn place(place: String, file: &Path, config: &Config) -> Self {
        let file = file.canonicalize().ok();
        Self::File {
            place,
            trusted: file
                .as_deref()
                .is_some_and(|file| config.trusts_models(file)),
            file,
        }
    }
}

/// Why a model that a file names is refused.
pub(super) enum Refusal {
    /// It is a file on this machine.
    LocalFile,
    /// It is not downloaded.
    #[cfg(feature = "embedded")]
    Download,
    /// The prompt would go to this address, which the user has not chosen.
    Elsewhere(String),
    /// This worker does not have its provider.
    NotSetUp,
}

impl Refusal {
    /// Creates the error for a model that this file names.
    pub(super) fn error(
        self,
        name: &ModelName,
        place: &str,
        file: Option<&Path>,
        config: &Config,
    ) -> CliError {
        let names = format!("{place} names the model `{name}`");
        let trusting = || {
            let entry = trust_entry("models", file, config.user_path());
            let always = entry.map_or_else(String::new, |entry| format!(", or {entry}"));
            format!("if you trust the file, add `--allow-models`{always}")
        };
        match self {
            Self::LocalFile => CliError::usage(format!(
                "{names}, a file on this machine, which needs your permission"
            ))
            .hint("pass it with `--model` or `--judge-model`, or set it in your own configuration"),
            #[cfg(feature = "embedded")]
            Self::Download => {
                let model = name.model.as_deref().unwrap_or_default();
                CliError::usage(format!("{names}, which is not downloaded")).hint(format!(
                    "download it with `reflect models pull {model}`; {}",
                    trusting()
                ))
            }
            Self::NotSetUp => CliError::usage(format!(
                "{names}, but this worker has no provider `{}`",
                name.provider
            ))
            .hint("set the provider's key or address in the worker's configuration"),
            Self::Elsewhere(address) => CliError::usage(format!(
                "{names}, which sends your prompt to {address}; you did not choose that provider"
            ))
            .hint(trusting()),
        }
    }
}

/// Returns why a file may not use these weights. `allowed`: the file may download them.
#[cfg(feature = "embedded")]
pub(super) fn weights(name: &ModelName, allowed: bool) -> Result<Option<Refusal>, CliError> {
    use reflect_embedded::weights::{DEFAULT_MODEL, ModelSpec};
    let text = name.model.as_deref().unwrap_or(DEFAULT_MODEL);
    match text.parse::<ModelSpec>() {
        Ok(ModelSpec::Path(_)) => Ok(Some(Refusal::LocalFile)),
        Ok(spec) if !allowed && spec.find_local(&crate::cli::paths::models()?).is_none() => {
            Ok(Some(Refusal::Download))
        }
        Ok(_) => Ok(None),
        Err(error) => Err(CliError::usage(error.to_string())),
    }
}

#[cfg(not(feature = "embedded"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature as with the model"
)]
pub(super) fn weights(_: &ModelName, _: bool) -> Result<Option<Refusal>, CliError> {
    Ok(None)
}
