use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags};

use super::{error::StoreError, schema};

/// How long to wait for other processes. Each locks the file only for a small write.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    create(path).map_err(|error| StoreError::from_io(path, &error))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match prepare(path) {
            // When two processes switch a new file to WAL at the same time, one may fail without
            // waiting for SQLite's busy timeout; it only has to try again.
            Err(StoreError::Busy { .. }) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

/// Creates the file and its directory with access for the user only. Existing ones stay as they are.
fn create(path: &Path) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    let mut dirs = fs::DirBuilder::new();
    dirs.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        options.mode(0o600);
        dirs.mode(0o700);
    }
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        dirs.create(parent)?;
    }
    // SQLite creates its auxiliary files with the same permissions.
    options.open(path).map(drop)
}

fn prepare(path: &Path) -> Result<Connection, StoreError> {
    let wrap = |error| StoreError::from_sqlite(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(wrap)?;
    connection.busy_timeout(PATIENCE).map_err(wrap)?;
    schema::recognize(&connection, path)?;
    // On a file system without shared memory this returns another mode, which works too.
    connection
        .pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
        .map_err(wrap)?;
    // With WAL, no commit is lost when the process dies, and the file is never corrupted. A power failure may lose
    // the last events; waiting for the disk at each event would cost too much.
    connection
        .pragma_update(None, "synchronous", "normal")
        .map_err(wrap)?;
    connection
        .pragma_update(None, "foreign_keys", true)
        .map_err(wrap)?;
    schema::migrate(&mut connection, path)?;
    Ok(connection)
}
