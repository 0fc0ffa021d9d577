use std::fmt;

use serde::{Deserialize, Serialize};

/// Which model answers, as `provider:model` in what people read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelId {
    /// The provider's name: `ollama`, `openai`, a preset or profile of that protocol, `embedded`,
    /// `scripted`.
    pub provider: String,
    /// The provider's own name of the model.
    pub model: String,
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.provider, self.model)
    }
}

/// The models of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Models {
    /// Writes and revises; `None` where nothing is written.
    pub writer: Option<ModelId>,
    /// Judges; `None` where no criterion needs a model.
    pub judge: Option<ModelId>,
}
