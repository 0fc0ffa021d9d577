//! Reports on the outcome of plans that other programs ran.

use std::fmt::Write as _;

use serde::Serialize;

use super::json::pretty;
use super::markdown::{capitalized, cell};
use super::text::thousands;
use crate::reflector::{Insight, PlanAssessment};
use crate::text::one_line;
use crate::types::{ModelId, ReflectionCriteria, SCHEMA_VERSION};

/// The maximum number of issues in text and Markdown. JSON has all of them.
const MAX_ISSUES: usize = 20;
/// The maximum number of tasks per pattern in text and Markdown. JSON has all of them.
const MAX_TASKS: usize = 8;

/// The maximum number of suggestions in the brief report.
const MAX_SUGGESTIONS: usize = 4;

/// A report on the outcome of a plan.
#[derive(Debug)]
pub struct AssessmentReport<'a> {
    /// The verdict.
    pub assessment: &'a PlanAssessment,
    /// The insights from the outcome.
    pub insights: &'a [Insight],
    /// The criteria of the verdict.
    pub criteria: &'a ReflectionCriteria,
    /// The model that was asked for suggestions, if any.
    pub model: Option<&'a ModelId>,
    /// Warnings to show with the report.
    pub warnings: &'a [String],
}

/// Formats the report as one JSON object, indented, with a final newline.
pub fn assessment_json(report: &AssessmentReport<'_>) -> String {
    #[derive(Serialize)]
    struct Printed<'a> {
        schema_version: u32,
        #[serde(flatten)]
        assessment: &'a PlanAssessment,
        insights: &'a [Insight],
        criteria: &'a ReflectionCriteria,
        model: Option<&'a ModelId>,
        warnings: &'a [String],
    }
    pretty(&Printed {
        schema_version: SCHEMA_VERSION,
        assessment: report.assessment,
        insights: report.insights,
        criteria: report.criteria,
        model: report.model,
        warnings: report.warnings,
    })
}

/// Formats the report as text: a headline, then issues, patterns, suggestions and insights.
pub fn assessment_text(report: &AssessmentReport<'_>) -> String {
    let mut out = format!("{}\n", headline(report.assessment));
    for (title, lines) in sections(report) {
        let _ = writeln!(out, "{title}:");
        for line in lines {
            let _ = writeln!(out, "  - {}", one_line(&line));
        }
    }
    out
}

/// Formats the verdict in a few lines: the headline, the patterns and the first suggestions.
pub fn assessment_brief(assessment: &PlanAssessment) -> Vec<String> {
    let patterns = patterns(assessment).map(|pattern| format!("pattern: {pattern}"));
    let suggestions = assessment.verdict.suggestions.iter();
    let suggestions = suggestions
        .take(MAX_SUGGESTIONS)
        .map(|suggestion| format!("suggestion: {suggestion}"));
    let lines = patterns.chain(suggestions);
    std::iter::once(headline(assessment))
        .chain(lines.map(|line| one_line(&line)))
        .collect()
}

/// Formats the report as Markdown.
pub fn assessment_markdown(report: &AssessmentReport<'_>) -> String {
    let mut out = format!("## {}\n", cell(&headline(report.assessment)));
    for (title, lines) in sections(report) {
        let _ = writeln!(out, "\n### {}\n", capitalized(title));
        for line in lines {
            let _ = writeln!(out, "- {}", one_line(&line));
        }
    }
    for warning in report.warnings {
        let _ = writeln!(out, "\n> Warning: {}", one_line(warning));
    }
    out
}

fn headline(assessment: &PlanAssessment) -> String {
    let verdict = &assessment.verdict;
    let plan = verdict.plan_id.as_deref().unwrap_or_default();
    let outcome = if verdict.success {
        "succeeded"
    } else {
        "failed"
    };
    let number = |count: usize| thousands(u64::try_from(count).unwrap_or(u64::MAX));
    let mut counts = vec![format!(
        "{} of {} tasks done",
        number(assessment.succeeded),
        number(assessment.total)
    )];
    if assessment.failed > 0 {
        counts.push(format!("{} failed", number(assessment.failed)));
    }
    if assessment.incomplete > 0 {
        counts.push(format!("{} incomplete", number(assessment.incomplete)));
    }
    if verdict.should_replan {
        counts.push("try another plan".to_owned());
    }
    format!(
        "{plan}: {outcome}, {} · confidence {:.2}",
        counts.join(", "),
        verdict.confidence
    )
}

/// Returns the sections that are not empty, each with its title.
fn sections(report: &AssessmentReport<'_>) -> Vec<(&'static str, Vec<String>)> {
    let assessment = report.assessment;
    let suggestions = assessment.verdict.suggestions.iter().map(|suggestion| {
        if assessment.model_suggestions.contains(suggestion) {
            format!("{suggestion} [model]")
        } else {
            suggestion.clone()
        }
    });
    let insights = report
        .insights
        .iter()
        .map(|insight| format!("{} ({:.2})", insight.text, insight.confidence));
    let all = [
        ("issues", shortened(&assessment.verdict.issues, MAX_ISSUES)),
        ("patterns", patterns(assessment).collect()),
        ("suggestions", suggestions.collect()),
        ("learned", insights.collect()),
    ];
    all.into_iter()
        .filter(|(_, lines)| !lines.is_empty())
        .collect()
}

/// Formats the patterns of failures, one line each.
fn patterns(assessment: &PlanAssessment) -> impl Iterator<Item = String> {
    assessment.patterns.iter().map(|pattern| {
        format!(
            "{}: {} ({})",
            pattern.pattern_type,
            pattern.description,
            shortened(&pattern.affected_tasks, MAX_TASKS).join(", ")
        )
    })
}

fn shortened(texts: &[String], most: usize) -> Vec<String> {
    let mut shown: Vec<String> = texts.iter().take(most).cloned().collect();
    if texts.len() > most {
        shown.push(format!("and {} more", texts.len() - most));
    }
    shown
}
