//! Collects the frames of one response and turns them into events.

use std::collections::VecDeque;

use super::framing::{Framing, MAX_ANSWER};
use crate::think::ThinkSplitter;
use crate::types::TokenUsage;
use crate::{ChatEvent, ChatRequest, EndReason, ErrorClass, ModelError, Purpose, TokenLogprob};

/// The limit on consecutive white space in a JSON reply. Models under a grammar can write white space forever,
/// because JSON allows it almost everywhere.
const MAX_BLANKS: usize = 200;

/// Reads the frames of one protocol. Holds only its position in the stream.
pub(crate) trait Wire: Send {
    fn frame(&mut self, text: &str, answer: &mut PartialReply) -> Result<(), ModelError>;

    /// Handles a stream that ended without its final event; may end the reply anyway.
    fn end_unfinished(&mut self, _answer: &mut PartialReply) {}
}

/// Decodes the bytes of one response into events.
#[derive(Debug)]
pub(crate) struct Decoder<W> {
    framing: Framing,
    wire: W,
    answer: PartialReply,
    received: usize,
}

impl<W: Wire> Decoder<W> {
    /// A decoder for the response to a request.
    pub(crate) fn new(framing: Framing, wire: W, request: &ChatRequest) -> Self {
        Self {
            framing,
            wire,
            answer: PartialReply::new(request),
            received: 0,
        }
    }

    /// Adds a chunk of the body.
    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Result<(), ModelError> {
        self.received += chunk.len();
        if self.received > MAX_ANSWER {
            return Err(ModelError::new(
                ErrorClass::Protocol,
                format!("the server sent more than {} MB", MAX_ANSWER / 1024 / 1024),
            ));
        }
        let Self {
            framing,
            wire,
            answer,
            ..
        } = self;
        let fed = framing.feed(chunk, &mut |frame| read(wire, frame, answer));
        // Everything after the end is ignored.
        if answer.ended { Ok(()) } else { fed }
    }

    /// Ends the body. It is an error if the final event is missing, whatever came before.
    pub(crate) fn finish(&mut self) -> Result<(), ModelError> {
        let Self {
            framing,
            wire,
            answer,
            ..
        } = self;
        let finished = framing.finish(&mut |frame| read(wire, frame, answer));
        if answer.ended {
            return Ok(());
        }
        finished?;
        if answer.reason.is_none() {
            wire.end_unfinished(answer);
        }
        if answer.reason.is_some() {
            answer.end();
            return Ok(());
        }
        Err(ModelError::new(
            ErrorClass::CutOff,
            if self.received == 0 {
                "the server sent an empty response"
            } else {
                "the reply ended without a final event"
            },
        ))
    }

    /// The pending events.
    pub(crate) fn events(&mut self) -> &mut VecDeque<ChatEvent> {
        &mut self.answer.events
    }

    /// The number of pieces (text, reasoning and so on) so far.
    pub(crate) fn pieces(&self) -> u64 {
        self.answer.pieces
    }

    /// Whether the final event was emitted.
    pub(crate) fn has_ended(&self) -> bool {
        self.answer.ended
    }

    /// Whether the reply is complete and only token counts may follow.
    pub(crate) fn is_complete(&self) -> bool {
        self.answer.reason.is_some()
    }

    /// Whether the reply has reasoning but no answer.
    pub(crate) fn only_reasoned(&self) -> bool {
        self.answer.reasoned && !self.answer.wrote
    }

    /// Ends a complete reply without waiting for token counts.
    pub(crate) fn end(&mut self) {
        self.answer.end();
    }
}

/// Reads one frame, unless the reply has already ended.
fn read<W: Wire>(wire: &mut W, frame: &str, answer: &mut PartialReply) -> Result<(), ModelError> {
    if answer.ended {
        return Ok(());
    }
    wire.frame(frame, answer)
}

