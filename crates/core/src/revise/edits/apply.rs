use std::ops::Range;

use super::elide::{is_elision, pieces};
use super::indent::reindent;
use super::locate::{Haystack, MatchError, MatchGrade};
use super::parse::{Block, Reading};
use crate::text::plural;
use crate::types::EditCounts;

/// The minimum size in bytes of a replacement that, if it is already in the draft, shows that the
/// edit was made before.
const KNOWN_AGAIN: usize = 12;

/// The result of applying the blocks of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApplyResult {
    /// The text with every applicable block applied. Everything else is unchanged, byte for byte.
    pub text: String,
    /// How many blocks applied, and how.
    pub counts: EditCounts,
    /// The number of blocks that change nothing, or were already applied.
    pub unchanged: u32,
    /// The blocks that did not apply, in order, with the reason.
    pub failed: Vec<FailedBlock>,
}

/// A block that did not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedBlock {
    /// The block.
    pub block: Block,
    /// The reason, a sentence without a full stop, for the model and for people.
    pub reason: String,
    /// The lines of the text that it most likely refers to, with the number of the first.
    pub closest: Option<(usize, String)>,
}

/// Why a block does not apply.
enum FailureReason {
    Unreadable,
    Missed(MatchError),
    Elided,
    Emptied,
}

/// The effect of a block.
struct BlockEdit {
    grade: MatchGrade,
    /// In text order, without overlap.
    splices: Vec<(Range<usize>, String)>,
    count: u32,
}

/// Applies blocks to a draft in order. Each block sees the result of those before it.
///
/// A block applies where its passage is found exactly, or else ignoring white space and look-alike
/// characters, or else approximately. A passage with several matches is rejected, unless exactly
/// one of them consists of whole lines or whole words, or the block is repeated once per match. A
/// block with an empty passage appends its replacement. Text that no block names stays unchanged.
pub fn apply(draft: &str, blocks: &[Block]) -> ApplyResult {
    let mut applied = ApplyResult {
        text: draft.to_owned(),
        ..ApplyResult::default()
    };
    let mut touched: Vec<Range<usize>> = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let same = |other: &&Block| other.readings == block.readings && !block.readings.is_empty();
        if blocks[..index].iter().any(|other| same(&other)) {
            continue;
        }
        let copies = blocks.iter().filter(same).count();
        match change(&applied.text, &touched, block, copies) {
            Ok(None) => applied.unchanged += 1,
            Ok(Some(change)) => {
                let counts = &mut applied.counts;
                *match change.grade {
                    MatchGrade::Exact => &mut counts.exact,
                    MatchGrade::Tolerant => &mut counts.tolerant,
                    MatchGrade::Fuzzy => &mut counts.fuzzy,
                } += change.count;
                for (span, with) in change.splices.into_iter().rev() {
                    splice(&mut applied.text, &mut touched, span, &with);
                }
            }
            Err(why) => {
                let failed = explain(&applied.text, block, why);
                applied.failed.push(failed);
            }
        }
    }
    applied.counts.failed = u32::try_from(applied.failed.len()).unwrap_or(u32::MAX);
    applied
}

/// Replaces a span of the text, and updates the list of touched ranges.
fn splice(text: &mut String, touched: &mut Vec<Range<usize>>, span: Range<usize>, with: &str) {
    for range in touched.iter_mut() {
        if range.start >= span.end {
            range.start = range.start - span.len() + with.len();
            range.end = range.end - span.len() + with.len();
        } else if range.end > span.start {
            range.start = range.start.min(span.start);
            range.end = range.end.max(span.end) - span.len() + with.len();
        }
    }
    touched.push(span.start..span.start + with.len());
    text.replace_range(span, with);
}

