/// Why a Restate server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It does not answer.
    #[error("the Restate server at `{0}` cannot be reached: {1}")]
    Unreachable(String, String),
    /// It refuses a request.
    #[error("the Restate server refuses: {0}")]
    Refused(String),
    /// The bearer token would be sent to it unencrypted.
    #[error("RESTATE_AUTH_TOKEN would cross the network unencrypted to `{0}`")]
    TokenExposed(String),
    /// It knows no worker.
    #[error("the Restate server has no worker")]
    NoWorker,
    /// Its tasks go to workers at another address.
    #[error("the Restate server sends its tasks to the workers at {0}, and this one is at {1}")]
    OtherAddress(String, String),
    /// Its workers are of another version.
    #[error("the workers at {address} are {theirs}, and this one is {ours}")]
    OtherVersion {
        /// Where they are.
        address: String,
        /// Their version.
        theirs: String,
        /// The version of this program.
        ours: String,
    },
}