/// One reply while it is received.
#[derive(Debug)]
pub(crate) struct PartialReply {
    events: VecDeque<ChatEvent>,
    splitter: ThinkSplitter,
    /// Consecutive white space at the end of a JSON reply, in characters.
    blanks: Option<usize>,
    usage: TokenUsage,
    /// Log-probabilities of tokens that may still turn out to be reasoning, each with the byte offset of its token.
    logprobs: Vec<(usize, TokenLogprob)>,
    logprob_bytes: usize,
    refusal: String,
    reason: Option<EndReason>,
    ended: bool,
    pieces: u64,
    reasoned: bool,
    /// Whether the answer contains anything but white space.
    wrote: bool,
}

impl PartialReply {
    fn new(request: &ChatRequest) -> Self {
        let constrained = request.schema.is_some();
        Self {
            events: VecDeque::new(),
            // Verdicts are not displayed while they are written, so they can be held back.
            splitter: if constrained || request.purpose == Purpose::Judge {
                ThinkSplitter::holding_back()
            } else {
                ThinkSplitter::new()
            },
            blanks: constrained.then_some(0),
            usage: TokenUsage::default(),
            logprobs: Vec::new(),
            logprob_bytes: 0,
            refusal: String::new(),
            reason: None,
            ended: false,
            pieces: 0,
            reasoned: false,
            wrote: false,
        }
    }

    /// Call this if the whole text arrives at once, so that nothing of it was displayed yet.
    pub(crate) fn not_streamed(&mut self) {
        if self.pieces == 0 {
            self.splitter = ThinkSplitter::holding_back();
        }
    }

