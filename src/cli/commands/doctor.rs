//! `reflect doctor`: checks that runs have everything they need.

use crate::cli::args::{DoctorArgs, GlobalArgs};
use crate::cli::doctor::{Report, models, places};
use crate::cli::error::CliError;
use crate::cli::{printer, settings};
use crate::types::ExitCode;

/// Runs all checks and prints the report. A failed check sets the exit code.
pub(in crate::cli) async fn run(
    args: &DoctorArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    let mut report = Report::default();
    let config = places::configuration(global, &mut report);
    places::storage(&mut report);
    places::programs(&mut report);
    let plan = config
        .map(|config| settings::models(config, &args.model, global))
        .transpose();
    match plan {
        Ok(Some(plan)) => {
            places::criteria(&plan, &mut report);
            models::examine(&plan, args.no_calls, global.quiet, &mut report).await;
        }
        // The report already has the error.
        Ok(None) => {}
        Err(error) => report.failed(places::CONFIGURATION, "settings", &error),
    }
    printer::print_styled(&if args.json {
        report.json()?
    } else {
        report.text()
    })?;
    Ok(report.exit_code())
}
