//! Parses the outline of a draft from a model's reply.

/// The fewest sections that make an outline: one is the draft itself.
const FEWEST: usize = 2;
/// The most sections that a draft is written in: each is a call.
pub(super) const MOST: usize = 20;
/// The most characters of a line that counts as a section; a longer line is text.
const LINE: usize = 600;
/// Separates a title from its description.
const SEPARATORS: [&str; 5] = [":", " - ", " – ", " — ", "—"];

/// A planned section of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    /// Its title; one line, never empty.
    pub(super) title: String,
    /// Its description; one line, may be empty.
    pub(super) about: String,
}

impl Section {
    /// Both on one line.
    pub(super) fn describe(&self) -> String {
        if self.about.is_empty() {
            self.title.clone()
        } else {
            format!("{}: {}", self.title, self.about)
        }
    }
}

/// The sections that a reply lists, in order; `None` if it lists none, fewer than two, or more than are written.
///
/// A section is a line with a mark of a list (`1.`, `2)`, `-`, `*`, `•`) or of a heading (`##`), whatever is bold.
/// Lists within lists, and lines without a mark behind one that has one, say more about the section that they
/// follow. If no line has a mark, every line of the form `Title: description` is a section. What precedes the first
/// section is ignored.
pub(super) fn read(reply: &str) -> Option<Vec<Section>> {
    let lines: Vec<&str> = reply
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("```"))
        .collect();
    let sections = marked(&lines).or_else(|| unmarked(&lines))?;
    (FEWEST..=MOST)
        .contains(&sections.len())
        .then_some(sections)
}

/// What kind of mark a line begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Number,
    Bullet,
    /// A heading, with its level.
    Heading(usize),
}

fn marked(lines: &[&str]) -> Option<Vec<Section>> {
    let found: Vec<(usize, Option<Mark>, &str)> = lines
        .iter()
        .map(|line| {
            let text = line.trim_start();
            let (mark, text) = mark(text);
            (line.len() - line.trim_start().len(), mark, text)
        })
        .collect();
    let kind = kind(&found)?;
    let indent = found
        .iter()
        .filter(|(_, mark, _)| *mark == Some(kind))
        .map(|(indent, ..)| *indent)
        .min()?;
    let mut sections: Vec<Section> = Vec::new();
    for (at, mark, text) in found {
        if mark == Some(kind) && at <= indent {
            sections.push(section(text)?);
        } else if let Some(last) = sections.last_mut() {
            let more = plain(text);
            if !more.is_empty() && last.about.len() + more.len() < LINE {
                if !last.about.is_empty() {
                    last.about.push(' ');
                }
                last.about.push_str(&more);
            }
        }
    }
    Some(sections)
}

/// The kind of mark that sections have: of those that occur at least twice, numbers before headings before
/// bullets, since bullets are often points within a section. Of headings the highest level that has two: a single
/// one above is the title of the whole.
fn kind(found: &[(usize, Option<Mark>, &str)]) -> Option<Mark> {
    let levels = (1..=6).map(Mark::Heading);
    std::iter::once(Mark::Number)
        .chain(levels)
        .chain([Mark::Bullet])
        .find(|kind| {
            let same = found.iter().filter(|(_, mark, _)| *mark == Some(*kind));
            same.count() >= FEWEST
        })
}

fn unmarked(lines: &[&str]) -> Option<Vec<Section>> {
    let parts = lines.iter().filter_map(|line| {
        let line = line.trim();
        let (title, about) = line.split_once(':')?;
        let is_title = title.split_whitespace().count() <= 10;
        (is_title && !about.trim().is_empty()).then(|| section(line))
    });
    parts.collect()
}

/// The mark at the beginning of a line, and what follows it.
fn mark(line: &str) -> (Option<Mark>, &str) {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&level) && line[level..].starts_with(' ') {
        return (
            Some(Mark::Heading(level)),
            number(line[level..].trim_start()).unwrap_or(&line[level..]),
        );
    }
    // A number may be bold together with its title.
    let bare = line.trim_start_matches("**");
    if let Some(rest) = number(bare) {
        return (Some(Mark::Number), rest);
    }
    for bullet in ["- ", "* ", "+ ", "• "] {
        if let Some(rest) = line.strip_prefix(bullet) {
            return (Some(Mark::Bullet), rest);
        }
    }
    (None, line)
}

/// What follows a number with its point or parenthesis, or `Section 1:`.
fn number(line: &str) -> Option<&str> {
    let named = ["Section ", "section ", "Part ", "Step ", "("]
        .iter()
        .find_map(|name| line.strip_prefix(name));
    let rest = named.unwrap_or(line);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=3).contains(&digits) {
        return None;
    }
    let rest = &rest[digits..];
    let end = if named.is_some() {
        &[".", ")", ":", " -", " –", " —"][..]
    } else {
        &[".", ")"]
    };
    let rest = end.iter().find_map(|end| rest.strip_prefix(end))?;
    // `1.5 million` is no mark.
    (!rest.starts_with(|c: char| c.is_ascii_digit())).then_some(rest)
}

