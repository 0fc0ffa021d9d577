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
    let mut reply = Reply {
        attempts: 1,
        ..Reply::default()
    };
    let (mut watch, mut watch_reasoning) = (Watch::default(), Watch::default());
    let mut stream = model.chat(request);
    while let Some(event) = stream.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => return (reply, Err(error)),
        };
        observe(&event);
        match event {
            ChatEvent::Text(piece) => {
                reply.text.push_str(&piece);
                if watch.is_runaway(&reply.text) {
                    // Leaving here drops the stream, which ends the call.
                    reply.end = Some(EndReason::Repetition);
                    return (reply, Ok(()));
                }
                if stop(&reply.text) {
                    reply.end = Some(EndReason::Unwanted);
                    return (reply, Ok(()));
                }
            }
            ChatEvent::Reasoning(piece) => {
                reply.reasoning.push_str(&piece);
                if watch_reasoning.is_runaway(&reply.reasoning) {
                    reply.end = Some(EndReason::Repetition);
                    return (reply, Ok(()));
                }
            }
            ChatEvent::Logprobs(tokens) => reply.logprobs.extend(tokens),
            ChatEvent::Usage(usage) => reply.usage = usage,
            ChatEvent::Retry { .. } => {
                (watch, watch_reasoning) = Default::default();
                reply = Reply {
                    attempts: reply.attempts + 1,
                    ..Reply::default()
                };
            }
            ChatEvent::Notice(_) => {}
            ChatEvent::End(end) => {
                reply.end = Some(end);
                return (reply, Ok(()));
            }
        }
    }
    let error = ModelError::new(
        super::ErrorClass::CutOff,
        "the stream ended without a terminal event",
    );
    (reply, Err(error))
}
