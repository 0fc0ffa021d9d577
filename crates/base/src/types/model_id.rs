use std::fmt;

use serde::{Deserialize, Serialize};

/// A model, displayed as `provider:model`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelId {
    /// The provider: `ollama`, `openai`, a preset or profile with the `OpenAI` protocol, `embedded`, or `scripted`.
    pub provider: String,
    /// The provider's name for the model.
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
    /// The writer, which also revises; `None` if nothing is written.
    pub writer: Option<ModelId>,
    /// The judge; `None` if no criterion needs a model.
    pub judge: Option<ModelId>,
}
