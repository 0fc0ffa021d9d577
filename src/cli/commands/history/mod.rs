//! `reflect history`: shows and manages the run log.

mod diff;
mod export;
mod list;
pub(super) mod rm;
pub(super) mod show;
mod stats;
pub(super) mod when;

use super::resume;
use crate::cli::args::{Format, GlobalArgs, HistoryCommand};
use crate::cli::error::CliError;
use crate::cli::{paths, printer};
use crate::report;
use crate::store::Store;
use crate::types::{ExitCode, RunRecord};

/// Runs one of the history commands.
pub(in crate::cli) async fn run(
    command: &HistoryCommand,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    let path = paths::store()?;
    if let HistoryCommand::Path = command {
        printer::print(&format!("{}\n", path.display()))?;
        return Ok(ExitCode::Success);
    }
    if let HistoryCommand::Resume(args) = command {
        return Box::pin(resume::run(args, global)).await;
    }
    let store = Store::open_existing(&path)?;
    let text = match command {
        HistoryCommand::Path | HistoryCommand::Resume(_) => String::new(),
        HistoryCommand::List(args) => list::list(args, store.as_ref())?,
        HistoryCommand::Stats(args) => stats::stats(args, store.as_ref())?,
        HistoryCommand::Show {
            run,
            best,
            draft,
            format,
        } => {
            let store = require(store)?;
            let events = store.events(store.find(run)?)?;
            let record = RunRecord::from_events(&events);
            match (best, draft) {
                (true, _) => show::one_draft(
                    &record,
                    record.selected.or(record.best().map(|v| v.iteration)),
                )?,
                (false, Some(number)) => show::one_draft(&record, Some(*number))?,
                (false, None) => match format {
                    Format::Text => show::show(&record, &events),
                    Format::Json => report::json(&record),
                    Format::Markdown => report::markdown(&record),
                    Format::Ndjson => show::lines(&events)?,
                },
            }
        }
        HistoryCommand::Diff {
            one,
            other,
            words,
            context,
        } => diff::diff(
            &require(store)?,
            (one, other.as_deref()),
            *words,
            usize::from(*context),
            global,
        )?,
        HistoryCommand::Export {
            run,
            format,
            output,
        } => {
            export::export(&require(store)?, run, *format, output.as_deref())?;
            String::new()
        }
        HistoryCommand::Rm {
            runs,
            older_than,
            all,
            yes,
        } => {
            let which = rm::Which::of(runs, older_than.as_deref(), *all)?;
            rm::rm(store, &which, *yes, global.quiet)?;
            String::new()
        }
    };
    match command {
        HistoryCommand::Diff { .. } => printer::print_styled(&text)?,
        HistoryCommand::Show {
            best: false,
            draft: None,
            format: Format::Text,
            ..
        } => printer::print_report(&text)?,
        _ => printer::print(&text)?,
    };
    Ok(ExitCode::Success)
}

/// Returns the run log, or an error if there are no runs yet.
fn require(store: Option<Store>) -> Result<Store, CliError> {
    store.ok_or_else(|| CliError::usage("no runs yet"))
}
