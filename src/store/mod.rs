//! The run log: every event of every run, in one `SQLite` file that several processes may use at once.
//! An observer of the loop, given to it from above; nothing in the loop reads it. Beside the runs it keeps what
//! judges said, and memory: what is known for later runs.

mod error;
mod memory;
mod open;
mod remove;
mod schema;
mod search;
mod summary;
mod verdict;

pub use error::StoreError;
pub use memory::MemoryChanged;
pub use remove::Retention;
pub use summary::{RunFilter, RunSummary, short_id};

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use uuid::Uuid;

use crate::types::{Event, Stamped};

/// An open run log. For one thread at a time; each process and thread opens its own.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens the run log, and makes it with its directory if it is not there. On Unix only the user
    /// may read what is made.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open::open(path)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
        })
    }

    /// Opens the run log if it is there. For commands that only read.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        if path.exists() {
            Self::open(path).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds an event to its run; it is on disk when this returns. The first event of a run is
    /// [`Event::RunStart`]; `seq` counts up and is used once in a run. Events that do not last are passed
    /// over ([`Event::is_lasting`]).
    pub fn append(&mut self, run_id: Uuid, seq: u64, event: &Stamped) -> Result<(), StoreError> {
        if !event.event.is_lasting() {
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
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(wrap)?;
        if let Event::RunStart { .. } = &event.event {
            summary::insert(&transaction, event).map_err(wrap)?;
        }
        let run: Option<i64> = transaction
            .prepare_cached("SELECT n FROM run WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([&id], |row| row.get(0)).optional())
            .map_err(wrap)?;
        let Some(run) = run else {
            return Err(StoreError::NoSuchRun { wanted: id });
        };
        transaction
            .prepare_cached("INSERT INTO event (run, seq, time, body) VALUES (?1, ?2, ?3, ?4)")
            .and_then(|mut statement| {
                statement.execute(params![
                    run,
                    i64::try_from(seq).unwrap_or(i64::MAX),
                    event.time.as_millisecond(),
                    body
                ])
            })
            .map_err(wrap)?;
        summary::update(&transaction, run, event).map_err(wrap)?;
        if let Event::RunEnd { .. } = &event.event {
            // Once, and not at each event: nobody looks for what is still being written.
            search::index(&transaction, run).map_err(wrap)?;
        }
        transaction.commit().map_err(wrap)
    }

    /// The events of a run, in order.
    pub fn events(&self, run_id: Uuid) -> Result<Vec<Stamped>, StoreError> {
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
                serde_json::from_str(&body).map_err(|error| StoreError::Unreadable {
                    run: short_id(run_id),
                    seq: u64::try_from(seq).unwrap_or(0),
                    reason: error.to_string(),
                })
            })
            .collect()
    }

    /// The runs, the latest first. Reads one small row for each, however long the runs were; words are looked
    /// up in an index.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        let wrap = |error| StoreError::from_sqlite(&self.path, error);
        let sought = match &filter.words {
            Some(words) => {
                let sought = search::sought(words).ok_or_else(|| StoreError::NoWords {
                    wanted: words.clone(),
                })?;
                search::catch_up(&self.connection).map_err(wrap)?;
                Some(sought)
            }
            None => None,
        };
        summary::list(&self.connection, filter, sought.as_deref()).map_err(wrap)
    }

    /// The run that is meant by `last`, by a whole id, or by its beginning or its end. The end tells runs
    /// apart sooner: an id begins with its time.
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
            // Nothing but what an id is made of, so that no pattern of GLOB gets in.
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

#[cfg(test)]
mod tests;
