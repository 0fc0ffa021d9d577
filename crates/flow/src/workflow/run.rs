//! Runs a workflow.

use std::time::Instant;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::event::Event;
use super::failure::Failure;
use super::file::{Node, Workflow};
use super::state::State;
use super::template::{self, Names};
use super::triggers::{CompletedStep, Triggers};
use super::world::{ActionContext, World, since};
use crate::source;
use crate::types::{ExitCode, SCHEMA_VERSION, TokenUsage};

/// The maximum number of steps in a run, because edges may form cycles.
const MAX_STEPS: u64 = 10_000;

/// The outcome of a workflow.
#[derive(Debug)]
pub struct Outcome {
    /// The final state.
    pub state: State,
    /// The result of the last node, as shown to people.
    pub output: Value,
    /// Whether the workflow completed, and the last loop's draft met the criteria.
    pub success: bool,
    /// The exit code.
    pub exit_code: ExitCode,
    /// Why it did not complete, and in which node.
    pub failure: Option<(String, Failure)>,
    /// The nodes that ran, in order, each with its duration in milliseconds.
    pub steps: Vec<(String, u64)>,
    /// The number of requests to models, including retries.
    pub total_llm_calls: u32,
    /// The token usage of all calls.
    pub token_usage: TokenUsage,
}

impl Outcome {
    /// Returns the JSON that `--format json` prints.
    pub fn report<'a>(&'a self, name: &'a str) -> impl Serialize + 'a {
        let failure = self.failure.as_ref();
        RunReport {
            schema_version: SCHEMA_VERSION,
            name,
            success: self.success,
            exit_code: self.exit_code,
            output: &self.output,
            state: &self.state,
            history: failure.and_then(|(_, failure)| failure.history.as_deref()),
            nodes: self
                .steps
                .iter()
                .map(|(node, time)| json!({ "node": node, "duration_ms": time }))
                .collect(),
            total_llm_calls: self.total_llm_calls,
            token_usage: self.token_usage,
            error: failure.map(|(node, failure)| {
                json!({
                    "node": node,
                    "message": failure.message,
                })
            }),
        }
    }
}

#[derive(Serialize)]
struct RunReport<'a> {
    schema_version: u32,
    name: &'a str,
    success: bool,
    exit_code: ExitCode,
    output: &'a Value,
    state: &'a State,
    /// The attempts of a loop that was configured to raise an error.
    history: Option<&'a Value>,
    nodes: Vec<Value>,
    total_llm_calls: u32,
    token_usage: TokenUsage,
    error: Option<Value>,
}

