//! The strategy `targeted_edit`: the model names passages and their replacements.

use super::edits::{ApplyResult, Block, FailedBlock, apply, parse};
use crate::model::{EndReason, Message, Reply};
use crate::prompt::{FailedEdit, Prompts};
use crate::types::EditCounts;

/// A revision by edits in progress.
#[derive(Debug, Clone)]
pub(super) struct Edits {
    /// The conversation so far, without the pending reply.
    messages: Vec<Message>,
    /// The result of the first attempt and its applied blocks, or `None` during the first attempt.
    before: Option<(ApplyResult, Vec<Block>)>,
}

/// The outcome of a reply with edits.
pub(super) enum EditOutcome {
    /// All edits applied.
    Done(String, EditCounts),
    /// Some edits did not apply and are requested again.
    Again(Edits),
    /// The reply contains no edit.
    None,
    /// The edits failed, for this reason.
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

    /// Returns whether this is the second attempt.
    pub(super) fn is_again(&self) -> bool {
        self.before.is_some()
    }

    /// Applies a reply to the draft or, in the second attempt, to the result of the first.
    pub(super) fn answer(self, draft: &str, reply: &Reply) -> EditOutcome {
        let mut blocks = parse(&reply.text);
        if reply.end != Some(EndReason::Stop) {
            // The last block of a truncated reply may be incomplete.
            for block in blocks.iter_mut().filter(|block| !block.closed) {
                block.readings.clear();
            }
        }
        let Some((before, made)) = self.before else {
            return if blocks.is_empty() {
                EditOutcome::None
            } else {
                Self::first(self.messages, &reply.text, draft, blocks)
            };
        };
        // Some models repeat edits that were already applied.
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
            EditOutcome::Failed(describe(counts.failed), counts)
        } else {
            finished(after.text, draft, counts)
        }
    }

    fn first(
        messages: Vec<Message>,
        reply: &str,
        draft: &str,
        mut blocks: Vec<Block>,
    ) -> EditOutcome {
        let applied = apply(draft, &blocks);
        let counts = applied.counts;
        if applied.failed.is_empty() {
            return finished(applied.text, draft, counts);
        }
        let failed: Vec<FailedEdit<'_>> = applied.failed.iter().map(show).collect();
        let messages = Prompts::edit_again(messages, reply, &failed, counts.applied() > 0);
        blocks.retain(|block| !applied.failed.iter().any(|failed| failed.block == *block));
        EditOutcome::Again(Self {
            messages,
            before: Some((applied, blocks)),
        })
    }
}

fn finished(text: String, draft: &str, counts: EditCounts) -> EditOutcome {
    if text == draft {
        EditOutcome::Failed("its edits change nothing".to_owned(), counts)
    } else {
        EditOutcome::Done(text, counts)
    }
}

fn show(failed: &FailedBlock) -> FailedEdit<'_> {
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
