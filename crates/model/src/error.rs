use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// A model call that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelError {
    /// Decides whether it is worth another try, and the exit code.
    pub class: ErrorClass,
    /// What went wrong, in the server's words where it gave any; one line, no secrets.
    pub message: String,
    /// The address that was asked, without credentials.
    pub url: Option<String>,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// How long the server asked to wait.
    pub retry_after: Option<Duration>,
    /// What the user can do about it.
    pub hint: Option<String>,
}

impl ModelError {
    /// An error with nothing but its class and message.
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

    /// The same, with what the user can do about it.
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

/// What kind of failure a call met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The key is missing, wrong, or may not do this.
    Auth,
    /// The account has no credit left.
    Quota,
    /// Too many requests for now.
    Rate,
    /// No such model, or no such address.
    NotFound,
    /// Prompt and answer do not fit the context window.
    ContextTooLong,
    /// The server does not accept the request as it is.
    Rejected,
    /// The answer ended without its terminal event.
    CutOff,
    /// No server answers at the address, or not one that can be trusted: nothing listens there, the
    /// name does not exist, the certificate is wrong.
    Unreachable,
    /// The server cannot run the model, and will not a moment later: it lacks memory, or cannot load it.
    Unable,
    /// A fault that may pass: connection, time-out, an overloaded or failing server.
    Transient,
    /// The server answered something that the protocol does not know.
    Protocol,
}

impl ErrorClass {
    /// Whether the same request may succeed a moment later.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Rate | Self::CutOff | Self::Transient)
    }

    /// Whether every other request to the model would fail in the same way: the key, the account, the model, the server.
    pub fn concerns_all(self) -> bool {
        matches!(
            self,
            Self::Auth | Self::Quota | Self::NotFound | Self::Unreachable
        )
    }

    /// The class in words, to stand before the message.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Auth => "not authorized",
            Self::Quota => "out of quota",
            Self::Rate => "rate limited",
            Self::NotFound => "not found",
            Self::ContextTooLong => "the prompt is too long for the model",
            Self::Rejected => "request rejected",
            Self::CutOff => "the answer broke off",
            Self::Unreachable => "the server cannot be reached",
            Self::Unable => "the server cannot run the model",
            Self::Transient => "the server failed",
            Self::Protocol => "unexpected answer",
        }
    }
}
