//! A run of the loop from the command line: what `draft` and `revise` have in common.

use std::io::IsTerminal as _;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::cli::args::{Format, GlobalArgs, RunArgs};
use crate::cli::error::CliError;
use crate::cli::interactive::Person;
use crate::cli::observers::{Kept, Lines, RunLog, Tee};
use crate::cli::output::OutputFile;
use crate::cli::printer::{self, Reader};
use crate::cli::progress::Progress;
use crate::cli::store::{self, SharedStore};
use crate::cli::{dry_run, exec, extract, interrupt, knowledge, models, prices, settings};
use crate::engine::{Loop, Observer, Start};
use crate::evaluate::JudgeModel;
use crate::report;
use crate::store::short_id;
use crate::types::{ExitCode, LoopSettings, RunRecord, Task};

/// Runs the loop and prints the answer. `judged` says whether drafts are judged, or one correction is made
/// and that is all; `read` reads what is to be written, and what the run begins with.
pub(super) async fn run(
    args: &RunArgs,
    global: &GlobalArgs,
    judged: bool,
    read: impl FnOnce() -> Result<(Task, Start), CliError>,
) -> Result<ExitCode, CliError> {
    if args.output.dry_run {
        return dry_run::of_run(args, global, judged, read).await;
    }
    match prepare(args, global, judged, read).await {
        Ok(prepared) => prepared.run(args, global).await,
        Err(error) => {
            if args.output.format == Format::Ndjson {
                // A reader of events waits for exactly one end, also of a run that never began.
                printer::print(&Lines::end_of_failed(error.code, &error.message))?;
            }
            Err(error)
        }
    }
}

/// A run that can begin: everything that can be wrong beforehand is not.
struct Prepared {
    task: Task,
    run: Loop,
    log: Option<RunLog>,
    output: Option<OutputFile>,
    report: Option<OutputFile>,
    cancel: CancellationToken,
    /// Who decides, if the user wants to.
    person: Option<Person>,
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
    let person = (args.asking.interactive && !args.asking.yes)
        .then(|| {
            let most = plan.settings().loop_settings.max_iterations();
            Person::at_terminal(cancel.clone(), most)
        })
        .transpose()?;
    let tools = exec::tools(&plan, args.allow_exec)?;
    let templates = settings::templates(&plan)?;
    let writer_tools = exec::writer_tools(&args.tools, args.allow_exec)?;
    exec::check_names(&writer_tools, args.flow.reflect_on_tools.as_deref())?;
    let (mut task, start) = read()?;
    knowledge::read_context(&args.knowledge, &plan, &mut task)?;
    let evidence = knowledge::open_evidence(&args.knowledge, &plan, global.quiet)?;
    let output = OutputFile::prepare_if(args.output.output.as_deref())?;
    let report = OutputFile::prepare_if(args.output.report.as_deref())?;
    let store = SharedStore::open(&plan, args.output.no_log)?;
    let given = start.text().map(|text| text.content.as_str());
    let opened = tokio::select! {
        biased;
        () = cancel.cancelled() => {
            return Err(CliError::new(ExitCode::Interrupted, "interrupted"));
        }
        opened = models::open(&plan, &task, given, global.quiet) => opened?,
    };
    let max_cost = prices::limit(&plan, opened.asked(&plan), global.quiet)?;
    let judge = JudgeModel {
        cache: store::verdicts(&plan.criteria, store.as_ref()),
        ..opened.judge
    };
    let settings = LoopSettings {
        max_cost,
        ..plan.settings().loop_settings.clone()
    };
    let prices = plan.config.prices().clone();
    let local = ["ollama", "embedded"].contains(&opened.writer.id().provider.as_str());
    let run = Loop::builder(opened.writer, Arc::new(plan.criteria))
        .start(start)
        .sampling(opened.writer_sampling)
        .think(opened.think)
        .stronger(opened.stronger)
        .judge(judge)
        .settings(settings)
        .prices(prices)
        .tools(tools)
        .writer_tools(writer_tools)
        .evidence(evidence)
        .templates(templates)
        .prefetch(args.asking.prefetch.unwrap_or(local))
        .build()
        .map_err(|error| CliError::usage(error.to_string()))?;
    Ok(Prepared {
        task,
        run,
        log: store.map(RunLog::new),
        output,
        report,
        cancel,
        person,
    })
}

