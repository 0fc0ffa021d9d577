use super::parse::{Block, Reading, is_fence, trim_blank};

/// Parses the hunks of a unified diff, which some models write instead of blocks: the removed and
/// context lines are the passage. Ignores line numbers, because models miscount.
pub(super) fn hunks(lines: &[&str]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut hunk: Option<Vec<&str>> = None;
    for &line in lines {
        let begins = line.starts_with("@@") || line.trim() == "```diff";
        if begins || is_fence(line) {
            blocks.extend(hunk.take().and_then(|lines| block(&lines)));
            hunk = begins.then(Vec::new);
        } else if let Some(hunk) = &mut hunk {
            let names_file = line.starts_with("--- ") || line.starts_with("+++ ");
            if !(names_file && hunk.is_empty()) {
                hunk.push(line);
            }
        }
    }
    blocks.extend(hunk.and_then(|lines| block(&lines)));
    blocks
}

fn block(lines: &[&str]) -> Option<Block> {
    let lines = trim_blank(lines);
    if !lines.iter().any(|line| line.starts_with(['-', '+'])) {
        return None;
    }
    let (mut search, mut replace) = (Vec::new(), Vec::new());
    for line in lines {
        match line.chars().next() {
            Some('-') => search.push(&line[1..]),
            Some('+') => replace.push(&line[1..]),
            // Models often omit the leading blank of context lines.
            Some(' ') => {
                search.push(&line[1..]);
                replace.push(&line[1..]);
            }
            _ => {
                search.push(line);
                replace.push(line);
            }
        }
    }
    // Without a line of the draft the place is unknown.
    let placed = search.iter().any(|line| !line.trim().is_empty());
    let reading = placed.then(|| Reading {
        search: search.join("\n"),
        replace: replace.join("\n"),
        guess: false,
    });
    Some(Block {
        readings: reading.into_iter().collect(),
        written: lines.join("\n"),
        closed: true,
    })
}
