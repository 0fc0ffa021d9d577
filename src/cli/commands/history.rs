//! `reflect history`: what the run log holds.

use std::fmt::Write as _;

use console::{Alignment, pad_str, truncate_str};
use jiff::tz::TimeZone;

use crate::cli::args::{Format, HistoryCommand};
use crate::cli::error::CliError;
use crate::cli::{paths, printer};
use crate::report;
use crate::store::{RunFilter, RunSummary, Store, short_id};
use crate::types::{Candidate, Event, ExitCode, RunRecord, Stamped};

/// How wide the table of runs is where it is not printed to a terminal.
const WIDTH: usize = 100;

/// Runs one of the history commands.
pub(in crate::cli) fn run(command: &HistoryCommand) -> Result<ExitCode, CliError> {
    let path = paths::store()?;
    let store = Store::open_existing(&path)?;
    let text = match command {
        HistoryCommand::List { limit, json } => {
            let filter = RunFilter {
                limit: Some(u32::try_from(*limit).unwrap_or(u32::MAX)),
                ..RunFilter::default()
            };
            let runs = match &store {
                Some(store) => store.runs(&filter)?,
                None => Vec::new(),
            };
            if *json {
                let mut text = serde_json::to_string_pretty(&runs)
                    .map_err(|error| CliError::failure(error.to_string()))?;
                text.push('\n');
                text
            } else {
                if runs.is_empty() && *limit > 0 {
                    printer::say("there are no runs yet");
                }
                table(&runs)
            }
        }
        HistoryCommand::Show {
            run,
            best,
            draft,
            format,
        } => {
            let store = store.ok_or_else(|| CliError::usage("there are no runs yet"))?;
            let run_id = store.find(run)?;
            let events = store.events(run_id)?;
            let record = RunRecord::from_events(&events);
            match (best, draft) {
                (true, _) => one_draft(
                    &record,
                    record.selected.or(record.best().map(|v| v.iteration)),
                )?,
                (false, Some(number)) => one_draft(&record, Some(*number))?,
                (false, None) => match format {
                    Format::Text => show(&record, &events),
                    Format::Json => report::json(&record),
                    Format::Markdown => report::markdown(&record),
                    Format::Ndjson => lines(&events)?,
                },
            }
        }
    };
    printer::print(&text)?;
    Ok(ExitCode::Success)
}

fn one_draft(record: &RunRecord, number: Option<u32>) -> Result<String, CliError> {
    let version = number.and_then(|number| record.version(number));
    let version = version.ok_or_else(|| {
        let numbers: Vec<String> = record
            .versions
            .iter()
            .map(|version| version.iteration.to_string())
            .collect();
        match (number, numbers.is_empty()) {
            (_, true) => CliError::usage("the run has no drafts"),
            (Some(number), false) => CliError::usage(format!(
                "the run has no draft {number}; it has {}",
                numbers.join(", ")
            )),
            (None, false) => CliError::usage("the run selected no draft").hint(format!(
                "take one of {} with `--draft N`",
                numbers.join(", ")
            )),
        }
    })?;
    Ok(printer::with_final_newline(&version.output))
}

fn lines(events: &[Stamped]) -> Result<String, CliError> {
    let mut out = String::new();
    for event in events {
        let line =
            serde_json::to_string(event).map_err(|error| CliError::failure(error.to_string()))?;
        out.push_str(&line);
        out.push('\n');
    }
    Ok(out)
}

/// One line for each run.
fn table(runs: &[RunSummary]) -> String {
    let width = console::Term::stdout()
        .size_checked()
        .map_or(WIDTH, |size| usize::from(size.1));
    let mut out = String::new();
    for run in runs {
        let started = run.started.to_zoned(TimeZone::system());
        let score = run
            .score
            .map_or("    ".to_owned(), |score| format!("{score:.2}"));
        let state = match (run.convergence_reason, run.exit_code) {
            (Some(reason), _) => serde_word(reason),
            // A text that was judged, and was not good enough.
            (None, Some(ExitCode::NotMet)) => "not_met".to_owned(),
            (None, Some(_)) => "failed".to_owned(),
            (None, None) => "unfinished".to_owned(),
        };
        let line = format!(
            "{}  {}  {score}  {}  {}  {}",
            short_id(run.run_id),
            started.strftime("%Y-%m-%d %H:%M"),
            pad_str(&state, 15, Alignment::Left, Some("…")),
            pad_str(&run.criteria, 12, Alignment::Left, Some("…")),
            run.title
        );
        out.push_str(truncate_str(&printer::without_controls(&line), width, "…").trim_end());
        out.push('\n');
    }
    out
}

