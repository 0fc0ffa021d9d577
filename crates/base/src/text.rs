//! Formatting helpers: counts with nouns, single-line text, truncated text.

use std::fmt::Display;

/// Truncates a text after `chars` characters and appends `…` if anything was cut.
pub fn clip(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Puts a text on one line, with its words separated by single spaces.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A count with its noun: `1 word`, `2 words`. For nouns with a plural in `s`.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = plural(count, "", "s");
    format!("{count} {noun}{ending}")
}

/// Chooses between the singular and the plural form.
pub fn plural<'a, N: Copy + PartialEq + From<u8>>(
    count: N,
    one: &'a str,
    many: &'a str,
) -> &'a str {
    if count == N::from(1) { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(clip("äöü", 3), "äöü");
        assert_eq!(clip("äöü", 2), "äö…");
        assert_eq!(clip("", 0), "");
    }

    #[test]
    fn white_space_becomes_single_spaces() {
        assert_eq!(one_line(" a\n b\t c"), "a b c");
    }

    #[test]
    fn a_noun_agrees_with_its_number() {
        assert_eq!(counted(0_u64, "word"), "0 words");
        assert_eq!(counted(1_u64, "word"), "1 word");
        assert_eq!(counted(2_usize, "word"), "2 words");
        assert_eq!(plural(1_u32, "match", "matches"), "match");
        assert_eq!(plural(0_u32, "match", "matches"), "matches");
    }
}
