//! Differences between texts, for a terminal.

use std::ops::Range;

use console::Style;

use super::printer;
use crate::report::{self, Block, Change, Diff, Piece};
use crate::types::Version;

/// The default number of context lines around a change.
const AROUND: usize = 3;

/// How a difference is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Old lines, then new ones, like `diff -u`.
    Lines,
    /// Every line once, with changed words marked `[-old-]` and `{+new+}`.
    Words,
}

/// The styles of a diff; all plain if colours are off.
struct Styles {
    name: Style,
    place: Style,
    removed: Style,
    added: Style,
}

impl Styles {
    fn new(colours: bool) -> Self {
        let style = || Style::new().force_styling(colours);
        Self {
            name: style().bold(),
            place: style().cyan(),
            removed: style().red(),
            added: style().green(),
        }
    }
}

/// Renders the changes between two versions of a run, with colours if stderr supports them.
pub(super) fn of_versions(old: &Version, new: &Version) -> String {
    let found = report::diff(&old.output, &new.output, AROUND);
    let name = |version: &Version| format!("draft {}", version.iteration);
    let names = (name(old), name(new));
    if found.hunks.is_empty() {
        return format!("{} and {} are the same\n", names.0, names.1);
    }
    let colours = console::colors_enabled_stderr();
    // With colours, only the changed words stand out. Without them, marks in the text would be hard to read.
    let layout = if colours {
        Layout::Words
    } else {
        Layout::Lines
    };
    render(&found, (&names.0, &names.1), layout, colours)
}

/// Renders the diff of two named texts; empty if they are equal.
pub(super) fn render(
    diff: &Diff<'_>,
    (old, new): (&str, &str),
    layout: Layout,
    colours: bool,
) -> String {
    if diff.hunks.is_empty() {
        return String::new();
    }
    let styles = Styles::new(colours);
    let mut out = Out(String::new());
    out.line(&styles.name, &format!("--- {old}"));
    out.line(&styles.name, &format!("+++ {new}"));
    for hunk in &diff.hunks {
        let place = format!("@@ -{} +{} @@", lines(&hunk.old), lines(&hunk.new));
        out.line(&styles.place, &place);
        for block in &hunk.blocks {
            match (block, layout) {
                (Block::Same(text), Layout::Lines) => out.lines(None, " ", text),
                (Block::Same(text), Layout::Words) => out.lines(None, "", text),
                (Block::Removed(text), Layout::Lines) => {
                    out.lines(Some(&styles.removed), "-", text);
                }
                (Block::Added(text), Layout::Lines) => out.lines(Some(&styles.added), "+", text),
                (Block::Removed(text), Layout::Words) => {
                    out.words(&[(&styles.removed, "[-", text, "-]")]);
                }
                (Block::Added(text), Layout::Words) => {
                    out.words(&[(&styles.added, "{+", text, "+}")]);
                }
                (Block::Alike(pieces), Layout::Lines) => {
                    out.side(pieces, Change::Removed, &styles.removed, "-");
                    out.side(pieces, Change::Added, &styles.added, "+");
                }
                (Block::Alike(pieces), Layout::Words) => {
                    let plain = Style::new();
                    let marked: Vec<_> = pieces
                        .iter()
                        .map(|piece| match piece.change {
                            Change::Same => (&plain, "", piece.text, ""),
                            Change::Removed => (&styles.removed, "[-", piece.text, "-]"),
                            Change::Added => (&styles.added, "{+", piece.text, "+}"),
                        })
                        .collect();
                    out.words(&marked);
                }
            }
        }
    }
    out.0
}

/// Formats a line range like `diff -u`: first line (from 1) and count. An empty range names the line before
/// it.
fn lines(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        more => format!("{},{more}", range.start + 1),
    }
}

/// The output under construction.
struct Out(String);

impl Out {
    /// Adds text of a model or file in this style, without control characters.
    fn put(&mut self, style: Option<&Style>, text: &str) {
        let text = printer::without_controls(text);
        match style {
            Some(style) if !text.is_empty() => {
                self.0.push_str(&style.apply_to(&text).to_string());
            }
            _ => self.0.push_str(&text),
        }
    }

    fn line(&mut self, style: &Style, text: &str) {
        self.put(Some(style), text);
        self.0.push('\n');
    }

    fn lines(&mut self, style: Option<&Style>, sign: &str, text: &str) {
        for line in text.split('\n') {
            self.put(style, &format!("{sign}{line}"));
            self.0.push('\n');
        }
    }

    /// Adds one side of two similar texts, with its own parts highlighted.
    fn side(&mut self, pieces: &[Piece<'_>], change: Change, style: &Style, sign: &str) {
        let strong = style.clone().reverse();
        self.put(Some(style), sign);
        for piece in pieces {
            let style = match piece.change {
                Change::Same => style,
                own if own == change => &strong,
                _ => continue,
            };
            for (place, line) in piece.text.split('\n').enumerate() {
                if place > 0 {
                    self.0.push('\n');
                    self.put(Some(style), sign);
                }
                self.put(Some(style), line);
            }
        }
        self.0.push('\n');
    }

    /// Adds words, some of them between marks. Styles do not continue across lines.
    fn words(&mut self, words: &[(&Style, &str, &str, &str)]) {
        for (style, before, text, after) in words {
            let marked = format!("{before}{text}{after}");
            for (place, line) in marked.split('\n').enumerate() {
                if place > 0 {
                    self.0.push('\n');
                }
                self.put(Some(style), line);
            }
        }
        self.0.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::diff;

    const OLD: &str = "one\nThe cat sat on the mat, and slept.\nthree\nfour\n";
    const NEW: &str = "one\nThe dog sat on the mat, and slept.\nthree\n4\n5\n";

    fn shown(layout: Layout, colours: bool) -> String {
        render(&diff(OLD, NEW, 1), ("old", "new"), layout, colours)
    }

    #[test]
    fn lines_are_shown_as_by_diff() {
        assert_eq!(
            shown(Layout::Lines, false),
            "--- old\n+++ new\n@@ -1,4 +1,5 @@\n one\n-The cat sat on the mat, and slept.\n\
             +The dog sat on the mat, and slept.\n three\n-four\n+4\n+5\n"
        );
        let coloured = shown(Layout::Lines, true);
        assert!(coloured.contains("\u{1b}[31m"), "{coloured:?}");
        assert_eq!(
            console::strip_ansi_codes(&coloured),
            shown(Layout::Lines, false)
        );
    }

    #[test]
    fn words_are_marked_with_and_without_colours() {
        assert_eq!(
            shown(Layout::Words, false),
            "--- old\n+++ new\n@@ -1,4 +1,5 @@\none\n\
             The [-cat-]{+dog+} sat on the mat, and slept.\nthree\n[-four-]\n{+4\n5+}\n"
        );
        let coloured = shown(Layout::Words, true);
        assert_eq!(
            console::strip_ansi_codes(&coloured),
            shown(Layout::Words, false)
        );
    }

    #[test]
    fn equal_texts_render_empty_and_control_characters_are_escaped() {
        assert_eq!(
            render(&diff(OLD, OLD, 3), ("a", "b"), Layout::Lines, true),
            ""
        );
        let text = render(&diff("a", "\u{1b}[2J", 3), ("a", "b"), Layout::Lines, false);
        assert!(text.ends_with("-a\n+^[[2J\n"), "{text:?}");
    }
}
