use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ErrorCategory;

/// A plan that was carried out, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Episode {
    /// What was to be done.
    pub plan: Plan,
    /// What came of it, in the order in which it happened. A task that was tried again has a result for each attempt,
    /// of which the last one counts; one that has none was not begun.
    pub results: Vec<TaskResult>,
}

/// What was to be done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Its name.
    #[schemars(length(min = 1))]
    pub id: String,
    /// What it is for. Default: that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Its tasks, in the order of the plan.
    #[schemars(length(min = 1))]
    pub tasks: Vec<PlannedTask>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PlannedTask {
    /// Its name, which no other task of the plan has.
    #[schemars(length(min = 1))]
    pub id: String,
    /// What is to be done. Default: that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What does it: a program, a model, a service. Default: that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The tasks that must be done before. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// How long it should take, in seconds; above 0. Default: that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub expected_seconds: Option<f64>,
}

impl PlannedTask {
    /// A task of which nothing is known but its name.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }
}

/// What came of an attempt at a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskResult {
    /// Which task.
    #[schemars(length(min = 1))]
    pub task_id: String,
    /// How it ended, or that it has not.
    pub status: TaskStatus,
    /// Why it failed: a sentence, or an object. Default: that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TaskError>,
    /// What it gave: any JSON value; null for nothing that is kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// How long it took, in seconds. Default: from `started` to `finished`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub seconds: Option<f64>,
    /// When it began (RFC 3339, such as `2026-01-31T12:00:00Z`). Default: that is not known.
    #[serde(
        default,
        deserialize_with = "time",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub started: Option<Timestamp>,
    /// When it ended. Default: that is not known.
    #[serde(
        default,
        deserialize_with = "time",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub finished: Option<Timestamp>,
}

impl TaskResult {
    /// A result of which nothing is known but how it ended.
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

    /// How long it took, in seconds, if that is known.
    pub fn duration(&self) -> Option<f64> {
        let between = || {
            let took = self.finished?.duration_since(self.started?);
            Some(took.as_secs_f64())
        };
        self.seconds
            .or_else(between)
            .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
    }

    /// When it was over, as far as that is known.
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.finished.or(self.started)
    }
}

/// How an attempt ended, or that it has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Done.
    Success,
    /// Tried without effect.
    Failed,
    /// Passed over, for instance because a task that it waits for failed.
    Skipped,
    /// Stopped by somebody before its end.
    Cancelled,
    /// Under way.
    Running,
    /// Not begun.
    Pending,
}

/// Why a task failed.
///
/// In JSON a sentence, or an object for executors that know more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TaskError {
    /// What was said.
    pub message: String,
    /// The error's type, such as `TimeoutError`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A number of HTTP or of a shell, or a word such as `ENOENT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// What kind of failure it is, where the executor says so itself. It is believed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<ErrorCategory>,
}

impl TaskError {
    /// An error of which nothing is known but what was said.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }
}

/// An error's code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a whole number or expected a text in quotes")]
pub enum ErrorCode {
    /// A status of HTTP (400 to 599), or an exit code.
    Number(i64),
    /// A word, such as `ECONNREFUSED`.
    Name(String),
}

/// An error as an object.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ErrorFields {
    /// What was said. Default: nothing.
    #[serde(default)]
    message: String,
    /// The error's type, such as `TimeoutError`. Default: that is not known.
    #[serde(default, rename = "type")]
    kind: Option<String>,
    /// A number of HTTP or of a shell, or a word such as `ENOENT`. Default: none.
    #[serde(default)]
    code: Option<ErrorCode>,
    /// What kind of failure it is, where that is known for sure. Default: it is found out.
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
        f.write_str("a text in quotes, or an object with `message`,")
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

/// Reads a time; null for none.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        D::Error::custom(format!(
            "`{text}` is no time with a zone, such as `2026-01-31T12:00:00Z`"
        ))
    })
}
