//! Runs the program in an isolated world: its own home and directory, an environment that contains only what
//! the test sets, no terminal, and no network except loopback.
//!
//! ```ignore
//! Test::new()
//!     .args(["draft", "Write a line.", "--provider", "scripted:script.toml"])
//!     .file("script.toml", SCRIPT)
//!     .code(3)
//!     .stdout("The draft.\n")
//!     .stderr_has("no revision beat the first draft")
//!     .run();
//! ```
//!
//! Every run is also checked for what must never happen: a panic, a run that does not end, a leaked key, an
//! error without a message, output on stdout next to a usage error.

#[cfg(unix)]
pub(crate) mod pty;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;

/// A unique key: wherever it appears, it was leaked.
pub(crate) const KEY: &str = "sk-reflect-test-7f3a9c5e1b2d4860";

/// The time limit of a run, far longer than any run needs.
const LIMIT: Duration = Duration::from_secs(30);

/// The directory of a test, with the files that the test wrote.
#[derive(Clone)]
struct World {
    root: Arc<TempDir>,
    env: BTreeMap<OsString, OsString>,
    own: Vec<PathBuf>,
}

impl World {
    fn new() -> Self {
        let root = tempfile::Builder::new()
            .prefix("reflect-cli-")
            .tempdir()
            .expect("a directory");
        for folder in ["home", "work"] {
            fs::create_dir(root.path().join(folder)).expect("a folder");
        }
        let home = root.path().join("home");
        let env = [
            ("HOME", home.clone().into_os_string()),
            ("USERPROFILE", home.clone().into_os_string()),
            ("APPDATA", home.join("appdata").into_os_string()),
            ("LOCALAPPDATA", home.join("appdata").into_os_string()),
            // An unused privileged port, so no server listens there.
            ("OLLAMA_HOST", "127.0.0.1:1".into()),
            ("COLUMNS", "100".into()),
            ("TZ", "UTC".into()),
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            // Without it, Windows cannot open a socket.
            (
                "SystemRoot",
                std::env::var_os("SystemRoot").unwrap_or_default(),
            ),
        ];
        Self {
            root: Arc::new(root),
            env: env
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| (name.into(), value))
                .collect(),
            own: Vec::new(),
        }
    }

    /// Replaces everything that differs between runs: directories, ports, ids, times.
    fn plain(&self, text: &str) -> String {
        let root = self.root.path();
        let mut text = text.to_owned();
        for path in [root.canonicalize().ok(), Some(root.to_owned())]
            .into_iter()
            .flatten()
        {
            text = text.replace(&path.display().to_string(), "[DIR]");
        }
        for (pattern, shown) in [
            (r"127\.0\.0\.1:\d{2,5}", "127.0.0.1:[PORT]"),
            (
                r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
                "[ID]",
            ),
            (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "[TIME]"),
            (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d UTC)?", "[TIME]"),
            (r"\b\d+\.\d s\b", "[SECONDS]"),
            (r#"("execution_time": )[0-9.e-]+"#, "$1[SECONDS]"),
            (r#"("duration_ms": ?)\d+"#, "$1[MS]"),
            (r"history (show|resume) [0-9a-f-]{8,}", "history $1 [ID]"),
            (r"resuming run [0-9a-f]{8}", "resuming run [ID]"),
        ] {
            let pattern = Regex::new(pattern).expect("a pattern");
            text = pattern.replace_all(&text, shown).into_owned();
        }
        text
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.path().join("work").join(name)
    }
}

enum Input {
    /// At its end from the start.
    Nothing,
    Text(Vec<u8>),
    /// A pipe that nobody writes to or closes.
    Silence,
}

enum Reader {
    /// Reads everything.
    There,
    /// Closes before anything is written.
    Gone,
    /// A file that accepts no data.
    Full,
}

/// A run to make and its expected result. The default exit code is 0.
#[must_use = "a test that is not run tests nothing"]
pub(crate) struct Test {
    world: World,
    program: PathBuf,
    args: Vec<OsString>,
    input: Input,
    reader: Reader,
    code: i32,
    stdout: Option<String>,
    stderr: Option<String>,
    stdout_has: Vec<String>,
    stderr_has: Vec<String>,
    stderr_lacks: Vec<String>,
    uid: Option<u32>,
    /// Whether errors are the output of the command, on stdout.
    reports: bool,
}

impl Test {
    pub(crate) fn new() -> Self {
        Self::within(World::new())
    }

    fn within(world: World) -> Self {
        Self {
            world,
            program: PathBuf::from(env!("CARGO_BIN_EXE_reflect")),
            args: Vec::new(),
            input: Input::Nothing,
            reader: Reader::There,
            code: 0,
            stdout: None,
            stderr: None,
            stdout_has: Vec::new(),
            stderr_has: Vec::new(),
            stderr_lacks: Vec::new(),
            uid: None,
            reports: false,
        }
    }

    /// Runs another program in this world, such as a shell that runs `reflect`.
    #[cfg(unix)]
    pub(crate) fn program(mut self, program: &str) -> Self {
        self.program = PathBuf::from(program);
        self
    }

    /// Starts the program with these arguments from a shell that first runs this code.
    #[cfg(unix)]
    pub(crate) fn through_shell(mut self, first: &str) -> Self {
        let program = std::mem::replace(&mut self.program, "sh".into());
        let script = format!("{first}; exec \"$0\" \"$@\"");
        let words = ["-c".into(), script.into(), program.into_os_string()];
        self.args.splice(0..0, words);
        self
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.world.env.insert(name.into(), value.as_ref().into());
        self
    }

    pub(crate) fn env_remove(mut self, name: &str) -> Self {
        self.world.env.remove(OsStr::new(name));
        self
    }

    /// Writes a file into the program's working directory; `../home/x` is in its home.
    pub(crate) fn file(mut self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.world.path(name);
        let folder = path.parent().expect("a folder");
        fs::create_dir_all(folder).expect("a folder");
        fs::write(&path, content).expect("a file");
        self.world
            .own
            .push(path.canonicalize().expect("a file that is there"));
        self
    }

    pub(crate) fn folder(self, name: &str) -> Self {
        fs::create_dir_all(self.world.path(name)).expect("a folder");
        self
    }

    /// Returns the path of a file or folder in the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.world.path(name)
    }

    pub(crate) fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Text(text.into());
        self
    }

    pub(crate) fn silent_stdin(mut self) -> Self {
        self.input = Input::Silence;
        self
    }

    /// Closes the reading end of stdout.
    pub(crate) fn closed_stdout(mut self) -> Self {
        self.reader = Reader::Gone;
        self
    }

    /// Makes stdout a full disk.
    #[cfg(target_os = "linux")]
    pub(crate) fn full_stdout(mut self) -> Self {
        self.reader = Reader::Full;
        self
    }

    /// Runs as an unprivileged user, because root ignores permissions.
    #[cfg(unix)]
    pub(crate) fn ordinary_user(mut self) -> Self {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        const NOBODY: u32 = 65534;
        let root = self.world.root.path();
        if fs::metadata(root).expect("a directory").uid() != 0 {
            return self;
        }
        // The program may be in a folder that only root can read.
        let program = root.join("reflect");
        fs::copy(&self.program, &program).expect("a copy");
        self.world.own.push(program.clone());
        self.program = program;
        for folder in ["", "home", "work"] {
            let everybody = fs::Permissions::from_mode(0o777);
            fs::set_permissions(root.join(folder), everybody).expect("permissions");
        }
        self.uid = Some(NOBODY);
        self
    }

    /// Errors are the output of this command, on stdout.
    pub(crate) fn reports(mut self) -> Self {
        self.reports = true;
        self
    }

    pub(crate) fn code(mut self, code: i32) -> Self {
        self.code = code;
        self
    }

    /// Expects exactly this output.
    pub(crate) fn stdout(mut self, text: &str) -> Self {
        self.stdout = Some(text.to_owned());
        self
    }

    /// Expects exactly this output.
    pub(crate) fn stderr(mut self, text: &str) -> Self {
        self.stderr = Some(text.to_owned());
        self
    }

    pub(crate) fn stdout_has(mut self, text: &str) -> Self {
        self.stdout_has.push(text.to_owned());
        self
    }

    pub(crate) fn stderr_has(mut self, text: &str) -> Self {
        self.stderr_has.push(text.to_owned());
        self
    }

    pub(crate) fn stderr_lacks(mut self, text: &str) -> Self {
        self.stderr_lacks.push(text.to_owned());
        self
    }

    /// Runs the program to its end and checks it.
    #[track_caller]
    pub(crate) fn run(self) -> Ran {
        self.spawn().finish()
    }

    /// Starts the program.
    #[track_caller]
    pub(crate) fn spawn(mut self) -> Running {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(&self.world.env)
            .current_dir(self.world.path(""))
            .stdin(match self.input {
                Input::Nothing => Stdio::null(),
                Input::Text(_) | Input::Silence => Stdio::piped(),
            })
            .stdout(match self.reader {
                Reader::There | Reader::Gone => Stdio::piped(),
                Reader::Full => fs::OpenOptions::new()
                    .write(true)
                    .open("/dev/full")
                    .expect("/dev/full")
                    .into(),
            })
            .stderr(Stdio::piped());
        #[cfg(unix)]
        if let Some(uid) = self.uid {
            use std::os::unix::process::CommandExt as _;
            command.uid(uid).gid(uid);
        }
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take();
        let silence = match (std::mem::replace(&mut self.input, Input::Nothing), stdin) {
            (Input::Text(text), Some(mut stdin)) => {
                thread::spawn(move || {
                    // The program may exit before it has read all of it.
                    let _ = stdin.write_all(&text);
                });
                None
            }
            (_, stdin) => stdin,
        };
        let stdout = child.stdout.take();
        let stdout = match self.reader {
            Reader::There => stdout,
            Reader::Gone | Reader::Full => {
                drop(stdout);
                None
            }
        };
        let printed = Arc::default();
        Running {
            stdout: read_all(stdout, Arc::clone(&printed)),
            stderr: read_all(child.stderr.take(), Arc::default()),
            printed,
            started: Instant::now(),
            child,
            silence,
            test: self,
        }
    }
}

