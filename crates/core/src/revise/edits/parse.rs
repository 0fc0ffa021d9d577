use super::diff::hunks;
use super::fold::fold;

/// The most blocks that are read of a reply. A revision with more is no targeted one.
const MAX_BLOCKS: usize = 100;

/// The most lines of a block without a divider of which every division is tried.
const MAX_GUESSED: usize = 60;

/// One search/replace block of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What it may mean, the likeliest first: a line of `=` may be the divider or underline a heading, a fence
    /// may belong to the text or stand around it. The draft decides. Empty if it cannot be read at all.
    pub readings: Vec<Reading>,
    /// Its lines as they were written, to show to the model again.
    pub written: String,
    /// Whether it has an end. The last block of a reply that was cut off may go on.
    pub closed: bool,
}

/// What a block may mean. The texts are without a final line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The passage to be changed; without a visible character, nothing: the replacement is added at the end.
    pub search: String,
    /// What takes its place.
    pub replace: String,
    /// Whether the place of the divider is a guess: then the passage must be found exactly.
    pub guess: bool,
}

/// A line that divides a block from what is around it, or its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    Head,
    /// Ends the passage and begins the replacement; how sure that is, 0 the surest.
    Divider(u8),
    Tail,
}

/// Reads the blocks of a reply, or, if it has none, the hunks of a diff. Never fails: what is neither is talk, and
/// left out.
pub fn parse(reply: &str) -> Vec<Block> {
    let lines: Vec<&str> = split_glued(reply);
    // Labels without signs count only where no head has signs: else they are words of the text.
    let labels = !lines
        .iter()
        .any(|line| marker(line, false) == Some(Marker::Head));
    let mut blocks = Vec::new();
    let mut at = 0;
    // Where the text begins that could belong to a block without a head.
    let mut loose = 0;
    while at < lines.len() && blocks.len() < MAX_BLOCKS {
        match marker(lines[at], labels) {
            Some(Marker::Head) => {
                let fenced = lines[..at]
                    .iter()
                    .rev()
                    .find(|line| !line.trim().is_empty())
                    .is_some_and(|line| is_fence(line));
                let (block, next) = block(&lines, at + 1, fenced, labels);
                blocks.extend(block);
                at = next;
                loose = at;
            }
            Some(Marker::Tail) => {
                blocks.extend(headless(&lines[loose..at], labels));
                at += 1;
                loose = at;
            }
            _ => at += 1,
        }
    }
    if blocks.is_empty() {
        blocks = hunks(&lines);
        blocks.truncate(MAX_BLOCKS);
    }
    blocks
}

/// Whether a text has the marker that a block begins with, such as `<<<<<<< SEARCH`.
pub fn has_blocks(text: &str) -> bool {
    text.lines()
        .any(|line| line.contains("<<<") && matches!(marker(line, false), Some(Marker::Head)))
}

/// Writes a block as models are asked to.
pub fn write(search: &str, replace: &str) -> String {
    let part = |text: &str| match text {
        "" => String::new(),
        text => format!("{text}\n"),
    };
    format!(
        "<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE",
        part(search),
        part(replace)
    )
}

/// The lines of a reply; an end marker that is glued to the last line of its block is set apart.
fn split_glued(reply: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    for line in reply.lines() {
        let trimmed = line.trim_end();
        let glued = trimmed
            .strip_suffix("REPLACE")
            .map(str::trim_end)
            .filter(|rest| rest.ends_with(">>>>>"))
            .map(|rest| rest.trim_end_matches('>'))
            .filter(|rest| !rest.trim().is_empty());
        match glued {
            Some(text) => lines.extend([text, &trimmed[text.len()..]]),
            None => lines.push(line),
        }
    }
    lines
}

