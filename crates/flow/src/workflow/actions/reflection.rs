//! `reflection.loop`: generator, evaluator and corrector as one run of the engine.

use std::time::Instant;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::llm_call::usage as usage_value;
use super::{Action, ActionCall, ActionKind, ReadAction};
use crate::engine::{BackendError, CustomLoop, LoopBackend, Observer, Written};
use crate::model::{CallEvent, CallObserver, CallReport};
use crate::source::SourceError;
use crate::types::{
    ConvergenceReason, CriterionResult, Evaluation, ExitCode, LoopSettings, OnFailure, RunRecord,
    Stamped, Status, Task, TokenUsage,
};
use crate::workflow::evaluator::{Evaluator, WorkflowVerdict};
use crate::workflow::event::Event;
use crate::workflow::failure::Failure;
use crate::workflow::part::Part;
use crate::workflow::program::Program;
use crate::workflow::template::{Names, text_of};
use crate::workflow::world::{ActionContext, World, since};

pub(super) const KIND: ActionKind = ActionKind {
    name: "reflection.loop",
    aliases: &["actions.reflection_loop"],
    keys: &[
        "generator",
        "evaluator",
        "corrector",
        "max_iterations",
        "on_failure",
        "score_threshold",
        "return_best",
        "regenerate",
    ],
    read: |call| Ok(Box::new(Reflection::read(call)?)),
};

/// The maximum `max_iterations` in a file.
const MAX_ITERATIONS: u32 = 10_000;

/// The loop's own fields. A draft's keys never overwrite them.
const OWN: [&str; 11] = [
    "success",
    "valid",
    "exhausted",
    "convergence_reason",
    "reflection_iteration",
    "reflection_output",
    "reflection_errors",
    "reflection_history",
    "reflection_best",
    "reflection_best_score",
    "state",
];

/// A loop as the file describes it.
pub(in crate::workflow) struct Reflection {
    generator: Option<ReadAction>,
    evaluator: Evaluator,
    corrector: Option<ReadAction>,
    settings: LoopSettings,
    /// Whether the corrector's result goes into the state and never becomes the draft.
    regenerate: bool,
}

impl Reflection {
    fn read(call: &ActionCall) -> Result<Self, SourceError> {
        let Some(generator) = call.get("generator") else {
            let hint = "add the generator: an `action` with its parameters, or `run` with code";
            return Err(call.missing(KIND.name, "generator", hint));
        };
        Self::of(call, Some(call.inner(generator)?))
    }

    /// Parses a loop whose first draft exists already.
    pub(in crate::workflow) fn of(
        call: &ActionCall,
        generator: Option<ReadAction>,
    ) -> Result<Self, SourceError> {
        let Some(evaluator) = call.get("evaluator") else {
            let hint = "add the evaluator: `type: schema`, `llm` or `custom`, with its keys";
            return Err(call.missing(KIND.name, "evaluator", hint));
        };
        let threshold = call.get("score_threshold").map(Part::share).transpose()?;
        let max_iterations = match call.get("max_iterations") {
            None => None,
            Some(part) => match part.value().as_i64() {
                Some(number) if number < 1 => {
                    return Err(part.error("`max_iterations` must be at least 1"));
                }
                _ => Some(part.count()?),
            },
        };
        if let Some(part) = call.get("max_iterations")
            && max_iterations > Some(MAX_ITERATIONS)
        {
            return Err(part.error(&format!(
                "`max_iterations` must be at most {MAX_ITERATIONS}"
            )));
        }
        let on_failure = match (call.get("on_failure"), call.get("return_best")) {
            (Some(part), None) => {
                Some(match part.word(&["return_best", "return_last", "raise"])? {
                    "return_last" => OnFailure::ReturnLast,
                    "raise" => OnFailure::Raise,
                    _ => OnFailure::ReturnBest,
                })
            }
            (None, Some(part)) if !part.flag()? => Some(OnFailure::ReturnLast),
            (None, _) => None,
            (Some(_), Some(part)) => {
                return Err(part
                    .error_at_key("both `on_failure` and `return_best` are set")
                    .help("keep `on_failure`"));
            }
        };
        Ok(Self {
            generator,
            evaluator: Evaluator::read(evaluator, &[])?
                .or_threshold(threshold)
                .with_settings(&call.settings),
            corrector: call
                .get("corrector")
                .map(|part| call.inner(part))
                .transpose()?,
            settings: LoopSettings {
                max_iterations,
                on_failure,
                ..LoopSettings::default()
            },
            regenerate: call.get("regenerate").map_or(Ok(false), Part::flag)?,
        })
    }

