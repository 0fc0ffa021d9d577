//! Differences between two texts: by line, and by word within similar lines.

use std::ops::Range;
use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};
use unicode_segmentation::UnicodeSegmentation as _;

/// The time limit for finding the shortest diff. After it, the diff is still correct, but may be longer than
/// necessary.
const PATIENCE: Duration = Duration::from_millis(500);

/// The maximum number of words in a passage for a word diff. Longer passages get a line diff.
const MAX_WORDS: usize = 20_000;

/// The minimum share of text that two passages must have in common for a word diff. Below it, the passages
/// are easier to read one after the other.
const ALIKE: f64 = 0.4;

/// Like `ALIKE`, but relative to the shorter passage, so that a passage that only grew counts as similar.
const WITHIN: f64 = 0.7;

/// Unchanged text of up to this many bytes between two changes counts as part of them.
const ISLAND: usize = 3;

/// The differences between two texts; empty if there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff<'t> {
    /// The changed places, in order.
    pub hunks: Vec<Hunk<'t>>,
}

/// A changed place with its context lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hunk<'t> {
    /// Its lines in the old text, counted from 0.
    pub old: Range<usize>,
    /// Its lines in the new text, counted from 0.
    pub new: Range<usize>,
    /// The blocks of the hunk, in order.
    pub blocks: Vec<Block<'t>>,
}

/// Consecutive lines, without the last line break.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Block<'t> {
    /// Lines in both texts.
    Same(&'t str),
    /// Lines only in the old text.
    Removed(&'t str),
    /// Lines only in the new text.
    Added(&'t str),
    /// Similar lines of both texts, word by word. The old lines are all pieces except the added ones, the new
    /// lines all except the removed ones.
    Alike(Vec<Piece<'t>>),
}

/// Consecutive words, with the text between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Piece<'t> {
    /// Which of the texts contain the words.
    pub change: Change,
    /// The words.
    pub text: &'t str,
}

/// Which of the two texts contain a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Both texts.
    Same,
    /// Only the old text.
    Removed,
    /// Only the new text.
    Added,
}

/// Compares two texts. Each hunk has up to `around` context lines on both sides. Ignores line breaks at the
/// end of a text. Takes about half a second at most, however long the texts are.
pub fn diff<'t>(old: &'t str, new: &'t str, around: usize) -> Diff<'t> {
    let deadline = Instant::now() + PATIENCE;
    let (old, new) = (Lines::of(old), Lines::of(new));
    let each = |lines: &Lines<'t>| -> Vec<&'t str> {
        (0..lines.ranges.len())
            .map(|line| lines.text(line..line + 1))
            .collect()
    };
    let ops = edit_script(&each(&old), &each(&new), deadline);
    let hunks = group_diff_ops(ops, around)
        .iter()
        .filter_map(|ops| hunk(&Step::joined(ops, |_| false), &old, &new, deadline))
        .collect();
    Diff { hunks }
}

fn edit_script(old: &[&str], new: &[&str], deadline: Instant) -> Vec<DiffOp> {
    capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline))
}

fn hunk<'t>(
    steps: &[Step],
    old: &Lines<'t>,
    new: &Lines<'t>,
    deadline: Instant,
) -> Option<Hunk<'t>> {
    let (first, last) = (steps.first()?, steps.last()?);
    let mut blocks = Vec::new();
    for step in steps {
        let (removed, added) = (old.text(step.old.clone()), new.text(step.new.clone()));
        if step.same {
            blocks.push(Block::Same(added));
            continue;
        }
        let both = !step.old.is_empty() && !step.new.is_empty();
        if let Some(pieces) = both.then(|| words(removed, added, deadline)).flatten() {
            blocks.push(Block::Alike(pieces));
            continue;
        }
        if !step.old.is_empty() {
            blocks.push(Block::Removed(removed));
        }
        if !step.new.is_empty() {
            blocks.push(Block::Added(added));
        }
    }
    Some(Hunk {
        old: first.old.start..last.old.end,
        new: first.new.start..last.new.end,
        blocks,
    })
}

