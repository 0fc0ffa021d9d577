//! Splits a text into sections: by headings or, without headings, by paragraphs.

use std::ops::Range;

/// A part of a text. The concatenation of all parts is the text, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextSection {
    /// The heading without its markup. `None` for a paragraph, and for the text before the first
    /// heading.
    pub(super) heading: Option<String>,
    /// The range, including the heading and the blank lines after the section.
    pub(super) range: Range<usize>,
}

impl TextSection {
    /// Returns a name: the heading, or the first words.
    pub(super) fn name(&self, text: &str) -> String {
        if let Some(heading) = &self.heading {
            return heading.clone();
        }
        let words: Vec<&str> = text[self.range.clone()]
            .split_whitespace()
            .take(8)
            .collect();
        format!("{} …", words.join(" "))
    }

    /// Returns the range without the blank lines around it.
    pub(super) fn body(&self, text: &str) -> Range<usize> {
        let inside = &text[self.range.clone()];
        let end = self.range.start + inside.trim_end().len();
        let lead = inside.len() - inside.trim_start().len();
        // Blanks before the first word are its indentation.
        let start = text[self.range.start..self.range.start + lead]
            .rfind('\n')
            .map_or(self.range.start, |at| self.range.start + at + 1);
        start..end.max(start)
    }
}

/// Returns the sections of a text in order. Returns none for a text without a visible character.
pub(super) fn sections(text: &str) -> Vec<TextSection> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let lines = lines(text);
    let headings: Vec<(usize, String)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.fenced)
        .filter_map(|(at, line)| {
            let under = lines.get(at + 1).filter(|next| !next.fenced);
            let before = at
                .checked_sub(1)
                .is_none_or(|at| lines[at].text.trim().is_empty());
            heading(line.text, under.map(|line| line.text), before).map(|title| (line.start, title))
        })
        .collect();
    if headings.len() >= 2 || (headings.len() == 1 && headings[0].0 > 0) {
        return by_headings(text, headings);
    }
    by_paragraphs(text, &lines)
}

struct Line<'a> {
    start: usize,
    text: &'a str,
    /// Whether it belongs to a code block.
    fenced: bool,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let mut fence: Option<&str> = None;
    text.split_inclusive('\n')
        .map(|line| {
            let trimmed = line.trim();
            let sign = ["```", "~~~"]
                .into_iter()
                .find(|sign| trimmed.starts_with(sign));
            let mut fenced = fence.is_some();
            match (fence, sign) {
                (None, Some(sign)) => {
                    fence = Some(sign);
                    fenced = true;
                }
                (Some(open), Some(sign)) if open == sign => fence = None,
                _ => {}
            }
            let line = Line {
                start,
                text: line,
                fenced,
            };
            start += line.text.len();
            line
        })
        .collect()
}

/// Returns the title of a heading line: `## Title`, or a line underlined with `=` or `-`.
fn heading(line: &str, under: Option<&str>, after_blank: bool) -> Option<String> {
    let line = line.trim_end();
    let signs = line.chars().take_while(|c| *c == '#').count();
    if (1..=6).contains(&signs) {
        let title = line[signs..].strip_prefix([' ', '\t'])?;
        return Some(title.trim().trim_end_matches('#').trim().to_owned());
    }
    let under = under?.trim_end();
    let underlined =
        under.len() >= 3 && (under.chars().all(|c| c == '=') || under.chars().all(|c| c == '-'));
    (underlined
        && after_blank
        && !line.trim().is_empty()
        && !line.starts_with([' ', '\t', '-', '|', '>']))
    .then(|| line.trim().to_owned())
}

fn by_headings(text: &str, headings: Vec<(usize, String)>) -> Vec<TextSection> {
    let mut sections = Vec::new();
    if headings
        .first()
        .is_some_and(|(start, _)| !text[..*start].trim().is_empty())
    {
        sections.push(TextSection {
            heading: None,
            range: 0..headings[0].0,
        });
    }
    let ends: Vec<usize> = headings
        .iter()
        .skip(1)
        .map(|(start, _)| *start)
        .chain([text.len()])
        .collect();
    for ((start, title), end) in headings.into_iter().zip(ends) {
        sections.push(TextSection {
            heading: Some(title),
            range: start..end,
        });
    }
    // Blank lines before the first heading belong to it.
    if let Some(first) = sections.first_mut() {
        first.range.start = 0;
    }
    sections
}

fn by_paragraphs(text: &str, lines: &[Line<'_>]) -> Vec<TextSection> {
    let mut sections: Vec<TextSection> = Vec::new();
    let mut blank = true;
    for line in lines {
        let empty = line.text.trim().is_empty() && !line.fenced;
        if !empty && blank {
            sections.push(TextSection {
                heading: None,
                range: line.start..text.len(),
            });
            if let [.., before, _] = sections.as_mut_slice() {
                before.range.end = line.start;
            }
        }
        blank = empty;
    }
    if let Some(first) = sections.first_mut() {
        first.range.start = 0;
    }
    sections
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Vec<String> {
        sections(text)
            .iter()
            .map(|section| section.name(text))
            .collect()
    }

    #[test]
    fn headings_of_both_kinds_divide() {
        let text =
            "Preface.\n\n# One\na\n```\n# no heading\n```\n## Two ##\nb\n\nThree\n-----\nc\n";
        assert_eq!(names(text), ["Preface. …", "One", "Two", "Three"]);
        assert_eq!(names("\n# One\na\n\n# Two\nb"), ["One", "Two"]);
    }

    #[test]
    fn without_headings_paragraphs_divide() {
        assert_eq!(
            names("a b\nc\n\n\nd\n\n```\nx\n\ny\n```\n"),
            ["a b c …", "d …", "``` x y ``` …"]
        );
        // A single title above everything does not split the text.
        assert_eq!(names("# Title\n\na\n\nb"), ["# Title …", "a …", "b …"]);
        assert_eq!(names("- a\n---\n| x |\n"), ["- a --- | x | …"]);
        assert!(sections(" \n").is_empty());
    }

    proptest! {
        #[test]
        fn together_they_are_the_text(
            lines in prop::collection::vec(
                prop::sample::select(vec!["", "a", "# H", "## É", "===", "---", "```", "  b", "~~~"]), 0..20)
        ) {
            let text = lines.join("\n");
            let sections = sections(&text);
            let joined: String = sections.iter().map(|section| &text[section.range.clone()]).collect();
            if !text.trim().is_empty() {
                prop_assert_eq!(&joined, &text);
            }
            for section in &sections {
                let body = section.body(&text);
                prop_assert!(section.range.start <= body.start && body.end <= section.range.end);
                prop_assert!(!text[body].trim().is_empty());
            }
        }
    }
}
