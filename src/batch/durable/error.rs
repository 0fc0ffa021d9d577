//! What can be wrong with the server.

/// Why a Restate server is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It does not answer.
    #[error("the Restate server at `{0}` cannot be reached: {1}")]
    Unreachable(String, String),
    /// It says no.
    #[error("the Restate server refuses: {0}")]
    Refused(String),
    /// It knows no worker.
    #[error("the Restate server has no worker")]
    NoWorker,
}
