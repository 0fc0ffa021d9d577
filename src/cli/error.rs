use std::fmt;

use crate::model::ModelError;
use crate::types::ExitCode;

/// A command that failed: what went wrong, what to do about it, and the exit code.
#[derive(Debug)]
pub(super) struct CliError {
    pub(super) code: ExitCode,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl CliError {
    /// Wrong flags, configuration or criteria.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Usage, message)
    }

    /// A failure of ours or of the machine.
    pub(super) fn failure(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Failure, message)
    }

    pub(super) fn new(code: ExitCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
        }
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
        }
    }
}

impl From<crate::store::StoreError> for CliError {
    fn from(error: crate::store::StoreError) -> Self {
        use crate::store::StoreError::{Ambiguous, NoSuchRun};
        let code = match error {
            NoSuchRun { .. } | Ambiguous { .. } => ExitCode::Usage,
            _ => ExitCode::Failure,
        };
        Self::new(code, error.to_string())
    }
}
