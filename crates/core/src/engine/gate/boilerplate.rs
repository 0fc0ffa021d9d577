//! Boilerplate: remarks of the model before and after a draft.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::phrase::phrase;
use super::{DraftContext, NotADraft, Removed, words};

/// Announcements are short.
const LONGEST_LINE: usize = 300;
/// Closing remarks are short.
pub(super) const LONGEST_REMARK: usize = 60;
/// A list of changes is no more of the reply than this; else it may be the text itself.
const LARGEST_TAIL: f64 = 0.6;

/// A line that announces the text, with what it announces.
static ANNOUNCEMENT: LazyLock<Regex> = LazyLock::new(|| {
    phrase(
        r"^[*_#>\s]*(?:(?:sure|certainly|of course|absolutely|ok(?:ay)?|great|understood|yes|alright|no problem|gladly|thank you|thanks)\b[^.:!\n]{0,40}(?:[.!,:-]|\xE2\x80\x94)+\s*)?(?P<how>here(?:'s| is| are)|below (?:is|are)|the following is|this is|please find(?: below)?)\s+(?P<what>.{2,300}?)\s*(?P<end>[:.!]?)[*_\s]*$",
    )
});
/// A line that agrees, and says nothing else.
static OPENER: LazyLock<Regex> = LazyLock::new(|| {
    phrase(
        r"^(?:sure(?: thing)?|certainly|of course|absolutely|ok(?:ay)?|great|understood|alright|no problem|gladly)[.!,]*$",
    )
});
/// A line that is a label of the text: `**Revised version:**`.
static LABEL: LazyLock<Regex> = LazyLock::new(|| {
    phrase(
        r"^[*_#\s]*(?:my |your |the )?(?:revised|updated|improved|corrected|rewritten|edited|polished|final)\s+(?:version|draft|text|revision|answer|response|output)[*_\s]*:?[*_\s]*$",
    )
});
/// The model says what it did to the text.
static DONE: LazyLock<Regex> = LazyLock::new(|| {
    phrase(
        r"^[*_(\s]*(?:note(?: that)?:?\s+)?(?:i(?:'ve| have)?\s+(?:now\s+|also\s+|carefully\s+)*(?:revised|updated|addressed|rewritten|rewrote|incorporated|corrected|edited|made (?:the|these|all|some|several)|adjusted|ensured|kept|fixed|mended|improved)|(?:this|the) (?:revised|updated|improved|corrected|above) (?:version|draft|text|revision))\b",
    )
});
/// The model offers to do more.
static OFFER: LazyLock<Regex> = LazyLock::new(|| {
    phrase(
        r"^[*_(\s]*(?:(?:please )?let me know|feel free|would you like|(?:i )?hope (?:this|that|the)|is there anything|if you(?:'d| would) like)\b",
    )
});
/// Somebody speaks of a version: the model of its draft, or the draft of its subject.
static OF_A_VERSION: LazyLock<Regex> = LazyLock::new(|| {
    phrase(
        r"^[*_(\s]*(?:this (?:version|draft|revision)|the (?:new|final|current) (?:version|draft|text|revision))\b",
    )
});
/// A heading over what was changed.
static CHANGES: LazyLock<Regex> = LazyLock::new(|| {
    phrase(
        r"^[*_#\s]*(?:(?:key|main|major|notable) (?:changes|improvements|revisions|edits)(?: made)?|(?:summary|list|overview|explanation) of (?:the )?(?:changes|revisions|improvements|edits)(?: made)?|(?:changes|improvements|revisions|edits|corrections)(?: i)? made|what (?:i(?:'ve| have)? )?changed|what was changed|notes? on the (?:revision|changes)|revision notes?)\b[^\n]{0,40}?:?[*_\s]*$",
    )
});

