//! Verifies that the passages a judge quotes are in the draft, and adjusts its issues.

use std::cell::LazyCell;

use crate::types::{Issue, IssueType, Severity};

/// Looks up each issue's quote in the draft, records the result in the issue, and adds the line
/// number if found. An issue whose quote is not in the draft becomes minor, so that a judge that
/// misreads the draft does not fail it. An issue without a quote is unverified, except if its type
/// is `missing`: missing text cannot be quoted.
pub(super) fn verify(issues: &mut [Issue], draft: &str) {
    let plain = LazyCell::new(|| NormalizedText::new(draft));
    for issue in issues {
        let place = &mut issue.place;
        match &place.quote {
            None => {
                // Missing text cannot be quoted.
                place.verified = (issue.kind != IssueType::Missing).then_some(false);
            }
            Some(quote) => {
                let found = plain.find(quote);
                place.verified = Some(found.is_some());
                place.line = place.line.or(found);
                if found.is_none() && issue.kind != IssueType::Missing {
                    issue.severity = Severity::Minor;
                }
            }
        }
    }
}

/// A text normalized for what models change when they copy: white space and quotation marks.
struct NormalizedText {
    text: String,
    /// The offset in `text` at which each line of the original begins, from line 1.
    lines: Vec<usize>,
}

impl NormalizedText {
    fn new(original: &str) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut lines = Vec::new();
        for line in original.split('\n') {
            lines.push(text.len());
            push_plain(&mut text, line);
            push_plain(&mut text, " ");
        }
        Self { text, lines }
    }

    /// Returns the line in which a quote begins. The parts of a quote with an ellipsis must occur
    /// in order.
    fn find(&self, quote: &str) -> Option<u64> {
        let mut plain = String::new();
        push_plain(&mut plain, &quote.replace("[...]", "…").replace("[…]", "…"));
        let quote = unwrapped(plain.trim());
        let parts = quote
            .split('…')
            .flat_map(|part| part.split("..."))
            .map(str::trim)
            .filter(|part| !part.is_empty());
        // The ellipsis may be part of the draft.
        let whole = self.text.find(quote).filter(|_| !quote.is_empty());
        let begin = whole.or_else(|| {
            let mut first = None;
            let mut from = 0;
            for part in parts {
                let at = from + self.text[from..].find(part)?;
                first = first.or(Some(at));
                from = at + part.len();
            }
            first
        })?;
        let line = self.lines.partition_point(|start| *start <= begin);
        Some(line as u64)
    }
}

/// Appends a text with single spaces and uniform quotation marks.
fn push_plain(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            c if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            '“' | '”' | '„' | '‟' | '«' | '»' | '"' | '‘' | '’' | '‚' | '‛' | '‹' | '›' | '`'
            | '\'' => out.push('\''),
            c => out.push(c),
        }
    }
}

/// Removes quotation marks around the whole quote.
fn unwrapped(quote: &str) -> &str {
    quote
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .unwrap_or(quote)
        .trim()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::IssueType::{Incorrect, Missing, Unsupported};
    use crate::types::Place;
    use crate::types::Severity::{Major, Minor};

    const DRAFT: &str = "The pond is old.\n\nA frog — they say “leaps” —\ninto it … and\tis gone.";

    #[test]
    fn quotes_are_found_whatever_the_white_space_and_the_marks() {
        let draft = NormalizedText::new(DRAFT);
        for (quote, line) in [
            ("The pond is old.", Some(1)),
            ("\"The pond is old.\"", Some(1)),
            ("old. A frog", Some(1)),
            ("they say \"leaps\"", Some(3)),
            ("they say 'leaps' — into it", Some(3)),
            ("into it … and is gone.", Some(4)),
            ("The pond ... is gone", Some(1)),
            ("A frog […] is gone", Some(3)),
            ("is gone ... The pond", None),
            ("The pool is old.", None),
            ("the pond is OLD", None),
            ("", None),
            ("...", None),
            ("''", None),
        ] {
            assert_eq!(draft.find(quote), line, "{quote:?}");
        }
    }

    #[test]
    fn issues_without_evidence_are_marked() {
        let issue = |kind, quote: Option<&str>| {
            let mut issues = [Issue {
                kind,
                severity: Major,
                description: String::new(),
                suggested_fix: None,
                criterion: None,
                place: Place {
                    quote: quote.map(str::to_owned),
                    ..Place::default()
                },
            }];
            verify(&mut issues, DRAFT);
            let [issue] = issues;
            (issue.place.verified, issue.place.line, issue.severity)
        };
        assert_eq!(issue(Missing, None), (None, None, Major));
        assert_eq!(issue(Incorrect, None), (Some(false), None, Major));
        assert_eq!(issue(Incorrect, Some("a bird")), (Some(false), None, Minor));
        assert_eq!(
            issue(Unsupported, Some("is gone")),
            (Some(true), Some(4), Major)
        );
        assert_eq!(issue(Missing, Some("a bird")), (Some(false), None, Major));
    }

    proptest! {
        #[test]
        fn every_passage_of_a_draft_is_found(draft in "(?s).{1,60}", from in 0usize..60, length in 1usize..60) {
            let quote: String = draft.chars().skip(from).take(length).collect();
            let mut plain = String::new();
            push_plain(&mut plain, &quote);
            let has_words = unwrapped(plain.trim()).chars().any(|c| c != '…' && c != '.' && c != ' ');
            let line = NormalizedText::new(&draft).find(&quote);
            prop_assert!(line.is_some() || !has_words, "{:?} in {:?}", quote, draft);
        }
    }
}
