use std::time::{Duration, Instant};

use super::chat::{ChatEvent, ChatModel, ChatRequest, ChatStream, EndReason};
use super::error::ModelError;
use super::reply::{Reply, complete_until};
use crate::types::ModelId;

/// An event of a call.
#[derive(Debug)]
pub enum CallEvent<'a> {
    /// A piece of a reply, a retry, or a notice.
    Chat(&'a ChatEvent),
    /// A call ended, with or without success.
    End(CallReport<'a>),
}

/// The report of one call.
#[derive(Debug)]
pub struct CallReport<'a> {
    /// The model.
    pub model: &'a ModelId,
    /// The server's address without credentials; `None` for a model in this process.
    pub address: Option<String>,
    /// The request.
    pub request: &'a ChatRequest,
    /// The reply with its usage; partial if the call failed.
    pub reply: &'a Reply,
    /// Whether the reply was recorded by an earlier run instead of requested.
    pub replayed: bool,
    /// The duration, including waits.
    pub duration: Duration,
    /// The error, if the call failed.
    pub error: Option<&'a ModelError>,
}

impl CallReport<'_> {
    /// The number of characters sent and received, to estimate token counts that the server does not report.
    pub fn characters(&self) -> usize {
        self.request.characters() + self.reply.text.len() + self.reply.reasoning.len()
    }
}

/// Receives the events of calls, and knows the replies that were recorded before a run was resumed.
///
/// A closure is an observer without recorded replies; `()` ignores every event.
pub trait CallObserver: Send + Sync {
    /// Receives an event, as it happens.
    fn on_event(&self, event: CallEvent<'_>);

    /// Takes the next recorded reply of this model to this request, if there is one; then the model is not asked.
    fn take_recorded(&self, _model: &ModelId, _request: &ChatRequest) -> Option<Reply> {
        None
    }

    /// Whether there is a recorded reply of this model to this request.
    fn is_recorded(&self, _model: &ModelId, _request: &ChatRequest) -> bool {
        false
    }
}

impl<F: Fn(CallEvent<'_>) + Send + Sync> CallObserver for F {
    fn on_event(&self, event: CallEvent<'_>) {
        self(event);
    }
}

impl CallObserver for () {
    fn on_event(&self, _event: CallEvent<'_>) {}
}

/// Calls a model, reports the events to the observer, and returns the whole reply.
///
/// # Errors
/// If the call fails after all retries.
pub async fn call(
    model: &dyn ChatModel,
    request: ChatRequest,
    observer: &dyn CallObserver,
) -> Result<Reply, ModelError> {
    call_until(model, request, observer, |_| false).await
}

/// As [`call`], but ends the reply early once `stop` returns true; then its end is
/// [`EndReason::Unwanted`](super::EndReason::Unwanted). `stop` sees the text so far after every piece, from the
/// beginning again after a retry. If the observer has a recorded reply, it is returned as it is.
///
/// # Errors
/// If the call fails after all retries.
pub async fn call_until(
    model: &dyn ChatModel,
    request: ChatRequest,
    observer: &dyn CallObserver,
    stop: impl FnMut(&str) -> bool,
) -> Result<Reply, ModelError> {
    call_with(model, request, |it| model.chat(it), observer, stop).await
}

/// As [`call_until`], with the stream that `chat` returns. It may be that of a call that has begun already.
///
/// # Errors
/// If the call fails for good.
pub async fn call_with<'m>(
    model: &'m dyn ChatModel,
    request: ChatRequest,
    chat: impl FnOnce(ChatRequest) -> ChatStream<'m>,
    observer: &dyn CallObserver,
    mut stop: impl FnMut(&str) -> bool,
) -> Result<Reply, ModelError> {
    let begun = Instant::now();
    let recorded = observer.take_recorded(model.id(), &request);
    let replayed = recorded.is_some();
    let (reply, outcome) = if let Some(reply) = recorded {
        if reply.end == Some(EndReason::Unwanted) {
            // `stop` records its reason when it is called, so it must be called for a recorded reply too.
            stop(&reply.text);
        }
        (reply, Ok(()))
    } else {
        let observe = |event: &ChatEvent| observer.on_event(CallEvent::Chat(event));
        let sent = request.characters();
        complete_until(chat(request.clone()), sent, observe, stop).await
    };
    observer.on_event(CallEvent::End(CallReport {
        model: model.id(),
        address: model.address(),
        request: &request,
        reply: &reply,
        replayed,
        duration: begun.elapsed(),
        error: outcome.as_ref().err(),
    }));
    outcome.map(|()| reply)
}
