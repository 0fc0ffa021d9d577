//! Reports on the evaluation of existing texts.

use std::fmt::Write as _;

use serde::Serialize;
use uuid::Uuid;

use super::findings::evaluation;
use super::json::pretty;
use super::markdown::{self, cell, table};
use super::text::{self, critique, duration, tokens};
use crate::text::{counted, one_line};
use crate::types::{Evaluation, Models, RunEvidence, RunRecord, SCHEMA_VERSION, TokenUsage};

/// The evaluation of one text as JSON. Unknown values are null.
#[derive(Serialize)]
struct Evaluated<'a> {
    schema_version: u32,
    run_id: Option<Uuid>,
    /// The file; null for standard input.
    file: Option<&'a str>,
    /// Whether the text meets the criteria.
    success: bool,
    evaluation: Option<&'a Evaluation>,
    total_llm_calls: u32,
    token_usage: TokenUsage,
    /// In the unit of the user's prices.
    cost: Option<f64>,
    /// Seconds.
    execution_time: Option<f64>,
    models: Option<&'a Models>,
    /// The evidence that the text was checked against.
    evidence: &'a [RunEvidence],
    warnings: &'a [String],
    error: Option<&'a str>,
}

/// Formats evaluations as JSON, in the order given: one object for a single text, otherwise an array.
pub fn critiques_json(records: &[(Option<String>, RunRecord)]) -> String {
    let evaluated: Vec<Evaluated<'_>> = records
        .iter()
        .map(|(file, record)| Evaluated {
            schema_version: SCHEMA_VERSION,
            run_id: record.run_id,
            file: file.as_deref(),
            success: record.success,
            evaluation: evaluation(record),
            total_llm_calls: record.total_llm_calls,
            token_usage: record.token_usage,
            cost: record.cost(),
            execution_time: record.execution_time(),
            models: record.models.as_ref(),
            evidence: &record.evidence,
            warnings: &record.warnings,
            error: record.error.as_deref(),
        })
        .collect();
    match evaluated.as_slice() {
        [only] => pretty(only),
        all => pretty(all),
    }
}

/// Formats the evaluation of one text: a headline, the criteria and the issues.
pub fn critique_text(name: &str, record: &RunRecord) -> String {
    let mut out = format!("{name}: {}\n", headline(record));
    if let Some(evaluation) = evaluation(record) {
        out.push_str(&critique(evaluation));
    }
    out
}

/// Formats the evaluation of one text as Markdown.
pub fn critique_markdown(name: &str, record: &RunRecord) -> String {
    let mut out = format!("## {}: {}\n\n", cell(name), headline(record));
    if let Some(evaluation) = evaluation(record) {
        table(&mut out, evaluation);
    }
    markdown::evidence(&mut out, record);
    for warning in &record.warnings {
        let _ = writeln!(out, "> Warning: {}\n", one_line(warning));
    }
    if let Some(error) = &record.error {
        let _ = writeln!(out, "> Error: {}\n", one_line(error));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Formats the total cost of evaluations on one line; `None` if no model was called.
pub fn cost(records: &[(Option<String>, RunRecord)]) -> Option<String> {
    let calls: u32 = records
        .iter()
        .map(|(_, record)| record.total_llm_calls)
        .sum();
    if calls == 0 {
        return None;
    }
    let mut usage = TokenUsage::default();
    for (_, record) in records {
        usage += record.token_usage;
    }
    let seconds: f64 = records
        .iter()
        .filter_map(|(_, record)| record.execution_time())
        .sum();
    let calls = counted(calls, "call");
    let asked = records.iter().filter(|(_, r)| r.total_llm_calls > 0);
    let costs: Option<f64> = asked.map(|(_, record)| record.cost()).sum();
    let parts = [
        Some(calls),
        tokens(&usage),
        costs.map(text::cost),
        Some(duration(seconds)),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
}

/// The verdict on a text, on one line.
pub(super) fn headline(record: &RunRecord) -> String {
    let Some(evaluation) = evaluation(record) else {
        return "not judged".to_owned();
    };
    let verdict = if evaluation.satisfactory {
        "meets the criteria"
    } else if evaluation.rank().is_some() {
        "does not meet the criteria"
    } else {
        "could not be judged"
    };
    match evaluation.overall_score {
        Some(score) if evaluation.rank().is_some() => {
            let why = record.versions.first().and_then(text::unmet);
            let why = why.map_or_else(String::new, |why| format!("; not met: {why}"));
            format!("{verdict}, score {score:.2}{why}")
        }
        Some(score) => format!("{verdict} for some criteria; the others score {score:.2}"),
        None => verdict.to_owned(),
    }
}
