//! `reflect history show`: shows one run.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use crate::cli::columns::set_apart;
use crate::cli::error::CliError;
use crate::cli::printer;
use crate::report;
use crate::store::short_id;
use crate::types::{Candidate, Evaluation, Event, Issue, RunRecord, Stamped};

/// Formats one draft.
pub(super) fn one_draft(record: &RunRecord, number: Option<u32>) -> Result<String, CliError> {
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
                "choose one of {} with `--draft N`",
                numbers.join(", ")
            )),
        }
    })?;
    Ok(printer::with_final_newline(&version.output))
}

/// Formats the events as NDJSON.
pub(super) fn lines(events: &[Stamped]) -> Result<String, CliError> {
    let mut out = String::new();
    for event in events {
        let line =
            serde_json::to_string(event).map_err(|error| CliError::failure(error.to_string()))?;
        out.push_str(&line);
        out.push('\n');
    }
    Ok(out)
}

/// Formats a run as text: the task, each draft with its verdict, and how the run ended.
pub(in crate::cli::commands) fn show(record: &RunRecord, events: &[Stamped]) -> String {
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
        for reason in strategies(events, version.iteration) {
            let _ = writeln!(out, "  {reason}");
        }
        match &version.evaluation {
            Some(evaluation) => out.push_str(&report::critique(evaluation)),
            // The issues that a correction has to fix.
            None => out.push_str(&report::critique(&Evaluation {
                issues: named(events, version.iteration),
                ..Evaluation::default()
            })),
        }
        let _ = writeln!(out, "\n{}", quoted(&version.output));
    }
    for candidate in record.candidates.iter().filter(|it| !it.chosen) {
        out.push_str(&candidate_text(candidate));
    }
    for (iteration, reason, text) in &record.rejected {
        let _ = writeln!(out, "\ndraft {iteration}: reply rejected: {reason}");
        if !text.trim().is_empty() {
            let _ = writeln!(out, "\n{}", quoted(text));
        }
    }
    let ended = match record.exit_code {
        Some(_) => report::summary(record),
        None => format!(
            "not finished: still running, or its process ended; resume it with `reflect history resume {}`",
            record.run_id.map(short_id).unwrap_or_default()
        ),
    };
    let _ = writeln!(out, "\n{ended}");
    if let Some(error) = &record.error {
        let _ = writeln!(out, "error: {error}");
    }
    if let Some(selected) = record.selected() {
        let _ = writeln!(out, "selected: draft {}", selected.iteration);
    }
    printer::without_controls(&out).into_owned()
}

/// Formats a candidate that was not chosen.
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

/// Quotes a text to set it apart from the report.
fn quoted(text: &str) -> String {
    set_apart(text, "  | ")
}

/// The revision strategies of a version with their reasons, in order.
fn strategies(events: &[Stamped], version: u32) -> impl Iterator<Item = String> {
    events
        .iter()
        .filter_map(move |stamped| match &stamped.event {
            Event::Strategy {
                iteration,
                strategy,
                reason,
            } if *iteration == version => Some(format!("{}: {reason}", strategy.as_str())),
            _ => None,
        })
}

/// The open issues of a version without a verdict.
fn named(events: &[Stamped], version: u32) -> Vec<Issue> {
    let last = events
        .iter()
        .rev()
        .find_map(|stamped| match &stamped.event {
            Event::Issues {
                iteration, open, ..
            } if *iteration == version => Some(open),
            _ => None,
        });
    let open = last.into_iter().flatten();
    open.map(|tracked| tracked.issue.clone()).collect()
}
