//! Patterns of what models say.

use regex::bytes::{Captures, Regex, RegexBuilder};

/// A pattern of an English phrase, in letters of either case. It looks at bytes: a class such as `[^\n]` or `\s` is one
/// byte, and other letters than English ones are several. To know all of Unicode's letters and their cases would take
/// most of the time of a short run, only to make the patterns ready.
pub(super) struct Phrase(Regex);

impl Phrase {
    /// From one of our own patterns, each of which is used by a test.
    pub(super) fn new(pattern: &str) -> Self {
        let regex = RegexBuilder::new(pattern)
            .unicode(false)
            .case_insensitive(true)
            .build();
        Self(regex.expect("the patterns are constants, and tests use each of them"))
    }

    /// Whether a text has the phrase.
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text.as_bytes())
    }

    /// The parts of the phrase in a text, if it has it.
    pub(super) fn captures<'a>(&self, text: &'a str) -> Option<Captures<'a>> {
        self.0.captures(text.as_bytes())
    }
}
