//! Detects that a model is stuck in repetition. Small models do this and would continue until the context window is
//! full.

use super::repetition::loop_start;

/// The maximum length of a repeated unit, in bytes: a few lines of text.
const LONGEST_UNIT: usize = 400;
/// The minimum length of the repetition at the end of a text, in bytes.
const REPEATED: usize = 1600;
/// The minimum number of repetitions. Table rules or rows of dots in real texts are shorter or rarer.
const TIMES: usize = 4;
/// How often to check a text: after this many new bytes.
const STEP: usize = 256;
/// How often to check for repetition with small variations, which takes longer: when the text has grown by one part
/// in this many.
const SHARE: usize = 4;
/// The minimum length of such a loop, in words.
const LOOP: usize = 1000;
/// The minimum share of such a loop that occurred before.
const KNOWN: f64 = 0.85;

/// Watches a text while it is written.
#[derive(Debug, Default)]
pub(super) struct RepetitionWatch {
    looked_at: usize,
    searched_at: usize,
}

impl RepetitionWatch {
    /// Whether the text has become pure repetition. Cheap enough to call after every piece.
    pub(super) fn is_runaway(&mut self, text: &str) -> bool {
        if text.len() < self.looked_at + STEP {
            return false;
        }
        self.looked_at = text.len();
        if repeats(text.as_bytes()) {
            return true;
        }
        if text.len() < self.searched_at + self.searched_at / SHARE + LOOP {
            return false;
        }
        self.searched_at = text.len();
        loop_start(text, LOOP, KNOWN).is_some()
    }
}

/// Whether a text ends with many repetitions of one unit.
fn repeats(text: &[u8]) -> bool {
    let Some(start) = text.len().checked_sub(REPEATED) else {
        return false;
    };
    let tail = &text[start..];
    (1..=LONGEST_UNIT.min(REPEATED / TIMES)).any(|unit| {
        // Compare from the end, where a mismatch shows soonest.
        tail[unit..]
            .iter()
            .rev()
            .zip(tail[..REPEATED - unit].iter().rev())
            .all(|(late, early)| late == early)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn real_text_is_not_repetition() {
        let lines: Vec<String> = (0..400)
            .map(|n| format!("Line {n} says something else."))
            .collect();
        let text = lines.join(
            "
",
        );
        let mut watch = RepetitionWatch::default();
        for end in (0..text.len()).step_by(7) {
            assert!(!watch.is_runaway(&text[..end]));
        }
    }

    #[test]
    fn repetition_with_small_changes_is_found() {
        let kinds = ["small", "green", "old", "quiet", "famous", "young", "wild"];
        let (mut text, mut watch) = (String::new(), RepetitionWatch::default());
        let found = (0_usize..1000).find(|n| {
            let (one, other) = (kinds[n * n % 7], kinds[n / 2 % 7]);
            text += "The frog is a ";
            text += one;
            text += " animal that lives in the ";
            text += other;
            text += " pond near here. ";
            watch.is_runaway(&text)
        });
        assert!(found.is_some_and(|n| n < 300), "{found:?}");
    }

    #[test]
    fn a_ruler_is_not_repetition() {
        let text = format!(
            "{}\n{}\nMore.",
            "Word by word. ".repeat(20),
            "-".repeat(800)
        );
        assert!(!repeats(text.as_bytes()));
    }

    proptest! {
        #[test]
        fn long_repetition_is_found(
            before in "[a-z ]{0,500}",
            unit in "[a-zé\n .]{1,180}",
        ) {
            let mut watch = RepetitionWatch::default();
            let mut text = before;
            let found = (0..4000).any(|_| {
                text.push_str(&unit);
                watch.is_runaway(&text)
            });
            prop_assert!(found);
            prop_assert!(text.len() < 500 + REPEATED + STEP + 3 * unit.len());
        }
    }
}
