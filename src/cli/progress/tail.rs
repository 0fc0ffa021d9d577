//! The last rows of a text of any length that is being written.

use std::collections::VecDeque;

use crate::cli::columns;

/// How many rows of a draft are shown while it is written.
const TAIL_ROWS: usize = 4;

/// The maximum length of a line to keep, in characters: a draft may be one line of a megabyte.
const KEPT_CHARS: usize = 600;

/// The end of a text.
#[derive(Debug, Default)]
pub(super) struct Tail {
    lines: VecDeque<String>,
    words: usize,
    in_word: bool,
}

impl Tail {
    /// Adds a piece of text.
    pub(super) fn push(&mut self, text: &str) {
        if self.lines.is_empty() {
            self.lines.push_back(String::new());
        }
        for character in text.chars() {
            let space = character.is_whitespace();
            self.words += usize::from(!space && !self.in_word);
            self.in_word = !space;
            if character == '\n' {
                self.lines.push_back(String::new());
                if self.lines.len() > TAIL_ROWS + 1 {
                    self.lines.pop_front();
                }
            } else if let Some(line) = self.lines.back_mut()
                && !character.is_control()
            {
                line.push(character);
                if line.len() > 2 * KEPT_CHARS {
                    *line = line.chars().skip(KEPT_CHARS / 2).collect();
                }
            }
        }
    }

    /// Returns the word count of the whole text.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Returns the last rows, of at most `width` columns.
    pub(super) fn rows(&self, width: usize) -> Vec<&str> {
        let lines = self.lines.iter();
        let mut rows: Vec<&str> = lines.flat_map(|line| columns::rows(line, width)).collect();
        let skip = rows.len().saturating_sub(TAIL_ROWS);
        rows.split_off(skip)
    }
}

#[cfg(test)]
mod tests {
    use console::measure_text_width;

    use super::*;

    #[test]
    fn the_tail_contains_the_last_rows() {
        let mut tail = Tail::default();
        tail.push("one\ntwo\n\nthree is a longer li");
        tail.push("ne than fits");
        assert_eq!(
            tail.rows(20),
            ["one", "two", "three is a longer", "line than fits"]
        );
        assert_eq!(tail.words(), 9);
    }

    #[test]
    fn the_tail_stays_small_and_accepts_wide_characters() {
        let mut tail = Tail::default();
        for _ in 0..10_000 {
            tail.push("漢字 \u{1b}[31m");
        }
        assert!(tail.lines.iter().map(String::len).sum::<usize>() < 10 * KEPT_CHARS);
        for row in tail.rows(26) {
            assert!(measure_text_width(row) <= 26, "{row}");
            assert!(!row.contains('\u{1b}'));
        }
    }
}
