//! Reading a judge's reply: what it asks for, and all that models write instead.

use serde_json::{Map, Value, json};

use crate::prompt::{MAX_ISSUES, SCALE};
use crate::types::{Issue, IssueType, Place, Severity};

/// The most objects that are tried in a reply: each try reads on to the object's end.
const MAX_TRIES: usize = 200;

/// A verdict that could be read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    /// Score (0 to 1) and reason of each criterion, in the order asked for.
    pub(super) scores: Vec<(f64, String)>,
    pub(super) issues: Vec<Issue>,
    /// 0 to 1; `None` if the judge did not say.
    pub(super) confidence: Option<f64>,
}

/// The JSON Schema of a verdict on the criteria with these names; of the strict kind, so that every
/// server that enforces schemas takes it. The limits on lengths keep a small model from rambling; adapters
/// leave out what their server does not know.
pub(super) fn schema(names: &[&str]) -> Value {
    let steps: Vec<u8> = SCALE.iter().map(|anchor| anchor.step).collect();
    let text = |limit: u32| json!({ "type": "string", "maxLength": limit });
    let closed = |properties: Value| {
        let required: Vec<String> = properties
            .as_object()
            .map(|object| object.keys().cloned().collect())
            .unwrap_or_default();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    };
    let scores: Map<String, Value> = names
        .iter()
        .map(|name| {
            let score = closed(json!({
                "reason": text(400),
                "score": { "type": "integer", "enum": steps },
            }));
            ((*name).to_owned(), score)
        })
        .collect();
    let issue = closed(json!({
        "type": { "type": "string", "enum": ["missing", "unsupported", "incorrect"] },
        "severity": { "type": "string", "enum": ["minor", "major", "critical"] },
        "criterion": { "type": "string", "enum": names },
        "description": text(400),
        "claim": text(300),
        "suggested_fix": text(400),
    }));
    closed(json!({
        "scores": closed(Value::Object(scores)),
        "issues": { "type": "array", "items": issue, "maxItems": MAX_ISSUES },
        "confidence": { "type": "number" },
    }))
}

/// Reads a verdict on the criteria with these names.
///
/// Fences, prose around the JSON and other common forms of it are accepted; a missing criterion or a
/// score that is not on the scale is not, for both would have to be made up.
///
/// # Errors
/// What is wrong, to be told to the judge and to people.
pub(super) fn read(reply: &str, names: &[&str]) -> Result<Verdict, String> {
    if reply.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut problem = None;
    // The last object that is a verdict counts: before it, models think aloud or repeat the example.
    for object in objects(reply).iter().rev() {
        match read_object(object, names) {
            Ok(verdict) => return Ok(verdict),
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    Err(problem.unwrap_or_else(|| "it holds no complete JSON object".to_owned()))
}

/// The outermost JSON objects in a text, in order. What stands within an object that was cut off is none:
/// its scores may be complete and its issues lost.
fn objects(text: &str) -> Vec<Map<String, Value>> {
    let mut found = Vec::new();
    let mut at = 0;
    for _ in 0..MAX_TRIES {
        let Some(open) = text[at..].find('{') else {
            break;
        };
        at += open;
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Object(object))) => {
                at += values.byte_offset();
                found.push(object);
            }
            Some(Err(error)) if error.is_eof() => break,
            _ => at += 1,
        }
    }
    found
}

fn read_object(object: &Map<String, Value>, names: &[&str]) -> Result<Verdict, String> {
    let scores = names
        .iter()
        .map(|name| {
            let entry = find_score(object, name, names.len() == 1)
                .ok_or_else(|| format!("it has no score for the criterion `{name}`"))?;
            Ok((on_scale(entry.0, name)?, entry.1))
        })
        .collect::<Result<_, String>>()?;
    let issues = match object.get("issues").or_else(|| object.get("errors")) {
        Some(Value::Array(items)) => items.iter().filter_map(|item| issue(item, names)).collect(),
        Some(single) => issue(single, names).into_iter().collect(),
        None => Vec::new(),
    };
    Ok(Verdict {
        scores,
        issues: issues.into_iter().take(MAX_ISSUES).collect(),
        confidence: object
            .get("confidence")
            .and_then(number)
            .filter(|value| (0.0..=1.0).contains(value)),
    })
}