/// Compares two passages word by word; `None` if they are too different or too long.
fn words<'t>(old: &'t str, new: &'t str, deadline: Instant) -> Option<Vec<Piece<'t>>> {
    let (old_words, new_words) = (Words::of(old), Words::of(new));
    if old_words.0.len().max(new_words.0.len()) > MAX_WORDS {
        return None;
    }
    let each =
        |words: &Words<'t>| -> Vec<&'t str> { words.0.iter().map(|(_, word)| *word).collect() };
    let ops = edit_script(&each(&old_words), &each(&new_words), deadline);
    let weight = |words: &[(usize, &str)]| -> usize {
        words.iter().map(|(_, word)| word.trim().len()).sum()
    };
    let shared: usize = ops
        .iter()
        .filter(|op| matches!(op, DiffOp::Equal { .. }))
        .map(|op| weight(&new_words.0[op.new_range()]))
        .sum();
    let (one, other) = (weight(&old_words.0), weight(&new_words.0));
    #[expect(clippy::cast_precision_loss, reason = "texts are not that long")]
    let share = |of: usize| shared as f64 / of.max(1) as f64;
    if 2.0 * share(one + other) < ALIKE && share(one.min(other)) < WITHIN {
        return None;
    }
    let bridge = |op: &DiffOp| {
        let words = &new_words.0[op.new_range()];
        weight(words) <= ISLAND && !words.iter().any(|(_, word)| word.contains('\n'))
    };
    let mut pieces = Vec::new();
    for step in Step::joined(&ops, bridge) {
        let (removed, added) = (
            old_words.text(old, &step.old),
            new_words.text(new, &step.new),
        );
        let mut push = |change, text: &'t str| {
            if !text.is_empty() {
                pieces.push(Piece { change, text });
            }
        };
        if step.same {
            push(Change::Same, added);
        } else {
            push(Change::Removed, removed);
            push(Change::Added, added);
        }
    }
    Some(pieces)
}

/// A range of two sequences that is either equal or different.
struct Step {
    same: bool,
    old: Range<usize>,
    new: Range<usize>,
}

impl Step {
    /// Merges consecutive steps of the same kind. `bridge` selects short equal steps that count as part of
    /// the changes around them.
    fn joined(ops: &[DiffOp], bridge: impl Fn(&DiffOp) -> bool) -> Vec<Self> {
        let mut steps: Vec<Self> = Vec::new();
        for (place, op) in ops.iter().enumerate() {
            let between = place > 0 && place + 1 < ops.len();
            let same = matches!(op, DiffOp::Equal { .. }) && !(between && bridge(op));
            match steps.last_mut() {
                Some(last) if last.same == same => {
                    last.old.end = op.old_range().end;
                    last.new.end = op.new_range().end;
                }
                _ => steps.push(Self {
                    same,
                    old: op.old_range(),
                    new: op.new_range(),
                }),
            }
        }
        steps
    }
}

/// A text split into lines, as byte ranges.
struct Lines<'t> {
    whole: &'t str,
    ranges: Vec<Range<usize>>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let whole = text.trim_end_matches(['\n', '\r']);
        let mut ranges = Vec::new();
        let mut start = 0;
        if !whole.is_empty() {
            for line in whole.split('\n') {
                ranges.push(start..start + line.len());
                start += line.len() + 1;
            }
        }
        Self { whole, ranges }
    }

    /// Returns these lines with the line breaks between them.
    fn text(&self, lines: Range<usize>) -> &'t str {
        match self.ranges.get(lines) {
            Some([first, .., last]) => &self.whole[first.start..last.end],
            Some([only]) => &self.whole[only.clone()],
            _ => "",
        }
    }
}

/// A text split into words, spaces and punctuation, each with its byte offset.
struct Words<'t>(Vec<(usize, &'t str)>);

impl<'t> Words<'t> {
    fn of(text: &'t str) -> Self {
        Self(
            text.split_word_bound_indices()
                .take(MAX_WORDS + 1)
                .collect(),
        )
    }

