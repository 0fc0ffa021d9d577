//! Detects texts that have degenerated into a loop, where almost every passage occurred before.
//!
//! Structured texts repeat themselves on purpose: the rows of a table, the weeks of a plan and lines of code. Their
//! names and numbers differ, so few sequences of eight words occur twice. In a loop nearly all of them do.

use std::collections::HashSet;

/// The number of words in a sequence.
const RUN: usize = 8;
/// How many of these words must contain letters: rows of numbers are not a loop.
const WITH_LETTERS: usize = 4;
/// At most one in this many sequences of a loop differs from the others.
const TIMES: usize = 3;
/// The maximum length of an HTML or XML tag, in bytes.
const LONGEST_TAG: usize = 300;

/// The byte offset at which a text that ends in a loop has completed its first pass; `None` if it does not end in a
/// loop. A loop has at least `least` words, and at least `share` (0 to 1) of it occurred before.
pub fn loop_start(text: &str, least: usize, share: f64) -> Option<usize> {
    // A word and a space take at least two bytes.
    if text.len() < 2 * least {
        return None;
    }
    let words = words(text);
    let runs: Vec<u64> = words.windows(RUN).map(hash_of_run).collect();
    let mut seen = HashSet::with_capacity(runs.len());
    let known: Vec<bool> = words
        .windows(RUN)
        .zip(&runs)
        .map(|(run, hash)| {
            let letters = run.iter().filter(|word| word.letters).count();
            !seen.insert(hash) && letters >= WITH_LETTERS
        })
        .collect();
    let (mut repeated, mut start) = (0_usize, None);
    for (length, at) in (1_usize..).zip((0..known.len()).rev()) {
        repeated += usize::from(known[at]);
        #[expect(clippy::cast_precision_loss, reason = "texts have fewer words")]
        if known[at] && repeated as f64 >= share * length as f64 {
            start = Some(at);
        }
    }
    let start = start.filter(|start| runs.len() - start >= least)?;
    let different: HashSet<&u64> = runs[start..].iter().collect();
    (TIMES * different.len() <= runs.len() - start).then(|| words[start].at)
}

struct Word {
    /// The byte offset of the word.
    at: usize,
    hash: u64,
    letters: bool,
}

/// The words and numbers of a text, excluding those inside tags.
fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::with_capacity(text.len() / 6);
    let (mut inside, mut skip) = (false, 0);
    for (at, c) in text.char_indices() {
        if at < skip {
            continue;
        }
        if c == '<' {
            skip = end_of_tag(&text[at..]).map_or(at, |length| at + length);
        }
        if !c.is_alphanumeric() {
            inside = false;
            continue;
        }
        if !std::mem::replace(&mut inside, true) {
            words.push(Word {
                at,
                hash: FNV_OFFSET,
                letters: false,
            });
        }
        if let Some(word) = words.last_mut() {
            let lower = c.to_lowercase().map(u64::from);
            word.hash = lower.fold(word.hash, fnv);
            word.letters |= c.is_alphabetic();
        }
    }
    words
}

/// The length of the tag at the start of a text, if there is one.
fn end_of_tag(text: &str) -> Option<usize> {
    let name = text[1..].chars().next()?;
    let end = text.find('>').filter(|end| *end < LONGEST_TAG)?;
    (name.is_ascii_alphabetic() || name == '/').then_some(end + 1)
}

fn hash_of_run(run: &[Word]) -> u64 {
    run.iter().map(|word| word.hash).fold(FNV_OFFSET, fnv)
}

const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;

/// FNV-1a. A collision only makes a text look slightly more repetitive.
fn fnv(hash: u64, part: u64) -> u64 {
    (hash ^ part).wrapping_mul(0x100_0000_01B3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
        (1..=count).map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn structured_texts_are_not_loops() {
        let plan = lines(52, |n| {
            format!(
                "Week {n}: rest day or easy stretching at home, then an easy run of {} km at a pace where you can talk",
                n / 2 + 3
            )
        });
        let html = lines(200, |n| {
            format!(
                "<tr class=\"row\"><td class=\"cell right\">{n}</td><td class=\"cell\">{}</td></tr>",
                n * n % 97
            )
        });
        let blank = lines(80, |_| "<tr><td></td><td></td><td></td></tr>".to_owned());
        let markdown = lines(200, |n| format!("| Item | {n} | {} | kg |", n * 7 % 101));
        let csv = lines(300, |n| format!("sensor,{n},{},ok", n * 31 % 89));
        let matrix = lines(300, |n| lines(1, |_| format!("{} 0 0 1 0 1", n % 2)));
        let code = lines(120, |n| {
            format!(
                "    assert_eq!(square({n}), {}, \"the square of {n} is wrong\");",
                n * n
            )
        });
        let json = lines(120, |n| {
            format!(
                "{{\"id\": {n}, \"name\": \"user{n}\", \"active\": true, \"role\": \"reader\"}},"
            )
        });
        let verse = |n: usize| {
            format!(
                "Verse {n} tells of day{n} and night{n} and what the sailor{n} saw when the wind{n} came\n\
                     Oh sing with me the song of the sea, oh sing with me till the morning comes, \
                     oh sing with me the song of the sea, and we will all go home again"
            )
        };
        let song = lines(12, verse);
        for (name, text) in [
            ("plan", plan),
            ("html", html),
            ("blank", blank),
            ("markdown", markdown),
            ("csv", csv),
            ("matrix", matrix),
            ("code", code),
            ("json", json),
            ("song", song),
        ] {
            assert_eq!(loop_start(&text, 120, 0.85), None, "{name}");
        }
    }

    #[test]
    fn loops_are_found_with_their_start() {
        let story = lines(30, |n| {
            format!("The keeper saw ship {n} and wrote its name{n} into the book at {n} o'clock.")
        });
        let lived = "He had been a sailor for many years, and his life was a testament to those who served. ";
        let rows = "| China | Beijing | 1.2 |\n| India | Delhi | 1.3 |\n| Brazil | Brasilia | 0.2 |\n| Canada | Ottawa | 0.1 |\n";
        let item = "* In the next 12 weeks, you can run 10 km in 12 weeks again.\n";
        for unit in [lived, rows, item] {
            let text = format!("{story}\n\n{}", unit.repeat(40));
            let start = loop_start(&text, 120, 0.95).unwrap_or_else(|| panic!("{unit}"));
            let first = story.len() + 2;
            assert!(
                (first + 1..=first + 2 * unit.len()).contains(&start),
                "{start} {first}"
            );
        }
        // Small variations that repeat.
        let kinds = ["small", "green", "old", "quiet", "famous"];
        let varied = lines(90, |n| {
            format!(
                "The frog is a {} animal that lives in the {} pond near the house.",
                kinds[n * 7 % 5],
                kinds[n / 3 % 5]
            )
        });
        assert!(loop_start(&varied, 600, 0.85).is_some());
    }
}
