//! `reflect run`: runs a workflow.

mod nodes;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};

use self::nodes::Nodes;
use crate::cli::args::{GlobalArgs, WorkflowArgs, WorkflowFormat};
use crate::cli::error::CliError;
use crate::cli::input::{self, Input};
use crate::cli::models::FileModels;
use crate::cli::observers::{Lines, RunLog};
use crate::cli::output::{Output, events_and_output, named_file};
use crate::cli::printer::{self, Reader};
use crate::cli::progress::{Progress, trying_again};
use crate::cli::store::{self, SharedStore};
use crate::cli::verbose::Verbosity;
use crate::cli::{exec, interrupt, settings};
use crate::engine::Observer as _;
use crate::model::CallReport;
use crate::types::{Event as LoopEvent, ExitCode};
use crate::workflow::{self, Event, Failure, Observer, Outcome, ProgramKind, Workflow, World};

/// Runs the workflow and prints its output.
pub(in crate::cli) async fn run(
    args: &WorkflowArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    let result = run_file(args, global).await;
    if let Err(error) = &result
        && args.format == WorkflowFormat::Ndjson
        && !args.check
        && !args.dry_run
    {
        // Readers of events expect exactly one end event, even if the workflow never started.
        printer::print(&Lines::end_of_failed(error.code, &error.message))?;
    }
    result
}

async fn run_file(args: &WorkflowArgs, global: &GlobalArgs) -> Result<ExitCode, CliError> {
    if args.format == WorkflowFormat::Ndjson && named_file(args.output.as_deref()).is_some() {
        return Err(events_and_output());
    }
    let expectations: Vec<Expectation> = args
        .fail_on_state
        .iter()
        .map(|text| Expectation::read(text))
        .collect::<Result<_, _>>()?;
    let plan = settings::workflow(args, global)?;
    let reach = |file: &Path| settings::reach(&plan.config, args.allow_exec, file);
    let text = input::read_file(&args.file)?;
    let workflow = workflow::load(&args.file, &reach)?;
    if !global.quiet {
        for note in workflow.notes() {
            printer::say(&format!("warning: {note}"));
        }
    }
    let input = read_input(args, global.quiet)?;
    workflow
        .check_input(&input)
        .map_err(|it| failed(&it, None))?;
    workflow
        .check_manual(&args.reflect)
        .map_err(|it| failed(&it, None))?;
    if args.check {
        printer::print(&format!("{}: ok\n", args.file.display()))?;
        return Ok(ExitCode::Success);
    }
    if args.dry_run {
        printer::print(&describe(&workflow))?;
        return Ok(ExitCode::Success);
    }
    let tools = exec::workflow_tools(&workflow.programs(), &plan.config, args.allow_exec)?;
    let templates = settings::templates(&plan)?;
    let output = Output::open(args.output.as_deref())?;
    let store = SharedStore::open(&plan, args.no_log)?;
    let cancel = interrupt::cancel_on_signal();
    let watch = Watch(Arc::new(Mutex::new(Views {
        progress: None,
        log: store.clone().map(RunLog::new),
        nodes: Nodes::new(workflow.name(), plan.settings().reflector.criteria()),
        lines: (args.format == WorkflowFormat::Ndjson).then(|| Lines::new(false, cancel.clone())),
        verbosity: Verbosity::of(global),
        global: global.clone(),
    })));
    let limits = plan.settings().loop_settings.clone();
    let prices = plan.config.prices().clone();
    let verdicts = plan
        .settings()
        .judge
        .cache()
        .then(|| store::kept_verdicts(store.as_ref()));
    let models = FileModels::new(plan, &args.file, &text, global.quiet).shared();
    let mut world = World::new(tools, models, Box::new(watch.clone()), cancel);
    world.limits.max_total_tokens = limits.max_total_tokens;
    world.limits.max_cost = limits.max_cost;
    world.limits.max_time = limits.max_time;
    world.prices = prices;
    world.templates = templates;
    world.manual.clone_from(&args.reflect);
    world.verdicts = verdicts;
    world.folder = folder_of(&args.file);
    let outcome = workflow.run(input, &world).await;
    finish(args, &workflow, &outcome, &expectations, output, &watch)
}

/// The folder of the workflow file, in which commands run.
fn folder_of(file: &Path) -> PathBuf {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    file.parent()
        .map_or_else(|| PathBuf::from("."), Path::to_owned)
}