/// Returns the change that a block makes to a text, or `None` if it changes nothing.
fn change(
    text: &str,
    touched: &[Range<usize>],
    block: &Block,
    copies: usize,
) -> Result<Option<BlockEdit>, FailureReason> {
    if block.readings.is_empty() {
        return Err(FailureReason::Unreadable);
    }
    let readings: Vec<&Reading> = block
        .readings
        .iter()
        .filter(|reading| !is_placeholder(reading))
        .collect();
    let Some(first) = readings.first() else {
        return Err(FailureReason::Elided);
    };
    let blank = |text: &str| text.trim().is_empty();
    if readings.iter().all(|reading| blank(&reading.search)) {
        return Ok(if blank(&first.replace) || has(text, &first.replace) {
            None
        } else {
            Some(append(text, &first.replace))
        });
    }
    let haystack = Haystack::new(text);
    let (reading, found) = find(&haystack, touched, &readings, copies);
    let (places, grade) = match found {
        Ok(found) => found,
        Err(miss) => return elided(&haystack, touched, &readings, miss),
    };
    let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
    let splices: Vec<_> = places
        .into_iter()
        .map(|place| fit(text, place, &reading.search, &reading.replace, grade))
        .collect();
    if splices
        .iter()
        .all(|(span, with)| &text[span.clone()] == with)
    {
        return Ok(None);
    }
    let left: usize = splices.iter().map(|(span, _)| span.len()).sum();
    if left == text.len() && splices.iter().all(|(_, with)| with.trim().is_empty()) {
        return Err(FailureReason::Emptied);
    }
    Ok(Some(BlockEdit {
        grade,
        splices,
        count,
    }))
}

type BlockMatch = Result<(Vec<Range<usize>>, MatchGrade), MatchError>;

/// Returns the reading that fits the text best, with its place; the first one among equals.
/// Approximate matches count only if no reading matches reliably.
fn find<'b>(
    haystack: &Haystack<'_>,
    touched: &[Range<usize>],
    readings: &[&'b Reading],
    copies: usize,
) -> (&'b Reading, BlockMatch) {
    let searching = || {
        let readings = readings.iter().copied();
        readings.filter(|reading| !reading.search.trim().is_empty())
    };
    let mut best: Option<(&Reading, BlockMatch)> = None;
    for reading in searching() {
        let Some(found) = haystack.sure(&reading.search, touched) else {
            continue;
        };
        let found = match found {
            Ok((place, grade)) => Ok((vec![place], grade)),
            // A block that is repeated once per match is meant for all of them.
            Err(MatchError::Ambiguous(places)) if copies > 1 && places.len() == copies => {
                let exact = haystack.all(&reading.search, MatchGrade::Exact) == places;
                Ok((
                    places,
                    if exact {
                        MatchGrade::Exact
                    } else {
                        MatchGrade::Tolerant
                    },
                ))
            }
            Err(miss) => Err(miss),
        };
        if reading.guess && !matches!(found, Ok((_, MatchGrade::Exact))) {
            continue;
        }
        let better = match (&found, &best) {
            (Ok((_, grade)), Some((_, Ok((_, best))))) => grade < best,
            (_, None) | (Ok(_), Some((_, Err(_)))) => true,
            (Err(_), Some(_)) => false,
        };
        if better {
            best = Some((reading, found));
        }
        if matches!(best, Some((_, Ok((_, MatchGrade::Exact))))) {
            break;
        }
    }
    if let Some(best) = best {
        return best;
    }
    let mut missed = (readings[0], Err(MatchError::NotFound(None)));
    for reading in searching().filter(|reading| !reading.guess) {
        match haystack.one(&reading.search, touched) {
            Ok((place, grade)) => return (reading, Ok((vec![place], grade))),
            Err(miss) if matches!(missed.1, Err(MatchError::NotFound(None))) => {
                missed = (reading, Err(miss));
            }
            Err(_) => {}
        }
    }
    missed
}

