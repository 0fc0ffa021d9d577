use super::{DraftContext, NotADraft};
use crate::types::{Evaluator, IssueType};

/// A shorter draft may become anything.
const SHORT: usize = 200;
/// What is left of a text that was revised is at least this share of it, in characters...
const COLLAPSE: f64 = 0.4;
/// ...and at most so many times as much.
const EXPLOSION: f64 = 2.5;

/// Words in issues that ask for a shorter text.
const SHORTER: &[&str] = &[
    "too long",
    "shorten",
    "shorter",
    "cut ",
    "concise",
    "verbos",
    "wordy",
    "redundan",
    "repetit",
    "brief",
    "trim",
    "remove",
    "delete",
    "at most",
    "padding",
    "filler",
    "condens",
    "rambl",
    "unnecessary",
    "irrelevant",
    "off-topic",
    "off topic",
];
/// Words in issues that are about the length, in whichever direction.
const LENGTH: &[&str] = &["length", " words", "word count", "word limit", "character"];
/// Words in issues that ask for a longer text.
const LONGER: &[&str] = &[
    "too short",
    "longer",
    "expand",
    "elaborate",
    "detail",
    "at least",
    "add ",
    "missing",
    "lacks",
    "lack of",
    "incomplete",
    "explain",
    "example",
    "superficial",
    "depth",
    "shallow",
    "thin",
];

/// Whether a revision became much shorter or longer than the version that it revises without being asked to: less
/// than 40 % or more than 2.5 times its characters, of at least 200.
///
/// A change of length is requested by a `length` criterion that the base misses in that direction, or by an issue
/// in so many words; an issue about something missing asks for more.
pub(super) fn check(text: &str, context: &DraftContext<'_>) -> Result<(), NotADraft> {
    let Some(base) = context.base else {
        return Ok(());
    };
    let (before, now) = (base.chars().count(), text.chars().count());
    #[expect(clippy::cast_precision_loss, reason = "texts have fewer characters")]
    let factor = now as f64 / before.max(1) as f64;
    if before < SHORT || asked_for(context, if factor < 1.0 { SHORTER } else { LONGER }) {
        return Ok(());
    }
    if factor < COLLAPSE {
        return Err(NotADraft::new(
            format!(
                "only {now} of the {before} characters are left, and nothing asks for a shorter text"
            ),
            "The last reply left out most of the text. Write the whole text, with everything that is not to be \
             changed.",
        ));
    }
    if factor > EXPLOSION {
        return Err(NotADraft::new(
            format!("{before} characters have become {now}, and nothing asks for a longer text"),
            "The last reply was several times as long as the text. Keep the length, and change only what is named.",
        ));
    }
    Ok(())
}

fn asked_for(context: &DraftContext<'_>, phrases: &[&str]) -> bool {
    let longer = phrases == LONGER;
    let names = |text: &str| {
        let text = text.to_lowercase();
        phrases
            .iter()
            .chain(LENGTH)
            .any(|phrase| text.contains(phrase))
    };
    context.issues.iter().any(|issue| {
        let of_length = issue.criterion.as_ref().is_some_and(|name| {
            context.criteria.criteria.iter().any(|criterion| {
                criterion.name == *name && matches!(criterion.evaluator, Evaluator::Length(_))
            })
        });
        of_length
            || names(&issue.description)
            || issue.suggested_fix.as_deref().is_some_and(names)
            || (longer && issue.kind == IssueType::Missing)
    })
}
