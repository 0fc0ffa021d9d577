//! `reflect history list`: prints a table of runs.

use console::{Alignment, pad_str, truncate_str};
use jiff::tz::TimeZone;

use super::when;
use crate::cli::args::ListArgs;
use crate::cli::error::CliError;
use crate::cli::printer;
use crate::store::{RunFilter, RunSummary, Store, short_id};
use crate::types::ExitCode;

/// The width of the table without a terminal, in columns.
const WIDTH: usize = 100;

/// Formats the matching runs.
pub(super) fn list(args: &ListArgs, store: Option<&Store>) -> Result<String, CliError> {
    let filter = RunFilter {
        limit: Some(u32::try_from(args.limit).unwrap_or(u32::MAX)),
        command: args.command.clone(),
        words: (!args.words.is_empty()).then(|| args.words.join(" ")),
        since: args
            .since
            .as_deref()
            .map(|it| when::parse("--since", it))
            .transpose()?,
        before: None,
        model: args.model.clone(),
        criteria: args.criteria.clone(),
        success: match (args.success, args.failed) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
    };
    let all = RunFilter {
        limit: filter.limit,
        ..RunFilter::default()
    };
    let runs = match store {
        Some(store) => store.runs(&filter)?,
        None => Vec::new(),
    };
    if args.json {
        return printer::json(&runs);
    }
    if runs.is_empty() && args.limit > 0 {
        printer::say(if filter == all {
            "no runs yet"
        } else {
            "no matching runs"
        });
    }
    Ok(table(&runs))
}

/// Formats a header and one line per run.
fn table(runs: &[RunSummary]) -> String {
    let width = console::Term::stdout()
        .size_checked()
        .map_or(WIDTH, |size| usize::from(size.1));
    let mut out = String::new();
    if !runs.is_empty() {
        let header = format!(
            "{:<8}  {:<16}  {:<5}  {:<15}  {:<12}  PROMPT",
            "RUN", "STARTED", "SCORE", "OUTCOME", "CRITERIA"
        );
        out.push_str(&truncate_str(&header, width, "…"));
        out.push('\n');
    }
    for run in runs {
        let started = run.started.to_zoned(TimeZone::system());
        let score = run
            .overall_score
            .map_or(String::new(), |score| format!("{score:.2}"));
        let state = match (run.convergence_reason, run.exit_code) {
            (Some(reason), _) => serde_word(reason),
            // An evaluated text that does not meet the criteria.
            (None, Some(ExitCode::NotMet)) => "not_met".to_owned(),
            (None, Some(_)) => "failed".to_owned(),
            (None, None) => "unfinished".to_owned(),
        };
        let line = format!(
            "{:<8}  {}  {score:<5}  {}  {}  {}",
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

/// The JSON name of an enum value.
fn serde_word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
