//! Prompts that ask for no draft and no verdict, but for what is to be learned from what has happened.

use minijinja::context;

use super::block::block;
use super::{Feedback, Prompts};
use crate::model::Message;

impl Prompts {
    /// Asks why a version was worse than the one it revises, and what is to be done instead. Each comes with what
    /// was found in it. Begins as [`Prompts::revise`] does for the better one.
    pub fn reflect_on_drop(
        &self,
        best: (&str, &Feedback),
        worse: (&str, &Feedback),
    ) -> Vec<Message> {
        let values = context! {
            draft => best.0,
            feedback => best.1.describe(),
            kept => best.1.kept(),
            worse => worse.0,
            found => worse.1.describe(),
        };
        self.messages("reflect_drop.j2", values)
    }

    /// Asks why a reply was no draft, and how the next one can be. `base` is the draft that was to be revised, if
    /// one was.
    pub fn reflect_on_failure(
        &self,
        base: Option<&str>,
        reply: &str,
        reason: &str,
    ) -> Vec<Message> {
        let values = context! { draft => base, reply, reason };
        self.messages("reflect_failure.j2", values)
    }
}

/// What a reflection said, as the writer is told with its next prompt.
pub fn guidance(text: &str) -> String {
    format!(
        "Before this, a look back at what has happened so far came to this:\n\n{}\n\nHeed it as far as it \
         serves the task.",
        block(text, "guidance", None)
    )
}
