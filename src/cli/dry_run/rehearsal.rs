//! The loop itself, with a model that listens and says nothing: so the first call is what it will be, to the
//! letter.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::engine::{BuildError, Loop, LoopBuilder};
use crate::evaluate::{JudgeModel, OtherModel};
use crate::model::{
    ChatModel, ChatRequest, ChatStream, ErrorClass, Message, ModelError, ModelInfo, Sampling, Think,
};
use crate::types::{Criteria, Evaluator, ModelId, Stamped, Task};

/// The messages of the first call of a run that begins with one to the writer; `None` if it makes none. `build` adds
/// to the loop what the run has besides models.
pub(super) async fn first_request(
    task: &Task,
    criteria: Arc<Criteria>,
    build: impl FnOnce(LoopBuilder) -> LoopBuilder,
) -> Result<Option<Vec<Message>>, BuildError> {
    let listener = Arc::new(Listener::new());
    let model: Arc<dyn ChatModel> = Arc::clone(&listener) as Arc<dyn ChatModel>;
    let sampling = Sampling::default();
    let mut judge = JudgeModel::new(Arc::clone(&model), sampling.clone(), Think::default());
    // The models that criteria name for themselves are not asked before there is a draft.
    for criterion in &criteria.criteria {
        if let Evaluator::Llm(config) = &criterion.evaluator
            && let Some(name) = &config.model
        {
            let other = OtherModel {
                model: Arc::clone(&model),
                sampling: sampling.clone(),
                think: Think::default(),
            };
            judge.others.insert(name.clone(), other);
        }
    }
    let rehearsed = build(Loop::builder(model, criteria).judge(judge)).build()?;
    let mut nobody = |_: &Stamped| {};
    rehearsed
        .run(task, &mut nobody, &CancellationToken::new())
        .await;
    Ok(listener.heard.lock().take())
}

/// Keeps the first question, and fails.
struct Listener {
    id: ModelId,
    heard: Mutex<Option<Vec<Message>>>,
}

impl Listener {
    fn new() -> Self {
        Self {
            id: ModelId {
                provider: "none".to_owned(),
                model: "dry-run".to_owned(),
            },
            heard: Mutex::new(None),
        }
    }
}

#[async_trait::async_trait]
impl ChatModel for Listener {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        let mut heard = self.heard.lock();
        heard.get_or_insert(request.messages);
        let error = ModelError::new(ErrorClass::Rejected, "nobody is asked in a dry run");
        stream::once(async { Err(error) }).boxed()
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        Ok(ModelInfo::default())
    }
}