/// What a line is the marker of; `labels` says whether words alone are one. Models write too few or too many signs, other words, emphasis around.
fn marker(line: &str, labels: bool) -> Option<Marker> {
    let line = line.trim();
    if line.len() > 200 || line.is_empty() {
        return None;
    }
    let folded = fold(line);
    let bare = folded
        .trim_matches(|c: char| c == '*' || c == '`' || c == '#' || c == '_' || c == ' ')
        .trim_end_matches(':')
        .trim();
    let first = bare.chars().next()?;
    if !matches!(first, '<' | '=' | '>') {
        // A label without signs is taken in capitals only: in small letters it is a word of the text.
        return match bare {
            _ if !labels => None,
            "SEARCH" | "SEARCH BLOCK" | "ORIGINAL" | "FIND" => Some(Marker::Head),
            "REPLACE" | "REPLACE WITH" | "REPLACEMENT" | "UPDATED" => Some(Marker::Divider(2)),
            "END" | "END REPLACE" => Some(Marker::Tail),
            _ => None,
        };
    }
    let rest = bare.trim_start_matches(first);
    let signs = bare.len() - rest.len();
    let closing = first == '<' && signs == 1 && rest.starts_with('/');
    let words = rest
        .trim_start_matches('/')
        .trim_matches(|c: char| matches!(c, '<' | '>' | '=' | ' ' | ':'));
    let word = words.split_whitespace().next().unwrap_or_default();
    let searches = matches!(
        word,
        "SEARCH" | "ORIGINAL" | "FIND" | "OLD" | "HEAD" | "BEFORE"
    );
    let replaces = matches!(
        word,
        "REPLACE" | "REPLACEMENT" | "UPDATED" | "NEW" | "AFTER" | "WITH"
    );
    // `<SEARCH>` and `</REPLACE>` are tags; one sign with a word and more text is no marker.
    let enough = signs >= 3 || (signs == 1 && first == '<' && rest.ends_with('>'));
    match first {
        _ if !enough => None,
        '<' if searches && closing => Some(Marker::Divider(2)),
        '<' | '=' if searches => Some(Marker::Head),
        '<' if replaces && closing => Some(Marker::Tail),
        '<' if replaces => Some(Marker::Divider(2)),
        '<' if word.is_empty() && signs >= 5 => Some(Marker::Head),
        '=' if replaces => Some(Marker::Divider(1)),
        '=' if word.is_empty() => Some(Marker::Divider(match signs {
            7 => 0,
            5.. => 1,
            _ => 3,
        })),
        '>' if replaces || word == "END" || (searches && signs >= 5) => Some(Marker::Tail),
        '>' if word.is_empty() && signs >= 5 => Some(Marker::Tail),
        _ => None,
    }
}

/// Reads a block whose head is before `start`; gives it, and the line where reading goes on.
fn block(lines: &[&str], start: usize, fenced: bool, labels: bool) -> (Option<Block>, usize) {
    let mut tail = None;
    let mut divided = false;
    let mut end = lines.len();
    for (offset, line) in lines[start..].iter().enumerate() {
        match marker(line, labels) {
            Some(Marker::Head) => {
                end = start + offset;
                break;
            }
            Some(Marker::Tail) => {
                // `>>>>>>> REPLACE` in the place of the divider, with another end behind it.
                let rest = &lines[start + offset + 1..];
                if !divided && ends_again(rest, labels) {
                    divided = true;
                    continue;
                }
                tail = Some(start + offset);
                end = start + offset;
                break;
            }
            Some(Marker::Divider(sure)) => divided |= sure < 3,
            None => {}
        }
    }
    let next = tail.map_or(end, |tail| tail + 1);
    let mut body = &lines[start..end];
    let mut closed = tail.is_some();
    if !closed {
        if fenced && let Some(fence) = closing_fence(body) {
            body = &body[..fence];
            closed = true;
        }
        // What was divided by `<<<<<<< REPLACE` may end with it, too.
        if let Some((last, before)) = body.split_last()
            && marker(last, labels) == Some(Marker::Divider(2))
            && before
                .iter()
                .any(|line| matches!(marker(line, labels), Some(Marker::Divider(_))))
        {
            body = before;
            closed = true;
        }
    }
    while body
        .last()
        .is_some_and(|line| !closed && line.trim().is_empty())
    {
        body = &body[..body.len() - 1];
    }
    if body.is_empty() {
        return (None, next);
    }
    // Without an end, talk behind the block cannot be told from its text.
    let readings = if closed || !talk_may_follow(body, labels) {
        readings(body, labels)
    } else {
        Vec::new()
    };
    let block = Block {
        readings,
        written: body.join("\n"),
        closed,
    };
    (Some(block), next)
}

/// Whether the next marker is an end, before any other block begins.
fn ends_again(lines: &[&str], labels: bool) -> bool {
    lines
        .iter()
        .find_map(|line| marker(line, labels))
        .is_some_and(|marker| marker == Marker::Tail)
}

/// The line that closes the fence which the block stands in.
fn closing_fence(body: &[&str]) -> Option<usize> {
    let mut open = false;
    for (at, line) in body.iter().enumerate() {
        if !is_fence(line) {
            continue;
        }
        let bare = line.trim().chars().all(|c| c == '`' || c == '~');
        if !open && bare {
            return Some(at);
        }
        open = !open;
    }
    None
}

/// Whether a block without an end has a blank line in its replacement, and so perhaps talk behind it.
fn talk_may_follow(body: &[&str], labels: bool) -> bool {
    let divider = body
        .iter()
        .position(|line| matches!(marker(line, labels), Some(Marker::Divider(0..=2))));
    body[divider.unwrap_or(0)..]
        .iter()
        .any(|line| line.trim().is_empty())
}

