//! Access to the store of runs and verdicts.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::error::CliError;
use super::settings::Plan;
use super::{paths, printer};
use crate::evaluate::{MemoryCache, VerdictCache};
use crate::store::{Retention, Store};
use crate::types::Criteria;

/// The open store of a command, shared by the run log and the verdict cache.
#[derive(Clone)]
pub(super) struct SharedStore(Arc<Mutex<Store>>);

impl SharedStore {
    pub(super) fn new(store: Store) -> Self {
        Self(Arc::new(Mutex::new(store)))
    }

    /// Opens the store for a run and deletes expired runs; `None` if the run is not logged.
    pub(super) fn open(plan: &Plan, no_log: bool) -> Result<Option<Self>, CliError> {
        if no_log {
            return Ok(None);
        }
        let mut store = Store::open(&paths::store()?)?;
        let history = plan.settings().history;
        let retention = Retention {
            days: history.keep_days,
            runs: history.keep_runs,
        };
        // Failing to delete old runs must not prevent the run.
        if let Err(error) = store.keep(retention) {
            printer::say(&format!(
                "warning: cannot delete old runs from the log: {error}"
            ));
        }
        Ok(Some(Self::new(store)))
    }

    /// Opens the store if it exists.
    pub(super) fn open_existing() -> Result<Option<Self>, CliError> {
        let store = Store::open_existing(&paths::store()?)?;
        Ok(store.map(Self::new))
    }

    /// Locks the store for one read or write.
    pub(super) fn lock(&self) -> MutexGuard<'_, Store> {
        self.0.lock()
    }
}

/// Returns the verdict cache of a command: in the store, or in memory if there is none. `None` if the cache
/// is turned off or no judge is needed.
pub(super) fn verdicts(
    criteria: &Criteria,
    store: Option<&SharedStore>,
) -> Option<Arc<dyn VerdictCache>> {
    (criteria.need_judge() && criteria.judge_settings.cache()).then(|| kept_verdicts(store))
}

/// Returns the cache for all verdicts of a command.
pub(super) fn kept_verdicts(store: Option<&SharedStore>) -> Arc<dyn VerdictCache> {
    match store {
        Some(store) => Arc::new(store.clone()),
        None => Arc::new(MemoryCache::default()),
    }
}

/// Ignores errors: the judge is called again.
impl VerdictCache for SharedStore {
    fn get(&self, key: &str) -> Option<String> {
        self.lock().verdict(key).ok().flatten()
    }

    fn put(&self, key: &str, verdict: &str) {
        let _ = self.lock().cache_verdict(key, verdict);
    }
}
