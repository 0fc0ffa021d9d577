use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the run log cannot be used. Each message names the file and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file or its directory cannot be created or written.
    #[error(
        "cannot write the run log `{path}`: {reason}; run without it (`--no-log`), or set `REFLECT_STATE_DIR` to a writable directory"
    )]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// The operating system's message.
        reason: String,
    },
    /// The disk is full.
    #[error(
        "the disk with the run log `{path}` is full; free some space, or run without the log (`--no-log`)"
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file is a damaged run log.
    #[error(
        "the run log `{path}` is damaged; move the file away to start a new one, or run without it (`--no-log`)"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a run log.
    #[error(
        "`{path}` is not a run log of reflect; move it away, or set `REFLECT_STATE_DIR` to another directory, or run without the log (`--no-log`)"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer version of this program wrote the file.
    #[error(
        "the run log `{path}` was written by a newer version of reflect (format {found}, this version supports up to {known}); update reflect, or run without the log (`--no-log`)"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: i64,
        /// The newest supported format.
        known: i64,
    },
    /// Another process locks the file for too long.
    #[error(
        "another process keeps the run log `{path}` locked; try again, or run without it (`--no-log`)"
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The run does not exist.
    #[error("no run `{wanted}` in the log; `reflect history list` shows all runs")]
    NoSuchRun {
        /// The requested run.
        wanted: String,
    },
    /// Several runs match.
    #[error("`{wanted}` matches several runs: {}; use a longer part of the id", candidates.join(", "))]
    Ambiguous {
        /// The requested run.
        wanted: String,
        /// The matching ids, latest first; shortened if there are many.
        candidates: Vec<String>,
    },
    /// Another process is working on the run.
    #[error(
        "another process is working on the run `{run}`; wait until it ends, or stop that process, and try again"
    )]
    Running {
        /// The run.
        run: String,
    },
    /// The search text contains no word.
    #[error("`{wanted}` contains no word to search for")]
    NoWords {
        /// The search text.
        wanted: String,
    },
    /// A memory entry is unreadable.
    #[error("cannot read the memory entry {id}: {reason}; `reflect memory rm {id}` removes it")]
    UnreadableMemory {
        /// The entry's number.
        id: u64,
        /// The cause.
        reason: String,
    },
    /// An event cannot be read or written.
    #[error("cannot read event {seq} of the run `{run}`: {reason}")]
    Unreadable {
        /// The run.
        run: String,
        /// The event's number.
        seq: u64,
        /// The cause.
        reason: String,
    },
    /// Any other `SQLite` error.
    #[error("the run log `{path}` failed: {source}; run without it (`--no-log`)")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The `SQLite` error.
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
