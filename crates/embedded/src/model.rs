use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use reflect_llama::{Engine, EngineError, Gguf, Llama, Stop};
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};
use tokio::task::{JoinHandle, spawn_blocking};

use super::generate::{Loaded, StreamError, model_error};
use super::slots::Slots;
use super::template::ChatTemplate;
use super::vocabulary::Vocabulary;
use reflect_base::types::ModelId;
use reflect_model::openai::StructuredOutput;
use reflect_model::{
    ChatEvent, ChatModel, ChatRequest, ChatStream, ErrorClass, ModelError, ModelInfo,
};

/// The default limit on the context window, in tokens. The used part costs memory: 46 KB per token for the default
/// model.
pub const MAX_DEFAULT_CONTEXT: usize = 8_192;

/// How many events may be queued for a slow receiver before generation pauses.
const WAITING_EVENTS: usize = 64;

/// How to run an embedded model.
#[derive(Debug, Clone, Default)]
pub struct EmbeddedOptions {
    /// The number of threads. Default: the number of cores minus one, at least 1.
    pub threads: Option<NonZeroUsize>,
    /// The context window in tokens (prompt and reply), at most what the model was trained on. Default: that maximum,
    /// up to [`MAX_DEFAULT_CONTEXT`].
    pub context: Option<NonZeroUsize>,
}

impl EmbeddedOptions {
    fn window(&self) -> usize {
        self.context.map_or(MAX_DEFAULT_CONTEXT, NonZeroUsize::get)
    }
}

/// Loads a model from a GGUF file. Blocks for some tenths of a second for the default model.
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

/// A model in this process. It answers calls one after the other. It does not reevaluate the part of a prompt that an
/// earlier prompt started with.
pub struct EmbeddedModel {
    id: ModelId,
    source: Arc<Source>,
    /// Empty before the first call, and after a call that panicked.
    loaded: Arc<Mutex<Option<Loaded>>>,
}

struct Source {
    path: PathBuf,
    options: EmbeddedOptions,
}

impl EmbeddedModel {
    /// Creates a model from a GGUF file, which is read on the first call.
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

    /// The tokens of a request's prompt. Loads the model if necessary.
    ///
    /// # Errors
    /// The same as for a call.
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
                "the file has no chat template, so it is a base model that cannot follow instructions",
            )
        })?;
        let template = ChatTemplate::new(template)
            .map_err(|reason| file.unsupported(format!("invalid chat template: {reason}")))?;
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

/// A call in progress.
struct Call {
    events: mpsc::Receiver<Result<ChatEvent, ModelError>>,
    work: JoinHandle<()>,
    stop: StopOnDrop,
}

/// Cancels the work when the stream is dropped.
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
                // Taken out for the duration of the work, so that state left by a panic is not reused.
                let answered = match place.take() {
                    Some(loaded) => Ok(loaded),
                    None => source.load().map_err(StreamError::from),
                }
                .and_then(|mut loaded| {
                    let answered = loaded.answer(&request, &stop, &mut emit);
                    *place = Some(loaded);
                    answered
                });
                if let Err(StreamError::Failed(error)) = answered {
                    // An error is not needed if the receiver is gone.
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

/// The error for a bug in this program.
fn panicked() -> ModelError {
    ModelError::new(
        ErrorClass::Protocol,
        "the embedded model crashed; this is a bug in reflect",
    )
}
