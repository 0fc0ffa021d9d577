//! The memory for later runs, and the outcomes of earlier runs.

use jiff::Timestamp;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::summary::from_json_name;
use super::{Store, StoreError, to_sql};
use crate::types::{Knowledge, Memory, MemoryChange, RunOutcome};

/// A row: number, time added, time last touched, content as JSON.
type Row = (i64, i64, i64, String);

impl Store {
    /// All memory entries, oldest first.
    pub fn memories(&self) -> Result<Vec<Memory>, StoreError> {
        let wrap = |error| StoreError::from_sqlite(&self.path, error);
        rows(&self.connection)
            .map_err(wrap)?
            .into_iter()
            .map(read)
            .collect()
    }

    /// The ids of all memory entries, including unreadable ones, oldest first.
    pub fn memory_ids(&self) -> Result<Vec<u64>, StoreError> {
        let rows =
            rows(&self.connection).map_err(|error| StoreError::from_sqlite(&self.path, error))?;
        Ok(rows.into_iter().map(|(id, ..)| entry_id(id)).collect())
    }

    /// Changes memory entries, based on the current ones, in one transaction. Returns what changed, with the ids of
    /// new entries. Replaced and removed content is erased from the file.
    pub fn change_memories(
        &mut self,
        now: Timestamp,
        change: impl FnOnce(&[Memory]) -> Vec<MemoryChange>,
    ) -> Result<MemoryChanges, StoreError> {
        let path = self.path.clone();
        let changed = self
            .in_transaction(|connection| {
                let known: Result<Vec<Memory>, StoreError> =
                    rows(connection)?.into_iter().map(read).collect();
                match known {
                    Ok(known) => apply(connection, now, change(&known)).map(Ok),
                    Err(error) => Ok(Err(error)),
                }
            })
            .map_err(|error| StoreError::from_sqlite(&path, error))??;
        if changed.removed > 0 {
            self.shrink();
        }
        Ok(changed)
    }

    /// Removes memory entries, including unreadable ones; returns how many existed.
    pub fn remove_memories(&mut self, ids: &[u64]) -> Result<usize, StoreError> {
        let path = self.path.clone();
        let removed = self
            .in_transaction(|connection| {
                ids.iter()
                    .try_fold(0, |sum, id| Ok(sum + remove(connection, *id)?))
            })
            .map_err(|error| StoreError::from_sqlite(&path, error))?;
        self.shrink();
        Ok(removed)
    }

    /// The outcome of this run and of the latest finished runs with the same criteria, model and command: at most
    /// `limit`, including this one.
    pub fn comparable_outcomes(
        &self,
        run_id: Uuid,
        limit: usize,
    ) -> Result<Vec<RunOutcome>, StoreError> {
        let rows = || -> rusqlite::Result<Vec<RunOutcome>> {
            // The initial text of a `revise` run was not written by the run.
            self.connection
                .prepare_cached(
                    "SELECT id, convergence_reason, coalesce(success, 0), iterations,
                         CASE command WHEN 'revise' THEN NULL ELSE (
                             SELECT json_extract(body, '$.evaluation.overall_score') FROM event
                             WHERE event.run = run.n AND json_extract(body, '$.event') = 'evaluation'
                                 AND json_extract(body, '$.iteration') = 1
                             ORDER BY seq LIMIT 1) END,
                         (SELECT json_extract(body, '$.task.remembered') FROM event
                             WHERE event.run = run.n AND seq = 0)
                     FROM run
                     WHERE (criteria, writer, command) =
                             (SELECT criteria, writer, command FROM run WHERE id = ?1)
                         AND ended IS NOT NULL
                     ORDER BY started DESC, n DESC LIMIT ?2",
                )?
                .query_map(
                    params![
                        run_id.to_string(),
                        to_sql(limit)
                    ],
                    |row| {
                        let id: String = row.get(0)?;
                        let reason: Option<String> = row.get(1)?;
                        let remembered: Option<String> = row.get(5)?;
                        Ok(RunOutcome {
                            run_id: Uuid::parse_str(&id).unwrap_or_default(),
                            reason: reason.and_then(from_json_name),
                            success: row.get(2)?,
                            iterations: row.get(3)?,
                            first_score: row.get(4)?,
                            remembered: remembered
                                .and_then(|list| serde_json::from_str(&list).ok())
                                .unwrap_or_default(),
                        })
                    },
                )?
                .collect()
        };
        rows().map_err(|error| StoreError::from_sqlite(&self.path, error))
    }
}

/// The result of changes to memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryChanges {
    /// The ids of new entries, in order.
    pub added: Vec<u64>,
    /// The ids of replaced entries.
    pub replaced: Vec<u64>,
    /// The number of removed entries.
    pub removed: usize,
}

