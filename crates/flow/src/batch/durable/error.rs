/// Why a Restate server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It does not respond.
    #[error("the Restate server at `{0}` cannot be reached: {1}")]
    Unreachable(String, String),
    /// It rejects a request.
    #[error("the Restate server rejected the request: {0}")]
    Refused(String),
    /// The bearer token would be sent to it unencrypted.
    #[error("RESTATE_AUTH_TOKEN would be sent unencrypted to `{0}`")]
    TokenExposed(String),
    /// No worker is registered.
    #[error("the Restate server has no worker")]
    NoWorker,
    /// Its tasks go to workers at another address.
    #[error("the Restate server sends its tasks to the workers at {0}, and this one is at {1}")]
    OtherAddress(String, String),
    /// Its workers are of another version.
    #[error("the workers at {address} are {theirs}, and this one is {ours}")]
    OtherVersion {
        /// Their address.
        address: String,
        /// Their version.
        theirs: String,
        /// The version of this program.
        ours: String,
    },
}
