//! Runs the loop: the common part of `draft`, `revise` and `history resume`.

use std::io::IsTerminal as _;

use tokio_util::sync::CancellationToken;

use super::resume;
use crate::cli::args::{Format, GlobalArgs, OutputArgs, ReportFormat, RunArgs};
use crate::cli::error::CliError;
use crate::cli::interactive::Person;
use crate::cli::observers::{Kept, Lines, RunLog, Tee};
use crate::cli::output::{Output, elsewhere};
use crate::cli::printer::{self, Reader};
use crate::cli::progress::Progress;
use crate::cli::run_inputs::RunInputs;
use crate::cli::settings::Plan;
use crate::cli::store::{self, SharedStore};
use crate::cli::{dry_run, interrupt, models, recall, settings, setup};
use crate::engine::{Decider, Loop, Observer, RunJournal, Start};
use crate::model::first_block;
use crate::report;
use crate::store::short_id;
use crate::types::{ExitCode, RunRecord, Task};

/// Runs the loop and prints the answer. Without `judged`, the loop makes a single correction and evaluates
/// nothing. `read` reads the task and what the run starts from.
pub(super) async fn run(
    args: &RunArgs,
    global: &GlobalArgs,
    judged: bool,
    read: impl FnOnce() -> Result<(Task, Start), CliError>,
) -> Result<ExitCode, CliError> {
    if args.output.dry_run {
        return dry_run::of_run(args, global, judged, read);
    }
    let prepared = prepare(args, global, judged, read).await;
    Box::pin(execute(prepared, &args.output, global)).await
}

/// A validated run, ready to start, without the parts for a terminal.
pub(super) struct ReadyRun {
    pub(super) task: Task,
    /// The steps that an earlier process recorded.
    pub(super) journal: RunJournal,
    pub(super) run: Loop,
    pub(super) log: Option<RunLog>,
    pub(super) store: Option<SharedStore>,
}

impl ReadyRun {
    /// Opens the run log and the models of a run that begins with these inputs.
    pub(super) async fn open(
        args: &RunArgs,
        plan: &Plan,
        (inputs, start): (RunInputs, Start),
        cancel: &CancellationToken,
        quiet: bool,
    ) -> Result<Self, CliError> {
        let mut task = inputs.task;
        let store = SharedStore::open(plan, args.output.no_log)?;
        let given = start.text().map(|text| text.content.as_str());
        let opening = models::open(plan, &task, given, &[], quiet);
        let opened = interrupt::unless_cancelled(cancel, opening).await?;
        let writer = opened.writer.id().to_string();
        recall::recall(plan, store.as_ref(), &mut task, &writer, quiet)?;
        let setup = match store {
            Some(_) => Some(setup::of(
                plan,
                setup::Given {
                    writer,
                    at_given_address: opened.at_given_address,
                    tools: &args.tools,
                    evidence: &args.knowledge.evidence,
                },
                inputs.evidence.as_deref(),
                inputs.templates.as_deref(),
            )?),
            None => None,
        };
        let cache = store::verdicts(&plan.criteria, store.as_ref());
        let prices = plan.config.prices().clone();
        let prefetch = args
            .asking
            .prefetch(opened.writer.id(), opened.writer_in_cloud);
        let run = opened
            .into_loop(plan, cache, prices, quiet)?
            .start(start)
            .tools(inputs.tools.extracting(args.extract))
            .writer_tools(inputs.writer_tools)
            .evidence(inputs.evidence)
            .templates(inputs.templates)
            .setup(setup)
            .prefetch(prefetch)
            .build()?;
        Ok(Self {
            task,
            journal: RunJournal::default(),
            run,
            log: store.clone().map(RunLog::new),
            store,
        })
    }

    /// Runs it to its end. The log receives each event before `shown` does: what is shown is on disk already.
    pub(super) async fn run(
        &mut self,
        shown: &mut dyn Observer,
        decider: Option<&mut dyn Decider>,
        cancel: &CancellationToken,
        quiet: bool,
    ) -> RunRecord {
        let mut observers: Vec<&mut dyn Observer> = Vec::new();
        observers.extend(self.log.as_mut().map(|log| log as &mut dyn Observer));
        observers.push(shown);
        let journal = std::mem::take(&mut self.journal);
        let observer = &mut Tee(observers);
        let run = self
            .run
            .run_over(&self.task, journal, observer, decider, cancel);
        let record = run.await;
        let remembers = !self.task.remembered.is_empty();
        if let (Some(store), Some(run_id), true) = (&self.store, record.run_id, remembers) {
            recall::measure(store, run_id, quiet);
        }
        record
    }

    /// Whether all of the run is in the log.
    pub(super) fn is_kept(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.failure.is_none())
    }
}

/// A run that can begin: everything that can be wrong beforehand is not.
pub(super) struct Prepared {
    pub(super) ready: ReadyRun,
    /// Who decides, if the user wants to.
    pub(super) person: Option<Person>,
    pub(super) output: Output,
    pub(super) report: Option<Output>,
    /// Whether to show how each draft differs from the one that it revises.
    pub(super) diff: bool,
    /// Whether to print only the first code block of the draft.
    pub(super) extract: bool,
    pub(super) cancel: CancellationToken,
}

