//! Learning from runs into memory: what `reflect memory learn` and batches have in common.

use uuid::Uuid;

use super::printer;
use crate::memory::RunSummary;
use crate::store::{MemoryChanges, Store, short_id};

/// The most runs that are looked at for what they teach: the latest.
pub(super) const RUNS: u32 = 1000;

/// What can be learned from of these runs, in their order. A run that cannot be read is passed over, which is said.
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

/// What became of so many lessons, in words.
pub(super) fn changes(found: usize, changed: &MemoryChanges) -> String {
    let (new, other) = (changed.added.len(), changed.replaced.len());
    let same = found.saturating_sub(new + other);
    format!("{new} new, {other} updated, {same} unchanged")
}
