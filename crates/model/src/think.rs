//! Separates a leading block of reasoning from the answer in a stream.

/// The tags that models put around their reasoning, in lower case.
const TAGS: [&str; 3] = ["think", "thinking", "mm:think"];

/// Splits the text of a reply into reasoning and answer.
///
/// Only a block at the very beginning is reasoning; later tags are ordinary text. An incomplete tag at the end of a
/// piece is held back until it is complete.
#[derive(Debug)]
pub(crate) struct ThinkSplitter {
    state: State,
    /// The number of bytes consumed so far.
    taken: usize,
    /// The byte offset at which the answer begins, once known.
    answer_start: Option<usize>,
    /// Whether to look for a closing tag without an opening one.
    orphans: bool,
}

#[derive(Debug)]
enum State {
    /// White space, or the beginning of an opening tag.
    Start(String),
    /// Inside a block; `held` may be the start of its closing tag.
    Block { tag: &'static str, held: String },
    /// After a block; white space is skipped.
    AfterBlock,
    /// The answer is held back, because a later closing tag may turn it into reasoning.
    Held(String),
    /// The answer.
    Answer,
}

impl ThinkSplitter {
    /// A splitter for a reply that is displayed while it arrives.
    pub(crate) fn new() -> Self {
        Self {
            state: State::Start(String::new()),
            taken: 0,
            answer_start: None,
            orphans: false,
        }
    }

    /// A splitter for a reply that is not displayed before it is complete. It also recognizes a closing tag whose
    /// opening tag is part of the prompt. Text that starts like JSON is not held back.
    pub(crate) fn holding_back() -> Self {
        Self {
            orphans: true,
            ..Self::new()
        }
    }

    /// Adds a piece and appends its parts to `reasoning` and `answer`.
    pub(crate) fn feed(&mut self, piece: &str, reasoning: &mut String, answer: &mut String) {
        self.taken += piece.len();
        match &mut self.state {
            State::Answer => answer.push_str(piece),
            State::AfterBlock => self.after_block(piece, answer),
            State::Held(held) => held.push_str(piece),
            State::Block { held, .. } => {
                held.push_str(piece);
                self.in_block(reasoning, answer);
            }
            State::Start(held) => {
                held.push_str(piece);
                self.at_start(reasoning, answer);
            }
        }
    }

    /// Ends the stream and releases what was held back.
    pub(crate) fn finish(&mut self, reasoning: &mut String, answer: &mut String) {
        match std::mem::replace(&mut self.state, State::Answer) {
            State::Start(held) => {
                self.answer_start.get_or_insert(0);
                answer.push_str(&held);
            }
            State::Block { held, .. } => reasoning.push_str(&held),
            State::Held(held) => {
                if let Some((end, rest)) = orphan(&held) {
                    self.answer_start = Some(self.taken - held.len() + rest);
                    reasoning.push_str(&held[..end]);
                    answer.push_str(&held[rest..]);
                } else {
                    self.answer_start = Some(self.taken - held.len());
                    answer.push_str(&held);
                }
            }
            State::AfterBlock => {
                self.answer_start.get_or_insert(self.taken);
            }
            State::Answer => {}
        }
    }

    /// The byte offset in the whole text at which the answer begins, once known.
    pub(crate) fn answer_start(&self) -> Option<usize> {
        self.answer_start
    }

    fn at_start(&mut self, reasoning: &mut String, answer: &mut String) {
        let State::Start(held) = &mut self.state else {
            return;
        };
        let text = held.trim_start();
        let Some(first) = text.chars().next() else {
            return;
        };
        if first == '<' {
            match opening_tag(text) {
                Tag::Complete(tag, length) => {
                    let rest = text[length..].to_owned();
                    self.state = State::Block { tag, held: rest };
                    return self.in_block(reasoning, answer);
                }
                Tag::Partial => return,
                Tag::None => {}
            }
        }
        let held = std::mem::take(held);
        if self.orphans && !matches!(first, '{' | '[' | '`') {
            self.state = State::Held(held);
        } else {
            self.state = State::Answer;
            self.answer_start = Some(self.taken - held.len());
            answer.push_str(&held);
        }
    }

    fn in_block(&mut self, reasoning: &mut String, answer: &mut String) {
        let State::Block { tag, held } = &mut self.state else {
            return;
        };
        let mut from = 0;
        while let Some(at) = held[from..].find('<').map(|at| at + from) {
            match closing_tag(&held[at..], tag) {
                Tag::Complete(_, length) => {
                    reasoning.push_str(&held[..at]);
                    let rest = held.split_off(at + length);
                    self.state = State::AfterBlock;
                    return self.after_block(&rest, answer);
                }
                Tag::Partial => {
                    reasoning.push_str(&held[..at]);
                    held.drain(..at);
                    return;
                }
                Tag::None => from = at + 1,
            }
        }
        reasoning.push_str(held);
        held.clear();
    }

