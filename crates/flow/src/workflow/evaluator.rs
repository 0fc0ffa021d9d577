//! The evaluators of a workflow: the types of workflow files (`llm`, `schema`, `custom`), or
//! criteria.

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
use super::world::{ActionContext, ModelChoice};
use crate::criteria;
use crate::evaluate::{EvaluatorSet, JudgeModel, Progress, Subject, read_returned};
use crate::prompt::{Prompts, states_form};
use crate::source::{Data, DataFormat, SourceError};
use crate::types::{
    Criteria, Evaluation, Evaluator as CriterionEvaluator, Issue, ScriptConfig, Task,
};

/// The evaluator types, those of workflow files first.
const TYPES: [&str; 5] = ["schema", "llm", "custom", "command", "criteria"];
/// The keys of an evaluator in addition to those that its type has in a file of its own.
const OWN: [&str; 5] = ["prompt", "model", "provider", "api_base", "score_threshold"];

/// Judges drafts.
pub(super) struct Evaluator {
    judge: Method,
    /// The file's settings, for calls that name no model.
    settings: Settings,
    criteria: Arc<Criteria>,
    /// The minimum score of a valid draft.
    threshold: Option<f64>,
}

enum Method {
    /// Accepts every draft.
    Anything,
    /// The evaluators of the criteria.
    EvaluatorSet(ModelChoice),
    /// A model with this prompt, which is rendered for each draft.
    Prompt(Option<Part>, ModelChoice),
    /// Code.
    Code(ScriptConfig, Part),
}

/// A verdict in the form that workflows use.
#[derive(Debug, Clone)]
pub(super) struct WorkflowVerdict {
    pub(super) evaluation: Evaluation,
    pub(super) valid: bool,
    pub(super) score: Option<f64>,
    pub(super) errors: Vec<Value>,
    pub(super) suggestions: Vec<String>,
    pub(super) reason: Option<String>,
    /// The draft as a schema check parsed it.
    pub(super) value: Option<Value>,
}

