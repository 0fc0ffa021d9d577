use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the run log could not be used. Each message names the file and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file or its directory cannot be made or written.
    #[error(
        "the run log `{path}` cannot be written: {reason}; go without it (`--no-log`), or set `REFLECT_STATE_DIR` to a directory that can be written"
    )]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// In the system's words.
        reason: String,
    },
    /// No space is left.
    #[error(
        "the disk with the run log `{path}` is full; make room, or go without the log (`--no-log`)"
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// It is ours, but damaged.
    #[error(
        "the run log `{path}` is damaged; move the file away and a new one is made, or go without it (`--no-log`)"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
    },
    /// It is something else.
    #[error(
        "`{path}` is not a run log of reflect; move it away, or set `REFLECT_STATE_DIR` to another directory, or go without the log (`--no-log`)"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer version of this program made it.
    #[error(
        "the run log `{path}` was written by a newer version of reflect (format {found}, this version knows {known}); update reflect, or go without the log (`--no-log`)"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that this version knows.
        known: i64,
    },
    /// Another process holds it for too long.
    #[error(
        "the run log `{path}` is in use by another process that does not let go of it; try again, or go without it (`--no-log`)"
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// There is no such run.
    #[error("there is no run `{wanted}` in the log; `reflect history list` shows those there are")]
    NoSuchRun {
        /// What was asked for.
        wanted: String,
    },
    /// Several runs fit.
    #[error("`{wanted}` fits several runs: {}; give more of the id", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// Ids that fit, the latest first, not all if there are many.
        candidates: Vec<String>,
    },
    /// Another process is at work on the run.
    #[error(
        "the run `{run}` is going on in another process; wait until it ends, or end that process, and try again"
    )]
    Running {
        /// The run.
        run: String,
    },
    /// There is nothing to look for.
    #[error("`{wanted}` has no word to look for in the log")]
    NoWords {
        /// What was asked for.
        wanted: String,
    },
    /// Something that is kept for later runs cannot be written or read.
    #[error(
        "what is in memory as {id} cannot be read: {reason}; `reflect memory rm {id}` takes it out"
    )]
    UnreadableMemory {
        /// Its number.
        id: u64,
        /// Why.
        reason: String,
    },
    /// An event cannot be written or read.
    #[error("event {seq} of the run `{run}` cannot be read: {reason}")]
    Unreadable {
        /// The run.
        run: String,
        /// The event's number.
        seq: u64,
        /// Why.
        reason: String,
    },
    /// Anything else that `SQLite` says.
    #[error("the run log `{path}` failed: {source}; go without it with `--no-log`")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// In `SQLite`'s words.
        source: rusqlite::Error,
    },
}

impl StoreError {
    pub(super) fn from_sqlite(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path },
            Some(ErrorCode::NotADatabase) => Self::Foreign { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(
                ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure
                | ErrorCode::FileLockingProtocolFailed,
            ) => Self::NotWritable {
                path,
                reason: error.to_string(),
            },
            _ => Self::Sqlite {
                path,
                source: error,
            },
        }
    }

    pub(super) fn from_io(path: &Path, error: &std::io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Self::Full { path }
            }
            _ => Self::NotWritable {
                path,
                reason: error.to_string(),
            },
        }
    }
}
