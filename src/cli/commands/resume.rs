//! `reflect history resume`: continues a run that stopped early.

use std::sync::Arc;

use uuid::Uuid;

use super::session::{self, Prepared, ReadyRun};
use crate::cli::args::{GlobalArgs, OutputArgs, ResumeArgs};
use crate::cli::error::CliError;
use crate::cli::interactive::Person;
use crate::cli::observers::RunLog;
use crate::cli::printer;
use crate::cli::settings::{self, Plan};
use crate::cli::store::{self, SharedStore};
use crate::cli::{exec, interrupt, knowledge, models, setup};
use crate::engine::{RunJournal, Start, Text};
use crate::evidence::Gatherer;
use crate::prompt::{PROMPT_VERSION, Templates};
use crate::report;
use crate::store::{StoreError, short_id};
use crate::types::{
    ConvergenceReason, Criteria, Event, ExitCode, Issue, LoopSettings, Models, RunRecord, Setup,
    Stamped, Task,
};

/// Continues the run and prints the answer.
pub(in crate::cli) async fn run(
    args: &ResumeArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    Box::pin(session::execute(
        prepare(args, global).await,
        &args.output,
        global,
    ))
    .await
}

/// Returns a line, after a line break, that says how to resume the run. Empty if the run cannot be resumed.
pub(super) fn resume_hint(record: &RunRecord, id: &str) -> String {
    let more = match Resumable::of(record) {
        Resumable::AsItIs => String::new(),
        Resumable::With(limit) if limit != Limit::Iterations => {
            format!(" {} …", limit.flag())
        }
        _ => return String::new(),
    };
    format!("\nresume it with `reflect history resume {id}{more}`")
}

/// Whether a run can be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resumable {
    /// Without changes.
    AsItIs,
    /// With a higher limit.
    With(Limit),
    /// Not at all: the run is complete.
    No,
}

/// A limit that can be raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Iterations,
    Tokens,
    Time,
    Cost,
}

impl Limit {
    fn flag(self) -> &'static str {
        match self {
            Self::Iterations => "--max-iterations",
            Self::Tokens => "--max-total-tokens",
            Self::Time => "--max-time",
            Self::Cost => "--max-cost",
        }
    }

    /// Whether the run is below this limit. With `more`, there must be room for another draft; otherwise the
    /// run may be at its last one.
    fn is_left(self, settings: &LoopSettings, record: &RunRecord, more: bool) -> bool {
        match self {
            Self::Iterations => settings.max_iterations() >= record.iterations() + u32::from(more),
            Self::Tokens => {
                let used = record.token_usage.total.unwrap_or_default();
                settings.max_total_tokens.is_none_or(|limit| limit > used)
            }
            Self::Time => {
                let used = record.execution_time().unwrap_or_default();
                settings.max_time.is_none_or(|limit| limit > used)
            }
            Self::Cost => settings
                .max_cost
                .is_none_or(|limit| limit > record.known_cost()),
        }
    }

    /// Describes how much of it the run has used.
    fn used(self, record: &RunRecord) -> String {
        match self {
            Self::Iterations => format!("the run is at draft {}", record.iterations()),
            Self::Tokens => {
                let used = record.token_usage.total.unwrap_or_default();
                format!("the run has used {} tokens", report::thousands(used))
            }
            Self::Time => {
                let used = record.execution_time().unwrap_or_default();
                format!("the run has taken {}", report::duration(used))
            }
            Self::Cost => format!("the run has cost {}", record.known_cost()),
        }
    }
}

impl Resumable {
    fn of(record: &RunRecord) -> Self {
        let Some(reason) = record.convergence_reason else {
            return Self::No;
        };
        match reason {
            _ if record.ended_without_draft() => Self::AsItIs,
            ConvergenceReason::Interrupted
            | ConvergenceReason::ModelError
            | ConvergenceReason::NoDraft
            | ConvergenceReason::UserQuit => Self::AsItIs,
            ConvergenceReason::MaxIterations => Self::With(Limit::Iterations),
            ConvergenceReason::TokenBudget => Self::With(Limit::Tokens),
            ConvergenceReason::TimeLimit => Self::With(Limit::Time),
            ConvergenceReason::CostLimit => Self::With(Limit::Cost),
            // It met the criteria, was accepted, could not be judged, or a convergence rule stopped it.
            _ => Self::No,
        }
    }
}

/// A recorded run.
struct Past {
    /// Its short id.
    id: String,
    task: Task,
    criteria: Criteria,
    /// The latest settings of the loop.
    settings: LoopSettings,
    models: Models,
    setup: Setup,
    start: Start,
    record: RunRecord,
}

