use serde::{Deserialize, Serialize};

/// What somebody decides after a version was judged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserDecision {
    /// The loop's own rule decides.
    #[default]
    Auto,
    /// One more revision of the best version, also where the criteria are met or nothing gets better any more.
    Continue,
    /// The run ends here, and its settings say which version it returns.
    Stop,
    /// The run ends here, and the version of this number is the answer, whatever its score. It must be one that
    /// was judged.
    Accept(u32),
    /// One more revision of the best version, which is told this wish; so are all later ones. The evaluators
    /// are not: drafts are measured by the criteria.
    Guide(String),
    /// A text of the user's own is the next version. It is judged like any other. By the word of who wrote it it
    /// is the best so far, whatever its score: later revisions start from it, and one takes its place only if
    /// it is better than this text is.
    Edit {
        /// The version that it was made of.
        of: u32,
        /// The text.
        text: String,
    },
}

impl UserDecision {
    /// The decision in words, on one line.
    pub fn describe(&self) -> String {
        match self {
            Self::Auto => "the loop decides".to_owned(),
            Self::Continue => "revising again".to_owned(),
            Self::Stop => "the run is to end".to_owned(),
            Self::Accept(version) => format!("draft {version} is accepted"),
            Self::Guide(wish) => {
                let words: Vec<&str> = wish.split_whitespace().collect();
                format!("wish: {}", words.join(" "))
            }
            Self::Edit { .. } => "a text of the user's own is the next draft".to_owned(),
        }
    }
}
