use serde::{Deserialize, Serialize};

/// What a user (or another decision maker) decides after a version is evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserDecision {
    /// Let the loop decide.
    #[default]
    Auto,
    /// Revise the best version again, even if the criteria are met or the score has stopped improving.
    Continue,
    /// End the run. The settings decide which version it returns.
    Stop,
    /// End the run and return this version, whatever its score. It must be an evaluated version.
    Accept(u32),
    /// Revise the best version again, with this instruction. The instruction applies to all later revisions too. The
    /// evaluators do not see it: drafts are evaluated on the criteria.
    Guide(String),
    /// Use a text of the user's as the next version. It is evaluated like any other. Because the user wrote it, it
    /// becomes the best version whatever its score: later revisions start from it, and a draft must score higher to
    /// replace it.
    Edit {
        /// The version that the user edited.
        of: u32,
        /// The text.
        text: String,
    },
}

impl UserDecision {
    /// A one-line description of the decision.
    pub fn describe(&self) -> String {
        match self {
            Self::Auto => "the loop decides".to_owned(),
            Self::Continue => "revising again".to_owned(),
            Self::Stop => "stop".to_owned(),
            Self::Accept(version) => format!("draft {version} accepted"),
            Self::Guide(wish) => {
                let words: Vec<&str> = wish.split_whitespace().collect();
                format!("instruction: {}", words.join(" "))
            }
            Self::Edit { .. } => "the next draft is edited by the user".to_owned(),
        }
    }
}