/// Words that tell that a remark is about the draft as a draft.
const ABOUT_DRAFTS: &[&str] = &[
    "revised",
    "revision",
    "revisions",
    "version",
    "draft",
    "rewrite",
    "rewritten",
    "edits",
    "adjust",
    "adjustments",
    "tweak",
    "tweaks",
    "feedback",
    "criteria",
    "criterion",
    "changes",
    "modify",
    "modifications",
    "requested",
    "requirements",
];
/// What a draft is called as such.
const DRAFTS: &[&str] = &["draft", "version", "text", "revision", "rewrite"];
/// Words of announcements that say nothing of the text's subject.
const OF_ANNOUNCEMENTS: &[&str] = &[
    "revised",
    "updated",
    "improved",
    "corrected",
    "rewritten",
    "edited",
    "polished",
    "final",
    "complete",
    "full",
    "requested",
    "draft",
    "version",
    "text",
    "revision",
    "rewrite",
    "answer",
    "response",
    "output",
    "result",
    "feedback",
    "issues",
    "suggestions",
    "criteria",
    "requirements",
    "comments",
    "changes",
];
/// Words that say nothing at all.
const COMMON: &[&str] = &[
    "a",
    "an",
    "the",
    "my",
    "your",
    "of",
    "for",
    "about",
    "with",
    "that",
    "which",
    "in",
    "on",
    "to",
    "and",
    "it",
    "is",
    "has",
    "been",
    "from",
    "by",
    "as",
    "all",
    "this",
    "you",
    "based",
    "meets",
    "addresses",
    "addressing",
    "incorporating",
    "following",
    "short",
    "according",
    "above",
    "below",
    "possible",
];

/// Removes what announces the text: a line of agreement, a line that says what follows, a label, and a rule after
/// them. A line counts only if it speaks of the text as the task does, or as a draft: a story may begin with "Here
/// is what happened:".
pub(super) fn without_lead<'a>(
    text: &'a str,
    context: &DraftContext<'_>,
    removed: &mut Vec<Removed>,
) -> &'a str {
    if context.prompt_has(&[
        "here is",
        "here's",
        "begin with",
        "start with",
        "first line",
    ]) {
        return text;
    }
    let mut rest = text;
    let (first, after) = line(text);
    if OPENER.is_match(plain(first).as_bytes()) && announces(line(after).0, context) {
        rest = after;
    }
    let mut found = false;
    loop {
        let (first, after) = line(rest);
        if after.is_empty()
            || !(announces(first, context) || LABEL.is_match(plain(first).as_bytes()))
        {
            break;
        }
        rest = after;
        found = true;
    }
    if !found || context.base_has(text[..text.len() - rest.len()].trim()) {
        return text;
    }
    let (first, after) = line(rest);
    if is_rule(first) && !after.is_empty() {
        rest = after;
    }
    removed.push(Removed {
        what: "talk before the draft",
        text: text[..text.len() - rest.len()].trim().to_owned(),
    });
    rest
}

/// Removes what follows the text: a list of changes under its heading, and remarks on what the model did or could do.
pub(super) fn without_tail<'a>(
    text: &'a str,
    context: &DraftContext<'_>,
    removed: &mut Vec<Removed>,
) -> &'a str {
    let mut rest = text;
    if !about_changes(context)
        && let Some(at) = changes_at(rest).filter(|at| *at > 0)
    {
        let tail = &rest[at..];
        #[expect(clippy::cast_precision_loss, reason = "texts are shorter")]
        let share = tail.len() as f64 / rest.len() as f64;
        if share <= LARGEST_TAIL && !context.base_has(line(tail).0) {
            rest = rest[..at].trim_end();
        }
    }
    while let Some(at) = rest.rfind("\n\n") {
        let (before, remark) = (rest[..at].trim_end(), rest[at..].trim());
        let found = rest.len() < text.len();
        let apart = is_rule(before.lines().next_back().unwrap_or_default());
        if before.is_empty()
            || !(is_remark(remark, context, found, apart) || (found && is_rule(remark)))
        {
            break;
        }
        rest = before;
    }
    if rest.len() < text.len() {
        let (before, last) = rest.rsplit_once('\n').unwrap_or(("", rest));
        if is_rule(last) && !before.trim().is_empty() {
            rest = before.trim_end();
        }
        removed.push(Removed {
            what: "talk after the draft",
            text: text[rest.len()..].trim().to_owned(),
        });
    }
    rest
}

/// Whether the text consists of remarks about a draft only: a list of changes, or one remark.
pub(super) fn check(text: &str, context: &DraftContext<'_>) -> Result<(), NotADraft> {
    let only_changes = !about_changes(context) && changes_at(text) == Some(0);
    let only_a_remark =
        DONE.is_match(plain(text).as_bytes()) && is_remark(text, context, false, false);
    if (only_changes || only_a_remark) && !context.base_has(line(text).0) {
        return Err(NotADraft::new(
            "the reply talks about the draft instead of being one",
            "The last reply only said what was changed. Write the whole text itself.",
        ));
    }
    Ok(())
}

/// Whether changes are what the task is about.
fn about_changes(context: &DraftContext<'_>) -> bool {
    const WORDS: &[&str] = &[
        "change",
        "release note",
        "commit",
        "improvement",
        "revision",
        "edits",
        "diff",
        "pull request",
        "review",
        "correction",
    ];
    context.prompt_has(WORDS)
}

