//! A line editor that draws on one terminal row. It shows the end of a longer line, so wide characters,
//! narrow terminals and resizing cannot break it.

use console::{Key, measure_text_width};
use unicode_segmentation::UnicodeSegmentation as _;

/// A line that the user types.
#[derive(Debug, Default)]
pub(super) struct Line(String);

/// The effect of a key on a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// The line continues.
    More,
    /// The line is complete.
    Done,
    /// The user cancelled.
    Cancelled,
}

impl Line {
    /// Applies a key.
    pub(super) fn press(&mut self, key: &Key) -> Typed {
        match key {
            Key::Enter => return Typed::Done,
            Key::Escape => return Typed::Cancelled,
            Key::Char('\u{4}') if self.0.is_empty() => return Typed::Cancelled,
            Key::Backspace => {
                let last = self.0.grapheme_indices(true).next_back();
                let end = last.map_or(0, |(start, _)| start);
                self.0.truncate(end);
            }
            // Ctrl-U and Ctrl-W, as in shells.
            Key::Char('\u{15}') => self.0.clear(),
            Key::Char('\u{17}') => {
                let kept = self.0.trim_end();
                let end = kept.rfind(char::is_whitespace).map_or(0, |place| {
                    place + kept[place..].chars().next().map_or(0, char::len_utf8)
                });
                self.0.truncate(end);
            }
            Key::Tab => self.0.push(' '),
            Key::Char(typed) if !typed.is_control() => self.0.push(*typed),
            _ => {}
        }
        Typed::More
    }

    /// Returns as much of the end of the line as fits into `width` columns.
    pub(super) fn shown(&self, width: usize) -> &str {
        let mut used = 0;
        let mut start = self.0.len();
        for (place, grapheme) in self.0.grapheme_indices(true).rev() {
            used += measure_text_width(grapheme);
            if used > width {
                break;
            }
            start = place;
        }
        &self.0[start..]
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str, keys: &[Key]) -> String {
        let mut line = Line::default();
        for character in text.chars() {
            assert_eq!(line.press(&Key::Char(character)), Typed::More);
        }
        for key in keys {
            line.press(key);
        }
        line.into_text()
    }

    #[test]
    fn keys_edit_the_line() {
        let back = || Key::Backspace;
        assert_eq!(typed("ab", &[back()]), "a");
        assert_eq!(typed("", &[back()]), "");
        // Backspace deletes a whole grapheme.
        assert_eq!(typed("e\u{301}漢👩‍👩‍👧", &[back(), back()]), "e\u{301}");
        assert_eq!(typed("one two  ", &[Key::Char('\u{17}')]), "one ");
        assert_eq!(typed("one", &[Key::Char('\u{17}')]), "");
        assert_eq!(typed("a\u{3000}b", &[Key::Char('\u{17}')]), "a\u{3000}");
        assert_eq!(typed("one two", &[Key::Char('\u{15}')]), "");
        assert_eq!(typed("a", &[Key::Tab, Key::Char('b')]), "a b");
        assert_eq!(typed("a", &[Key::ArrowUp, Key::Char('\u{7}')]), "a");
    }

    #[test]
    fn enter_ends_the_line_and_escape_or_ctrl_d_cancels_it() {
        let mut line = Line::default();
        assert_eq!(line.press(&Key::Char('\u{4}')), Typed::Cancelled);
        line.press(&Key::Char('a'));
        assert_eq!(line.press(&Key::Char('\u{4}')), Typed::More);
        assert_eq!(line.press(&Key::Escape), Typed::Cancelled);
        assert_eq!(line.press(&Key::Enter), Typed::Done);
    }

    #[test]
    fn the_end_of_a_long_line_is_shown() {
        let mut line = Line::default();
        for character in "ab漢字cd".chars() {
            line.press(&Key::Char(character));
        }
        assert_eq!(line.shown(80), "ab漢字cd");
        assert_eq!(line.shown(5), "字cd");
        assert_eq!(line.shown(3), "cd");
        assert_eq!(line.shown(0), "");
    }
}
