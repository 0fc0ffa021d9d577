use std::fmt::Write as _;

use super::text::{asides, doubt, mark, revised, score, summary, value};
use crate::text::one_line;
use crate::types::{Evaluation, RunEvidence, RunRecord, Version};

/// Formats the selected draft and, after a rule, the critique report, for pasting into a pull request.
pub fn markdown(record: &RunRecord) -> String {
    let mut out = String::new();
    if let Some(selected) = record.selected() {
        let _ = writeln!(out, "{}\n\n---\n", selected.output.trim_end());
    }
    let _ = writeln!(
        out,
        "## Critique report\n\n{}.\n",
        capitalized(&summary(record))
    );
    for version in &record.versions {
        describe(&mut out, version, record.selected);
    }
    evidence(&mut out, record);
    for warning in &record.warnings {
        let _ = writeln!(out, "> Warning: {}\n", one_line(warning));
    }
    if let Some(error) = &record.error {
        let _ = writeln!(out, "> Error: {}\n", one_line(error));
    }
    while out.ends_with("\n\n") {
        out.pop();
    }
    out
}

fn describe(out: &mut String, version: &Version, selected: Option<u32>) {
    let mark = if selected == Some(version.iteration) {
        ", selected"
    } else {
        ""
    };
    let from = revised(version)
        .map(|from| format!(", {from}"))
        .unwrap_or_default();
    let _ = writeln!(
        out,
        "### Draft {}: {}{mark}{from}\n",
        version.iteration,
        score(version.score())
    );
    let Some(evaluation) = &version.evaluation else {
        out.push_str("Not judged.\n\n");
        return;
    };
    table(out, evaluation);
    if !version.improvements_applied.is_empty() {
        out.push_str("Resolved: ");
        let resolved: Vec<String> = version
            .improvements_applied
            .iter()
            .map(|text| one_line(text))
            .collect();
        out.push_str(&resolved.join("; "));
        out.push_str("\n\n");
    }
}

/// Adds a table of the criteria and a list of the issues.
pub(super) fn table(out: &mut String, evaluation: &Evaluation) {
    out.push_str("| criterion | score | floor | | evidence |\n|---|---|---|---|---|\n");
    for result in &evaluation.criteria {
        let _ = writeln!(
            out,
            "| {} | {} | {:.2} | {} | {} |",
            cell(&result.name),
            value(result),
            result.threshold,
            mark(result),
            cell(
                &[
                    result.evidence.clone(),
                    asides(result).map(|text| format!("({text})"))
                ]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" ")
            )
        );
    }
    out.push('\n');
    for issue in &evaluation.issues {
        let _ = write!(
            out,
            "- **{}**, {}: {}",
            issue.severity.as_str(),
            issue.kind.as_str(),
            one_line(&issue.description)
        );
        if let Some(doubt) = doubt(issue) {
            let _ = write!(out, " *({doubt})*");
        }
        if let Some(claim) = &issue.place.claim {
            let _ = write!(out, " *Claim:* {}", one_line(claim));
        }
        if let Some(fix) = &issue.suggested_fix {
            let _ = write!(out, " *Fix:* {}", one_line(fix));
        }
        out.push('\n');
    }
    if !evaluation.issues.is_empty() {
        out.push('\n');
    }
}

/// Adds the evidence that drafts were checked against, one item per line.
pub(super) fn evidence(out: &mut String, record: &RunRecord) {
    if record.evidence.is_empty() {
        return;
    }
    out.push_str("### Evidence\n\n");
    for RunEvidence { evidence, .. } in &record.evidence {
        let place = evidence.location.as_ref().unwrap_or(&evidence.content);
        let _ = write!(out, "- {}: {}", evidence.source.as_str(), one_line(place));
        if let Some(relevance) = evidence.relevance {
            let _ = write!(out, " (relevance {relevance:.2})");
        }
        out.push('\n');
    }
    out.push('\n');
}

/// Escapes text for a table cell, which a line break or `|` would end.
pub(super) fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

pub(super) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}
