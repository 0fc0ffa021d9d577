use std::fmt;

use crate::engine::BuildError;
use crate::model::ModelError;
use crate::source::SourceError;
use crate::types::ExitCode;

/// The failure of a command: message, hint and exit code.
#[derive(Debug)]
pub(super) struct CliError {
    pub(super) code: ExitCode,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// The position of the error in a file, for rendering with colours. `message` contains it without
    /// colours.
    source: Option<SourceError>,
}

impl CliError {
    /// Creates an error about flags, configuration or criteria.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Usage, message)
    }

    /// Creates an internal or system error.
    pub(super) fn failure(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Failure, message)
    }

    pub(super) fn new(code: ExitCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            source: None,
        }
    }

    /// Renders the message with colours if it has a source position, without the word `error`. Colour codes
    /// are its only control characters.
    pub(super) fn coloured(&self) -> Option<String> {
        let mut text = self.source.as_ref()?.render(true);
        if let Some(hint) = &self.hint {
            text = text + "\nhint: " + hint;
        }
        Some(text)
    }

    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl From<ModelError> for CliError {
    fn from(error: ModelError) -> Self {
        Self {
            code: ExitCode::Provider,
            message: error.to_string(),
            hint: error.hint,
            source: None,
        }
    }
}

impl From<BuildError> for CliError {
    fn from(error: BuildError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<SourceError> for CliError {
    fn from(error: SourceError) -> Self {
        // `printer` adds the prefix `error: ` to every message.
        let text = error.render(false);
        Self {
            source: Some(error),
            ..Self::usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end())
        }
    }
}

impl From<crate::store::StoreError> for CliError {
    fn from(error: crate::store::StoreError) -> Self {
        use crate::store::StoreError::{Ambiguous, NoSuchRun, NoWords, Running};
        let code = match error {
            NoSuchRun { .. } | Ambiguous { .. } | NoWords { .. } | Running { .. } => {
                ExitCode::Usage
            }
            _ => ExitCode::Failure,
        };
        Self::new(code, error.to_string())
    }
}
