//! `reflect batch`: many tasks at once.

mod delivery;
#[cfg(feature = "restate")]
mod engine;
mod judged;
pub(super) mod loops;
mod memories;
pub(super) mod progress;

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use self::delivery::Delivery;
#[cfg(feature = "restate")]
use self::engine::Engine;
use self::loops::Loops;
use self::progress::Progress;
use crate::batch::{
    self, BatchHistory, Before, Checked, Concurrency, Ending, Gate, Hands, InputFormat, Limits,
    Options, Pace, PromptTemplate, Reader, Results, ResultsError, Shape, Status, Stop, Tally,
    Tasks,
};
use crate::cli::args::{BatchArgs, GlobalArgs, TasksFormat};
use crate::cli::error::CliError;
use crate::cli::output::{elsewhere, real_path, unusable};
use crate::cli::{input, interrupt, knowledge, printer, settings};
use crate::evidence::DEFAULT_MESSAGES;
use crate::report;
use crate::text::{counted, plural};
use crate::types::{ExitCode, ReflectionCriteria, Task};

/// The maximum number of invalid lines reported before the first task starts. The rows have all of them.
const MAX_REPORTED: usize = 10;

/// Runs the tasks and writes their rows.
pub(in crate::cli) async fn run(
    args: &BatchArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    let started = Instant::now();
    #[cfg(not(feature = "restate"))]
    if args.engine.is_some() || args.admin.is_some() || args.cancel {
        return Err(super::worker::not_built());
    }
    #[cfg(feature = "restate")]
    if args.cancel {
        return engine::cancel(args, global.quiet).await;
    }
    let plan = settings::batch(args.tasks_args(), None, global)?;
    let limits = settings::batch_limits(&args.loops.limits)?;
    let template = read_template(args.prompt.as_deref())?;
    let mut base = Task {
        system: args.system.clone(),
        context: input::read_context(&args.files)?,
        ..Task::default()
    };
    knowledge::read_context(&args.knowledge, &plan, &mut base)?;
    let source = Source::of(args);
    source.try_open(global.quiet)?;
    let criteria = plan.settings().reflector.criteria();
    if args.retry_failed && args.file().is_none() {
        return Err(CliError::usage("`--retry-failed` needs `--output FILE`").hint("name a file"));
    }
    let (results, before) =
        open_results(args.file(), args.retry_failed, &args.tasks, global.quiet)?;
    report_done(&before, args, global.quiet);
    let shape = Arc::new(Shape {
        base,
        template,
        messages: plan.settings().context_messages.unwrap_or(DEFAULT_MESSAGES),
        shard: args.shard,
        done: before.done,
    });
    let checked = source.check(args, &shape, global.quiet)?;
    if checked.as_ref().is_some_and(|checked| checked.entries == 0) {
        let ending = Ending {
            stop: None,
            tally: before.tally,
        };
        return Ok(conclude(&ending, "", args, global.quiet, started));
    }
    let (drain, end) = signals(args);
    let gate = Gate::new(pace(args));
    let longest = checked.as_ref().and_then(|checked| checked.longest.clone());
    let longest = longest.unwrap_or_else(|| shape.base.clone());
    let opening = async {
        #[cfg(feature = "restate")]
        if let Some(address) = &args.engine {
            let engine = Engine::open(args, global, plan, address, &gate, &end).await?;
            return Ok(Runner::Elsewhere(Box::new(engine)));
        }
        let loops =
            Loops::open(args.tasks_args(), global, plan, longest, &gate, limits.cost).await?;
        if let Some(checked) = &checked {
            loops.check_criteria(&checked.criteria, global.quiet).await;
        }
        Ok::<_, CliError>(Runner::Here(Box::new(loops)))
    };
    let runner = interrupt::unless_cancelled(&drain, Box::pin(opening)).await?;
    let total = checked.as_ref().map(|checked| checked.entries);
    let all = total.map(|total| total + before.tally.rows());
    let history = BatchHistory::new(judged::name(&args.tasks), Some(runner.writer()));
    let progress = Progress::new(total, global.quiet);
    let mut delivery = Delivery::new(results, progress, history);
    let entries = source.read_ahead(shape);
    let options = Options {
        ordered: args.ordered,
        fail_fast: args.fail_fast,
        replan: args.replan,
        limits: remaining(limits, started),
    };
    let tally = before.tally;
    let running = batch::run(
        entries,
        &gate,
        options,
        runner.hands(),
        &mut delivery,
        tally,
        &drain,
    );
    let ending = tokio::select! {
        ending = running => ending,
        never = runner.watch() => match never {},
    };
    let (history, unwritten) = delivery.end();
    if end.is_cancelled() {
        runner.cancel().await;
    }
    runner.learn(&history, &criteria, global.quiet);
    let code = conclude(&ending, &unwritten, args, global.quiet, started);
    if !global.quiet {
        judged::print(&history, &ending, all, &criteria, args);
    }
    Ok(code)
}

