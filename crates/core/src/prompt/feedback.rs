use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::text::{clip, one_line};
use crate::types::{Evaluation, Issue, Place, Status};

/// The maximum length of a quotation that locates an issue, in characters.
const QUOTED: usize = 160;

/// What a revision must fix and what it must keep.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Feedback {
    /// The issues to fix, most severe first.
    pub issues: Vec<Issue>,
    /// Failed criteria without an issue, each with the basis of its verdict.
    pub(super) unmet: Vec<(String, Option<String>)>,
    /// The criteria that are met.
    pub(super) met: Vec<String>,
}

impl Feedback {
    /// Creates the feedback from an evaluation.
    pub fn new(evaluation: Option<&Evaluation>) -> Self {
        let issues = evaluation.map_or_else(Vec::new, |evaluation| evaluation.issues.clone());
        let results = evaluation.map(|evaluation| evaluation.criteria.as_slice());
        let judged = || {
            let results = results.unwrap_or_default().iter();
            results.filter(|result| result.status == Status::Ok)
        };
        let named = |name: &str| {
            issues
                .iter()
                .any(|issue| issue.criterion.as_deref() == Some(name))
        };
        Self {
            unmet: judged()
                .filter(|result| !result.passed && !named(&result.name))
                .map(|result| (result.name.clone(), result.evidence.clone()))
                .collect(),
            met: judged()
                .filter(|result| result.passed && !named(&result.name))
                .map(|result| result.name.clone())
                .collect(),
            issues,
        }
    }

    /// Returns the criteria that are met, as prompts name them.
    pub(super) fn met_names(&self) -> Vec<String> {
        self.met.iter().map(|name| format!("`{name}`")).collect()
    }

    /// Returns the feedback as the writer receives it, one item per line. `required` maps criteria
    /// to their requirements; `wished` says whether the user gave instructions.
    pub(super) fn describe(&self, required: &BTreeMap<String, String>, wished: bool) -> String {
        let mut lines = describe_issues(&self.issues);
        for (name, evidence) in &self.unmet {
            if !lines.is_empty() {
                lines.push('\n');
            }
            let what = required.get(name).unwrap_or(name);
            let _ = write!(lines, "- major: not met: {}", one_line(what));
            if let Some(evidence) = evidence {
                let _ = write!(lines, " ({})", one_line(evidence));
            }
        }
        if lines.is_empty() && wished {
            return "No issues. Change only what the user asks for.".to_owned();
        }
        if lines.is_empty() {
            return "No single issue was named. Meet every requirement more fully.".to_owned();
        }
        lines
    }
}

/// Returns issues as the writer receives them, one per line, in the given order: severity, place,
/// description and fix.
pub(super) fn describe_issues(issues: &[Issue]) -> String {
    let lines: Vec<String> = issues
        .iter()
        .map(|issue| {
            let mut line = format!("- {}", issue.severity.as_str());
            line.push_str(&place(&issue.place));
            line.push_str(": ");
            line.push_str(issue.description.trim());
            if issue.suggested_fix.is_some() && !line.ends_with(['.', '!', '?', ':']) {
                line.push('.');
            }
            if let Some(claim) = &issue.place.claim {
                let _ = write!(line, " Claim: \"{}\".", claim.trim());
            }
            if let Some(fix) = &issue.suggested_fix {
                line.push_str(" Fix: ");
                line.push_str(fix.trim());
            }
            line
        })
        .collect();
    lines.join("\n")
}

fn place(place: &Place) -> String {
    let mut out = String::new();
    if let Some(line) = place.line {
        let _ = write!(out, ", line {line}");
    }
    match place.path.as_deref() {
        Some("") => out.push_str(", in the whole value"),
        Some(path) => {
            let _ = write!(out, ", at `{path}`");
        }
        None => {}
    }
    if let Some(quote) = place
        .quote
        .as_deref()
        .filter(|_| place.verified != Some(false))
    {
        let _ = write!(out, ", at \"{}\"", clip(&one_line(quote), QUOTED));
    }
    out
}
