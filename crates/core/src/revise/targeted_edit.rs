//! Edits that the model names: a passage, and what takes its place.

use super::edits::{Applied, Block, Failed, apply, parse};
use crate::model::{EndReason, Message, Reply};
use crate::prompt::{FailedEdit, Prompts};
use crate::types::EditCounts;

/// Edits under way.
#[derive(Debug, Clone)]
pub(super) struct Edits {
    /// The conversation so far, without the reply that is awaited.
    messages: Vec<Message>,
    /// What was applied before, and by which blocks; `None` if this is the first try.
    before: Option<(Applied, Vec<Block>)>,
}

/// What a reply with edits comes to.
pub(super) enum Outcome {
    /// All of it applied.
    Done(String, EditCounts),
    /// Some of it did not: it is asked for once more.
    Again(Edits),
    /// There is no edit in it at all.
    None,
    /// It came to nothing, for this reason.
    Failed(String, EditCounts),
}

impl Edits {
    pub(super) fn new(messages: Vec<Message>) -> Self {
        Self {
            messages,
            before: None,
        }
    }

    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Whether this is the second try.
    pub(super) fn is_again(&self) -> bool {
        self.before.is_some()
    }

    /// Applies a reply to the draft, or, at the second try, to what the first one made of it.
    pub(super) fn answer(self, draft: &str, reply: &Reply) -> Outcome {
        let mut blocks = parse(&reply.text);
        if reply.end != Some(EndReason::Stop) {
            // What was being written when the reply ended may be half of it.
            for block in blocks.iter_mut().filter(|block| !block.closed) {
                block.readings.clear();
            }
        }
        let Some((before, made)) = self.before else {
            return if blocks.is_empty() {
                Outcome::None
            } else {
                Self::first(self.messages, &reply.text, draft, blocks)
            };
        };
        // Some models write again what was applied already.
        blocks.retain(|block| !made.iter().any(|other| other.readings == block.readings));
        let after = apply(&before.text, &blocks);
        let left_out = before.failed.len().saturating_sub(blocks.len());
        let counts = EditCounts {
            exact: before.counts.exact + after.counts.exact,
            tolerant: before.counts.tolerant + after.counts.tolerant,
            fuzzy: before.counts.fuzzy + after.counts.fuzzy,
            failed: after.counts.failed + u32::try_from(left_out).unwrap_or(u32::MAX),
        };
        if counts.failed > 0 {
            Outcome::Failed(describe(counts.failed), counts)
        } else {
            finished(after.text, draft, counts)
        }
    }

    fn first(messages: Vec<Message>, reply: &str, draft: &str, mut blocks: Vec<Block>) -> Outcome {
        let applied = apply(draft, &blocks);
        let counts = applied.counts;
        if applied.failed.is_empty() {
            return finished(applied.text, draft, counts);
        }
        let failed: Vec<FailedEdit<'_>> = applied.failed.iter().map(show).collect();
        let messages = Prompts::edit_again(messages, reply, &failed, counts.applied() > 0);
        blocks.retain(|block| !applied.failed.iter().any(|failed| failed.block == *block));
        Outcome::Again(Self {
            messages,
            before: Some((applied, blocks)),
        })
    }
}

fn finished(text: String, draft: &str, counts: EditCounts) -> Outcome {
    if text == draft {
        Outcome::Failed("its edits change nothing".to_owned(), counts)
    } else {
        Outcome::Done(text, counts)
    }
}

fn show(failed: &Failed) -> FailedEdit<'_> {
    FailedEdit {
        written: &failed.block.written,
        reason: &failed.reason,
        closest: failed.closest.as_ref().map(|(_, lines)| lines.as_str()),
        line: failed.closest.as_ref().map(|(line, _)| *line),
    }
}

fn describe(failed: u32) -> String {
    match failed {
        1 => "1 edit did not apply, also when it was asked for again".to_owned(),
        _ => format!("{failed} edits did not apply, also when they were asked for again"),
    }
}
