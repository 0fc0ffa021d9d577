use serde_json::{Map, Value};

use crate::prompt::{ASKED_ISSUES, SCALE};
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

/// The JSON Schema of a verdict; of the strict kind, so that every server that enforces schemas takes it. The
/// limits on lengths keep a small model from rambling; adapters leave out what their server does not know.
///
/// The keys of every object stand in alphabetical order, and their names are chosen so that this is the order in which
/// a judge should write them (the analysis before the score). Some servers sort them: Ollama does, for models whose
/// own chat template it uses.
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

/// A value of this type.
fn plain(kind: &str) -> Value {
    object([("type", kind.into())]).into()
}

/// A text of at most so many characters.
pub(super) fn text(limit: u32) -> Value {
    object([("type", "string".into()), ("maxLength", limit.into())]).into()
}

/// One of these texts.
pub(super) fn one_of(texts: &[&str]) -> Value {
    object([("type", "string".into()), ("enum", texts.into())]).into()
}

/// An object with these properties, all of them, and no other.
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

/// These members. `json!` would copy what it is given at each level.
pub(super) fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    let mut object = Map::with_capacity(N);
    for (name, value) in members {
        object.insert(name.to_owned(), value);
    }
    object
}
