use std::collections::HashMap;

use super::{NotADraft, Occasion, raw_words};

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
    let text = text.to_lowercase();
    let words: Vec<&str> = raw_words(&text).collect();
    // Words by number: the same number, the same word.
    let mut numbers: HashMap<&str, usize> = HashMap::with_capacity(words.len());
    let words: Vec<(usize, bool)> = words
        .into_iter()
        .map(|word| {
            let next = numbers.len();
            let number = *numbers.entry(word).or_insert(next);
            (number, word.chars().any(char::is_alphabetic))
        })
        .collect();
    let mut phrases: Vec<[usize; PHRASE]> = Vec::with_capacity(words.len());
    for window in words.windows(PHRASE) {
        let mut phrase = [0; PHRASE];
        for (place, (number, _)) in phrase.iter_mut().zip(window) {
            *place = *number;
        }
        let repeats = (1..PHRASE)
            .filter(|&at| phrase[..at].contains(&phrase[at]))
            .count();
        if repeats <= 1 && window.iter().all(|(_, letters)| *letters) {
            phrases.push(phrase);
        }
    }
    let all = phrases.len();
    phrases.sort_unstable();
    phrases.dedup();
    #[expect(clippy::cast_precision_loss, reason = "texts have fewer words")]
    let share = phrases.len() as f64 / all.max(1) as f64;
    (all >= FEWEST).then_some(share)
}
