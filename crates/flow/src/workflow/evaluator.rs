//! Who judges in a workflow: the evaluators that workflow files know (`llm`, `schema`, `custom`), or criteria.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::actions::code;
use super::event::Event;
use super::failure::Failure;
use super::part::Part;
use super::program::Program;
use super::settings::Settings;
use super::template::{self, text_of};
use super::world::{ModelChoice, Scene};
use crate::criteria;
use crate::evaluate::{JudgeModel, Panel, Progress, Subject, read_returned};
use crate::prompt::{Prompts, states_form};
use crate::source::{Data, DataFormat, SourceError};
use crate::types::{Criteria, Evaluation, Evaluator as Kind, Issue, ScriptConfig, Task};

/// The types, those of workflow files first.
const TYPES: [&str; 5] = ["schema", "llm", "custom", "command", "criteria"];
/// What an evaluator may say besides of the keys that its type has in a file of its own.
const OWN: [&str; 5] = ["prompt", "model", "provider", "api_base", "score_threshold"];

/// Judges drafts.
pub(super) struct Evaluator {
    judge: Judge,
    /// The settings of the file, for calls that name no model.
    settings: Settings,
    criteria: Arc<Criteria>,
    /// The score that a valid draft must have, too.
    threshold: Option<f64>,
}

enum Judge {
    /// Nothing is wanted of a draft.
    Anything,
    /// The evaluators of the criteria.
    Panel(ModelChoice),
    /// A model with this prompt, which is filled in for each draft.
    Prompt(Option<Part>, ModelChoice),
    /// Code.
    Code(ScriptConfig, Part),
}

/// A verdict, in the words of a workflow.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) evaluation: Evaluation,
    pub(super) valid: bool,
    pub(super) score: Option<f64>,
    pub(super) errors: Vec<Value>,
    pub(super) suggestions: Vec<String>,
    pub(super) reason: Option<String>,
    /// The draft, as a schema check has read it.
    pub(super) value: Option<Value>,
}

impl Judged {
    /// As it stands in a history, and as `evaluation`.
    pub(super) fn to_value(&self) -> Value {
        json!({
            "valid": self.valid,
            "score": self.score,
            "reason": self.reason,
            "errors": self.errors,
            "suggestions": self.suggestions,
            "status": self.evaluation.status,
            "confidence": self.evaluation.confidence,
            "criteria_scores": self.evaluation.criteria_scores,
        })
    }
}

impl Evaluator {
    /// Reads an evaluator. What it stands in may have other keys, too.
    pub(super) fn read(part: &Part, others: &[&str]) -> Result<Self, SourceError> {
        if !part.value().is_object() {
            return Err(part.expected("an object with a `type`"));
        }
        let named = part.get("type").or_else(|| part.get("evaluator_type"));
        let has = |key: &str| part.get(key).is_some();
        let kind = match &named {
            Some(named) => named.word(&TYPES)?,
            None if has("run") || has("code") => "custom",
            None if has("prompt") => "llm",
            None if has("command") => "command",
            None if has("criteria") => "criteria",
            None => "schema",
        };
        let threshold = part
            .get("score_threshold")
            .map(|part| part.share())
            .transpose()?;
        let (judge, criteria) = match kind {
            "criteria" => of_criteria(part, others)?,
            "command" => {
                let own = ["type", "evaluator_type", "name", "score_threshold"];
                let data = plain(part, &[&own[..], others].concat())?;
                let criteria = criteria::command_of_data(&data)?;
                (Judge::Panel(ModelChoice::default()), criteria)
            }
            "schema" if !has("schema") => {
                let known = ["type", "evaluator_type", "name", "score_threshold"];
                part.check_keys(&[&known[..], others].concat())?;
                (Judge::Anything, anything()?)
            }
            _ => {
                let criteria = spec(part, others, kind)?;
                let judge = match criteria.criteria.first().map(|it| &it.evaluator) {
                    Some(Kind::Llm(_)) => {
                        let prompt = part.get("prompt");
                        prompt.as_ref().map_or(Ok(()), template::check)?;
                        Judge::Prompt(prompt, choice(part)?)
                    }
                    Some(Kind::Script(config)) => {
                        let code = part.get("run").or_else(|| part.get("code"));
                        Judge::Code(config.clone(), code.unwrap_or_else(|| part.clone()))
                    }
                    _ => Judge::Panel(ModelChoice::default()),
                };
                (judge, criteria)
            }
        };
        Ok(Self {
            judge,
            settings: Settings::default(),
            criteria: Arc::new(criteria),
            threshold,
        })
    }

    /// The same, with the model that the file names for all calls, as far as it names none itself.
    #[must_use]
    pub(super) fn with_settings(mut self, settings: &Settings) -> Self {
        self.settings = settings.clone();
        self
    }

