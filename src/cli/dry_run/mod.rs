//! `--dry-run`: shows what a command would do, without calling a model, using the network or writing files.

mod estimate;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use self::estimate::{Estimate, Work};
use super::args::{
    EvaluateArgs, EvaluateFormat, Format, GlobalArgs, OutputArgs, OutputFormat, RunArgs,
};
use super::error::CliError;
use super::models::{self, ModelPreview};
use super::run_inputs::RunInputs;
use super::settings::Plan;
use super::{printer, recall, settings};
use crate::engine::{BuildError, Loop, LoopBuilder, RunJournal, Start, Text};
use crate::evaluate::{JudgeModel, OtherModel, verdict_calls};
use crate::evidence::Gatherer;
use crate::model::{ChatModel, Message, Role, Sampling, ScriptedModel, Think};
use crate::prompt::{Prompts, Rubric};
use crate::text::counted;
use crate::types::{Criteria, Evaluator, ExitCode, SCHEMA_VERSION, Task};

/// The plan that a dry run prints.
struct DryRun<'a> {
    plan: &'a Plan,
    models: ModelPreview,
    /// The first call; `None` if no model is needed.
    first: Option<First>,
    /// The steps after the first call, one line each.
    then: Vec<String>,
    estimate: Estimate,
}

/// The first call.
struct First {
    /// The role that is called, e.g. `the writer`.
    whom: String,
    /// What it returns, e.g. `a draft`.
    what: &'static str,
    messages: Vec<Message>,
}

/// Prints what a run of the loop would do. The arguments are those of the run.
pub(super) fn of_run(
    args: &RunArgs,
    global: &GlobalArgs,
    judged: bool,
    read: impl FnOnce() -> Result<(Task, Start), CliError>,
) -> Result<ExitCode, CliError> {
    args.check()?;
    check(&args.output)?;
    let plan = settings::run(args, judged, global)?;
    let (inputs, start) = RunInputs::of_run(args, &plan, global.quiet, read)?;
    let RunInputs {
        mut task,
        tools,
        evidence,
        templates,
        ..
    } = inputs;
    let models = models::preview(&plan)?;
    let writer = (models.writer.as_ref()).map(|(name, _)| name.to_string());
    recall::recall(
        &plan,
        None,
        &mut task,
        &writer.unwrap_or_default(),
        global.quiet,
    )?;
    let settings = &plan.settings().loop_settings;
    let revisions = settings.max_iterations().saturating_sub(1);
    let (first, work) = match &start {
        Start::Text(text) => {
            let prompts = prompts(
                &plan,
                &task,
                &text.content,
                evidence.as_deref(),
                Evidence::Stays,
            )?
            .with_templates(templates);
            let draft = draft_tokens(&text.content);
            let first = first_verdict(&plan.criteria, &prompts, &text.content)?;
            let work = Work {
                prompts,
                draft,
                drafted: 0,
                judged: 1,
                revisions: (0, revisions),
            };
            (first, work)
        }
        Start::Task | Start::Correction { .. } => {
            let corrects = !judged;
            let draft = start.text().map_or_else(
                || models::likely_draft(&plan),
                |text| draft_tokens(&text.content),
            );
            let criteria = Arc::new(plan.criteria.clone());
            let loop_settings = plan.settings().loop_settings.clone();
            let shown = templates.clone();
            let messages = first_request(&task, criteria, |builder| {
                builder
                    .start(start)
                    .settings(loop_settings)
                    .tools(tools)
                    .evidence(evidence)
                    .templates(shown)
            })?;
            let first = messages.map(|messages| First {
                whom: "the writer".to_owned(),
                what: if corrects { "a correction" } else { "a draft" },
                messages,
            });
            let least = settings.min_iterations().saturating_sub(1);
            let work = Work {
                prompts: Prompts::new(&task, &plan.criteria).with_templates(templates),
                draft,
                drafted: 1,
                judged: u32::from(!corrects),
                revisions: if corrects { (0, 0) } else { (least, revisions) },
            };
            (first, work)
        }
    };
    let first_tokens = first
        .as_ref()
        .map(|first| estimate::tokens(&first.messages));
    let dry = DryRun {
        then: then(&plan, &work),
        estimate: Estimate::of(&plan.criteria, &work, first_tokens.unwrap_or_default()),
        plan: &plan,
        models,
        first,
    };
    dry.print(args.output.format == Format::Json)
}

