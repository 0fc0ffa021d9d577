//! Splits texts into passages that are self-contained and short enough to show.

use std::ops::Range;

use crate::types::EvidenceSource;

/// The size up to which adjacent pieces are joined, in bytes.
const TARGET: usize = 800;

/// The size above which a self-contained piece (a function, a paragraph) is split, in bytes.
const MAX: usize = 1600;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passage {
    /// The first line, counted from 1.
    pub(super) first: usize,
    /// The last line.
    pub(super) last: usize,
    /// The heading of its section, or the first line of its function. Empty if there is none, or if
    /// it is part of the passage.
    pub(super) heading: String,
    /// The lines. A line longer than a passage is truncated.
    pub(super) text: String,
}

/// Where a text can be split, from worst to best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    /// Within a paragraph.
    Line,
    /// After an empty line.
    Blank,
    /// Before a function, or other text at the left margin.
    Item,
    /// Before a heading.
    Section,
}

/// Splits a text: documents by headings and paragraphs, code by lines at the left margin after an
/// empty line, then by empty lines. Every non-blank line is in exactly one passage.
pub(super) fn split(text: &str, source: EvidenceSource) -> Vec<Passage> {
    let lines: Vec<&str> = text.lines().collect();
    let cuts = cuts(&lines, source);
    let mut passages = Vec::new();
    for section in divide(0..lines.len(), &cuts, Cut::Section) {
        let title = match source {
            EvidenceSource::Documentation if cuts[section.start] == Cut::Section => {
                Some(section.start)
            }
            _ => None,
        };
        let mut open: Option<(Range<usize>, usize)> = None;
        for (piece, top) in pieces(section, &lines, &cuts) {
            let top = title.unwrap_or(top);
            open = Some(match open {
                Some((before, above)) if size(&lines[before.start..piece.end]) <= TARGET => {
                    (before.start..piece.end, above)
                }
                Some((before, above)) => {
                    passages.extend(passage(&lines, before, above));
                    (piece, top)
                }
                None => (piece, top),
            });
        }
        if let Some((last, above)) = open {
            passages.extend(passage(&lines, last, above));
        }
    }
    passages
}

/// Splits a section into pieces of at most [`MAX`] bytes (single lines may be longer), each with
/// the line of the function or paragraph that it belongs to.
fn pieces(section: Range<usize>, lines: &[&str], cuts: &[Cut]) -> Vec<(Range<usize>, usize)> {
    let mut found = Vec::new();
    for item in divide(section, cuts, Cut::Item) {
        let top = item.start;
        let mut waiting = vec![(item, Cut::Item)];
        while let Some((range, tried)) = waiting.pop() {
            let finer = match tried {
                Cut::Section | Cut::Item => Cut::Blank,
                Cut::Blank | Cut::Line => Cut::Line,
            };
            if size(&lines[range.clone()]) <= MAX || range.len() == 1 {
                found.push((range, top));
            } else {
                let parts = divide(range, cuts, finer);
                waiting.extend(parts.into_iter().rev().map(|part| (part, finer)));
            }
        }
    }
    found
}

/// Splits a range at every cut that is at least as good as `least`.
fn divide(range: Range<usize>, cuts: &[Cut], least: Cut) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = range.start;
    for at in range.clone().skip(1) {
        if cuts[at] >= least {
            found.push(start..at);
            start = at;
        }
    }
    if start < range.end {
        found.push(start..range.end);
    }
    found
}

/// Returns the kind of cut before each line.
fn cuts(lines: &[&str], source: EvidenceSource) -> Vec<Cut> {
    let mut fence: Option<&str> = None;
    let mut blank_before = true;
    let mut found = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let blank = line.trim().is_empty();
        let cut = match source {
            EvidenceSource::Documentation => {
                let mark = ["```", "~~~"]
                    .into_iter()
                    .find(|mark| line.trim_start().starts_with(mark));
                let inside = fence.is_some();
                match (fence, mark) {
                    (None, Some(mark)) => fence = Some(mark),
                    (Some(open), Some(mark)) if open == mark => fence = None,
                    _ => {}
                }
                if !inside && is_heading(line, lines.get(at + 1).copied(), blank_before) {
                    Cut::Section
                } else if blank_before && !inside {
                    Cut::Item
                } else if blank_before {
                    Cut::Blank
                } else {
                    Cut::Line
                }
            }
            // A closing bracket at the margin belongs to what it closes.
            _ if blank_before
                && line.starts_with(|c: char| !c.is_whitespace() && !")]}".contains(c)) =>
            {
                Cut::Item
            }
            _ if blank_before => Cut::Blank,
            _ => Cut::Line,
        };
        // An empty line belongs to the piece before it.
        found.push(if blank { Cut::Line } else { cut });
        blank_before = blank;
    }
    found
}

/// Returns whether a line of a document is a heading: `# Title`, `== Title`, or a title that the
/// next line underlines.
fn is_heading(line: &str, next: Option<&str>, blank_before: bool) -> bool {
    for mark in ['#', '='] {
        let rest = line.trim_start_matches(mark);
        let depth = line.len() - rest.len();
        if (1..=6).contains(&depth) && rest.starts_with(' ') && !rest.trim().is_empty() {
            return true;
        }
    }
    let underline = next.map(str::trim_end).unwrap_or_default();
    blank_before
        && !line.trim().is_empty()
        && underline.len() >= 3
        && ["=", "-", "~", "^"]
            .iter()
            .any(|mark| underline.trim_start_matches(mark).is_empty())
}

