use serde::Serialize;
use serde_json::Value;

use crate::model::CallReport;
use crate::types::{ExitCode, ModelId, SCHEMA_VERSION, Stamped, TokenUsage};

/// The events of a workflow, in order. The events of a loop are those of any run, each with its
/// node.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// The workflow starts.
    WorkflowStart {
        /// See [`SCHEMA_VERSION`].
        schema_version: u32,
        /// The name of the workflow.
        name: &'a str,
        /// The names of its nodes, in file order.
        nodes: Vec<&'a str>,
    },
    /// A node starts.
    NodeStart {
        /// The name of the node.
        node: &'a str,
        /// The name of its action.
        action: &'a str,
    },
    /// A model call outside of a loop ended.
    Call {
        /// The name of the node.
        node: &'a str,
        /// The model that answered.
        model: &'a ModelId,
        /// The token usage, as far as the server reports it.
        usage: TokenUsage,
        /// The duration in milliseconds.
        duration_ms: u64,
        /// The error, if the call failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A model call outside of a loop failed and is retried after a wait.
    Retry {
        /// The name of the node.
        node: &'a str,
        /// The error.
        message: String,
        /// The wait in milliseconds.
        wait_ms: u64,
    },
    /// Code printed text.
    Print {
        /// The name of its node.
        node: &'a str,
        /// The text, unmodified.
        text: &'a str,
    },
    /// A trigger starts a reflection on a node's result.
    Trigger {
        /// The name of the node.
        node: &'a str,
        /// The name of the trigger.
        trigger: &'a str,
        /// The reason.
        reason: &'a str,
    },
    /// A node ended.
    NodeEnd {
        /// The name of the node.
        node: &'a str,
        /// Its result.
        output: &'a Value,
        /// The duration in milliseconds.
        duration_ms: u64,
    },
    /// A warning.
    Warning {
        /// The message.
        message: String,
    },
    /// The workflow ended. Always the last event, and emitted once.
    #[serde(rename = "run_end")]
    End {
        /// See [`SCHEMA_VERSION`].
        schema_version: u32,
        /// Whether the workflow completed, and the last loop's draft met the criteria.
        success: bool,
        /// The exit code of the command, before `--exit-zero`.
        exit_code: ExitCode,
        /// The result of the last node.
        output: &'a Value,
        /// The error, if it failed.
        error: Option<&'a str>,
    },
    /// An event of a loop.
    #[serde(untagged)]
    Loop {
        /// The name of the node.
        node: &'a str,
        /// The event of the run.
        #[serde(flatten)]
        event: &'a Stamped,
    },
}

impl<'a> Event<'a> {
    pub(super) fn start(name: &'a str, nodes: Vec<&'a str>) -> Self {
        Self::WorkflowStart {
            schema_version: SCHEMA_VERSION,
            name,
            nodes,
        }
    }
}

/// Receives every event of a workflow, in order, as it occurs.
pub trait Observer: Send {
    /// Handles an event.
    fn on_event(&mut self, event: &Event<'_>);

    /// Handles the event of a finished call, with its request and reply, for observers that show
    /// them. By default it is handled like other events.
    fn on_call(&mut self, event: &Event<'_>, _call: &CallReport<'_>) {
        self.on_event(event);
    }
}

impl<F: FnMut(&Event<'_>) + Send> Observer for F {
    fn on_event(&mut self, event: &Event<'_>) {
        self(event);
    }
}
