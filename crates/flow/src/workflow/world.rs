//! What the actions of a workflow are given to work with.

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

/// Which model is wanted, as far as the file says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelChoice {
    /// The provider.
    pub provider: Option<String>,
    /// The model; a provider may stand before it, as in `ollama/gemma3` and `ollama:gemma3`.
    pub model: Option<String>,
    /// The address of the server.
    pub api_base: Option<String>,
    /// How often a call is made again after a fault that may pass.
    pub retries: Option<u32>,
    /// The longest wait before the first of these times; it doubles with each one.
    pub first_wait: Option<Duration>,
    /// The longest wait of all.
    pub longest_wait: Option<Duration>,
    /// The most time that a call may take, with all of that.
    pub timeout: Option<Duration>,
    /// Whether it is to judge, and not to write.
    pub judges: bool,
}

/// A model that can be asked.
#[derive(Clone)]
pub struct ChosenModel {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// How it chooses tokens, unless a call says otherwise.
    pub sampling: Sampling,
    /// How it chooses tokens whatever a call says, as the user wants it for this run.
    pub decided: Sampling,
    /// How much it reasons.
    pub think: Think,
}

/// Where models come from.
#[async_trait(?Send)]
pub trait ModelSource: Send + Sync {
    /// Opens a model.
    ///
    /// # Errors
    /// If it is not known, or cannot be reached.
    async fn open(&self, choice: &ModelChoice) -> Result<ChosenModel, Failure>;
}

/// What a workflow runs in.
pub struct World {
    /// What code may use.
    pub tools: Tools,
    /// Where models come from.
    pub models: Arc<dyn ModelSource>,
    /// Nodes whose results are to be reflected on by the trigger `manual`.
    pub manual: Vec<String>,
    /// Where judges' verdicts are kept; `None` to ask each time.
    pub verdicts: Option<Arc<dyn VerdictCache>>,
    /// The limits that hold for every loop, whatever the file says: on tokens, cost and time.
    pub limits: LoopSettings,
    /// What the models cost; empty where that is not known.
    pub prices: Prices,
    /// Templates of the user's own for judges; `None` for the built-in ones.
    pub templates: Option<Arc<Templates>>,
    /// Ends the run.
    pub cancel: CancellationToken,
    /// The folder that commands run in.
    pub folder: PathBuf,
    pub(super) recorder: Recorder,
}

impl World {
    /// A world whose events this observer sees.
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

    /// The same for the event of a call, of which there is a report.
    pub(super) fn emit_call(&self, event: &Event<'_>, call: &CallReport<'_>) {
        self.recorder.lock().observer.on_call(event, call);
    }

    /// What the calls so far have taken.
    pub(super) fn taken(&self) -> (u32, TokenUsage) {
        let recorded = self.recorder.lock();
        (recorded.calls, recorded.usage)
    }
}

/// Where events go, and what calls have taken.
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

/// Where an action runs.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) world: &'a World,
    /// The node that it belongs to.
    pub(super) node: &'a str,
    /// What its templates see.
    pub(super) names: &'a Names,
    /// Sees calls, where they belong to a version of a loop.
    pub(super) calls: Option<&'a crate::model::CallObserver<'a>>,
}

impl Scene<'_> {
    /// Takes a call in: for the account, and for whoever watches.
    pub(super) fn observe(&self, event: CallEvent<'_>) {
        if let CallEvent::End(report) = &event {
            let mut recorded = self.world.recorder.lock();
            recorded.calls += report.reply.attempts;
            recorded.usage += report.reply.usage;
        }
        if let Some(calls) = self.calls {
            calls(event);
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
