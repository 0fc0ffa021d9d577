//! The tools as clients see them: names, descriptions, arguments.

use rmcp::handler::server::tool::schema_for_input;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::names::known;
use super::outcome::{CriteriaList, Outcome};
use crate::cli::error::CliError;
use crate::types::LoopSettings;

/// The arguments of `draft`.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub(super) struct DraftCall {
    /// What to write.
    pub(super) prompt: String,
    /// A text that the writer needs to know, such as a diff or a source.
    pub(super) context: Option<String>,
    /// The name of the criteria, from `list_criteria`. Default: the user's own default, or `writing`.
    pub(super) criteria: Option<String>,
    #[serde(flatten)]
    pub(super) limits: CallLimits,
}

/// The arguments of `revise`.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub(super) struct ReviseCall {
    /// The text to revise.
    pub(super) text: String,
    /// The name of the criteria, from `list_criteria`.
    pub(super) criteria: String,
    /// The task that the text was written for.
    pub(super) prompt: Option<String>,
    #[serde(flatten)]
    pub(super) limits: CallLimits,
}

/// The arguments of `evaluate`.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub(super) struct EvaluateCall {
    /// The text to evaluate.
    pub(super) text: String,
    /// The name of the criteria, from `list_criteria`.
    pub(super) criteria: String,
    /// The task that the text was written for.
    pub(super) prompt: Option<String>,
}

/// The arguments of `list_criteria`: none.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub(super) struct ListCall {}

/// The arguments of `show_run`.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub(super) struct ShowCall {
    /// The id of the run, its end, or `last`.
    pub(super) run_id: String,
}

/// Limits of one call. They lower those that the server was started with, and never raise them.
#[derive(Default, Deserialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "each is named as its setting")]
pub(super) struct CallLimits {
    /// Maximum number of drafts, including the first. Cannot raise the server's limit.
    #[schemars(range(min = 1))]
    max_iterations: Option<u32>,
    /// Maximum number of tokens. Cannot raise the server's limit.
    #[schemars(range(min = 1))]
    max_total_tokens: Option<u64>,
    /// Maximum time in seconds. Cannot raise the server's limit.
    max_time: Option<f64>,
}

impl CallLimits {
    /// Lowers these settings to the limits of the call.
    ///
    /// # Errors
    /// If a limit is out of range.
    pub(super) fn lower(&self, settings: &mut LoopSettings) -> Result<(), CliError> {
        if let Some(drafts) = self.max_iterations {
            let drafts = drafts.min(settings.max_iterations());
            settings.max_iterations = Some(drafts);
            settings.min_iterations = settings.min_iterations.map(|least| least.min(drafts));
        }
        if let Some(tokens) = self.max_total_tokens {
            let least = settings
                .max_total_tokens
                .map_or(tokens, |it| it.min(tokens));
            settings.max_total_tokens = Some(least);
        }
        if let Some(time) = self.max_time {
            let least = settings.max_time.map_or(time, |it| it.min(time));
            settings.max_time = Some(least);
        }
        settings
            .check()
            .map_err(|(_, message)| CliError::usage(message))
    }
}

/// Reads the arguments of a call.
///
/// # Errors
/// If one is missing, unknown or of the wrong type.
pub(super) fn read<T: DeserializeOwned + JsonSchema + 'static>(
    given: Option<JsonObject>,
) -> Result<T, CliError> {
    let given = given.unwrap_or_default();
    let schema = schema_for_input::<T>().map_err(CliError::failure)?;
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = || {
        properties
            .into_iter()
            .flat_map(|it| it.keys().map(String::as_str))
    };
    if let Some(unknown) = given.keys().find(|key| !names().any(|name| name == *key)) {
        let error = CliError::usage(format!("unknown argument `{unknown}`"));
        return Err(error.hint(known("arguments", unknown, names)));
    }
    serde_json::from_value(Value::Object(given))
        .map_err(|error| CliError::usage(format!("invalid arguments: {error}")))
}

