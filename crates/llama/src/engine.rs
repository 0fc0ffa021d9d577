use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// A language model that holds one sequence of tokens and says what may come next.
pub trait Engine: Send {
    /// Appends tokens to the sequence and returns the logits after the last of them, one for each
    /// token of the vocabulary.
    ///
    /// # Errors
    /// [`EngineError::Stopped`] soon after `stop` is raised; the sequence then ends somewhere in the
    /// tokens, where [`Engine::len`] says. [`EngineError::Full`] if they do not fit the window; then
    /// nothing was appended.
    fn eval(&mut self, tokens: &[u32], stop: &Stop) -> Result<&[f32], EngineError>;

    /// Forgets everything after the first `len` tokens; does nothing if there are fewer.
    fn truncate(&mut self, len: usize);

    /// A copy that goes its own way from here. Weights are shared, the sequence is not.
    fn fork(&self) -> Box<dyn Engine>;

    /// Tokens in the sequence.
    fn len(&self) -> usize;

    /// Whether the sequence is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most tokens that the sequence can hold.
    fn window(&self) -> usize;
}

/// A flag that ends work early.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Asks the work to end.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work was asked to end.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why an engine could not be loaded or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The file cannot be opened or read.
    #[error("cannot read `{path}`: {reason}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: String,
        /// Whether there is no such file.
        missing: bool,
    },
    /// The file is not a sound GGUF file, or lacks what every model has.
    #[error("`{path}` is not a usable GGUF file: {reason}", path = path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is sound, but of a kind that this engine cannot run.
    #[error("`{path}` cannot be run here: {reason}", path = path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What it needs.
        reason: String,
    },
    /// The tokens do not fit the window.
    #[error("{wanted} tokens do not fit the window of {window}")]
    Full {
        /// Tokens that the sequence would have had.
        wanted: usize,
        /// Tokens that it can have.
        window: usize,
    },
    /// A token outside the vocabulary.
    #[error("token {0} is outside the vocabulary")]
    Token(u32),
    /// A text cannot be turned into tokens.
    #[error("the text cannot be turned into tokens: {0}")]
    Tokenizer(String),
    /// The work was asked to end.
    #[error("stopped")]
    Stopped,
    /// A fault in the arithmetic library.
    #[error("arithmetic failed: {0}")]
    Arithmetic(String),
}

impl From<candle_core::Error> for EngineError {
    fn from(error: candle_core::Error) -> Self {
        Self::Arithmetic(error.to_string())
    }
}