/// Reads a pipe to its end. What has come so far is in `seen`.
fn read_all(
    pipe: Option<impl Read + Send + 'static>,
    seen: Arc<Mutex<Vec<u8>>>,
) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        if let Some(mut pipe) = pipe {
            while let count @ 1.. = pipe.read(&mut buffer).expect("a pipe can be read") {
                let mut seen = seen.lock().expect("no panic while it is held");
                seen.extend_from_slice(&buffer[..count]);
            }
        }
        let seen = seen.lock().expect("no panic while it is held");
        seen.clone()
    })
}

/// A run in progress.
#[must_use = "a test that is not finished checks nothing"]
pub(crate) struct Running {
    test: Test,
    child: Child,
    started: Instant,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
    /// What is on standard output so far.
    printed: Arc<Mutex<Vec<u8>>>,
    silence: Option<std::process::ChildStdin>,
}

impl Running {
    /// Breaks the silence: writes to standard input. The program may be gone.
    pub(crate) fn write(&mut self, text: &str) {
        if let Some(stdin) = &mut self.silence {
            let _ = stdin.write_all(text.as_bytes());
        }
    }

    /// Closes standard input.
    pub(crate) fn end_input(&mut self) {
        self.silence = None;
    }

    /// What is on standard output so far.
    pub(crate) fn printed(&self) -> String {
        let printed = self.printed.lock().expect("no panic while it is held");
        String::from_utf8_lossy(&printed).into_owned()
    }

