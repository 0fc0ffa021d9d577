//! Whether a reply is a draft at all, before anybody judges it: judges have called such texts good. What can be
//! cleaned is cleaned, with the bytes of the draft itself untouched; the rest never wins.

mod about;
mod echo;
mod fence;
mod length;
mod phrase;
mod refusal;
mod repetition;
mod reply;
mod settled;
mod talk;

use crate::types::{Criteria, Issue};

pub(super) use self::echo::check_frame;
pub(super) use self::refusal::is_refusal;
pub(super) use self::repetition::without_loop;
pub(super) use self::reply::check as check_reply;
pub(super) use self::settled::settled;

/// Why a reply is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotADraft {
    /// Why, for people.
    pub(super) reason: String,
    /// What the writer is told when it is asked again.
    pub(super) note: String,
    /// Whether the text is what was requested, but flawed as a whole: it may stand where there is no better one.
    pub(super) is_flaw: bool,
}

/// What was taken away from around a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Removed {
    /// What kind of thing it was, in words.
    pub(super) what: &'static str,
    /// The text.
    pub(super) text: String,
}

/// What a text was written for. What the task itself asks for is no fault of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Occasion<'a> {
    /// What the user asks for.
    pub(super) prompt: &'a str,
    /// What drafts are measured by.
    pub(super) criteria: &'a Criteria,
    /// The version that was revised, if one was.
    pub(super) base: Option<&'a str>,
    /// The issues that the writer was told.
    pub(super) issues: &'a [Issue],
}

/// Takes away what stands around the draft in a reply that is to be the whole text: talk before and after, and
/// one code fence or tag around everything.
pub(super) fn clean(reply: &str, occasion: &Occasion<'_>) -> (String, Vec<Removed>) {
    let mut removed = Vec::new();
    let mut text = reply.trim();
    text = echo::unwrap_tag(text, &mut removed);
    text = talk::without_lead(text, occasion, &mut removed);
    text = talk::without_tail(text, occasion, &mut removed);
    text = fence::unwrap(text, occasion, &mut removed);
    (text.to_owned(), removed)
}

/// Whether a text, cleaned, is a draft.
pub(super) fn check_text(text: &str, occasion: &Occasion<'_>) -> Result<(), NotADraft> {
    if text.trim().is_empty() {
        return Err(NotADraft::new(
            "the reply talks about a draft instead of being one",
            "The last reply was talk about the text. Write the text itself.",
        ));
    }
    refusal::check(text, occasion)?;
    echo::check(text, occasion)?;
    about::check(text, occasion)?;
    talk::check(text, occasion)?;
    length::check(text, occasion)?;
    repetition::check(text, occasion)
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

impl Occasion<'_> {
    /// Whether the prompt has one of these words or phrases, in lower case.
    fn prompt_has(&self, phrases: &[&str]) -> bool {
        let prompt = self.prompt.to_lowercase();
        phrases.iter().any(|phrase| prompt.contains(phrase))
    }

    /// Whether the version that was revised has this passage: then it belongs to the draft.
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
