use std::fmt;

use serde_json::Value;

use crate::model::ModelError;
use crate::source::SourceError;
use crate::types::ExitCode;

/// Why a workflow, or a part of it, could not go on.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What kind of failure it is.
    pub code: ExitCode,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The place in the file, where that is at fault.
    pub place: Option<SourceError>,
    /// What there is of a result all the same.
    pub partial: Option<Box<Value>>,
    /// What a loop has tried that was to raise an error: its `reflection_history`.
    pub history: Option<Box<Value>>,
}

impl Failure {
    /// A failure of this kind.
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

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// A failure of what the file does while it runs: code that fails, a command that is not there.
    pub(super) fn of_code(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Failure, message)
    }

    /// Whether nothing more can come of the same thing tried once more.
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
