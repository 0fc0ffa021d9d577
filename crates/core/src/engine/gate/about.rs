use std::collections::HashSet;

use super::{DraftContext, NotADraft, words};

/// A revision shares more of its pairs of words with the text that it revises. Measured on 3,339 recorded drafts: 99 %
/// of the revisions share more, 99 % of the replies that only talk about the text share less.
const LIKE: f64 = 0.4;
/// At least this share of the words of talk is about texts...
const WORDS: f64 = 0.03;
/// ...a single one in a short text only...
const SINGLE: f64 = 0.1;
/// ...and so many of its sentences have such a word.
const SENTENCES: f64 = 0.5;
/// Words of tasks that want a text changed. Such a task brings the text along.
const REWRITING: &[&str] = &[
    "rewrite",
    "revise",
    "improve",
    "edit",
    "correct",
    "proofread",
];
/// Tasks that ask for talk about a text.
const FEEDBACK: &[&str] = &["feedback", "critique", "evaluate", "comment on", "assess"];
/// How a task begins that names the text to write: "Write a short story about …". What follows the name is its subject,
/// and the text may well speak of that.
const WRITING: &[&str] = &[
    "write", "draft", "compose", "create", "tell", "make", "generate", "give", "produce", "prepare",
];
/// What stands between the name of the text and its subject.
const SUBJECT: &[&str] = &[
    "about", "of", "on", "for", "from", "to", "in", "with", "by", "that", "which", "who", "where",
    "why", "how", "what",
];
/// Words about texts...
const ABOUT: &[&str] = &[
    "review",
    "reviews",
    "text",
    "texts",
    "draft",
    "drafts",
    "feedback",
    "sentiment",
    "sentiments",
    "prompt",
    "prompts",
    "critique",
    "critiques",
    "wording",
    "phrase",
    "phrases",
    "changes",
];
/// ...and how others begin.
const ABOUT_STEMS: &[&str] = &["revis", "rewrit", "rewrote", "criteri"];
/// What stands before the name of the text: "this poem".
const DETERMINERS: &[&str] = &["the", "this", "your"];

/// Whether a reply talks about the text instead of being it: it is unlike the text that it should be a version of, and
/// most of its sentences speak of texts, in words that this text does not have.
pub(super) fn check(text: &str, context: &DraftContext<'_>) -> Result<(), NotADraft> {
    let rewrites = || context.prompt_has(REWRITING) && !context.prompt_has(FEEDBACK);
    let Some(base) = context
        .base
        .or_else(|| rewrites().then_some(context.prompt))
    else {
        return Ok(());
    };
    let (text_words, base_words) = (words(text), words(base));
    let known: HashSet<&str> = base_words.iter().map(String::as_str).collect();
    let prompt = match context.base {
        Some(_) => words(context.prompt.lines().next().unwrap_or_default()),
        None => Vec::new(),
    };
    let names = names(&prompt);
    let is_about = |said: &[String], at: usize| {
        let word = said[at].as_str();
        let before = at.checked_sub(1).map(|before| said[before].as_str());
        let is_name = names.contains(word) && before.is_some_and(|it| DETERMINERS.contains(&it));
        let stem = ABOUT.contains(&word) || ABOUT_STEMS.iter().any(|stem| word.starts_with(stem));
        // A rewriting task itself speaks of the text.
        (stem && context.base.is_none()) || ((stem || is_name) && !known.contains(word))
    };
    let count = |said: &[String]| (0..said.len()).filter(|at| is_about(said, *at)).count();
    let sentences: Vec<Vec<String>> = text
        .split_inclusive(['.', '!', '?', ':', '\n'])
        .map(words)
        .filter(|said| !said.is_empty())
        .collect();
    let about = sentences.iter().filter(|said| count(said) > 0).count();
    let said = count(&text_words);
    let least = if said == 1 { SINGLE } else { WORDS };
    let is_talk = share(said, text_words.len()) >= least
        && share(about, sentences.len()) >= SENTENCES
        && likeness(&text_words, &base_words) < LIKE;
    if !is_talk {
        return Ok(());
    }
    Err(NotADraft::new(
        "the reply talks about the text instead of being the text",
        "The last reply only talked about the text. Write the whole text itself.",
    ))
}

/// The words by which the first line of a task names the text.
fn names(prompt: &[String]) -> HashSet<&str> {
    let words = prompt.iter().map(String::as_str);
    if !words.clone().next().is_some_and(|it| WRITING.contains(&it)) {
        return HashSet::new();
    }
    words
        .skip_while(|word| !matches!(*word, "a" | "an"))
        .take_while(|word| !SUBJECT.contains(word))
        .collect()
}

/// The share of a text's pairs of words that another one has.
fn likeness(text: &[String], other: &[String]) -> f64 {
    let known: HashSet<&[String]> = other.windows(2).collect();
    let pairs = text.windows(2);
    let all = pairs.len();
    share(pairs.filter(|pair| known.contains(pair)).count(), all)
}

#[expect(clippy::cast_precision_loss, reason = "texts have fewer words")]
fn share(part: usize, all: usize) -> f64 {
    part as f64 / all.max(1) as f64
}
