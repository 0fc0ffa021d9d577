//! The call that a run makes next, without making it: a dry run shows it, and prefetch begins it early.

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::driver::Loop;
use super::replay::RunJournal;
use crate::model::{ChatModel, ChatRequest, ChatStream, Middleware};
use crate::types::{Event, ModelId, Phase, Stamped, Task};

/// The next call of a run.
pub struct NextCall {
    /// The step it belongs to, which is not in the journal yet.
    pub(super) phase: Phase,
    /// The version that the step works on.
    pub(super) iteration: u32,
    /// The model that is called.
    pub(super) model: ModelId,
    /// The request.
    pub request: ChatRequest,
}

impl Loop {
    /// The next call of a run over this journal; `None` if there is none, or if the run has to wait for something
    /// else first. No call is made, and no events are reported.
    pub fn next_call(&self, task: &Task, journal: RunJournal) -> Option<NextCall> {
        let heard = Arc::new(Mutex::new(None));
        let plan = self.behind(|model| {
            Arc::new(Listener {
                model,
                heard: Arc::clone(&heard),
            })
        });
        let mut step = None;
        // Receives the new events, not those of the journal.
        let mut observer = |stamped: &Stamped| {
            if let Event::Phase { phase, iteration } = stamped.event {
                step = Some((phase, iteration));
            }
        };
        let cancel = CancellationToken::new();
        let run = plan.run_over(task, journal, &mut observer, None, &cancel);
        // Recorded results are ready at once, and the first call never gets an answer.
        let _ = tokio::task::unconstrained(run).now_or_never();
        let (model, request) = heard.lock().take()?;
        let (phase, iteration) = step?;
        Some(NextCall {
            phase,
            iteration,
            model,
            request,
        })
    }
}

/// A model that takes a request and never answers.
struct Listener {
    model: Arc<dyn ChatModel>,
    /// The first model that was called, and its request.
    heard: Arc<Mutex<Option<(ModelId, ChatRequest)>>>,
}

impl Middleware for Listener {
    fn inner(&self) -> &dyn ChatModel {
        &*self.model
    }

    fn call(&self, request: ChatRequest) -> ChatStream<'_> {
        let mut heard = self.heard.lock();
        heard.get_or_insert_with(|| (self.id().clone(), request));
        stream::pending().boxed()
    }
}