impl Workflow {
    /// Checks an input against the `state_schema`.
    ///
    /// # Errors
    /// If a value has the wrong type.
    pub fn check_input(&self, input: &Map<String, Value>) -> Result<(), Failure> {
        for (name, wanted) in &self.schema {
            if let Some(value) = input.get(name)
                && !value.is_null()
                && !wanted.holds(value)
            {
                let what = wanted.describe();
                return Err(Failure::new(
                    ExitCode::Usage,
                    format!(
                        "`{name}` of the input is {value}, and {what} is required (`state_schema`)"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Checks that the user may request a reflection on the results of these nodes.
    ///
    /// # Errors
    /// If a node does not exist, or has no reflection with the trigger `manual`.
    pub fn check_manual(&self, asked: &[String]) -> Result<(), Failure> {
        for name in asked {
            let Some(node) = self.nodes.iter().find(|node| node.name == *name) else {
                let names = self.nodes.iter().map(|node| node.name.as_str());
                let near = source::similar(name, names.clone());
                let hint = near.map_or_else(
                    || format!("there are {}", source::list(names)),
                    |near| format!("did you mean `{near}`?"),
                );
                let failure = Failure::new(ExitCode::Usage, format!("unknown node `{name}`"));
                return Err(failure.hint(hint));
            };
            let mut triggers = [&node.triggers, &self.triggers].into_iter().flatten();
            if !triggers.any(Triggers::is_manual) {
                let message =
                    format!("the node `{name}` has no `reflection` with the trigger `manual`");
                return Err(Failure::new(ExitCode::Usage, message).hint(
                    "add a `reflection` with `triggers: [manual]` to it or to the workflow",
                ));
            }
        }
        Ok(())
    }

    /// Runs the workflow. The world's observer has received every event when this returns.
    pub async fn run(&self, input: Map<String, Value>, world: &World) -> Outcome {
        let nodes = self.nodes.iter().map(|node| node.name.as_str()).collect();
        world.emit(&Event::start(&self.name, nodes));
        let mut names = Names {
            state: self.defaults.clone().into(),
            more: State::default(),
        };
        names.state.merge(self.variables.clone());
        names.state.merge(input);
        names
            .more
            .set("variables", Value::Object(self.variables.clone()));
        let mut walk = WorkflowRun {
            workflow: self,
            world,
            names,
            output: Value::Null,
            met: true,
            score: None,
            steps: Vec::new(),
        };
        let failure = walk.run_nodes().await;
        let exit_code = match &failure {
            Some((_, failure)) => failure.code,
            None if walk.met => ExitCode::Success,
            None => ExitCode::NotMet,
        };
        let (total_llm_calls, token_usage) = world.taken();
        let outcome = Outcome {
            success: exit_code == ExitCode::Success,
            state: walk.names.state,
            output: walk.output,
            exit_code,
            failure,
            steps: walk.steps,
            total_llm_calls,
            token_usage,
        };
        world.emit(&Event::End {
            schema_version: SCHEMA_VERSION,
            success: outcome.success,
            exit_code,
            output: &outcome.output,
            error: outcome
                .failure
                .as_ref()
                .map(|(_, failure)| failure.message.as_str()),
        });
        outcome
    }
}

/// A run in progress.
struct WorkflowRun<'a> {
    workflow: &'a Workflow,
    world: &'a World,
    names: Names,
    output: Value,
    /// Whether the last loop's draft met the criteria.
    met: bool,
    /// The last score that a node returned.
    score: Option<f64>,
    steps: Vec<(String, u64)>,
}

impl WorkflowRun<'_> {
    /// Runs the nodes. Returns the node and the failure, if one failed.
    async fn run_nodes(&mut self) -> Option<(String, Failure)> {
        let workflow = self.workflow;
        let mut next = match workflow.graph.first(&self.names) {
            Ok(next) => next,
            Err(failure) => return Some(("__start__".to_owned(), failure)),
        };
        let mut number = 0;
        while let Some(node) = next.and_then(|at| workflow.nodes.get(at)) {
            let at = next.unwrap_or_default();
            number += 1;
            let failed = |failure: Failure| Some((node.name.clone(), failure));
            if number > MAX_STEPS {
                let why = format!("the workflow did not end after {MAX_STEPS} steps");
                return failed(Failure::new(ExitCode::Limit, why));
            }
            if self.world.cancel.is_cancelled() {
                return failed(Failure::new(ExitCode::Interrupted, "interrupted"));
            }
            if let Err(failure) = self.step(node, at, number).await {
                if let Some(Value::Object(partial)) = failure.partial.as_deref().cloned() {
                    self.output = partial
                        .get("reflection_output")
                        .cloned()
                        .unwrap_or_default();
                    self.names.state.merge(partial);
                } else {
                    self.output = Value::Null;
                }
                if let Some(history) = failure.history.as_deref().cloned() {
                    self.names.state.set("reflection_history", history);
                }
                return failed(failure);
            }
            next = match workflow.graph.after(at, &node.name, &self.names) {
                Ok(next) => next,
                Err(failure) => return failed(failure),
            };
        }
        None
    }

    /// Runs one node, and stores its result.
    async fn step(&mut self, node: &Node, at: usize, number: u64) -> Result<(), Failure> {
        if let Some(when) = &node.when {
            let text = when.text()?;
            if !template::holds(text, &self.names)
                .map_err(|template_error| template_error.at(when, text))?
            {
                return Ok(());
            }
        }
        let world = self.world;
        world.emit(&Event::NodeStart {
            node: &node.name,
            action: node.action_name,
        });
        let begun = Instant::now();
        let names = self.names.clone();
        let context = ActionContext {
            world,
            node: &node.name,
            names: &names,
            calls: None,
        };
        let result = tokio::select! {
            biased;
            result = node.action.run(&context) => result,
            () = world.cancel.cancelled() => Err(Failure::new(ExitCode::Interrupted, "interrupted")),
        };
        let all: Vec<&Triggers> = [&node.triggers, &self.workflow.triggers]
            .into_iter()
            .flatten()
            .collect();
        let mut spreads = node.action.spreads();
        let mut answers_as_loop = false;
        let mut result = match result {
            Ok(result) => result,
            Err(failure) => {
                let mut corrected = None;
                for triggers in &all {
                    corrected = triggers
                        .after_error(&failure, &*node.action, &context)
                        .await;
                    if corrected.is_some() {
                        break;
                    }
                }
                (spreads, answers_as_loop) = (true, true);
                corrected.unwrap_or(Err(failure))?
            }
        };
        let score = score_of(&result);
        if !answers_as_loop {
            let is_last = || self.is_last(node, at, &result, spreads);
            for (triggers, own) in [(&node.triggers, true), (&self.workflow.triggers, false)] {
                let Some(triggers) = triggers else {
                    continue;
                };
                let step = CompletedStep {
                    number,
                    action_name: node.action_name,
                    scores: (self.score, score),
                    is_last: &|| own || is_last(),
                };
                let reflected = triggers
                    .after_step(&step, &*node.action, &result, &context)
                    .await;
                if let Some(reflected) = reflected {
                    result = reflected?;
                    (spreads, answers_as_loop) = (true, true);
                    break;
                }
            }
        }
        drop(names);
        self.score = score_of(&result).or(self.score);
        if spreads && let Some(success) = result.get("success").and_then(Value::as_bool) {
            self.met = success;
        }
        let answer = if answers_as_loop {
            &result["reflection_output"]
        } else {
            node.action.answer(&result)
        };
        if !answer.is_null() {
            self.output = answer.clone();
        }
        let time = since(begun);
        world.emit(&Event::NodeEnd {
            node: &node.name,
            output: answer,
            duration_ms: time,
        });
        self.steps.push((node.name.clone(), time));
        take(&mut self.names.state, node, result, spreads);
        self.names.state.check_size()
    }

    /// Returns whether no node follows once this result is in the state.
    fn is_last(&self, node: &Node, at: usize, result: &Value, spreads: bool) -> bool {
        let mut names = self.names.clone();
        take(&mut names.state, node, result.clone(), spreads);
        let next = self.workflow.graph.after(at, &node.name, &names);
        matches!(next, Ok(None))
    }
}

/// Stores a node's result in the state: under the node's `output` name, or key by key.
fn take(state: &mut State, node: &Node, result: Value, spreads: bool) {
    match (&node.output, result) {
        (Some(name), Value::Object(object)) => {
            if spreads {
                state.merge(object.clone());
            }
            state.set(name, Value::Object(object));
        }
        (Some(name), result) => state.set(name, result),
        (None, Value::Object(object)) => state.merge(object),
        (None, Value::Null) => {}
        (None, result) => state.set("result", result),
    }
}

/// Returns the score in a result.
fn score_of(result: &Value) -> Option<f64> {
    ["reflection_best_score", "score"]
        .iter()
        .find_map(|key| result.get(key)?.as_f64())
}