fn finish(
    args: &WorkflowArgs,
    workflow: &Workflow,
    outcome: &Outcome,
    expectations: &[Expectation],
    output: Output,
    watch: &Watch,
) -> Result<ExitCode, CliError> {
    watch.views().progress = None;
    if let Some((node, failure)) = &outcome.failure {
        printer::report(&failed(failure, Some(node)));
        if let Some(history) = failure.history.as_deref().and_then(Value::as_array) {
            for attempt in history {
                printer::say(&attempt_line(attempt));
            }
        }
    }
    let mut code = outcome.exit_code;
    let mut views = watch.views();
    views.nodes.conclude(outcome, &views.global);
    let lines = views.lines.take();
    drop(views);
    if lines.map(Lines::end).transpose()? == Some(Reader::Gone) {
        return Ok(ExitCode::Success);
    }
    let text = match args.format {
        WorkflowFormat::Ndjson => None,
        WorkflowFormat::Json => Some(printer::json(&outcome.report(workflow.name()))?),
        WorkflowFormat::Text if outcome.output.is_null() => None,
        WorkflowFormat::Text => Some(match &outcome.output {
            Value::String(text) => text.clone(),
            other => printer::json(other)?,
        }),
    };
    if let Some(text) = text {
        let text = printer::with_final_newline(&text);
        if output.deliver(&text, None)? == Reader::Gone {
            return Ok(ExitCode::Success);
        }
    }
    if code == ExitCode::Success
        && let Some(met) = expectations.iter().find(|it| it.is_met(outcome))
    {
        printer::say(&format!(
            "the final state has {}={} (`--fail-on-state`)",
            met.path, met.text
        ));
        code = ExitCode::NotMet;
    }
    Ok(match code {
        ExitCode::NotMet | ExitCode::Limit if args.exit_zero => ExitCode::Success,
        code => code,
    })
}

