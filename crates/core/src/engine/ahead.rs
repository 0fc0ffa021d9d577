//! A call that is begun before it is known whether it is wanted: while somebody decides, the model is at work on what
//! they will most likely want.

use std::time::Instant;

use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;

use crate::model::{
    CallEvent, CallObserver, CallReport, ChatEvent, ChatModel, ChatRequest, ChatStream, ErrorClass,
    ModelError, ModelInfo, Reply,
};
use crate::types::ModelId;

/// A call under way.
pub(super) struct Ahead<'a> {
    model: &'a dyn ChatModel,
    request: ChatRequest,
    /// What has come of it.
    seen: Vec<Result<ChatEvent, ModelError>>,
    /// What is still to come.
    rest: ChatStream<'a>,
    begun: Instant,
}

impl<'a> Ahead<'a> {
    /// Begins a call.
    pub(super) fn begin(model: &'a dyn ChatModel, request: ChatRequest) -> Self {
        Self {
            model,
            seen: Vec::new(),
            rest: model.chat(request.clone()),
            request,
            begun: Instant::now(),
        }
    }

    /// Takes in what comes, for as long as it is waited for.
    pub(super) async fn gather(&mut self) -> std::convert::Infallible {
        while let Some(event) = self.rest.next().await {
            self.seen.push(event);
        }
        std::future::pending().await
    }

    /// Whether it is this call.
    pub(super) fn is(&self, model: &dyn ChatModel, request: &ChatRequest) -> bool {
        self.model.id() == model.id() && self.request == *request
    }

    /// The model, to give what has come and what is still to come as its next answer.
    pub(super) fn into_model(self) -> Continued<'a> {
        let answer = stream::iter(self.seen).chain(self.rest).boxed();
        Continued {
            model: self.model,
            answer: Mutex::new(Some(answer)),
        }
    }

    /// Ends a call that is not wanted, and tells what it has used.
    pub(super) fn end(self, observer: &CallObserver<'_>) {
        let mut reply = Reply::begun();
        let pieces = self.seen.len();
        for event in self.seen.into_iter().flatten() {
            reply.take(event);
        }
        reply.estimate(self.request.characters(), pieces);
        let unwanted = ModelError::new(ErrorClass::CutOff, "it was begun ahead and was not wanted");
        observer(CallEvent::End(CallReport {
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

/// A model whose next answer has begun already.
pub(super) struct Continued<'a> {
    model: &'a dyn ChatModel,
    answer: Mutex<Option<ChatStream<'a>>>,
}

#[async_trait::async_trait]
impl ChatModel for Continued<'_> {
    fn id(&self) -> &ModelId {
        self.model.id()
    }

    fn address(&self) -> Option<String> {
        self.model.address()
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        let answer = self.answer.lock().take();
        answer.unwrap_or_else(|| self.model.chat(request))
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        self.model.info().await
    }
}
