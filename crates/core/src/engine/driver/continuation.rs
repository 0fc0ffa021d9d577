//! Truncated replies: one more call continues the reply; if it is truncated again, the reply is cut back to its last
//! complete sentence.

use std::sync::atomic::Ordering;

use super::{Run, Work};
use crate::engine::gate;
use crate::model::{ChatRequest, EndReason, Reply, call_until};
use crate::prompt::Prompts;
use crate::types::Event;

/// How much of a text's end is compared with the continuation, in bytes.
const MOST_OVERLAP: usize = 400;
/// A shorter overlap is coincidence, in bytes.
const LEAST_OVERLAP: usize = 12;
/// The smallest share of a reply that may remain after it is cut back, in percent.
const LEAST_KEPT: usize = 60;
/// A continuation that starts with this many bytes of the text's beginning repeats the text from the start.
const BEGINNING: usize = 60;

impl Run<'_, '_> {
    /// The reply with its continuation; unchanged if the continuation is truncated, too, or not a valid text.
    /// After a truncated continuation, no reply of this run is continued.
    pub(super) async fn continued(&self, work: &Work, request: ChatRequest, reply: Reply) -> Reply {
        if reply.end != Some(EndReason::Length)
            || reply.text.trim().is_empty()
            // A continued loop is useless.
            || gate::without_loop(&reply.text).len() < reply.text.len()
            || self.endless.load(Ordering::Relaxed)
            || !self.within_limits()
        {
            return reply;
        }
        let (head, gap) = whole_words(&reply.text);
        let request = ChatRequest {
            messages: Prompts::go_on(request.messages, head),
            ..request
        };
        let observer = self.log.calls_of(work.phase, work.iteration, false);
        let writer = self.plan.who_writes(work.stronger);
        let most = self.early.longest(self.task, work.base.as_deref());
        let stop = |rest: &str| head.len() + rest.len() > most;
        let rest = call_until(writer, request, &observer, stop).await;
        // Candidates are written concurrently: none may depend on the result of another.
        if work.candidate.is_none()
            && rest
                .as_ref()
                .is_ok_and(|it| it.end != Some(EndReason::Stop))
        {
            self.endless.store(true, Ordering::Relaxed);
        }
        // A truncated continuation is still more text.
        let is_text = |rest: &Reply| {
            let cut = rest.end == Some(EndReason::Length) && !rest.text.trim().is_empty();
            (cut || gate::check_reply(rest).is_ok()) && !gate::is_refusal(&rest.text)
        };
        match rest {
            Ok(rest) if is_text(&rest) => Reply {
                text: join(head, gap, &rest.text),
                end: rest.end,
                ..reply
            },
            // The reply stands without a continuation.
            _ => reply,
        }
    }
}

impl Run<'_, '_> {
    /// The reply up to its last complete sentence if it was truncated; unchanged if little would be left, or if it
    /// is code or data, which would be broken.
    pub(super) fn cut_back(&self, work: &Work, reply: Reply) -> Reply {
        let loops = gate::without_loop(&reply.text).len() < reply.text.len();
        if reply.end != Some(EndReason::Length) || loops {
            return reply;
        }
        let Some(kept) = whole_sentences(&reply.text) else {
            return reply;
        };
        let removed = reply.text[kept.len()..].trim();
        if !removed.is_empty() {
            self.log.emit(Event::Cleaned {
                iteration: work.iteration,
                what: "a sentence that the token limit cut off".to_owned(),
                removed: removed.to_owned(),
            });
        }
        Reply {
            text: kept.to_owned(),
            end: Some(EndReason::Stop),
            ..reply
        }
    }
}

