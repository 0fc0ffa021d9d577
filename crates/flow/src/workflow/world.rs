//! The environment in which the actions of a workflow run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::event::{Event, Observer};
use super::failure::Failure;
use super::template::Names;
use crate::evaluate::{Tools, VerdictCache};
use crate::model::{CallEvent, CallReport, ChatEvent, ChatModel, Sampling, Think};
use crate::prompt::Templates;
use crate::types::{LoopSettings, Prices, TokenUsage};

/// The model that a file requests.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelChoice {
    /// The provider.
    pub provider: Option<String>,
    /// The model, optionally after its provider, as in `ollama/gemma3` and `ollama:gemma3`.
    pub model: Option<String>,
    /// The address of the server.
    pub api_base: Option<String>,
    /// The maximum number of retries after a transient error.
    pub retries: Option<u32>,
    /// The maximum wait before the first retry. It doubles with each further one.
    pub first_wait: Option<Duration>,
    /// The maximum wait before any retry.
    pub longest_wait: Option<Duration>,
    /// The time limit of a call, including retries.
    pub timeout: Option<Duration>,
    /// Whether the model judges rather than writes.
    pub judges: bool,
}

/// A model that is ready for calls.
#[derive(Clone)]
pub struct ChosenModel {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// The default sampling settings.
    pub sampling: Sampling,
    /// The sampling settings that override those of a call, from the user's flags.
    pub decided: Sampling,
    /// How much it reasons.
    pub think: Think,
}

/// Opens models.
#[async_trait(?Send)]
pub trait ModelSource: Send + Sync {
    /// Opens a model.
    ///
    /// # Errors
    /// If it is unknown or unreachable.
    async fn open(&self, choice: &ModelChoice) -> Result<ChosenModel, Failure>;
}

/// The environment of a workflow.
pub struct World {
    /// The scripts and programs that code may use.
    pub tools: Tools,
    /// Opens models.
    pub models: Arc<dyn ModelSource>,
    /// The nodes whose results the trigger `manual` reflects on.
    pub manual: Vec<String>,
    /// The cache of verdicts. `None` asks the judge every time.
    pub verdicts: Option<Arc<dyn VerdictCache>>,
    /// The limits of every loop on tokens, cost and time, which override the file's.
    pub limits: LoopSettings,
    /// The prices of models; empty if unknown.
    pub prices: Prices,
    /// The user's custom judge templates. `None` uses the built-in ones.
    pub templates: Option<Arc<Templates>>,
    /// Cancels the run.
    pub cancel: CancellationToken,
    /// The folder in which commands run.
    pub folder: PathBuf,
    pub(super) recorder: Recorder,
}

impl World {
    /// Creates a world that reports events to this observer.
    pub fn new(
        tools: Tools,
        models: Arc<dyn ModelSource>,
        observer: Box<dyn Observer>,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            tools,
            models,
            manual: Vec::new(),
            verdicts: None,
            limits: LoopSettings::default(),
            prices: Prices::default(),
            templates: None,
            cancel,
            folder: PathBuf::from("."),
            recorder: Recorder(Mutex::new(Recorded {
                observer,
                calls: 0,
                usage: TokenUsage::default(),
            })),
        }
    }

    pub(super) fn emit(&self, event: &Event<'_>) {
        self.recorder.lock().observer.on_event(event);
    }

    /// Emits the event of a call, with its report.
    pub(super) fn emit_call(&self, event: &Event<'_>, call: &CallReport<'_>) {
        self.recorder.lock().observer.on_call(event, call);
    }

    /// Returns the number of calls so far and their token usage.
    pub(super) fn taken(&self) -> (u32, TokenUsage) {
        let recorded = self.recorder.lock();
        (recorded.calls, recorded.usage)
    }
}

/// The observer, and the usage of the calls.
pub(super) struct Recorder(Mutex<Recorded>);

struct Recorded {
    observer: Box<dyn Observer>,
    calls: u32,
    usage: TokenUsage,
}

impl Recorder {
    fn lock(&self) -> parking_lot::MutexGuard<'_, Recorded> {
        self.0.lock()
    }
}

/// The context in which an action runs.
#[derive(Clone, Copy)]
pub(super) struct ActionContext<'a> {
    pub(super) world: &'a World,
    /// The node that it belongs to.
    pub(super) node: &'a str,
    /// The names that its templates see.
    pub(super) names: &'a Names,
    /// Observes calls that belong to a version of a loop.
    pub(super) calls: Option<&'a dyn crate::model::CallObserver>,
}

impl ActionContext<'_> {
    /// Records a call's usage, and reports it to the observers.
    pub(super) fn observe(&self, event: CallEvent<'_>) {
        if let CallEvent::End(report) = &event {
            let mut recorded = self.world.recorder.lock();
            recorded.calls += report.reply.attempts;
            recorded.usage += report.reply.usage;
        }
        if let Some(calls) = self.calls {
            calls.on_event(event);
            return;
        }
        match event {
            CallEvent::End(report) => {
                let event = Event::Call {
                    node: self.node,
                    model: report.model,
                    usage: report.reply.usage,
                    duration_ms: milliseconds(report.duration),
                    error: report.error.map(ToString::to_string),
                };
                self.world.emit_call(&event, &report);
            }
            CallEvent::Chat(ChatEvent::Notice(message)) => self.world.emit(&Event::Warning {
                message: message.clone(),
            }),
            CallEvent::Chat(ChatEvent::Retry { error, wait }) => self.world.emit(&Event::Retry {
                node: self.node,
                message: error.to_string(),
                wait_ms: milliseconds(*wait),
            }),
            CallEvent::Chat(_) => {}
        }
    }
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn since(begun: Instant) -> u64 {
    milliseconds(begun.elapsed())
}