/// A line as a section; `None` if it is no line of an outline.
fn section(line: &str) -> Option<Section> {
    if line.chars().count() > LINE {
        return None;
    }
    let line = plain(line);
    let cut = SEPARATORS
        .iter()
        .filter_map(|separator| Some((line.find(separator)?, separator.len())))
        .min();
    let (title, about) = match cut {
        Some((at, length)) => (line[..at].trim(), line[at + length..].trim()),
        None => (line.trim(), ""),
    };
    // A line that begins with its separator has no title but what follows.
    let (title, about) = if title.is_empty() {
        (about, "")
    } else {
        (title, about)
    };
    (!title.is_empty()).then(|| Section {
        title: title.to_owned(),
        about: about.to_owned(),
    })
}

/// A line without what makes it bold, on one line.
fn plain(line: &str) -> String {
    let line = line.replace("**", "").replace("__", "");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn titles(reply: &str) -> Option<Vec<String>> {
        Some(
            read(reply)?
                .into_iter()
                .map(|section| section.title)
                .collect(),
        )
    }

    #[test]
    fn outlines_are_read_as_models_write_them() {
        for reply in [
            "1. Storm: it comes\n2. Roof: it goes",
            "Here is the outline:\n\n1) Storm - it comes\n2) Roof - it goes\n\n",
            "**1. Storm:** it comes\n\n**2. Roof:** it goes",
            "1. **Storm**: it comes\n   - at night\n   - with rain\n2. **Roof**: it goes",
            "- Storm: it comes\n- Roof: it goes",
            "# The night\n\n## Storm\nit comes\n\n## Roof\nit goes",
            "## 1. Storm\n## 2. Roof",
            "```\n1. Storm — it comes\n2. Roof — it goes\n```",
            "Section 1: Storm: it comes\nSection 2: Roof: it goes",
            "Storm: it comes\nRoof: it goes",
            "  1. Storm\n  2. Roof",
        ] {
            assert_eq!(
                titles(reply).as_deref(),
                Some(&["Storm".to_owned(), "Roof".to_owned()][..]),
                "{reply}"
            );
        }
    }

    #[test]
    fn what_a_section_says_is_all_that_follows_its_title() {
        let sections = read("1. Storm: it comes\n   - at night\n   with rain\n2. Roof").unwrap();
        assert_eq!(sections[0].about, "it comes at night with rain");
        assert_eq!(sections[0].describe(), "Storm: it comes at night with rain");
        assert_eq!(
            (sections[1].about.as_str(), sections[1].describe().as_str()),
            ("", "Roof")
        );
    }

    #[test]
    fn what_is_no_outline_is_none() {
        let many: Vec<String> = (0..=MOST).map(|n| format!("{n}. Part")).collect();
        let many = many.join("\n");
        let long = format!("1. {}\n2. {}", "word ".repeat(200), "word ".repeat(200));
        for reply in [
            "",
            "The storm came at night and took the roof.",
            "1. Storm: all in one",
            "The price was 1.5 million.\nIt rose to 2.5 million.",
            "1.\n2.",
            &many,
            &long,
        ] {
            assert_eq!(read(reply), None, "{reply}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_can_be_used(reply in "([0-9]{1,2}[.)] |[-*#] |## |\\*\\*|Section |: | - |\n|\n  |```|[a-zäß ]{1,6})*") {
            if let Some(sections) = read(&reply) {
                prop_assert!((FEWEST..=MOST).contains(&sections.len()));
                for section in sections {
                    prop_assert!(!section.title.trim().is_empty());
                    prop_assert!(!section.describe().contains('\n'));
                }
            }
        }

        #[test]
        fn an_outline_is_read_in_whatever_way_it_is_marked(
            names in prop::collection::vec("[A-Z][a-z]{2,8}( [a-z]{2,8}){0,2}", 2..MOST),
            way in 0..5_usize,
        ) {
            let lines = names.iter().zip(1..).map(|(name, n)| match way {
                0 => format!("{n}. {name}: what it says"),
                1 => format!("{n}) **{name}** - what it says"),
                2 => format!("- {name}: what it says"),
                3 => format!("## {name}\nwhat it says"),
                _ => format!("**{n}. {name}** — what it says"),
            });
            let reply = format!("Sure, this is it\n\n{}\n", lines.collect::<Vec<_>>().join("\n"));
            let sections = read(&reply).unwrap();
            let titles: Vec<&String> = sections.iter().map(|section| &section.title).collect();
            prop_assert_eq!(titles, names.iter().collect::<Vec<_>>());
            prop_assert!(sections.iter().all(|section| section.about == "what it says"));
        }
    }
}
