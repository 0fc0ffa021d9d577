use serde::{Deserialize, Serialize};

/// What is to be written: the prompt and all that the writer is given with it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Task {
    /// What the user asks for. Empty where a text is judged or revised and nobody knows what was asked
    /// for.
    pub prompt: String,
    /// Instructions that hold for every call of the run, in addition to our own system text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Texts that came with the prompt: piped standard input, attached files. They are data, never
    /// instructions, and are shown to the writer and to the judge in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextBlock>,
    /// What was said before in the conversation that the task belongs to, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub message_history: Vec<PastMessage>,
    /// What is known about the matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// Ways to do such a thing that were tried before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub procedures: Vec<Procedure>,
    /// What earlier runs have taught: advice for the writer, which the judge does not see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insights: Vec<Insight>,
    /// Which of these facts, procedures and insights were taken from memory: their ids there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<u64>,
}

impl Task {
    /// A task that is nothing but its prompt.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            ..Self::default()
        }
    }

    /// Tells the task this from memory, besides what it knows.
    pub fn recollect(&mut self, told: Recollection) {
        let Recollection {
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

/// What a task is told from memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Recollection {
    /// What is known about the matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// Ways to do such a thing that were tried before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub procedures: Vec<Procedure>,
    /// What earlier runs have taught.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub insights: Vec<Insight>,
    /// The ids of all these in memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<u64>,
}

impl Recollection {
    /// Whether nothing is told.
    pub fn is_empty(&self) -> bool {
        self.remembered.is_empty()
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

/// A message of an earlier conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastMessage {
    /// Who said it, in the words of whoever recorded it: `user`, `assistant`, …
    pub role: String,
    /// What was said.
    pub content: String,
}

/// Something that is known, as somebody's memory has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The fact in words.
    pub content: String,
    /// How sure it is, 0 to 1; `None` if nobody says.
    pub confidence: Option<f64>,
    /// The claim that it bears on, if whoever gives it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supports_claim: Option<String>,
}

/// A way to do something, with how often it worked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Procedure {
    /// What it is called, if that is not all that there is of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The procedure in words.
    pub content: String,
    /// How often it worked, 0 to 1; `None` if nobody says.
    pub success_rate: Option<f64>,
}

/// Something learned from earlier runs that is offered to this one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Insight {
    /// What kind of insight.
    pub category: String,
    /// The advice in words.
    pub content: String,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
}
