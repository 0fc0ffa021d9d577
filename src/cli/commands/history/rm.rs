//! `reflect history rm`: takes runs out of the log.

use std::io::{IsTerminal as _, Write as _};

use jiff::Timestamp;
use uuid::Uuid;

use super::when;
use crate::cli::error::CliError;
use crate::cli::printer;
use crate::store::{RunFilter, Store};
use crate::text::counted;

/// The runs that are meant.
pub(super) enum Which<'a> {
    /// These.
    Named(&'a [String]),
    /// Those that began before.
    Before(Timestamp),
    /// All of them, and all verdicts.
    All,
}

impl<'a> Which<'a> {
    /// What the flags say.
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

    /// Their ids. One that fits no run, or several, is an error, and then none is removed.
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

/// Takes the runs out. Asks first where they are not named one by one, unless `yes`.
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
    if ask && !agreed(&many, "the log")? {
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

/// Asks on the terminal whether so many are to be taken out of this place.
pub(in crate::cli::commands) fn agreed(many: &str, place: &str) -> Result<bool, CliError> {
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