    /// Runs the loop.
    pub(in crate::workflow) async fn reflect(
        &self,
        context: &ActionContext<'_>,
        beginning: LoopStart<'_>,
    ) -> Result<Value, Failure> {
        let mut names = context.names.clone();
        // Results of an earlier loop do not apply to this one.
        for key in ["reflection_best", "reflection_best_score"] {
            names.state.remove(key);
        }
        names.state.set("reflection_iteration", json!(1));
        names.state.set("reflection_errors", beginning.errors);
        names.state.set("reflection_history", json!([]));
        let own = self.generator.as_ref().map(|it| &*it.action);
        let mut bench = NodeBackend {
            plan: self,
            context: *context,
            names,
            generator: beginning.generator.or(own),
            given: beginning.given,
            current: None,
            attempts: Vec::new(),
            best: None,
            failure: None,
        };
        let workshop = CustomLoop {
            criteria: std::sync::Arc::clone(self.evaluator.criteria()),
            settings: self.settings.clone().or(&context.world.limits),
            prices: context.world.prices.clone(),
        };
        let (world, node) = (context.world, context.node);
        let record = workshop
            .run(
                &Task::new(""),
                &mut bench,
                &mut NodeObserver { world, node },
                &world.cancel,
            )
            .await;
        bench.finish(&record)
    }
}

/// Reports the events of a loop as those of its node.
struct NodeObserver<'a> {
    world: &'a World,
    node: &'a str,
}

impl Observer for NodeObserver<'_> {
    fn on_event(&mut self, event: &Stamped) {
        let node = self.node;
        self.world.emit(&Event::Loop { node, event });
    }

    fn on_call(&mut self, event: &Stamped, call: &CallReport<'_>) {
        let node = self.node;
        self.world.emit_call(&Event::Loop { node, event }, call);
    }
}

#[async_trait(?Send)]
impl Action for Reflection {
    async fn run(&self, context: &ActionContext<'_>) -> Result<Value, Failure> {
        self.reflect(context, LoopStart::default()).await
    }

    fn programs(&self, list: &mut Vec<Program>) {
        for part in [&self.generator, &self.corrector].into_iter().flatten() {
            part.action.programs(list);
        }
        self.evaluator.programs(list);
    }

    fn spreads(&self) -> bool {
        true
    }

    fn answer<'r>(&self, result: &'r Value) -> &'r Value {
        &result["reflection_output"]
    }

    fn draft(&self, result: Value) -> Value {
        result.get("reflection_output").cloned().unwrap_or(result)
    }
}

/// The initial values of a loop.
pub(in crate::workflow) struct LoopStart<'a> {
    /// The first draft, if it exists already.
    pub(in crate::workflow) given: Option<Value>,
    /// The generator to use instead of the loop's own.
    pub(in crate::workflow) generator: Option<&'a dyn Action>,
    /// The known errors.
    pub(in crate::workflow) errors: Value,
}

impl Default for LoopStart<'_> {
    fn default() -> Self {
        Self {
            given: None,
            generator: None,
            errors: json!([]),
        }
    }
}

/// An attempt at a draft.
struct DraftAttempt {
    output: Value,
    valid: bool,
    score: Option<f64>,
    errors: Value,
    /// Whether the attempt produced no draft.
    failed: bool,
}

/// The attempt in progress.
struct CurrentAttempt {
    draft: Value,
    /// Why there is no draft.
    problem: Option<String>,
    begun: Instant,
    usage: TokenUsage,
    judged: Option<WorkflowVerdict>,
}

/// Adds up the token usage of calls.
#[derive(Default)]
struct UsageMeter(Mutex<TokenUsage>);

impl UsageMeter {
    fn observe<'a>(&'a self, calls: &'a dyn CallObserver) -> impl Fn(CallEvent<'_>) + 'a {
        move |event| {
            if let CallEvent::End(report) = &event {
                *self.0.lock() += report.reply.usage;
            }
            calls.on_event(event);
        }
    }

    fn used(&self) -> TokenUsage {
        *self.0.lock()
    }
}

