//! `reflect bench judge`: measures how far a judge can be trusted.

use std::path::Path;

use super::{Trials, read_rows};
use crate::batch::{Gate, Host as _, Limits};
use crate::bench::judging::{self, JudgeBench, Labelled, Measured, Report};
use crate::cli::args::{GlobalArgs, JudgeBenchArgs, KnowledgeArgs, LoopsArgs, TasksArgs};
use crate::cli::commands::batch::loops::Loops;
use crate::cli::commands::batch::unreadable;
use crate::cli::error::CliError;
use crate::cli::output::{Output, named_file};
use crate::cli::{interrupt, printer, settings};
use crate::criteria;
use crate::report;
use crate::types::{ExitCode, Task};

/// Judges the texts in every mode and prints the report.
pub(super) async fn run(args: &JudgeBenchArgs, global: &GlobalArgs) -> Result<ExitCode, CliError> {
    let labelled = read(&args.labelled)?;
    let loops = LoopsArgs {
        allow_exec: args.allow_exec,
        model: args.model.clone(),
        ..LoopsArgs::default()
    };
    let tasks = TasksArgs {
        criteria: std::slice::from_ref(&args.criteria),
        tasks: &args.labelled,
        knowledge: &KnowledgeArgs::default(),
        memory: Some(false),
        loops: &loops,
        no_log: true,
    };
    let plan = settings::batch(tasks, None, global)?;
    if !plan.criteria.need_judge() {
        let message = format!("`{}` has no criterion that a model judges", args.criteria);
        return Err(CliError::usage(message));
    }
    let path = plan.settings().criteria_path.clone().unwrap_or_default();
    let target = args
        .write
        .then(|| writable(&args.criteria, &path))
        .transpose()?;
    let rows = named_file(args.output.as_deref());
    let mut measured = read_rows(rows, Measured::of)?;
    let drain = interrupt::cancel_on_signal();
    let gate = Gate::new(args.rates.with(args.concurrency));
    let longest = Task::new(longest(&labelled));
    let opening = Box::pin(Loops::open(tasks, global, plan, longest, &gate, None));
    let loops = interrupt::unless_cancelled(&drain, opening).await?;
    let plan = loops.loop_for(None).await.map_err(CliError::usage)?;
    let bench = JudgeBench::new(plan, labelled, args.modes.clone());
    let entries = bench.entries(&measured).map_err(|id| {
        let message =
            format!("row `{id}` was measured with another text, judge, criteria or settings");
        CliError::usage(message).hint("write to another file with `--output`")
    })?;
    let trials = Trials {
        entries,
        remote: &bench,
        gate: &gate,
        limits: Limits::default(),
        input: &args.labelled,
        rows,
        quiet: global.quiet,
    };
    let (mut new, ending) = trials.run(Measured::of, &drain).await?;
    measured.append(&mut new);
    if matches!(
        ending.exit_code(),
        ExitCode::Provider | ExitCode::Failure | ExitCode::Interrupted
    ) {
        return Ok(ending.exit_code());
    }
    let report = bench.report(&measured);
    let text = if args.json {
        printer::json(&report)?
    } else {
        report::judging_text(&report)
    };
    printer::print(&text)?;
    if let Some(file) = target {
        write(&file, &report, global.quiet)?;
    }
    Ok(ExitCode::Success)
}

fn read(path: &Path) -> Result<Vec<Labelled>, CliError> {
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let labelled = lines.map(|(number, line)| {
        serde_json::from_str(line).map_err(|_| {
            let place = format!("{}:{}: not a labelled text", path.display(), number + 1);
            CliError::usage(place).hint(
                "a line has `text` and `label` (true, false, or 0 to 1), or `a`, `b` and `better` (\"a\" or \"b\")",
            )
        })
    });
    let labelled = labelled.collect::<Result<Vec<Labelled>, CliError>>()?;
    if labelled.is_empty() {
        let message = format!("there are no texts in `{}`", path.display());
        return Err(CliError::usage(message));
    }
    Ok(labelled)
}

fn longest(labelled: &[Labelled]) -> &str {
    let texts = labelled.iter().flat_map(|it| match it {
        Labelled::Text { prompt, text, .. } => [prompt, text, text],
        Labelled::Pair { prompt, a, b, .. } => [prompt, a, b],
    });
    texts
        .max_by_key(|text| text.len())
        .map_or("", String::as_str)
}

/// Returns the path of the custom criteria file with this name.
fn writable(name: &str, search: &[std::path::PathBuf]) -> Result<std::path::PathBuf, CliError> {
    criteria::locate(name, search)?.path.ok_or_else(|| {
        CliError::usage(format!("--write: `{name}` is built in and has no file")).hint(format!(
            "write it to a file first: `reflect criteria init --from {name} FILE`"
        ))
    })
}

/// Writes the recommended keys to the criteria file. Everything else stays unchanged, including comments.
fn write(file: &Path, report: &Report, quiet: bool) -> Result<(), CliError> {
    let Some((trust, threshold)) = judging::best(&report.modes) else {
        return Err(CliError::failure("--write: no settings to recommend"));
    };
    let unusable = |error: &dyn std::fmt::Display| {
        CliError::failure(format!("cannot change `{}`: {error}", file.display()))
    };
    let text = fs_err::read_to_string(file).map_err(|error| unusable(&error))?;
    let mut document: toml_edit::DocumentMut = text.parse().map_err(|error| unusable(&error))?;
    let settings = toml::to_string(&trust.mode.settings()).map_err(|error| unusable(&error))?;
    let settings: toml_edit::DocumentMut = settings.parse().map_err(|error| unusable(&error))?;
    document["threshold"] = toml_edit::value(threshold.score);
    for (key, value) in settings.iter() {
        document["judge"].or_insert(toml_edit::table())[key] = value.clone();
    }
    Output::open(Some(file))?.write(&document.to_string())?;
    if !quiet {
        printer::say(&format!(
            "`{}` has the recommended settings now",
            file.display()
        ));
    }
    Ok(())
}
