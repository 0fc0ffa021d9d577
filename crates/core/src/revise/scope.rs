//! Locates the issues of a draft.

use std::ops::Range;

use super::edits::{Haystack, MatchGrade};
use super::sections::TextSection;
use crate::types::{Issue, IssueType};

/// The minimum length of a quotation that locates an issue, in characters.
const QUOTED: usize = 6;

/// The part of a draft that an issue affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    /// A passage of the draft.
    Passage(Range<usize>),
    /// Missing content.
    Missing,
    /// The whole draft, as far as known.
    Whole,
}

/// Returns what an issue affects: the passage that it quotes, its line, or the section that it
/// names. An issue of the type `missing` without a place affects missing content.
/// missing and has no place is to be added.
pub(super) fn scope(issue: &Issue, draft: &Haystack<'_>, sections: &[TextSection]) -> Scope {
    let text = draft.text();
    let place = &issue.place;
    if let Some(quote) = place
        .quote
        .as_deref()
        .filter(|_| place.verified != Some(false))
        && let Some(passage) = only(draft, quote)
    {
        return Scope::Passage(passage);
    }
    if let Some(passage) = place.line.and_then(|line| line_of(text, line)) {
        return Scope::Passage(passage);
    }
    let quoted = quotations(&issue.description);
    if let Some(passage) = quoted.iter().find_map(|quote| only(draft, quote)) {
        return Scope::Passage(passage);
    }
    if let Some(passage) = named_line(&issue.description).and_then(|line| line_of(text, line)) {
        return Scope::Passage(passage);
    }
    if let Some(section) = named_section(issue, sections) {
        return Scope::Passage(section.body(text));
    }
    match issue.kind {
        IssueType::Missing => Scope::Missing,
        IssueType::Unsupported | IssueType::Incorrect => Scope::Whole,
    }
}

/// Returns the place of a quotation that occurs once.
fn only(haystack: &Haystack<'_>, quote: &str) -> Option<Range<usize>> {
    if quote.trim().chars().count() < QUOTED {
        return None;
    }
    [MatchGrade::Exact, MatchGrade::Tolerant]
        .into_iter()
        .find_map(|grade| match haystack.all(quote.trim(), grade).as_slice() {
            [place] => Some(place.clone()),
            _ => None,
        })
}

/// Returns the line with this number, from 1, or `None` if it is empty or does not exist.
fn line_of(draft: &str, number: u64) -> Option<Range<usize>> {
    let index = usize::try_from(number.checked_sub(1)?).ok()?;
    let line = draft.split('\n').nth(index)?;
    let start: usize = draft
        .split('\n')
        .take(index)
        .map(|line| line.len() + 1)
        .sum();
    (!line.trim().is_empty()).then(|| start..start + line.trim_end().len())
}

/// Returns the texts between quotation marks or backticks in a description.
fn quotations(description: &str) -> Vec<&str> {
    const MARKS: [(char, char); 7] = [
        ('"', '"'),
        ('“', '”'),
        ('„', '“'),
        ('`', '`'),
        ('«', '»'),
        ('‘', '’'),
        ('「', '」'),
    ];
    let mut found = Vec::new();
    for (open, close) in MARKS {
        let mut rest = description;
        while let Some(start) = rest.find(open) {
            let inside = &rest[start + open.len_utf8()..];
            let Some(end) = inside.find(close) else { break };
            found.push(&inside[..end]);
            rest = &inside[end + close.len_utf8()..];
        }
    }
    found.sort_by_key(|quote| std::cmp::Reverse(quote.len()));
    found
}

/// Returns the number after the word `line` in a description.
fn named_line(description: &str) -> Option<u64> {
    let lower = description.to_ascii_lowercase();
    let mut words = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        if word == "line" {
            return words.next()?.parse().ok();
        }
    }
    None
}

fn named_section<'a>(issue: &Issue, sections: &'a [TextSection]) -> Option<&'a TextSection> {
    let description = issue.description.to_lowercase();
    let mut named = sections.iter().filter(|section| {
        section.heading.as_ref().is_some_and(|heading| {
            heading.chars().count() >= 4 && description.contains(&heading.to_lowercase())
        })
    });
    let first = named.next()?;
    named.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revise::sections::sections;
    use crate::types::{Place, Severity};

    const DRAFT: &str = "# Setup\nInstall “it” first.\n\n# Use\nRun it twice.\n";

    fn of(kind: IssueType, description: &str, place: Place) -> Option<&'static str> {
        let issue = Issue {
            kind,
            severity: Severity::Major,
            description: description.to_owned(),
            suggested_fix: None,
            criterion: None,
            place,
        };
        match scope(&issue, &Haystack::new(DRAFT), &sections(DRAFT)) {
            Scope::Passage(range) => Some(&DRAFT[range]),
            Scope::Missing => None,
            Scope::Whole => Some("WHOLE"),
        }
    }

    #[test]
    fn an_issue_is_where_it_says() {
        let none = Place::default;
        let wrong = IssueType::Incorrect;
        let quote = Place {
            quote: Some("Install \"it\" first".to_owned()),
            ..none()
        };
        assert_eq!(of(wrong, "Bad.", quote), Some("Install “it” first"));
        let line = Place {
            line: Some(5),
            ..none()
        };
        assert_eq!(of(wrong, "Bad.", line), Some("Run it twice."));
        assert_eq!(
            of(wrong, "It says \"Run it twice\", which is wrong.", none()),
            Some("Run it twice")
        );
        assert_eq!(of(wrong, "Line 5 is wrong.", none()), Some("Run it twice."));
        assert_eq!(
            of(wrong, "The section Setup is too short.", none()),
            Some("# Setup\nInstall “it” first.")
        );
        assert_eq!(of(wrong, "The tone is off.", none()), Some("WHOLE"));
        assert_eq!(of(IssueType::Missing, "There is no licence.", none()), None);
        let gone = Place {
            quote: Some("no such thing".to_owned()),
            line: Some(99),
            ..none()
        };
        assert_eq!(of(wrong, "Bad.", gone), Some("WHOLE"));
    }
}
