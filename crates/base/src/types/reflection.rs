use serde::{Deserialize, Serialize};

/// What makes the loop reflect before it continues. There are two more triggers, which lead to a verdict instead:
/// `completion` is the evaluation of every version, and `manual` is `EvaluateOnce` of the crate `reflect-core`, or
/// `reflect evaluate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A version scored well below the best one (`quality_drop_threshold`).
    QualityDrop,
    /// A user tool produced output (`reflect_on_tools`).
    ToolResult,
    /// A number of sections of a draft are written (`reflection_interval`).
    StepInterval,
    /// Replies were rejected, or a tool failed (`reflect_on_error`).
    Error,
}

/// A reflection of the model, and what triggered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reflection {
    /// The version that is written next.
    pub iteration: u32,
    /// What triggered it.
    pub trigger: Trigger,
    /// The text that the writer sees.
    pub text: String,
}