    /// The same, with another score that a valid draft must have, unless it names one itself.
    #[must_use]
    pub(super) fn or_threshold(self, threshold: Option<f64>) -> Self {
        Self {
            threshold: self.threshold.or(threshold),
            ..self
        }
    }

    /// What is recorded as what drafts are measured by.
    pub(super) fn criteria(&self) -> &Arc<Criteria> {
        &self.criteria
    }

    /// The programs that it runs.
    pub(super) fn programs(&self, list: &mut Vec<Program>) {
        match &self.judge {
            Judge::Code(config, part) => {
                list.extend(Program::of_code(config, part));
            }
            Judge::Panel(_) => {
                let evaluators = self.criteria.criteria.iter().map(|it| &it.evaluator);
                list.extend(evaluators.filter_map(Program::of_evaluator));
            }
            Judge::Anything | Judge::Prompt(..) => {}
        }
    }

    /// Judges a draft. `names` of the scene hold the draft already, under the names that templates and code want
    /// it under.
    pub(super) async fn judge(
        &self,
        draft: &Value,
        scene: &Scene<'_>,
        attempt: u32,
    ) -> Result<Judged, Failure> {
        let (evaluation, raw) = match &self.judge {
            Judge::Anything => (read(&json!(true), &self.criteria)?, None),
            Judge::Code(config, _) => {
                let value = code::run_script(config, draft, scene).await?;
                (read(&value, &self.criteria)?, Some(value))
            }
            Judge::Panel(choice) => (
                self.panel(Arc::clone(&self.criteria), choice, draft, scene, attempt)
                    .await?,
                None,
            ),
            Judge::Prompt(prompt, choice) => {
                let criteria = self.with_prompt(prompt.as_ref(), scene)?;
                (
                    self.panel(criteria, choice, draft, scene, attempt).await?,
                    None,
                )
            }
        };
        Ok(self.judged(evaluation, raw.as_ref()))
    }

    /// The criteria with the prompt filled in. A template that says one text, whatever is in it.
    fn with_prompt(
        &self,
        prompt: Option<&Part>,
        scene: &Scene<'_>,
    ) -> Result<Arc<Criteria>, Failure> {
        let Some(prompt) = prompt else {
            return Ok(Arc::clone(&self.criteria));
        };
        let text = Value::String(template::fill_text(prompt, scene.names)?);
        let mut criteria = (*self.criteria).clone();
        for criterion in &mut criteria.criteria {
            if let Kind::Llm(config) = &mut criterion.evaluator {
                config.prompt = Some(format!("{{{{ {text} }}}}"));
                // What it is filled with may look like a form, and is none.
                config.own_form = Some(prompt.value().as_str().is_some_and(states_form));
            }
        }
        Ok(Arc::new(criteria))
    }

    async fn panel(
        &self,
        criteria: Arc<Criteria>,
        choice: &ModelChoice,
        draft: &Value,
        scene: &Scene<'_>,
        attempt: u32,
    ) -> Result<Evaluation, Failure> {
        let judge = if criteria.need_judge() {
            let choice = self.settings.complete(choice.clone(), scene.names);
            let chosen = scene.world.models.open(&choice).await?;
            Some(JudgeModel {
                cache: scene
                    .world
                    .verdicts
                    .clone()
                    .filter(|_| criteria.judge_settings.cache()),
                ..JudgeModel::new(chosen.model, chosen.sampling, chosen.think)
            })
        } else {
            None
        };
        let task = Task::new("");
        let prompts = Prompts::new(&task, &criteria).with_templates(scene.world.templates.clone());
        let panel = Panel::new(criteria, judge, &scene.world.tools).map_err(Failure::of_code)?;
        let text = text_of(draft);
        let subject = Subject {
            draft: &text,
            prior: None,
            attempt,
            progress: Progress {
                iteration: 1,
                task: &task,
                earlier: &[],
            },
        };
        let observe = |event: crate::model::CallEvent<'_>| scene.observe(event);
        let evaluation = panel.evaluate(&prompts, &subject, &observe).await;
        if let Some(message) = prompts.problem() {
            scene.world.emit(&Event::Warning { message });
        }
        Ok(evaluation?)
    }