/// Where the heading of a list of changes begins that goes on to the end. A heading like others before it belongs to
/// the text, unless a rule sets it apart.
fn changes_at(text: &str) -> Option<usize> {
    let mut found = None;
    let mut headings = HashSet::new();
    let mut apart = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let plain = plain(line);
        let style = plain.chars().next().filter(|c| matches!(c, '#' | '*'));
        let heading = match style {
            Some('*') => plain.starts_with("**") && plain.trim_end_matches(':').ends_with("**"),
            style => style.is_some(),
        };
        if CHANGES.is_match(plain.as_bytes()) && (apart || !heading || !headings.contains(&style)) {
            found = found.or(Some(at));
        } else if plain.starts_with('#') {
            // Another heading: the list is a part of the text.
            found = None;
        }
        if heading {
            headings.insert(style);
        }
        apart = is_rule(&plain) || (apart && plain.is_empty());
        at += line.len();
    }
    found
}

/// Whether a line announces a text that the task speaks of.
fn announces(line: &str, context: &DraftContext<'_>) -> bool {
    let line = plain(line);
    if line.len() > LONGEST_LINE {
        return false;
    }
    // What was done may be said first: "I have revised the text. Here is the new version:"
    let last = match line.rsplit_once(". ") {
        Some((_, last)) if DONE.is_match(line.as_bytes()) => last,
        _ => line.as_str(),
    };
    let Some(found) = ANNOUNCEMENT.captures(last.as_bytes()) else {
        return false;
    };
    let what = words(&String::from_utf8_lossy(&found["what"]));
    let prompt: HashSet<String> = words(context.prompt).into_iter().collect();
    let telling: Vec<&String> = what
        .iter()
        .filter(|word| !COMMON.contains(&word.as_str()))
        .collect();
    let of_drafts = |word: &String| OF_ANNOUNCEMENTS.contains(&word.as_str());
    let known = telling
        .iter()
        .filter(|word| of_drafts(word) || prompt.contains(**word))
        .count();
    let first_known = telling
        .first()
        .is_some_and(|word| of_drafts(word) || prompt.contains(*word));
    // Without a colon, or with words that many texts begin with, it must speak of a draft as such.
    let names_a_draft = what.iter().any(|word| DRAFTS.contains(&word.as_str()));
    let plainly = &found["end"] == b":" && !found["how"].eq_ignore_ascii_case(b"this is");
    let ends = plainly || (names_a_draft && telling.len() <= 4);
    ends && first_known && 2 * known >= telling.len()
}

/// Whether a paragraph is a remark of the model on the draft as a draft, in words that the task does not use. `found`
/// says that talk was found after it, `apart` that a rule stands before it.
///
/// People who write to each other, or announce something, say such things, too: where the task is of that kind,
/// only what is set apart is a remark.
fn is_remark(paragraph: &str, context: &DraftContext<'_>, found: bool, apart: bool) -> bool {
    const MESSAGES: &[&str] = &[
        "mail", "letter", "message", "reply", "answer", "memo", "invit", "note", "post", "tweet",
        "announce", "release", "version", "update", "chat", "dialog", "comment", "speech",
    ];
    let said = words(paragraph);
    if paragraph.contains("\n\n")
        || said.len() > LONGEST_REMARK
        || context.base_has(paragraph)
        || (!apart && context.prompt_has(MESSAGES))
    {
        return false;
    }
    let prompt: HashSet<String> = words(context.prompt).into_iter().collect();
    let telling: HashSet<&String> = said
        .iter()
        .filter(|word| ABOUT_DRAFTS.contains(&word.as_str()) && !prompt.contains(*word))
        .collect();
    let start = plain(paragraph);
    let needed = if DONE.is_match(start.as_bytes()) || OFFER.is_match(start.as_bytes()) {
        1
    } else if OF_A_VERSION.is_match(start.as_bytes()) {
        if found || apart { 1 } else { 2 }
    } else {
        return false;
    };
    telling.len() >= needed
}

pub(super) fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && (line.chars().all(|c| c == '-') || line.chars().all(|c| c == '*'))
}

/// The first line, and what follows it without the blank lines between.
fn line(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut rest = rest;
    while let Some((blank, after)) = rest.split_once('\n')
        && blank.trim().is_empty()
    {
        rest = after;
    }
    (first.trim_end(), rest)
}

/// A line with the apostrophes that keyboards have.
fn plain(line: &str) -> String {
    line.trim().replace('\u{2019}', "'")
}