/// A block of which only the divider and the end are there: the passage is what stands before the divider,
/// or the last paragraph of it, if talk stands before.
fn headless(lines: &[&str], labels: bool) -> Option<Block> {
    let divider = lines
        .iter()
        .rposition(|line| matches!(marker(line, labels), Some(Marker::Divider(0..=2))))?;
    let search = trim_blank(&lines[..divider]);
    if search.is_empty() {
        return None;
    }
    let replace = &lines[divider + 1..];
    let paragraph = search
        .iter()
        .rposition(|line| line.trim().is_empty() || is_fence(line))
        .map(|blank| &search[blank + 1..]);
    let readings = [Some(search), paragraph]
        .into_iter()
        .flatten()
        .filter(|search| !search.is_empty())
        .map(|search| Reading {
            search: search.join("\n"),
            replace: replace.join("\n"),
            guess: true,
        })
        .collect();
    Some(Block {
        readings,
        written: lines.join("\n"),
        closed: true,
    })
}

fn readings(body: &[&str], labels: bool) -> Vec<Reading> {
    let mut dividers: Vec<(u8, usize)> = body
        .iter()
        .enumerate()
        .filter_map(|(at, line)| match marker(line, labels) {
            Some(Marker::Divider(sure)) => Some((sure, at)),
            // Only where it stands for a divider does an end get into a body.
            Some(Marker::Tail) => Some((1, at)),
            _ => None,
        })
        .collect();
    dividers.sort_unstable();
    let mut readings: Vec<Reading> = Vec::new();
    for &(_, at) in dividers.iter().take(8) {
        let search = &body[..at];
        let mut replace = &body[at + 1..];
        // `</SEARCH>` and `<REPLACE>` divide together.
        if let Some((first, rest)) = replace.split_first()
            && matches!(marker(first, labels), Some(Marker::Divider(2)))
        {
            replace = rest;
        }
        push(&mut readings, search, replace);
        let (bare_search, bare_replace) = unfence(search, replace);
        push(&mut readings, bare_search, bare_replace);
        if let Some((search, replace)) = unquote(search, replace) {
            let borrow = |lines: &[String]| lines.join("\n");
            readings.push(Reading {
                search: borrow(&search),
                replace: borrow(&replace),
                guess: false,
            });
        }
    }
    if dividers.is_empty() && body.len() <= MAX_GUESSED {
        // The longest beginning that is in the draft is the passage.
        let body = trim_blank(body);
        for at in (1..body.len()).rev() {
            readings.push(Reading {
                search: body[..at].join("\n"),
                replace: trim_blank(&body[at..]).join("\n"),
                guess: true,
            });
        }
    }
    readings
}

fn push(readings: &mut Vec<Reading>, search: &[&str], replace: &[&str]) {
    let reading = Reading {
        search: search.join("\n"),
        replace: replace.join("\n"),
        guess: false,
    };
    if !readings.contains(&reading) {
        readings.push(reading);
    }
}

/// Both parts without a fence around each, or around both.
fn unfence<'a, 'b>(
    search: &'a [&'b str],
    replace: &'a [&'b str],
) -> (&'a [&'b str], &'a [&'b str]) {
    let (s, r) = (trim_blank(search), trim_blank(replace));
    let whole =
        |lines: &[&str]| lines.len() >= 2 && is_fence(lines[0]) && is_fence(lines[lines.len() - 1]);
    let fences = |lines: &[&str]| lines.iter().filter(|line| is_fence(line)).count();
    let inner = |lines: &'a [&'b str]| {
        if whole(lines) {
            &lines[1..lines.len() - 1]
        } else {
            lines
        }
    };
    if whole(s) || whole(r) {
        return (inner(s), inner(r));
    }
    // Opened before the passage, closed behind the replacement.
    if let ([first, s @ ..], [r @ .., last]) = (s, r)
        && is_fence(first)
        && is_fence(last)
        && fences(s) % 2 == 0
        && fences(r) % 2 == 0
    {
        return (s, r);
    }
    (search, replace)
}

/// Both parts without the signs that quote them or mark them in a diff, where every line has one.
fn unquote(search: &[&str], replace: &[&str]) -> Option<(Vec<String>, Vec<String>)> {
    let strip = |lines: &[&str], sign: char| -> Option<Vec<String>> {
        lines
            .iter()
            .map(|line| {
                if line.trim().is_empty() {
                    return Some(String::new());
                }
                let rest = line.strip_prefix(sign)?;
                Some(rest.strip_prefix(' ').unwrap_or(rest).to_owned())
            })
            .collect()
    };
    let full = |lines: &[&str]| lines.iter().any(|line| !line.trim().is_empty());
    if !full(search) {
        return None;
    }
    for (old, new) in [('>', '>'), ('-', '+'), ('|', '|')] {
        if let (Some(search), Some(replace)) = (strip(search, old), strip(replace, new)) {
            return Some((search, replace));
        }
    }
    None
}