    /// Adds text, which may start with a block of reasoning.
    pub(crate) fn text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.pieces += 1;
        if !self.ended {
            self.split(|splitter, reasoning, answer| splitter.feed(piece, reasoning, answer));
        }
    }

    /// Adds reasoning from a separate field.
    pub(crate) fn reasoning(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.pieces += 1;
        if !self.ended {
            self.push_reasoning(piece);
        }
    }

    /// Adds log-probabilities of the tokens of a piece of text, each with its length in bytes. Call [`Self::text`]
    /// first.
    pub(crate) fn logprobs(&mut self, tokens: impl Iterator<Item = (usize, TokenLogprob)>) {
        for (length, token) in tokens {
            self.logprobs.push((self.logprob_bytes, token));
            self.logprob_bytes += length;
        }
        self.emit_logprobs();
    }

    /// Updates token counts; missing counts keep their earlier value.
    pub(crate) fn usage(&mut self, usage: TokenUsage) {
        let merged = TokenUsage {
            prompt: usage.prompt.or(self.usage.prompt),
            completion: usage.completion.or(self.usage.completion),
            total: usage.total.or(self.usage.total),
            cached: usage.cached.or(self.usage.cached),
            estimated: None,
        };
        if merged != self.usage {
            self.usage = merged;
            self.emit(ChatEvent::Usage(merged));
        }
    }

    /// Adds to the text of a refusal.
    pub(crate) fn refusal(&mut self, piece: &str) {
        self.pieces += 1;
        self.refusal.push_str(piece);
    }

    /// Adds a message for the user.
    pub(crate) fn notice(&mut self, text: String) {
        self.emit(ChatEvent::Notice(text));
    }

    /// Emits an event after the pending text, unless the reply ended with that text.
    fn emit(&mut self, event: ChatEvent) {
        if !self.ended {
            self.events.push_back(event);
        }
    }

    /// Sets why the model stopped. Token counts may still follow.
    pub(crate) fn stop(&mut self, reason: EndReason) {
        self.reason = Some(reason);
    }

    /// Ends the reply if [`Self::stop`] was called; returns whether it ended.
    pub(crate) fn end(&mut self) -> bool {
        if self.ended || self.reason.is_none() {
            return self.ended;
        }
        self.split(ThinkSplitter::finish);
        self.emit_logprobs();
        if self.ended {
            return true;
        }
        let reason = match self.reason.take() {
            // Some servers report `stop` after a refusal.
            Some(EndReason::Stop) if !self.refusal.is_empty() => {
                EndReason::Refused(std::mem::take(&mut self.refusal))
            }
            Some(EndReason::Refused(why)) if !self.refusal.is_empty() => {
                EndReason::Refused(format!("{}: {}", why, self.refusal))
            }
            Some(reason) => reason,
            None => return false,
        };
        self.ended = true;
        self.events.push_back(ChatEvent::End(reason));
        true
    }

    /// Emits the output of a splitter step.
    fn split(&mut self, step: impl FnOnce(&mut ThinkSplitter, &mut String, &mut String)) {
        let (mut reasoning, mut answer) = (String::new(), String::new());
        step(&mut self.splitter, &mut reasoning, &mut answer);
        if !reasoning.is_empty() {
            self.push_reasoning(&reasoning);
        }
        if !answer.is_empty() {
            self.push_text(&answer);
        }
    }

    /// Merges consecutive text into one event: observers do as much work for a word as for a page.
    fn push_text(&mut self, text: &str) {
        let runaway = self.runaway(text);
        let text = &text[..runaway.unwrap_or(text.len())];
        self.wrote |= !text.trim().is_empty();
        match self.events.back_mut() {
            Some(ChatEvent::Text(before)) => before.push_str(text),
            _ => self.events.push_back(ChatEvent::Text(text.to_owned())),
        }
        if runaway.is_some() {
            self.reason = Some(EndReason::Length);
            self.notice(format!(
                "stopped the reply: the model wrote more than {MAX_BLANKS} white space characters in a row"
            ));
            self.ended = true;
            self.events.push_back(ChatEvent::End(EndReason::Length));
        }
    }

    /// Merges like [`Self::push_text`].
    fn push_reasoning(&mut self, text: &str) {
        self.reasoned = true;
        match self.events.back_mut() {
            Some(ChatEvent::Reasoning(before)) => before.push_str(text),
            _ => self.events.push_back(ChatEvent::Reasoning(text.to_owned())),
        }
    }

    /// The byte at which a JSON reply exceeds the white space limit.
    fn runaway(&mut self, piece: &str) -> Option<usize> {
        let blanks = self.blanks.as_mut()?;
        for (at, c) in piece.char_indices() {
            *blanks = if c.is_whitespace() { *blanks + 1 } else { 0 };
            if *blanks > MAX_BLANKS {
                return Some(at + c.len_utf8());
            }
        }
        None
    }

    fn emit_logprobs(&mut self) {
        let Some(start) = self.splitter.answer_start() else {
            return;
        };
        if self.logprobs.is_empty() {
            return;
        }
        let tokens: Vec<TokenLogprob> = self
            .logprobs
            .drain(..)
            .filter(|(at, _)| *at >= start)
            .map(|(_, token)| token)
            .collect();
        if !tokens.is_empty() {
            self.pieces += 1;
            self.emit(ChatEvent::Logprobs(tokens));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// All events of a body that arrives in these chunks, and the result.
    pub(crate) fn decode<W: Wire>(
        mut decoder: Decoder<W>,
        chunks: &[&[u8]],
    ) -> (Vec<ChatEvent>, Result<(), ModelError>) {
        let mut result = Ok(());
        for chunk in chunks {
            result = decoder.feed(chunk);
            if result.is_err() || decoder.has_ended() {
                break;
            }
        }
        if result.is_ok() && !decoder.has_ended() {
            result = decoder.finish();
        }
        (decoder.events().drain(..).collect(), result)
    }

    /// Merges consecutive text and reasoning.
    pub(crate) fn joined(events: Vec<ChatEvent>) -> Vec<ChatEvent> {
        let mut answer = PartialReply::new(&ChatRequest::new(Purpose::Write, Vec::new()));
        for event in events {
            match event {
                ChatEvent::Text(text) => answer.push_text(&text),
                ChatEvent::Reasoning(text) => answer.push_reasoning(&text),
                other => answer.events.push_back(other),
            }
        }
        answer.events.into()
    }

    /// Checks that a body decodes to the same events for every split into two chunks, and byte by byte.
    pub(crate) fn check_all_cuts<W: Wire>(make: impl Fn() -> Decoder<W>, body: &[u8]) {
        let whole = decode(make(), &[body]);
        for cut in 0..=body.len() {
            let (head, tail) = body.split_at(cut);
            assert_eq!(decode(make(), &[head, tail]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(decode(make(), &bytes), whole, "byte by byte");
    }
}
