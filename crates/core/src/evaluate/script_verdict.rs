//! Parses the value that a script returned, or the JSON that a command printed, as a verdict.

use serde_json::{Map, Value};

use super::{CheckIssue, Finding};
use crate::text::clip;
use crate::types::{Issue, IssueType, Place, Severity};

/// The maximum number of errors read from one verdict. A revision cannot fix more at once.
const MAX_ISSUES: usize = 50;
/// The maximum length of a stored message, in characters.
const MAX_MESSAGE: usize = 1000;
/// The maximum size of the value stored with the verdict, in bytes of JSON.
const MAX_VALUE: usize = 64 << 10;

/// Accepted key names, the same as in judges' verdicts.
const VALID: &[&str] = &[
    "valid",
    "pass",
    "passes",
    "passed",
    "satisfactory",
    "success",
];
const SCORE: &[&str] = &["score", "overall_score", "quality_score"];
const ERRORS: &[&str] = &["errors", "issues", "error"];
const SUGGESTIONS: &[&str] = &["suggestions", "suggestion"];
const REASON: &[&str] = &["feedback", "reason", "message"];

/// Parses a verdict: a boolean, a number from 0 to 1, or an object with the optional keys `valid`,
/// `score`, `errors` and `suggestions`. Without `valid`, the score is compared with the criterion's
/// `floor`; without a score, a valid draft scores 1 and an invalid one 0. A missing value counts as
/// invalid.
///
/// # Errors
/// If the value is not a verdict. The draft then remains unjudged.
pub(super) fn read(value: &Value, floor: f64) -> Result<Finding, String> {
    let finding = match value {
        Value::Bool(true) => decided(true, "valid"),
        Value::Bool(false) => failed("not valid"),
        Value::Null => failed("it returned nothing, which counts as not valid"),
        Value::Number(number) => numeric(number.as_f64().unwrap_or(0.0), floor),
        Value::String(text) => match truth(text) {
            Some(true) => decided(true, format!("`{}`", text.trim())),
            Some(false) => failed(format!("`{}`", text.trim())),
            None => {
                return Err(format!(
                    "the text `{}` is not a verdict; a boolean, a number or a table with `valid`, `score` and `errors` is expected",
                    clip(text, 80)
                ));
            }
        },
        Value::Object(object) => from_object(object)?,
        Value::Array(_) => {
            return Err(
                "a list is not a verdict; a boolean, a number or a table with `valid`, `score` and `errors` is expected"
                    .to_owned(),
            );
        }
    };
    let small = value.to_string().len() <= MAX_VALUE;
    Ok(Finding {
        value: Some(value.clone()).filter(|value| small && !value.is_null()),
        ..finding
    })
}

/// Returns a pass or fail verdict without a score of its own.
fn decided(valid: bool, evidence: impl Into<String>) -> Finding {
    Finding {
        valid: Some(valid),
        ..Finding::graded(if valid { 1.0 } else { 0.0 }, evidence)
    }
}

/// Returns a failed verdict without details.
fn failed(evidence: impl Into<String>) -> Finding {
    decided(false, evidence)
        .with_issues([CheckIssue::new(IssueType::Incorrect, "Validation failed")])
}

fn numeric(number: f64, floor: f64) -> Finding {
    let (score, evidence) = clamped(number);
    let issue = (score < floor).then(|| {
        CheckIssue::new(
            IssueType::Incorrect,
            format!("Score {score} below threshold {floor}"),
        )
    });
    Finding::graded(score, evidence).with_issues(issue)
}

/// Clamps the score to 0–1 and describes the original value.
fn clamped(number: f64) -> (f64, String) {
    let score = number.clamp(0.0, 1.0);
    if (0.0..=1.0).contains(&number) {
        (score, format!("score {number}"))
    } else {
        (
            score,
            format!("score {number}, taken as {score}: scores go from 0 to 1"),
        )
    }
}

fn from_object(object: &Map<String, Value>) -> Result<Finding, String> {
    let valid = match get(object, VALID) {
        Some((key, value)) => {
            Some(flag(value).ok_or_else(|| unreadable(key, value, "true or false"))?)
        }
        None => None,
    };
    let number = match get(object, SCORE) {
        Some((key, value)) => {
            Some(number(value).ok_or_else(|| unreadable(key, value, "a number from 0 to 1"))?)
        }
        None => None,
    };
    let named = ERRORS.iter().filter_map(|key| object.get(*key));
    let mut issues: Vec<CheckIssue> = named.flat_map(issues_of).collect();
    let suggestions = get(object, SUGGESTIONS).map_or(Vec::new(), |(_, value)| texts(value));
    let reason = get(object, REASON).and_then(|(_, value)| text(value));

    let has_verdict = valid.is_some() || number.is_some();
    let (score, measured) = match (number, valid) {
        (Some(number), _) => {
            let (score, evidence) = clamped(number);
            (score, Some(evidence))
        }
        (None, Some(valid)) => (if valid { 1.0 } else { 0.0 }, None),
        (None, None) => (0.0, None),
    };
    // Severe errors fail the draft, whatever `valid` and `score` say.
    let severe = issues
        .iter()
        .any(|issue| issue.severity.is_some_and(|it| it >= Severity::Major));
    let valid = if severe || !has_verdict {
        Some(false)
    } else {
        valid
    };

    let word = match valid {
        Some(true) => Some("valid".to_owned()),
        Some(false) if !has_verdict => Some("neither `valid` nor `score` was returned".to_owned()),
        Some(false) => Some("not valid".to_owned()),
        None => None,
    };
    let evidence: Vec<String> = [word, measured, reason].into_iter().flatten().collect();
    suggest(&mut issues, suggestions);
    Ok(Finding {
        valid,
        ..Finding::graded(score, clip(&evidence.join("; "), MAX_MESSAGE)).with_issues(issues)
    })
}

