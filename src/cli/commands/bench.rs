//! `reflect bench`: measures whether the loop helps.

mod judge;
mod tasks;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::batch::loops::Loops;
use super::batch::progress::Progress;
use super::batch::{open_results, remaining, report_stop};
use crate::batch::{
    self, Ending, Entry, Flow, Gate, Hands, Limits, Now, Options, Output, Remote, Results, Row,
    Status, Stop, Tally,
};
use crate::bench::{Arm, Bench, Plan, Summary, TrialRow};
use crate::cli::args::{BenchArgs, BenchCommand, BenchFormat, GlobalArgs, ReportFormat};
use crate::cli::error::CliError;
use crate::cli::output::{self, named_file};
use crate::cli::{input, interrupt, printer, settings};
use crate::evidence::{Context, DEFAULT_MESSAGES};
use crate::report;
use crate::types::{ExitCode, Task};

/// The first seed if the user sets none.
const FIRST_SEED: u64 = 1;

/// Measures the loop, or a judge.
pub(in crate::cli) async fn run(
    args: &BenchArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    match &args.command {
        Some(BenchCommand::Judge(args)) => judge::run(args, global).await,
        None => run_trials(args, global).await,
    }
}

/// Runs the trials and prints the report.
async fn run_trials(args: &BenchArgs, global: &GlobalArgs) -> Result<ExitCode, CliError> {
    let started = Instant::now();
    check_arms(args)?;
    let rows = named_file(args.output.as_deref());
    let report = match args.report.as_deref() {
        Some(path) => Some((
            output::Output::open(Some(path))?,
            ReportFormat::for_file(path)?,
        )),
        None => None,
    };
    let known = settings::models(settings::load(global)?, &args.loops.model, global)?;
    let known = known.settings();
    let messages = args.knowledge.context_messages.or(known.context_messages);
    let messages = messages.unwrap_or(DEFAULT_MESSAGES);
    let mut base = Task {
        system: args.system.clone(),
        context: input::read_context(&args.files)?,
        ..Task::default()
    };
    if let Some(path) = &args.knowledge.context {
        Context::read(path)?.give_to(&mut base, messages);
    }
    let offline = known.offline == Some(true);
    let tasks = tasks::read(args, &base, messages, offline, global.quiet).await?;
    let own = own_criteria(&tasks);
    let own = own.filter(|_| args.criteria.is_empty());
    let tasks_args = args.tasks_args(match &own {
        Some(own) => std::slice::from_ref(own),
        None => &args.criteria,
    });
    let limits = settings::batch_limits(&args.loops.limits)?;
    let plan = settings::batch(tasks_args, own.as_deref(), global)?;
    let trial_plan = Plan {
        arms: args.arms.clone(),
        seeds: seeds(args, plan.settings().seed),
        budget: args.budget,
        holdout: args.holdout,
    };
    let mut measured = read_rows(rows, TrialRow::of)?;
    let drain = interrupt::cancel_on_signal();
    let gate = Gate::new(args.rates.with(args.concurrency));
    let longest = tasks.iter().max_by_key(|entry| entry.bytes);
    let longest = longest.and_then(|entry| entry.task.as_ref().ok());
    let longest = longest.map_or(base, |item| item.task.clone());
    let opening = Box::pin(Loops::open(
        tasks_args,
        global,
        plan,
        longest,
        &gate,
        limits.cost,
    ));
    let loops = interrupt::unless_cancelled(&drain, opening).await?;
    let bench = Bench::prepare(&loops, trial_plan.clone(), tasks.clone(), &measured).await;
    let bench = bench.map_err(|error| CliError::usage(error.to_string()))?;
    let keys = bench.keys();
    let trials = Trials {
        entries: bench.entries(&measured),
        remote: &bench,
        gate: &gate,
        limits: remaining(limits, started),
        input: Path::new(args.tasks()),
        rows,
        quiet: global.quiet,
    };
    let (mut new, ending) = trials.run(TrialRow::of, &drain).await?;
    measured.append(&mut new);
    let summary = Summary::new(&trial_plan, &keys, &measured);
    if let Some((file, format)) = report {
        let format = match format {
            ReportFormat::Html => BenchFormat::Html,
            ReportFormat::Json => BenchFormat::Json,
            ReportFormat::Markdown => BenchFormat::Markdown,
        };
        file.write(&format.of(&summary))?;
    }
    if !matches!(ending.stop, Some(Stop::NoReader)) {
        printer::print(&args.format.of(&summary))?;
    }
    Ok(match ending.exit_code() {
        ExitCode::Success | ExitCode::NotMet if summary.is_worse() && !args.exit_zero => {
            ExitCode::NotMet
        }
        ExitCode::Success | ExitCode::NotMet => ExitCode::Success,
        ExitCode::Limit if args.exit_zero => ExitCode::Success,
        code => code,
    })
}

