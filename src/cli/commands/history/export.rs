//! `reflect history export`: writes a report on a run.

use std::path::Path;

use crate::cli::args::ReportFormat;
use crate::cli::error::CliError;
use crate::cli::kept;
use crate::cli::output::{Output, named_file};
use crate::store::Store;
use crate::types::RunRecord;

/// Writes the report.
pub(super) fn export(
    store: &Store,
    run: &str,
    format: Option<ReportFormat>,
    file: Option<&Path>,
) -> Result<(), CliError> {
    let format = match (format, named_file(file)) {
        (Some(format), _) => format,
        (None, Some(file)) => ReportFormat::for_file(file)?,
        (None, None) => ReportFormat::Markdown,
    };
    let output = Output::open(file)?;
    let run_id = store.find(run)?;
    let text = if format == ReportFormat::Html {
        kept::page(store, run_id)?
    } else {
        let events = store.events(run_id)?;
        format.report(&RunRecord::from_events(&events), &events)
    };
    output.write(&text).map(drop)
}
