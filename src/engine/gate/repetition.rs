use std::collections::HashSet;

use super::{NotADraft, Occasion, words};

/// So many words in a row are looked at together.
const PHRASE: usize = 4;
/// A text of fewer such phrases is too short to say.
const FEWEST: usize = 80;
/// Where fewer of the phrases than this are different ones, the text says the same over and over. Refrains and
/// forms have twice as many.
const DIFFERENT: f64 = 0.25;

/// Whether the text repeats one passage over and over. What a server notices while the text is written is caught
/// there; this is for units that are longer, or not quite the same.
pub(super) fn check(text: &str, occasion: &Occasion<'_>) -> Result<(), NotADraft> {
    let share = match different(text) {
        Some(share) if share < DIFFERENT => share,
        _ => return Ok(()),
    };
    let wanted = occasion.prompt_has(&["repeat", " times", "refrain", "loop"])
        || occasion
            .base
            .and_then(different)
            .is_some_and(|base| base < DIFFERENT);
    if wanted {
        return Ok(());
    }
    Err(NotADraft::new(
        format!(
            "the text says the same over and over: only {:.0} % of its phrases are different ones",
            share * 100.0
        ),
        "The last reply repeated one passage over and over. Say everything once, and end the text.",
    ))
}

/// The share of a text's phrases that are different ones; `None` if there are too few to say. Rows of numbers and
/// the like are no phrases.
fn different(text: &str) -> Option<f64> {
    let words = words(text);
    let phrases: Vec<&[String]> = words
        .windows(PHRASE)
        .filter(|phrase| {
            let kinds: HashSet<&String> = phrase.iter().collect();
            kinds.len() >= PHRASE - 1
                && phrase
                    .iter()
                    .all(|word| word.chars().any(char::is_alphabetic))
        })
        .collect();
    let kinds: HashSet<&[String]> = phrases.iter().copied().collect();
    #[expect(clippy::cast_precision_loss, reason = "texts have fewer words")]
    let share = kinds.len() as f64 / phrases.len().max(1) as f64;
    (phrases.len() >= FEWEST).then_some(share)
}
