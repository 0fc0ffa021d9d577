//! What clients receive of a run.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::commands::criteria::Listed;
use crate::cli::commands::resume;
use crate::cli::error::CliError;
use crate::secrets::redact_text;
use crate::store::short_id;
use crate::types::{ConvergenceReason, ExitCode, Issue, RunRecord, TokenUsage};

/// The result of a run, with the names of `--format json`. A figure that is not known is null.
#[derive(Serialize, JsonSchema)]
pub(super) struct Outcome {
    /// The id of the run, for `show_run`.
    run_id: Option<String>,
    /// Whether the text meets the criteria.
    success: bool,
    /// Why the run stopped: `quality_met`, `max_iterations`, `plateau`, `token_budget`, …
    #[schemars(with = "Option<String>")]
    convergence_reason: Option<ConvergenceReason>,
    /// The selected draft; null after `evaluate`.
    output: Option<String>,
    /// The overall score, 0 to 1.
    overall_score: Option<f64>,
    /// The score of each criterion, 0 to 1.
    #[schemars(with = "BTreeMap<String, Option<f64>>")]
    criteria_scores: IndexMap<String, Option<f64>>,
    /// The open issues, most severe first, with `type`, `severity`, `description`, `suggested_fix` and `criterion`.
    #[schemars(with = "Vec<Map<String, Value>>")]
    issues: Vec<Issue>,
    /// The number of drafts.
    iterations_used: u32,
    /// The tokens of all calls: `prompt`, `completion`, `total`, `cached`.
    #[schemars(with = "BTreeMap<String, Option<u64>>")]
    token_usage: TokenUsage,
    /// The cost of all calls, by the user's prices.
    cost: Option<f64>,
    /// What went less well than it could.
    warnings: Vec<String>,
    /// What failed.
    error: Option<String>,
}

impl Outcome {
    pub(super) fn of(record: &RunRecord) -> Self {
        let judged = record.selected().or_else(|| record.best());
        let judged = judged.or(record.versions.last());
        let evaluation = judged.and_then(|version| version.evaluation.clone());
        let evaluation = evaluation.unwrap_or_default();
        Self {
            run_id: record.run_id.map(|id| id.to_string()),
            success: record.success,
            convergence_reason: record.convergence_reason,
            output: record.selected().map(|version| version.output.clone()),
            overall_score: evaluation.overall_score,
            criteria_scores: evaluation.criteria_scores,
            issues: evaluation.issues,
            iterations_used: record.iterations(),
            token_usage: record.token_usage,
            cost: record.cost(),
            warnings: record.warnings.clone(),
            error: record.error.clone(),
        }
    }
}

/// The sets of criteria that a client may name.
#[derive(Serialize, JsonSchema)]
pub(super) struct CriteriaList {
    /// The sets, with `name`, `description`, `path` (null if built in) and `error` (null if usable).
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub(super) criteria: Vec<Listed>,
}

/// What `draft`, `revise` and `evaluate` return: `texts`, and the result of the run, with its draft unless the client has
/// that. Criteria that are not met are a result; a model or a judge that fails is an error.
pub(super) fn of_run(record: &RunRecord, texts: Vec<String>, with_draft: bool) -> CallToolResult {
    let mut outcome = Outcome::of(record);
    outcome.output = outcome.output.filter(|_| with_draft);
    if let Some(ExitCode::Success | ExitCode::NotMet | ExitCode::Limit) = record.exit_code {
        return answer(texts, &outcome);
    }
    let reason = record.convergence_reason.map(ConvergenceReason::describe);
    let why = record.error.as_deref().or(reason).unwrap_or_default();
    let how = record
        .run_id
        .map(|id| resume::resume_hint(record, &short_id(id)));
    let text = format!("error: {why}{}", how.unwrap_or_default());
    let mut answer = answer(vec![text], &outcome);
    answer.is_error = Some(true);
    answer
}

/// An answer for models to read, and the same for programs.
pub(super) fn answer(texts: Vec<String>, value: &impl Serialize) -> CallToolResult {
    let texts = texts.into_iter().map(redact_text).map(ContentBlock::text);
    let mut result = CallToolResult::success(texts.collect());
    let value = serde_json::to_string(value).map(redact_text);
    result.structured_content = value
        .ok()
        .and_then(|json| serde_json::from_str::<Value>(&json).ok());
    result
}

/// A call that could not run.
pub(super) fn error(error: &CliError) -> CallToolResult {
    let text = redact_text(format!("error: {error}"));
    CallToolResult::error(vec![ContentBlock::text(text)])
}
