//! What the pool and its workers say to each other: one JSON object a line.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::limits::Limits;
use super::script::{ScriptErrorKind, ScriptRequest};

/// One evaluation.
#[derive(Debug, Serialize)]
pub(super) struct Ask<'a> {
    pub(super) request: &'a ScriptRequest,
    pub(super) limits: AskLimits,
}

/// The same, as a worker reads it.
#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    pub(super) request: ScriptRequest,
    pub(super) limits: AskLimits,
}

/// What the worker itself looks after, so that it can say more than that it was killed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct AskLimits {
    pub(super) seconds: f64,
    pub(super) memory: u64,
    pub(super) output: usize,
}

impl From<&Limits> for AskLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            seconds: limits.time.as_secs_f64(),
            memory: limits.memory,
            output: limits.output,
        }
    }
}

/// What a worker writes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Answer {
    /// The interpreter has started, and reads requests.
    Ready { ready: bool },
    /// The process group in which the script now runs, to be ended with the worker.
    Group { pid: i32 },
    /// It failed.
    Failed {
        error: Failure,
        #[serde(default)]
        prints: String,
    },
    /// Its value.
    Value {
        value: Value,
        #[serde(default)]
        prints: String,
    },
}

/// Why it failed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) kind: ScriptErrorKind,
    pub(super) message: String,
    #[serde(default)]
    pub(super) line: Option<u32>,
}
