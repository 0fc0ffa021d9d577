use std::collections::{HashMap, HashSet};

use super::{NotADraft, Occasion, raw_words};

/// So many words in a row are looked at together.
const PHRASE: usize = 4;
/// A text of fewer such phrases is too short to say.
const FEWEST: u32 = 80;
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
    // Words by number: the same number, the same word.
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let words: Vec<(usize, bool)> = raw_words(text)
        .map(|word| {
            let next = numbers.len();
            let number = *numbers.entry(word.to_lowercase()).or_insert(next);
            (number, word.chars().any(char::is_alphabetic))
        })
        .collect();
    let mut phrases = 0_u32;
    let mut kinds: HashSet<[usize; PHRASE]> = HashSet::new();
    for window in words.windows(PHRASE) {
        let mut phrase = [0; PHRASE];
        for (place, (number, _)) in phrase.iter_mut().zip(window) {
            *place = *number;
        }
        let repeats = (1..PHRASE)
            .filter(|&at| phrase[..at].contains(&phrase[at]))
            .count();
        if repeats <= 1 && window.iter().all(|(_, letters)| *letters) {
            phrases += 1;
            kinds.insert(phrase);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "texts have fewer words")]
    let share = kinds.len() as f64 / f64::from(phrases.max(1));
    (phrases >= FEWEST).then_some(share)
}
