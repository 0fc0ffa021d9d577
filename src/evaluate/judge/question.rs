use serde_json::{Map, Value, json};

use crate::prompt::{MAX_ISSUES, SCALE};
use crate::types::{Criterion, Evaluator, ScoreRange};

/// What a judge is asked about one criterion, as far as its reply depends on it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    pub(super) name: String,
    /// The criterion's floor.
    pub(super) floor: f64,
    pub(super) scale: Scale,
}

/// How its score is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// A step from 1 to 5.
    Steps,
    /// A number of the criterion's own scale.
    Range(ScoreRange),
    /// So many answers of yes or no.
    Checks(usize),
}

impl Question {
    /// What the judge is asked about a criterion; `None` if it is not the judge's.
    pub(super) fn of(criterion: &Criterion) -> Option<Self> {
        let Evaluator::Llm(config) = &criterion.evaluator else {
            return None;
        };
        let scale = match config.scale {
            _ if !config.checks.is_empty() => Scale::Checks(config.checks.len()),
            Some(range) => Scale::Range(range),
            None => Scale::Steps,
        };
        Some(Self {
            name: criterion.name.clone(),
            floor: criterion.threshold,
            scale,
        })
    }

    fn schema(&self) -> Value {
        let answer = match self.scale {
            Scale::Steps => {
                let steps: Vec<u8> = SCALE.iter().map(|anchor| anchor.step).collect();
                ("score", json!({ "type": "integer", "enum": steps }))
            }
            Scale::Range(_) => ("score", json!({ "type": "number" })),
            Scale::Checks(count) => {
                let answers: Map<String, Value> = (1..=count)
                    .map(|number| (number.to_string(), json!({ "type": "boolean" })))
                    .collect();
                ("answers", closed(&Value::Object(answers)))
            }
        };
        closed(&json!({ "reason": text(400), answer.0: answer.1 }))
    }
}

/// The JSON Schema of a verdict; of the strict kind, so that every server that enforces schemas takes it. The
/// limits on lengths keep a small model from rambling; adapters leave out what their server does not know.
pub(super) fn schema(questions: &[Question]) -> Value {
    let scores: Map<String, Value> = questions
        .iter()
        .map(|question| (question.name.clone(), question.schema()))
        .collect();
    let names: Vec<&str> = questions.iter().map(|q| q.name.as_str()).collect();
    let issue = closed(&json!({
        "type": { "type": "string", "enum": ["missing", "unsupported", "incorrect"] },
        "severity": { "type": "string", "enum": ["minor", "major", "critical"] },
        "criterion": { "type": "string", "enum": names },
        "quote": text(200),
        "description": text(400),
        "suggested_fix": text(400),
    }));
    closed(&json!({
        "scores": closed(&Value::Object(scores)),
        "issues": { "type": "array", "items": issue, "maxItems": MAX_ISSUES },
        "confidence": { "type": "number" },
    }))
}

fn text(limit: u32) -> Value {
    json!({ "type": "string", "maxLength": limit })
}

/// An object with these properties, all of them, and no other.
pub(super) fn closed(properties: &Value) -> Value {
    let required: Vec<&String> = properties
        .as_object()
        .map(|object| object.keys().collect())
        .unwrap_or_default();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
