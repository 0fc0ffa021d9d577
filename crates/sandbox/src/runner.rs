//! One worker: starting it, asking it, and what its death means.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::capture::Capture;
use super::command::{Scratch, cpu_seconds};
use super::interpreter::{command, hint, lua};
use super::limits::{LimitHit, Limits, size};
use super::lookup::minimal_env;
use super::process::Session;
use super::prolog;
use super::script::{Language, ScriptError, ScriptErrorKind, ScriptRequest};
use super::wire::{Answer, Ask};
use crate::secrets;

/// The worker ends a script at the time limit by itself, and can then say in which line; where that
/// does not help (a C function that does not return), it is killed later by half the limit, and at most so much.
const GRACE: Duration = Duration::from_secs(1);

/// An interpreter may take so long to start, before the time of its first evaluation counts.
const START: Duration = Duration::from_secs(10);

/// Memory of the interpreter itself and of the request and answer in it.
const OVERHEAD: u64 = 96 * 1024 * 1024;

/// CPU time in the whole life of a worker, beyond that of its last evaluation: a backstop for one
/// that outlives its pool. It is replaced when it was busy for half of this.
pub(super) const CPU: Duration = Duration::from_mins(10);

/// Bytes kept of what an interpreter writes to its standard error.
const COMPLAINTS: usize = 8 * 1024;

/// Which evaluations a worker may serve: its limits are set when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    language: Language,
    time: Duration,
    memory: u64,
    processes: u64,
    open_files: u64,
    file_size: u64,
}

impl Key {
    pub(super) fn new(language: Language, limits: &Limits) -> Self {
        Self {
            language,
            time: limits.time,
            memory: limits.memory,
            processes: limits.processes,
            open_files: limits.open_files,
            file_size: limits.file_size,
        }
    }
}

/// What a script gave.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) value: Value,
    pub(super) prints: String,
}

/// One interpreter that waits for work.
#[derive(Debug)]
pub(super) struct Worker {
    // First, so that its processes are ended before their directory is removed.
    session: Session,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    stderr: Option<ChildStderr>,
    key: Key,
    uses: u32,
    busy: Duration,
    fit: bool,
    _scratch: Option<Scratch>,
}