async fn prepare(
    args: &RunArgs,
    global: &GlobalArgs,
    judged: bool,
    read: impl FnOnce() -> Result<(Task, Start), CliError>,
) -> Result<Prepared, CliError> {
    args.check()?;
    let plan = settings::run(args, judged, global)?;
    let cancel = interrupt::cancel_on_signal();
    let person = Person::if_wanted(&args.asking, &cancel, &plan.settings().loop_settings)?;
    let inputs = RunInputs::of_run(args, &plan, global.quiet, read)?;
    let (output, report) = args.output.open()?;
    let ready = ReadyRun::open(args, &plan, inputs, &cancel, global.quiet).await?;
    Ok(Prepared {
        ready,
        person,
        diff: args.diff,
        extract: args.extract,
        output,
        report,
        cancel,
    })
}

/// Runs the loop and prints the answer.
pub(super) async fn execute(
    prepared: Result<Prepared, CliError>,
    args: &OutputArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    let mut prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            if args.format == Format::Ndjson {
                // Readers of events expect exactly one end event, even if the run never started.
                printer::print(&Lines::end_of_failed(error.code, &error.message))?;
            }
            return Err(error);
        }
    };
    let deltas = args.stream_deltas;
    let mut lines =
        (args.format == Format::Ndjson).then(|| Lines::new(deltas, prepared.cancel.clone()));
    let outcome_last = args.format == Format::Text
        && !global.quiet
        && prepared.output.is_stdout()
        && is_one_terminal();
    let mut progress = Progress::new(global)
        .with_differences(prepared.diff)
        .without_outcome(outcome_last);
    let mut kept = prepared.report.is_some().then(Kept::default);
    let record = {
        let mut observers: Vec<&mut dyn Observer> = vec![&mut progress];
        observers.extend(lines.as_mut().map(|lines| lines as &mut dyn Observer));
        observers.extend(kept.as_mut().map(|kept| kept as &mut dyn Observer));
        let (shown, cancel) = (&mut Tee(observers), &prepared.cancel);
        let person = prepared.person.as_mut();
        let decider = person.map(|person| person as &mut dyn Decider);
        prepared
            .ready
            .run(shown, decider, cancel, global.quiet)
            .await
    };
    if let Some(error) = &record.error {
        printer::report(&CliError::failure(error.clone()));
    }
    let is_kept = prepared.ready.is_kept();
    let show = record.run_id.filter(|_| is_kept && !global.quiet);
    let show = show.map(|run_id| {
        let id = short_id(run_id);
        let resume_hint = resume::resume_hint(&record, &id);
        format!("show this run with `reflect history show {id}`{resume_hint}")
    });
    if let Some(show) = show.as_ref().filter(|_| !outcome_last) {
        printer::say(show);
    }
    // Write the report first: it matters most if the answer cannot be delivered.
    let reported = prepared.report.zip(kept).map(|(report, Kept(events))| {
        let format = args.report_format();
        // The log also has the prompts and replies.
        let logged = match (format, &prepared.ready.log) {
            (ReportFormat::Html, Some(log)) => log.page(),
            _ => None,
        };
        report.write(&logged.unwrap_or_else(|| format.report(&record, &events)))
    });
    let kept = record.run_id.filter(|_| is_kept).map(|run_id| {
        format!(
            "the run is recorded: print the draft with `reflect history show {} --best`",
            short_id(run_id)
        )
    });
    let ended = match lines {
        Some(lines) => lines.end().map_err(|error| match record.selected() {
            Some(selected) => elsewhere(error, &selected.output, false, kept),
            None => error,
        })?,
        None => deliver(
            args,
            prepared.extract,
            global.quiet,
            &record,
            prepared.output,
            kept,
        )?,
    };
    reported.transpose()?;
    if ended == Reader::Gone {
        return Ok(ExitCode::Success);
    }
    if outcome_last && record.run_id.is_some() {
        printer::say("");
        progress.line(&report::summary(&record));
        if let Some(show) = &show {
            printer::say(show);
        }
    }
    let code = record.exit_code.unwrap_or(ExitCode::Failure);
    Ok(match code {
        ExitCode::NotMet | ExitCode::Limit if args.exit_zero => ExitCode::Success,
        code => code,
    })
}

/// Whether stdout and stderr are the same terminal, where a long draft would push the outcome out of sight.
fn is_one_terminal() -> bool {
    std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

/// Writes the answer to a file or to stdout.
fn deliver(
    args: &OutputArgs,
    extract: bool,
    quiet: bool,
    record: &RunRecord,
    output: Output,
    kept: Option<String>,
) -> Result<Reader, CliError> {
    let text = match args.format {
        Format::Text | Format::Ndjson => match record.selected() {
            Some(selected) if extract => {
                let block = first_block(&selected.output);
                if block.is_none() && !quiet {
                    printer::say("the draft has no fenced code block; printing all of it");
                }
                let text = block.unwrap_or_else(|| selected.output.clone());
                printer::with_final_newline(&text)
            }
            Some(selected) => printer::with_final_newline(&selected.output),
            None => return Ok(Reader::There),
        },
        Format::Json => report::json(record),
        Format::Markdown => report::markdown(record),
    };
    // After an interrupt, print the best draft only to a terminal: pipes get nothing and files stay
    // unchanged.
    let interrupted = record.exit_code == Some(ExitCode::Interrupted);
    let watched = output.is_stdout() && std::io::stdout().is_terminal();
    if interrupted && args.format != Format::Json && !watched {
        if !quiet {
            let hint = kept.map_or_else(String::new, |kept| format!("; {kept}"));
            printer::say(&format!("interrupted; the draft was not printed{hint}"));
        }
        return Ok(Reader::There);
    }
    output.deliver(&text, kept)
}
