//! The run log, as commands open it that add to it.

use super::error::CliError;
use super::settings::Plan;
use super::{paths, printer};
use crate::store::{Retention, Store};

/// Opens the run log, and takes out what is not to be kept; `None` if there is to be no record.
pub(super) fn open(plan: &Plan, no_log: bool) -> Result<Option<Store>, CliError> {
    if no_log {
        return Ok(None);
    }
    let mut store = Store::open(&paths::store()?)?;
    let history = plan.settings().history;
    let retention = Retention {
        days: history.keep_days,
        runs: history.keep_runs,
    };
    // What is kept too long is no reason not to run.
    if let Err(error) = store.keep(retention) {
        printer::say(&format!(
            "warning: runs that are too old stay in the log for now: {error}"
        ));
    }
    Ok(Some(store))
}
