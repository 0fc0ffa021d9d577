use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::chat::{ChatEvent, ChatModel, ChatRequest, ChatStream, EndReason, TokenLogprob};
use super::error::ModelError;
use super::runaway::RepetitionWatch;
use crate::types::TokenUsage;

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// The answer, without reasoning.
    pub text: String,
    /// The reasoning, if the server returned any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// Why the model stopped; `None` if the call failed.
    pub end: Option<EndReason>,
    /// The token usage, as far as reported.
    pub usage: TokenUsage,
    /// The log-probabilities of the answer's tokens, if requested and reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logprobs: Vec<TokenLogprob>,
    /// The number of requests, including retries; at least 1.
    pub attempts: u32,
}

impl Reply {
    /// A reply that has not received anything yet.
    pub fn begun() -> Self {
        Self {
            attempts: 1,
            ..Self::default()
        }
    }

    /// Adds an event.
    pub fn take(&mut self, event: ChatEvent) {
        match event {
            ChatEvent::Text(piece) => self.text.push_str(&piece),
            ChatEvent::Reasoning(piece) => self.reasoning.push_str(&piece),
            ChatEvent::Logprobs(tokens) => self.logprobs.extend(tokens),
            ChatEvent::Usage(usage) => self.usage = usage,
            ChatEvent::Retry { .. } => {
                *self = Self {
                    attempts: self.attempts + 1,
                    ..Self::default()
                };
            }
            ChatEvent::Notice(_) => {}
            ChatEvent::End(end) => {
                self.end = Some(end);
                // Some servers accept the request but return no alternatives, or 0.0 for every token.
                let says_nothing = |token: &TokenLogprob| {
                    token.top.is_empty() || token.top.iter().all(|&(_, logprob)| logprob == 0.0)
                };
                if self.logprobs.iter().all(says_nothing) {
                    self.logprobs.clear();
                }
            }
        }
    }

    /// Ends the reply early, after this many pieces; `sent` is the number of characters in the request.
    fn end_early(&mut self, end: EndReason, sent: usize, pieces: usize) {
        self.end = Some(end);
        self.estimate(sent, pieces);
    }

    /// Estimates the token counts that the server did not report.
    pub fn estimate(&mut self, sent: usize, pieces: usize) {
        let received = self.text.len() + self.reasoning.len();
        self.usage.estimate(sent, received, pieces);
    }
}

/// Calls a model and collects its reply; `observe` sees every event as it arrives.
///
/// Returns the reply even if the call fails, because a failed call has used tokens and attempts too. The second value
/// is the result of the call.
pub async fn complete(
    model: &dyn ChatModel,
    request: ChatRequest,
    observe: impl FnMut(&ChatEvent),
) -> (Reply, Result<(), ModelError>) {
    let sent = request.characters();
    complete_until(model.chat(request), sent, observe, |_| false).await
}

/// Like [`complete`], for the reply to a request of `sent` bytes. Stops the reply early once `stop` returns true; it is
/// called with the text so far after every piece.
pub(super) async fn complete_until(
    mut stream: ChatStream<'_>,
    sent: usize,
    mut observe: impl FnMut(&ChatEvent),
    mut stop: impl FnMut(&str) -> bool,
) -> (Reply, Result<(), ModelError>) {
    let mut reply = Reply::begun();
    let (mut watch, mut watch_reasoning) = (RepetitionWatch::default(), RepetitionWatch::default());
    let mut pieces = 0;
    while let Some(event) = stream.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => return (reply, Err(error)),
        };
        observe(&event);
        let wrote = matches!(event, ChatEvent::Text(_));
        let reasoned = matches!(event, ChatEvent::Reasoning(_));
        if matches!(event, ChatEvent::Retry { .. }) {
            (watch, watch_reasoning) = Default::default();
            pieces = 0;
        }
        pieces += usize::from(wrote || reasoned);
        reply.take(event);
        if wrote && watch.is_runaway(&reply.text)
            || reasoned && watch_reasoning.is_runaway(&reply.reasoning)
        {
            reply.end_early(EndReason::Repetition, sent, pieces);
        } else if wrote && stop(&reply.text) {
            reply.end_early(EndReason::Unwanted, sent, pieces);
        }
        if reply.end.is_some() {
            // Returning drops the stream, which cancels the call.
            return (reply, Ok(()));
        }
    }
    let error = ModelError::new(
        super::ErrorClass::CutOff,
        "the stream ended without a final event",
    );
    (reply, Err(error))
}
