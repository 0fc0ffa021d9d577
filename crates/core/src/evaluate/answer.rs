//! Reading what a script returned, or a command printed as JSON, as a verdict.

use serde_json::{Map, Value};

use super::{Fault, Finding};
use crate::text::clip;
use crate::types::{Issue, IssueType, Place, Severity};

/// The most errors of one verdict that are read: a reviser can fix no more at once.
const MAX_FAULTS: usize = 50;
/// The most characters of a message that are kept.
const MAX_MESSAGE: usize = 1000;
/// The largest value that is kept with the verdict, in bytes of JSON.
const MAX_VALUE: usize = 64 << 10;

/// The names that verdicts go by, as in what judges write.
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

/// A verdict: a boolean, a number from 0 to 1, or an object with `valid`, `score`, `errors` and
/// `suggestions`, each of which may be missing. Without `valid` the score decides by the criterion's
/// `floor`; without a score, `valid` is 1 and its contrary 0. Nothing at all is not valid.
///
/// # Errors
/// Why it is no verdict: then nothing is known of the draft.
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
                    "the text `{}` is no verdict; a boolean, a number or a table with `valid`, `score` and `errors` is expected",
                    clip(text, 80)
                ));
            }
        },
        Value::Object(object) => from_object(object)?,
        Value::Array(_) => {
            return Err(
                "a list is no verdict; a boolean, a number or a table with `valid`, `score` and `errors` is expected"
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

/// A verdict in one word, with no score of its own.
fn decided(valid: bool, evidence: impl Into<String>) -> Finding {
    Finding {
        valid: Some(valid),
        ..Finding::graded(if valid { 1.0 } else { 0.0 }, evidence)
    }
}

/// The verdict that says no and nothing else.
fn failed(evidence: impl Into<String>) -> Finding {
    decided(false, evidence).with_faults([Fault::new(IssueType::Incorrect, "Validation failed")])
}

fn numeric(number: f64, floor: f64) -> Finding {
    let (score, evidence) = clamped(number);
    let fault = (score < floor).then(|| {
        Fault::new(
            IssueType::Incorrect,
            format!("Score {score} below threshold {floor}"),
        )
    });
    Finding::graded(score, evidence).with_faults(fault)
}

/// The score within 0 and 1, and what it was.
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
    let mut faults: Vec<Fault> = named.flat_map(faults_of).collect();
    let suggestions = get(object, SUGGESTIONS).map_or(Vec::new(), |(_, value)| texts(value));
    let reason = get(object, REASON).and_then(|(_, value)| text(value));

    let said = valid.is_some() || number.is_some();
    let (score, measured) = match (number, valid) {
        (Some(number), _) => {
            let (score, evidence) = clamped(number);
            (score, Some(evidence))
        }
        (None, Some(valid)) => (if valid { 1.0 } else { 0.0 }, None),
        (None, None) => (0.0, None),
    };
    // What the verdict itself calls severe is severe, whatever else it says.
    let grave = faults
        .iter()
        .any(|fault| fault.severity.is_some_and(|it| it >= Severity::Major));
    let valid = if grave || !said { Some(false) } else { valid };

    let word = match valid {
        Some(true) => Some("valid".to_owned()),
        Some(false) if !said => Some("neither `valid` nor `score` was returned".to_owned()),
        Some(false) => Some("not valid".to_owned()),
        None => None,
    };
    let evidence: Vec<String> = [word, measured, reason].into_iter().flatten().collect();
    suggest(&mut faults, suggestions);
    Ok(Finding {
        valid,
        ..Finding::graded(score, clip(&evidence.join("; "), MAX_MESSAGE)).with_faults(faults)
    })
}

/// Gives each suggestion to the error that it is for, as far as that can be known: one for each, or what
/// is left to the last; without errors, each is a fault of its own, which says nothing but its fix.
fn suggest(faults: &mut Vec<Fault>, suggestions: Vec<String>) {
    if faults.is_empty() {
        faults.extend(suggestions.into_iter().take(MAX_FAULTS).map(|suggestion| {
            Fault::new(IssueType::Missing, Issue::ONLY_SUGGESTED).fix(suggestion)
        }));
        return;
    }
    let last = faults.len() - 1;
    for (at, suggestion) in suggestions.into_iter().take(MAX_FAULTS).enumerate() {
        let fix = &mut faults[at.min(last)].suggested_fix;
        *fix = Some(match fix.take() {
            Some(before) => format!("{before} {suggestion}"),
            None => suggestion,
        });
    }
}

/// The first of these keys that has a value.
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

/// Words that mean yes or no beyond doubt. An unknown word is neither.
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

/// A text that is not empty, from whatever says one.
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
        // An empty table of Lua.
        Value::Object(object) if object.is_empty() => Vec::new(),
        other => text(other).into_iter().collect(),
    }
}

fn faults_of(value: &Value) -> Vec<Fault> {
    match value {
        Value::Array(items) => {
            let mut faults: Vec<Fault> = items.iter().filter_map(fault).collect();
            if faults.len() > MAX_FAULTS {
                let more = faults.len() - MAX_FAULTS;
                // Whether any is severe must not depend on where it stands.
                faults.sort_by_key(|fault| std::cmp::Reverse(fault.severity));
                faults.truncate(MAX_FAULTS);
                faults.push(Fault::new(
                    IssueType::Incorrect,
                    format!("{more} more errors are not shown"),
                ));
            }
            faults
        }
        Value::Object(object) if object.is_empty() => Vec::new(),
        other => fault(other).into_iter().collect(),
    }
}

/// One error: a text, or an object with `message` and what else is known.
pub(super) fn fault(value: &Value) -> Option<Fault> {
    let Value::Object(object) = value else {
        return text(value).map(|message| Fault::new(IssueType::Incorrect, message));
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
    Some(Fault {
        severity,
        suggested_fix: one(&["suggestion", "suggested_fix", "fix"]),
        ..Fault::new(kind, message).at(Place {
            line: get(object, &["line"]).and_then(|(_, value)| value.as_u64()),
            path: one(&["path"]),
            schema_path: one(&["schema_path"]),
            keyword: one(&["keyword"]),
            ..Place::default()
        })
    })
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