impl Past {
    /// Reads the record of a run. Fails if the run cannot be resumed.
    fn read(run_id: Uuid, recorded: &[Stamped]) -> Result<Self, CliError> {
        let record = RunRecord::from_events(recorded);
        let id = short_id(run_id);
        let mut events = recorded.iter().map(|stamped| &stamped.event);
        let Some(Event::RunStart {
            command,
            file,
            task,
            criteria,
            settings,
            models,
            setup,
            ..
        }) = events.next()
        else {
            return Err(CliError::failure(format!(
                "the record of run `{id}` has no start event"
            )));
        };
        if command == "evaluate" {
            return Err(CliError::usage(format!(
                "run `{id}` is an evaluation, which cannot be resumed"
            ))
            .hint("run `reflect evaluate` again; cached verdicts are reused"));
        }
        let Some(setup) = setup else {
            return Err(CliError::usage(format!(
                "run `{id}` cannot be resumed: it was recorded without the replies of its models"
            ))
            .hint("start a new run"));
        };
        if setup.prompts != PROMPT_VERSION {
            return Err(CliError::usage(format!(
                "run `{id}` was recorded by a version of reflect with other prompts"
            ))
            .hint("resume it with that version, or start a new run"));
        }
        let mut later = events.clone().filter_map(|event| match event {
            Event::Resumed { settings, .. } => Some(settings),
            _ => None,
        });
        let start = if command == "revise" {
            start(&id, file.clone(), models, events.clone())?
        } else {
            Start::Task
        };
        Ok(Self {
            id,
            task: (**task).clone(),
            criteria: (**criteria).clone(),
            settings: later.next_back().unwrap_or(settings).clone(),
            models: models.clone(),
            setup: (**setup).clone(),
            start,
            record,
        })
    }

    /// Returns the settings with the raised limits. Fails if the run is complete or a limit is too low.
    fn raised(&self, args: &ResumeArgs) -> Result<LoopSettings, CliError> {
        let flags = LoopSettings {
            max_iterations: args.max_iterations,
            max_total_tokens: args.max_total_tokens,
            max_time: settings::max_time(args.max_time.as_deref())?,
            max_cost: args.max_cost,
            max_revision_tokens: args.max_revision_tokens,
            ..LoopSettings::default()
        };
        let raised = flags.or(&self.settings);
        raised
            .check()
            .map_err(|(_, message)| CliError::usage(message))?;
        let given = [
            (Limit::Iterations, args.max_iterations.is_some()),
            (Limit::Tokens, args.max_total_tokens.is_some()),
            (Limit::Time, args.max_time.is_some()),
            (Limit::Cost, args.max_cost.is_some()),
        ];
        let record = &self.record;
        let ended = record.exit_code.map(|code| (code, Resumable::of(record)));
        // Report why the run ended before invalid flags.
        match ended {
            Some((code, Resumable::With(limit))) if !limit.is_left(&raised, record, true) => {
                return Err(self.ended(code).hint(format!(
                    "raise the limit with `{}`: {}",
                    limit.flag(),
                    limit.used(record)
                )));
            }
            Some((code, Resumable::No)) => {
                return Err(self.ended(code).hint(format!(
                    "show it with `reflect history show {id}`, or revise its draft with `reflect history show \
                     {id} --best | reflect revise …`",
                    id = self.id
                )));
            }
            Some(_) | None => {}
        }
        // A limit below the recorded usage would stop the replay too early.
        let too_little = given
            .into_iter()
            .find(|(limit, is_given)| *is_given && !limit.is_left(&raised, record, false));
        match too_little {
            Some((limit, _)) => Err(CliError::usage(format!(
                "`{}` is below what is already used: {}",
                limit.flag(),
                limit.used(record)
            ))),
            None => Ok(raised),
        }
    }

    fn ended(&self, code: ExitCode) -> CliError {
        let why = match (self.record.convergence_reason, &self.record.error) {
            (Some(reason), _) => reason.describe().to_owned(),
            (None, Some(error)) => error.clone(),
            (None, None) => format!("exit code {}", u8::from(code)),
        };
        CliError::usage(format!("run `{}` has ended: {why}", self.id))
    }

    /// Builds the plan from the record and the current configuration.
    fn plan(&self, global: &GlobalArgs, loop_settings: LoopSettings) -> Result<Plan, CliError> {
        let (config, judged) = (settings::load(global)?, self.models.judge.is_some());
        setup::plan(&self.setup, config, &self.criteria, loop_settings, judged)
    }

    /// Reads the prompt templates. Fails if they have changed since the run started.
    fn templates(&self, plan: &Plan) -> Result<Option<Arc<Templates>>, CliError> {
        let hint_text = "restore them, or start a new run";
        let templates = settings::templates(plan).map_err(|error| error.hint(hint_text))?;
        let hash = templates.as_ref().map(|templates| templates.hash());
        if hash == self.setup.templates_hash {
            return Ok(templates);
        }
        Err(CliError::usage(format!(
            "the prompt templates of run `{}` have changed since it started",
            self.id
        ))
        .hint(hint_text))
    }