impl WorkflowVerdict {
    /// Returns the verdict as the history and `evaluation` contain it.
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
    /// Parses an evaluator. `others` lists further keys that the part may have.
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
                (Method::EvaluatorSet(ModelChoice::default()), criteria)
            }
            "schema" if !has("schema") => {
                let known = ["type", "evaluator_type", "name", "score_threshold"];
                part.check_keys(&[&known[..], others].concat())?;
                (Method::Anything, anything()?)
            }
            _ => {
                let criteria = spec(part, others, kind)?;
                let judge = match criteria.criteria.first().map(|it| &it.evaluator) {
                    Some(CriterionEvaluator::Llm(_)) => {
                        let prompt = part.get("prompt");
                        prompt.as_ref().map_or(Ok(()), template::check)?;
                        Method::Prompt(prompt, choice(part)?)
                    }
                    Some(CriterionEvaluator::Script(config)) => {
                        let code = part.get("run").or_else(|| part.get("code"));
                        Method::Code(config.clone(), code.unwrap_or_else(|| part.clone()))
                    }
                    _ => Method::EvaluatorSet(ModelChoice::default()),
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

    /// Sets the file's settings as defaults for the model.
    #[must_use]
    pub(super) fn with_settings(mut self, settings: &Settings) -> Self {
        self.settings = settings.clone();
        self
    }

    /// Sets the minimum score of a valid draft, unless the evaluator has its own.
    #[must_use]
    pub(super) fn or_threshold(self, threshold: Option<f64>) -> Self {
        Self {
            threshold: self.threshold.or(threshold),
            ..self
        }
    }

    /// Returns the criteria to record for the run.
    pub(super) fn criteria(&self) -> &Arc<Criteria> {
        &self.criteria
    }

    /// Appends the programs that it runs.
    pub(super) fn programs(&self, list: &mut Vec<Program>) {
        match &self.judge {
            Method::Code(config, part) => {
                list.extend(Program::of_code(config, part));
            }
            Method::EvaluatorSet(_) => {
                let evaluators = self.criteria.criteria.iter().map(|it| &it.evaluator);
                list.extend(evaluators.filter_map(Program::of_evaluator));
            }
            Method::Anything | Method::Prompt(..) => {}
        }
    }

    /// Judges a draft. The scene's `names` already contain the draft, under the names that
    /// templates and code use.
    pub(super) async fn judge(
        &self,
        draft: &Value,
        context: &ActionContext<'_>,
        attempt: u32,
    ) -> Result<WorkflowVerdict, Failure> {
        let (evaluation, raw) = match &self.judge {
            Method::Anything => (read(&json!(true), &self.criteria)?, None),
            Method::Code(config, _) => {
                let value = code::run_script(config, draft, context).await?;
                (read(&value, &self.criteria)?, Some(value))
            }
            Method::EvaluatorSet(choice) => (
                self.evaluator_set(Arc::clone(&self.criteria), choice, draft, context, attempt)
                    .await?,
                None,
            ),
            Method::Prompt(prompt, choice) => {
                let criteria = self.with_prompt(prompt.as_ref(), context)?;
                (
                    self.evaluator_set(criteria, choice, draft, context, attempt)
                        .await?,
                    None,
                )
            }
        };
        Ok(self.judged(evaluation, raw.as_ref()))
    }

    /// Returns the criteria with the rendered prompt, escaped so that it renders to itself.
    fn with_prompt(
        &self,
        prompt: Option<&Part>,
        context: &ActionContext<'_>,
    ) -> Result<Arc<Criteria>, Failure> {
        let Some(prompt) = prompt else {
            return Ok(Arc::clone(&self.criteria));
        };
        let text = Value::String(template::fill_text(prompt, context.names)?);
        let mut criteria = (*self.criteria).clone();
        for criterion in &mut criteria.criteria {
            if let CriterionEvaluator::Llm(config) = &mut criterion.evaluator {
                config.prompt = Some(format!("{{{{ {text} }}}}"));
                // Rendered values may look like a form description, so only the template itself
                // counts.
                config.own_form = Some(prompt.value().as_str().is_some_and(states_form));
            }
        }
        Ok(Arc::new(criteria))
    }

    async fn evaluator_set(
        &self,
        criteria: Arc<Criteria>,
        choice: &ModelChoice,
        draft: &Value,
        context: &ActionContext<'_>,
        attempt: u32,
    ) -> Result<Evaluation, Failure> {
        let judge = if criteria.need_judge() {
            let choice = self.settings.complete(choice.clone(), context.names);
            let chosen = context.world.models.open(&choice).await?;
            Some(JudgeModel {
                cache: context
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
        let prompts =
            Prompts::new(&task, &criteria).with_templates(context.world.templates.clone());
        let evaluator_set =
            EvaluatorSet::new(criteria, judge, &context.world.tools).map_err(Failure::of_code)?;
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
        let observe = |event: crate::model::CallEvent<'_>| context.observe(event);
        let evaluation = evaluator_set.evaluate(&prompts, &subject, &observe).await;
        if let Some(message) = prompts.problem() {
            context.world.emit(&Event::Warning { message });
        }
        Ok(evaluation?)
    }

    fn judged(&self, mut evaluation: Evaluation, raw: Option<&Value>) -> WorkflowVerdict {
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
            // Issues of a draft that passes are not errors.
            errors.clear();
        } else if let (Method::Prompt(..), Some(reason)) = (&self.judge, &reason)
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
            .find(|it| it.evaluator == "schema" && matches!(self.judge, Method::EvaluatorSet(_)))
            .and_then(|it| it.value.clone());
        WorkflowVerdict {
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

/// Parses an evaluator as in a file of its own, without the workflow-specific keys.
fn spec(part: &Part, others: &[&str], kind: &'static str) -> Result<Criteria, SourceError> {
    let own = if kind == "llm" {
        &OWN[..]
    } else {
        &["score_threshold"]
    };
    let data = plain(part, &[own, others].concat())?;
    criteria::spec_of_data(&data, Some(kind))
}

/// Returns the data of an evaluator without these keys.
fn plain(part: &Part, keys: &[&str]) -> Result<Data, SourceError> {
    let data = part.data();
    let data = data.ok_or_else(|| part.expected("an object with a `type`"))?;
    Ok(data.without(keys))
}

/// A schema that accepts everything stands in for a missing one.
fn anything() -> Result<Criteria, SourceError> {
    let text = json!({ "type": "schema", "schema": {} }).to_string();
    criteria::parse_spec(&text, "schema", DataFormat::Json)
}

/// Returns the model that a part names.
pub(super) fn choice(part: &Part) -> Result<ModelChoice, SourceError> {
    Ok(ModelChoice {
        provider: part.text_at("provider")?,
        model: part.text_at("model")?,
        api_base: part.text_at("api_base")?,
        judges: true,
        ..ModelChoice::default()
    })
}

/// Loads criteria from a file next to the workflow, or from a built-in set.
fn of_criteria(part: &Part, others: &[&str]) -> Result<(Method, Criteria), SourceError> {
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
        let file = crate::source::read_relative(part.source(), name.span(), Path::new(text))?;
        let path = file.path().unwrap_or(Path::new(text)).to_owned();
        let reach = part.source().file_access();
        criteria::load(&path, &|_| reach)
            .map_err(|error| name.error(&format!("`{text}`: {error}")))?
    } else {
        criteria::built_in(text).map_err(|error| {
            let wrong = name.error(error.message());
            let wrong = wrong.help_if(error.hints().first().cloned());
            wrong.help("the path of a criteria file is relative to the folder of the workflow")
        })?
    };
    Ok((Method::EvaluatorSet(choice(part)?), criteria))
}

fn read(value: &Value, criteria: &Criteria) -> Result<Evaluation, Failure> {
    read_returned(value, criteria).map_err(|problem| {
        Failure::of_code(format!("the evaluator returned no verdict: {problem}"))
    })
}

/// Returns the errors in the form in which the code returned them.
fn own_errors(raw: &Value) -> Option<Vec<Value>> {
    let errors = raw.get("errors")?.as_array()?;
    let error = |error: &Value| match error {
        Value::Object(_) => error.clone(),
        other => json!({ "message": text_of(other) }),
    };
    Some(errors.iter().map(error).collect())
}

/// Converts an issue to an error: the message and the place.
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
