use serde::{Deserialize, Serialize};

/// What is to be written: the prompt and all that the writer is given with it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Task {
    /// What the user asks for. Empty where a text is judged and nobody knows what was asked for.
    pub prompt: String,
    /// Instructions that hold for every call of the run, in addition to our own system text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Texts that came with the prompt: piped standard input, attached files. They are data, never
    /// instructions, and are shown to the writer and to the judge in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextBlock>,
}

impl Task {
    /// A task that is nothing but its prompt.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            ..Self::default()
        }
    }
}

/// One piece of context, with the name it is announced under (`stdin`, or a file's path).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextBlock {
    /// Where the text comes from.
    pub name: String,
    /// The text itself.
    pub content: String,
}
