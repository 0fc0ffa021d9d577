//! The run log: every event of every run, in one `SQLite` file that several processes may use at once.
//! An observer of the loop, given to it from above; nothing in the loop reads it. Beside the runs it keeps what
//! judges said, and memory: what is known for later runs.

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
mod verdict;

pub use call::Transcript;
pub use claim::Claim;
pub use error::StoreError;
pub use memory::MemoryChanged;
pub use remove::Retention;
pub use summary::{RunFilter, RunSummary, short_id};

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
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

    /// Adds an event to its run; it is on disk when this returns. The first event of a run is [`RunStart`]; `seq`
    /// counts up and is used once in a run. Events that do not last are passed over.
    ///
    /// [`RunStart`]: crate::types::Event::RunStart
    pub fn append(&mut self, run_id: Uuid, seq: u64, event: &Stamped) -> Result<(), StoreError> {
        self.append_with(run_id, seq, event, None)
    }

    /// The same, with what is to be on disk together with the event; `also` is given the number of the run.
    fn append_with(
        &mut self,
        run_id: Uuid,
        seq: u64,
        event: &Stamped,
        also: Option<Also<'_>>,
    ) -> Result<(), StoreError> {
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
        // A statement alone is a transaction of its own, and a cheaper one.
        if also.is_none() && !summary::is_changed_by(&event.event) {
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
        if let Some(also) = also {
            let run = number(&transaction, &id).map_err(wrap)?;
            also(&transaction, run).map_err(wrap)?;
        }
        if let Event::RunEnd { .. } = &event.event {
            // Once, and not at each event: nobody looks for what is still being written.
            let run = number(&transaction, &id).map_err(wrap)?;
            search::index(&transaction, run).map_err(wrap)?;
        }
        transaction.commit().map_err(wrap)
    }

    /// Makes a run that has ended one that goes on, and takes these of its events away: its end, and what came
    /// of it.
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

/// A number as `SQLite` keeps it, which knows none that is larger.
fn to_sql(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// What is to be on disk together with an event; it is given the number of the run.
type Also<'a> = Box<dyn FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<()> + 'a>;

/// The number of the run of this id.
fn number(connection: &Connection, run: &str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT n FROM run WHERE id = ?1")?
        .query_row([run], |row| row.get(0))
}

/// Adds an event to the run of this id. Says whether there is such a run.
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
