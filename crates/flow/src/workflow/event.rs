use serde::Serialize;
use serde_json::Value;

use crate::model::CallReport;
use crate::types::{ExitCode, ModelId, SCHEMA_VERSION, Stamped, TokenUsage};

/// What happens in a workflow, in order. The events of a loop are those of any run, each with its node.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// It begins.
    WorkflowStart {
        /// See [`SCHEMA_VERSION`].
        schema_version: u32,
        /// Its name.
        name: &'a str,
        /// Its nodes, in the order of the file.
        nodes: Vec<&'a str>,
    },
    /// A node begins.
    NodeStart {
        /// Which.
        node: &'a str,
        /// What it does.
        action: &'a str,
    },
    /// A call to a model ended that belongs to no loop.
    Call {
        /// The node.
        node: &'a str,
        /// Who answered.
        model: &'a ModelId,
        /// Tokens, as far as the server told.
        usage: TokenUsage,
        /// How long it took, in milliseconds.
        duration_ms: u64,
        /// Why it failed, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A call that belongs to no loop failed, and is made again after a wait.
    Retry {
        /// The node.
        node: &'a str,
        /// What went wrong.
        message: String,
        /// How long is waited, in milliseconds.
        wait_ms: u64,
    },
    /// Code has printed something.
    Print {
        /// The node that it belongs to.
        node: &'a str,
        /// What, as it is.
        text: &'a str,
    },
    /// A node's result is reflected on.
    Trigger {
        /// The node.
        node: &'a str,
        /// Which trigger it was.
        trigger: &'a str,
        /// Why, in words.
        reason: &'a str,
    },
    /// A node is done.
    NodeEnd {
        /// Which.
        node: &'a str,
        /// What it gave.
        output: &'a Value,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// Something that people should know.
    Warning {
        /// What.
        message: String,
    },
    /// It is over. The last event, always, and only once.
    #[serde(rename = "run_end")]
    End {
        /// See [`SCHEMA_VERSION`].
        schema_version: u32,
        /// Whether it came to its end, and the last loop's draft was good enough.
        success: bool,
        /// The exit code of the command, before `--exit-zero`.
        exit_code: ExitCode,
        /// What the last node gave.
        output: &'a Value,
        /// What went wrong, if something did.
        error: Option<&'a str>,
    },
    /// Something in a loop.
    #[serde(untagged)]
    Loop {
        /// The node.
        node: &'a str,
        /// What.
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

/// Sees every event of a workflow, in order, as it happens.
pub trait Observer: Send {
    /// Takes an event in.
    fn on_event(&mut self, event: &Event<'_>);

    /// Takes in the event of a call that is over, with what was asked and answered: for those who show it. Without
    /// this, the event is one like the others.
    fn on_call(&mut self, event: &Event<'_>, _call: &CallReport<'_>) {
        self.on_event(event);
    }
}

impl<F: FnMut(&Event<'_>) + Send> Observer for F {
    fn on_event(&mut self, event: &Event<'_>) {
        self(event);
    }
}
