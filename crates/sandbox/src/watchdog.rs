//! A second process that cleans up if this one is killed: it kills the sessions of the children and removes their
//! folders, which contain drafts.
//!
//! The kernel kills the children themselves (`PR_SET_PDEATHSIG`), but not the processes that they started. The
//! watchdog reads notes from a pipe, which closes when this process ends for any reason.

use std::collections::BTreeSet;
use std::io::{BufRead as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use parking_lot::Mutex;

use super::cgroup;
use super::proc::SessionTrace;
use super::worker::WORKER;

/// The argument after [`WORKER`] that turns this binary into a watchdog.
pub(super) const WATCHDOG: &str = "watchdog";

/// Our own binary.
static BINARY: OnceLock<PathBuf> = OnceLock::new();

/// The pipe to the watchdog, once it runs. Closed when this process ends.
static PIPE: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// Enables cleanup if this process is killed. `binary` is a program whose `main` calls
/// [`worker_main`](super::worker_main); it is started together with the first child. Only the first call has an
/// effect.
pub fn use_watchdog(binary: PathBuf) {
    let _ = BINARY.set(binary);
}

/// A cleanup note: something to clean up if this process is killed before the note is dropped.
#[derive(Debug)]
pub(super) struct CleanupNote(Vec<u8>);

impl CleanupNote {
    /// A folder to remove. Starts the watchdog if it is not running.
    pub(super) fn folder(path: &Path) -> Self {
        let mut pipe = PIPE.lock();
        if pipe.is_none()
            && let Some(binary) = BINARY.get()
        {
            *pipe = start(binary).ok();
        }
        drop(pipe);
        Self::take(&[b"f", path.as_os_str().as_bytes()].concat())
    }

    /// Processes to kill, and their control group.
    pub(super) fn session(trace: &SessionTrace, cgroup: Option<&Path>) -> Self {
        let mut note = format!("s{trace} ").into_bytes();
        note.extend_from_slice(cgroup.map_or(b"", |path| path.as_os_str().as_bytes()));
        Self::take(&note)
    }

    fn take(note: &[u8]) -> Self {
        send(b'+', note);
        Self(note.to_owned())
    }
}

impl Drop for CleanupNote {
    fn drop(&mut self) {
        send(b'-', &self.0);
    }
}

/// Sends a note. Notes end with a zero byte, which no path contains.
fn send(sign: u8, note: &[u8]) {
    let mut pipe = PIPE.lock();
    if let Some(pipe) = pipe.as_mut() {
        // Everything else works without a watchdog.
        let _ = pipe.write_all(&[&[sign], note, &[0]].concat());
    }
}

fn start(binary: &Path) -> std::io::Result<ChildStdin> {
    let mut child = Command::new(binary)
        .args([WORKER, WATCHDOG])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    child
        .stdin
        .take()
        .ok_or_else(|| std::io::Error::other("it has no pipe"))
}

/// The watchdog: reads notes until the pipe closes, then cleans up what the remaining notes name.
pub(super) fn serve() -> std::io::Result<()> {
    // Ignore Ctrl-C and the end of the terminal.
    let _ = rustix::process::setsid();
    let mut notes = BTreeSet::new();
    let mut stdin = std::io::stdin().lock();
    let mut note = Vec::new();
    while stdin.read_until(0, &mut note)? > 0 {
        note.pop();
        let body = note.split_off(1.min(note.len()));
        match note.first() {
            Some(b'+') => _ = notes.insert(body),
            _ => _ = notes.remove(&body),
        }
        note.clear();
    }
    // Processes first: they may still write to their folders.
    for body in notes.iter().rev() {
        match body.split_first() {
            Some((b's', session)) => end(session),
            Some((b'f', path)) => {
                let path = PathBuf::from(std::ffi::OsString::from_vec(path.to_owned()));
                let _ = std::fs::remove_dir_all(path);
            }
            _ => {}
        }
    }
    Ok(())
}

fn end(session: &[u8]) {
    let text = String::from_utf8_lossy(session);
    let Some((trace, cgroup)) = SessionTrace::parse(&text) else {
        return;
    };
    if !cgroup.is_empty() {
        // Drop kills and removes it.
        drop(cgroup::Group::existing(Path::new(cgroup)));
    }
    trace.kill();
}
