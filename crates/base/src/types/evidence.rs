use serde::{Deserialize, Serialize};

/// A piece of memory, code or documentation that a draft is checked against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What kind of thing it is taken from.
    pub source: EvidenceSource,
    /// The text, word for word.
    pub content: String,
    /// How much it has to do with what was looked for, 0 to 1. Of a fact its confidence, of a procedure its
    /// success rate; of a passage see `Gatherer` in the crate `reflect-core`. `None` if it is not known.
    pub relevance: Option<f64>,
    /// The claim that it bears on, for or against, where that is known.
    pub supports_claim: Option<String>,
    /// Where it stands: `path:line-line`. `None` for memory.
    pub location: Option<String>,
}

/// What kind of thing a piece of evidence is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceSource {
    /// Facts and procedures that came with the task.
    Memory,
    /// Program text.
    Codebase,
    /// Texts for people.
    Documentation,
}

impl EvidenceSource {
    /// The word for it, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Codebase => "codebase",
            Self::Documentation => "documentation",
        }
    }
}

/// A piece of evidence of a run, with the version that it was first shown for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gathered {
    /// Number of the version.
    pub iteration: u32,
    /// The evidence.
    #[serde(flatten)]
    pub evidence: Evidence,
}
