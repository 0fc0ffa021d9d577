//! Removal of runs from the log.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use uuid::Uuid;

use super::{Store, StoreError, memory};

/// How often to remove old runs, and the age at which an unfinished run has surely stopped.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Which runs to keep. Default: all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Keep the runs of this many days.
    pub days: Option<u32>,
    /// Keep this many of the latest runs.
    pub runs: Option<u32>,
}

impl Store {
    /// Removes runs permanently. Nothing of their texts remains in the file, so insights that quote them are removed
    /// too. Returns how many runs existed.
    pub fn remove(&mut self, runs: &[Uuid]) -> Result<usize, StoreError> {
        self.remove_found(|_| Ok(runs.to_vec()))
    }

    /// Removes the selected runs, and insights that quote them.
    fn remove_found(
        &mut self,
        find: impl FnOnce(&Connection) -> rusqlite::Result<Vec<Uuid>>,
    ) -> Result<usize, StoreError> {
        let path = self.path.clone();
        let wrap = |error| StoreError::from_sqlite(&path, error);
        let removed = self
            .in_transaction(|connection| {
                let runs = find(connection)?;
                let mut removed = 0;
                for run in &runs {
                    removed += usize::from(remove(connection, *run)?);
                }
                memory::forget_runs(connection, &runs)?;
                Ok(removed)
            })
            .map_err(wrap)?;
        if removed > 0 {
            // Otherwise the index would keep the words of removed runs until its next merge.
            self.connection
                .execute_batch("INSERT INTO words (words) VALUES ('optimize')")
                .map_err(wrap)?;
        }
        self.shrink();
        Ok(removed)
    }

    /// Clears the verdict cache: verdicts quote drafts.
    pub fn clear_verdicts(&mut self) -> Result<(), StoreError> {
        let forgotten =
            self.in_transaction(|connection| connection.execute("DELETE FROM verdict", []));
        forgotten.map_err(|error| StoreError::from_sqlite(&self.path, error))?;
        self.shrink();
        Ok(())
    }

    /// Removes the runs that `retention` does not keep, as [`Self::remove`] does, at most once a day; returns how
    /// many. Skips runs that may still be in progress.
    pub fn keep(&mut self, retention: Retention) -> Result<usize, StoreError> {
        self.apply_retention_at(Timestamp::now(), retention)
    }

    pub(super) fn apply_retention_at(
        &mut self,
        now: Timestamp,
        retention: Retention,
    ) -> Result<usize, StoreError> {
        if retention == Retention::default() {
            return Ok(0);
        }
        let path = self.path.clone();
        let wrap = |error| StoreError::from_sqlite(&path, error);
        let done: Option<i64> = self
            .connection
            .query_row(
                "SELECT done FROM upkeep WHERE task = 'retention'",
                [],
                |row| row.get(0),
            )
            .optional()
            .map_err(wrap)?;
        let ago = |time: SignedDuration| (now - time).as_millisecond();
        if done.is_some_and(|done| done > ago(DAY) && done <= now.as_millisecond()) {
            return Ok(0);
        }
        let oldest = retention.days.map(|days| {
            ago(SignedDuration::from_hours(
                24 * i64::from(days.min(100_000)),
            ))
        });
        self.remove_found(|connection| {
            connection.execute(
                "INSERT OR REPLACE INTO upkeep (task, done) VALUES ('retention', ?1)",
                [now.as_millisecond()],
            )?;
            connection
                .prepare(
                    "SELECT id FROM run WHERE (ended IS NOT NULL
                             OR (SELECT max(time) FROM event WHERE event.run = run.n) < ?3)
                         AND (started < ?1 OR (?2 IS NOT NULL AND n NOT IN (
                             SELECT n FROM run ORDER BY started DESC, n DESC LIMIT ?2)))",
                )?
                .query_map(params![oldest, retention.runs, ago(DAY)], |row| {
                    let id: String = row.get(0)?;
                    Ok(Uuid::parse_str(&id).unwrap_or_default())
                })?
                .collect()
        })
    }

    /// Makes a change in one transaction. Replaced and deleted content is erased from the file.
    pub(super) fn in_transaction<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        // Overwrite deleted content instead of only freeing it.
        self.connection
            .pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = change(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    /// Shrinks the file if most of it is unused. Skipped, without harm, if another process uses the file.
    pub(super) fn shrink(&self) {
        let pages = |name| -> rusqlite::Result<i64> {
            self.connection
                .pragma_query_value(None, name, |row| row.get(0))
        };
        if let (Ok(free), Ok(all)) = (pages("freelist_count"), pages("page_count"))
            && free > all / 2
        {
            let _ = self.connection.execute_batch("VACUUM");
        }
        let _ = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

/// Removes a run; returns whether it existed.
fn remove(connection: &Connection, run: Uuid) -> rusqlite::Result<bool> {
    let run: Option<i64> = connection
        .prepare_cached("SELECT n FROM run WHERE id = ?1")?
        .query_row([run.to_string()], |row| row.get(0))
        .optional()?;
    let Some(run) = run else {
        return Ok(false);
    };
    connection
        .prepare_cached("DELETE FROM words WHERE rowid = ?1")?
        .execute([run])?;
    // The foreign keys delete its events.
    connection
        .prepare_cached("DELETE FROM run WHERE n = ?1")?
        .execute([run])?;
    Ok(true)
}
