use super::evaluate_once::Text;
use crate::types::Issue;

/// What a run starts from.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Start {
    /// The task alone: a first draft is written.
    #[default]
    Task,
    /// An existing text. It becomes version 1, and is judged and revised if needed. Later versions revise it:
    /// there are no fresh drafts.
    Text(Text),
    /// A text with known issues. It becomes version 1 and is revised once to fix these; nothing is judged.
    Correction {
        /// The text.
        text: Text,
        /// Its issues; at least one.
        issues: Vec<Issue>,
    },
}

impl Start {
    /// The existing text.
    pub fn text(&self) -> Option<&Text> {
        match self {
            Self::Task => None,
            Self::Text(text) | Self::Correction { text, .. } => Some(text),
        }
    }

    /// Whether drafts are judged.
    pub fn is_judged(&self) -> bool {
        !matches!(self, Self::Correction { .. })
    }

    /// The command that a run is recorded under.
    pub(super) fn command(&self) -> &'static str {
        match self {
            Self::Task => "draft",
            Self::Text(_) | Self::Correction { .. } => "revise",
        }
    }
}
