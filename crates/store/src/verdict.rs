use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::{Store, StoreError};

/// The most verdicts that are kept; the oldest go first. Some tens of megabytes.
const MOST: u32 = 20_000;

impl Store {
    /// What a judge said, under the key that it was kept with.
    pub fn verdict(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.connection
            .prepare_cached("SELECT body FROM verdict WHERE key = ?1")
            .and_then(|mut statement| statement.query_row([key], |row| row.get(0)).optional())
            .map_err(|error| StoreError::from_sqlite(&self.path, error))
    }

    /// Keeps what a judge said, in place of what was kept under this key.
    pub fn keep_verdict(&self, key: &str, body: &str) -> Result<(), StoreError> {
        self.keep_verdict_among(MOST, key, body)
    }

    fn keep_verdict_among(&self, most: u32, key: &str, body: &str) -> Result<(), StoreError> {
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
    fn verdicts_are_kept_and_replaced_and_the_oldest_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.db");
        let store = Store::open(&path).unwrap();
        assert_eq!(store.verdict("a").unwrap(), None);
        store.keep_verdict("a", "1").unwrap();
        store.keep_verdict("a", "2").unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.verdict("a").unwrap().as_deref(), Some("2"));
        for key in ["b", "c", "d"] {
            // Their times must differ.
            std::thread::sleep(std::time::Duration::from_millis(3));
            store.keep_verdict_among(2, key, "x").unwrap();
        }
        assert_eq!(store.verdict("a").unwrap(), None);
        assert_eq!(store.verdict("b").unwrap(), None);
        assert!(store.verdict("c").unwrap().is_some() && store.verdict("d").unwrap().is_some());
    }
}
