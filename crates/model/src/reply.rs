use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::chat::{ChatEvent, ChatModel, ChatRequest, EndReason, TokenLogprob};
use super::error::ModelError;
use super::runaway::Watch;
use crate::types::TokenUsage;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// The answer, without reasoning.
    pub text: String,
    /// The reasoning, if the server showed any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// Why the model stopped; `None` if the call failed.
    pub end: Option<EndReason>,
    /// Tokens, as far as the server told.
    pub usage: TokenUsage,
    /// Log-probabilities of the answer's tokens, where asked for and given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logprobs: Vec<TokenLogprob>,
    /// Requests that were made, retries included; at least 1.
    pub attempts: u32,
}

impl Reply {
    /// One of which nothing has come yet.
    pub fn begun() -> Self {
        Self {
            attempts: 1,
            ..Self::default()
        }
    }

    /// Takes in what has come of it.
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
                // Some servers accept the request and return no alternatives, or 0.0 for every token.
                let says_nothing = |token: &TokenLogprob| {
                    token.top.is_empty() || token.top.iter().all(|&(_, logprob)| logprob == 0.0)
                };
                if self.logprobs.iter().all(says_nothing) {
                    self.logprobs.clear();
                }
            }
        }
    }

    /// Ends it before its model does, after so many pieces of the answer to so many characters.
    fn end_early(&mut self, end: EndReason, sent: usize, pieces: usize) {
        self.end = Some(end);
        self.estimate(sent, pieces);
    }

    /// Estimates what the server had no time to count.
    pub fn estimate(&mut self, sent: usize, pieces: usize) {
        let received = self.text.len() + self.reasoning.len();
        self.usage.estimate(sent, received, pieces);
    }
}

/// Asks a model and gathers its answer; `observe` sees every event as it comes.
///
/// The reply is returned in any case, since a failed call has used tokens and attempts, too; the
/// second part says how it ended.
pub async fn complete(
    model: &dyn ChatModel,
    request: ChatRequest,
    observe: impl FnMut(&ChatEvent),
) -> (Reply, Result<(), ModelError>) {
    complete_until(model, request, observe, |_| false).await
}

/// As [`complete`], but the answer is ended early once `stop`, which is shown it after every piece, says so.
pub(super) async fn complete_until(
    model: &dyn ChatModel,
    request: ChatRequest,
    mut observe: impl FnMut(&ChatEvent),
    mut stop: impl FnMut(&str) -> bool,
) -> (Reply, Result<(), ModelError>) {
    let mut reply = Reply::begun();
    let (mut watch, mut watch_reasoning) = (Watch::default(), Watch::default());
    let (sent, mut pieces) = (request.characters(), 0);
    let mut stream = model.chat(request);
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
            // Leaving here drops the stream, which ends the call.
            return (reply, Ok(()));
        }
    }
    let error = ModelError::new(
        super::ErrorClass::CutOff,
        "the stream ended without a terminal event",
    );
    (reply, Err(error))
}
