use serde::{Deserialize, Serialize};

/// The task: the prompt with everything the writer gets to work with.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Task {
    /// What the user asks for. Empty if a text is evaluated or revised without a known prompt.
    pub prompt: String,
    /// Instructions for every call of the run, in addition to the built-in system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Texts that came with the prompt: standard input and attached files. They are data, never instructions. The
    /// writer and the judge see them in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextBlock>,
    /// Earlier messages of the conversation, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub message_history: Vec<PastMessage>,
    /// Known facts about the subject.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// Proven procedures for similar tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub procedures: Vec<Procedure>,
    /// Advice for the writer from earlier runs; the judge does not see it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insights: Vec<Insight>,
    /// The memory ids of the facts, procedures and insights that come from memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<u64>,
}

impl Task {
    /// A task that consists only of a prompt.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            ..Self::default()
        }
    }

    /// Adds entries from memory.
    pub fn add_recalled(&mut self, told: RecalledMemory) {
        let RecalledMemory {
            facts,
            procedures,
            insights,
            remembered,
        } = told;
        self.facts.extend(facts);
        self.procedures.extend(procedures);
        self.insights.extend(insights);
        self.remembered.extend(remembered);
    }
}

/// The memory entries that are added to a task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecalledMemory {
    /// Known facts about the subject.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// Proven procedures for similar tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub procedures: Vec<Procedure>,
    /// Insights from earlier runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insights: Vec<Insight>,
    /// The memory ids of all these entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<u64>,
}

impl RecalledMemory {
    /// Whether there is nothing to add.
    pub fn is_empty(&self) -> bool {
        self.remembered.is_empty()
    }
}

/// One piece of context with its display name (`stdin`, or a file's path).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextBlock {
    /// Where the text comes from.
    pub name: String,
    /// The text itself.
    pub content: String,
}

/// A message of an earlier conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastMessage {
    /// The author, as recorded: `user`, `assistant`, …
    pub role: String,
    /// The text.
    pub content: String,
}

/// A known fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The fact as text.
    pub content: String,
    /// The confidence, 0 to 1; `None` if unknown.
    pub confidence: Option<f64>,
    /// The claim that it supports or contradicts, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supports_claim: Option<String>,
}

/// A way to do something, with how often it worked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Procedure {
    /// A name, if there is more to it than the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The procedure as text.
    pub content: String,
    /// The success rate, 0 to 1; `None` if unknown.
    pub success_rate: Option<f64>,
}

/// Advice from earlier runs for this run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Insight {
    /// The category.
    pub category: String,
    /// The advice as text.
    pub content: String,
    /// The confidence, 0 to 1.
    pub confidence: f64,
}