impl Prepared {
    async fn run(mut self, args: &RunArgs, global: &GlobalArgs) -> Result<ExitCode, CliError> {
        let deltas = args.output.stream_deltas;
        let mut lines =
            (args.output.format == Format::Ndjson).then(|| Lines::new(deltas, self.cancel.clone()));
        let mut progress = Progress::new(global.quiet).with_differences(args.diff);
        let mut kept = self.report.is_some().then(Kept::default);
        let record = {
            // The log goes first: what is shown is on disk already.
            let mut observers: Vec<&mut dyn Observer> = Vec::new();
            observers.extend(self.log.as_mut().map(|log| log as &mut dyn Observer));
            observers.push(&mut progress);
            observers.extend(lines.as_mut().map(|lines| lines as &mut dyn Observer));
            observers.extend(kept.as_mut().map(|kept| kept as &mut dyn Observer));
            let mut observer = Tee(observers);
            match &mut self.person {
                Some(person) => {
                    self.run
                        .run_with_decider(&self.task, &mut observer, person, &self.cancel)
                        .await
                }
                None => self.run.run(&self.task, &mut observer, &self.cancel).await,
            }
        };
        if let Some(error) = &record.error {
            printer::report(&CliError::failure(error.clone()));
        }
        if let Some(run_id) = record
            .run_id
            .filter(|_| self.log.is_some() && !global.quiet)
        {
            let id = short_id(run_id);
            printer::say(&format!(
                "show this run again with `reflect history show {id}`"
            ));
        }
        // The report first: it is wanted most where the answer cannot be delivered.
        let reported = self.report.zip(kept).map(|(report, Kept(events))| {
            report.write(&args.output.report_format().report(&record, &events))
        });
        let ended = match lines {
            Some(Lines {
                failure: Some(error),
                ..
            }) => return Err(error),
            Some(lines) => lines.reader(),
            None => deliver(args, global.quiet, &record, self.output)?,
        };
        reported.transpose()?;
        if ended == Reader::Gone {
            return Ok(ExitCode::Success);
        }
        let code = record.exit_code.unwrap_or(ExitCode::Failure);
        Ok(match code {
            ExitCode::NotMet | ExitCode::Limit if args.output.exit_zero => ExitCode::Success,
            code => code,
        })
    }
}

/// Gives the answer to the user: to a file, or to standard output.
fn deliver(
    run: &RunArgs,
    quiet: bool,
    record: &RunRecord,
    output: Option<OutputFile>,
) -> Result<Reader, CliError> {
    let args = &run.output;
    let text = match args.format {
        Format::Text | Format::Ndjson => match record.selected() {
            Some(selected) if run.extract => {
                let block = extract::first_block(&selected.output);
                if block.is_none() && !quiet {
                    printer::say("the answer has no fenced code block: all of it is printed");
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
    // Who interrupts a pipe wants nothing of it, and a file stays as it was; at a terminal the best draft so
    // far is worth seeing.
    let interrupted = record.exit_code == Some(ExitCode::Interrupted);
    let watched = output.is_none() && std::io::stdout().is_terminal();
    if interrupted && args.format != Format::Json && !watched {
        return Ok(Reader::There);
    }
    let delivered = match output {
        Some(file) => file.write(&text).map(|()| Reader::There),
        None => printer::print(&text),
    };
    delivered.map_err(|error| match record.run_id {
        Some(run_id) if !args.no_log => error.hint(format!(
            "nothing is lost: `reflect history show {} --best` prints the draft",
            short_id(run_id)
        )),
        _ => error,
    })
}
