use std::time::{Duration, Instant};

use super::chat::{ChatEvent, ChatModel, ChatRequest};
use super::error::ModelError;
use super::reply::{Reply, complete_until};
use crate::types::{ModelId, TokenUsage};

/// What an observer of calls is told.
#[derive(Debug)]
pub enum CallEvent<'a> {
    /// A piece of an answer, a retry, a notice.
    Chat(&'a ChatEvent),
    /// A call is over, well or not.
    End(CallReport<'a>),
}

/// What a call took.
#[derive(Debug)]
pub struct CallReport<'a> {
    /// Who was asked.
    pub model: &'a ModelId,
    /// Tokens, as far as the server told.
    pub usage: TokenUsage,
    /// Waits included.
    pub duration: Duration,
    /// Requests that were made, retries included.
    pub attempts: u32,
    /// Characters sent and received, for an estimate where the server does not count tokens.
    pub characters: usize,
    /// Why it failed, if it did.
    pub error: Option<&'a ModelError>,
}

/// Sees every event of every call, as it happens.
pub type CallObserver<'a> = dyn Fn(CallEvent<'_>) + Send + Sync + 'a;

/// Asks a model, tells the observer, and gives the whole answer.
///
/// # Errors
/// If the call fails for good.
pub async fn call(
    model: &dyn ChatModel,
    request: ChatRequest,
    observer: &CallObserver<'_>,
) -> Result<Reply, ModelError> {
    call_until(model, request, observer, |_| false).await
}

/// As [`call`], but the answer is ended early once `stop`, which is shown it after every piece, says so; then its end
/// is [`EndReason::Unwanted`](super::EndReason::Unwanted). An answer that is begun anew after a failure is shown
/// from its beginning.
///
/// # Errors
/// If the call fails for good.
pub async fn call_until(
    model: &dyn ChatModel,
    request: ChatRequest,
    observer: &CallObserver<'_>,
    stop: impl FnMut(&str) -> bool,
) -> Result<Reply, ModelError> {
    let begun = Instant::now();
    let sent: usize = request
        .messages
        .iter()
        .map(|message| message.content.len())
        .sum();
    let observe = |event: &ChatEvent| observer(CallEvent::Chat(event));
    let (reply, outcome) = complete_until(model, request, observe, stop).await;
    observer(CallEvent::End(CallReport {
        model: model.id(),
        usage: reply.usage,
        duration: begun.elapsed(),
        attempts: reply.attempts,
        characters: sent + reply.text.len() + reply.reasoning.len(),
        error: outcome.as_ref().err(),
    }));
    outcome.map(|()| reply)
}
