//! Sanitizes text from a server for display: one line, no control characters, limited length.

/// The maximum length of a message, in characters.
const MAX_MESSAGE: usize = 500;

/// Puts the text on one line and removes control characters, terminal escapes and invisible direction marks.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_MESSAGE));
    let mut length = 0;
    let mut chars = text.chars().peekable();
    let mut blank = false;
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // An escape sequence ends at its first letter, a title at the bell.
            match chars.next() {
                Some('[') => while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {},
                Some(']') => while chars.next_if(|&c| c != '\u{7}').is_some() {},
                _ => continue,
            }
            chars.next();
            continue;
        }
        if c.is_whitespace() {
            blank = true;
            continue;
        }
        if c.is_control() || is_invisible(c) {
            continue;
        }
        if length >= MAX_MESSAGE {
            out.push('…');
            break;
        }
        if std::mem::take(&mut blank) && !out.is_empty() {
            out.push(' ');
            length += 1;
        }
        out.push(c);
        length += 1;
    }
    out
}

/// Whether a character is invisible but changes how others are displayed.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_and_line_ends_are_removed() {
        assert_eq!(
            clean("\u{1b}[31mred\u{1b}[0m\n\tand \u{1b}]0;title\u{7}more\u{202e}\u{0} "),
            "red and more"
        );
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(clean(&"ä".repeat(10_000)).chars().count(), MAX_MESSAGE + 1);
    }

    proptest! {
        #[test]
        fn cleaned_text_has_no_control_characters(text in "\\PC*|(.|\n|\u{1b}|\\[|m)*") {
            let line = clean(&text);
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert!(line.chars().count() <= MAX_MESSAGE + 2);
        }
    }
}
