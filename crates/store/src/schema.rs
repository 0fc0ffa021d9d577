use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::error::StoreError;

/// The `application_id` that marks the file as a run log: the letters `rflt`.
const APPLICATION_ID: i64 = 0x7266_6c74;

/// The migrations: element n converts format n to n+1. Append only.
const MIGRATIONS: &[&str] = &[
    // The columns of `history list` are stored next to the events, so that the list reads no event.
    "CREATE TABLE run (
        n INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        started INTEGER NOT NULL,
        ended INTEGER,
        command TEXT NOT NULL,
        title TEXT NOT NULL,
        criteria TEXT NOT NULL,
        writer TEXT NOT NULL,
        judge TEXT NOT NULL,
        iterations INTEGER NOT NULL DEFAULT 0,
        convergence_reason TEXT,
        success INTEGER,
        exit_code INTEGER,
        selected INTEGER,
        score REAL
    );
    CREATE INDEX run_started ON run (started DESC, n DESC);
    CREATE TABLE event (
        run INTEGER NOT NULL REFERENCES run (n) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        time INTEGER NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (run, seq)
    );",
    // Cached verdicts, by a hash of everything they depend on.
    "CREATE TABLE verdict (
        key TEXT PRIMARY KEY,
        kept INTEGER NOT NULL,
        body TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX verdict_kept ON verdict (kept DESC);",
    // The full-text index of runs with the last indexed event, and the time of the last cleanup.
    "ALTER TABLE run ADD COLUMN indexed INTEGER;
    CREATE VIRTUAL TABLE words USING fts5(
        text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TABLE upkeep (
        task TEXT PRIMARY KEY,
        done INTEGER NOT NULL
    ) WITHOUT ROWID;",
    // The model calls. A message may share a prefix with an earlier message of its run.
    "CREATE TABLE call (
        run INTEGER NOT NULL REFERENCES run (n) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        key TEXT NOT NULL,
        asked TEXT NOT NULL,
        messages TEXT NOT NULL,
        reply TEXT NOT NULL,
        UNIQUE (run, seq)
    );
    CREATE TABLE message (
        run INTEGER NOT NULL REFERENCES run (n) ON DELETE CASCADE,
        n INTEGER NOT NULL,
        role TEXT NOT NULL,
        base INTEGER,
        shared INTEGER NOT NULL,
        rest TEXT NOT NULL,
        UNIQUE (run, n)
    );",
    // The memory entries, as JSON. Numbers are not reused, because runs refer to entries by number.
    "CREATE TABLE memory (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        added INTEGER NOT NULL,
        touched INTEGER NOT NULL,
        body TEXT NOT NULL
    );",
    // The totals of runs, so that the list reads no event.
    concat!(
        "ALTER TABLE run ADD COLUMN first_score REAL;
        ALTER TABLE run ADD COLUMN tokens INTEGER;
        ALTER TABLE run ADD COLUMN cost REAL;",
        include_str!("totals.sql"),
        "WHERE ended IS NOT NULL;",
    ),
];

/// The newest supported format.
fn newest() -> i64 {
    super::to_sql(MIGRATIONS.len())
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Checks that the file is a supported run log or a new, empty file. Changes nothing.
pub(super) fn recognize(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let wrap = |error| StoreError::from_sqlite(path, error);
    // One transaction for all three reads: another process may be creating the file.
    let connection = connection.unchecked_transaction().map_err(wrap)?;
    let id = pragma(&connection, "application_id").map_err(wrap)?;
    let found = pragma(&connection, "user_version").map_err(wrap)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(wrap)?;
    if id != APPLICATION_ID && (id != 0 || found != 0 || tables != 0) {
        return Err(StoreError::Foreign {
            path: path.to_owned(),
        });
    }
    if found > newest() {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known: newest(),
        });
    }
    Ok(())
}

/// Migrates the file to the newest format. One of several processes migrates; the others wait.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let wrap = |error| StoreError::from_sqlite(path, error);
    if pragma(connection, "user_version").map_err(wrap)? == newest() {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(wrap)?;
    let found = pragma(&transaction, "user_version").map_err(wrap)?;
    for step in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step).map_err(wrap)?;
    }
    transaction
        .pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(wrap)?;
    if found < newest() {
        transaction
            .pragma_update(None, "user_version", newest())
            .map_err(wrap)?;
    }
    transaction.commit().map_err(wrap)
}
