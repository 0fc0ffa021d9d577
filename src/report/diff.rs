//! What differs between two texts: line by line, and word by word where lines are alike.

use std::ops::Range;
use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};
use unicode_segmentation::UnicodeSegmentation as _;

/// How long the best difference is looked for. What is found after that is right, but longer than it need be.
const PATIENCE: Duration = Duration::from_millis(500);

/// The most words of a passage that are laid against those of another; a longer one is shown by its lines.
const MAX_WORDS: usize = 20_000;

/// The least share of both passages that they have in common for their words to be told apart: below it, a reader
/// sees more in the two passages one after the other.
const ALIKE: f64 = 0.4;

/// The same, of the shorter passage: one that was only added to is alike, however much was added.
const WITHIN: f64 = 0.7;

/// An island of so few letters between two changes is taken for a part of them, as the space between two words is.
const ISLAND: usize = 3;

/// What differs between two texts; empty if nothing does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff<'t> {
    /// The places that differ, in order.
    pub hunks: Vec<Hunk<'t>>,
}

/// A place that differs, with the lines around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hunk<'t> {
    /// Its lines in the old text, counted from 0.
    pub old: Range<usize>,
    /// Its lines in the new text, counted from 0.
    pub new: Range<usize>,
    /// What is in it, in order.
    pub blocks: Vec<Block<'t>>,
}

/// Lines that follow each other. Texts are without the last line break.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Block<'t> {
    /// They are in both texts.
    Same(&'t str),
    /// They are only in the old text.
    Removed(&'t str),
    /// They are only in the new text.
    Added(&'t str),
    /// Lines of both that are alike, word by word. The old lines are all pieces but the added ones, the new
    /// lines all but the removed ones.
    Alike(Vec<Piece<'t>>),
}

/// Words that follow each other, with what stands between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Piece<'t> {
    /// In which of the texts they are.
    pub change: Change,
    /// The words.
    pub text: &'t str,
}

/// What became of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is in both texts.
    Same,
    /// It is only in the old text.
    Removed,
    /// It is only in the new text.
    Added,
}

/// What differs between two texts, with so many lines around each place. Line breaks at the end of a text make
/// no difference. Takes about half a second at most, however long the texts are.
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

/// Two passages word by word; `None` if they are not alike, or too long.
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

/// A stretch of two sequences: the same in both, or different.
struct Step {
    same: bool,
    old: Range<usize>,
    new: Range<usize>,
}

impl Step {
    /// Stretches that follow each other, different ones joined, with what `bridge` says to be no more than a bridge
    /// between two of them.
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

/// A text as lines, by their places in it.
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

    /// These lines, with the breaks between them.
    fn text(&self, lines: Range<usize>) -> &'t str {
        match self.ranges.get(lines) {
            Some([first, .., last]) => &self.whole[first.start..last.end],
            Some([only]) => &self.whole[only.clone()],
            _ => "",
        }
    }
}

/// A text as words, spaces and signs, each with its place.
struct Words<'t>(Vec<(usize, &'t str)>);

impl<'t> Words<'t> {
    fn of(text: &'t str) -> Self {
        Self(
            text.split_word_bound_indices()
                .take(MAX_WORDS + 1)
                .collect(),
        )
    }

    /// These words of the text.
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

    /// A difference on one line: `-removed-`, `+added+`, everything else the same; `/` ends a line.
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
    fn lines_and_words_that_differ_are_told_apart() {
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
            // Words in a row are one change.
            (
                "It begins with two bad words, and goes on for long.",
                "It begins with some good words, and goes on for long.",
                "@ It begins with -two bad-+some good+ words, and goes on for long./",
            ),
            // What is little between two changes is a part of them.
            (
                "It begins with two, bad words, and goes on for long.",
                "It begins with some, good words, and goes on for long.",
                "@ It begins with -two, bad-+some, good+ words, and goes on for long./",
            ),
            // What was only added to is alike.
            (
                "The end.",
                "The end. And some more words of quite another kind.",
                "@ The end.+ And some more words of quite another kind.+/",
            ),
            // Nothing in common: one after the other.
            ("Alpha beta", "Gamma delta", "@ -Alpha beta-/+Gamma delta+/"),
            // Two places, with a line around each.
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
    fn a_hunk_knows_its_lines() {
        let diff = diff("1\n2\n3\n4\n5", "1\n2\n3\nx\ny\n5", 1);
        assert_eq!(
            (diff.hunks[0].old.clone(), diff.hunks[0].new.clone()),
            (2..5, 2..6)
        );
    }

    #[test]
    fn huge_texts_do_not_take_long() {
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
        fn both_texts_can_be_made_of_it(
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
