//! What the judge is asked.

use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use serde_json::{Map, json};

use super::block::block;
use super::{ASKED_ISSUES, Prompts, SCALE, own};
use crate::model::Message;
use crate::types::{Criterion, Evaluator, JudgeExample, LlmConfig};

/// How some criteria are put to a judge: the same for every draft, so it is worked out once.
#[derive(Debug)]
pub struct Rubric {
    names: Value,
    scores: Value,
    examples: Value,
    form: String,
    /// How the verdict on a criterion is given, behind its reason.
    answer: &'static str,
    /// Which criteria have issues.
    mark: &'static str,
    /// The criterion that has a prompt of its own, if it is that.
    own: Option<OwnPrompt>,
}

/// A criterion's own prompt, and what it may show of the criterion.
#[derive(Debug)]
struct OwnPrompt {
    template: String,
    /// Whether it says itself in what JSON to answer.
    states_form: bool,
    criterion: String,
    description: String,
}

/// How scores of some criteria are given: a line, and one for each step or question.
#[derive(Serialize)]
struct Scores {
    title: String,
    lines: Vec<String>,
}

/// A judged draft that is shown as an example.
#[derive(Serialize)]
struct Example<'a> {
    criterion: &'a str,
    draft: String,
    verdict: String,
}

impl Rubric {
    /// Of these criteria, which are the judge's. A criterion with a prompt of its own stands alone.
    pub fn new(criteria: &[&Criterion]) -> Self {
        let own = match criteria {
            [only] => config(only).and_then(|config| {
                let template = config.prompt.clone()?;
                Some(OwnPrompt {
                    states_form: (config.own_form).unwrap_or_else(|| own::states_form(&template)),
                    template,
                    criterion: only.name.clone(),
                    description: only.description.clone(),
                })
            }),
            _ => None,
        };
        Self {
            names: criteria.iter().map(|c| format!("`{}`", c.name)).collect(),
            scores: Value::from(Serde(scores(criteria))),
            examples: Value::from(Serde(examples(criteria))),
            form: form(criteria),
            answer: if criteria.iter().all(|c| has_checks(c)) {
                "the answers"
            } else if criteria.iter().any(|c| has_checks(c)) {
                "the score or the answers"
            } else {
                "the score"
            },
            mark: if criteria.iter().all(|c| in_steps(c)) {
                "that score below 4"
            } else {
                "that are not well met"
            },
            own,
        }
    }

    /// Whether the criterion's own prompt says in what JSON to answer.
    pub fn states_form(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.states_form)
    }
}

impl Prompts {
    /// Asks for a verdict on a draft. `enforced` says that the server holds the reply to its JSON Schema: then the prompt
    /// does not show the form.
    ///
    /// What is the same for every draft comes before it. Of several calls on one draft, each about other criteria, what
    /// is not the same in all of them comes behind it.
    ///
    /// # Errors
    /// If the criterion's own prompt cannot be filled in, with the reason.
    pub fn evaluate(
        &self,
        draft: &str,
        rubric: &Rubric,
        enforced: bool,
    ) -> Result<Vec<Message>, String> {
        let own = (rubric.own.as_ref())
            .map(|own| own::render(&own.template, &own.criterion, &own.description, draft))
            .transpose()?;
        let shown = own.as_ref().is_some_and(|own| own::shows(own, draft));
        let Rubric {
            names,
            scores,
            examples,
            answer,
            mark,
            ..
        } = rubric;
        let values = context! {
            draft => block(draft, "draft", None),
            shown,
            first => own.is_none() && names.len() == Some(self.judged),
            own,
            names,
            scores,
            examples,
            answer => *answer,
            mark => *mark,
            states_form => rubric.states_form(),
            form => rubric.form.as_str(),
            enforced,
            max_issues => ASKED_ISSUES,
        };
        Ok(self.judge("evaluate.j2", values))
    }

    /// Asks which of two drafts meets the criteria better, or the one of this name. `enforced` as for
    /// [`Prompts::evaluate`].
    pub fn compare(
        &self,
        first: &str,
        second: &str,
        criterion: Option<&str>,
        enforced: bool,
    ) -> Vec<Message> {
        let draft_a = block(first, "draft-a", None);
        let draft_b = block(second, "draft-b", None);
        let values = context! { draft_a, draft_b, criterion, form => PREFERENCE, enforced };
        self.judge("compare.j2", values)
    }
}

