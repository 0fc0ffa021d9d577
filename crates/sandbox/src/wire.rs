//! The protocol between the pool and its workers: one JSON object per line.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::limits::Limits;
use super::script::{ScriptErrorKind, ScriptRequest};

/// A request for one evaluation.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    pub(super) request: &'a ScriptRequest,
    pub(super) limits: RequestLimits,
}

/// The same request, as parsed by a worker.
#[derive(Debug, Deserialize)]
pub(super) struct OwnedRequest {
    pub(super) request: ScriptRequest,
    pub(super) limits: RequestLimits,
}

/// The limits that the worker enforces itself, so that it can report more than its death.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct RequestLimits {
    pub(super) seconds: f64,
    pub(super) memory: u64,
    pub(super) output: usize,
}

impl From<&Limits> for RequestLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            seconds: limits.time.as_secs_f64(),
            memory: limits.memory,
            output: limits.output,
        }
    }
}

/// A message of a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum WorkerMessage {
    /// The interpreter has started and reads requests.
    Ready { ready: bool },
    /// The process group in which the script runs, to be killed together with the worker.
    Group { pid: i32 },
    /// The script failed.
    Failed {
        error: Failure,
        #[serde(default)]
        prints: String,
    },
    /// The script returned a value.
    Value {
        value: Value,
        #[serde(default)]
        prints: String,
    },
}

/// Why the script failed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) kind: ScriptErrorKind,
    pub(super) message: String,
    #[serde(default)]
    pub(super) line: Option<u32>,
}
