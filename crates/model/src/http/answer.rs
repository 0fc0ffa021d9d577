//! Gathers what the frames of one answer say and turns it into events.

use std::collections::VecDeque;

use super::framing::{Framing, MAX_ANSWER};
use crate::think::ThinkSplitter;
use crate::types::TokenUsage;
use crate::{ChatEvent, ChatRequest, EndReason, ErrorClass, ModelError, Purpose, TokenLogprob};

/// Blanks in a row after which an answer that has to be JSON is stopped: models under a grammar can
/// write blanks without end, since JSON allows them everywhere.
const MAX_BLANKS: usize = 200;

/// One protocol's reading of frames. Holds nothing but its place in the stream.
pub(crate) trait Wire: Send {
    /// Reads one frame.
    fn frame(&mut self, text: &str, answer: &mut Answer) -> Result<(), ModelError>;

    /// Looks at an answer that has come to its end without saying that it is complete, and may call it ended.
    fn unfinished(&mut self, _answer: &mut Answer) {}
}

/// From the bytes of one answer to its events.
#[derive(Debug)]
pub(crate) struct Decoder<W> {
    framing: Framing,
    wire: W,
    answer: Answer,
    received: usize,
}

impl<W: Wire> Decoder<W> {
    /// For the answer to a request.
    pub(crate) fn new(framing: Framing, wire: W, request: &ChatRequest) -> Self {
        Self {
            framing,
            wire,
            answer: Answer::new(request),
            received: 0,
        }
    }

    /// Takes a chunk of the body.
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
        // What comes behind the end says nothing.
        if answer.ended { Ok(()) } else { fed }
    }

    /// The body has ended. Without a terminal event that is a failure, whatever was said before.
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
            wire.unfinished(answer);
        }
        if answer.reason.is_some() {
            answer.end();
            return Ok(());
        }
        Err(ModelError::new(
            ErrorClass::CutOff,
            if self.received == 0 {
                "the server sent nothing"
            } else {
                "the answer ended without saying that it is complete"
            },
        ))
    }

    /// The events so far.
    pub(crate) fn events(&mut self) -> &mut VecDeque<ChatEvent> {
        &mut self.answer.events
    }

    /// Pieces of text, reasoning and so on so far.
    pub(crate) fn pieces(&self) -> u64 {
        self.answer.pieces
    }

    /// Whether the last event is out.
    pub(crate) fn has_ended(&self) -> bool {
        self.answer.ended
    }

    /// Whether the answer is complete, and only figures may still follow.
    pub(crate) fn is_complete(&self) -> bool {
        self.answer.reason.is_some()
    }

    /// Whether there is reasoning and no answer.
    pub(crate) fn only_reasoned(&self) -> bool {
        self.answer.reasoned && !self.answer.wrote
    }

    /// Ends a complete answer without waiting for what may follow.
    pub(crate) fn end(&mut self) {
        self.answer.end();
    }
}

/// Reads one frame, unless the answer has ended before it.
fn read<W: Wire>(wire: &mut W, frame: &str, answer: &mut Answer) -> Result<(), ModelError> {
    if answer.ended {
        return Ok(());
    }
    wire.frame(frame, answer)
}

/// One answer as it comes in.
#[derive(Debug)]
pub(crate) struct Answer {
    events: VecDeque<ChatEvent>,
    splitter: ThinkSplitter,
    /// Blanks in a row at the end of an answer that has to be JSON.
    blanks: Option<usize>,
    usage: TokenUsage,
    /// Log-probabilities of tokens of which it is not known yet whether they are reasoning, each with
    /// the byte at which it begins.
    logprobs: Vec<(usize, TokenLogprob)>,
    logprob_bytes: usize,
    refusal: String,
    reason: Option<EndReason>,
    ended: bool,
    pieces: u64,
    reasoned: bool,
    /// Whether there is text of an answer, other than blanks.
    wrote: bool,
}

impl Answer {
    fn new(request: &ChatRequest) -> Self {
        let constrained = request.schema.is_some();
        Self {
            events: VecDeque::new(),
            // A verdict is not shown while it is written, so it can be held back.
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

    /// The whole text comes at once, so nothing of it has been shown.
    pub(crate) fn is_whole(&mut self) {
        if self.pieces == 0 {
            self.splitter = ThinkSplitter::holding_back();
        }
    }

    /// More of the answer, with a block of reasoning before it if the model writes that.
    pub(crate) fn text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.pieces += 1;
        if !self.ended {
            self.split(|splitter, reasoning, answer| splitter.feed(piece, reasoning, answer));
        }
    }

    /// More of the reasoning, from a field of its own.
    pub(crate) fn reasoning(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.pieces += 1;
        if !self.ended {
            self.push_reasoning(piece);
        }
    }

    /// Log-probabilities of the tokens of a piece of text, each with its length in bytes. To be called
    /// after [`Self::text`].
    pub(crate) fn logprobs(&mut self, tokens: impl Iterator<Item = (usize, TokenLogprob)>) {
        for (length, token) in tokens {
            self.logprobs.push((self.logprob_bytes, token));
            self.logprob_bytes += length;
        }
        self.emit_logprobs();
    }

    /// Token counts; a figure that is not there leaves the earlier one.
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
            self.say(ChatEvent::Usage(merged));
        }
    }

    /// More of the words in which the model refuses.
    pub(crate) fn refusal(&mut self, piece: &str) {
        self.pieces += 1;
        self.refusal.push_str(piece);
    }

    /// Something that people should know.
    pub(crate) fn notice(&mut self, text: String) {
        self.say(ChatEvent::Notice(text));
    }

    /// Says this after the text that has come, unless the answer has ended with that.
    fn say(&mut self, event: ChatEvent) {
        if !self.ended {
            self.events.push_back(event);
        }
    }

    /// Why the model stopped. Token counts may still follow.
    pub(crate) fn stop(&mut self, reason: EndReason) {
        self.reason = Some(reason);
    }

    /// Nothing follows. Says whether the answer has ended: not before [`Self::stop`].
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
            // Some servers say `stop` after a refusal.
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

    /// Says what a step of the splitter has given out.
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

    /// What comes at once is one event: whoever sees it has as much to do for a word as for a page.
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
                "the model wrote more than {MAX_BLANKS} blanks in a row; its answer was stopped there"
            ));
            self.ended = true;
            self.events.push_back(ChatEvent::End(EndReason::Length));
        }
    }

    /// As with text.
    fn push_reasoning(&mut self, text: &str) {
        self.reasoned = true;
        match self.events.back_mut() {
            Some(ChatEvent::Reasoning(before)) => before.push_str(text),
            _ => self.events.push_back(ChatEvent::Reasoning(text.to_owned())),
        }
    }

    /// Where an answer that has to be JSON has become a desert.
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
            self.say(ChatEvent::Logprobs(tokens));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// All events of a body that comes in these chunks, and how it ended.
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

    /// The same events, with what comes at once in one.
    pub(crate) fn joined(events: Vec<ChatEvent>) -> Vec<ChatEvent> {
        let mut answer = Answer::new(&ChatRequest::new(Purpose::Write, Vec::new()));
        for event in events {
            match event {
                ChatEvent::Text(text) => answer.push_text(&text),
                ChatEvent::Reasoning(text) => answer.push_reasoning(&text),
                other => answer.events.push_back(other),
            }
        }
        answer.events.into()
    }

    /// Checks that a body means the same however it is cut in two, and byte by byte.
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
