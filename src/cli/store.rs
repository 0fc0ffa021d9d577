//! Where runs and verdicts are kept.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::error::CliError;
use super::settings::Plan;
use super::{paths, printer};
use crate::evaluate::{MemoryCache, VerdictCache};
use crate::store::{Retention, Store};
use crate::types::Criteria;

/// The open store of a command, for the run log and the verdicts alike.
#[derive(Clone)]
pub(super) struct SharedStore(Arc<Mutex<Store>>);

impl SharedStore {
    pub(super) fn new(store: Store) -> Self {
        Self(Arc::new(Mutex::new(store)))
    }

    /// Opens the store for what a run adds to it, and takes out what is not to be kept any longer; `None` if
    /// nothing is to be kept of the run.
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
        // What is kept too long is no reason not to run.
        if let Err(error) = store.keep(retention) {
            printer::say(&format!(
                "warning: cannot delete old runs from the log: {error}"
            ));
        }
        Ok(Some(Self::new(store)))
    }

    /// Opens the store if it is there.
    pub(super) fn open_existing() -> Result<Option<Self>, CliError> {
        let store = Store::open_existing(&paths::store()?)?;
        Ok(store.map(Self::new))
    }

    /// The store, for one read or write.
    pub(super) fn lock(&self) -> MutexGuard<'_, Store> {
        self.0.lock()
    }
}

/// The cache of a command's verdicts: in the store; for this run alone where there is none; no cache if the judge is
/// to be asked each time.
pub(super) fn verdicts(
    criteria: &Criteria,
    store: Option<&SharedStore>,
) -> Option<Arc<dyn VerdictCache>> {
    (criteria.need_judge() && criteria.judge_settings.cache()).then(|| kept_verdicts(store))
}

/// The cache of all verdicts of a command, whatever they are about.
pub(super) fn kept_verdicts(store: Option<&SharedStore>) -> Arc<dyn VerdictCache> {
    match store {
        Some(store) => Arc::new(store.clone()),
        None => Arc::new(MemoryCache::default()),
    }
}

/// What cannot be read or kept is no loss: the judge is asked again.
impl VerdictCache for SharedStore {
    fn get(&self, key: &str) -> Option<String> {
        self.lock().verdict(key).ok().flatten()
    }

    fn put(&self, key: &str, verdict: &str) {
        let _ = self.lock().cache_verdict(key, verdict);
    }
}