/// Assigns each suggestion to its error where this is clear: one per error, with any surplus added
/// to the last. Without errors, each suggestion becomes an issue that consists only of its fix.
fn suggest(issues: &mut Vec<CheckIssue>, suggestions: Vec<String>) {
    if issues.is_empty() {
        issues.extend(suggestions.into_iter().take(MAX_ISSUES).map(|suggestion| {
            CheckIssue::new(IssueType::Missing, Issue::ONLY_SUGGESTED).fix(suggestion)
        }));
        return;
    }
    let last = issues.len() - 1;
    for (at, suggestion) in suggestions.into_iter().take(MAX_ISSUES).enumerate() {
        let fix = &mut issues[at.min(last)].suggested_fix;
        *fix = Some(match fix.take() {
            Some(before) => format!("{before} {suggestion}"),
            None => suggestion,
        });
    }
}

/// Returns the first of these keys that has a value.
fn get<'o, 'k>(object: &'o Map<String, Value>, keys: &[&'k str]) -> Option<(&'k str, &'o Value)> {
    keys.iter()
        .find_map(|key| Some((*key, object.get(*key).filter(|value| !value.is_null())?)))
}

fn unreadable(key: &str, value: &Value, wanted: &str) -> String {
    format!(
        "`{key}` is {}, expected {wanted}",
        clip(&value.to_string(), 80)
    )
}

/// Parses words that unambiguously mean yes or no. `None` for unknown words.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "ok" | "pass" | "passed" | "valid" => Some(true),
        "" | "false" | "no" | "fail" | "failed" | "invalid" => Some(false),
        _ => None,
    }
}

fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => truth(text),
        Value::Number(number) => number.as_f64().map(|number| number > 0.0),
        _ => None,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|n: &f64| n.is_finite()),
        Value::Bool(flag) => Some(if *flag { 1.0 } else { 0.0 }),
        _ => None,
    }
}

/// Returns the value as a non-empty string, or `None`.
fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    (!text.is_empty()).then(|| clip(&text, MAX_MESSAGE))
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(text).collect(),
        // Lua writes an empty list as an empty table.
        Value::Object(object) if object.is_empty() => Vec::new(),
        other => text(other).into_iter().collect(),
    }
}

fn issues_of(value: &Value) -> Vec<CheckIssue> {
    match value {
        Value::Array(items) => {
            let mut issues: Vec<CheckIssue> = items.iter().filter_map(issue).collect();
            if issues.len() > MAX_ISSUES {
                let more = issues.len() - MAX_ISSUES;
                // Sort before cutting, so that severe errors survive wherever they stand.
                issues.sort_by_key(|issue| std::cmp::Reverse(issue.severity));
                issues.truncate(MAX_ISSUES);
                issues.push(CheckIssue::new(
                    IssueType::Incorrect,
                    format!("{more} more errors are not shown"),
                ));
            }
            issues
        }
        Value::Object(object) if object.is_empty() => Vec::new(),
        other => issue(other).into_iter().collect(),
    }
}

/// Parses one error: a string, or an object with `message` and further details.
pub(super) fn issue(value: &Value) -> Option<CheckIssue> {
    let Value::Object(object) = value else {
        return text(value).map(|message| CheckIssue::new(IssueType::Incorrect, message));
    };
    let one = |keys: &[&str]| get(object, keys).and_then(|(_, value)| text(value));
    let word = |key: &str| one(&[key]).map(|word| word.to_ascii_lowercase());
    let message = one(&["message", "description", "error", "msg", "reason"])
        .or_else(|| text(value).filter(|_| !object.is_empty()))?;
    let kind = match word("type").as_deref() {
        Some("missing") => IssueType::Missing,
        Some("unsupported") => IssueType::Unsupported,
        _ => IssueType::Incorrect,
    };
    let severity = match word("severity").as_deref() {
        Some("minor" | "low" | "info" | "warning") => Some(Severity::Minor),
        Some("major" | "high" | "error") => Some(Severity::Major),
        Some("critical" | "fatal" | "blocker") => Some(Severity::Critical),
        _ => None,
    };
    Some(CheckIssue {
        severity,
        suggested_fix: one(&["suggestion", "suggested_fix", "fix"]),
        ..CheckIssue::new(kind, message).at(Place {
            line: get(object, &["line"]).and_then(|(_, value)| value.as_u64()),
            path: one(&["path"]),
            schema_path: one(&["schema_path"]),
            keyword: one(&["keyword"]),
            ..Place::default()
        })
    })
}

#[cfg(test)]
#[path = "script_verdict_tests.rs"]
mod tests;