    /// Returns these words of the text.
    fn text(&self, text: &'t str, words: &Range<usize>) -> &'t str {
        match self.0.get(words.clone()) {
            Some([(start, _), .., (last, word)]) => &text[*start..last + word.len()],
            Some([(_, word)]) => word,
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Formats a diff on one line: `-removed-`, `+added+`, anything else is unchanged; `/` ends a line.
    fn shown(old: &str, new: &str) -> String {
        let mut out = String::new();
        for hunk in diff(old, new, 1).hunks {
            out.push_str("@ ");
            for block in hunk.blocks {
                match block {
                    Block::Same(text) => out.push_str(text),
                    Block::Removed(text) => out = out + "-" + text + "-",
                    Block::Added(text) => out = out + "+" + text + "+",
                    Block::Alike(pieces) => {
                        for piece in pieces {
                            let sign = match piece.change {
                                Change::Same => "",
                                Change::Removed => "-",
                                Change::Added => "+",
                            };
                            out = out + sign + piece.text + sign;
                        }
                    }
                }
                out.push('/');
            }
        }
        out
    }

    #[test]
    fn finds_changed_lines_and_words() {
        for (old, new, expected) in [
            ("", "", ""),
            ("a\n", "a", ""),
            ("", "a", "@ +a+/"),
            ("a", "", "@ -a-/"),
            (
                "The cat sat there.",
                "The dog sat there.",
                "@ The -cat-+dog+ sat there./",
            ),
            // Consecutive changed words are one change.
            (
                "It begins with two bad words, and goes on for long.",
                "It begins with some good words, and goes on for long.",
                "@ It begins with -two bad-+some good+ words, and goes on for long./",
            ),
            // Short unchanged text between two changes is part of them.
            (
                "It begins with two, bad words, and goes on for long.",
                "It begins with some, good words, and goes on for long.",
                "@ It begins with -two, bad-+some, good+ words, and goes on for long./",
            ),
            // Text that only grew is similar.
            (
                "The end.",
                "The end. And some more words of quite another kind.",
                "@ The end.+ And some more words of quite another kind.+/",
            ),
            // Nothing in common: the old text, then the new one.
            ("Alpha beta", "Gamma delta", "@ -Alpha beta-/+Gamma delta+/"),
            // Two hunks with one context line on each side.
            (
                "1\n2\n3\n4\n5\n6\n7",
                "1\nx\n3\n4\n5\ny\n7",
                "@ 1/-2-/+x+/3/@ 5/-6-/+y+/7/",
            ),
        ] {
            assert_eq!(shown(old, new), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn hunks_have_line_ranges() {
        let diff = diff("1\n2\n3\n4\n5", "1\n2\n3\nx\ny\n5", 1);
        assert_eq!(
            (diff.hunks[0].old.clone(), diff.hunks[0].new.clone()),
            (2..5, 2..6)
        );
    }

    #[test]
    fn compares_huge_texts_quickly() {
        let text = |seed: u64| -> String {
            let lines = (0..60_000_u64).map(|line| (line * 7919 + seed) % 50_021);
            lines.map(|line| line.to_string() + " words\n").collect()
        };
        let one_line = |seed: u64| -> String {
            let words = (0..200_000_u64).map(|word| (word * 7919 + seed) % 1009);
            words.map(|word| word.to_string() + " ").collect()
        };
        for (old, new) in [(text(1), text(50_000)), (one_line(1), one_line(500))] {
            let begin = Instant::now();
            let found = diff(&old, &new, 3);
            assert!(!found.hunks.is_empty());
            assert!(
                begin.elapsed() < Duration::from_secs(10),
                "{:?}",
                begin.elapsed()
            );
        }
    }

    proptest! {
        #[test]
        fn reconstructs_both_texts(
            old in "([ab]{0,3}[ .é\u{301}🦀]?){0,6}(\n([ab] ?){0,6}){0,6}",
            new in "([ab]{0,3}[ .é\u{301}🦀]?){0,6}(\n([ab] ?){0,6}){0,6}",
        ) {
            let (mut olds, mut news) = (Vec::new(), Vec::new());
            for hunk in diff(&old, &new, 1000).hunks {
                for block in hunk.blocks {
                    let side = |pieces: &[Piece<'_>], change| -> String {
                        pieces.iter().filter(|p| p.change != change).map(|p| p.text).collect()
                    };
                    match block {
                        Block::Same(text) => { olds.push(text.to_owned()); news.push(text.to_owned()); }
                        Block::Removed(text) => olds.push(text.to_owned()),
                        Block::Added(text) => news.push(text.to_owned()),
                        Block::Alike(pieces) => {
                            olds.push(side(&pieces, Change::Added));
                            news.push(side(&pieces, Change::Removed));
                        }
                    }
                }
            }
            let end = |text: &str| text.trim_end_matches('\n').to_owned();
            if end(&old) == end(&new) {
                prop_assert!(olds.is_empty());
            } else {
                prop_assert_eq!(olds.join("\n"), end(&old));
                prop_assert_eq!(news.join("\n"), end(&new));
            }
        }
    }
}
