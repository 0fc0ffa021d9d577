use super::critique::Text;
use crate::types::Issue;

/// What a run begins with.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Start {
    /// The task alone: the first draft is written.
    #[default]
    Task,
    /// A text that is there already. It is version 1: it is judged, and revised if it has to be. What takes its
    /// place is made of it: no draft is written anew.
    Text(Text),
    /// A text whose faults are known. It is version 1 and is revised once, to fix these; nothing is judged.
    Correction {
        /// The text.
        text: Text,
        /// What is wrong with it; at least one thing.
        issues: Vec<Issue>,
    },
}

impl Start {
    /// The text that is there already.
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
