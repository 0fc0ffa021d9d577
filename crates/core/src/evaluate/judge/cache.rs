//! Verdicts that were given already.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::model::{ChatModel, ChatRequest};
use crate::prompt::PROMPT_VERSION;

/// Keeps verdicts, so that the same draft is not judged twice. Given from above: this room knows no disk.
///
/// A cache that fails has nothing and keeps nothing: a verdict can always be asked for again.
pub trait VerdictCache: Send + Sync {
    /// What was kept under a key.
    fn get(&self, key: &str) -> Option<String>;

    /// Keeps a verdict.
    fn put(&self, key: &str, verdict: &str);
}

/// Keeps verdicts for as long as it lives.
#[derive(Debug, Default)]
pub struct MemoryCache(Mutex<HashMap<String, String>>);

impl VerdictCache for MemoryCache {
    fn get(&self, key: &str) -> Option<String> {
        let kept = self.0.lock();
        kept.get(key).cloned()
    }

    fn put(&self, key: &str, verdict: &str) {
        let mut kept = self.0.lock();
        kept.insert(key.to_owned(), verdict.to_owned());
    }
}

/// The key of what a model answers to a request. The messages hold the task, its context, the criteria, the draft
/// and every word of the prompt, so nothing of these can change unnoticed.
pub(super) fn key(model: &dyn ChatModel, request: &ChatRequest) -> String {
    let address = model.address().unwrap_or_default();
    format!(
        "{PROMPT_VERSION} {} {address} {}",
        model.id(),
        request.key()
    )
}
