use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use reflect_llama::{Engine, EngineError, Gguf, Llama, Stop};
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};
use tokio::task::{JoinHandle, spawn_blocking};

use super::generate::{Broken, Loaded, model_error};
use super::slots::Slots;
use super::template::ChatTemplate;
use super::vocabulary::Vocabulary;
use reflect_base::types::ModelId;
use reflect_model::openai::StructuredOutput;
use reflect_model::{
    ChatEvent, ChatModel, ChatRequest, ChatStream, ErrorClass, ModelError, ModelInfo,
};

/// The most tokens of context that are taken without being asked for. What is used of it costs memory:
/// 46 KB for each token of the default model.
pub const MAX_DEFAULT_CONTEXT: usize = 8_192;

/// Events that may wait for a slow listener before the writing waits, too.
const WAITING_EVENTS: usize = 64;

/// How an embedded model is run.
#[derive(Debug, Clone, Default)]
pub struct EmbeddedOptions {
    /// Threads that compute. Default: the cores but one, at least 1.
    pub threads: Option<NonZeroUsize>,
    /// Tokens of prompt and answer together. Default: what the model was trained on, at most
    /// [`MAX_DEFAULT_CONTEXT`]; never more than the model was trained on.
    pub context: Option<NonZeroUsize>,
}

impl EmbeddedOptions {
    fn window(&self) -> usize {
        self.context.map_or(MAX_DEFAULT_CONTEXT, NonZeroUsize::get)
    }
}

/// Loads a model from a GGUF file. Blocks: for some tenths of a second for the default model.
pub fn open_engine(path: &Path, options: &EmbeddedOptions) -> Result<Box<dyn Engine>, EngineError> {
    let mut file = Gguf::open(path)?;
    engine(&mut file, options)
}

fn engine(file: &mut Gguf, options: &EmbeddedOptions) -> Result<Box<dyn Engine>, EngineError> {
    let threads = options
        .threads
        .unwrap_or_else(reflect_llama::default_threads);
    Ok(Box::new(Llama::load(file, options.window(), threads)?))
}

/// A model in the process. Calls are answered one after the other; the beginning that a prompt has in
/// common with an earlier one is not computed again.
pub struct EmbeddedModel {
    id: ModelId,
    source: Arc<Source>,
    /// Empty until the first call, and after a call that panicked.
    loaded: Arc<Mutex<Option<Loaded>>>,
}

struct Source {
    path: PathBuf,
    options: EmbeddedOptions,
}

impl EmbeddedModel {
    /// A model from a GGUF file. Nothing is read before the first call.
    pub fn open(path: impl Into<PathBuf>, id: ModelId, options: EmbeddedOptions) -> Self {
        Self {
            id,
            source: Arc::new(Source {
                path: path.into(),
                options,
            }),
            loaded: Arc::default(),
        }
    }

    /// The tokens that a request's prompt is made of. Loads the model if it is not yet.
    ///
    /// # Errors
    /// As a call of the model.
    pub async fn prompt_tokens(&self, request: ChatRequest) -> Result<Vec<u32>, ModelError> {
        let mut loaded = Arc::clone(&self.loaded).lock_owned().await;
        let source = Arc::clone(&self.source);
        let work = spawn_blocking(move || {
            if loaded.is_none() {
                *loaded = Some(source.load().map_err(|error| model_error(&error))?);
            }
            match &*loaded {
                Some(loaded) => loaded.prompt(&request),
                None => Ok(Vec::new()),
            }
        });
        work.await.map_err(|_| panicked())?
    }
}

#[async_trait::async_trait]
impl ChatModel for EmbeddedModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn is_local(&self) -> bool {
        true
    }

    fn structured_output(&self) -> Option<StructuredOutput> {
        Some(StructuredOutput::JsonSchema)
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        let loaded = Arc::clone(&self.loaded);
        let source = Arc::clone(&self.source);
        let start = async move {
            let loaded = loaded.lock_owned().await;
            Call::start(source, loaded, request).events()
        };
        stream::once(start).flatten().boxed()
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        let source = Arc::clone(&self.source);
        let window = spawn_blocking(move || {
            let file = Gguf::open(&source.path)?;
            reflect_llama::trained_window(&file).map(|trained| trained.min(source.options.window()))
        });
        let window = window.await.map_err(|_| panicked())?;
        let window = window.map_err(|error| model_error(&error))?;
        Ok(ModelInfo {
            context_window: u64::try_from(window).ok(),
            known: true,
            ..ModelInfo::default()
        })
    }
}

impl Source {
    fn load(&self) -> Result<Loaded, EngineError> {
        let mut file = Gguf::open(&self.path)?;
        let template = file.text("tokenizer.chat_template").ok_or_else(|| {
            file.unsupported(
                "it has no chat template, so it is a base model and cannot follow instructions",
            )
        })?;
        let template = ChatTemplate::new(template).map_err(|reason| {
            file.unsupported(format!("its chat template cannot be read: {reason}"))
        })?;
        let vocabulary = Vocabulary::read(&file)?;
        let engine = engine(&mut file, &self.options)?;
        Ok(Loaded {
            vocabulary,
            template,
            slots: Slots::new(engine),
            constraints: None,
        })
    }
}

/// A call that is being answered.
struct Call {
    events: mpsc::Receiver<Result<ChatEvent, ModelError>>,
    work: JoinHandle<()>,
    stop: StopOnDrop,
}

/// Ends the work when the stream is dropped.
struct StopOnDrop(Arc<Stop>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.raise();
    }
}

impl Call {
    fn start(
        source: Arc<Source>,
        mut place: OwnedMutexGuard<Option<Loaded>>,
        request: ChatRequest,
    ) -> Self {
        let (send, events) = mpsc::channel(WAITING_EVENTS);
        let stop = Arc::new(Stop::default());
        let work = spawn_blocking({
            let stop = Arc::clone(&stop);
            move || {
                let mut emit = |event| send.blocking_send(Ok(event)).is_ok();
                // Taken out for the time of the work: what a panic left behind is not used again.
                let answered = match place.take() {
                    Some(loaded) => Ok(loaded),
                    None => source.load().map_err(Broken::from),
                }
                .and_then(|mut loaded| {
                    let answered = loaded.answer(&request, &stop, &mut emit);
                    *place = Some(loaded);
                    answered
                });
                if let Err(Broken::Failed(error)) = answered {
                    // If nobody listens, nobody needs it.
                    let _ = send.blocking_send(Err(error));
                }
            }
        });
        Self {
            events,
            work,
            stop: StopOnDrop(stop),
        }
    }

    fn events(self) -> ChatStream<'static> {
        stream::unfold(Some(self), |call| async move {
            let mut call = call?;
            if let Some(event) = call.events.recv().await {
                let over = matches!(event, Ok(ChatEvent::End(_)) | Err(_));
                return Some((event, (!over).then_some(call)));
            }
            let Call { work, stop, .. } = call;
            let outcome = work.await;
            drop(stop);
            outcome.is_err().then(|| (Err(panicked()), None))
        })
        .boxed()
    }
}

/// A fault of this program.
fn panicked() -> ModelError {
    ModelError::new(
        ErrorClass::Protocol,
        "the embedded model failed inside; this is a bug in reflect",
    )
}
