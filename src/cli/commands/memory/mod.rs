//! `reflect memory`: manages the facts, procedures and insights for later runs.

mod learn;
mod list;

use jiff::Timestamp;

use super::history::rm::confirm;
use crate::cli::args::{GlobalArgs, MemoryAddCommand, MemoryCommand};
use crate::cli::error::CliError;
use crate::cli::input::Input;
use crate::cli::output::Output;
use crate::cli::{paths, printer};
use crate::memory::{MAX_LENGTH, is_faded, line, merge, parse};
use crate::store::{MemoryChanges, Store};
use crate::text::plural;
use crate::types::{ExitCode, Fact, Knowledge, KnownInsight, KnownProcedure, Memory};

/// Runs one of the memory commands.
pub(in crate::cli) async fn run(
    command: &MemoryCommand,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    let text = match command {
        MemoryCommand::List(args) => list::list(args, &known()?)?,
        MemoryCommand::Add(what) => {
            add(what, global.quiet)?;
            String::new()
        }
        MemoryCommand::Rm {
            ids,
            faded,
            all,
            yes,
        } => {
            let which = match (faded, all) {
                (_, true) => Which::All,
                (true, false) => Which::Faded,
                (false, false) => Which::Named(ids),
            };
            rm(&which, *yes, global.quiet)?;
            String::new()
        }
        MemoryCommand::Learn(args) => learn::learn(args, global).await?,
        MemoryCommand::Import { file } => {
            import(&Input::of(file), global.quiet)?;
            String::new()
        }
        MemoryCommand::Export { output } => {
            let file = Output::open(output.as_deref())?;
            let known = known()?;
            let lines = known
                .iter()
                .map(|memory| format!("{}\n", line(&memory.what)));
            let text: String = lines.collect();
            file.write(&text)?;
            String::new()
        }
    };
    printer::print(&text)?;
    Ok(ExitCode::Success)
}

/// Reads all entries.
fn known() -> Result<Vec<Memory>, CliError> {
    Ok(match Store::open_existing(&paths::store()?)? {
        Some(store) => store.memories()?,
        None => Vec::new(),
    })
}

/// Adds entries to memory, without duplicates.
fn add_entries(store: &mut Store, all: Vec<Knowledge>) -> Result<MemoryChanges, CliError> {
    Ok(store.change_memories(Timestamp::now(), |known| merge(known, all))?)
}

fn add(what: &MemoryAddCommand, quiet: bool) -> Result<(), CliError> {
    let given = match what {
        MemoryAddCommand::Fact {
            content,
            confidence,
            supports_claim,
        } => Knowledge::Fact(Fact {
            content: checked("the fact", content)?,
            confidence: *confidence,
            supports_claim: supports_claim.clone(),
        }),
        MemoryAddCommand::Procedure {
            content,
            name,
            success_rate,
        } => Knowledge::Procedure(KnownProcedure {
            name: name
                .as_deref()
                .map(|name| checked("the name", name))
                .transpose()?,
            content: checked("the procedure", content)?,
            given: *success_rate,
            uses: 0,
            successes: 0,
        }),
        MemoryAddCommand::Insight {
            content,
            confidence,
            category,
            criteria,
            for_model,
        } => Knowledge::Insight(KnownInsight {
            criteria: criteria.clone(),
            model: for_model.clone(),
            ..KnownInsight::new(
                checked("the category", category)?,
                checked("the insight", content)?,
                *confidence,
            )
        }),
    };
    let kind = given.kind();
    let changed = add_entries(&mut Store::open(&paths::store()?)?, vec![given])?;
    if !quiet {
        printer::say(&match (changed.added.first(), changed.replaced.first()) {
            (Some(id), _) => format!("added {kind} {id}"),
            (None, Some(id)) => format!("updated {kind} {id}"),
            (None, None) => format!("this {kind} exists already"),
        });
    }
    Ok(())
}

/// Trims a text. Fails if it is empty or too long.
fn checked(what: &str, text: &str) -> Result<String, CliError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(CliError::usage(format!("{what} is empty")));
    }
    if text.chars().count() > MAX_LENGTH {
        return Err(
            CliError::usage(format!("{what} is longer than {MAX_LENGTH} characters"))
                .hint("pass longer texts with `--file` or `--evidence`"),
        );
    }
    Ok(text.to_owned())
}

fn import(input: &Input<'_>, quiet: bool) -> Result<(), CliError> {
    let all = parse(&input.source("memory", quiet)?)?;
    if all.is_empty() {
        return Err(CliError::usage(format!("{} has no entries", input.name()))
            .hint("write one JSON object per line, for example {\"content\": \"…\", \"confidence\": 0.85}"));
    }
    let changed = add_entries(&mut Store::open(&paths::store()?)?, all)?;
    if !quiet {
        printer::say(&format!(
            "{} added, {} updated",
            changed.added.len(),
            changed.replaced.len()
        ));
    }
    Ok(())
}

/// The entries to delete.
enum Which<'a> {
    /// The entries with these ids.
    Named(&'a [u64]),
    /// Entries that have faded.
    Faded,
    /// All entries.
    All,
}

impl Which<'_> {
    /// Returns the ids without duplicates. An unknown id is an error.
    fn ids(&self, store: Option<&Store>) -> Result<Vec<u64>, CliError> {
        // Read only the ids, so that unreadable entries can be deleted too.
        let known = || store.map_or_else(|| Ok(Vec::new()), Store::memory_ids);
        match self {
            Self::Named(ids) => {
                let mut known = known()?;
                if let Some(id) = ids.iter().find(|id| !known.contains(id)) {
                    return Err(no_such(*id));
                }
                known.retain(|id| ids.contains(id));
                Ok(known)
            }
            Self::Faded => {
                let now = Timestamp::now();
                let all = store.map_or_else(|| Ok(Vec::new()), Store::memories)?;
                let faded = all.iter().filter(|memory| is_faded(memory, now));
                Ok(faded.map(|memory| memory.id).collect())
            }
            Self::All => Ok(known()?),
        }
    }
}

/// Deletes the entries. Asks for confirmation unless each entry is named or `yes` is set.
fn rm(which: &Which<'_>, yes: bool, quiet: bool) -> Result<(), CliError> {
    let store = Store::open_existing(&paths::store()?)?;
    let ids = which.ids(store.as_ref())?;
    let many = format!("{} {}", ids.len(), plural(ids.len(), "entry", "entries"));
    let ask = !yes && !matches!(which, Which::Named(_)) && !ids.is_empty();
    if ask && !confirm(&many, "memory")? {
        return Err(CliError::usage("nothing deleted"));
    }
    if let Some(mut store) = store {
        store.remove_memories(&ids)?;
    }
    if !quiet {
        printer::say(&format!("deleted {many} from memory"));
    }
    Ok(())
}

fn no_such(id: u64) -> CliError {
    CliError::usage(format!("no entry {id} in memory"))
        .hint("list the ids with `reflect memory list`")
}
