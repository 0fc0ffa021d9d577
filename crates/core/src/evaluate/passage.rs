//! Passages of a draft, as faults name them.

use std::ops::Range;

use super::Fault;
use crate::text::clip;
use crate::types::Place;

/// The most faults that one check names one by one. A reviser fixes no more at once, and a text that is
/// wrong all over fills no prompt.
pub(super) const MAX_FAULTS: usize = 10;

/// The longest passage that is quoted whole, in characters.
const MAX_QUOTE: usize = 200;

/// The most characters of an excerpt.
const MAX_EXCERPT: usize = 60;

/// The line that a byte of the draft is in, counted from 1.
pub(super) fn line_of(draft: &str, offset: usize) -> usize {
    memchr::memchr_iter(b'\n', &draft.as_bytes()[..offset]).count() + 1
}

/// Where a passage is, with its words.
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

/// Enough of a passage to recognize it, on one line.
pub(super) fn excerpt(text: &str) -> String {
    clip(text, MAX_EXCERPT).replace(char::is_control, " ")
}

/// The first faults; if there are more, the last one says so in these words.
pub(super) fn bounded(
    faults: impl IntoIterator<Item = Fault>,
    count: usize,
    rest: impl FnOnce(usize) -> Fault,
) -> Vec<Fault> {
    let mut named: Vec<Fault> = faults.into_iter().take(MAX_FAULTS).collect();
    if count > named.len() {
        named.push(rest(count - named.len()));
    }
    named
}

/// A share of counts.
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
        let fault = |n: usize| Fault::new(IssueType::Missing, n.to_string());
        let named = |count: usize| {
            bounded((0..count).map(fault), count, fault)
                .into_iter()
                .map(|fault| fault.description)
                .collect::<Vec<_>>()
        };
        assert_eq!(named(0), Vec::<String>::new());
        assert_eq!(named(MAX_FAULTS).len(), MAX_FAULTS);
        assert_eq!(named(MAX_FAULTS + 7)[MAX_FAULTS..], ["7"]);
    }
}
