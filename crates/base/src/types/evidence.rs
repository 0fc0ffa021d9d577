use serde::{Deserialize, Serialize};

/// A passage of memory, code or documentation that a draft is checked against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The kind of source.
    pub source: EvidenceSource,
    /// The text, verbatim.
    pub content: String,
    /// The relevance to the query, 0 to 1: the confidence of a fact, the success rate of a procedure, or a search
    /// score (see `Gatherer` in the crate `reflect-core`). `None` if unknown.
    pub relevance: Option<f64>,
    /// The claim that it supports or contradicts, if known.
    pub supports_claim: Option<String>,
    /// The location, as `path:line-line`. `None` for memory.
    pub location: Option<String>,
}

/// The kind of source of a piece of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceSource {
    /// Facts and procedures that came with the task.
    Memory,
    /// Source code.
    Codebase,
    /// Documentation.
    Documentation,
}

impl EvidenceSource {
    /// The name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Codebase => "codebase",
            Self::Documentation => "documentation",
        }
    }
}

/// A piece of evidence with the version it was first used for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvidence {
    /// The version's number.
    pub iteration: u32,
    /// The evidence.
    #[serde(flatten)]
    pub evidence: Evidence,
}