/// Where the tasks run: in this process, or on the workers of a Restate server.
enum Runner<'a> {
    Here(Box<Loops<'a>>),
    #[cfg(feature = "restate")]
    Elsewhere(Box<Engine<'a>>),
}

impl Runner<'_> {
    fn hands(&self) -> Hands<'_> {
        match self {
            Self::Here(loops) => Hands::Here(&**loops),
            #[cfg(feature = "restate")]
            Self::Elsewhere(engine) => Hands::Elsewhere(&**engine),
        }
    }

    /// Stores insights from the batch, if memory is in use.
    fn learn(&self, batch: &BatchHistory, criteria: &ReflectionCriteria, quiet: bool) {
        match self {
            Self::Here(loops) => loops.learn(batch, criteria, quiet),
            #[cfg(feature = "restate")]
            Self::Elsewhere(engine) => engine.learn(batch, criteria, quiet),
        }
    }

    /// Stops the batch if no worker can run its tasks.
    async fn watch(&self) -> Infallible {
        match self {
            Self::Here(_) => std::future::pending().await,
            #[cfg(feature = "restate")]
            Self::Elsewhere(engine) => engine.watch().await,
        }
    }

    /// Cancels the tasks submitted to workers.
    #[cfg_attr(
        not(feature = "restate"),
        expect(clippy::unused_async, reason = "the same signature as with the engine")
    )]
    async fn cancel(&self) {
        match self {
            Self::Here(_) => {}
            #[cfg(feature = "restate")]
            Self::Elsewhere(engine) => engine.cancel().await,
        }
    }

    /// The writer, as `provider:model`.
    fn writer(&self) -> String {
        match self {
            Self::Here(loops) => loops.writer(),
            #[cfg(feature = "restate")]
            Self::Elsewhere(engine) => engine.writer(),
        }
    }
}

/// Returns the tokens that the first and the second signal cancel. Tasks in this process end with the
/// process. Tasks on workers continue, so the second signal cancels them.
fn signals(args: &BatchArgs) -> (CancellationToken, CancellationToken) {
    if args.engine.is_some() {
        let [drain, end] = interrupt::cancel_on_signals();
        return (drain, end);
    }
    (interrupt::cancel_on_signal(), CancellationToken::new())
}

/// The number of tasks submitted before the first row reports how many the workers can run.
const INITIAL_TASKS: usize = 8;

/// The pace of this process. With `--engine`, the workers apply the rate limits and adapt to their servers,
/// so this process limits only how many tasks it submits at once.
fn pace(args: &BatchArgs) -> Pace {
    if args.engine.is_some() {
        return Pace {
            concurrency: match args.concurrency {
                Concurrency::Auto => Concurrency::Fixed(INITIAL_TASKS),
                fixed @ Concurrency::Fixed(_) => fixed,
            },
            requests_per_minute: None,
            tokens_per_minute: None,
        };
    }
    args.rates.with(args.concurrency)
}

/// The limits, less the time already spent on opening the models.
pub(super) fn remaining(limits: Limits, started: Instant) -> Limits {
    Limits {
        time: limits
            .time
            .map(|time| time.saturating_sub(started.elapsed())),
        ..limits
    }
}

