use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ErrorCategory;

/// A plan that was carried out, with its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Episode {
    /// The plan.
    pub plan: Plan,
    /// The results in the order in which they occurred. A retried task has one result per attempt,
    /// of which the last one counts. A task without a result was not started.
    pub results: Vec<TaskResult>,
}

/// A list of tasks to do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The plan's id.
    #[schemars(length(min = 1))]
    pub id: String,
    /// Its goal. Default: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Its tasks, in order.
    #[schemars(length(min = 1))]
    pub tasks: Vec<PlannedTask>,
}

/// A task of a plan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PlannedTask {
    /// The task's id, unique in the plan.
    #[schemars(length(min = 1))]
    pub id: String,
    /// A description of the task. Default: unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The tool that does it: a program, a model or a service. Default: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The ids of the tasks that must finish before. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The expected duration in seconds, above 0. Default: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub expected_seconds: Option<f64>,
}

impl PlannedTask {
    /// Creates a task with only an id.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }
}

/// The result of an attempt at a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskResult {
    /// The id of the task.
    #[schemars(length(min = 1))]
    pub task_id: String,
    /// The status of the attempt.
    pub status: TaskStatus,
    /// Why it failed: a string or an object. Default: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TaskError>,
    /// The output: any JSON value. Null means that no output was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The duration in seconds. Default: from `started` to `finished`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub seconds: Option<f64>,
    /// The start time (RFC 3339, such as `2026-01-31T12:00:00Z`). Default: unknown.
    #[serde(
        default,
        deserialize_with = "time",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub started: Option<Timestamp>,
    /// The end time. Default: unknown.
    #[serde(
        default,
        deserialize_with = "time",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub finished: Option<Timestamp>,
}

impl TaskResult {
    /// Creates a result with only a status.
    pub fn new(task_id: impl Into<String>, status: TaskStatus) -> Self {
        Self {
            task_id: task_id.into(),
            status,
            error: None,
            output: None,
            seconds: None,
            started: None,
            finished: None,
        }
    }

    /// Returns the duration in seconds, if known.
    pub fn duration(&self) -> Option<f64> {
        let between = || {
            let took = self.finished?.duration_since(self.started?);
            Some(took.as_secs_f64())
        };
        self.seconds
            .or_else(between)
            .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
    }

    /// Returns when it ended, if known.
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.finished.or(self.started)
    }
}

/// The status of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Succeeded.
    Success,
    /// Failed.
    Failed,
    /// Skipped, for example because a task that it depends on failed.
    Skipped,
    /// Cancelled before its end.
    Cancelled,
    /// In progress.
    Running,
    /// Not started.
    Pending,
}

/// Why a task failed.
///
/// In JSON a string, or an object with more details.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TaskError {
    /// The error message.
    pub message: String,
    /// The type of the error, such as `TimeoutError`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// An HTTP status or exit code, or a name such as `ENOENT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// The category of the failure, if the executor states it. It takes precedence over all other
    /// indications.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<ErrorCategory>,
}

impl TaskError {
    /// Creates an error with only a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }
}

/// An error's code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "an integer or expected a string")]
pub enum ErrorCode {
    /// An HTTP status (400 to 599) or an exit code.
    Number(i64),
    /// A name, such as `ECONNREFUSED`.
    Name(String),
}

/// An error as an object.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ErrorFields {
    /// The error message. Default: empty.
    #[serde(default)]
    message: String,
    /// The type of the error, such as `TimeoutError`. Default: unknown.
    #[serde(default, rename = "type")]
    kind: Option<String>,
    /// An HTTP status or exit code, or a name such as `ENOENT`. Default: none.
    #[serde(default)]
    code: Option<ErrorCode>,
    /// The category of the failure, if known for certain. Default: determined from the other keys.
    #[serde(default)]
    category: Option<ErrorCategory>,
}

impl<'de> Deserialize<'de> for TaskError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ErrorVisitor)
    }
}

struct ErrorVisitor;

impl<'de> Visitor<'de> for ErrorVisitor {
    type Value = TaskError;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or an object with `message`,")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TaskError, E> {
        Ok(TaskError::new(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TaskError, A::Error> {
        let fields = ErrorFields::deserialize(MapAccessDeserializer::new(map))?;
        Ok(TaskError {
            message: fields.message,
            kind: fields.kind,
            code: fields.code,
            category: fields.category,
        })
    }
}

impl JsonSchema for TaskError {
    fn schema_name() -> Cow<'static, str> {
        "TaskError".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let object = generator.subschema_for::<ErrorFields>();
        json_schema!({ "anyOf": [{ "type": "string" }, object] })
    }
}

/// Parses a time. Null means none.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        D::Error::custom(format!(
            "`{text}` is not a time with a zone, such as `2026-01-31T12:00:00Z`"
        ))
    })
}
