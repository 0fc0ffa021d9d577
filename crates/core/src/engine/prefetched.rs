//! A prefetched call: it begins while the user decides, before it is known whether it is needed.

use std::time::Instant;

use futures_util::{StreamExt as _, stream};

use crate::model::{
    CallEvent, CallObserver, CallReport, ChatEvent, ChatModel, ChatRequest, ChatStream, ErrorClass,
    ModelError, Reply,
};

/// A call in progress.
pub(super) struct PrefetchedCall<'a> {
    model: &'a dyn ChatModel,
    request: ChatRequest,
    /// The events so far.
    seen: Vec<Result<ChatEvent, ModelError>>,
    /// The events still to come.
    rest: ChatStream<'a>,
    begun: Instant,
}

impl<'a> PrefetchedCall<'a> {
    /// Starts the call.
    pub(super) fn begin(model: &'a dyn ChatModel, request: ChatRequest) -> Self {
        Self {
            model,
            seen: Vec::new(),
            rest: model.chat(request.clone()),
            request,
            begun: Instant::now(),
        }
    }

    /// Collects events until the future is dropped.
    pub(super) async fn gather(&mut self) -> std::convert::Infallible {
        while let Some(event) = self.rest.next().await {
            self.seen.push(event);
        }
        std::future::pending().await
    }

    /// Whether this is the same call.
    pub(super) fn is(&self, model: &dyn ChatModel, request: &ChatRequest) -> bool {
        self.model.id() == model.id() && self.request == *request
    }

    /// The events so far, and those still to come.
    pub(super) fn into_stream(self) -> ChatStream<'a> {
        stream::iter(self.seen).chain(self.rest).boxed()
    }

    /// Ends a call that is not needed, and reports its usage.
    pub(super) fn end(self, observer: &dyn CallObserver) {
        let mut reply = Reply::begun();
        let pieces = self.seen.len();
        for event in self.seen.into_iter().flatten() {
            reply.take(event);
        }
        reply.estimate(self.request.characters(), pieces);
        let unwanted = ModelError::new(ErrorClass::CutOff, "it was prefetched and not needed");
        observer.on_event(CallEvent::End(CallReport {
            model: self.model.id(),
            address: self.model.address(),
            request: &self.request,
            reply: &reply,
            replayed: false,
            duration: self.begun.elapsed(),
            error: Some(&unwanted),
        }));
    }
}