/// What a preference looks like.
const PREFERENCE: &str = r#"{"analysis":"...","better":"tie"}"#;

fn has_checks(criterion: &Criterion) -> bool {
    config(criterion).is_some_and(|config| !config.checks.is_empty())
}

fn in_steps(criterion: &Criterion) -> bool {
    config(criterion).is_some_and(|config| config.checks.is_empty() && config.scale.is_none())
}

fn config(criterion: &Criterion) -> Option<&LlmConfig> {
    match &criterion.evaluator {
        Evaluator::Llm(config) => Some(config),
        _ => None,
    }
}

fn scores(criteria: &[&Criterion]) -> Vec<Scores> {
    let mut plain = Vec::new();
    let mut own = Vec::new();
    for criterion in criteria {
        let name = format!("`{}`", criterion.name);
        let Some(config) = config(criterion) else {
            continue;
        };
        if let Some(anchors) = &config.anchors {
            own.push(Scores {
                title: format!("The score of {name}, from 1 to 5:"),
                lines: anchors
                    .steps()
                    .map(|(step, meaning)| match meaning {
                        Some(meaning) => format!("{step} = {}", meaning.trim()),
                        None => format!("{step} = between the steps beside it"),
                    })
                    .collect(),
            });
        } else if !config.checks.is_empty() {
            own.push(Scores {
                title: format!("The answers of {name}, true for yes and false for no or not sure:"),
                lines: (1..)
                    .zip(&config.checks)
                    .map(|(number, check)| format!("{number}: {}", check.trim()))
                    .collect(),
            });
        } else if let Some(scale) = config.scale {
            own.push(Scores {
                title: format!(
                    "The score of {name}: a number from {} (worst) to {} (best).",
                    scale.low(),
                    scale.high()
                ),
                lines: Vec::new(),
            });
        } else {
            plain.push(name);
        }
    }
    if !plain.is_empty() {
        let of = match (own.is_empty(), &plain[..]) {
            (true, [_]) => "The score".to_owned(),
            (true, _) => "The scores".to_owned(),
            (false, [name]) => format!("The score of {name}"),
            (false, names) => format!("The scores of {}", names.join(", ")),
        };
        own.insert(
            0,
            Scores {
                title: format!("{of}, from 1 to 5:"),
                lines: SCALE
                    .iter()
                    .map(|anchor| format!("{} = {}", anchor.step, anchor.meaning))
                    .collect(),
            },
        );
    }
    own
}

fn examples<'a>(criteria: &[&'a Criterion]) -> Vec<Example<'a>> {
    criteria
        .iter()
        .flat_map(|criterion| {
            let examples = config(criterion).map_or(&[][..], |config| &config.examples);
            examples.iter().map(|example| Example {
                criterion: &criterion.name,
                draft: block(&example.draft, "example", None),
                verdict: verdict(example),
            })
        })
        .collect()
}

fn verdict(example: &JudgeExample) -> String {
    let mut verdict = match (example.score, example.verdict) {
        (Some(score), _) => format!("score {score}"),
        (None, Some(true)) => "met".to_owned(),
        (None, _) => "not met".to_owned(),
    };
    if let Some(reason) = &example.reason {
        verdict.push_str(". ");
        verdict.push_str(reason.trim());
    }
    verdict
}

/// What a verdict on these criteria looks like.
fn form(criteria: &[&Criterion]) -> String {
    let mut scores = Map::new();
    for criterion in criteria {
        let config = config(criterion);
        let checks = config.map_or(&[][..], |config| &config.checks);
        let entry = if !checks.is_empty() {
            let answers: Map<_, _> = (1..=checks.len())
                .map(|number| (number.to_string(), json!(number % 2 == 1)))
                .collect();
            json!({ "analysis": "...", "answers": answers })
        } else if let Some(scale) = config.and_then(|config| config.scale) {
            json!({ "analysis": "...", "score": f64::midpoint(scale.low(), scale.high()) })
        } else {
            json!({ "analysis": "...", "score": 3 })
        };
        scores.insert(criterion.name.clone(), entry);
    }
    json!({
        "scores": scores,
        "to_fix": [{
            "criterion": "...",
            "description": "...",
            "quote": "...",
            "severity": "...",
            "suggested_fix": "...",
            "type": "..."
        }],
    })
    .to_string()
}