fn read_template(text: Option<&str>) -> Result<Option<PromptTemplate>, CliError> {
    text.map(|text| {
        PromptTemplate::new(text)
            .map_err(|problem| CliError::usage(format!("--prompt: invalid template: {problem}")))
    })
    .transpose()
}

/// Opens the file for rows, if there is one. With `again`, removes the rows of failed tasks.
pub(super) fn open_results(
    path: Option<&Path>,
    again: bool,
    tasks: &Path,
    quiet: bool,
) -> Result<(Option<Results>, Before), CliError> {
    let Some(path) = path else {
        return Ok((None, Before::default()));
    };
    if real_path(path) == real_path(tasks) {
        return Err(CliError::usage("`--output` is also the input file")
            .hint("write the rows to another file"));
    }
    let (results, before) = Results::open(path, again).map_err(|error| {
        let message = error.to_string();
        match error {
            ResultsError::Io { path, error } => unusable(&path, &error),
            ResultsError::InUse { .. } => {
                CliError::usage(message).hint("wait for it, or write to another file")
            }
            ResultsError::NotOurs { .. } => CliError::usage(message)
                .hint("use a file that `reflect batch` wrote, or a new file"),
        }
    })?;
    if before.fixed && !quiet {
        printer::say(&format!(
            "the last row of `{}` is incomplete; running its task again",
            path.display()
        ));
    }
    Ok((Some(results), before))
}

/// Prints how many tasks have rows from an earlier call.
fn report_done(before: &Before, args: &BatchArgs, quiet: bool) {
    if let Some(file) = args.file()
        && !before.done.is_empty()
        && !quiet
    {
        let tasks = u64::try_from(before.done.len()).unwrap_or(u64::MAX);
        let tasks = counted(tasks, "task");
        printer::say(&format!("{tasks} already done in `{}`", file.display()));
    }
}

/// Where tasks come from: a file or standard input.
struct Source<'a> {
    /// `None` for standard input.
    file: Option<&'a Path>,
    format: InputFormat,
}

impl<'a> Source<'a> {
    fn of(args: &'a BatchArgs) -> Self {
        let file = Some(args.tasks.as_path()).filter(|path| *path != Path::new("-"));
        let format = match args.input_format {
            Some(TasksFormat::Csv) => InputFormat::Csv,
            Some(TasksFormat::Jsonl) => InputFormat::Jsonl,
            None => InputFormat::of(&args.tasks),
        };
        Self { file, format }
    }

    /// Fails early if the file cannot be opened.
    fn try_open(&self, quiet: bool) -> Result<(), CliError> {
        let Some(path) = self.file else {
            if io::stdin().is_terminal() && !quiet {
                printer::say("reading tasks from standard input; end them with Ctrl-D");
            }
            return Ok(());
        };
        match File::open(path).and_then(|file| file.metadata()) {
            Ok(metadata) if metadata.is_dir() => Err(unreadable(path, &"it is a directory")),
            Ok(_) => Ok(()),
            Err(error) => Err(unreadable(path, &error)),
        }
    }