pub(super) fn trim_blank<'a, 'b>(mut lines: &'a [&'b str]) -> &'a [&'b str] {
    while let [first, rest @ ..] = lines
        && first.trim().is_empty()
    {
        lines = rest;
    }
    while let [rest @ .., last] = lines
        && last.trim().is_empty()
    {
        lines = rest;
    }
    lines
}

pub(super) fn is_fence(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("```") || line.starts_with("~~~")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(reply: &str) -> Vec<(String, String)> {
        parse(reply)
            .into_iter()
            .map(|block| {
                let first = block.readings.into_iter().next().unwrap();
                (first.search, first.replace)
            })
            .collect()
    }

    #[test]
    fn markers_are_known_however_they_are_written() {
        for line in [
            "<<<<<<< SEARCH",
            "<<<< SEARCH",
            "<<<<<<<<< SEARCH",
            "  <<<<<<< SEARCH  ",
            "<<<<<<<SEARCH",
            "<<<<<<< SEARCH poem.txt",
            "**<<<<<<< SEARCH**",
            "`<<<<<<< SEARCH`",
            "<<<<<<< ORIGINAL",
            "<SEARCH>",
            "SEARCH:",
            "<<<<<<< SEARCH:",
            "＜＜＜＜＜＜＜ SEARCH",
            "<<<<<<<",
            "<<<<<<< SEARCH >>>>>>>",
        ] {
            assert_eq!(marker(line, true), Some(Marker::Head), "{line}");
        }
        for line in [
            ">>>>>>> REPLACE",
            ">>>> REPLACE",
            ">>>>>>>",
            "</REPLACE>",
            ">>>>>>> END",
            ">>>>>>> UPDATED",
        ] {
            assert_eq!(marker(line, true), Some(Marker::Tail), "{line}");
        }
        for line in [
            "=======",
            "=====",
            "===",
            "======= REPLACE",
            "<<<<<<< REPLACE",
            "REPLACE:",
            "**REPLACE**",
        ] {
            assert!(
                matches!(marker(line, true), Some(Marker::Divider(_))),
                "{line}"
            );
        }
        for line in [
            "",
            "> a quote",
            ">> x",
            "Search:",
            "a < b",
            "if a << 3 {",
            "== Title ==",
            ">>> print(1)",
            "<html>",
            "search",
            "The SEARCH goes on",
            "<<EOF",
            "=> x",
        ] {
            assert_eq!(marker(line, true), None, "{line}");
        }
    }

    #[test]
    fn blocks_are_found_between_talk_fences_and_file_names() {
        let reply = "Here you go:\n\npoem.txt\n```text\n<<<<<<< SEARCH\na\nb\n=======\nc\n>>>>>>> REPLACE\n```\n\
                     And also:\n<<<<<<< SEARCH\nd\n=======\n>>>>>>> REPLACE\nThat is all.";
        assert_eq!(
            parts(reply),
            [
                ("a\nb".to_owned(), "c".to_owned()),
                ("d".to_owned(), String::new())
            ]
        );
    }

    #[test]
    fn a_block_that_is_written_is_read_back() {
        for (search, replace) in [("a", "b"), ("", "x\ny"), ("a\n\nb", "")] {
            assert_eq!(
                parts(&write(search, replace)),
                [(search.to_owned(), replace.to_owned())]
            );
        }
    }

    #[test]
    fn an_open_end_is_taken_only_where_no_talk_can_follow() {
        let open = parse("<<<<<<< SEARCH\na\n=======\nb\nc\n");
        assert_eq!(open[0].readings[0].replace, "b\nc");
        assert!(!open[0].closed);
        let talk = parse("<<<<<<< SEARCH\na\n=======\nb\n\nI changed a to b.");
        assert!(talk[0].readings.is_empty());
    }

    proptest! {
        #[test]
        fn no_reply_makes_it_panic(reply in "\\PC*") {
            let _ = parse(&reply);
        }

        #[test]
        fn no_mix_of_markers_makes_it_panic(
            lines in prop::collection::vec(
                prop::sample::select(vec![
                    "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "```", "```py", "a", "  b", "", "...", "REPLACE:",
                    "<SEARCH>", "</SEARCH>", "<REPLACE>", "</REPLACE>", "> q", "a>>>>>>> REPLACE", "===", "\u{3000}é",
                ]),
                0..30,
            )
        ) {
            for block in parse(&lines.join("\n")) {
                for reading in block.readings {
                    prop_assert!(!reading.search.ends_with('\r'));
                }
            }
        }
    }
}
