//! The prompts for the judge.

use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use serde_json::{Map, json};

use super::block::block;
use super::{ASKED_ISSUES, Prompts, SCALE, criterion_prompt, render};
use crate::model::Message;
use crate::types::{Criterion, Evaluator, JudgeExample, LlmConfig};

/// The part of a judge's prompt about some criteria. It is the same for every draft, so it is
/// computed once.
#[derive(Debug)]
pub struct Rubric {
    names: Value,
    scores: Value,
    examples: Value,
    form: String,
    /// What follows the reason in a verdict: the score or answers.
    answer: &'static str,
    /// The criteria that need issues.
    mark: &'static str,
    /// The custom prompt, if the criterion has one.
    own: Option<CustomPrompt>,
}

/// A criterion's custom prompt, and what it may show of the criterion.
#[derive(Debug)]
struct CustomPrompt {
    template: String,
    /// Whether it describes the JSON of the reply itself.
    states_form: bool,
    criterion: String,
    description: String,
}

/// How the scores of some criteria are given: a title, and a line per step or question.
#[derive(Serialize)]
struct Scores {
    title: String,
    lines: Vec<String>,
}

/// A judged draft as a few-shot example.
#[derive(Serialize)]
struct Example<'a> {
    criterion: &'a str,
    draft: String,
    verdict: String,
}

impl Rubric {
    /// Creates the rubric for the criteria among these that the judge evaluates. A criterion with a
    /// custom prompt must be alone.
    pub fn new(criteria: &[&Criterion]) -> Self {
        let own = match criteria {
            [only] => config(only).and_then(|config| {
                let template = config.prompt.clone()?;
                Some(CustomPrompt {
                    states_form: (config.own_form)
                        .unwrap_or_else(|| criterion_prompt::states_form(&template)),
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

    /// Returns the built-in instructions of a verdict's prompt, without the task, the criteria, the
    /// scales and the draft.
    pub fn instructions(&self) -> String {
        let no = || Value::from(Vec::<Value>::new());
        let values = context! {
            task => "-",
            context => no(),
            history => no(),
            evidence => no(),
            fresh => no(),
            scores => no(),
            examples => no(),
            criteria => "",
            facts => "",
            procedures => "",
            restated => (),
            form => "",
            states_form => false,
            first => false,
            shown => true,
            names => self.names.clone(),
            answer => self.answer,
            mark => self.mark,
            max_issues => ASKED_ISSUES,
            own => (),
            enforced => true,
        };
        render("evaluate.j2", values)
    }

    /// Returns whether the custom prompt describes the JSON of the reply.
    pub fn states_form(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.states_form)
    }
}

impl Prompts {
    /// Requests a verdict on a draft. `enforced` means that the server enforces the JSON Schema of
    /// the reply, so the prompt does not show the form.
    ///
    /// Text that is the same for every draft comes before the draft. Text that differs between
    /// several calls about the same draft comes after it.
    ///
    /// # Errors
    /// The reason, if a custom prompt fails to render.
    pub fn evaluate(
        &self,
        draft: &str,
        rubric: &Rubric,
        enforced: bool,
    ) -> Result<Vec<Message>, String> {
        let own = (rubric.own.as_ref())
            .map(|own| {
                criterion_prompt::render(&own.template, &own.criterion, &own.description, draft)
            })
            .transpose()?;
        let shown = own
            .as_ref()
            .is_some_and(|own| criterion_prompt::shows(own, draft));
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

    /// Asks which of two drafts better meets all criteria, or the criterion with this name.
    /// `enforced` as for [`Prompts::evaluate`].
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

/// The form of a preference.
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

/// Returns the form of a verdict on these criteria.
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
