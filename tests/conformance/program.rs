//! Runs the program in its own directory, with a time limit.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The time limit of a run.
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) struct Program {
    folder: TempDir,
}

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Program {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::Builder::new()
                .prefix("reflect-rows-")
                .tempdir()
                .expect("a folder"),
        }
    }

    pub(crate) fn file(&self, name: &str, content: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    pub(crate) fn run(&self, args: &[&str], input: &str) -> Ran {
        let home = self.folder.path().join("home");
        let mut child = Command::new(env!("CARGO_BIN_EXE_reflect"))
            .args(args)
            .env_clear()
            .env("HOME", &home)
            .env("APPDATA", &home)
            .env("LOCALAPPDATA", &home)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env(
                "SystemRoot",
                std::env::var_os("SystemRoot").unwrap_or_default(),
            )
            .env("OLLAMA_HOST", "127.0.0.1:1")
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_owned();
        // The program may exit before it has read all of it.
        let writer = thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let mut stdout = child.stdout.take().expect("a pipe");
        let mut stderr = child.stderr.take().expect("a pipe");
        let read = |pipe: &mut dyn Read| {
            let mut text = String::new();
            pipe.read_to_string(&mut text).expect("UTF-8");
            text
        };
        let stdout = thread::spawn(move || read(&mut stdout));
        let stderr = thread::spawn(move || read(&mut stderr));
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if started.elapsed() > LIMIT {
                let _ = child.kill();
                let _ = child.wait();
                panic!("{args:?} did not exit");
            }
            thread::sleep(Duration::from_millis(2));
        };
        writer.join().expect("a writer");
        Ran {
            code: status.code(),
            stdout: stdout.join().expect("standard output"),
            stderr: stderr.join().expect("standard error"),
        }
    }
}