fn check_arms(args: &BenchArgs) -> Result<(), CliError> {
    let unmatched = args.arms.iter().find(|arm| arm.needs_budget());
    match unmatched {
        Some(arm) if args.budget.is_none() && !args.arms.contains(&Arm::Reflect) => {
            let name = arm.as_str();
            Err(CliError::usage(format!(
                "--arms: `{name}` uses the token count of `reflect`, which is not among the arms"
            ))
            .hint("add `reflect`, or set a budget with `--budget`"))
        }
        _ => Ok(()),
    }
}

fn seeds(args: &BenchArgs, first: Option<u64>) -> Vec<u64> {
    let first = first.unwrap_or(FIRST_SEED);
    (0..args.seeds).map(|n| first.saturating_add(n)).collect()
}

/// The default criteria if every task has its own: those of the first task.
fn own_criteria(tasks: &[Entry]) -> Option<String> {
    let of = |entry: &Entry| entry.task.as_ref().ok()?.criteria.clone();
    let all = tasks.iter().all(|entry| of(entry).is_some());
    tasks.first().filter(|_| all).and_then(of)
}

/// Reads the rows of earlier trials. Skips failed trials, which run again.
fn read_rows<T>(path: Option<&Path>, read: fn(&Row) -> Option<T>) -> Result<Vec<T>, CliError> {
    let text = match path.map(fs_err::read_to_string) {
        Some(Ok(text)) => text,
        Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(CliError::usage(error.to_string()));
        }
        _ => return Ok(Vec::new()),
    };
    let mut measured = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let row = match serde_json::from_str::<Row>(line) {
            Ok(row) if row.status.is_failure() => continue,
            Ok(row) => read(&row),
            Err(error) if error.is_data() => None,
            // A half-written last row is removed when the file is opened for appending.
            Err(_) => continue,
        };
        measured.push(row.ok_or_else(|| {
            let path = path.unwrap_or(Path::new("")).display();
            let number = number + 1;
            CliError::usage(format!("{path}:{number}: not a row of a benchmark"))
                .hint("write to another file with `--output`")
        })?);
    }
    Ok(measured)
}

/// Trials to run as a batch.
struct Trials<'a> {
    entries: mpsc::Receiver<std::io::Result<Entry>>,
    remote: &'a dyn Remote,
    gate: &'a Arc<Gate>,
    limits: Limits,
    /// The file or set that the trials come from.
    input: &'a Path,
    /// The file that their rows are appended to, if any.
    rows: Option<&'a Path>,
    quiet: bool,
}

impl Trials<'_> {
    /// Runs the trials until all are done, or until a limit, a signal or the server stops them.
    async fn run<T>(
        self,
        read: fn(&Row) -> Option<T>,
        drain: &CancellationToken,
    ) -> Result<(Vec<T>, Ending), CliError> {
        let (results, _) = open_results(self.rows, true, self.input, self.quiet)?;
        let mut output = Rows {
            results,
            progress: Progress::new(Some(self.entries.len() as u64), self.quiet),
            measured: Vec::new(),
            read,
        };
        let options = Options {
            limits: self.limits,
            ..Options::default()
        };
        let hands = Hands::Elsewhere(self.remote);
        let tally = Tally::default();
        let entries = self.entries;
        let running = batch::run(
            entries,
            self.gate,
            options,
            hands,
            &mut output,
            tally,
            drain,
        );
        let ending = running.await;
        output.progress.end();
        if let Some(stop) = &ending.stop {
            report_stop(stop, "", self.input, self.rows.is_some(), self.quiet);
        }
        Ok((output.measured, ending))
    }
}

/// Writes rows and collects their measurements.
struct Rows<T> {
    results: Option<Results>,
    progress: Progress,
    measured: Vec<T>,
    read: fn(&Row) -> Option<T>,
}

impl<T> Output for Rows<T> {
    fn row(&mut self, row: &Row, now: Now) -> Result<Flow, String> {
        if let Some(results) = &mut self.results {
            results.append(row).map_err(|error| error.to_string())?;
        }
        if !matches!(row.status, Status::Failed | Status::Invalid) {
            self.measured.extend((self.read)(row));
        }
        self.progress.row(row, now);
        Ok(Flow::Go)
    }

    fn changed(&mut self, now: Now) {
        self.progress.changed(now);
    }
}

impl BenchFormat {
    fn of(self, summary: &Summary) -> String {
        match self {
            Self::Text => report::bench_text(summary),
            Self::Json => report::bench_json(summary),
            Self::Markdown => report::bench_markdown(summary),
            Self::Html => report::bench_html(summary),
        }
    }
}
