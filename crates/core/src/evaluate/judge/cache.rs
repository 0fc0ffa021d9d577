//! The cache of verdicts.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::model::{ChatModel, ChatRequest};
use crate::prompt::PROMPT_VERSION;

/// Stores verdicts, so that the same draft is not judged twice. The caller provides the storage;
/// this crate does not access the disk.
///
/// A failing cache behaves like an empty one: a verdict can always be requested again.
pub trait VerdictCache: Send + Sync {
    /// Returns the value stored under `key`.
    fn get(&self, key: &str) -> Option<String>;

    /// Stores a verdict under `key`.
    fn put(&self, key: &str, verdict: &str);
}

/// A cache that keeps verdicts in memory.
#[derive(Debug, Default)]
pub struct MemoryCache(Mutex<HashMap<String, String>>);

impl VerdictCache for MemoryCache {
    fn get(&self, key: &str) -> Option<String> {
        let entries = self.0.lock();
        entries.get(key).cloned()
    }

    fn put(&self, key: &str, verdict: &str) {
        let mut entries = self.0.lock();
        entries.insert(key.to_owned(), verdict.to_owned());
    }
}

/// Returns the cache key for a model's answer to a request. The messages contain the task, its
/// context, the criteria, the draft and the full prompt, so any change to these changes the key.
pub(super) fn key(model: &dyn ChatModel, request: &ChatRequest) -> String {
    let address = model.address().unwrap_or_default();
    format!(
        "{PROMPT_VERSION} {} {address} {}",
        model.id(),
        request.key()
    )
}
