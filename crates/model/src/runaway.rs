//! Noticing that a model has lost itself in repetition. Small models do; they would go on until the window
//! is full.

use super::repetition::loop_start;

/// A unit that repeats may be this long, in bytes: a few lines of text.
const LONGEST_UNIT: usize = 400;
/// So much of the end of a text must be repetition, in bytes...
const REPEATED: usize = 1600;
/// ...and it must repeat so often. A table's rules or a row of dots in a real text are shorter or rarer.
const TIMES: usize = 4;
/// A text is looked at whenever so much has been added, in bytes.
const STEP: usize = 256;
/// Repetition with small changes is looked for whenever a text has grown by this share, for that takes longer...
const SHARE: usize = 4;
/// ...and must be so long, in words...
const LOOP: usize = 1000;
/// ...and have so much that was there before.
const KNOWN: f64 = 0.85;

/// Watches a text that is being written.
#[derive(Debug, Default)]
pub(super) struct Watch {
    looked_at: usize,
    searched_at: usize,
}

impl Watch {
    /// Whether the text has become nothing but repetition. Cheap to ask after every piece.
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

/// Whether the end of a text repeats one unit over and over.
fn repeats(text: &[u8]) -> bool {
    let Some(start) = text.len().checked_sub(REPEATED) else {
        return false;
    };
    let tail = &text[start..];
    (1..=LONGEST_UNIT.min(REPEATED / TIMES)).any(|unit| {
        // From the end: where the text is no repetition, that shows at once.
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
    fn a_real_text_is_no_repetition() {
        let lines: Vec<String> = (0..400)
            .map(|n| format!("Line {n} says something else."))
            .collect();
        let text = lines.join(
            "
",
        );
        let mut watch = Watch::default();
        for end in (0..text.len()).step_by(7) {
            assert!(!watch.is_runaway(&text[..end]));
        }
    }

    #[test]
    fn repetition_with_small_changes_is_found() {
        let kinds = ["small", "green", "old", "quiet", "famous", "young", "wild"];
        let (mut text, mut watch) = (String::new(), Watch::default());
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
    fn a_ruler_in_a_text_is_no_runaway() {
        let text = format!(
            "{}\n{}\nMore.",
            "Word by word. ".repeat(20),
            "-".repeat(800)
        );
        assert!(!repeats(text.as_bytes()));
    }

    proptest! {
        #[test]
        fn whatever_is_repeated_long_enough_is_found(
            before in "[a-z ]{0,500}",
            unit in "[a-zé\n .]{1,180}",
        ) {
            let mut watch = Watch::default();
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
