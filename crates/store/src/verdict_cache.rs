use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::{Store, StoreError};

/// The maximum number of cached verdicts, some tens of megabytes; the oldest are removed first.
const MAX_VERDICTS: u32 = 20_000;

impl Store {
    /// The cached verdict for a key.
    pub fn verdict(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.connection
            .prepare_cached("SELECT body FROM verdict WHERE key = ?1")
            .and_then(|mut statement| statement.query_row([key], |row| row.get(0)).optional())
            .map_err(|error| StoreError::from_sqlite(&self.path, error))
    }

    /// Caches a verdict, replacing an earlier one for the key.
    pub fn cache_verdict(&self, key: &str, body: &str) -> Result<(), StoreError> {
        self.cache_verdict_up_to(MAX_VERDICTS, key, body)
    }

    fn cache_verdict_up_to(&self, most: u32, key: &str, body: &str) -> Result<(), StoreError> {
        let now = Timestamp::now().as_millisecond();
        let keep = || -> rusqlite::Result<()> {
            self.connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO verdict (key, kept, body) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![key, now, body])?;
            self.connection
                .prepare_cached(
                    "DELETE FROM verdict WHERE kept <
                     (SELECT kept FROM verdict ORDER BY kept DESC LIMIT 1 OFFSET ?1 - 1)",
                )?
                .execute([most])?;
            Ok(())
        };
        keep().map_err(|error| StoreError::from_sqlite(&self.path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_replaced_and_the_oldest_are_evicted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.db");
        let store = Store::open(&path).unwrap();
        assert_eq!(store.verdict("a").unwrap(), None);
        store.cache_verdict("a", "1").unwrap();
        store.cache_verdict("a", "2").unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.verdict("a").unwrap().as_deref(), Some("2"));
        for key in ["b", "c", "d"] {
            // The timestamps must differ.
            std::thread::sleep(std::time::Duration::from_millis(3));
            store.cache_verdict_up_to(2, key, "x").unwrap();
        }
        assert_eq!(store.verdict("a").unwrap(), None);
        assert_eq!(store.verdict("b").unwrap(), None);
        assert!(store.verdict("c").unwrap().is_some() && store.verdict("d").unwrap().is_some());
    }
}
