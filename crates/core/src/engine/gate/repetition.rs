use super::{DraftContext, NotADraft};
use crate::model::repetition::loop_start;

/// A loop has at least so many words.
const LEAST: usize = 250;
/// So much of it was there before.
const KNOWN: f64 = 0.95;
/// A loop of which less is known, or that is shorter, is only cut from the end of a text that is flawed anyway.
const LEAST_OF_FLAWED: usize = 60;

/// Whether the text ends in a loop. Short loops are detected while the text is written; this one detects longer
/// units.
pub(super) fn check(text: &str, context: &DraftContext<'_>) -> Result<(), NotADraft> {
    let loops = |text: &str| loop_start(text, LEAST, KNOWN).is_some();
    if !loops(text)
        || context.prompt_has(&["repeat", " times", "refrain", "loop"])
        || context.base.is_some_and(loops)
    {
        return Ok(());
    }
    Err(NotADraft::flaw(
        "the text repeats one passage over and over up to its end",
        "The last reply repeated one passage over and over. Say everything once, and end the text.",
    ))
}

/// A flawed text without the loop at its end.
pub(in crate::engine) fn without_loop(text: &str) -> &str {
    loop_start(text, LEAST_OF_FLAWED, KNOWN).map_or(text, |start| text[..start].trim_end())
}