    /// Reads the whole file before the first model call and reports invalid lines. Returns `None` for
    /// standard input and pipes, which can be read only once.
    fn check(
        &self,
        args: &BatchArgs,
        shape: &Arc<Shape>,
        quiet: bool,
    ) -> Result<Option<Checked>, CliError> {
        let Some(path) = self.file else {
            return Ok(None);
        };
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Ok(None);
        }
        let tasks = Tasks::new(Reader::new(file, self.format), Arc::clone(shape));
        let checked = batch::check(tasks).map_err(|error| unreadable(path, &error))?;
        let place = |line: u64, problem: &str| format!("{}:{line}: {problem}", path.display());
        if let Some((line, problem)) = checked.first_bad.first().filter(|_| args.fail_fast) {
            return Err(CliError::usage(place(*line, problem))
                .hint("no task was started; without `--fail-fast`, the other tasks run"));
        }
        if !quiet {
            for (line, problem) in checked.first_bad.iter().take(MAX_REPORTED) {
                printer::say(&format!("warning: {}", place(*line, problem)));
            }
            let more = checked.bad.saturating_sub(MAX_REPORTED as u64);
            if more > 0 {
                printer::say(&format!("warning: {more} more lines are no tasks"));
            }
        }
        Ok(Some(checked))
    }

    fn read_ahead(
        &self,
        shape: Arc<Shape>,
    ) -> tokio::sync::mpsc::Receiver<io::Result<batch::Entry>> {
        let (file, format) = (self.file.map(Path::to_owned), self.format);
        Tasks::read_ahead(move || {
            let input: Box<dyn Read> = match file.map(File::open) {
                None => Box::new(io::stdin()),
                Some(Ok(file)) => Box::new(file),
                Some(Err(error)) => Box::new(Unopened(Some(error))),
            };
            Tasks::new(Reader::new(input, format), shape)
        })
    }
}

/// A reader that returns the error of a failed `open`.
struct Unopened(Option<io::Error>);

impl Read for Unopened {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self
            .0
            .take()
            .unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }
}

pub(super) fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> CliError {
    CliError::usage(format!("cannot read `{}`: {error}", path.display()))
}

/// Prints the counts and the cost of the batch, and why it stopped early. Returns the exit code.
fn conclude(
    ending: &Ending,
    unwritten: &str,
    args: &BatchArgs,
    quiet: bool,
    started: Instant,
) -> ExitCode {
    let tally = &ending.tally;
    if !quiet {
        printer::say(&numbers(tally));
        let mut used: Vec<String> = report::tokens(&tally.token_usage).into_iter().collect();
        used.extend(tally.cost().map(|cost| format!("cost {cost:.4}")));
        used.push(report::duration(started.elapsed().as_secs_f64()));
        printer::say(&used.join(" · "));
    }
    if let Some(stop) = &ending.stop {
        report_stop(stop, unwritten, &args.tasks, args.file().is_some(), quiet);
    }
    match ending.exit_code() {
        ExitCode::NotMet | ExitCode::Limit if args.exit_zero => ExitCode::Success,
        code => code,
    }
}

fn numbers(tally: &Tally) -> String {
    let parts: Vec<String> = Status::ALL
        .into_iter()
        .filter(|status| tally.of(*status) > 0)
        .map(|status| {
            format!(
                "{} {}",
                report::thousands(tally.of(status)),
                status.describe()
            )
        })
        .collect();
    let tasks = match tally.rows() {
        0 => return "no tasks".to_owned(),
        rows => format!(
            "{} {}",
            report::thousands(rows),
            plural(rows, "task", "tasks")
        ),
    };
    format!("{tasks}: {}", parts.join(", "))
}

/// Reports why a batch stopped early. `kept`: whether its rows are in a file.
pub(super) fn report_stop(stop: &Stop, unwritten: &str, tasks: &Path, kept: bool, quiet: bool) {
    let what = match stop {
        Stop::NoReader => return,
        Stop::Provider(error) => {
            printer::report(&CliError::from((**error).clone()));
            "all other tasks would fail too"
        }
        Stop::Input(problem) => {
            let name = tasks.display();
            printer::report(&CliError::failure(format!(
                "cannot read `{name}`: {problem}"
            )));
            return;
        }
        Stop::Output(problem) => {
            let error = CliError::failure(problem.clone());
            let stdout_is_free = kept;
            printer::report(&elsewhere(error, unwritten, stdout_is_free, None));
            return;
        }
        Stop::Interrupted => "interrupted",
        Stop::Failed => "a task failed, and `--fail-fast` is set",
        Stop::Tokens => "token limit reached",
        Stop::Cost => "cost limit reached",
        Stop::Time => "time limit reached",
    };
    if !quiet {
        let again = if kept {
            "; run the same command again to continue"
        } else {
            "; use `--output FILE` to be able to continue"
        };
        printer::say(&format!("the batch was stopped: {what}{again}"));
    }
}
