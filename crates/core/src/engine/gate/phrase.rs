//! Patterns of what models say.

use regex::bytes::{Regex, RegexBuilder};

/// The pattern of English phrases, in letters of either case.
///
/// It looks at bytes: a class such as `[^\n]` or `\s` is one byte, and letters other than English ones are several.
pub(super) fn phrase(pattern: &str) -> Regex {
    RegexBuilder::new(pattern)
        .unicode(false)
        .case_insensitive(true)
        .build()
        .expect("the patterns are constants, and tests use each of them")
}