/// Returns the passage of these lines, or `None` if all are blank. `top` is the line of its
/// heading.
fn passage(lines: &[&str], range: Range<usize>, top: usize) -> Option<Passage> {
    let blank = |at: &usize| lines[*at].trim().is_empty();
    let first = range.clone().find(|at| !blank(at))?;
    let last = range.rev().find(|at| !blank(at))?;
    let heading = if top < first {
        start_of(lines[top].trim(), TARGET / 4)
    } else {
        ""
    };
    let shown: Vec<&str> = lines[first..=last]
        .iter()
        .map(|line| start_of(line, MAX))
        .collect();
    Some(Passage {
        first: first + 1,
        last: last + 1,
        heading: heading.to_owned(),
        text: shown.join("\n"),
    })
}

fn size(lines: &[&str]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum()
}

/// Returns a prefix of at most `bytes` bytes that ends at a character boundary.
fn start_of(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use EvidenceSource::{Codebase, Documentation};

    fn places(text: &str, source: EvidenceSource) -> Vec<(usize, usize, String)> {
        split(text, source)
            .into_iter()
            .map(|p| (p.first, p.last, p.heading))
            .collect()
    }

    #[test]
    fn sections_of_a_document_stay_apart() {
        let text = "# Title\n\nIntro.\n\n## Install\nRun `make`.\n\n```sh\n# no heading\nmake\n```\n\nUsage\n-----\n\nCall it.\n";
        assert_eq!(
            places(text, Documentation),
            [
                (1, 3, String::new()),
                (5, 11, String::new()),
                (13, 16, String::new())
            ]
        );
    }

    #[test]
    fn a_long_section_is_taken_apart_by_paragraphs_that_know_their_heading() {
        let paragraph = "word ".repeat(120);
        let text = format!("# Title\n{paragraph}\n\n{paragraph}\n\n{paragraph}\n");
        assert_eq!(
            places(&text, Documentation),
            [
                (1, 2, String::new()),
                (4, 4, "# Title".to_owned()),
                (6, 6, "# Title".to_owned())
            ]
        );
    }

    #[test]
    fn functions_stay_whole() {
        let body = "    let x = 1;\n\n    call(x);\n".repeat(30);
        let text = format!("use a;\nuse b;\n\nfn one() {{\n{body}}}\n\nfn two() {{\n{body}}}\n");
        let found = split(&text, Codebase);
        let firsts: Vec<_> = found
            .iter()
            .map(|p| p.text.lines().next().unwrap())
            .collect();
        assert_eq!(firsts, ["use a;", "fn one() {", "fn two() {"]);
        assert!(found[1].text.ends_with('}'));
    }

    #[test]
    fn a_function_that_is_too_long_is_taken_apart_at_empty_lines() {
        let body = "    let x = 1;\n    call(x);\n\n".repeat(100);
        let found = split(&format!("fn long() {{\n{body}}}\n"), Codebase);
        assert!(found.len() > 2);
        assert_eq!(found[0].heading, "");
        for passage in &found[1..] {
            assert_eq!(passage.heading, "fn long() {");
            assert!(passage.text.len() <= MAX);
        }
    }

    #[test]
    fn a_line_without_end_is_cut_off() {
        let found = split(&"é".repeat(10_000), Codebase);
        assert_eq!((found.len(), found[0].last), (1, 1));
        assert!(found[0].text.len() <= MAX);
    }

    proptest! {
        #[test]
        fn every_line_is_in_exactly_one_passage(
            lines in prop::collection::vec(
                prop_oneof![
                    Just(String::new()),
                    Just("   ".to_owned()),
                    Just("```".to_owned()),
                    Just("---".to_owned()),
                    "#{1,7} [a-z]{1,9}",
                    "[ \t]{0,4}[a-z(){}é]{1,80}",
                    "x{900,1500}",
                ],
                0..60,
            ),
            document: bool,
            ending in prop_oneof![Just("\n"), Just("\r\n")],
        ) {
            let source = if document { Documentation } else { Codebase };
            let text = lines.join(ending);
            let passages = split(&text, source);
            let all: Vec<&str> = text.lines().collect();
            let mut covered = vec![0; all.len()];
            let mut before = 0;
            for passage in &passages {
                prop_assert!(passage.first > before && passage.first <= passage.last);
                before = passage.last;
                let own = &all[passage.first - 1..passage.last];
                prop_assert_eq!(&passage.text, &own.join("\n"));
                prop_assert!(!own[0].trim().is_empty() && !own[own.len() - 1].trim().is_empty());
                prop_assert!(own.len() == 1 || passage.text.len() <= MAX);
                for line in passage.first..=passage.last {
                    covered[line - 1] += 1;
                }
            }
            for (line, count) in all.iter().zip(covered) {
                prop_assert!(count == 1 || line.trim().is_empty(), "{:?} {}", line, count);
            }
        }
    }
}
