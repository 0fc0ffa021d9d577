use std::fmt;

use serde::Serialize;

use super::printer;
use crate::engine::BuildError;
use crate::model::ModelError;
use crate::source::SourceError;
use crate::types::{ExitCode, SCHEMA_VERSION};

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

/// An error as JSON.
#[derive(Serialize)]
struct Report<'a> {
    schema_version: u32,
    error: Details<'a>,
    exit_code: ExitCode,
}

#[derive(Serialize)]
struct Details<'a> {
    message: &'a str,
    hint: Option<String>,
    /// The position in a file with an error; missing if the error is about something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<Location<'a>>,
}

#[derive(Serialize)]
struct Location<'a> {
    file: &'a str,
    line: Option<usize>,
    column: Option<usize>,
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

    /// As one JSON object, for a command that was to print JSON.
    pub(super) fn json(&self) -> String {
        let (message, location) = match &self.source {
            Some(source) => {
                let position = source.position();
                let location = Location {
                    file: source.name(),
                    line: position.map(|(line, _)| line),
                    column: position.map(|(_, column)| column),
                };
                (source.message(), Some(location))
            }
            None => (self.message.as_str(), None),
        };
        let hints = self.source.iter().flat_map(SourceError::hints);
        let hints: Vec<&str> = hints.chain(&self.hint).map(String::as_str).collect();
        let report = Report {
            schema_version: SCHEMA_VERSION,
            error: Details {
                message,
                hint: (!hints.is_empty()).then(|| hints.join("\n")),
                location,
            },
            exit_code: self.code,
        };
        printer::json(&report).unwrap_or_default()
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