/// All tools.
pub(super) fn tools() -> Vec<Tool> {
    // A run is recorded and costs tokens, so it is not read-only.
    let runs = || {
        ToolAnnotations::new()
            .read_only(false)
            .destructive(false)
            .idempotent(false)
            .open_world(true)
    };
    let reads = || ToolAnnotations::new().read_only(true).open_world(false);
    vec![
        tool::<DraftCall, Outcome>(
            "draft",
            "Write a text with a language model, evaluate it against criteria, and revise it until it meets them or \
             stops improving. Returns the best draft. `success` is false if the criteria are not met. May take minutes.",
            runs(),
        ),
        tool::<ReviseCall, Outcome>(
            "revise",
            "Revise an existing text until it meets the criteria or stops improving. Returns the best version, \
             unchanged if it already meets them. May take minutes.",
            runs(),
        ),
        tool::<EvaluateCall, Outcome>(
            "evaluate",
            "Evaluate a text once against criteria. Returns scores and issues; the text is not changed.",
            runs(),
        ),
        tool::<ListCall, CriteriaList>(
            "list_criteria",
            "List the criteria that `draft`, `revise` and `evaluate` can use.",
            reads(),
        ),
        tool::<ShowCall, Outcome>(
            "show_run",
            "Show a recorded run: its drafts, their scores and issues, and the result.",
            reads(),
        ),
    ]
}

fn tool<I: JsonSchema + 'static, O: JsonSchema + 'static>(
    name: &'static str,
    description: &'static str,
    annotations: ToolAnnotations,
) -> Tool {
    Tool::new(name, description, JsonObject::new())
        .with_input_schema::<I>()
        .with_output_schema::<O>()
        .with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_only_lowered() {
        let started = LoopSettings {
            max_iterations: Some(4),
            min_iterations: Some(3),
            max_total_tokens: Some(1000),
            ..LoopSettings::default()
        };
        let lowered = |limits: Value| {
            let limits: CallLimits = serde_json::from_value(limits).unwrap();
            let mut settings = started.clone();
            limits.lower(&mut settings).map(|()| settings)
        };
        let more = serde_json::json!({"max_iterations": 9, "max_total_tokens": 9999});
        assert_eq!(lowered(more).unwrap(), started);
        let less =
            serde_json::json!({"max_iterations": 2, "max_total_tokens": 10, "max_time": 1.5});
        let less = lowered(less).unwrap();
        assert_eq!(
            (less.max_iterations, less.min_iterations),
            (Some(2), Some(2))
        );
        assert_eq!(
            (less.max_total_tokens, less.max_time),
            (Some(10), Some(1.5))
        );
        for bad in ["max_iterations", "max_total_tokens", "max_time"] {
            assert!(lowered(serde_json::json!({bad: 0})).is_err(), "{bad}");
        }
        // Without a limit at start, the default holds.
        let limits = CallLimits {
            max_iterations: Some(50),
            ..CallLimits::default()
        };
        let mut settings = LoopSettings::default();
        limits.lower(&mut settings).unwrap();
        assert_eq!(
            settings.max_iterations(),
            LoopSettings::default().max_iterations()
        );
    }

    #[test]
    fn unknown_and_missing_arguments_are_named() {
        let read = |value: Value| {
            read::<DraftCall>(value.as_object().cloned()).map_err(|error| error.to_string())
        };
        assert!(read(serde_json::json!({"prompt": "x", "max_iterations": 2})).is_ok());
        let error = read(serde_json::json!({"prompt": "x", "criterias": "y"}))
            .err()
            .unwrap();
        assert!(
            error.contains("unknown argument `criterias`\nhint: did you mean `criteria`?"),
            "{error}"
        );
        let error = read(serde_json::json!({})).err().unwrap();
        assert!(error.contains("missing field `prompt`"), "{error}");
    }
}