    fn judged(&self, mut evaluation: Evaluation, raw: Option<&Value>) -> Judged {
        let reason = evaluation
            .criteria
            .first()
            .and_then(|it| it.evidence.clone())
            .filter(|_| evaluation.criteria.len() == 1);
        let score = evaluation.overall_score;
        let high_enough = self
            .threshold
            .is_none_or(|least| score.is_some_and(|score| score >= least));
        let valid = evaluation.satisfactory && high_enough;
        let mut errors = match raw.and_then(own_errors) {
            Some(errors) => errors,
            None => evaluation.issues.iter().map(error_of).collect(),
        };
        if evaluation.satisfactory && !high_enough {
            let least = self.threshold.unwrap_or_default();
            errors.push(json!({
                "message": format!("Score {} below threshold {least}", score.unwrap_or_default()),
                "path": "",
            }));
            evaluation.satisfactory = false;
        }
        if valid {
            // Remarks on a draft that is good enough are none of its errors.
            errors.clear();
        } else if let (Judge::Prompt(..), Some(reason)) = (&self.judge, &reason)
            && errors.is_empty()
            && !reason.is_empty()
        {
            errors.push(json!({ "message": reason, "path": "" }));
        }
        let mut suggestions = evaluation.suggestions.clone();
        if let Some(Value::Array(own)) = raw.and_then(|raw| raw.get("suggestions")) {
            suggestions = own.iter().map(text_of).collect();
        }
        let value = evaluation
            .criteria
            .iter()
            .find(|it| it.evaluator == "schema" && matches!(self.judge, Judge::Panel(_)))
            .and_then(|it| it.value.clone());
        Judged {
            evaluation,
            valid,
            score,
            errors,
            suggestions,
            reason,
            value,
        }
    }
}

/// A single evaluator as it may stand in a file of its own, without the keys that only a workflow has.
fn spec(part: &Part, others: &[&str], kind: &'static str) -> Result<Criteria, SourceError> {
    let own = if kind == "llm" {
        &OWN[..]
    } else {
        &["score_threshold"]
    };
    let data = plain(part, &[own, others].concat())?;
    criteria::spec_of_data(&data, Some(kind))
}

/// An evaluator as it may stand elsewhere, too: without these keys.
fn plain(part: &Part, keys: &[&str]) -> Result<Data, SourceError> {
    let data = part.data();
    let data = data.ok_or_else(|| part.expected("an object with a `type`"))?;
    Ok(data.without(keys))
}

/// A schema that everything meets stands for one that is not there.
fn anything() -> Result<Criteria, SourceError> {
    let text = json!({ "type": "schema", "schema": {} }).to_string();
    criteria::parse_spec(&text, "schema", DataFormat::Json)
}

/// The model that a part names.
pub(super) fn choice(part: &Part) -> Result<ModelChoice, SourceError> {
    Ok(ModelChoice {
        provider: part.text_at("provider")?,
        model: part.text_at("model")?,
        api_base: part.text_at("api_base")?,
        judges: true,
        ..ModelChoice::default()
    })
}

/// Criteria of ours, from a file beside the workflow or a built-in set.
fn of_criteria(part: &Part, others: &[&str]) -> Result<(Judge, Criteria), SourceError> {
    let known = [
        "type",
        "criteria",
        "score_threshold",
        "model",
        "provider",
        "api_base",
    ];
    part.check_keys(&[&known[..], others].concat())?;
    let Some(name) = part.get("criteria") else {
        return Err(part
            .error("the type `criteria` needs the key `criteria`")
            .help("give a criteria file, or the name of a built-in set"));
    };
    let text = name.text()?;
    let criteria = if crate::source::is_path(text) {
        let file = crate::source::read_beside(part.source(), name.span(), Path::new(text))?;
        let path = file.path().unwrap_or(Path::new(text)).to_owned();
        let reach = part.source().reach();
        criteria::load(&path, &|_| reach)
            .map_err(|error| name.error(&format!("`{text}`: {error}")))?
    } else {
        criteria::built_in(text).map_err(|error| {
            let wrong = name.error(error.message());
            let wrong = wrong.help_if(error.hints().first().cloned());
            wrong.help("a criteria file is named by its path, from the folder of the workflow")
        })?
    };
    Ok((Judge::Panel(choice(part)?), criteria))
}

fn read(value: &Value, criteria: &Criteria) -> Result<Evaluation, Failure> {
    read_returned(value, criteria)
        .map_err(|problem| Failure::of_code(format!("the evaluator gave no verdict: {problem}")))
}

/// The errors in the form in which the code gave them.
fn own_errors(raw: &Value) -> Option<Vec<Value>> {
    let errors = raw.get("errors")?.as_array()?;
    let error = |error: &Value| match error {
        Value::Object(_) => error.clone(),
        other => json!({ "message": text_of(other) }),
    };
    Some(errors.iter().map(error).collect())
}

/// An issue as an error: the message, and where it is.
fn error_of(issue: &Issue) -> Value {
    let mut error = Map::new();
    error.insert("message".to_owned(), json!(issue.description));
    error.insert(
        "path".to_owned(),
        json!(issue.place.path.as_deref().unwrap_or_default()),
    );
    let more = [
        ("keyword", issue.place.keyword.as_ref().map(|it| json!(it))),
        (
            "schema_path",
            issue.place.schema_path.as_ref().map(|it| json!(it)),
        ),
        ("line", issue.place.line.map(|it| json!(it))),
        (
            "suggestion",
            issue.suggested_fix.as_ref().map(|it| json!(it)),
        ),
    ];
    let known = more
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    error.extend(known);
    error.insert("type".to_owned(), json!(issue.kind));
    error.insert("severity".to_owned(), json!(issue.severity));
    Value::Object(error)
}
