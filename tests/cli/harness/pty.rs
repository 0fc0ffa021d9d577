//! Runs the program at a pseudo terminal: what is on the screen, and which keys are pressed.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use rustix::termios::{LocalModes, tcgetattr};

use super::{Input, LIMIT, Ran, Test};

/// Ctrl-C, as a keyboard sends it.
pub(crate) const CTRL_C: &str = "\u{3}";

/// The output of the program to its terminal.
struct Output {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

/// A run at a terminal.
#[must_use = "a test that is not finished checks nothing"]
pub(crate) struct AtTerminal {
    test: Test,
    child: Child,
    pty: Arc<Pty>,
    output: Arc<Mutex<Output>>,
    reader: JoinHandle<()>,
    /// The output to stdout, if that is a pipe.
    stdout: Option<JoinHandle<String>>,
    started: Instant,
}

impl Test {
    /// Starts the program at a terminal of this size. Stdin is the terminal unless the test sets another.
    #[track_caller]
    pub(crate) fn at_terminal(self, rows: u16, columns: u16) -> AtTerminal {
        self.start(rows, columns, false)
    }

    /// Like [`Self::at_terminal`], with stdout as a pipe.
    #[track_caller]
    pub(crate) fn at_terminal_piped(self, rows: u16, columns: u16) -> AtTerminal {
        self.start(rows, columns, true)
    }

    fn start(mut self, rows: u16, columns: u16, piped: bool) -> AtTerminal {
        let (pty, pts) = open().expect("a terminal");
        pty.resize(Size::new(rows, columns)).expect("a size");
        let mut command = Command::new(&self.program)
            .args(&self.args)
            .env_clear()
            .envs(&self.world.env)
            .env_remove("COLUMNS")
            .current_dir(self.world.path(""));
        if !self.world.env.contains_key(OsStr::new("TERM")) {
            command = command.env("TERM", "xterm-256color");
        }
        if piped {
            command = command.stdout(Stdio::piped());
        }
        let input = std::mem::replace(&mut self.input, Input::Nothing);
        if !matches!(input, Input::Nothing) {
            command = command.stdin(Stdio::piped());
        }
        let mut child = command.spawn(pts).expect("the program starts");
        if let (Input::Text(text), Some(mut stdin)) = (input, child.stdin.take()) {
            thread::spawn(move || stdin.write_all(&text));
        }
        let stdout = child.stdout.take().map(|mut pipe| {
            thread::spawn(move || {
                let mut text = String::new();
                pipe.read_to_string(&mut text).expect("UTF-8");
                text
            })
        });
        let pty = Arc::new(pty);
        let output = Arc::new(Mutex::new(Output {
            screen: vt100::Parser::new(size(rows), size(columns), 1000),
            bytes: Vec::new(),
        }));
        let reader = {
            let (pty, output) = (Arc::clone(&pty), Arc::clone(&output));
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                // An error means that the terminal was closed.
                while let Ok(count @ 1..) = (&*pty).read(&mut buffer) {
                    let mut output = output.lock().expect("the lock is not poisoned");
                    output.screen.process(&buffer[..count]);
                    output.bytes.extend_from_slice(&buffer[..count]);
                }
            })
        };
        AtTerminal {
            test: self,
            child,
            pty,
            output,
            reader,
            stdout,
            started: Instant::now(),
        }
    }
}

fn size(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a size above 0")
}

impl AtTerminal {
    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().expect("the lock is not poisoned")
    }

    /// Returns the screen, without trailing spaces.
    pub(crate) fn screen(&self) -> String {
        let contents = self.output().screen.screen().contents();
        let rows: Vec<&str> = contents.lines().map(str::trim_end).collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// Whether these bytes were written so far.
    pub(crate) fn has_written(&self, bytes: &str) -> bool {
        super::contains(&self.output().bytes, bytes.as_bytes())
    }

    /// Whether anything was written in bold so far.
    pub(crate) fn is_bold_anywhere(&self) -> bool {
        super::contains(&self.output().bytes, b"\x1b[1m")
    }

    /// Returns the screen, with everything that differs between runs replaced.
    pub(crate) fn plain_screen(&self) -> String {
        self.test.world.plain(&self.screen())
    }

    /// Waits until this text is on the screen.
    #[track_caller]
    pub(crate) fn until(&self, text: &str) -> &Self {
        self.until_screen(text, |screen| screen.contains(text))
    }

    /// Waits until the screen meets a condition.
    #[track_caller]
    pub(crate) fn until_screen(&self, what: &str, wanted: impl Fn(&str) -> bool) -> &Self {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return self;
            }
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "{what:?} did not appear\n--- screen\n{screen}"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a menu with this in its title, and until the program waits for a key.
    #[track_caller]
    pub(crate) fn until_menu(&self, title: &str) -> &Self {
        self.until_screen(title, |screen| {
            let rows: Vec<&str> = screen.lines().collect();
            let menu = rows.iter().rposition(|row| row.contains("[a]ccept"));
            // The most severe issues are between the title and the keys.
            let title_row = menu.and_then(|row| {
                let mut above = rows[..row].iter();
                above.rfind(|row| !row.trim_start().starts_with("- "))
            });
            title_row.is_some_and(|row| row.contains(title)) && screen.trim_end().ends_with("[?]")
        })
    }

    /// Presses keys.
    pub(crate) fn press(&self, keys: &str) -> &Self {
        (&*self.pty).write_all(keys.as_bytes()).expect("a terminal");
        self
    }

    /// Resizes the terminal.
    pub(crate) fn resize(&self, rows: u16, columns: u16) -> &Self {
        let mut output = self.output();
        self.pty.resize(Size::new(rows, columns)).expect("a size");
        output
            .screen
            .screen_mut()
            .set_size(size(rows), size(columns));
        drop(output);
        self
    }

    /// Sends a signal only to the program, by its name without `SIG`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let status = std::process::Command::new("sh")
            .args(["-c", &kill])
            .status();
        assert!(status.expect("a shell").success(), "the program has exited");
    }

    fn wait(&mut self) -> ExitStatus {
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            if self.started.elapsed() > LIMIT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("it does not end\n--- screen\n{}", self.screen());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for the end and checks it. The terminal's output without control sequences counts as stderr. The
    /// terminal mode and the cursor must be restored.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Ran {
        let status = self.wait();
        let took = self.started.elapsed();
        let modes = tcgetattr(&*self.pty).expect("a terminal").local_modes;
        self.reader.join().expect("the terminal can be read");
        let output = self.output.lock().expect("the lock is not poisoned");
        let said = String::from_utf8_lossy(&output.bytes).into_owned();
        drop(output);
        let cursor = said.rfind("\u{1b}[?25h") >= said.rfind("\u{1b}[?25l");
        assert!(cursor, "the cursor is hidden: {said:?}");
        let usual = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        assert!(modes.contains(usual), "the terminal is left in {modes:?}");
        let stdout = self.stdout.take().map(|pipe| pipe.join().expect("a pipe"));
        let ran = Ran {
            code: status.code(),
            stdout: stdout.unwrap_or_default(),
            stderr: console::strip_ansi_codes(&said).replace('\r', ""),
            took,
            world: self.test.world.clone(),
        };
        ran.check(&self.test);
        ran
    }
}