fn rows(connection: &Connection) -> rusqlite::Result<Vec<Row>> {
    connection
        .prepare_cached("SELECT id, added, touched, body FROM memory ORDER BY id")?
        .query_map([], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect()
}

fn read((id, added, touched, body): Row) -> Result<Memory, StoreError> {
    let id = entry_id(id);
    let what = serde_json::from_str(&body).map_err(|error| StoreError::UnreadableMemory {
        id,
        reason: error.to_string(),
    })?;
    let time = |ms| Timestamp::from_millisecond(ms).unwrap_or_default();
    Ok(Memory {
        id,
        added: time(added),
        touched: time(touched),
        what,
    })
}

fn apply(
    connection: &Connection,
    now: Timestamp,
    changes: Vec<MemoryChange>,
) -> rusqlite::Result<MemoryChanges> {
    let now = now.as_millisecond();
    let mut done = MemoryChanges::default();
    for change in changes {
        match change {
            MemoryChange::Add(what) => {
                connection
                    .prepare_cached(
                        "INSERT INTO memory (added, touched, body) VALUES (?1, ?1, ?2)",
                    )?
                    .execute(params![now, body(&what)?])?;
                done.added.push(entry_id(connection.last_insert_rowid()));
            }
            MemoryChange::Replace(id, what) => {
                connection
                    .prepare_cached("UPDATE memory SET body = ?2 WHERE id = ?1")?
                    .execute(params![to_sql(id), body(&what)?])?;
                done.replaced.push(id);
            }
            MemoryChange::Touch(id) => {
                connection
                    .prepare_cached("UPDATE memory SET touched = ?2 WHERE id = ?1")?
                    .execute(params![to_sql(id), now])?;
            }
            MemoryChange::Remove(id) => done.removed += remove(connection, id)?,
        }
    }
    Ok(done)
}

/// Removes an entry; returns how many rows were deleted.
fn remove(connection: &Connection, id: u64) -> rusqlite::Result<usize> {
    connection
        .prepare_cached("DELETE FROM memory WHERE id = ?1")?
        .execute([to_sql(id)])
}

/// Removes runs from the sources of insights. Deletes an insight whose wording comes from such a run.
pub(super) fn forget_runs(connection: &Connection, runs: &[Uuid]) -> rusqlite::Result<()> {
    let mut changes = Vec::new();
    for memory in rows(connection)?
        .into_iter()
        .filter_map(|row| read(row).ok())
    {
        let Knowledge::Insight(mut insight) = memory.what else {
            continue;
        };
        if insight.evidence.first().is_some_and(|it| runs.contains(it)) {
            changes.push(MemoryChange::Remove(memory.id));
        } else if insight.evidence.iter().any(|it| runs.contains(it)) {
            insight.evidence.retain(|it| !runs.contains(it));
            changes.push(MemoryChange::Replace(
                memory.id,
                Knowledge::Insight(insight),
            ));
        }
    }
    // No entry is touched, so the time does not matter.
    apply(connection, Timestamp::UNIX_EPOCH, changes).map(drop)
}

/// The id of the entry in this row.
fn entry_id(row: i64) -> u64 {
    u64::try_from(row).unwrap_or(0)
}

fn body(what: &Knowledge) -> rusqlite::Result<String> {
    serde_json::to_string(what)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Fact, KnownInsight};

    fn open() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("runs.db")).unwrap();
        (dir, store)
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn fact(content: &str) -> Knowledge {
        Knowledge::Fact(Fact {
            content: content.to_owned(),
            confidence: Some(0.5),
            supports_claim: None,
        })
    }

    fn add(store: &mut Store, what: Knowledge) -> u64 {
        let changed = store.change_memories(at(1), |_| vec![MemoryChange::Add(what)]);
        changed.unwrap().added[0]
    }

    #[test]
    fn memory_entries_are_changed_and_removed_and_ids_are_not_reused() {
        let (_dir, mut store) = open();
        let one = add(&mut store, fact("one"));
        let two = add(&mut store, fact("two"));
        let changed = store
            .change_memories(at(9), |known| {
                assert_eq!(known.len(), 2);
                vec![
                    MemoryChange::Replace(one, fact("other")),
                    MemoryChange::Touch(one),
                    MemoryChange::Remove(two),
                ]
            })
            .unwrap();
        assert_eq!((changed.replaced, changed.removed), (vec![one], 1));
        let known = store.memories().unwrap();
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].what, fact("other"));
        assert_eq!((known[0].added, known[0].touched), (at(1), at(9)));
        let three = add(&mut store, fact("three"));
        assert!(three > two);
        assert_eq!(store.remove_memories(&[three, 99]).unwrap(), 1);
    }

    #[test]
    fn removed_and_replaced_content_is_erased_from_the_file() {
        let (dir, mut store) = open();
        let holds = |word: &str| {
            std::fs::read_dir(dir.path()).unwrap().any(|entry| {
                let bytes = std::fs::read(entry.unwrap().path()).unwrap();
                bytes
                    .windows(word.len())
                    .any(|part| part == word.as_bytes())
            })
        };
        let one = add(&mut store, fact("the xylophone"));
        add(&mut store, fact("the piano"));
        assert!(holds("xylophone"));
        store.remove_memories(&[one]).unwrap();
        assert!(!holds("xylophone") && holds("piano"));
    }

    #[test]
    fn unreadable_entries_are_named_and_can_be_removed() {
        let (_dir, mut store) = open();
        let id = add(&mut store, fact("one"));
        store
            .connection
            .execute("UPDATE memory SET body = '{}'", [])
            .unwrap();
        let error = store.memories().unwrap_err().to_string();
        assert!(error.contains(&format!("memory rm {id}")), "{error}");
        assert_eq!(store.remove_memories(&[id]).unwrap(), 1);
        assert!(store.memories().unwrap().is_empty());
    }

    #[test]
    fn insights_that_quote_a_removed_run_are_removed() {
        let (_dir, mut store) = open();
        let runs = [1, 2].map(Uuid::from_u128);
        let insight = |evidence: &[Uuid]| {
            Knowledge::Insight(KnownInsight {
                evidence: evidence.to_vec(),
                ..KnownInsight::new("general", "x", 0.5)
            })
        };
        add(&mut store, insight(&[runs[0], runs[1]]));
        let kept = add(&mut store, insight(&[runs[1], runs[0]]));
        let own = add(&mut store, insight(&[]));
        store.remove(&runs[..1]).unwrap();
        let known = store.memories().unwrap();
        let ids: Vec<u64> = known.iter().map(|memory| memory.id).collect();
        assert_eq!(ids, [kept, own]);
        assert_eq!(known[0].what, insight(&runs[1..]));
        assert_eq!(known[0].touched, at(1));
    }
}
