//! Memory in a run: recalling memories at its start, and measuring at its end whether they helped.

use jiff::Timestamp;
use uuid::Uuid;

use super::error::CliError;
use super::printer;
use super::settings::Plan;
use super::store::SharedStore;
use crate::memory::{self, BASELINE, strength};
use crate::store::{Store, StoreError};
use crate::types::{Comparison, Task};

/// The maximum length of a memory on one line, in columns.
const SHOWN: usize = 90;

/// Adds relevant memories to the task if memory is enabled, and reports them. `store` is the open store, if
/// any. `writer` is `provider:model`.
pub(super) fn recall(
    plan: &Plan,
    store: Option<&SharedStore>,
    task: &mut Task,
    writer: &str,
    quiet: bool,
) -> Result<(), CliError> {
    if plan.settings().memory != Some(true) {
        return Ok(());
    }
    let store = match store {
        Some(store) => Some(store.clone()),
        None => SharedStore::open_existing()?,
    };
    let known = match store {
        Some(store) => store.lock().memories()?,
        None => Vec::new(),
    };
    let now = Timestamp::now();
    let recalled = memory::recall(&known, task, &plan.criteria, writer, now)
        .map_err(|error| CliError::failure(error.to_string()))?;
    if !quiet {
        printer::say(&match (known.len(), recalled.memories.len()) {
            (0, _) => {
                "memory: empty; learn from earlier runs with `reflect memory learn`".to_owned()
            }
            (all, 0) => format!("memory: no match among {all}"),
            (all, some) => format!("memory: using {some} of {all}"),
        });
        for memory in &recalled.memories {
            let text = memory.what.text();
            printer::say(&format!(
                "memory: {} {} ({:.2}): {}",
                memory.what.kind(),
                memory.id,
                strength(memory, now),
                console::truncate_str(&text.replace('\n', " "), SHOWN, "…")
            ));
        }
    }
    task.add_recalled(recalled.into_recollection());
    Ok(())
}

/// Updates the strength of the recalled memories from the result of a run, and reports the changes. A failure
/// to store it does not fail the run.
pub(super) fn measure(store: &SharedStore, run_id: Uuid, quiet: bool) {
    let figures = match measured(&mut store.lock(), run_id) {
        Ok(figures) => figures,
        Err(error) => {
            printer::say(&format!(
                "warning: cannot record whether memory helped: {error}"
            ));
            return;
        }
    };
    for (id, before, after) in figures.into_iter().filter(|_| !quiet) {
        let after = after.unwrap_or_default();
        printer::say(&format!("memory: {id} {}", moves(before, after)));
    }
}

/// Describes a change of a strength.
pub(super) fn moves(before: Option<f64>, after: f64) -> String {
    match before {
        Some(before) if after < before => format!("falls from {before:.2} to {after:.2}"),
        Some(before) => format!("rises from {before:.2} to {after:.2}"),
        None => format!("is now at {after:.2}"),
    }
}

/// Changed strengths: memory id, before, after.
pub(super) type Figures = Vec<(u64, Option<f64>, Option<f64>)>;

/// Updates the strength of the recalled memories from the result of a run in this store. Returns the changes.
pub(super) fn measured(store: &mut Store, run_id: Uuid) -> Result<Figures, StoreError> {
    match compared(store, run_id)? {
        Some(run) => taken_in(store, &run),
        None => Ok(Figures::new()),
    }
}

/// Compares a run with others in the log; `None` if it is not there.
pub(super) fn compared(store: &Store, run_id: Uuid) -> Result<Option<Comparison>, StoreError> {
    // Some of them have recalled the same memories.
    let outcomes = store.comparable_outcomes(run_id, 4 * BASELINE)?;
    let run = outcomes.iter().find(|outcome| outcome.run_id == run_id);
    Ok(run.map(|run| memory::compare(run, &outcomes)))
}

/// Updates the strength of the recalled memories from a comparison. Returns the changes.
pub(super) fn taken_in(store: &mut Store, run: &Comparison) -> Result<Figures, StoreError> {
    let mut figures = Figures::new();
    store.change_memories(Timestamp::now(), |known| {
        let measured = memory::measure(known, run);
        figures = measured.figures;
        measured.changes
    })?;
    Ok(figures)
}
