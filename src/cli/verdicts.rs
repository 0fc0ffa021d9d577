//! Where verdicts are kept.

use std::sync::{Arc, Mutex, PoisonError};

use super::error::CliError;
use super::paths;
use crate::evaluate::{MemoryCache, VerdictCache};
use crate::store::Store;
use crate::types::Criteria;

/// The cache of a command: beside the run log; for this run alone where nothing is to be kept of it; none if
/// the judge is to be asked each time.
pub(super) fn cache(
    criteria: &Criteria,
    no_log: bool,
) -> Result<Option<Arc<dyn VerdictCache>>, CliError> {
    let judges = criteria.criteria.iter().any(|c| !c.evaluator.is_hard());
    if !judges || !criteria.judge_settings.cache() {
        return Ok(None);
    }
    if no_log {
        return Ok(Some(Arc::new(MemoryCache::default())));
    }
    let store = Store::open(&paths::store()?)?;
    Ok(Some(Arc::new(StoredVerdicts(Mutex::new(store)))))
}

/// Keeps verdicts in the store. What cannot be read or kept is no loss: the judge is asked again.
struct StoredVerdicts(Mutex<Store>);

impl VerdictCache for StoredVerdicts {
    fn get(&self, key: &str) -> Option<String> {
        let store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        store.verdict(key).ok().flatten()
    }

    fn put(&self, key: &str, verdict: &str) {
        let store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = store.keep_verdict(key, verdict);
    }
}