    /// Opens the evidence files. Warns if they have changed since the run started.
    fn evidence(&self, plan: &Plan, quiet: bool) -> Result<Option<Arc<Gatherer>>, CliError> {
        let gatherer = knowledge::look_in(&self.setup.evidence, plan, quiet).map_err(|error| {
            error.hint("the run searches it for evidence: restore it, or start a new run")
        })?;
        let hash = gatherer.as_ref().map(|gatherer| gatherer.hash());
        if hash != self.setup.evidence_hash {
            printer::say(
                "warning: the evidence files have changed since the run started; earlier results are reused \
                 unchanged",
            );
        }
        Ok(gatherer)
    }
}

/// The text that a run of `revise` started with, and its issues if it is a correction.
fn start<'e>(
    id: &str,
    file: Option<String>,
    models: &Models,
    mut events: impl Iterator<Item = &'e Event> + Clone,
) -> Result<Start, CliError> {
    let not_yet = || {
        CliError::usage(format!("run `{id}` stopped before its first model call"))
            .hint("start a new run")
    };
    let content = events
        .find_map(|event| match event {
            Event::Draft { output, .. } => Some(output.clone()),
            _ => None,
        })
        .ok_or_else(not_yet)?;
    let text = Text { content, file };
    if models.judge.is_some() {
        return Ok(Start::Text(text));
    }
    let issues: Vec<Issue> = events
        .find_map(|event| match event {
            Event::Issues { open, .. } => {
                Some(open.iter().map(|tracked| tracked.issue.clone()).collect())
            }
            _ => None,
        })
        .ok_or_else(not_yet)?;
    Ok(Start::Correction { text, issues })
}

/// Rejects flags that do not apply to a resumed run.
fn check(output: &OutputArgs) -> Result<(), CliError> {
    output.check()?;
    if output.dry_run {
        return Err(CliError::usage(
            "`--dry-run` cannot be used with a run that has started",
        ));
    }
    if output.no_log {
        return Err(CliError::usage(
            "`--no-log` cannot be used with `history resume`: the run continues in the log",
        ));
    }
    Ok(())
}

async fn prepare(args: &ResumeArgs, global: &GlobalArgs) -> Result<Prepared, CliError> {
    check(&args.output)?;
    let store = SharedStore::open_existing()?.ok_or_else(|| StoreError::NoSuchRun {
        wanted: args.run.clone(),
    })?;
    let (run_id, claim, events, (calls, transcript)) = {
        let store = store.lock();
        let run_id = store.find(&args.run)?;
        // Claim the run before reading it, so that no other process adds to it.
        let claim = store.claim(run_id)?;
        let events = store.numbered_events(run_id)?;
        (run_id, claim, events, store.calls(run_id)?)
    };
    let (numbers, events): (Vec<u64>, Vec<_>) = events.into_iter().unzip();
    let mut past = Past::read(run_id, &events)?;
    if !global.set.is_empty() {
        return Err(
            CliError::usage("--set cannot change the settings of a recorded run")
                .hint("`reflect history resume --help` lists what can be changed"),
        );
    }
    setup::change(&mut past.setup, &settings::call_limits(&args.limits)?)?;
    let loop_settings = past.raised(args)?;
    let cancel = interrupt::cancel_on_signal();
    let person = Person::if_wanted(&args.asking, &cancel, &loop_settings)?;
    // Open files before changing the directory, because their paths are relative to the current one.
    let (output, report) = args.output.open()?;
    let directory = &past.setup.directory;
    std::env::set_current_dir(directory).map_err(|error| {
        CliError::usage(format!(
            "cannot enter the folder in which run `{}` was started: `{}`: {error}",
            past.id,
            directory.display()
        ))
        .hint("restore it, or start a new run")
    })?;
    let plan = past.plan(global, loop_settings)?;
    let tools = exec::tools(&plan, args.allow_exec)?;
    let templates = past.templates(&plan)?;
    let writer_tools = exec::writer_tools(&past.setup.tools, args.allow_exec)?;
    let evidence = past.evidence(&plan, global.quiet)?;
    let given = past.start.text().map(|text| text.content.as_str());
    let journal = RunJournal {
        events,
        calls: calls.into_iter().map(|(_, call)| call).collect(),
    };
    let opening = models::open(&plan, &past.task, given, &journal.calls, global.quiet);
    let opened = interrupt::unless_cancelled(&cancel, opening).await?;
    let prices = setup::prices(&past.setup, &plan.config);
    let cache = store::verdicts(&plan.criteria, Some(&store));
    let prefetch = args
        .asking
        .prefetch(opened.writer.id(), opened.writer_in_cloud);
    let run = opened
        .into_loop(&plan, cache, prices, global.quiet)?
        .start(past.start)
        .tools(tools.extracting(args.extract))
        .writer_tools(writer_tools)
        .evidence(evidence)
        .templates(templates)
        .prefetch(prefetch)
        .build()?;
    Ok(Prepared {
        ready: ReadyRun {
            task: past.task,
            journal,
            run,
            log: Some(RunLog::resumed(
                store.clone(),
                run_id,
                claim,
                numbers,
                transcript,
            )),
            store: Some(store),
        },
        person,
        diff: args.diff,
        extract: args.extract,
        output,
        report,
        cancel,
    })
}