/// Formats an attempt of a failed loop on one line.
fn attempt_line(attempt: &Value) -> String {
    let score = match attempt["score"].as_f64() {
        Some(score) => format!("score {score:.2}"),
        None => "no score".to_owned(),
    };
    let errors: Vec<&str> = attempt["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|error| error["message"].as_str())
        .collect();
    let errors = if errors.is_empty() {
        String::new()
    } else {
        format!(": {}", errors.join("; "))
    };
    format!("  attempt {}: {score}{errors}", attempt["iteration"])
}

/// Converts a failure into an error of the command.
fn failed(failure: &Failure, node: Option<&str>) -> CliError {
    let mut error = match &failure.place {
        Some(place) => CliError::from(place.clone()),
        None => CliError::new(failure.code, failure.message.clone()),
    };
    error.code = failure.code;
    if let (Some(node), None) = (node, &failure.place) {
        error.message = format!("node `{node}`: {}", error.message);
    }
    match &failure.hint {
        Some(hint) if failure.place.is_none() => error.hint(hint.clone()),
        _ => error,
    }
}

/// Reads the input of the workflow, a JSON object.
fn read_input(args: &WorkflowArgs, quiet: bool) -> Result<Map<String, Value>, CliError> {
    let Some(given) = args.input.as_deref() else {
        return Ok(Map::new());
    };
    let (text, name) = match given.strip_prefix('@') {
        Some(path) => {
            let input = Input::of(Path::new(path));
            (input.read("the input", quiet)?, input.name())
        }
        None => (given.to_owned(), "`--input`".to_owned()),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(CliError::usage(format!("{name} is not a JSON object"))
            .hint("for example: --input '{\"request\": \"create a user\"}'")),
        Err(error) => Err(CliError::usage(format!("{name} is not JSON: {error}"))
            .hint("for example: --input '{\"request\": \"create a user\"}', or --input @FILE")),
    }
}

/// Describes the workflow, for `--dry-run`.
fn describe(workflow: &Workflow) -> String {
    let mut out = format!("{}\n", workflow.name());
    if let Some(description) = workflow.description() {
        for line in description.trim().lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
    for (name, action) in workflow.nodes() {
        let _ = writeln!(out, "node {name}: {action}");
    }
    for program in workflow.programs() {
        let what = match &program.what {
            ProgramKind::Script(language, _) => format!("{language} code"),
            ProgramKind::Command(command) => format!("the command `{command}`"),
        };
        let _ = writeln!(
            out,
            "runs {what} on this machine: node {}, line {}",
            program.node, program.line
        );
    }
    out
}

/// A `KEY=VALUE` of `--fail-on-state`, which the final state must not have.
struct Expectation {
    path: String,
    text: String,
}

impl Expectation {
    fn read(text: &str) -> Result<Self, CliError> {
        match text.split_once('=') {
            Some((path, value)) if !path.is_empty() => Ok(Self {
                path: path.to_owned(),
                text: value.to_owned(),
            }),
            _ => Err(CliError::usage(format!(
                "`--fail-on-state {text}`: expected KEY=VALUE, for example success=false"
            ))),
        }
    }

    fn is_met(&self, outcome: &Outcome) -> bool {
        let mut steps = self.path.split('.');
        let first = steps.next().and_then(|key| outcome.state.get(key));
        let found = steps.try_fold(first, |value, step| Some(value?.get(step)));
        match found.flatten() {
            Some(Value::String(text)) => *text == self.text,
            // Compare other values as JSON.
            found => serde_json::from_str(&self.text)
                .is_ok_and(|expected: Value| *found.unwrap_or(&Value::Null) == expected),
        }
    }
}

/// Shows progress and records the runs of loops.
#[derive(Clone)]
struct Watch(Arc<Mutex<Views>>);

struct Views {
    /// The progress of the current loop.
    progress: Option<Progress>,
    log: Option<RunLog>,
    /// How the nodes ended, for the reflector.
    nodes: Nodes,
    /// The event output, with `--format ndjson`.
    lines: Option<Lines>,
    verbosity: Verbosity,
    global: GlobalArgs,
}

impl Watch {
    fn views(&self) -> MutexGuard<'_, Views> {
        self.0.lock()
    }
}

impl Observer for Watch {
    fn on_event(&mut self, event: &Event<'_>) {
        self.views().see(event, None);
    }

    fn on_call(&mut self, event: &Event<'_>, call: &CallReport<'_>) {
        self.views().see(event, Some(call));
    }
}

impl Views {
    /// Handles an event. Model calls come with a report.
    fn see(&mut self, event: &Event<'_>, call: Option<&CallReport<'_>>) {
        self.nodes.see(event);
        match event {
            Event::Loop { event, .. } => {
                if let Some(log) = &mut self.log {
                    log.on_event(event);
                }
                if matches!(event.event, LoopEvent::RunStart { .. }) {
                    self.progress = Some(Progress::new(&self.global));
                }
                match (&mut self.progress, call) {
                    (Some(progress), Some(call)) => progress.on_call(event, call),
                    (Some(progress), None) => progress.on_event(event),
                    (None, _) => {}
                }
            }
            Event::Call { node, .. } => {
                // No loop is running, so there is no progress line.
                if let Some(call) = call {
                    self.verbosity.say(&format!("node {node}"), call);
                }
            }
            Event::NodeStart { node, action } => {
                self.say(&format!("node {node}: {action}"));
            }
            Event::Trigger {
                node,
                trigger,
                reason,
            } => self.say(&format!("node {node}: reflecting ({trigger}: {reason})")),
            Event::Retry {
                message, wait_ms, ..
            } => self.say(&trying_again(message, *wait_ms)),
            Event::Print { node, text } => {
                for line in text.trim_end().lines() {
                    self.say(&format!("node {node} printed: {line}"));
                }
            }
            Event::Warning { message } => self.say(&format!("warning: {message}")),
            _ => {}
        }
        if let Some(lines) = &mut self.lines
            && let Some(line) = line(event)
        {
            lines.print(&line);
        }
    }

    fn say(&self, line: &str) {
        match &self.progress {
            Some(progress) => progress.line(line),
            None if self.global.quiet => {}
            None => printer::say(line),
        }
    }
}

/// Formats an event as a line of NDJSON; `None` if it is not printed.
fn line(event: &Event<'_>) -> Option<String> {
    let mut value = serde_json::to_value(event).unwrap_or_default();
    if let Event::Loop { event, .. } = event {
        if !event.event.is_recorded() {
            return None;
        }
        // Rename the end of a loop, because more events follow.
        if let LoopEvent::RunEnd { .. } = event.event {
            value["event"] = Value::from("loop_end");
        }
    } else if let Value::Object(object) = &mut value {
        object.insert("time".to_owned(), Value::from(Timestamp::now().to_string()));
    }
    Some(format!("{value}\n"))
}