    /// Sends a signal, by its name without `SIG`.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        // Every shell has a built-in `kill`.
        let status = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.child.id())])
            .status()
            .expect("a shell");
        assert!(status.success(), "the program has already exited");
    }

    /// Like [`Self::signal`], but the program may have exited.
    #[cfg(unix)]
    pub(crate) fn try_signal(&self, name: &str) {
        let _ = Command::new("sh")
            .args([
                "-c",
                &format!("kill -{name} {} 2>/dev/null", self.child.id()),
            ])
            .status();
    }

    /// Kills the program after a time, and checks its output until then, but not its exit code.
    #[track_caller]
    pub(crate) fn kill_after(mut self, time: Duration) {
        thread::sleep(time);
        self.child.kill().expect("the program is still there");
        let _ = self.child.wait();
        let stderr = String::from_utf8(self.stderr.join().expect("standard error")).expect("UTF-8");
        for part in &self.test.stderr_has {
            assert!(stderr.contains(part), "stderr lacks {part:?}: {stderr}");
        }
    }

    /// Kills the program immediately. Checks nothing; the output until then is available.
    #[track_caller]
    pub(crate) fn kill(mut self) -> Ran {
        let _ = self.child.kill();
        let status = self.child.wait().expect("the program can be waited for");
        let text = |pipe: JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&pipe.join().expect("a pipe")).into_owned()
        };
        Ran {
            code: status.code(),
            stdout: text(self.stdout),
            stderr: text(self.stderr),
            took: self.started.elapsed(),
            world: self.test.world.clone(),
        }
    }

    fn wait(&mut self) -> ExitStatus {
        loop {
            if let Some(status) = self
                .child
                .try_wait()
                .expect("the program can be waited for")
            {
                return status;
            }
            if self.started.elapsed() > LIMIT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("{:?} does not end", self.test.args);
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for the end and checks it.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Ran {
        let status = self.wait();
        let took = self.started.elapsed();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("what is printed is UTF-8");
        let ran = Ran {
            code: status.code(),
            stdout: text(self.stdout.join().expect("standard output")),
            stderr: text(self.stderr.join().expect("standard error")),
            took,
            world: self.test.world.clone(),
        };
        ran.check(&self.test);
        ran
    }
}

/// A completed run.
pub(crate) struct Ran {
    code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
    world: World,
}

impl Ran {
    #[track_caller]
    fn check(&self, test: &Test) {
        let Self { stdout, stderr, .. } = self;
        let all = format!(
            "\n--- reflect {:?}\n--- exit code {:?}, after {:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}",
            test.args, self.code, self.took
        );
        assert_eq!(self.code, Some(test.code), "exit code{all}");
        if let Some(expected) = &test.stdout {
            assert_eq!(stdout, expected, "stdout{all}");
        }
        if let Some(expected) = &test.stderr {
            assert_eq!(stderr, expected, "stderr{all}");
        }
        for part in &test.stdout_has {
            assert!(stdout.contains(part), "stdout lacks {part:?}{all}");
        }
        for part in &test.stderr_has {
            assert!(stderr.contains(part), "stderr lacks {part:?}{all}");
        }
        for part in &test.stderr_lacks {
            assert!(!stderr.contains(part), "stderr has {part:?}{all}");
        }
        assert!(!stderr.contains("panicked at"), "it panicked{all}");
        let colours = test
            .args
            .iter()
            .any(|arg| arg == "--color=always" || arg == "always");
        assert!(
            colours || !stderr.contains('\u{1b}'),
            "colours without a terminal{all}"
        );
        if test.code != 0 && !test.reports {
            assert!(!stderr.is_empty(), "a failure without a message{all}");
        }
        if [1, 2].contains(&test.code) && !stdout.starts_with('{') && !test.reports {
            assert_eq!(stdout, "", "output next to an error{all}");
        }
        for text in [stdout, stderr] {
            assert!(!text.contains(KEY), "the key was printed{all}");
        }
        if let Some(file) = self.leak() {
            panic!("the key is in {}{all}", file.display());
        }
    }

    /// Returns a file with the key in it that the test did not write.
    fn leak(&self) -> Option<PathBuf> {
        let root = self.world.root.path().canonicalize().ok()?;
        let mut folders = vec![root];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            for path in entries.flatten().map(|entry| entry.path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if path.is_file()
                    && !self.world.own.contains(&path)
                    && fs::read(&path).is_ok_and(|bytes| contains(&bytes, KEY.as_bytes()))
                {
                    return Some(path);
                }
            }
        }
        None
    }

    /// Prepares another run in the same world.
    pub(crate) fn then<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Test {
        Test::within(self.world.clone()).args(args)
    }

    /// Returns the path of a file or folder in the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.world.path(name)
    }

    /// Reads a file in the working directory.
    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }

    /// Parses stdout as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("JSON on standard output")
    }

    /// Parses stdout as JSON Lines.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        assert!(self.stdout.ends_with('\n'), "{:?}", self.stdout);
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON on every line"))
            .collect()
    }

    /// Returns the last run from the run log.
    #[track_caller]
    pub(crate) fn history(&self) -> Value {
        self.then(["history", "show", "last", "--format", "json"])
            .run()
            .json()
    }

    /// Returns the drafts of the last run from the run log.
    #[track_caller]
    pub(crate) fn drafts(&self) -> Vec<String> {
        drafts_of(&self.history())
    }

    /// Returns stderr, with everything that differs between runs replaced.
    pub(crate) fn said(&self) -> String {
        self.plain(&self.stderr)
    }

    /// Replaces everything that differs between runs: directories, ports, ids, times.
    pub(crate) fn plain(&self, text: &str) -> String {
        self.world.plain(text)
    }
}

/// Returns the drafts of a result.
#[track_caller]
pub(crate) fn drafts_of(result: &Value) -> Vec<String> {
    let versions = result["history"]["versions"].as_array();
    versions
        .expect("versions")
        .iter()
        .map(|version| version["output"].as_str().expect("a text").to_owned())
        .collect()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Checks many cases concurrently, because most of the time is spent waiting. Names those that fail.
#[track_caller]
pub(crate) fn each<T: Sync>(
    cases: &[T],
    name: impl Fn(&T) -> String + Sync,
    check: impl Fn(&T) + Sync,
) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..12.min(cases.len()) {
            scope.spawn(|| {
                while let Some(case) =
                    cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let checked =
                        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(case)));
                    if let Err(panic) = checked {
                        let words = panic
                            .downcast_ref::<String>()
                            .cloned()
                            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
                            .unwrap_or_default();
                        failed
                            .lock()
                            .expect("the lock is not poisoned")
                            .push(format!("=== {}: {words}", name(case)));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("the lock is not poisoned");
    assert!(
        failed.is_empty(),
        "{} of {} cases fail\n{}",
        failed.len(),
        cases.len(),
        failed.join("\n")
    );
}
