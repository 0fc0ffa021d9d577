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
    let words: Vec<(u64, bool)> = raw_words(&text)
        .map(|word| {
            (
                hash(word.bytes().map(u64::from)),
                word.chars().any(char::is_alphabetic),
            )
        })
        .collect();
    let mut phrases: Vec<u64> = Vec::with_capacity(words.len());
    for window in words.windows(PHRASE) {
        let repeats = (1..PHRASE)
            .filter(|&at| window[..at].iter().any(|(word, _)| *word == window[at].0))
            .count();
        if repeats <= 1 && window.iter().all(|(_, letters)| *letters) {
            phrases.push(hash(window.iter().map(|(word, _)| *word)));
        }
    }
    let all = phrases.len();
    phrases.sort_unstable();
    phrases.dedup();
    #[expect(clippy::cast_precision_loss, reason = "texts have fewer words")]
    let share = phrases.len() as f64 / all.max(1) as f64;
    (all >= FEWEST).then_some(share)
}

/// FNV-1a. Who makes two phrases look the same only makes a text seem to repeat itself.
fn hash(parts: impl Iterator<Item = u64>) -> u64 {
    parts.fold(0xCBF2_9CE4_8422_2325, |hash, part| {
        (hash ^ part).wrapping_mul(0x100_0000_01B3)
    })
}
