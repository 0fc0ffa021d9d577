//! The verdict of a single evaluator as JSON: `success`, `valid`, `score`, `errors`,
//! `suggestions`.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::json::pretty;
use super::markdown::cell;
use crate::text::one_line;
use crate::types::{
    CriterionResult, Evaluation, Issue, Models, RunRecord, SCHEMA_VERSION, Severity, Status,
    TokenUsage,
};

/// The verdict on one text. Unknown values are null.
#[derive(Serialize)]
struct Verdict<'a> {
    schema_version: u32,
    run_id: Option<Uuid>,
    /// The file; null for standard input.
    file: Option<&'a str>,
    /// The evaluator's kind.
    evaluator: Option<&'a str>,
    /// Whether there is a verdict, positive or negative.
    success: bool,
    /// Whether the text passes.
    valid: bool,
    /// From 0 to 1; for a schema, either 0 or 1.
    score: Option<f64>,
    /// From 0 to 1, for ranking invalid texts.
    ranking_score: Option<f64>,
    errors: Vec<Fault<'a>>,
    suggestions: &'a [String],
    /// `ok`, `unparsed` or `failed`.
    status: Status,
    /// The reason for the verdict, or why there is none.
    reason: Option<&'a str>,
    /// The value that the evaluator computed from the text, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    total_llm_calls: u32,
    token_usage: TokenUsage,
    /// In the unit of the user's prices.
    cost: Option<f64>,
    /// Seconds.
    execution_time: Option<f64>,
    models: Option<&'a Models>,
    warnings: &'a [String],
    error: Option<&'a str>,
}

/// An error in the text.
#[derive(Serialize)]
struct Fault<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyword: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<Severity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<&'a str>,
}

impl<'a> Fault<'a> {
    fn of(issue: &'a Issue) -> Self {
        Self {
            message: &issue.description,
            path: issue.place.path.as_deref(),
            keyword: issue.place.keyword.as_deref(),
            schema_path: issue.place.schema_path.as_deref(),
            line: issue.place.line,
            severity: Some(issue.severity),
            suggestion: issue.suggested_fix.as_deref(),
        }
    }

    fn from_message(message: &'a str) -> Self {
        Self {
            message,
            path: None,
            keyword: None,
            schema_path: None,
            line: None,
            severity: None,
            suggestion: None,
        }
    }
}

impl<'a> Verdict<'a> {
    fn of(file: Option<&'a str>, record: &'a RunRecord) -> Self {
        let evaluation = record
            .versions
            .first()
            .and_then(|version| version.evaluation.as_ref());
        let result = evaluation.and_then(|evaluation| evaluation.criteria.first());
        let valid = evaluation.is_some_and(|evaluation| evaluation.satisfactory);
        let ranking_score = result.and_then(|result| result.score);
        let strict = result.is_some_and(|result| result.evaluator == "schema");
        let score = ranking_score.map(|score| match (strict, valid) {
            (false, _) => score,
            (true, true) => 1.0,
            (true, false) => 0.0,
        });
        let status = evaluation.map_or(Status::Failed, |evaluation| evaluation.status);
        Self {
            schema_version: SCHEMA_VERSION,
            run_id: record.run_id,
            file,
            evaluator: result.map(|result| result.evaluator.as_str()),
            success: status == Status::Ok,
            valid,
            score,
            ranking_score,
            errors: errors(evaluation, result, record),
            suggestions: evaluation.map_or(&[], |evaluation| &evaluation.suggestions),
            status,
            reason: result.and_then(|result| result.evidence.as_deref()),
            value: result.and_then(|result| result.value.as_ref()),
            total_llm_calls: record.total_llm_calls,
            token_usage: record.token_usage,
            cost: record.cost(),
            execution_time: record.execution_time(),
            models: record.models.as_ref(),
            warnings: &record.warnings,
            error: record.error.as_deref(),
        }
    }

    fn headline(&self) -> String {
        let verdict = match (self.success, self.valid) {
            (true, true) => "valid",
            (true, false) => "invalid",
            (false, _) => return "could not be judged".to_owned(),
        };
        match (self.score, self.ranking_score) {
            (Some(score), Some(ranking)) if (score - ranking).abs() > f64::EPSILON => {
                format!("{verdict}, score {score:.2} ({ranking:.2} for ranking)")
            }
            (Some(score), _) => format!("{verdict}, score {score:.2}"),
            (None, _) => verdict.to_owned(),
        }
    }
}

