use std::ops::Range;

use super::elide::{is_elision, pieces};
use super::indent::reindent;
use super::locate::{Grade, Haystack, Miss};
use super::parse::{Block, Reading};
use crate::text::plural;
use crate::types::EditCounts;

/// A replacement of at least so many bytes that stands in the draft already was made before.
const KNOWN_AGAIN: usize = 12;

/// What became of the blocks of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// The text with every block applied that could be. What no block touches is as it was, byte for byte.
    pub text: String,
    /// How many applied, and how.
    pub counts: EditCounts,
    /// Blocks that change nothing, or that were made already.
    pub unchanged: u32,
    /// The blocks that did not apply, in their order, and why.
    pub failed: Vec<Failed>,
}

/// A block that did not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// The block.
    pub block: Block,
    /// Why, in a sentence without its end, for the model and for people.
    pub reason: String,
    /// The lines of the text that it most likely means, as they are, with the number of the first.
    pub closest: Option<(usize, String)>,
}

/// Why a block does not apply.
enum Why {
    Unreadable,
    Missed(Miss),
    Elided,
    Emptied,
}

/// What a block does.
struct Change {
    grade: Grade,
    /// In the order of the text, without overlap.
    splices: Vec<(Range<usize>, String)>,
    count: u32,
}

/// Applies blocks to a draft, one after the other: each sees what those before it made of the draft.
///
/// A block applies where its passage is found byte for byte, else but for white space and look-alikes, else nearly.
/// A passage that is there more than once is refused, unless one place is whole lines or whole words and the others
/// are not, or unless the block is given as often as there are places. An empty passage adds its replacement at the
/// end. Nothing that a block does not name is changed.
pub fn apply(draft: &str, blocks: &[Block]) -> Applied {
    let mut applied = Applied {
        text: draft.to_owned(),
        ..Applied::default()
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
                    Grade::Exact => &mut counts.exact,
                    Grade::Tolerant => &mut counts.tolerant,
                    Grade::Fuzzy => &mut counts.fuzzy,
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

/// Puts a text in the place of a span, and keeps book of what was touched.
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

/// What a block does to a text; `None` if it does nothing.
fn change(
    text: &str,
    touched: &[Range<usize>],
    block: &Block,
    copies: usize,
) -> Result<Option<Change>, Why> {
    if block.readings.is_empty() {
        return Err(Why::Unreadable);
    }
    let readings: Vec<&Reading> = block
        .readings
        .iter()
        .filter(|reading| !is_placeholder(reading))
        .collect();
    let Some(first) = readings.first() else {
        return Err(Why::Elided);
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
        return Err(Why::Emptied);
    }
    Ok(Some(Change {
        grade,
        splices,
        count,
    }))
}

type Found = Result<(Vec<Range<usize>>, Grade), Miss>;

/// The reading that fits the text best, and where. Of equals the first. What is nearly there counts only where no
/// reading is there surely.
fn find<'b>(
    haystack: &Haystack<'_>,
    touched: &[Range<usize>],
    readings: &[&'b Reading],
    copies: usize,
) -> (&'b Reading, Found) {
    let searching = || {
        let readings = readings.iter().copied();
        readings.filter(|reading| !reading.search.trim().is_empty())
    };
    let mut best: Option<(&Reading, Found)> = None;
    for reading in searching() {
        let Some(found) = haystack.sure(&reading.search, touched) else {
            continue;
        };
        let found = match found {
            Ok((place, grade)) => Ok((vec![place], grade)),
            // The same block once for every place is meant for all of them.
            Err(Miss::Ambiguous(places)) if copies > 1 && places.len() == copies => {
                let exact = haystack.all(&reading.search, Grade::Exact) == places;
                Ok((places, if exact { Grade::Exact } else { Grade::Tolerant }))
            }
            Err(miss) => Err(miss),
        };
        if reading.guess && !matches!(found, Ok((_, Grade::Exact))) {
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
        if matches!(best, Some((_, Ok((_, Grade::Exact))))) {
            break;
        }
    }
    if let Some(best) = best {
        return best;
    }
    let mut missed = (readings[0], Err(Miss::NotFound(None)));
    for reading in searching().filter(|reading| !reading.guess) {
        match haystack.one(&reading.search, touched) {
            Ok((place, grade)) => return (reading, Ok((vec![place], grade))),
            Err(miss) if matches!(missed.1, Err(Miss::NotFound(None))) => {
                missed = (reading, Err(miss));
            }
            Err(_) => {}
        }
    }
    missed
}

/// A passage of which lines were left out: its pieces, in their order, from the first place of the first one.
fn elided(
    haystack: &Haystack<'_>,
    touched: &[Range<usize>],
    readings: &[&Reading],
    miss: Miss,
) -> Result<Option<Change>, Why> {
    for reading in readings.iter().filter(|reading| !reading.guess) {
        let search = pieces(&reading.search);
        if search.len() < 2 {
            continue;
        }
        let full = |piece: &&String| !piece.trim().is_empty();
        let mut places = Vec::new();
        let mut worst = Grade::Exact;
        let mut from = 0;
        for piece in search.iter().filter(full) {
            let found = if places.is_empty() {
                haystack.one(piece, touched).ok()
            } else {
                [Grade::Exact, Grade::Tolerant]
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
            // What was left out stays, and each piece gets its own replacement.
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
                return Err(Why::Elided);
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
                worst.max(Grade::Tolerant),
            )]
        } else {
            return Err(Why::Elided);
        };
        if splices
            .iter()
            .all(|(span, with)| &text[span.clone()] == with)
        {
            return Ok(None);
        }
        return Ok(Some(Change {
            grade: worst.max(Grade::Tolerant),
            splices,
            count: 1,
        }));
    }
    let made = readings
        .iter()
        .any(|reading| !reading.guess && has(haystack.text(), &reading.replace));
    match miss {
        Miss::NotFound(_) if made => Ok(None),
        miss => Err(Why::Missed(miss)),
    }
}

/// Whether the replacement leaves lines out that the passage does not: what it stands for would be lost. Also
/// whether a second divider got into it.
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

/// A replacement as it goes to its place: with the place's indentation and line ends; where nothing takes the place
/// of whole lines, their line end goes, too.
fn fit(
    text: &str,
    place: Range<usize>,
    search: &str,
    replace: &str,
    grade: Grade,
) -> (Range<usize>, String) {
    let mut span = place;
    let mut with = replace.to_owned();
    if grade != Grade::Exact {
        // A tolerant place begins and ends with a visible character: so does what goes there.
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
            if moved || grade != Grade::Exact {
                span.start = line_start;
                with = fitted;
            }
        }
    } else if grade != Grade::Exact {
        with = with.trim_start().to_owned();
    }
    if grade != Grade::Exact {
        // Blanks at the end of the passage's last line are outside of the place.
        let kept = with.trim_end().len();
        with.truncate(kept);
    }
    if text.contains("\r\n") && !with.contains('\r') {
        with = with.replace('\n', "\r\n");
    }
    (span, with)
}

/// The span to cut out so that no empty line or double blank is left where a passage was.
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
            // The last lines: the line end before them goes.
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

fn append(text: &str, replace: &str) -> Change {
    let kept = text.trim_end().len();
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let paragraphs = text.contains("\n\n") || text.contains("\r\n\r\n");
    let gap = if kept == 0 {
        String::new()
    } else {
        newline.repeat(if paragraphs { 2 } else { 1 })
    };
    let addition = trim_blank_lines(replace).trim_end().replace('\n', newline);
    Change {
        grade: Grade::Exact,
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

fn explain(text: &str, block: &Block, why: Why) -> Failed {
    let line_of = |at: usize| text[..at].matches('\n').count() + 1;
    let (reason, closest) = match why {
        Why::Unreadable => (
            "it cannot be read: a block needs SEARCH, `=======` and REPLACE, each on a line of its own".to_owned(),
            None,
        ),
        Why::Elided => (
            "its replacement leaves lines out; everything that takes the passage's place must be written".to_owned(),
            None,
        ),
        Why::Emptied => ("it would leave nothing of the text".to_owned(), None),
        Why::Missed(Miss::NotFound(None)) => (
            "its SEARCH part does not occur in the text".to_owned(),
            None,
        ),
        Why::Missed(Miss::NotFound(Some(place))) => {
            let start = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
            let end = text[place.end..].find('\n').map_or(text.len(), |at| place.end + at);
            (
                "its SEARCH part does not occur in the text word for word".to_owned(),
                Some((line_of(start), text[start..end].to_owned())),
            )
        }
        Why::Missed(Miss::Ambiguous(places)) => {
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
    Failed {
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

    fn run(draft: &str, reply: &str) -> Applied {
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
        // `two` stands once in what was there, and once in what the first block wrote.
        assert_eq!(
            run("one\nx two y\n", &blocks).text,
            "two and one\nx three y\n"
        );
    }

    /// A draft from a few kinds of lines, repetitions and all.
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
