//! `reflect history export`: a report on a run.

use std::path::Path;

use crate::cli::args::ReportFormat;
use crate::cli::error::CliError;
use crate::cli::kept;
use crate::cli::output::OutputFile;
use crate::report;
use crate::store::Store;
use crate::types::RunRecord;

/// The report, as it is printed; nothing where it goes to a file.
pub(super) fn export(
    store: &Store,
    run: &str,
    format: Option<ReportFormat>,
    file: Option<&Path>,
) -> Result<String, CliError> {
    let run_id = store.find(run)?;
    let (numbers, events): (Vec<u64>, Vec<_>) = store.numbered_events(run_id)?.into_iter().unzip();
    let format = format
        .or_else(|| file.and_then(ReportFormat::of_file))
        .unwrap_or(ReportFormat::Markdown);
    let text = match format {
        ReportFormat::Html => {
            let (calls, _) = store.calls(run_id)?;
            let talks = calls.into_iter().filter_map(|(number, call)| {
                let place = numbers.binary_search(&number).ok()?;
                Some((place, kept::talk(call)?))
            });
            report::html_with_talks(&events, talks.collect())
        }
        _ => format.report(&RunRecord::from_events(&events), &events),
    };
    match OutputFile::prepare_if(file)? {
        Some(file) => file.write(&text).map(|()| String::new()),
        None => Ok(text),
    }
}
