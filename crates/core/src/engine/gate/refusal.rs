use std::sync::LazyLock;

use regex::bytes::Regex;

use super::phrase::phrase;
use super::{DraftContext, NotADraft, words};

/// A refusal is short: longer texts that begin like one are letters and stories.
const MOST_WORDS: usize = 120;

/// How excuses begin.
macro_rules! opener {
    () => {
        r"(?:(?:i'?m|i am) (?:so |very |really )?(?:sorry|afraid)|sorry|unfortunately|my apologies|i apologi[sz]e)[,.!]?\s*(?:but\s*)?(?:that\s*)?"
    };
}

/// How refusals begin: the model speaks of itself.
static REFUSAL: LazyLock<Regex> = LazyLock::new(|| {
    phrase(concat!(
        r"^(?:(?:",
        opener!(),
        r")?i(?: cannot|'m unable to| am unable to| can not| can't|'m not able to| am not able to| won't| will not| don't feel comfortable) ",
        r"(?:help (?:you )?with|assist|comply|fulfil|engage|create|generate|produce|provide|write|complete|continue|do that|revise|answer|respond|process|help$|help\.)|(?:",
        opener!(),
        r")?as an? (?:ai|artificial intelligence|(?:large )?language model)\b.{0,60}\bi\b|",
        opener!(),
        r"i(?:'m| am) (?:not |just |only )?an? (?:ai|artificial intelligence|(?:large )?language model|chatbot|(?:virtual )?assistant)\b|(?:",
        opener!(),
        r")?(?:i(?:'ll| will)? need (?:more|additional|further) (?:information|context|details)|there (?:is|was) no (?:draft|text)|(?:could|can) you (?:please )?(?:provide|share|paste|clarify)|please (?:provide|share|paste) (?:the|me|your|more)|(?:it (?:seems|looks like|appears) (?:that )?)?(?:you haven't|you have not|you did not|you didn't) (?:provide|share|include)))",
    ))
});

/// Whether a text reads like a refusal, whatever it was written for.
pub(in crate::engine) fn is_refusal(text: &str) -> bool {
    // Typographic apostrophes are as common.
    let plain = text.trim().replace('\u{2019}', "'");
    REFUSAL.is_match(plain.as_bytes()) && words(&plain).len() <= MOST_WORDS
}

/// Whether the text refuses or asks back instead of being what was requested. Tasks that are about refusing or
/// excusing are exempt.
pub(super) fn check(text: &str, context: &DraftContext<'_>) -> Result<(), NotADraft> {
    const ABOUT_IT: &[&str] = &[
        "refus",
        "declin",
        "reject",
        "apolog",
        "sorry",
        "excuse",
        "turn down",
        "dialog",
        "monolog",
        "chatbot",
        "assistant",
        "language model",
        "template",
        "questionnaire",
        "say no",
    ];
    if !is_refusal(text) || context.prompt_has(ABOUT_IT) || context.base_has(text) {
        return Ok(());
    }
    let first: String = text
        .trim()
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(80)
        .collect();
    Err(NotADraft::new(
        format!("the model refused or asked back: {first}"),
        "The last reply was a refusal or a question. Nobody can answer questions: write the text that the task \
         asks for, with what is known.",
    ))
}