    fn after_block(&mut self, piece: &str, answer: &mut String) {
        let text = piece.trim_start();
        if text.is_empty() {
            return;
        }
        self.state = State::Answer;
        self.answer_start = Some(self.taken - text.len());
        answer.push_str(text);
    }
}

enum Tag {
    /// The tag's name, and its length including the brackets.
    Complete(&'static str, usize),
    /// The text may be the start of a tag.
    Partial,
    None,
}

fn opening_tag(text: &str) -> Tag {
    let mut partial = false;
    for tag in TAGS {
        match bracketed(text, "<", tag) {
            Tag::Complete(..) => return Tag::Complete(tag, tag.len() + 2),
            Tag::Partial => partial = true,
            Tag::None => {}
        }
    }
    if partial { Tag::Partial } else { Tag::None }
}

fn closing_tag(text: &str, tag: &'static str) -> Tag {
    bracketed(text, "</", tag)
}

/// Whether `text` begins with `open`, the tag in any case, and `>`.
fn bracketed(text: &str, open: &str, tag: &'static str) -> Tag {
    let wanted = open.bytes().chain(tag.bytes()).chain(*b">");
    let length = open.len() + tag.len() + 1;
    for (index, wanted) in wanted.enumerate() {
        match text.as_bytes().get(index) {
            None => return Tag::Partial,
            Some(found) if found.eq_ignore_ascii_case(&wanted) => {}
            Some(_) => return Tag::None,
        }
    }
    Tag::Complete(tag, length)
}

/// Finds a closing tag without an opening one: where the reasoning ends and where the answer begins. The tag must be
/// alone on its line, outside of a code block, and be followed by an answer; otherwise the text merely mentions the
/// tag.
fn orphan(text: &str) -> Option<(usize, usize)> {
    let mut start = 0;
    let mut in_code = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            in_code = !in_code;
        }
        if !in_code {
            let lower = trimmed.to_ascii_lowercase();
            if TAGS.iter().any(|tag| lower.contains(&format!("<{tag}>"))) {
                return None;
            }
            if TAGS.iter().any(|tag| lower == format!("</{tag}>")) {
                let rest = &text[start + line.len()..];
                let answer = rest.trim_start();
                return (!answer.is_empty()).then_some((start, text.len() - answer.len()));
            }
        }
        start += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(mut splitter: ThinkSplitter, pieces: &[&str]) -> (String, String, Option<usize>) {
        let (mut reasoning, mut answer) = (String::new(), String::new());
        for piece in pieces {
            splitter.feed(piece, &mut reasoning, &mut answer);
        }
        splitter.finish(&mut reasoning, &mut answer);
        (reasoning, answer, splitter.answer_start())
    }

    fn shown(text: &str) -> (String, String) {
        let (reasoning, answer, start) = split(ThinkSplitter::new(), &[text]);
        let start = start.unwrap_or(text.len());
        assert!(text[start..].ends_with(&answer), "{text}");
        (reasoning, answer)
    }

    fn held(text: &str) -> (String, String) {
        let (reasoning, answer, _) = split(ThinkSplitter::holding_back(), &[text]);
        (reasoning, answer)
    }

    fn pair(reasoning: &str, answer: &str) -> (String, String) {
        (reasoning.to_owned(), answer.to_owned())
    }

    #[test]
    fn a_leading_block_is_reasoning() {
        assert_eq!(shown("<think>a</think>\n\nb"), pair("a", "b"));
        assert_eq!(shown(" \n<Thinking>a < b</THINKING>b"), pair("a < b", "b"));
        assert_eq!(shown("<mm:think>a</mm:think>b"), pair("a", "b"));
        assert_eq!(
            shown("<think>a</thinking></think>b"),
            pair("a</thinking>", "b")
        );
    }

    #[test]
    fn an_unclosed_block_is_never_the_answer() {
        assert_eq!(shown("<think>all of it </thi"), pair("all of it </thi", ""));
        assert_eq!(shown("<think>a</think>  \n"), pair("a", ""));
    }

    #[test]
    fn later_tags_are_text() {
        for text in [
            "The tag <think>x</think> is used by models.",
            "<thin air>",
            "<thinker>x</thinker>",
            "a\n</think>\nb",
            "< think>x</think>",
            "  plain",
            "<",
            "<think",
        ] {
            assert_eq!(shown(text), pair("", text), "{text}");
        }
        assert_eq!(
            shown("<think>a</think><think>b</think>"),
            pair("a", "<think>b</think>")
        );
    }

    #[test]
    fn a_lone_closing_tag_counts_only_if_held_back() {
        assert_eq!(held("a\nb\n</think>\n\n{}"), pair("a\nb\n", "{}"));
        assert_eq!(held("a\n</THINK>\n"), pair("", "a\n</THINK>\n"));
        assert_eq!(
            held("It ends with </think> then.\nb"),
            pair("", "It ends with </think> then.\nb")
        );
        let code = "See:\n```\nx\n</think>\n```\nb";
        assert_eq!(held(code), pair("", code));
        let pairs = "One:\n<think>\nx\n</think>\nb";
        assert_eq!(held(pairs), pair("", pairs));
        assert_eq!(held("<think>a</think>b"), pair("a", "b"));
    }

    #[test]
    fn json_is_not_held_back() {
        let mut splitter = ThinkSplitter::holding_back();
        let (mut reasoning, mut answer) = (String::new(), String::new());
        splitter.feed(" {\"a\"", &mut reasoning, &mut answer);
        assert_eq!(answer, " {\"a\"");
    }

    proptest! {
        #[test]
        fn splitting_does_not_depend_on_pieces(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "<think>", "</think>", "<mm:think>", "</mm:think>", "<Thinking>", "</thinking>", "<", "/",
                    " ", "\n", "é", "text", "<th", "```\n", "{",
                ]),
                0..12,
            ),
        ) {
            let text = parts.concat();
            let singles: Vec<String> = text.chars().map(String::from).collect();
            let singles: Vec<&str> = singles.iter().map(String::as_str).collect();
            for make in [ThinkSplitter::new, ThinkSplitter::holding_back] {
                let whole = split(make(), &[&text]);
                prop_assert_eq!(&split(make(), &singles), &whole);
                prop_assert_eq!(&split(make(), &parts), &whole);
            }
        }
    }
}
