//! Learning from runs into memory, shared by `reflect memory learn` and batches.

use uuid::Uuid;

use super::printer;
use crate::memory::RunSummary;
use crate::store::{MemoryChanges, Store, short_id};

/// The maximum number of runs to learn from; the latest are used.
pub(super) const RUNS: u32 = 1000;

/// Returns the summaries of these runs that can teach something, in order. Warns about and skips a run that
/// cannot be read.
pub(super) fn episodes(store: &Store, runs: impl IntoIterator<Item = Uuid>) -> Vec<RunSummary> {
    let mut episodes = Vec::new();
    for run_id in runs {
        match store.events(run_id) {
            Ok(events) => episodes.extend(RunSummary::of(&events)),
            Err(error) => printer::say(&format!(
                "warning: cannot learn from {}: {error}",
                short_id(run_id)
            )),
        }
    }
    episodes
}

/// Describes how many lessons are new, updated and unchanged.
pub(super) fn changes(found: usize, changed: &MemoryChanges) -> String {
    let (new, other) = (changed.added.len(), changed.replaced.len());
    let same = found.saturating_sub(new + other);
    format!("{new} new, {other} updated, {same} unchanged")
}