/// Finds a passage with omitted lines: its pieces in order, starting from the first place of the
/// first piece.
fn elided(
    haystack: &Haystack<'_>,
    touched: &[Range<usize>],
    readings: &[&Reading],
    miss: MatchError,
) -> Result<Option<BlockEdit>, FailureReason> {
    for reading in readings.iter().filter(|reading| !reading.guess) {
        let search = pieces(&reading.search);
        if search.len() < 2 {
            continue;
        }
        let full = |piece: &&String| !piece.trim().is_empty();
        let mut places = Vec::new();
        let mut worst = MatchGrade::Exact;
        let mut from = 0;
        for piece in search.iter().filter(full) {
            let found = if places.is_empty() {
                haystack.one(piece, touched).ok()
            } else {
                [MatchGrade::Exact, MatchGrade::Tolerant]
                    .into_iter()
                    .find_map(|grade| {
                        let mut all = haystack.all(piece, grade).into_iter();
                        all.find(|place| place.start >= from)
                            .map(|place| (place, grade))
                    })
            };
            let Some((place, grade)) = found else { break };
            worst = worst.max(grade);
            from = place.end;
            places.push((place, piece.as_str()));
        }
        let (Some(first), Some(last)) = (places.first(), places.last()) else {
            continue;
        };
        if places.len() < search.iter().filter(full).count() {
            continue;
        }
        let replace = pieces(&reading.replace);
        let text = haystack.text();
        let splices = if replace.len() == search.len() {
            // The omitted text stays, and each piece is replaced separately.
            let new: Vec<&String> = replace
                .iter()
                .zip(&search)
                .filter(|(_, old)| full(old))
                .map(|(new, _)| new)
                .collect();
            let beyond = replace
                .iter()
                .zip(&search)
                .any(|(new, old)| !full(&old) && full(&new));
            if beyond {
                return Err(FailureReason::Elided);
            }
            places
                .iter()
                .zip(new)
                .map(|((place, old), new)| fit(text, place.clone(), old, new, worst))
                .collect()
        } else if replace.len() == 1 {
            let whole = first.0.start..last.0.end;
            vec![fit(
                text,
                whole,
                first.1,
                &reading.replace,
                worst.max(MatchGrade::Tolerant),
            )]
        } else {
            return Err(FailureReason::Elided);
        };
        if splices
            .iter()
            .all(|(span, with)| &text[span.clone()] == with)
        {
            return Ok(None);
        }
        return Ok(Some(BlockEdit {
            grade: worst.max(MatchGrade::Tolerant),
            splices,
            count: 1,
        }));
    }
    let made = readings
        .iter()
        .any(|reading| !reading.guess && has(haystack.text(), &reading.replace));
    match miss {
        MatchError::NotFound(_) if made => Ok(None),
        miss => Err(FailureReason::Missed(miss)),
    }
}

/// Returns whether the replacement omits lines that the passage contains, so that their text would
/// be lost, or contains a second divider.
fn is_placeholder(reading: &Reading) -> bool {
    let only_there = |is: &dyn Fn(&str) -> bool| {
        reading.replace.lines().any(|line| {
            is(line)
                && !reading
                    .search
                    .lines()
                    .any(|other| other.trim() == line.trim())
        })
    };
    let divider = |line: &str| line.trim() == "=======";
    only_there(&is_elision) || (only_there(&divider) && !reading.search.lines().any(divider))
}

fn has(text: &str, replace: &str) -> bool {
    replace.trim().len() >= KNOWN_AGAIN && text.contains(replace.trim())
}

/// Fits a replacement to its place: adopts the indentation and line endings, and drops the line
/// ending if whole lines are replaced by nothing.
fn fit(
    text: &str,
    place: Range<usize>,
    search: &str,
    replace: &str,
    grade: MatchGrade,
) -> (Range<usize>, String) {
    let mut span = place;
    let mut with = replace.to_owned();
    if grade != MatchGrade::Exact {
        // A tolerant match begins and ends with a visible character, so its replacement must, too.
        with = trim_blank_lines(&with).to_owned();
    }
    let line_start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let indentation = &text[line_start..span.start];
    let starts_line = indentation.trim().is_empty();
    if with.trim().is_empty() {
        return (
            without(text, span, starts_line.then_some(line_start)),
            String::new(),
        );
    }
    if starts_line && span.end > span.start {
        let line_end = span.end;
        let old = &text[line_start..line_end];
        let search = trim_blank_lines(search);
        let fitted = reindent(&with, search, old);
        if fitted != with || !indentation.is_empty() {
            let moved = fitted != with;
            if moved || grade != MatchGrade::Exact {
                span.start = line_start;
                with = fitted;
            }
        }
    } else if grade != MatchGrade::Exact {
        with = with.trim_start().to_owned();
    }
    if grade != MatchGrade::Exact {
        // Trailing blanks of the passage's last line are outside of the match.
        let kept = with.trim_end().len();
        with.truncate(kept);
    }
    if text.contains("\r\n") && !with.contains('\r') {
        with = with.replace('\n', "\r\n");
    }
    (span, with)
}