/// Returns the messages of the first writer call of a run; `None` if it makes none. `build` adds what the run
/// has apart from models, which do not affect the first prompt.
fn first_request(
    task: &Task,
    criteria: Arc<Criteria>,
    build: impl FnOnce(LoopBuilder) -> LoopBuilder,
) -> Result<Option<Vec<Message>>, BuildError> {
    let silent = ScriptedModel::parse(Path::new("dry-run"), "").expect("an empty script is valid");
    let model: Arc<dyn ChatModel> = Arc::new(silent);
    let other = OtherModel {
        model: Arc::clone(&model),
        sampling: Sampling::default(),
        think: Think::default(),
    };
    let mut judge = JudgeModel::new(Arc::clone(&model), Sampling::default(), Think::default());
    let named = criteria
        .criteria
        .iter()
        .filter_map(|it| match &it.evaluator {
            Evaluator::Llm(config) => config.model.clone(),
            _ => None,
        });
    judge.others = named.map(|name| (name, other.clone())).collect();
    let run = build(Loop::builder(model, criteria).judge(judge)).build()?;
    let first = run.next_call(task, RunJournal::default());
    Ok(first.map(|call| call.request.messages))
}

/// Prints what an evaluation would do. `read` reads the texts.
pub(super) fn of_texts(
    args: &EvaluateArgs,
    global: &GlobalArgs,
    read: impl FnOnce() -> Result<Vec<Text>, CliError>,
) -> Result<ExitCode, CliError> {
    check(&args.output)?;
    let plan = settings::evaluate(args, global)?;
    let inputs = RunInputs::of_texts(args, &plan, global.quiet)?;
    let texts = read()?;
    let models = models::preview(&plan)?;
    let mut first = None;
    let mut estimate = Estimate::default();
    let mut lines = Vec::new();
    for text in &texts {
        let content = &text.content;
        let evidence = inputs.evidence.as_deref();
        let prompts = prompts(&plan, &inputs.task, content, evidence, Evidence::Fresh)?
            .with_templates(inputs.templates.clone());
        if first.is_none() {
            first = first_verdict(&plan.criteria, &prompts, content)?;
        }
        let work = Work {
            prompts,
            draft: draft_tokens(content),
            drafted: 0,
            judged: 1,
            revisions: (0, 0),
        };
        if lines.is_empty() {
            lines = then(&plan, &work);
        }
        estimate.add(&Estimate::of(&plan.criteria, &work, 0));
    }
    if texts.len() > 1 {
        lines.push(format!("the same for each of the {} texts", texts.len()));
    }
    let dry = DryRun {
        plan: &plan,
        models,
        first,
        then: lines,
        estimate,
    };
    dry.print(args.output.format == EvaluateFormat::Json)
}

fn check<F: OutputFormat>(output: &OutputArgs<F>) -> Result<(), CliError> {
    if output.format == F::NDJSON {
        return Err(
            CliError::usage("`--dry-run` has no events for `--format ndjson`")
                .hint("use `--format json`"),
        );
    }
    Ok(())
}

/// Where the evidence for a text appears in a prompt.
#[derive(Clone, Copy)]
enum Evidence {
    /// Before the text, for the whole run.
    Stays,
    /// After the text.
    Fresh,
}

/// Builds the prompts for an existing text, with the evidence found for it.
fn prompts(
    plan: &Plan,
    task: &Task,
    text: &str,
    gatherer: Option<&Gatherer>,
    place: Evidence,
) -> Result<Prompts, CliError> {
    let mut prompts = Prompts::new(task, &plan.criteria);
    if let Some(gatherer) = gatherer {
        let found = gatherer
            .for_text(task, text)
            .map_err(|error| CliError::failure(error.to_string()))?;
        match place {
            Evidence::Stays => prompts.show_evidence(&found),
            Evidence::Fresh => prompts.show_fresh_evidence(&found),
        }
    }
    Ok(prompts)
}

fn draft_tokens(text: &str) -> u64 {
    crate::model::ollama::estimate_tokens(text)
}

/// Builds the first judge call about a text; `None` if there is no judge.
fn first_verdict(
    criteria: &Criteria,
    prompts: &Prompts,
    text: &str,
) -> Result<Option<First>, CliError> {
    let calls = verdict_calls(criteria);
    let Some(call) = calls.first() else {
        return Ok(None);
    };
    Ok(Some(First {
        whom: call.model.map_or_else(
            || "the judge".to_owned(),
            |model| format!("{model}, the judge"),
        ),
        what: "a verdict",
        messages: (prompts.evaluate(text, &Rubric::new(&call.criteria), true))
            .map_err(|problem| CliError::usage(format!("cannot render a prompt: {problem}")))?,
    }))
}