impl Worker {
    pub(super) fn start(key: Key, binary: &Path, limits: &Limits) -> Result<Self, ScriptError> {
        let language = key.language;
        let broken = |e: std::io::Error| {
            let message = format!("the {language} worker could not be started: {e}");
            ScriptError::new(language, ScriptErrorKind::Protocol, message)
        };
        // Lua has no files.
        let (mut command, scratch) = if language == Language::Lua {
            (lua(binary), None)
        } else {
            let scratch = Scratch::new().map_err(broken)?;
            let command = command(language, &scratch, minimal_env(&[]))?;
            (command, Some(scratch))
        };
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let own = Limits {
            memory: limits.memory.saturating_add(OVERHEAD),
            // The interpreter itself, and its threads.
            processes: limits.processes.saturating_add(4),
            ..*limits
        };
        let mut session =
            Session::start(command, &own, cpu_seconds(CPU + limits.time)).map_err(broken)?;
        let child = session.child();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), stderr) = pipes else {
            return Err(broken(std::io::Error::other("it has no pipes")));
        };
        Ok(Self {
            session,
            stdin,
            stdout: BufReader::new(stdout),
            stderr,
            key,
            uses: 0,
            busy: Duration::ZERO,
            fit: true,
            _scratch: scratch,
        })
    }

    pub(super) fn key(&self) -> Key {
        self.key
    }

    pub(super) fn uses(&self) -> u32 {
        self.uses
    }

    pub(super) fn busy(&self) -> Duration {
        self.busy
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        self.session.is_alive()
    }

    /// Whether it may be asked again.
    pub(super) fn is_fit(&self) -> bool {
        self.fit
    }

    /// Asks for one evaluation. If this is not polled to its end, the worker is of no more use.
    pub(super) async fn evaluate(
        &mut self,
        request: &ScriptRequest,
        limits: &Limits,
    ) -> Result<Given, ScriptError> {
        self.fit = false;
        let started = Instant::now();
        let first = self.uses == 0;
        self.uses += 1;
        let mut complaints = Capture::new(COMPLAINTS);
        let watch = self.session.watch();
        let ready = if first {
            self.ready(limits, &mut complaints).await
        } else {
            Ok(true)
        };
        let never_started = matches!(ready, Ok(false));
        let asked = Instant::now();
        let heard = match ready {
            Ok(true) => {
                let time = limits.time + GRACE.min(limits.time / 2);
                let answer = self.ask(request, limits, &mut complaints);
                let answer = tokio::time::timeout(time, answer).await;
                answer.unwrap_or_else(|_| Err(self.late(limits)))
            }
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        drop(watch);
        self.busy += started.elapsed();
        if let Some(hit) = self.session.hit() {
            self.session.kill();
            return Err(self.over(hit, limits));
        }
        let result = match heard {
            // Nothing inside of the worker can hold this up: a script may catch what ends it there.
            Ok(Some(Answer::Value { .. })) if asked.elapsed() > limits.time => {
                Err(self.late(limits))
            }
            Ok(Some(Answer::Value { value, prints })) => Ok(Given { value, prints }),
            Ok(Some(Answer::Failed { error, prints })) => Err(ScriptError {
                language: self.key.language,
                kind: error.kind,
                message: error.message,
                line: error.line,
                prints,
            }),
            Ok(Some(Answer::Group { .. } | Answer::Ready { .. }) | None) => {
                let status =
                    tokio::time::timeout(Duration::from_secs(1), self.session.wait()).await;
                let status = status.ok().and_then(Result::ok);
                return Err(self.died(status, never_started, &complaints.finish().text(), limits));
            }
            Err(error) => {
                self.session.kill();
                return Err(error);
            }
        };
        self.fit = true;
        result
    }

    fn error(&self, kind: ScriptErrorKind, message: impl Into<String>) -> ScriptError {
        ScriptError::new(self.key.language, kind, message)
    }

    /// It hit a limit of its whole session, in which the interpreter itself has a share.
    fn over(&self, hit: LimitHit, limits: &Limits) -> ScriptError {
        if let LimitHit::Processes(_) = hit {
            let message = format!("it had more than {} processes", limits.processes);
            self.error(ScriptErrorKind::Runtime, message)
        } else {
            let used = size(limits.memory);
            let message = format!("it used more memory than the memory limit of {used}");
            self.error(ScriptErrorKind::Memory, message)
        }
    }

    fn late(&self, limits: &Limits) -> ScriptError {
        let message = format!("it ran longer than the time limit of {:?}", limits.time);
        self.error(ScriptErrorKind::Time, message)
    }

    /// Waits until the interpreter has started; false if it died instead.
    async fn ready(
        &mut self,
        limits: &Limits,
        complaints: &mut Capture,
    ) -> Result<bool, ScriptError> {
        let talk = self.talk((Vec::new(), String::new()), limits, complaints);
        if let Ok(answer) = tokio::time::timeout(START, talk).await {
            return Ok(matches!(answer?, Some(Answer::Ready { .. })));
        }
        let message = format!("the interpreter did not start within {START:?}");
        Err(self.error(ScriptErrorKind::MissingInterpreter, message))
    }

    /// Writes the request and reads the answer; nothing where the worker died.
    async fn ask(
        &mut self,
        request: &ScriptRequest,
        limits: &Limits,
        complaints: &mut Capture,
    ) -> Result<Option<Answer>, ScriptError> {
        let asked = match self.key.language {
            Language::Lua | Language::Python => {
                let ask = Ask {
                    request,
                    limits: limits.into(),
                };
                let mut line = serde_json::to_vec(&ask)
                    .map_err(|e| self.error(ScriptErrorKind::Protocol, e.to_string()))?;
                line.push(b'\n');
                (line, String::new())
            }
            Language::Prolog => prolog::ask(request, limits),
        };
        self.talk(asked, limits, complaints).await
    }

    /// Writes these bytes and reads the next answer, whose line starts with this mark.
    async fn talk(
        &mut self,
        (asked, mark): (Vec<u8>, String),
        limits: &Limits,
        complaints: &mut Capture,
    ) -> Result<Option<Answer>, ScriptError> {
        let language = self.key.language;
        let fail = |kind, message: String| ScriptError::new(language, kind, message);
        // A byte may take six in JSON (`\u0001`), in the value and in the prints.
        let most = limits.output.saturating_mul(12).saturating_add(64 * 1024);
        let Self {
            session,
            stdin,
            stdout,
            stderr,
            ..
        } = self;
        // If it dies while it reads, that is seen when the answer is missing.
        let write = async {
            let _ = stdin.write_all(&asked).await;
            let _ = stdin.flush().await;
        };
        let read = async {
            let mut room = most;
            loop {
                let mut line = Vec::new();
                let bound = u64::try_from(room).unwrap_or(u64::MAX);
                let count = (&mut *stdout)
                    .take(bound)
                    .read_until(b'\n', &mut line)
                    .await;
                if count.is_ok_and(|n| n == 0) || line.is_empty() {
                    return Ok(None);
                }
                room = room.saturating_sub(line.len());
                if room == 0 {
                    let message = format!("it wrote more than {most} bytes");
                    return Err(fail(ScriptErrorKind::Output, message));
                }
                let Some(json) = line.strip_prefix(mark.as_bytes()) else {
                    continue;
                };
                // This is where what scripts say comes in.
                let json = secrets::redact(json.to_owned());
                match serde_json::from_slice(&json) {
                    Ok(Answer::Group { pid }) => session.also(pid),
                    Ok(answer) => return Ok(Some(answer)),
                    Err(_) if !line.ends_with(b"\n") => return Ok(None),
                    Err(e) => {
                        let message = format!("its answer could not be read: {e}");
                        return Err(fail(ScriptErrorKind::Protocol, message));
                    }
                }
            }
        };
        let listen = async {
            let mut buffer = [0; 4096];
            while let Some(pipe) = stderr {
                match pipe.read(&mut buffer).await {
                    Ok(count @ 1..) => complaints.push(&buffer[..count]),
                    _ => break,
                }
            }
            std::future::pending::<()>().await;
        };
        let exchange = async { tokio::join!(write, read).1 };
        let result = tokio::select! {
            heard = exchange => heard,
            () = listen => Ok(None),
        };
        if matches!(result, Ok(Some(_))) {
            self.session.also(0);
        }
        result
    }

    /// What it means that the worker ended without an answer.
    fn died(
        &mut self,
        status: Option<ExitStatus>,
        never_started: bool,
        complaints: &str,
        limits: &Limits,
    ) -> ScriptError {
        self.session.kill();
        let complaints = complaints.trim();
        #[cfg(unix)]
        {
            use rustix::process::Signal;
            use std::os::unix::process::ExitStatusExt;
            let signal = status.and_then(|s| s.signal());
            if signal == Some(Signal::XCPU.as_raw()) {
                return self.late(limits);
            }
            // Rust's words when there is no memory left, before it aborts.
            if signal == Some(Signal::ABORT.as_raw()) && complaints.contains("memory allocation") {
                let message = "it used more memory than the memory limit";
                return self.error(ScriptErrorKind::Memory, message);
            }
        }
        // The interpreter's words, where the request itself is too large for it.
        if complaints.ends_with("MemoryError") {
            let message = "what it was given needs more memory than the memory limit";
            return self.error(ScriptErrorKind::Memory, message);
        }
        let _ = limits;
        let how = status.map_or_else(|| "without an exit status".to_owned(), |s| s.to_string());
        let told = if complaints.is_empty() {
            String::new()
        } else {
            format!(": {complaints}")
        };
        if never_started && status.is_some_and(|s| s.code().is_some_and(|code| code != 0)) {
            let hint = hint(self.key.language);
            let message = format!(
                "the {} interpreter does not start ({how}){told}; {hint}",
                self.key.language
            );
            return self.error(ScriptErrorKind::MissingInterpreter, message);
        }
        self.error(
            ScriptErrorKind::Runtime,
            format!("the interpreter ended ({how}){told}"),
        )
    }
}