/// A loop in progress.
struct NodeBackend<'a> {
    plan: &'a Reflection,
    context: ActionContext<'a>,
    /// The current state, for templates and code.
    names: Names,
    /// The generator.
    generator: Option<&'a dyn Action>,
    /// The first draft, if it exists already.
    given: Option<Value>,
    current: Option<CurrentAttempt>,
    attempts: Vec<DraftAttempt>,
    /// The index of the attempt with the highest score.
    best: Option<usize>,
    failure: Option<Failure>,
}

/// The result of a corrector.
enum Correction {
    /// The next draft.
    Draft(Value),
    /// Values for the generator.
    ForGenerator(Map<String, Value>),
    Nothing,
}

impl NodeBackend<'_> {
    /// Runs an action with the current state, and adds up the usage of its calls.
    async fn run_action(
        &mut self,
        action: &dyn Action,
        calls: &dyn CallObserver,
    ) -> Result<Value, Failure> {
        let meter = UsageMeter::default();
        let observe = meter.observe(calls);
        let context = ActionContext {
            names: &self.names,
            calls: Some(&observe),
            ..self.context
        };
        let result = action.run(&context).await;
        if let Some(current) = &mut self.current {
            current.usage += meter.used();
        }
        result
    }

    /// Runs the corrector on the last draft, if there are both.
    async fn correct(&mut self, calls: &dyn CallObserver) -> Result<Correction, Failure> {
        let plan = self.plan;
        let failed = self.attempts.last().is_some_and(|attempt| attempt.failed);
        let Some(ReadAction { name, action }) = plan.corrector.as_ref().filter(|_| !failed) else {
            return Ok(Correction::Nothing);
        };
        match self.run_action(&**action, calls).await {
            Ok(result) => Ok(corrected(name, &**action, result, plan.regenerate)),
            Err(failure) if failure.is_final() => Err(failure),
            Err(failure) => {
                let error = json!({
                    "message": format!("Corrector failed: {failure}"),
                    "type": "corrector_error",
                    "path": "",
                });
                self.names.state.push("reflection_errors", error.clone());
                self.names.state.change_last("reflection_history", |entry| {
                    if let Some(Value::Array(errors)) = entry.get_mut("errors") {
                        errors.push(error);
                    }
                });
                Ok(Correction::Nothing)
            }
        }
    }

    async fn generate(&mut self, calls: &dyn CallObserver) -> Result<Value, Failure> {
        match self.generator {
            Some(action) => {
                let result = self.run_action(action, calls).await?;
                Ok(action.draft(result))
            }
            // Without a generator, evaluate the existing draft again.
            None => Ok(self
                .attempts
                .last()
                .map_or(Value::Null, |last| last.output.clone())),
        }
    }

    async fn next(
        &mut self,
        iteration: u32,
        calls: &dyn CallObserver,
    ) -> Result<(Value, Option<u32>), Failure> {
        let known = |errors: &Value| errors.as_array().is_some_and(|errors| !errors.is_empty());
        let wrong = self.names.state.get("reflection_errors").is_some_and(known);
        let corrected = match self.given.take() {
            Some(given) => Correction::Draft(given),
            // The node received errors, but no draft.
            None if iteration > 1 || wrong => self.correct(calls).await?,
            None => Correction::Nothing,
        };
        self.names
            .state
            .set("reflection_iteration", json!(iteration));
        match corrected {
            Correction::Draft(draft) => {
                return Ok((draft, iteration.checked_sub(1).filter(|base| *base > 0)));
            }
            Correction::ForGenerator(known) => self.names.state.merge(known),
            Correction::Nothing => {}
        }
        Ok((self.generate(calls).await?, None))
    }

    /// Records a verdict, or that there was no draft.
    fn record_verdict(&mut self, judged: Option<&WorkflowVerdict>) {
        let Some(current) = self.current.take() else {
            return;
        };
        let iteration = self.attempts.len() + 1;
        let attempt = match (&current.problem, judged) {
            (Some(problem), _) => DraftAttempt {
                output: Value::Null,
                valid: false,
                score: Some(0.0),
                errors: json!([{ "message": format!("Generator failed: {problem}"), "path": "" }]),
                failed: true,
            },
            (None, Some(judged)) => DraftAttempt {
                output: judged.value.clone().unwrap_or(current.draft),
                valid: judged.valid,
                score: judged.score,
                errors: json!(judged.errors),
                failed: false,
            },
            (None, None) => DraftAttempt {
                output: current.draft,
                valid: false,
                score: None,
                errors: json!([]),
                failed: false,
            },
        };
        let higher = |best: usize| {
            attempt.score > self.attempts.get(best).and_then(|best| best.score) || attempt.valid
        };
        if !attempt.failed && attempt.score.is_some() && self.best.is_none_or(higher) {
            self.best = Some(self.attempts.len());
        }
        let state = &mut self.names.state;
        state.push(
            "reflection_history",
            json!({
                "iteration": iteration,
                "output": attempt.output,
                "score": attempt.score,
                "valid": attempt.valid,
                "errors": attempt.errors,
                "evaluation": judged.map(WorkflowVerdict::to_value),
                "usage": usage_value(&current.usage),
                "duration_ms": since(current.begun),
            }),
        );
        state.set("reflection_errors", attempt.errors.clone());
        if !attempt.failed {
            state.set("reflection_output", attempt.output.clone());
        }
        self.attempts.push(attempt);
        if let Some(best) = self.best.and_then(|best| self.attempts.get(best)) {
            state.set("reflection_best", best.output.clone());
            state.set("reflection_best_score", json!(best.score));
        }
    }

    /// Returns the result of the loop.
    fn finish(mut self, record: &RunRecord) -> Result<Value, Failure> {
        // The history includes a last attempt that was not judged.
        let last = self.current.as_mut().and_then(|last| last.judged.take());
        self.record_verdict(last.as_ref());
        let history = self
            .names
            .state
            .get("reflection_history")
            .cloned()
            .unwrap_or_default();
        let code = record.exit_code.unwrap_or(ExitCode::Failure);
        let reason = record.convergence_reason;
        let count = self.attempts.len();
        let at = |iteration: Option<u32>| {
            let index = usize::try_from(iteration?).ok()?.checked_sub(1)?;
            self.attempts.get(index).filter(|attempt| !attempt.failed)
        };
        let best = at(record.incumbent);
        let selected = at(record.selected).or(best);
        let result =
            selected.map(|selected| self.result(selected, best, record.success, reason, &history));
        if matches!(code, ExitCode::Success | ExitCode::NotMet) && record.selected.is_some() {
            if let Some(result) = result {
                return Ok(result);
            }
            let why = self
                .attempts
                .last()
                .and_then(|last| last.errors[0]["message"].as_str())
                .unwrap_or("there is no draft");
            let mut failure = Failure::new(
                ExitCode::NotMet,
                format!("all of {count} attempts failed; the last one: {why}"),
            );
            failure.history = Some(Box::new(history));
            return Err(failure);
        }
        let mut failure = match (self.failure, code) {
            (Some(failure), _) => failure,
            (None, ExitCode::NotMet) => Failure::new(
                code,
                format!("Reflection loop failed after {count} iterations"),
            ),
            (None, code) => {
                let why = reason.map_or("it failed", ConvergenceReason::describe);
                Failure::new(code, record.error.clone().unwrap_or_else(|| why.to_owned()))
            }
        };
        failure.history = Some(Box::new(history));
        failure.partial = result.filter(|_| code != ExitCode::NotMet).map(Box::new);
        Err(failure)
    }

    fn result(
        &self,
        selected: &DraftAttempt,
        best: Option<&DraftAttempt>,
        success: bool,
        reason: Option<ConvergenceReason>,
        history: &Value,
    ) -> Value {
        let exhausted = !success;
        let mut result = Map::new();
        let mut set = |key: &str, value: Value| result.insert(key.to_owned(), value);
        set("success", json!(success));
        set("valid", json!(success));
        set("exhausted", json!(exhausted));
        set("convergence_reason", json!(reason));
        set("reflection_iteration", json!(self.attempts.len()));
        set("reflection_output", selected.output.clone());
        set("reflection_errors", selected.errors.clone());
        set("reflection_history", history.clone());
        set("reflection_best", json!(best.map(|best| &best.output)));
        set("reflection_best_score", json!(best.map(|best| best.score)));
        match &selected.output {
            Value::Object(object) => {
                for (key, value) in object {
                    if !OWN.contains(&key.as_str()) {
                        set(key, value.clone());
                    }
                }
            }
            other => {
                set("result", other.clone());
            }
        }
        Value::Object(result)
    }

    fn stop(&mut self, failure: Failure) -> BackendError {
        let message = failure.message.clone();
        let error = if failure.code == ExitCode::Provider {
            BackendError::Model(crate::model::ModelError::new(
                crate::model::ErrorClass::Protocol,
                message,
            ))
        } else {
            BackendError::Other(message)
        };
        self.failure = Some(failure);
        error
    }
}

