use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::Command;

use super::capture::{Capture, Captured};
use super::limits::{LimitHit, Limits};
use super::lookup::find_program;
use super::process::Session;

/// How long to read the output of a program after it has exited. Background processes keep its pipes open and are
/// then killed.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// A private directory (mode 0700). It is removed with its contents on drop, and (on Linux) when this process is
/// killed.
#[derive(Debug)]
pub struct Scratch {
    dir: tempfile::TempDir,
    #[cfg(target_os = "linux")]
    _note: super::watchdog::CleanupNote,
}

impl Scratch {
    /// Creates one in the system's directory for temporary files.
    pub fn new() -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("reflect-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let dir = builder.tempdir()?;
        Ok(Self {
            #[cfg(target_os = "linux")]
            _note: super::watchdog::CleanupNote::folder(dir.path()),
            dir,
        })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file into the directory, for example the draft with the extension that a compiler expects. Only the
    /// last component of `name` is used, so nothing is written outside.
    pub fn write(&self, name: &str, contents: &[u8]) -> io::Result<PathBuf> {
        let name = Path::new(name).file_name().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the file name is missing")
        })?;
        let path = self.path().join(name);
        fs_err::write(&path, contents)?;
        Ok(path)
    }
}

/// A program to run.
#[derive(Debug)]
pub struct CommandSpec {
    /// The program and its arguments; no shell is involved.
    pub argv: Vec<OsString>,
    /// The data for standard input.
    pub stdin: Vec<u8>,
    /// The working directory. Default: `scratch`.
    pub cwd: Option<PathBuf>,
    /// The whole environment except for the variables for temporary files, which point to `scratch`. See
    /// [`minimal_env`](super::minimal_env).
    pub env: Vec<(OsString, OsString)>,
    /// The limits.
    pub limits: Limits,
    /// The directory for temporary files.
    pub scratch: Scratch,
}

impl CommandSpec {
    /// A program with the environment of [`minimal_env`](super::minimal_env), [`Limits::COMMAND`] and a new private
    /// directory.
    pub fn new(argv: impl IntoIterator<Item = impl Into<OsString>>) -> io::Result<Self> {
        Ok(Self {
            argv: argv.into_iter().map(Into::into).collect(),
            stdin: Vec::new(),
            cwd: None,
            env: super::minimal_env(&[]),
            limits: Limits::COMMAND,
            scratch: Scratch::new()?,
        })
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    /// It exited with this code.
    Exited(i32),
    /// A signal that we did not send killed it.
    Signal(i32),
    /// It hit a limit and was killed.
    Limit(LimitHit),
}

impl fmt::Display for CommandEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(number) => {
                write!(f, "was killed by signal {number}{}", signal_name(*number))
            }
            Self::Limit(hit) => write!(f, "hit {hit} and was killed"),
        }
    }
}

fn signal_name(number: i32) -> &'static str {
    match number {
        4 => " (illegal instruction)",
        6 => " (abort)",
        8 => " (arithmetic error)",
        9 => " (killed, perhaps because the system ran out of memory)",
        11 => " (segmentation fault)",
        13 => " (broken pipe)",
        15 => " (terminated)",
        _ => "",
    }
}

/// The result of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// How it ended.
    pub end: CommandEnd,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// The wall-clock time.
    pub duration: Duration,
}

impl CommandOutput {
    /// Whether it exited with code 0.
    pub fn success(&self) -> bool {
        self.end == CommandEnd::Exited(0)
    }

    /// Whether it hit the time limit.
    pub fn timed_out(&self) -> bool {
        matches!(self.end, CommandEnd::Limit(LimitHit::Time(_)))
    }
}

/// Why a program could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The command is empty.
    #[error("the command is empty; pass the program and its arguments as a list")]
    Empty,
    /// The program was not found.
    #[error("program `{program}` not found ({looked}); install it, or use its full path")]
    NotFound {
        /// The program, as given.
        program: String,
        /// The searched places.
        looked: String,
    },
    /// The file exists but cannot be executed.
    #[error("cannot run `{path}`: {reason}")]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The working directory is unusable.
    #[error("cannot use the working directory `{path}`: {reason}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The operating system's message.
        reason: String,
    },
    /// The system could not start it.
    #[error("cannot start `{program}`: {reason}")]
    Start {
        /// The program, as given.
        program: String,
        /// The operating system's message.
        reason: String,
    },
}

