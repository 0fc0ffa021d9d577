use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// A language model with one token sequence.
pub trait Engine: Send {
    /// Appends tokens to the sequence and returns the logits after the last one, one per token of the vocabulary.
    ///
    /// # Errors
    /// [`EngineError::Stopped`] soon after `stop` is raised; the sequence then contains the first part of the tokens,
    /// up to [`Engine::len`]. [`EngineError::Full`] if they do not fit the window; then nothing is appended.
    fn eval(&mut self, tokens: &[u32], stop: &Stop) -> Result<&[f32], EngineError>;

    /// Drops all tokens after the first `len`; does nothing if there are fewer.
    fn truncate(&mut self, len: usize);

    /// Copies the sequence. Copies share the weights and evolve independently.
    fn fork(&self) -> Box<dyn Engine>;

    /// The number of tokens in the sequence.
    fn len(&self) -> usize;

    /// Whether the sequence is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The maximum number of tokens in the sequence.
    fn window(&self) -> usize;
}

/// A flag that cancels work.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Requests cancellation.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether cancellation was requested.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why an engine could not be loaded or failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The file cannot be opened or read.
    #[error("cannot read `{path}`: {reason}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's message.
        reason: String,
        /// Whether the file does not exist.
        missing: bool,
    },
    /// The file is not a valid GGUF file, or lacks required metadata.
    #[error("`{path}` is not a usable GGUF file: {reason}", path = path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is valid, but this engine does not support it.
    #[error("unsupported model file `{path}`: {reason}", path = path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The unsupported feature.
        reason: String,
    },
    /// The tokens do not fit the window.
    #[error("{wanted} tokens do not fit the window of {window}")]
    Full {
        /// The number of tokens that the sequence would have.
        wanted: usize,
        /// The maximum number of tokens.
        window: usize,
    },
    /// The token is outside the vocabulary.
    #[error("token {0} is outside the vocabulary")]
    Token(u32),
    /// The text cannot be tokenized.
    #[error("cannot tokenize the text: {0}")]
    Tokenizer(String),
    /// The work was cancelled.
    #[error("stopped")]
    Stopped,
    /// The tensor library failed.
    #[error("arithmetic failed: {0}")]
    Arithmetic(String),
}

impl From<candle_core::Error> for EngineError {
    fn from(error: candle_core::Error) -> Self {
        Self::Arithmetic(error.to_string())
    }
}
