use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::outcome::ConvergenceReason;
use super::task::Fact;

/// An entry of the memory that later runs use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The entry's number. Numbers of removed entries are not reused.
    pub id: u64,
    /// When it was added.
    pub added: Timestamp,
    /// When it was last used or learned again.
    pub touched: Timestamp,
    /// The content.
    pub what: Knowledge,
}

/// The content of a memory entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Knowledge {
    /// A fact.
    Fact(Fact),
    /// A way to do something, with how often it worked.
    Procedure(KnownProcedure),
    /// Advice for the writer, learned from earlier runs or entered by the user.
    Insight(KnownInsight),
}

impl Knowledge {
    /// The name of the kind, as in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Fact(_) => "fact",
            Self::Procedure(_) => "procedure",
            Self::Insight(_) => "insight",
        }
    }

    /// The content as one text.
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

    /// The number of runs that used it.
    pub fn uses(&self) -> u32 {
        match self {
            Self::Fact(_) => 0,
            Self::Procedure(procedure) => procedure.uses,
            Self::Insight(insight) => insight.uses,
        }
    }
}

/// A procedure with the results of the runs that used it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownProcedure {
    /// A name, if there is more to it than the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The procedure as text.
    pub content: String,
    /// The success rate before it was stored here, 0 to 1, if known.
    pub given: Option<f64>,
    /// The number of runs that used it.
    pub uses: u32,
    /// How many of those runs met their criteria.
    pub successes: u32,
}

/// An insight with its sources and the results of the runs that used it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownInsight {
    /// The category: `recurring_issue`, `failing_criterion`, `check`, `model`, or one chosen by the user.
    pub category: String,
    /// A stable key for the topic, independent of the wording. Used to recognize the same insight.
    pub subject: String,
    /// The advice, as the writer sees it.
    pub content: String,
    /// Whether a model wrote `content`; otherwise a rule or the user did.
    #[serde(default)]
    pub worded: bool,
    /// The name of the criteria that it applies to; `None` for all.
    pub criteria: Option<String>,
    /// The criterion in that set.
    pub criterion: Option<String>,
    /// The model that it applies to, as `provider:model`; `None` for all.
    pub model: Option<String>,
    /// The confidence when it was learned, 0 to 1, before any use.
    pub learned: f64,
    /// The runs that it was learned from; its wording comes from the first one.
    pub evidence: Vec<Uuid>,
    /// The number of runs that used it.
    pub uses: u32,
    /// How many of them could be compared with runs that did not use it.
    pub compared: u32,
    /// The sum over the compared runs of the share of runs without it that each one beat; ties count half.
    pub points: f64,
}

impl KnownInsight {
    /// A new insight without uses or sources.
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

/// A change to the memory.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryChange {
    /// Adds an entry.
    Add(Knowledge),
    /// Replaces the content of the entry with this id.
    Replace(u64, Knowledge),
    /// Records that the entry with this id was used or learned again.
    Touch(u64),
    /// Removes the entry with this id.
    Remove(u64),
}

/// The result of a run for the memory entries that it used. Computed next to the run log and applied next to the
/// memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Whether the criteria were met; `None` if the run did not finish on its own and counts for nothing.
    pub success: Option<bool>,
    /// For each memory entry used, by id: the share of runs without it that this run beat, 0 to 1, ties counting
    /// half; `None` if there are too few of them or the run counts for nothing.
    pub shares: Vec<(u64, Option<f64>)>,
}

/// How a run ended, for comparing runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// The run.
    pub run_id: Uuid,
    /// Why it stopped.
    pub reason: Option<ConvergenceReason>,
    /// Whether the criteria were met.
    pub success: bool,
    /// The number of drafts.
    pub iterations: u32,
    /// The overall score of the first draft that the run wrote, 0 to 1; `None` if it was not evaluated or not written
    /// by the run.
    pub first_score: Option<f64>,
    /// The ids of the memory entries it used.
    pub remembered: Vec<u64>,
}
