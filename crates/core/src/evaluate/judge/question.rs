use serde_json::{Map, Value};

use crate::prompt::{ASKED_ISSUES, SCALE};
use crate::types::{Criterion, Evaluator, ScoreRange};

/// The parts of a criterion that determine the judge's reply.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    pub(super) name: String,
    /// The criterion's floor.
    pub(super) floor: f64,
    pub(super) scale: Scale,
}

/// The form of the score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// A step from 1 to 5.
    Steps,
    /// A number on the criterion's own scale.
    Range(ScoreRange),
    /// This number of yes/no answers.
    Checks(usize),
}

impl Question {
    /// Returns the question about a criterion, or `None` if the judge does not evaluate it.
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
                (
                    "score",
                    object([("type", "integer".into()), ("enum", steps.into())]).into(),
                )
            }
            Scale::Range(_) => ("score", plain("number")),
            Scale::Checks(count) => {
                let answers: Map<String, Value> = (1..=count)
                    .map(|number| (number.to_string(), plain("boolean")))
                    .collect();
                ("answers", closed(answers))
            }
        };
        closed(object([("analysis", text(400)), answer]))
    }
}

/// Returns the JSON Schema of a verdict, in the strict form that every schema-enforcing server
/// accepts. The length limits keep a small model from rambling; adapters remove keywords that their
/// server does not support.
///
/// The keys of every object are in alphabetical order, and their names are chosen so that this is
/// the order in which a judge should write them (the analysis before the score). Some servers sort
/// them, for example Ollama for models whose own chat template it uses.
pub(super) fn schema(questions: &[Question]) -> Value {
    let scores: Map<String, Value> = questions
        .iter()
        .map(|question| (question.name.clone(), question.schema()))
        .collect();
    let names: Vec<&str> = questions.iter().map(|q| q.name.as_str()).collect();
    let issue = closed(object([
        ("criterion", one_of(&names)),
        ("description", text(400)),
        ("quote", text(200)),
        ("severity", one_of(&["minor", "major", "critical"])),
        ("suggested_fix", text(400)),
        ("type", one_of(&["missing", "unsupported", "incorrect"])),
    ]));
    let issues = object([
        ("type", "array".into()),
        ("items", issue),
        ("maxItems", ASKED_ISSUES.into()),
    ]);
    closed(object([
        ("scores", closed(scores)),
        ("to_fix", issues.into()),
    ]))
}

/// Returns the schema of a plain type.
fn plain(kind: &str) -> Value {
    object([("type", kind.into())]).into()
}

/// Returns the schema of a string of at most `limit` characters.
pub(super) fn text(limit: u32) -> Value {
    object([("type", "string".into()), ("maxLength", limit.into())]).into()
}

/// Returns the schema of one of these strings.
pub(super) fn one_of(texts: &[&str]) -> Value {
    object([("type", "string".into()), ("enum", texts.into())]).into()
}

/// Returns the schema of an object with exactly these properties, all required.
pub(super) fn closed(properties: Map<String, Value>) -> Value {
    let required: Vec<&str> = properties.keys().map(String::as_str).collect();
    let required = required.into();
    object([
        ("type", "object".into()),
        ("properties", properties.into()),
        ("required", required),
        ("additionalProperties", false.into()),
    ])
    .into()
}

/// Builds an object from its members without copying the values, unlike nested `json!` calls.
pub(super) fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    let mut object = Map::with_capacity(N);
    for (name, value) in members {
        object.insert(name.to_owned(), value);
    }
    object
}
