//! Passages of a draft, for issue messages.

use std::ops::Range;

use super::CheckIssue;
use crate::text::clip;
use crate::types::Place;

/// The maximum number of issues that a check lists individually. A revision cannot fix more at
/// once, and more would fill the prompt.
pub(super) const MAX_ISSUES: usize = 10;

/// The maximum length of a passage that is quoted in full, in characters.
const MAX_QUOTE: usize = 200;

/// The maximum length of an excerpt, in characters.
const MAX_EXCERPT: usize = 60;

/// Returns the line of a byte offset, counted from 1.
pub(super) fn line_of(draft: &str, offset: usize) -> usize {
    memchr::memchr_iter(b'\n', &draft.as_bytes()[..offset]).count() + 1
}

/// Returns the place of a passage, with its text.
pub(super) fn place_of(draft: &str, passage: Range<usize>) -> Place {
    let text = &draft[passage.start..passage.end];
    let end = text
        .char_indices()
        .nth(MAX_QUOTE)
        .map_or(text.len(), |(end, _)| end);
    let quote = Some(&text[..end]).filter(|quote| !quote.trim().is_empty());
    Place {
        line: Some(line_of(draft, passage.start) as u64),
        quote: quote.map(str::to_owned),
        verified: quote.map(|_| true),
        ..Place::default()
    }
}

/// Returns an excerpt of a passage on one line, long enough to recognize it.
pub(super) fn excerpt(text: &str) -> String {
    clip(text, MAX_EXCERPT).replace(char::is_control, " ")
}

/// Returns the first issues. If there are more, `rest` describes the others in the last one.
pub(super) fn bounded(
    issues: impl IntoIterator<Item = CheckIssue>,
    count: usize,
    rest: impl FnOnce(usize) -> CheckIssue,
) -> Vec<CheckIssue> {
    let mut named: Vec<CheckIssue> = issues.into_iter().take(MAX_ISSUES).collect();
    if count > named.len() {
        named.push(rest(count - named.len()));
    }
    named
}

/// Returns the ratio of two counts.
#[expect(
    clippy::cast_precision_loss,
    reason = "a share of counts needs no 53 bits"
)]
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::IssueType;

    #[test]
    fn a_place_has_its_line_and_its_words() {
        let draft = "one\ntwo three\n";
        assert_eq!(
            place_of(draft, 8..13),
            Place {
                line: Some(2),
                quote: Some("three".to_owned()),
                verified: Some(true),
                ..Place::default()
            }
        );
        let nothing = place_of(draft, 4..4);
        assert_eq!(
            (nothing.line, nothing.quote, nothing.verified),
            (Some(2), None, None)
        );
        let long = "é".repeat(MAX_QUOTE + 5);
        let quote = place_of(&long, 0..long.len()).quote.unwrap();
        assert_eq!(quote.chars().count(), MAX_QUOTE);
        assert!(long.contains(&quote));
    }

    #[test]
    fn long_and_multi_line_passages_are_clipped() {
        assert_eq!(excerpt("a\nb"), "a b");
        assert_eq!(excerpt(&"x".repeat(60)), "x".repeat(60));
        assert_eq!(excerpt(&"x".repeat(500)), format!("{}…", "x".repeat(60)));
    }

    #[test]
    fn so_many_faults_and_no_more() {
        let issue = |n: usize| CheckIssue::new(IssueType::Missing, n.to_string());
        let named = |count: usize| {
            bounded((0..count).map(issue), count, issue)
                .into_iter()
                .map(|issue| issue.description)
                .collect::<Vec<_>>()
        };
        assert_eq!(named(0), Vec::<String>::new());
        assert_eq!(named(MAX_ISSUES).len(), MAX_ISSUES);
        assert_eq!(named(MAX_ISSUES + 7)[MAX_ISSUES..], ["7"]);
    }
}
