use super::diff::hunks;
use super::fold::fold;

/// The maximum number of blocks read from a reply. A targeted edit has fewer.
const MAX_BLOCKS: usize = 100;

/// The maximum number of lines of a block without a divider for which every split is tried.
const MAX_GUESSED: usize = 60;

/// A search/replace block of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The possible readings, most likely first: a line of `=` may be the divider or underline a
    /// heading, and a fence may belong to the text or surround it. The draft decides. Empty if the
    /// block cannot be parsed.
    pub readings: Vec<Reading>,
    /// The lines as the model wrote them, to show them to it again.
    pub written: String,
    /// Whether the block has an end marker. The last block of a truncated reply may be incomplete.
    pub closed: bool,
}

/// A possible reading of a block. The texts have no final line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The passage to replace. If it has no visible character, the replacement is appended.
    pub search: String,
    /// The replacement.
    pub replace: String,
    /// Whether the position of the divider is a guess. The passage must then match exactly.
    pub guess: bool,
}

/// A line that delimits a block or its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    Head,
    /// Ends the passage and begins the replacement. Holds the uncertainty, 0 for the most certain.
    Divider(u8),
    Tail,
}

/// Parses the blocks of a reply or, if there are none, the hunks of a diff. Never fails: all other
/// text is ignored as commentary.
pub fn parse(reply: &str) -> Vec<Block> {
    let lines: Vec<&str> = split_glued(reply);
    // Labels without signs count only if no head has signs; otherwise they are words of the text.
    let labels = !lines
        .iter()
        .any(|line| marker(line, false) == Some(Marker::Head));
    let mut blocks = Vec::new();
    let mut at = 0;
    // The start of the text that may belong to a block without a head.
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

/// Returns whether a text contains the start marker of a block, such as `<<<<<<< SEARCH`.
pub fn has_blocks(text: &str) -> bool {
    text.lines()
        .any(|line| line.contains("<<<") && matches!(marker(line, false), Some(Marker::Head)))
}

/// Writes a block in the requested form.
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

/// Returns the lines of a reply. Splits an end marker from the last line of its block.
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

/// Returns the marker that a line is. `labels` says whether a word alone counts. Accepts too few or
/// too many signs, other words, and emphasis, as models write them.
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
        // A label without signs must be in capitals; in lower case it is a word of the text.
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
    // `<SEARCH>` and `</REPLACE>` are tags. A single sign with a word and more text is not a
    // marker.
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

/// Parses a block whose head precedes `start`. Returns it with the line at which to continue.
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
                // `>>>>>>> REPLACE` in place of the divider, followed by another end marker.
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
        // A block divided by `<<<<<<< REPLACE` may end with it, too.
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
    // Without an end marker, commentary after the block is indistinguishable from its text.
    let readings = if closed || !commentary_may_follow(body, labels) {
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

/// Returns whether the next marker is an end marker, before any other block begins.
fn ends_again(lines: &[&str], labels: bool) -> bool {
    lines
        .iter()
        .find_map(|line| marker(line, labels))
        .is_some_and(|marker| marker == Marker::Tail)
}

/// Returns the line that closes the fence around the block.
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

/// Returns whether a block without an end marker has a blank line in its replacement, which
/// commentary may follow.
fn commentary_may_follow(body: &[&str], labels: bool) -> bool {
    let divider = body
        .iter()
        .position(|line| matches!(marker(line, labels), Some(Marker::Divider(0..=2))));
    body[divider.unwrap_or(0)..]
        .iter()
        .any(|line| line.trim().is_empty())
}

/// Parses a block that has only a divider and an end marker. The passage is the text before the
/// divider, or its last paragraph if commentary precedes it.
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
            // An end marker is within the body only if it stands for a divider.
            Some(Marker::Tail) => Some((1, at)),
            _ => None,
        })
        .collect();
    dividers.sort_unstable();
    let mut readings: Vec<Reading> = Vec::new();
    for &(_, at) in dividers.iter().take(8) {
        let search = &body[..at];
        let mut replace = &body[at + 1..];
        // `</SEARCH>` and `<REPLACE>` together form a divider.
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
        // The longest prefix that is in the draft is the passage.
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

/// Removes a fence around each part, or around both.
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
    // Opened before the passage and closed after the replacement.
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

/// Removes quote or diff signs from both parts, if every line has one.
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