/// The text up to the end of its last complete sentence or line; `None` if that is less than [`LEAST_KEPT`], or if
/// the text is code or data.
fn whole_sentences(text: &str) -> Option<&str> {
    if text.trim_start().starts_with(['{', '[', '<']) || text.contains("```") {
        return None;
    }
    let closing = ['"', '\'', '”', '’', ')', '»', '*', '_'];
    let ends_sentence = |part: &str| {
        let part = part.trim_end_matches(closing);
        part.ends_with(['!', '?', '…', '。', '！', '？'])
            // The number of a list item does not end a sentence.
            || part.strip_suffix('.').is_some_and(|rest| !rest.ends_with(|c: char| c.is_ascii_digit()))
    };
    let sentence = text
        .char_indices()
        .filter(|(_, c)| c.is_whitespace())
        .map(|(at, _)| at)
        .chain([text.len()])
        .rev()
        .find(|&at| ends_sentence(&text[..at]))
        .unwrap_or_default();
    let line = text.rfind('\n').unwrap_or_default();
    let mut kept = text[..sentence.max(line)].trim_end();
    // A heading or an introduction without its content.
    while let Some((before, last)) = kept.rsplit_once('\n')
        && (last.trim_start().starts_with('#') || last.trim_end().ends_with(':'))
    {
        kept = before.trim_end();
    }
    (!kept.is_empty() && kept.len() * 100 >= text.len() * LEAST_KEPT).then_some(kept)
}

/// The text up to its last complete word and the space after it.
fn whole_words(text: &str) -> (&str, &str) {
    let end = text.rfind(char::is_whitespace).map_or(text.len(), |at| {
        at + text[at..].chars().next().map_or(0, char::len_utf8)
    });
    let head = text[..end].trim_end();
    if head.is_empty() {
        (text, "")
    } else {
        (head, &text[head.len()..end])
    }
}

/// Joins both parts of a text, without what the second repeats of the first.
fn join(head: &str, gap: &str, rest: &str) -> String {
    let begins_anew = head
        .get(..BEGINNING)
        .is_some_and(|beginning| rest.trim_start().starts_with(beginning));
    if begins_anew {
        return rest.trim_start().to_owned();
    }
    let trimmed = rest.trim_start();
    let overlap = (LEAST_OVERLAP..=MOST_OVERLAP.min(trimmed.len()))
        .rev()
        .find(|&length| {
            let beginning = trimmed.get(..length);
            beginning.is_some_and(|beginning| head.ends_with(beginning))
        });
    match overlap {
        Some(length) => format!("{head}{}", &trimmed[length..]),
        None if rest.starts_with('\n') => format!("{head}{rest}"),
        None => format!("{head}{gap}{trimmed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_text_are_joined_at_a_word() {
        assert_eq!(whole_words("The storm ca"), ("The storm", " "));
        assert_eq!(whole_words("The storm.\n\n"), ("The storm.", "\n\n"));
        assert_eq!(whole_words("Storm"), ("Storm", ""));
        assert_eq!(join("The storm", " ", "came."), "The storm came.");
        assert_eq!(
            join("The storm.", "\n\n", " It came."),
            "The storm.\n\nIt came."
        );
        assert_eq!(join("- one", " ", "\n- two"), "- one\n- two");
    }

    #[test]
    fn a_cut_text_ends_with_its_last_whole_sentence_or_line() {
        for (text, kept) in [
            (
                "The storm came at night. It took the ro",
                Some("The storm came at night."),
            ),
            ("He said \"Go!\" and th", Some("He said \"Go!\"")),
            (
                "Leaves fall on the pond,\nring after ring,\nthe fro",
                Some("Leaves fall on the pond,\nring after ring,"),
            ),
            ("The storm came.", Some("The storm came.")),
            // Too little would be left.
            ("Yes. The storm that came at night took the ro", None),
            (
                "One thing. Two things. Three things.\n\n## Next\n\nIn",
                Some("One thing. Two things. Three things."),
            ),
            (
                "It has three parts, as said. They are here.\n1. The ro",
                Some("It has three parts, as said. They are here."),
            ),
            ("{\"a\": \"One. Two. Thr", None),
            ("```\na. b.\nc", None),
            ("no sentence at all", None),
        ] {
            assert_eq!(whole_sentences(text), kept, "{text}");
        }
    }

    #[test]
    fn what_the_rest_repeats_is_there_once() {
        let head = "The storm came at night and took the roof.";
        let rest = "at night and took the roof. It rained.";
        assert_eq!(join(head, " ", rest), format!("{head} It rained."));
        let long = format!("{head} It rained for days, and the river rose.");
        let anew = format!("{long} Then it was calm.");
        assert_eq!(join(&long, " ", &anew), anew);
    }
}
