//! `reflect history rm`: deletes runs from the log.

use std::io::{IsTerminal as _, Write as _};

use jiff::Timestamp;
use uuid::Uuid;

use super::when;
use crate::cli::error::CliError;
use crate::cli::printer;
use crate::store::{RunFilter, Store};
use crate::text::counted;

/// The runs to delete.
pub(super) enum Which<'a> {
    /// The named runs.
    Named(&'a [String]),
    /// Runs that started before this time.
    Before(Timestamp),
    /// All runs and all cached verdicts.
    All,
}

impl<'a> Which<'a> {
    /// Reads the selection from the flags.
    pub(super) fn of(
        runs: &'a [String],
        older_than: Option<&str>,
        all: bool,
    ) -> Result<Self, CliError> {
        Ok(match older_than {
            _ if all => Self::All,
            Some(age) => Self::Before(when::parse("--older-than", age)?),
            None => Self::Named(runs),
        })
    }

    /// Returns the ids of the runs. A name that matches no run, or several, is an error.
    fn ids(&self, store: &Store) -> Result<Vec<Uuid>, CliError> {
        let before = match self {
            Self::Named(runs) => {
                let found = runs.iter().map(|run| store.find(run));
                return Ok(found.collect::<Result<_, _>>()?);
            }
            Self::Before(moment) => Some(*moment),
            Self::All => None,
        };
        let filter = RunFilter {
            before,
            ..RunFilter::default()
        };
        let runs = store.runs(&filter)?;
        Ok(runs.into_iter().map(|run| run.run_id).collect())
    }
}

/// Deletes the runs. Asks for confirmation unless each run is named or `yes` is set.
pub(super) fn rm(
    store: Option<Store>,
    which: &Which<'_>,
    yes: bool,
    quiet: bool,
) -> Result<(), CliError> {
    let Some(mut store) = store else {
        return match which {
            Which::Named(_) => Err(CliError::usage("no runs yet")),
            _ => Ok(()),
        };
    };
    let mut ids = which.ids(&store)?;
    ids.sort_unstable();
    ids.dedup();
    let many = counted(ids.len(), "run");
    let everything = matches!(which, Which::All);
    let ask = !yes && !matches!(which, Which::Named(_)) && (everything || !ids.is_empty());
    if ask && !confirm(&many, "the log")? {
        return Err(CliError::usage("nothing deleted"));
    }
    store.remove(&ids)?;
    if everything {
        store.clear_verdicts()?;
    }
    if !quiet {
        printer::say(&format!("deleted {many}"));
    }
    Ok(())
}

/// Asks on the terminal whether to delete `many` entries from `place`.
pub(in crate::cli::commands) fn confirm(many: &str, place: &str) -> Result<bool, CliError> {
    let (mut stderr, stdin) = (std::io::stderr(), std::io::stdin());
    if !stderr.is_terminal() || !stdin.is_terminal() {
        return Err(
            CliError::usage(format!("this would delete {many} from {place}"))
                .hint("confirm with `--yes`, since stdin is not a terminal"),
        );
    }
    let _ = write!(stderr, "delete {many} from {place}? [y/N] ");
    let _ = stderr.flush();
    let mut answer = String::new();
    stdin
        .read_line(&mut answer)
        .map_err(|error| CliError::failure(format!("cannot read the answer: {error}")))?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}