/// Lists the errors. If a judge fails a text without naming an issue, its reason is the error.
fn errors<'a>(
    evaluation: Option<&'a Evaluation>,
    result: Option<&'a CriterionResult>,
    record: &'a RunRecord,
) -> Vec<Fault<'a>> {
    let (Some(evaluation), Some(result)) = (evaluation, result) else {
        return record
            .error
            .as_deref()
            .map(Fault::from_message)
            .into_iter()
            .collect();
    };
    // Suggestions are not errors in a text that passes.
    let is_error = |issue: &&Issue| !(evaluation.satisfactory && issue.is_suggestion());
    let issues: Vec<_> = (evaluation.issues.iter().filter(is_error))
        .map(Fault::of)
        .collect();
    if !issues.is_empty() {
        return issues;
    }
    let reason = result.evidence.as_deref();
    match (result.status, result.passed) {
        (Status::Ok, true) => Vec::new(),
        (Status::Ok, false) if result.evaluator != "llm" => Vec::new(),
        (Status::Ok, false) => vec![Fault::from_message(
            reason.unwrap_or("the judge gave no reason"),
        )],
        _ => vec![Fault::from_message(reason.unwrap_or("no verdict"))],
    }
}

/// Formats verdicts as JSON, in the order given: one object for a single text, otherwise an array.
pub fn verdicts_json(records: &[(Option<String>, RunRecord)]) -> String {
    let verdicts: Vec<Verdict<'_>> = records
        .iter()
        .map(|(file, record)| Verdict::of(file.as_deref(), record))
        .collect();
    match verdicts.as_slice() {
        [only] => pretty(only),
        all => pretty(all),
    }
}

/// Formats the verdict on one text: a headline, then the errors and suggestions.
pub fn verdict_text(name: &str, record: &RunRecord) -> String {
    let verdict = Verdict::of(None, record);
    let mut out = format!("{name}: {}\n", verdict.headline());
    if let Some(reason) = verdict.reason {
        let _ = writeln!(out, "  {}", one_line(reason));
    }
    for fault in &verdict.errors {
        let _ = writeln!(out, "  - {}{}", at(fault), one_line(fault.message));
        if let Some(fix) = fault.suggestion {
            let _ = writeln!(out, "    fix: {}", one_line(fix));
        }
    }
    for suggestion in other_suggestions(&verdict) {
        let _ = writeln!(out, "  suggestion: {}", one_line(suggestion));
    }
    out
}

/// Formats the verdict on one text as Markdown.
pub fn verdict_markdown(name: &str, record: &RunRecord) -> String {
    let verdict = Verdict::of(None, record);
    let mut out = format!("## {}: {}\n", cell(name), verdict.headline());
    if let Some(reason) = verdict.reason {
        let _ = write!(out, "\n{}\n", one_line(reason));
    }
    if !verdict.errors.is_empty() {
        out.push_str("\n### Errors\n\n");
    }
    for fault in &verdict.errors {
        let _ = writeln!(out, "- {}{}", at(fault), one_line(fault.message));
        if let Some(fix) = fault.suggestion {
            let _ = writeln!(out, "  - Fix: {}", one_line(fix));
        }
    }
    let suggestions: Vec<&str> = other_suggestions(&verdict).collect();
    if !suggestions.is_empty() {
        out.push_str("\n### Suggestions\n\n");
    }
    for suggestion in suggestions {
        let _ = writeln!(out, "- {}", one_line(suggestion));
    }
    out
}

/// The line of an error as a prefix, such as `line 3: `.
fn at(fault: &Fault<'_>) -> String {
    fault
        .line
        .map(|line| format!("line {line}: "))
        .unwrap_or_default()
}

/// The suggestions that belong to no error.
fn other_suggestions<'v>(verdict: &'v Verdict<'_>) -> impl Iterator<Item = &'v str> {
    verdict
        .suggestions
        .iter()
        .map(String::as_str)
        .filter(|text| {
            !verdict
                .errors
                .iter()
                .any(|fault| fault.suggestion == Some(text))
        })
}
