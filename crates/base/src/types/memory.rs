use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::outcome::ConvergenceReason;
use super::task::Fact;

/// Something that is kept for later runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Its number. One that is removed is never given to another.
    pub id: u64,
    /// When it was taken in.
    pub added: Timestamp,
    /// When it was last used in a run, or found in one again.
    pub touched: Timestamp,
    /// What is known.
    pub what: Knowledge,
}

/// What can be kept for later runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Knowledge {
    /// Something that is so.
    Fact(Fact),
    /// A way to do something, with how often it worked.
    Procedure(KnownProcedure),
    /// Something learned from earlier runs, or said by the user: advice for the writer.
    Insight(KnownInsight),
}

impl Knowledge {
    /// The word for its kind, as in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Fact(_) => "fact",
            Self::Procedure(_) => "procedure",
            Self::Insight(_) => "insight",
        }
    }

    /// It in words, in one text.
    pub fn text(&self) -> String {
        match self {
            Self::Fact(fact) => fact.content.clone(),
            Self::Procedure(procedure) => match &procedure.name {
                Some(name) => format!("{name}: {}", procedure.content),
                None => procedure.content.clone(),
            },
            Self::Insight(insight) => insight.content.clone(),
        }
    }

    /// In how many runs it was used.
    pub fn uses(&self) -> u32 {
        match self {
            Self::Fact(_) => 0,
            Self::Procedure(procedure) => procedure.uses,
            Self::Insight(insight) => insight.uses,
        }
    }
}

/// A procedure with what has become of the runs that used it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownProcedure {
    /// What it is called, if that is not all that there is of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The procedure in words.
    pub content: String,
    /// How often it worked before it came here, 0 to 1, if somebody says.
    pub given: Option<f64>,
    /// In how many runs it was used.
    pub uses: u32,
    /// How many of them met their criteria.
    pub successes: u32,
}

/// An insight with what it rests on, and what has become of the runs that used it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownInsight {
    /// What kind of insight: `recurring_issue`, `failing_criterion`, `check`, `model`, or a word of the user's.
    pub category: String,
    /// What it is about, in words that stay the same however it is worded: by this it is known again.
    pub subject: String,
    /// The advice, as the writer reads it.
    pub content: String,
    /// Whether a model has worded `content`; else a rule did, or the user.
    #[serde(default)]
    pub worded: bool,
    /// The name of the criteria that it is about; `None` for all.
    pub criteria: Option<String>,
    /// The criterion among these.
    pub criterion: Option<String>,
    /// The model that it is about, as `provider:model`; `None` for all.
    pub model: Option<String>,
    /// How sure it was when it was learned, 0 to 1, before its use said anything.
    pub learned: f64,
    /// The runs that it was learned from, the one whose words it uses first.
    pub evidence: Vec<Uuid>,
    /// In how many runs it was used.
    pub uses: u32,
    /// How many of them could be compared with runs that did without it.
    pub compared: u32,
    /// The sum, over the runs compared, of the share of runs without it that each was better than; ties count half.
    pub points: f64,
}

impl KnownInsight {
    /// An insight that was never used and rests on no run.
    pub fn new(category: impl Into<String>, content: impl Into<String>, learned: f64) -> Self {
        let content = content.into();
        Self {
            category: category.into(),
            subject: content.clone(),
            content,
            worded: false,
            criteria: None,
            criterion: None,
            model: None,
            learned,
            evidence: Vec::new(),
            uses: 0,
            compared: 0,
            points: 0.0,
        }
    }
}

/// A change to what is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryChange {
    /// Something new.
    Add(Knowledge),
    /// Other words or figures for what has this id.
    Replace(u64, Knowledge),
    /// What has this id was used or found again.
    Touch(u64),
    /// What has this id is no longer kept.
    Remove(u64),
}

/// What the end of a run says of what it was told from memory. It is found out where the run's log is, and taken in
/// where memory is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Whether the criteria were met; `None` if the run did not come to an end of its own, and says nothing.
    pub success: Option<bool>,
    /// Of all that it was told, by the ids in memory: the share of runs without it that this one was better than, ties
    /// counting half, 0 to 1; `None` where there are too few of them, or the run says nothing.
    pub shares: Vec<(u64, Option<f64>)>,
}

/// How a run ended, as far as runs are compared by it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// The run.
    pub run_id: Uuid,
    /// Why it stopped.
    pub reason: Option<ConvergenceReason>,
    /// Whether the criteria were met.
    pub success: bool,
    /// How many drafts it took.
    pub iterations: u32,
    /// The overall score of the first draft that it wrote, 0 to 1; `None` if that was not judged, or was not its
    /// own.
    pub first_score: Option<f64>,
    /// The ids of what it was told from memory.
    pub remembered: Vec<u64>,
}
