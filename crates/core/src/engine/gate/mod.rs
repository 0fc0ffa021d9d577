//! Rejects replies that are not valid drafts before they are judged: judges have scored such texts highly. What
//! can be cleaned is cleaned, without changing the draft itself.

mod about;
mod boilerplate;
mod echo;
mod fence;
mod length;
mod phrase;
mod refusal;
mod repetition;
mod reply;
mod stable_prefix;

use crate::types::{Criteria, Issue};

pub(super) use self::echo::check_frame;
pub(super) use self::refusal::is_refusal;
pub(super) use self::repetition::without_loop;
pub(super) use self::reply::check as check_reply;
pub(super) use self::stable_prefix::settled;

/// Why a reply is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotADraft {
    /// The reason, for the user.
    pub(super) reason: String,
    /// The note that the writer receives with the next request.
    pub(super) note: String,
    /// Whether the text is what was requested but flawed as a whole: it may stand if there is no better one.
    pub(super) is_flaw: bool,
}

/// Text that was removed around a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Removed {
    /// What kind of text it was.
    pub(super) what: &'static str,
    /// The text.
    pub(super) text: String,
}

/// What a text was written for. What the task itself asks for is not a fault of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct DraftContext<'a> {
    /// What the user asks for.
    pub(super) prompt: &'a str,
    /// What drafts are measured by.
    pub(super) criteria: &'a Criteria,
    /// The version that was revised, if one was.
    pub(super) base: Option<&'a str>,
    /// The issues that the writer received.
    pub(super) issues: &'a [Issue],
}

/// Removes what is around the draft in a reply that is to be the whole text: remarks before and after it, and one
/// code fence or tag around everything.
pub(super) fn clean(reply: &str, context: &DraftContext<'_>) -> (String, Vec<Removed>) {
    let mut removed = Vec::new();
    let mut text = reply.trim();
    text = echo::unwrap_tag(text, &mut removed);
    text = echo::without_instruction(text, context, &mut removed);
    text = boilerplate::without_lead(text, context, &mut removed);
    text = boilerplate::without_tail(text, context, &mut removed);
    text = fence::unwrap(text, context, &mut removed);
    (text.to_owned(), removed)
}

/// Whether a cleaned text is a valid draft.
pub(super) fn check_text(text: &str, context: &DraftContext<'_>) -> Result<(), NotADraft> {
    if text.trim().is_empty() {
        return Err(NotADraft::new(
            "the reply talks about a draft instead of being one",
            "The last reply was talk about the text. Write the text itself.",
        ));
    }
    refusal::check(text, context)?;
    echo::check(text, context)?;
    about::check(text, context)?;
    boilerplate::check(text, context)?;
    length::check(text, context)?;
    repetition::check(text, context)
}

impl NotADraft {
    pub(super) fn new(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            note: note.into(),
            is_flaw: false,
        }
    }

    /// A flaw of a text that is what was requested.
    pub(super) fn flaw(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            is_flaw: true,
            ..Self::new(reason, note)
        }
    }
}

impl DraftContext<'_> {
    /// Whether the prompt has one of these words or phrases, in lower case.
    fn prompt_has(&self, phrases: &[&str]) -> bool {
        let prompt = self.prompt.to_lowercase();
        phrases.iter().any(|phrase| prompt.contains(phrase))
    }

    /// Whether the revised version has this passage: then it belongs to the draft.
    fn base_has(&self, passage: &str) -> bool {
        self.base.is_some_and(|base| base.contains(passage.trim()))
    }
}

/// The words of a text, without what stands between them.
fn raw_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
}

/// The words of a text in lower case.
fn words(text: &str) -> Vec<String> {
    raw_words(text).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
