/// Assembles characters from bytes that arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct Utf8Assembler {
    /// The start of an incomplete character, at most 3 bytes.
    pending: Vec<u8>,
}

impl Utf8Assembler {
    /// Adds bytes and returns the characters that are complete. Replaces invalid bytes with U+FFFD.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = self.pending.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(bad) = error.error_len() else {
                        rest = after;
                        break;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &after[bad..];
                }
            }
        }
        self.pending = rest.to_vec();
        text
    }

    /// Returns U+FFFD if the last character is incomplete.
    pub(super) fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.pending);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_text_does_not_depend_on_the_split(bytes: Vec<u8>, at: Vec<prop::sample::Index>) {
            let mut cuts: Vec<usize> = at.iter().map(|i| i.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let mut assembler = Utf8Assembler::default();
            let mut text = String::new();
            let mut done = 0;
            for cut in cuts {
                text.push_str(&assembler.push(&bytes[done..cut]));
                done = cut;
            }
            text.push_str(&assembler.finish());
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn incomplete_characters_are_held_back() {
        let mut assembler = Utf8Assembler::default();
        let emoji = "🦀".as_bytes();
        assert_eq!(assembler.push(&emoji[..1]), "");
        assert_eq!(assembler.push(&emoji[1..3]), "");
        assert_eq!(assembler.push(&emoji[3..]), "🦀");
        assert_eq!(assembler.push(&emoji[..2]), "");
        assert_eq!(assembler.finish(), "\u{FFFD}");
    }
}
