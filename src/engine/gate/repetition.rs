use super::{NotADraft, Occasion};

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
    let mut phrases: Vec<u64> = Vec::with_capacity(words.len());
    for window in words.windows(PHRASE) {
        let repeats = (1..PHRASE)
            .filter(|&at| window[..at].iter().any(|word| word.hash == window[at].hash))
            .count();
        if repeats <= 1 && window.iter().all(|word| word.has_letters) {
            let hashes = window.iter().map(|word| word.hash);
            phrases.push(hashes.fold(NOTHING, hash));
        }
    }
    let all = phrases.len();
    phrases.sort_unstable();
    phrases.dedup();
    #[expect(clippy::cast_precision_loss, reason = "texts have fewer words")]
    let share = phrases.len() as f64 / all.max(1) as f64;
    (all >= FEWEST).then_some(share)
}

/// What of a word matters here.
struct Word {
    /// Of its letters, large and small ones alike.
    hash: u64,
    has_letters: bool,
}

/// The words of a text as [`super::raw_words`] has them, in one pass: every draft is looked at.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::with_capacity(text.len() / 4);
    let mut word: Option<Word> = None;
    for c in text.chars() {
        let is_letter = c.is_alphabetic();
        if !(is_letter || c.is_numeric() || c == '\'') {
            words.extend(word.take());
            continue;
        }
        let so_far = word.get_or_insert(Word {
            hash: NOTHING,
            has_letters: false,
        });
        so_far.has_letters |= is_letter;
        so_far.hash = if c.is_ascii() {
            hash(so_far.hash, u64::from(c.to_ascii_lowercase()))
        } else {
            c.to_lowercase().map(u64::from).fold(so_far.hash, hash)
        };
    }
    words.extend(word);
    words
}

/// The hash of nothing.
const NOTHING: u64 = 0xCBF2_9CE4_8422_2325;

/// FNV-1a. Who makes two phrases look the same only makes a text seem to repeat itself.
fn hash(so_far: u64, part: u64) -> u64 {
    (so_far ^ part).wrapping_mul(0x100_0000_01B3)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::gate::raw_words;

    proptest! {
        #[test]
        fn words_are_those_of_the_gate(text in r"[aA1éÉß' .,\n-]{0,40}") {
            let lower = text.to_lowercase();
            let expected: Vec<u64> = raw_words(&lower)
                .map(|word| word.chars().map(u64::from).fold(NOTHING, hash))
                .collect();
            let hashes: Vec<u64> = words(&text).iter().map(|word| word.hash).collect();
            prop_assert_eq!(hashes, expected);
        }
    }
}
