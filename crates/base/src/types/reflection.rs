use serde::{Deserialize, Serialize};

/// What makes the loop reflect before it continues. The triggers `completion` and `manual` are not among them, since they
/// lead to a verdict: `completion` is the evaluation of every version, and `manual` is
/// `Critique` of the crate `reflect-core`, or `reflect evaluate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A version's score fell well below that of the best one (`quality_drop_threshold`).
    QualityDrop,
    /// A tool of the user's has said something (`reflect_on_tools`).
    ToolResult,
    /// So many sections of a draft that is written in steps are there (`reflection_interval`).
    StepInterval,
    /// Replies were no drafts, or a tool failed (`reflect_on_error`).
    Error,
}

/// What the model said when it looked back, and what made it do so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reflection {
    /// The version that was to be written next.
    pub iteration: u32,
    /// Why it looked back.
    pub trigger: Trigger,
    /// What the writer was told of it.
    pub text: String,
}