/// A word of ours as it stands in JSON.
fn serde_word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// A run for people: what was asked, each draft's verdict, how it ended, and the selected draft.
fn show(record: &RunRecord, events: &[Stamped]) -> String {
    let mut out = String::new();
    for stamped in events {
        if let Event::RunStart {
            run_id,
            file,
            task,
            criteria,
            models,
            ..
        } = &stamped.event
        {
            let started = stamped.time.to_zoned(TimeZone::system());
            let _ = writeln!(out, "run       {run_id}");
            let _ = writeln!(
                out,
                "started   {}",
                started.strftime("%Y-%m-%d %H:%M:%S %Z")
            );
            if let Some(file) = file {
                let _ = writeln!(out, "file      {file}");
            }
            if !task.prompt.is_empty() {
                let prompt = task.prompt.replace('\n', "\n          ");
                let _ = writeln!(out, "prompt    {prompt}");
            }
            for block in &task.context {
                let size = report::thousands(block.content.chars().count() as u64);
                let _ = writeln!(out, "context   {} ({size} characters)", block.name);
            }
            let _ = writeln!(out, "criteria  {}", criteria.name);
            for (role, model) in [("writer", &models.writer), ("judge ", &models.judge)] {
                if let Some(model) = model {
                    let _ = writeln!(out, "{role}    {model}");
                }
            }
        }
    }
    for version in &record.versions {
        let before = version
            .based_on
            .and_then(|base| record.version(base))
            .and_then(crate::types::Version::score);
        let _ = writeln!(
            out,
            "\ndraft {}: {}",
            version.iteration,
            report::evaluation_line(version, before)
        );
        if let Some(revised) = report::revised(version) {
            let _ = writeln!(out, "  {revised}");
        }
        if let Some(evaluation) = &version.evaluation {
            out.push_str(&report::critique(evaluation));
        }
        let _ = writeln!(out, "\n{}", quoted(&version.output));
    }
    for candidate in record.candidates.iter().filter(|it| !it.chosen) {
        out.push_str(&candidate_text(candidate));
    }
    for (iteration, reason, text) in &record.rejected {
        let _ = writeln!(out, "\ndraft {iteration}: not a draft: {reason}");
        if !text.trim().is_empty() {
            let _ = writeln!(out, "\n{}", quoted(text));
        }
    }
    let ended = match record.exit_code {
        Some(_) => report::summary(record),
        None => "not finished: the run goes on, or its process ended".to_owned(),
    };
    let _ = writeln!(out, "\n{ended}");
    if let Some(error) = &record.error {
        let _ = writeln!(out, "error: {error}");
    }
    if let Some(selected) = record.selected() {
        let _ = writeln!(out, "the answer is draft {}", selected.iteration);
    }
    printer::without_controls(&out).into_owned()
}

/// A draft that did not become a version.
fn candidate_text(candidate: &Candidate) -> String {
    let score = candidate.evaluation.as_ref().map_or_else(
        || candidate.lost.clone().unwrap_or("not judged".to_owned()),
        |evaluation| report::score(evaluation.overall_score),
    );
    let Candidate {
        iteration,
        candidate: number,
        difference,
        ..
    } = candidate;
    let text = candidate.output.as_deref().map(quoted);
    let text = text.map_or_else(String::new, |text| format!("\n{text}\n"));
    format!("\ndraft {iteration}, candidate {number}, {difference}: {score}\n{text}")
}

/// A text set apart from what is said about it.
fn quoted(text: &str) -> String {
    text.trim_end()
        .lines()
        .map(|line| format!("  | {line}").trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}
