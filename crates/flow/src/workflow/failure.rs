use std::fmt;

use serde_json::Value;

use crate::model::ModelError;
use crate::source::SourceError;
use crate::types::ExitCode;

/// Why a workflow, or a part of it, failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The exit code for this kind of failure.
    pub code: ExitCode,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The position in the file, if the file is the cause.
    pub place: Option<SourceError>,
    /// The partial result, if there is one.
    pub partial: Option<Box<Value>>,
    /// The `reflection_history` of a loop that was configured to raise an error.
    pub history: Option<Box<Value>>,
}

impl Failure {
    /// Creates a failure.
    pub fn new(code: ExitCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            place: None,
            partial: None,
            history: None,
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Creates a failure for something the file does at run time: code that fails, a command that
    /// does not exist.
    pub(super) fn of_code(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Failure, message)
    }

    /// Returns whether a retry cannot succeed.
    pub(super) fn is_final(&self) -> bool {
        self.code != ExitCode::Failure
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self {
            place: Some(error.clone()),
            ..Self::new(ExitCode::Usage, error.message())
        }
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self {
            hint: error.hint.clone(),
            ..Self::new(ExitCode::Provider, error.to_string())
        }
    }
}
