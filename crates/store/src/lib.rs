//! The run log: every event of every run, in one `SQLite` file that several processes can use at once.
//!
//! It is an observer of the loop; the loop itself never reads it. The file also contains cached verdicts and the
//! memory for later runs.

use reflect_base::types;
use reflect_model as model;

mod call;
mod claim;
mod error;
mod memory;
mod open;
mod remove;
mod schema;
mod search;
mod summary;
mod verdict_cache;

pub use call::Transcript;
pub use claim::Claim;
pub use error::StoreError;
pub use memory::MemoryChanges;
pub use remove::Retention;
pub use summary::{RunFilter, RunSummary, short_id};

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use uuid::Uuid;

use crate::types::{Event, Stamped};

/// An open run log. Each process and thread opens its own.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens the run log; creates it and its directory if necessary. On Unix only the user can read them.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open::open(path)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
        })
    }

    /// Opens the run log if it exists. For commands that only read.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        if path.exists() {
            Self::open(path).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends an event to its run; it is committed when this returns. The first event of a run is [`RunStart`];
    /// `seq` increases and is unique within a run. Events that are not recorded are ignored.
    ///
    /// [`RunStart`]: crate::types::Event::RunStart
    pub fn append(&mut self, run_id: Uuid, seq: u64, event: &Stamped) -> Result<(), StoreError> {
        self.append_with(run_id, seq, event, None)
    }

    /// Like [`Store::append`], and runs `with_event` in the same transaction with the number of the run.
    fn append_with(
        &mut self,
        run_id: Uuid,
        seq: u64,
        event: &Stamped,
        with_event: Option<WithEvent<'_>>,
    ) -> Result<(), StoreError> {
        if !event.event.is_recorded() {
            return Ok(());
        }
        let body = serde_json::to_string(event).map_err(|error| StoreError::Unreadable {
            run: short_id(run_id),
            seq,
            reason: error.to_string(),
        })?;
        let id = run_id.to_string();
        let path = self.path.clone();
        let wrap = |error| StoreError::from_sqlite(&path, error);
        // A single statement is its own, cheaper transaction.
        if with_event.is_none() && !summary::is_changed_by(&event.event) {
            let added = add(&self.connection, &id, seq, event, &body).map_err(wrap)?;
            return added
                .then_some(())
                .ok_or(StoreError::NoSuchRun { wanted: id });
        }
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(wrap)?;
        summary::insert(&transaction, event).map_err(wrap)?;
        if !add(&transaction, &id, seq, event, &body).map_err(wrap)? {
            return Err(StoreError::NoSuchRun { wanted: id });
        }
        summary::update(&transaction, &id, event).map_err(wrap)?;
        if let Some(with_event) = with_event {
            let run = number(&transaction, &id).map_err(wrap)?;
            with_event(&transaction, run).map_err(wrap)?;
        }
        if let Event::RunEnd { .. } = &event.event {
            // Index once at the end instead of at each event; `catch_up` indexes unfinished runs on demand.
            let run = number(&transaction, &id).map_err(wrap)?;
            search::index(&transaction, run).map_err(wrap)?;
        }
        transaction.commit().map_err(wrap)
    }

    /// Reopens a run that has ended, and deletes the given events: its end and what followed from it.
    pub fn reopen(&mut self, run_id: Uuid, void: &[u64]) -> Result<(), StoreError> {
        let path = self.path.clone();
        let mut reopen = || -> rusqlite::Result<()> {
            let transaction = self
                .connection
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            let run: i64 = transaction.query_row(
                "UPDATE run SET ended = NULL, convergence_reason = NULL, success = NULL,
                     exit_code = NULL, selected = NULL, score = NULL
                 WHERE id = ?1 RETURNING n",
                [run_id.to_string()],
                |row| row.get(0),
            )?;
            for seq in void {
                transaction
                    .prepare_cached("DELETE FROM event WHERE run = ?1 AND seq = ?2")?
                    .execute(params![run, to_sql(*seq)])?;
            }
            transaction.commit()
        };
        reopen().map_err(|error| StoreError::from_sqlite(&path, error))
    }

    /// The events of a run, in order.
    pub fn events(&self, run_id: Uuid) -> Result<Vec<Stamped>, StoreError> {
        let events = self.numbered_events(run_id)?;
        Ok(events.into_iter().map(|(_, event)| event).collect())
    }

    /// The events of a run, in order, each with its number.
    pub fn numbered_events(&self, run_id: Uuid) -> Result<Vec<(u64, Stamped)>, StoreError> {
        let wrap = |error| StoreError::from_sqlite(&self.path, error);
        let rows: Vec<(i64, String)> = self
            .connection
            .prepare_cached(
                "SELECT event.seq, event.body FROM event JOIN run ON run.n = event.run
                 WHERE run.id = ?1 ORDER BY event.seq",
            )
            .and_then(|mut statement| {
                statement
                    .query_map([run_id.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect()
            })
            .map_err(wrap)?;
        if rows.is_empty() {
            return Err(StoreError::NoSuchRun {
                wanted: run_id.to_string(),
            });
        }
        rows.into_iter()
            .map(|(seq, body)| {
                let seq = u64::try_from(seq).unwrap_or(0);
                let event =
                    serde_json::from_str(&body).map_err(|error| StoreError::Unreadable {
                        run: short_id(run_id),
                        seq,
                        reason: error.to_string(),
                    })?;
                Ok((seq, event))
            })
            .collect()
    }

    /// The matching runs, latest first. Reads one small row per run, however long the runs were; words are looked up
    /// in an index.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        let wrap = |error| StoreError::from_sqlite(&self.path, error);
        let fts_query = match &filter.words {
            Some(words) => {
                let fts_query = search::fts_query(words).ok_or_else(|| StoreError::NoWords {
                    wanted: words.clone(),
                })?;
                search::catch_up(&self.connection).map_err(wrap)?;
                Some(fts_query)
            }
            None => None,
        };
        summary::list(&self.connection, filter, fts_query.as_deref()).map_err(wrap)
    }

    /// Finds a run by `last`, its whole id, or the beginning or end of the id. The end is more distinctive, because
    /// an id begins with its time.
    pub fn find(&self, wanted: &str) -> Result<Uuid, StoreError> {
        let wrap = |error| StoreError::from_sqlite(&self.path, error);
        let text = wanted.trim().to_ascii_lowercase();
        let no_such = || StoreError::NoSuchRun {
            wanted: wanted.to_owned(),
        };
        let ids: Vec<String> = if text == "last" {
            self.connection
                .prepare_cached("SELECT id FROM run ORDER BY started DESC, n DESC LIMIT 1")
                .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
                .map_err(wrap)?
        } else {
            // Allow only the characters of an id, so that no GLOB pattern gets through.
            if text.is_empty() || !text.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
                return Err(no_such());
            }
            self.connection
                .prepare_cached(
                    "SELECT id FROM run WHERE id GLOB ?1 OR id GLOB ?2 ORDER BY started DESC, n DESC LIMIT 6",
                )
                .and_then(|mut statement| {
                    statement
                        .query_map([format!("{text}*"), format!("*{text}")], |row| row.get(0))?
                        .collect()
                })
                .map_err(wrap)?
        };
        match ids.as_slice() {
            [] => Err(no_such()),
            [id] => Uuid::parse_str(id).map_err(|_| no_such()),
            _ => Err(StoreError::Ambiguous {
                wanted: wanted.to_owned(),
                candidates: ids,
            }),
        }
    }
}

/// Converts a number for `SQLite`, saturating at its maximum.
fn to_sql(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// A write in the same transaction as an event; called with the number of the run.
type WithEvent<'a> = Box<dyn FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<()> + 'a>;

/// The number of the run with this id.
fn number(connection: &Connection, run: &str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT n FROM run WHERE id = ?1")?
        .query_row([run], |row| row.get(0))
}

/// Adds an event to the run with this id; returns whether the run exists.
fn add(
    connection: &Connection,
    run: &str,
    seq: u64,
    event: &Stamped,
    body: &str,
) -> rusqlite::Result<bool> {
    let added = connection
        .prepare_cached(
            "INSERT INTO event (run, seq, time, body) SELECT n, ?2, ?3, ?4 FROM run WHERE id = ?1",
        )?
        .execute(params![run, to_sql(seq), event.time.as_millisecond(), body])?;
    Ok(added > 0)
}

#[cfg(test)]
mod tests;