/// The score and the reason of one criterion, wherever the judge has put them.
fn find_score<'a>(
    object: &'a Map<String, Value>,
    name: &str,
    only: bool,
) -> Option<(&'a Value, String)> {
    for key in ["scores", "criteria", "criteria_scores", "evaluation"] {
        match object.get(key) {
            Some(Value::Object(scores)) => {
                if let Some(found) = lookup(scores, name) {
                    return Some(score_and_reason(found));
                }
            }
            Some(Value::Array(entries)) => {
                let named = |entry: &&Value| {
                    ["criterion", "name", "id"]
                        .iter()
                        .filter_map(|key| entry.get(key)?.as_str())
                        .any(|found| same_name(found, name))
                };
                if let Some(found) = entries.iter().find(named) {
                    return Some(score_and_reason(found));
                }
            }
            _ => {}
        }
    }
    if let Some(found) = lookup(object, name) {
        return Some(score_and_reason(found));
    }
    // One criterion only: a verdict that does not name it can mean no other.
    let unnamed = || {
        ["score", "overall_score", "quality_score", "rating"]
            .iter()
            .find_map(|key| object.get(*key))
    };
    only.then(unnamed)
        .flatten()
        .map(|score| (score, reason(object)))
}

fn lookup<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object.get(name).or_else(|| {
        object
            .iter()
            .find(|(key, _)| same_name(key, name))
            .map(|(_, value)| value)
    })
}

fn score_and_reason(entry: &Value) -> (&Value, String) {
    match entry {
        Value::Object(object) => {
            let score = ["score", "rating", "value"]
                .iter()
                .find_map(|key| object.get(*key))
                .unwrap_or(&Value::Null);
            (score, reason(object))
        }
        score => (score, String::new()),
    }
}

fn reason(object: &Map<String, Value>) -> String {
    ["reason", "evidence", "feedback", "explanation", "comment"]
        .iter()
        .find_map(|key| object.get(*key)?.as_str())
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Whether a judge that wrote `found` meant `name`: models change case, and put spaces for hyphens.
fn same_name(found: &str, name: &str) -> bool {
    let plain = |text: &str| {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    found == name || plain(found) == plain(name)
}

/// The score of a step of the scale; steps between two are interpolated.
fn on_scale(value: &Value, name: &str) -> Result<f64, String> {
    let invalid = || {
        let (low, high) = (SCALE[0].step, SCALE[SCALE.len() - 1].step);
        format!(
            "the score of `{name}` is {value}, but only whole numbers from {low} to {high} are scores"
        )
    };
    let step = number(value).ok_or_else(invalid)?;
    SCALE
        .windows(2)
        .find_map(|pair| {
            let (low, high) = (f64::from(pair[0].step), f64::from(pair[1].step));
            (low..=high).contains(&step).then(|| {
                let share = (step - low) / (high - low);
                pair[0].score + share * (pair[1].score - pair[0].score)
            })
        })
        .ok_or_else(invalid)
}

/// A number, also as text, also as "4/5".
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => {
            let text = text.trim();
            let text = text.strip_suffix("/5").unwrap_or(text);
            text.trim().parse().ok()
        }
        _ => None,
    }
    .filter(|number| number.is_finite())
}

/// Whether a judge wrote that there is no issue where one would stand.
fn says_nothing(text: &str) -> bool {
    let plain: String = text
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == ' ')
        .flat_map(char::to_lowercase)
        .collect();
    matches!(
        plain.trim(),
        "" | "none" | "na" | "null" | "nothing" | "no issue" | "no issues" | "no issues found"
    )
}

/// An issue; `None` if it says nothing. What cannot be read of it is taken to be grave, so that a
/// judge's slip does not make a draft pass.
fn issue(item: &Value, names: &[&str]) -> Option<Issue> {
    let text = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| item.get(key)?.as_str())
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    let description = match item {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        _ => text(&["description", "message", "issue", "problem"]),
    }
    .filter(|description| !says_nothing(description))?;
    if text(&["severity"]).is_some_and(|severity| says_nothing(&severity)) {
        return None;
    }
    let kind = match text(&["type", "kind"])
        .map(|kind| kind.to_lowercase())
        .as_deref()
    {
        Some("missing") => IssueType::Missing,
        Some("unsupported") => IssueType::Unsupported,
        _ => IssueType::Incorrect,
    };
    let severity = match text(&["severity"]).map(|s| s.to_lowercase()).as_deref() {
        Some("minor" | "low") => Severity::Minor,
        Some("critical" | "blocker") => Severity::Critical,
        _ => Severity::Major,
    };
    let criterion = text(&["criterion"]).and_then(|found| {
        names
            .iter()
            .find(|name| same_name(&found, name))
            .map(|name| (*name).to_owned())
    });
    Some(Issue {
        kind,
        severity,
        description,
        suggested_fix: text(&["suggested_fix", "suggestion", "fix"]),
        criterion,
        place: Place {
            claim: text(&["claim"]).filter(|_| kind == IssueType::Unsupported),
            ..Place::default()
        },
    })
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