/// Returns the span to delete so that no empty line or double blank remains.
fn without(text: &str, span: Range<usize>, line_start: Option<usize>) -> Range<usize> {
    let after = &text[span.end..];
    let rest = after.split('\n').next().unwrap_or_default();
    match line_start {
        Some(start) if rest.trim().is_empty() => {
            let mut end = (span.end + rest.len() + 1).min(text.len());
            let blank_before = start == 0
                || text[..start]
                    .trim_end_matches([' ', '\t', '\r'])
                    .ends_with("\n\n")
                || text[..start].ends_with("\r\n\r\n");
            let next = text[end..].split('\n').next().unwrap_or_default();
            let blank_after = next.trim().is_empty() && end + next.len() < text.len();
            if blank_before && blank_after {
                end = end + next.len() + 1;
            }
            // For the last lines, delete the preceding line ending.
            if end >= text.len() && !text[span.end..].contains('\n') {
                let kept = text[..start].trim_end().len();
                return kept..text.len();
            }
            start..end
        }
        _ => {
            let blank_before = span.start == 0 || text[..span.start].ends_with([' ', '\n']);
            let end = if blank_before && after.starts_with(' ') {
                span.end + 1
            } else {
                span.end
            };
            span.start..end
        }
    }
}

fn append(text: &str, replace: &str) -> BlockEdit {
    let kept = text.trim_end().len();
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let paragraphs = text.contains("\n\n") || text.contains("\r\n\r\n");
    let gap = if kept == 0 {
        String::new()
    } else {
        newline.repeat(if paragraphs { 2 } else { 1 })
    };
    let addition = trim_blank_lines(replace).trim_end().replace('\n', newline);
    BlockEdit {
        grade: MatchGrade::Exact,
        splices: vec![(kept..kept, format!("{gap}{addition}"))],
        count: 1,
    }
}

fn trim_blank_lines(text: &str) -> &str {
    let text = text.trim_end_matches(|c: char| c.is_whitespace());
    let start = text
        .char_indices()
        .find(|(_, c)| !c.is_whitespace())
        .map_or(text.len(), |(at, _)| at);
    let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    &text[line..]
}

