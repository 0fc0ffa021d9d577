//! The call that a run makes next, without making it: a dry run shows it, and prefetch begins it early.

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::driver::Loop;
use super::replay::RunJournal;
use crate::model::{ChatModel, ChatRequest, ChatStream, ModelError, ModelInfo};
use crate::types::{Event, ModelId, Phase, Stamped, Task};

/// A call that a run makes next.
pub struct NextCall {
    /// The step that it belongs to, which is not in the journal yet.
    pub(super) phase: Phase,
    /// The version that the step is about.
    pub(super) iteration: u32,
    /// Who is asked.
    pub(super) model: ModelId,
    /// What.
    pub request: ChatRequest,
}

impl Loop {
    /// The call that a run over this journal makes next; `None` if it makes none, or has to wait for something else
    /// before. The run ends there, and nobody hears of it.
    pub fn next_call(&self, task: &Task, journal: RunJournal) -> Option<NextCall> {
        let heard = Arc::new(Mutex::new(None));
        let plan = self.behind(|model| {
            Arc::new(Listener {
                model,
                heard: Arc::clone(&heard),
            })
        });
        let mut step = None;
        // Is told what is new, and not what is in the journal.
        let mut observer = |stamped: &Stamped| {
            if let Event::Phase { phase, iteration } = stamped.event {
                step = Some((phase, iteration));
            }
        };
        let cancel = CancellationToken::new();
        let run = plan.run_over(task, journal, &mut observer, None, &cancel);
        // What is recorded is there at once, and a call that is heard is never answered.
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

/// A model that listens and says nothing.
struct Listener {
    model: Arc<dyn ChatModel>,
    /// Who was asked first, and what.
    heard: Arc<Mutex<Option<(ModelId, ChatRequest)>>>,
}

#[async_trait::async_trait]
impl ChatModel for Listener {
    fn id(&self) -> &ModelId {
        self.model.id()
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        let mut heard = self.heard.lock();
        heard.get_or_insert_with(|| (self.id().clone(), request));
        stream::pending().boxed()
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        self.model.info().await
    }
}