/// Interprets a corrector's result. A string is the next draft. An object holds values for the
/// generator, unless it names the draft itself.
fn corrected(name: &str, action: &dyn Action, result: Value, regenerate: bool) -> Correction {
    if regenerate {
        return match result {
            Value::Object(object) => Correction::ForGenerator(object),
            _ => Correction::Nothing,
        };
    }
    if matches!(
        name,
        "llm.call" | "reason.self_correct" | "command" | "shell" | "reflection.loop"
    ) {
        return Correction::Draft(action.draft(result));
    }
    match result {
        Value::String(_) | Value::Array(_) => Correction::Draft(result),
        Value::Object(mut object) => {
            for key in ["reflection_output", "corrected_output"] {
                if let Some(draft) = object.shift_remove(key) {
                    return Correction::Draft(draft);
                }
            }
            match object.get("content") {
                // The envelope of a model's answer.
                Some(Value::String(text))
                    if object
                        .keys()
                        .all(|key| matches!(key.as_str(), "content" | "usage" | "attempts")) =>
                {
                    Correction::Draft(Value::String(text.clone()))
                }
                _ => Correction::ForGenerator(object),
            }
        }
        _ => Correction::Nothing,
    }
}

#[async_trait(?Send)]
impl LoopBackend for NodeBackend<'_> {
    async fn write(
        &mut self,
        iteration: u32,
        calls: &dyn CallObserver,
    ) -> Result<Written, BackendError> {
        self.current = Some(CurrentAttempt {
            draft: Value::Null,
            problem: None,
            begun: Instant::now(),
            usage: TokenUsage::default(),
            judged: None,
        });
        let (draft, based_on) = match self.next(iteration, calls).await {
            Ok(written) => written,
            Err(failure) if failure.is_final() => {
                self.current = None;
                return Err(self.stop(failure));
            }
            Err(failure) => {
                if let Some(current) = &mut self.current {
                    current.problem = Some(failure.message);
                }
                return Ok(Written {
                    output: String::new(),
                    based_on: None,
                });
            }
        };
        let output = text_of(&draft);
        if let Some(current) = &mut self.current {
            current.draft = draft;
        }
        Ok(Written { output, based_on })
    }

    async fn judge(
        &mut self,
        _: u32,
        attempt: u32,
        calls: &dyn CallObserver,
    ) -> Result<Evaluation, BackendError> {
        let Some(current) = &self.current else {
            return Err(BackendError::Other(
                "the generator returned no draft to evaluate".to_owned(),
            ));
        };
        if current.problem.is_some() {
            self.record_verdict(None);
            return Ok(failed_evaluation());
        }
        let draft = current.draft.clone();
        let mut names = self.names.clone();
        names.show_draft(&draft);
        let meter = UsageMeter::default();
        let observe = meter.observe(calls);
        let context = ActionContext {
            names: &names,
            calls: Some(&observe),
            ..self.context
        };
        let judged = self.plan.evaluator.judge(&draft, &context, attempt).await;
        drop(names);
        if let Some(current) = &mut self.current {
            current.usage += meter.used();
        }
        let judged = match judged {
            Ok(judged) => judged,
            Err(failure) if failure.is_final() => return Err(self.stop(failure)),
            Err(failure) => {
                return Err(self.stop(Failure {
                    code: ExitCode::JudgeUnusable,
                    ..failure
                }));
            }
        };
        let evaluation = Evaluation {
            satisfactory: judged.valid,
            ..judged.evaluation.clone()
        };
        if evaluation.rank().is_some() {
            self.record_verdict(Some(&judged));
            if let Err(failure) = self.names.state.check_size() {
                return Err(self.stop(failure));
            }
        } else if let Some(current) = &mut self.current {
            // It may be judged again.
            current.judged = Some(judged);
        }
        Ok(evaluation)
    }
}

/// The evaluation of an attempt without a draft: below every draft, whatever its score.
fn failed_evaluation() -> Evaluation {
    Evaluation {
        overall_score: Some(0.0),
        satisfactory: false,
        status: Status::Ok,
        criteria: vec![CriterionResult {
            name: "draft".to_owned(),
            evaluator: "draft".to_owned(),
            score: Some(0.0),
            threshold: 1.0,
            passed: false,
            required: true,
            status: Status::Ok,
            evidence: None,
            value: None,
            spread: None,
            cached: false,
        }],
        ..Evaluation::default()
    }
}
