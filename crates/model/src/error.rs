use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// A failed model call.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelError {
    /// The class: determines whether to retry, and the exit code.
    pub class: ErrorClass,
    /// What went wrong, in the server's words if it gave any; one line, without secrets.
    pub message: String,
    /// The requested address, without credentials.
    pub url: Option<String>,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The wait that the server requested.
    pub retry_after: Option<Duration>,
    /// What the user can do about it.
    pub hint: Option<String>,
}

impl ModelError {
    /// An error with only a class and a message.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            url: None,
            status: None,
            retry_after: None,
            hint: None,
        }
    }

    /// Sets the hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class.describe(), self.message)?;
        if let Some(status) = self.status {
            write!(f, " (HTTP {status})")?;
        }
        if let Some(url) = &self.url {
            write!(f, " [{url}]")?;
        }
        Ok(())
    }
}

impl std::error::Error for ModelError {}

/// The class of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The key is missing, wrong, or lacks permission.
    Auth,
    /// The account has no credit left.
    Quota,
    /// The server limits the request rate.
    Rate,
    /// The model or the address does not exist.
    NotFound,
    /// Prompt and reply do not fit the context window.
    ContextTooLong,
    /// The server rejects the request.
    Rejected,
    /// The reply ended before its final event.
    CutOff,
    /// No trusted server answers at the address: nothing listens, the host name does not resolve, or the certificate
    /// is invalid.
    Unreachable,
    /// The server cannot run the model, for example because it lacks memory or cannot load the file. A retry does not
    /// help.
    Unable,
    /// A transient failure: a connection error, a timeout, or an overloaded or failing server.
    Transient,
    /// The response does not follow the protocol.
    Protocol,
}

impl ErrorClass {
    /// Whether a retry of the same request may succeed.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Rate | Self::CutOff | Self::Transient)
    }

    /// Whether every other request to the model would fail too: the key, account, model or server is the cause.
    pub fn affects_all_calls(self) -> bool {
        matches!(
            self,
            Self::Auth | Self::Quota | Self::NotFound | Self::Unreachable
        )
    }

    /// A description that precedes the message.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Auth => "not authorized",
            Self::Quota => "out of quota",
            Self::Rate => "rate limited",
            Self::NotFound => "not found",
            Self::ContextTooLong => "the prompt is too long for the model",
            Self::Rejected => "request rejected",
            Self::CutOff => "the reply was cut off",
            Self::Unreachable => "cannot reach the server",
            Self::Unable => "the server cannot run the model",
            Self::Transient => "the server failed",
            Self::Protocol => "unexpected response",
        }
    }
}
