use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::error::StoreError;

/// Marks the file as ours (`SQLite`'s `application_id`): the letters `rflt`.
const APPLICATION_ID: i64 = 0x7266_6c74;

/// What makes format n+1 of format n. Only ever added to.
const MIGRATIONS: &[&str] = &[
    // What `history list` shows is kept beside the events, so that the list reads no event.
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
    // What judges said, by a hash of all that it depends on.
    "CREATE TABLE verdict (
        key TEXT PRIMARY KEY,
        kept INTEGER NOT NULL,
        body TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX verdict_kept ON verdict (kept DESC);",
    // The words of runs, and up to which event they are in it; when old runs were last taken out.
    "ALTER TABLE run ADD COLUMN indexed INTEGER;
    CREATE VIRTUAL TABLE words USING fts5(
        text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TABLE upkeep (
        task TEXT PRIMARY KEY,
        done INTEGER NOT NULL
    ) WITHOUT ROWID;",
    // What models were asked and answered. A message begins with so many bytes of an earlier one of its run.
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
    // What is kept for later runs, each as JSON. Numbers are not used again: runs name what they used by them.
    "CREATE TABLE memory (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        added INTEGER NOT NULL,
        touched INTEGER NOT NULL,
        body TEXT NOT NULL
    );",
    // What runs gained and what they took: the list shows it, and reads no event for it.
    concat!(
        "ALTER TABLE run ADD COLUMN first_score REAL;
        ALTER TABLE run ADD COLUMN tokens INTEGER;
        ALTER TABLE run ADD COLUMN cost REAL;",
        include_str!("totals.sql"),
        "WHERE ended IS NOT NULL;",
    ),
];

/// The newest format that this version knows.
fn newest() -> i64 {
    super::to_sql(MIGRATIONS.len())
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Says whether the file is a run log that this version can use, or a new, empty file. Changes nothing.
pub(super) fn recognize(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let wrap = |error| StoreError::from_sqlite(path, error);
    // All three as of one moment: another process may be making the file right now.
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

/// Brings the file to the newest format. Of several processes one does it, and the others find it done.
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
