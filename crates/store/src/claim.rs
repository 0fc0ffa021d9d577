//! Locks a run for at most one process.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::{Store, StoreError, short_id};

/// The exclusive right to resume a run. The operating system releases it when the value is dropped or the process
/// ends, so there are no stale claims.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// Locked while open.
    _file: File,
}

impl Store {
    /// Claims a run for this process until the claim is dropped. Returns `None` if the file system does not support
    /// locks; then there is no protection.
    ///
    /// # Errors
    /// If another process has claimed the run, or the lock file cannot be created next to the log.
    pub fn claim(&self, run_id: Uuid) -> Result<Option<Claim>, StoreError> {
        let folder = self.path.with_extension("running");
        let path = folder.join(run_id.to_string());
        loop {
            let file = open(&folder, &path).map_err(|error| StoreError::from_io(&path, &error))?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => return Ok(Some(Claim { path, _file: file })),
                // The previous owner has deleted the file meanwhile; try again.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::Running {
                        run: short_id(run_id),
                    });
                }
                Err(TryLockError::Error(_)) => return Ok(None),
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Delete the file while it is locked, because it may belong to the next owner afterwards. Only Unix can
        // delete an open file.
        #[cfg(unix)]
        let _ = fs::remove_file(&self.path);
    }
}

fn open(folder: &Path, path: &Path) -> std::io::Result<File> {
    let mut dirs = fs::DirBuilder::new();
    dirs.recursive(true);
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        options.mode(0o600);
        dirs.mode(0o700);
    }
    match options.open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            dirs.create(folder)?;
            options.open(path)
        }
        opened => opened,
    }
}

/// Whether this file is still the one at the path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (mine, there) = (file.metadata(), fs::metadata(path));
    mine.ok().map(place) == there.ok().map(place)
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_run_has_one_claim_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("runs.db")).unwrap();
        let (a, b) = (Uuid::now_v7(), Uuid::now_v7());
        let claim = store.claim(a).unwrap().unwrap();
        let other = Store::open(&dir.path().join("runs.db")).unwrap();
        let error = other.claim(a).unwrap_err();
        assert!(matches!(error, StoreError::Running { .. }), "{error}");
        assert!(other.claim(b).unwrap().is_some());
        drop(claim);
        assert!(other.claim(a).unwrap().is_some());
    }

    #[cfg(unix)]
    #[test]
    fn claims_leave_nothing_behind_and_stale_files_do_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("runs.db")).unwrap();
        let run = Uuid::now_v7();
        let path = store.claim(run).unwrap().unwrap().path.clone();
        assert!(!path.exists());
        // As after a crash.
        fs::write(&path, "").unwrap();
        assert!(store.claim(run).unwrap().is_some());
    }

    #[test]
    fn only_one_of_many_concurrent_claims_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.db");
        let run = Uuid::now_v7();
        let at_work = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let store = Store::open(&path).unwrap();
                    for _ in 0..50 {
                        if let Ok(Some(claim)) = store.claim(run) {
                            assert_eq!(at_work.fetch_add(1, Ordering::SeqCst), 0);
                            at_work.fetch_sub(1, Ordering::SeqCst);
                            drop(claim);
                        }
                    }
                });
            }
        });
    }
}