/// Describes the steps after the first call, one line each.
fn then(plan: &Plan, work: &Work) -> Vec<String> {
    let criteria = &plan.criteria;
    let mut lines = Vec::new();
    if work.judged > 0 {
        let hard = criteria
            .criteria
            .iter()
            .filter(|criterion| !matches!(criterion.evaluator, Evaluator::Llm(_)))
            .count();
        let calls = estimate::verdicts(criteria);
        lines.push(match (hard, calls) {
            (0, calls) => format!("each draft: {} to the judge", counted(calls, "call")),
            (hard, 0) => format!("each draft: {}, no judge", counted(hard, "hard check")),
            (hard, calls) => format!(
                "each draft: {}, then {} to the judge unless a required check fails",
                counted(hard, "hard check"),
                counted(calls, "call")
            ),
        });
    }
    let (_, revisions) = work.revisions;
    if revisions > 0 {
        lines.push(format!(
            "then up to {}, evaluated in the same way, until the criteria are met; each call contains the \
             task, the criteria, the best draft and its issues",
            counted(revisions, "revision")
        ));
    }
    lines
}

impl DryRun<'_> {
    fn print(&self, as_json: bool) -> Result<ExitCode, CliError> {
        let text = if as_json {
            printer::json(&self.json())?
        } else {
            printer::without_controls(&self.text()).into_owned()
        };
        printer::print(&text)?;
        Ok(ExitCode::Success)
    }

    /// Returns each role with its model.
    fn models(&self) -> Vec<(&'static str, String)> {
        const FOUND: &str = "chosen when the run starts: a running Ollama, else a provider whose key is set, else the embedded model";
        let writer = match (&self.models.writer, &self.models.wanted) {
            (Some((name, why)), _) => format!("{name}, {why}"),
            (None, Some(name)) => {
                format!(
                    "{name}; the provider is chosen when the run starts: a running Ollama, else a provider \
                     whose key is set"
                )
            }
            (None, None) => FOUND.to_owned(),
        };
        let judge = self.models.judge.clone();
        let judge = judge.unwrap_or_else(|| "the same".to_owned());
        let mut all = vec![("writes", writer)];
        if estimate::verdicts(&self.plan.criteria) > 0 && self.plan.judged {
            all.push(("judges", judge));
        }
        let stronger = self.models.stronger.clone();
        all.extend(stronger.map(|name| ("takes over", name)));
        all
    }

    fn text(&self) -> String {
        let mut out =
            String::from("dry run: no model is called, and nothing is written\n\nsettings\n");
        // Writing to a `String` cannot fail.
        for (key, value, origin) in self.settings() {
            let _ = writeln!(out, "  {key} = {value}  # {origin}");
        }
        out.push_str("\nmodels\n");
        for (role, model) in self.models() {
            let _ = writeln!(out, "  {role}: {model}");
        }
        match &self.first {
            Some(first) => {
                let _ = writeln!(out, "\nfirst call: {}, from {}", first.what, first.whom);
                for message in &first.messages {
                    let _ = writeln!(out, "--- {}\n{}", role(message.role), message.content);
                }
                out.push_str("---\n");
            }
            None => out.push_str("\nno first call\n"),
        }
        if !self.then.is_empty() {
            out.push_str("\nthen\n");
        }
        for line in &self.then {
            let _ = writeln!(out, "  {line}");
        }
        let estimate = &self.estimate;
        let _ = writeln!(
            out,
            "\nestimate (rough; failed calls are retried)\n  calls          {}\n  input tokens   {}\n  output \
             tokens  {}",
            range(estimate.calls),
            range(estimate.read),
            range(estimate.written)
        );
        out
    }

    /// Returns every setting that has a value, with the value and its origin.
    fn settings(&self) -> Vec<(String, Value, String)> {
        let entries = self.plan.resolved.entries().into_iter();
        entries
            .filter_map(|entry| {
                let (value, origin) = entry.value?;
                Some((entry.key, value, origin.to_string()))
            })
            .collect()
    }

    fn json(&self) -> Value {
        let settings: serde_json::Map<String, Value> = self
            .settings()
            .into_iter()
            .map(|(key, value, origin)| (key, json!({ "value": value, "origin": origin })))
            .collect();
        let models: serde_json::Map<String, Value> = self
            .models()
            .into_iter()
            .map(|(role, model)| (role.replace(' ', "_"), model.into()))
            .collect();
        let least_and_most = |(least, most): (u64, u64)| json!({ "least": least, "most": most });
        json!({
            "schema_version": SCHEMA_VERSION,
            "dry_run": true,
            "settings": settings,
            "models": models,
            "first_call": self.first.as_ref().map(|first| json!({
                "of": first.whom,
                "for": first.what,
                "messages": first.messages,
            })),
            "then": self.then,
            "estimate": {
                "calls": least_and_most(self.estimate.calls),
                "tokens_read": least_and_most(self.estimate.read),
                "tokens_written": least_and_most(self.estimate.written),
            },
        })
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

fn range((least, most): (u64, u64)) -> String {
    if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    }
}