/// Runs a program until it exits or hits a limit. Kills everything that it started, even if the returned future is
/// dropped.
pub async fn run_command(spec: &CommandSpec) -> Result<CommandOutput, CommandError> {
    let limits = &spec.limits;
    let started = Instant::now();
    let mut session = start(spec)?;
    let (stdin, out, err) = {
        let child = session.child();
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    };
    let mut stdout = Capture::new(limits.output);
    let mut stderr = Capture::new(limits.output);
    let end = {
        let pumps = async {
            tokio::try_join!(
                feed(stdin, &spec.stdin),
                pump(out, &mut stdout, limits.output),
                pump(err, &mut stderr, limits.output),
            )
        };
        tokio::pin!(pumps);
        let mut pumped = false;
        let monitor = session.monitor();
        let to_its_end = async {
            loop {
                tokio::select! {
                    done = &mut pumps, if !pumped => match done {
                        Ok(_) => pumped = true,
                        Err(hit) => break CommandEnd::Limit(hit),
                    },
                    status = session.wait() => break ended(&status, limits),
                }
            }
        };
        let end = tokio::time::timeout(limits.time, to_its_end)
            .await
            .unwrap_or(CommandEnd::Limit(LimitHit::Time(limits.time)));
        drop(monitor);
        let end = session.hit().map_or(end, CommandEnd::Limit);
        if !pumped && matches!(end, CommandEnd::Exited(_) | CommandEnd::Signal(_)) {
            pumped = tokio::time::timeout(LAST_OUTPUT, &mut pumps).await.is_ok();
        }
        session.kill();
        if !pumped && !matches!(end, CommandEnd::Limit(LimitHit::Output(_))) {
            // All writers are gone, so this ends by itself; the timeout is a safeguard.
            let _ = tokio::time::timeout(LAST_OUTPUT, &mut pumps).await;
        }
        end
    };
    // Reap the process, which is dead or dying.
    let _ = tokio::time::timeout(Duration::from_secs(1), session.wait()).await;
    Ok(CommandOutput {
        end,
        stdout: stdout.finish(),
        stderr: stderr.finish(),
        duration: started.elapsed(),
    })
}

fn start(spec: &CommandSpec) -> Result<Session, CommandError> {
    let (program, args) = spec.argv.split_first().ok_or(CommandError::Empty)?;
    let cwd = spec.cwd.as_deref().unwrap_or(spec.scratch.path());
    let reason = match std::fs::metadata(cwd) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some("it is not a directory".to_owned()),
        Err(e) => Some(e.kind().to_string()),
    };
    if let Some(reason) = reason {
        return Err(CommandError::Directory {
            path: cwd.to_owned(),
            reason,
        });
    }
    let path = find_program(program, &spec.env, cwd)?;
    let mut command = Command::new(&path);
    command
        .args(args)
        .current_dir(cwd)
        .env_clear()
        .envs(spec.env.iter().map(|(k, v)| (k, v)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for name in ["TMPDIR", "TMP", "TEMP"] {
        command.env(name, spec.scratch.path());
    }
    Session::start(command, &spec.limits, cpu_seconds(spec.limits.time)).map_err(|e| {
        CommandError::Start {
            program: program.to_string_lossy().into_owned(),
            reason: e.to_string(),
        }
    })
}

/// All cores may be busy for the whole time; one second is for the program's start.
pub(super) fn cpu_seconds(time: Duration) -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    time.as_secs().saturating_add(2).saturating_mul(cores)
}

fn ended(status: &io::Result<ExitStatus>, limits: &Limits) -> CommandEnd {
    let Ok(status) = status else {
        return CommandEnd::Exited(-1);
    };
    #[cfg(unix)]
    {
        use rustix::process::Signal;
        use std::os::unix::process::ExitStatusExt;
        if let Some(signal) = status.signal() {
            return if signal == Signal::XFSZ.as_raw() {
                CommandEnd::Limit(LimitHit::FileSize(limits.file_size))
            } else if signal == Signal::XCPU.as_raw() {
                CommandEnd::Limit(LimitHit::Time(limits.time))
            } else {
                CommandEnd::Signal(signal)
            };
        }
    }
    let _ = limits;
    CommandEnd::Exited(status.code().unwrap_or(-1))
}

/// Writes the input. A closed pipe is not an error, because a program may ignore its input.
async fn feed(pipe: Option<impl AsyncWrite + Unpin>, input: &[u8]) -> Result<(), LimitHit> {
    if let Some(mut pipe) = pipe {
        let _ = pipe.write_all(input).await;
        let _ = pipe.shutdown().await;
    }
    Ok(())
}

/// Reads until the end, or until the output limit is far exceeded.
async fn pump(
    pipe: Option<impl AsyncRead + Unpin>,
    into: &mut Capture,
    limit: usize,
) -> Result<(), LimitHit> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let most = u64::try_from(limit.saturating_mul(Limits::FLOOD)).unwrap_or(u64::MAX);
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        into.push(&buffer[..count]);
        if into.total() > most {
            return Err(LimitHit::Output(limit.saturating_mul(Limits::FLOOD)));
        }
    }
    Ok(())
}
