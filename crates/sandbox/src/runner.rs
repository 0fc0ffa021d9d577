//! A script worker: starting it, sending requests, and interpreting its exit.

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
use super::wire::{Request, WorkerMessage};
use crate::secrets;

/// The worker enforces the time limit itself, so that it can report the line. If that fails, for example in a C
/// function that does not return, the worker is killed after 1.5 times the limit, at most this long after the limit.
const GRACE: Duration = Duration::from_secs(1);

/// The time limit for the start of an interpreter, before the time limit of its first evaluation applies.
const START: Duration = Duration::from_secs(10);

/// The memory for the interpreter itself and for the request and response, in bytes.
const OVERHEAD: u64 = 96 * 1024 * 1024;

/// The CPU time limit for the whole life of a worker, in addition to its last evaluation: a safeguard for a worker
/// that outlives its pool. A worker is replaced after half of this time.
pub(super) const CPU: Duration = Duration::from_mins(10);

/// The number of bytes kept of an interpreter's standard error.
const STDERR_LIMIT: usize = 8 * 1024;

/// Which evaluations a worker can serve: its limits are set when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkerKey {
    language: Language,
    time: Duration,
    memory: u64,
    processes: u64,
    open_files: u64,
    file_size: u64,
}

impl WorkerKey {
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

/// The result of a script.
#[derive(Debug)]
pub(super) struct ScriptValue {
    pub(super) value: Value,
    pub(super) prints: String,
}

/// One interpreter.
#[derive(Debug)]
pub(super) struct Worker {
    // First, so that its processes are killed before their directory is removed.
    session: Session,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    stderr: Option<ChildStderr>,
    key: WorkerKey,
    uses: u32,
    busy: Duration,
    fit: bool,
    _scratch: Option<Scratch>,
}

impl Worker {
    pub(super) fn start(
        key: WorkerKey,
        binary: &Path,
        limits: &Limits,
    ) -> Result<Self, ScriptError> {
        let language = key.language;
        let broken = |e: std::io::Error| {
            let message = format!("cannot start the {language} worker: {e}");
            ScriptError::new(language, ScriptErrorKind::Protocol, message)
        };
        // Lua has no access to files.
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
            // For the interpreter itself and its threads.
            processes: limits.processes.saturating_add(4),
            ..*limits
        };
        let mut session =
            Session::start(command, &own, cpu_seconds(CPU + limits.time)).map_err(broken)?;
        let child = session.child();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), stderr) = pipes else {
            return Err(broken(std::io::Error::other("the process has no pipes")));
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

    pub(super) fn key(&self) -> WorkerKey {
        self.key
    }

    pub(super) fn uses(&self) -> u32 {
        self.uses
    }

    pub(super) fn busy(&self) -> Duration {
        self.busy
    }

    /// Whether it is running.
    pub(super) fn is_alive(&mut self) -> bool {
        self.session.is_alive()
    }

    /// Whether it can serve another evaluation.
    pub(super) fn is_reusable(&self) -> bool {
        self.fit
    }

    /// Runs one evaluation. If the future is not polled to completion, the worker is unusable.
    pub(super) async fn evaluate(
        &mut self,
        request: &ScriptRequest,
        limits: &Limits,
    ) -> Result<ScriptValue, ScriptError> {
        self.fit = false;
        let started = Instant::now();
        let first = self.uses == 0;
        self.uses += 1;
        let mut captured = Capture::new(STDERR_LIMIT);
        let monitor = self.session.monitor();
        let ready = if first {
            self.ready(limits, &mut captured).await
        } else {
            Ok(true)
        };
        let never_started = matches!(ready, Ok(false));
        let asked = Instant::now();
        let heard = match ready {
            Ok(true) => {
                let time = limits.time + GRACE.min(limits.time / 2);
                let answer = self.ask(request, limits, &mut captured);
                let answer = tokio::time::timeout(time, answer).await;
                answer.unwrap_or_else(|_| Err(self.timeout_error(limits)))
            }
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        drop(monitor);
        self.busy += started.elapsed();
        if let Some(hit) = self.session.hit() {
            self.session.kill();
            return Err(self.exceeded_limit(hit, limits));
        }
        let result = match heard {
            // Check the time from outside: a script may catch the error that ends it inside the worker.
            Ok(Some(WorkerMessage::Value { .. })) if asked.elapsed() > limits.time => {
                Err(self.timeout_error(limits))
            }
            Ok(Some(WorkerMessage::Value { value, prints })) => Ok(ScriptValue { value, prints }),
            Ok(Some(WorkerMessage::Failed { error, prints })) => Err(ScriptError {
                language: self.key.language,
                kind: error.kind,
                message: error.message,
                line: error.line,
                prints,
            }),
            Ok(Some(WorkerMessage::Group { .. } | WorkerMessage::Ready { .. }) | None) => {
                let status =
                    tokio::time::timeout(Duration::from_secs(1), self.session.wait()).await;
                let status = status.ok().and_then(Result::ok);
                return Err(self.exit_error(
                    status,
                    never_started,
                    &captured.finish().text(),
                    limits,
                ));
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

    /// The error for a limit of the whole session, which includes the interpreter itself.
    fn exceeded_limit(&self, hit: LimitHit, limits: &Limits) -> ScriptError {
        if let LimitHit::Processes(_) = hit {
            let message = format!("it had more than {} processes", limits.processes);
            self.error(ScriptErrorKind::Runtime, message)
        } else {
            let used = size(limits.memory);
            let message = format!("it exceeded the memory limit of {used}");
            self.error(ScriptErrorKind::Memory, message)
        }
    }

    fn timeout_error(&self, limits: &Limits) -> ScriptError {
        let message = format!("it ran longer than the time limit of {:?}", limits.time);
        self.error(ScriptErrorKind::Time, message)
    }

    /// Waits until the interpreter has started; false if it exited instead.
    async fn ready(
        &mut self,
        limits: &Limits,
        captured: &mut Capture,
    ) -> Result<bool, ScriptError> {
        let exchange = self.exchange((Vec::new(), String::new()), limits, captured);
        if let Ok(answer) = tokio::time::timeout(START, exchange).await {
            return Ok(matches!(answer?, Some(WorkerMessage::Ready { .. })));
        }
        let message = format!("the interpreter did not start within {START:?}");
        Err(self.error(ScriptErrorKind::MissingInterpreter, message))
    }

    /// Sends the request and reads the response; `None` if the worker exited.
    async fn ask(
        &mut self,
        request: &ScriptRequest,
        limits: &Limits,
        captured: &mut Capture,
    ) -> Result<Option<WorkerMessage>, ScriptError> {
        let asked = match self.key.language {
            Language::Lua | Language::Python => {
                let ask = Request {
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
        self.exchange(asked, limits, captured).await
    }

    /// Sends bytes and reads the next response, a line that starts with `mark`.
    async fn exchange(
        &mut self,
        (asked, mark): (Vec<u8>, String),
        limits: &Limits,
        captured: &mut Capture,
    ) -> Result<Option<WorkerMessage>, ScriptError> {
        let language = self.key.language;
        let fail = |kind, message: String| ScriptError::new(language, kind, message);
        // One byte may take six in JSON (`\u0001`), in the value and in the printed text.
        let most = limits.output.saturating_mul(12).saturating_add(64 * 1024);
        let Self {
            session,
            stdin,
            stdout,
            stderr,
            ..
        } = self;
        // If the worker exits while it reads, the response is missing.
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
                    let message = format!("the worker wrote more than {most} bytes");
                    return Err(fail(ScriptErrorKind::Output, message));
                }
                let Some(json) = line.strip_prefix(mark.as_bytes()) else {
                    continue;
                };
                // All output of scripts passes through here.
                let json = secrets::redact(json.to_owned());
                match serde_json::from_slice(&json) {
                    Ok(WorkerMessage::Group { pid }) => session.register_group(pid),
                    Ok(answer) => return Ok(Some(answer)),
                    Err(_) if !line.ends_with(b"\n") => return Ok(None),
                    Err(e) => {
                        let message = format!("invalid response of the worker: {e}");
                        return Err(fail(ScriptErrorKind::Protocol, message));
                    }
                }
            }
        };
        let listen = async {
            let mut buffer = [0; 4096];
            while let Some(pipe) = stderr {
                match pipe.read(&mut buffer).await {
                    Ok(count @ 1..) => captured.push(&buffer[..count]),
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
            self.session.register_group(0);
        }
        result
    }

    /// The error for a worker that exited without a response.
    fn exit_error(
        &mut self,
        status: Option<ExitStatus>,
        never_started: bool,
        stderr: &str,
        limits: &Limits,
    ) -> ScriptError {
        self.session.kill();
        let stderr = stderr.trim();
        #[cfg(unix)]
        {
            use rustix::process::Signal;
            use std::os::unix::process::ExitStatusExt;
            let signal = status.and_then(|s| s.signal());
            if signal == Some(Signal::XCPU.as_raw()) {
                return self.timeout_error(limits);
            }
            // Rust prints this before it aborts because of lack of memory.
            if signal == Some(Signal::ABORT.as_raw()) && stderr.contains("memory allocation") {
                let message = "it exceeded the memory limit";
                return self.error(ScriptErrorKind::Memory, message);
            }
        }
        // Python prints this if the request itself is too large.
        if stderr.ends_with("MemoryError") {
            let message = "its input exceeds the memory limit";
            return self.error(ScriptErrorKind::Memory, message);
        }
        let _ = limits;
        let how = status.map_or_else(|| "without an exit status".to_owned(), |s| s.to_string());
        let told = if stderr.is_empty() {
            String::new()
        } else {
            format!(": {stderr}")
        };
        if never_started && status.is_some_and(|s| s.code().is_some_and(|code| code != 0)) {
            let hint = hint(self.key.language);
            let message = format!(
                "the {} interpreter failed to start ({how}){told}; {hint}",
                self.key.language
            );
            return self.error(ScriptErrorKind::MissingInterpreter, message);
        }
        self.error(
            ScriptErrorKind::Runtime,
            format!("the interpreter exited ({how}){told}"),
        )
    }
}
