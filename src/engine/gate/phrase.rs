//! Patterns of what models say.

use std::sync::OnceLock;

use regex::bytes::{Captures, Regex, RegexBuilder};

/// An English phrase at the beginning of a text, in letters of either case.
///
/// Most texts begin otherwise, and for them the pattern is not even made ready, which takes longer than all else that
/// a short run does. It looks at bytes: a class such as `[^\n]` or `\s` is one byte, and other letters than English
/// ones are several.
pub(super) struct Phrase {
    openings: &'static [&'static str],
    pattern: &'static str,
    regex: OnceLock<Regex>,
}

impl Phrase {
    /// A phrase that begins in one of these ways, markup aside; they are in lower case, and a space stands for any
    /// blank.
    pub(super) const fn new(openings: &'static [&'static str], pattern: &'static str) -> Self {
        Self {
            openings,
            pattern,
            regex: OnceLock::new(),
        }
    }

    /// Whether a text begins with the phrase.
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.begins(text) && self.regex().is_match(text.as_bytes())
    }

    /// The parts of the phrase in a text, if it begins with it.
    pub(super) fn captures<'a>(&self, text: &'a str) -> Option<Captures<'a>> {
        if !self.begins(text) {
            return None;
        }
        self.regex().captures(text.as_bytes())
    }

    fn begins(&self, text: &str) -> bool {
        let blank = |byte: u8| byte.is_ascii_whitespace() || byte == b'\x0B';
        let markup = |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '#' | '>' | '(');
        let text = text.trim_start_matches(markup).as_bytes();
        let is_same = |(byte, wanted): (&u8, u8)| match wanted {
            b' ' => blank(*byte),
            wanted => byte.eq_ignore_ascii_case(&wanted),
        };
        self.openings.iter().any(|opening| {
            text.len() >= opening.len() && text.iter().zip(opening.bytes()).all(is_same)
        })
    }

    fn regex(&self) -> &Regex {
        self.regex.get_or_init(|| {
            RegexBuilder::new(self.pattern)
                .unicode(false)
                .case_insensitive(true)
                .build()
                .expect("the patterns are constants, and tests use each of them")
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use regex_syntax::ParserBuilder;
    use regex_syntax::hir::literal::{ExtractKind, Extractor};

    use super::*;

    /// Checks that all that the pattern matches begins in one of the ways that the phrase says.
    #[track_caller]
    pub(in crate::engine::gate) fn check_openings(phrase: &Phrase) {
        // Markup comes first, and does not count.
        let pattern = phrase.pattern.strip_prefix('^').unwrap();
        let pattern = match pattern.strip_prefix('[') {
            Some(rest) => rest.split_once("]*").unwrap().1,
            None => pattern,
        };
        let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
        let mut extractor = Extractor::new();
        extractor
            .kind(ExtractKind::Prefix)
            .limit_total(1_000_000)
            .limit_literal_len(24);
        let beginnings = extractor.extract(&parser.parse(pattern).unwrap());
        let beginnings = beginnings.literals().expect("there are not too many");
        assert!(!beginnings.is_empty());
        for beginning in beginnings {
            let text = std::str::from_utf8(beginning.as_bytes()).unwrap();
            assert!(phrase.begins(text), "{text:?}");
        }
        assert!(!phrase.begins("the fox jumps"));
        assert!(!phrase.begins(""));
    }
}