fn explain(text: &str, block: &Block, why: FailureReason) -> FailedBlock {
    let line_of = |at: usize| text[..at].matches('\n').count() + 1;
    let (reason, closest) = match why {
        FailureReason::Unreadable => (
            "it cannot be read: a block needs SEARCH, `=======` and REPLACE, each on a line of its own".to_owned(),
            None,
        ),
        FailureReason::Elided => (
            "its replacement leaves lines out; everything that takes the passage's place must be written".to_owned(),
            None,
        ),
        FailureReason::Emptied => ("it would leave nothing of the text".to_owned(), None),
        FailureReason::Missed(MatchError::NotFound(None)) => (
            "its SEARCH part does not occur in the text".to_owned(),
            None,
        ),
        FailureReason::Missed(MatchError::NotFound(Some(place))) => {
            let start = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
            let end = text[place.end..].find('\n').map_or(text.len(), |at| place.end + at);
            (
                "its SEARCH part does not occur in the text word for word".to_owned(),
                Some((line_of(start), text[start..end].to_owned())),
            )
        }
        FailureReason::Missed(MatchError::Ambiguous(places)) => {
            let mut lines: Vec<String> = places
                .iter()
                .take(8)
                .map(|place| line_of(place.start).to_string())
                .collect();
            lines.dedup();
            (
                format!(
                    "its SEARCH part fits more than one place ({} {}); more of the lines around it must be copied",
                    plural(lines.len(), "line", "lines"),
                    lines.join(", ")
                ),
                None,
            )
        }
    };
    FailedBlock {
        block: block.clone(),
        reason,
        closest,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse::{parse, write};
    use super::*;

    fn run(draft: &str, reply: &str) -> ApplyResult {
        apply(draft, &parse(reply))
    }

    #[test]
    fn what_did_not_apply_says_why_and_shows_the_closest_lines() {
        let draft =
            "The first line of it.\nThe second line, which is much longer than it.\nThe end.\n";
        let reply = write("The second line, which was written by somebody else", "x");
        let applied = run(draft, &reply);
        assert_eq!(applied.text, draft);
        let failed = &applied.failed[0];
        assert_eq!(
            failed.reason,
            "its SEARCH part does not occur in the text word for word"
        );
        assert_eq!(
            failed.closest,
            Some((
                2,
                "The second line, which is much longer than it.".to_owned()
            ))
        );
        let applied = run("a b\na b\n", &write("a b", "c"));
        assert!(
            applied.failed[0]
                .reason
                .contains("more than one place (lines 1, 2)"),
            "{applied:?}"
        );
        assert_eq!(applied.counts.failed, 1);
    }

    #[test]
    fn a_later_block_does_not_fall_into_what_an_earlier_one_wrote() {
        let blocks = [write("one", "two and one"), write("two", "three")].join("\n");
        // `two` occurs once in the original text, and once in the first block's replacement.
        assert_eq!(
            run("one\nx two y\n", &blocks).text,
            "two and one\nx three y\n"
        );
    }

    /// Drafts with a few kinds of lines and with repetitions.
    fn drafts() -> impl Strategy<Value = String> {
        let line = prop::sample::select(vec![
            "",
            "a",
            "  b",
            "\tc()",
            "The cat – it “sat”.",
            "=====",
            "=======",
            "...",
            "# Title",
            "```",
            "1. x",
            "é ü ß",
            "}",
            "    return a",
            "end  ",
            "SEARCH:",
            "> quoted",
            "---",
        ]);
        prop::collection::vec(line, 1..25).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(draft in "[ab\n\t =<>…é]{0,60}", search in "[ab\n\t =…é]{0,20}", replace in "[ab\n =…é]{0,20}") {
            let _ = run(&draft, &write(&search, &replace));
            let _ = run(&draft, &search);
        }

        #[test]
        fn lines_copied_from_the_draft_apply_where_they_stand_once(
            draft in drafts(),
            start in any::<prop::sample::Index>(),
            length in 1usize..6,
        ) {
            let lines: Vec<&str> = draft.split('\n').collect();
            let start = start.index(lines.len());
            let end = (start + length).min(lines.len());
            let search = lines[start..end].join("\n");
            prop_assume!(!search.trim().is_empty());
            prop_assume!(draft.matches(&search).count() == 1);
            let applied = run(&draft, &write(&search, "something new"));
            prop_assert_eq!(&applied.failed, &[]);
            prop_assert_eq!(applied.counts.exact, 1);
            prop_assert!(applied.text.contains("something new"));
        }

        #[test]
        fn what_is_not_named_stays_byte_for_byte(
            before in drafts(),
            after in drafts(),
            replace in "[a-z]{1,9}(\n[a-z ]{1,9}){0,3}",
        ) {
            let draft = format!("{before}\nunique passage, once\n{after}");
            let applied = run(&draft, &write("unique passage, once", &replace));
            prop_assert_eq!(applied.text, format!("{before}\n{replace}\n{after}"));
        }

        #[test]
        fn a_part_of_a_line_changes_nothing_around_it(left in "[a-y ]{0,20}", right in "[a-y ]{0,20}") {
            let draft = format!("{left}zzz{right}\nlast\n");
            let applied = run(&draft, &write("zzz", "Q"));
            prop_assert_eq!(applied.text, format!("{left}Q{right}\nlast\n"));
        }
    }
}
