use std::time::{Duration, Instant};

use super::chat::{ChatEvent, ChatModel, ChatRequest, EndReason};
use super::error::ModelError;
use super::reply::{Reply, complete_until};
use crate::types::ModelId;

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
    /// Where, without credentials; `None` for a model in this process.
    pub address: Option<String>,
    /// What was asked.
    pub request: &'a ChatRequest,
    /// What was answered, and what it took; of a failed call as much as there is.
    pub reply: &'a Reply,
    /// Whether nobody was asked, since the reply was recorded in a [`Journal`](super::Journal).
    pub replayed: bool,
    /// Waits included.
    pub duration: Duration,
    /// Why it failed, if it did.
    pub error: Option<&'a ModelError>,
}

impl CallReport<'_> {
    /// Characters sent and received, for an estimate where the server does not count tokens.
    pub fn characters(&self) -> usize {
        self.request.characters() + self.reply.text.len() + self.reply.reasoning.len()
    }
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
/// from its beginning. A reply that the model's [`Journal`](super::Journal) has is taken as it is.
///
/// # Errors
/// If the call fails for good.
pub async fn call_until(
    model: &dyn ChatModel,
    request: ChatRequest,
    observer: &CallObserver<'_>,
    mut stop: impl FnMut(&str) -> bool,
) -> Result<Reply, ModelError> {
    let begun = Instant::now();
    let recorded = model
        .journal()
        .and_then(|journal| journal.take(model.id(), &request));
    let replayed = recorded.is_some();
    let (reply, outcome) = if let Some(reply) = recorded {
        if reply.end == Some(EndReason::Unwanted) {
            // Who did not want it does not know why until it is shown.
            stop(&reply.text);
        }
        (reply, Ok(()))
    } else {
        let observe = |event: &ChatEvent| observer(CallEvent::Chat(event));
        complete_until(model, request.clone(), observe, stop).await
    };
    observer(CallEvent::End(CallReport {
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
