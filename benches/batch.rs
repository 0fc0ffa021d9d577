//! What a batch takes besides its models: `cargo bench --bench batch --no-default-features`.
//!
//! The program itself, against a server of ours on the loopback interface:
//! - `memory`: peak memory at 1,000, 10,000 and 100,000 tasks of a scripted model;
//! - `zero`: throughput and CPU time of a task (draft, evaluate) where every answer comes at once;
//! - `wait`: the same with 200 ms before each answer, with concurrency 64, and as `auto` finds it.
//!
//! `-- memory`, `-- zero` or `-- wait` measures only that.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where something is wrong"
)]

#[path = "../tests/support/mod.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "made for the tests, which use all of it"
)]
mod support;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde_json::json;
use support::server::{Purpose, Reply, Server};

fn main() {
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let wants = |part: &str| wanted.is_empty() || wanted.iter().any(|arg| arg == part);
    // First: it is the peak of all programs that have been run so far.
    if wants("memory") {
        for tasks in [1000, 10_000, 100_000] {
            memory(tasks);
        }
    }
    if wants("zero") {
        for log in [true, false] {
            throughput("no wait", Duration::ZERO, 2000, "16", log);
        }
    }
    if wants("wait") {
        let wait = Duration::from_millis(200);
        throughput("200 ms", wait, 2000, "64", true);
        throughput("200 ms", wait, 2000, "auto", true);
    }
}

fn write_tasks(folder: &Path, number: usize) {
    let mut text = String::new();
    for n in 0..number {
        let task = json!({"id": format!("task-{n}"), "prompt": format!("Write about item {n}.")});
        writeln!(text, "{task}").unwrap();
    }
    std::fs::write(folder.join("tasks.jsonl"), text).unwrap();
}

fn reflect(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reflect"));
    command
        .args(["batch", "tasks.jsonl", "-o", "out.jsonl", "-q"])
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("PATH", std::env::var_os("PATH").unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

fn cpu_of_children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(micros).unwrap())
}

fn throughput(name: &str, wait: Duration, tasks: u32, concurrency: &str, log: bool) {
    let server = Server::start();
    let scores: serde_json::Map<String, serde_json::Value> =
        ["clarity", "coherence", "completeness", "tone"]
            .into_iter()
            .map(|name| (name.to_owned(), json!({"reason": "as it is", "score": 5})))
            .collect();
    let verdict = json!({"scores": scores, "issues": [], "confidence": 0.8}).to_string();
    server.on(Purpose::Write, move |request| {
        let number = request.prompt().len();
        Reply::text(&format!("A text of its own, number {number}.")).first_wait(wait)
    });
    server.on(Purpose::Judge, move |_| {
        Reply::text(&verdict).first_wait(wait)
    });
    let folder = tempfile::tempdir().unwrap();
    write_tasks(folder.path(), tasks as usize);
    let mut command = reflect(folder.path());
    command
        .args(["-c", "writing", "-m", "openai:test", "-j", concurrency])
        .args(["--base-url", &server.openai_url()]);
    if !log {
        command.arg("--no-log");
    }
    let (cpu, begun) = (cpu_of_children(), Instant::now());
    let status = command.status().unwrap();
    let took = begun.elapsed();
    let cpu = cpu_of_children().saturating_sub(cpu);
    assert!(status.success());
    println!(
        "{name}, concurrency {concurrency}, {} log: {:.0} tasks a second, {:.2} ms of CPU a task",
        if log { "with" } else { "without" },
        f64::from(tasks) / took.as_secs_f64(),
        cpu.as_secs_f64() * 1e3 / f64::from(tasks),
    );
}

/// Peak memory of the child alone: that of all children so far, which grows from one to the next.
fn memory(tasks: usize) {
    let folder = tempfile::tempdir().unwrap();
    write_tasks(folder.path(), tasks);
    let script = "[[reply]]\ntimes = 0\ntext = 'A line about something, as short as it may be.'\n";
    std::fs::write(folder.path().join("script.toml"), script).unwrap();
    let criteria =
        "name = 'c'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nunit = 'words'\nmax = 50";
    std::fs::write(folder.path().join("criteria.toml"), criteria).unwrap();
    let begun = Instant::now();
    let status = reflect(folder.path())
        .args(["-c", "criteria.toml", "--provider", "scripted:script.toml"])
        .args(["--no-log"])
        .status()
        .unwrap();
    assert!(status.success());
    let rows = std::fs::read_to_string(folder.path().join("out.jsonl")).unwrap();
    assert_eq!(rows.lines().count(), tasks);
    println!(
        "{tasks} tasks: peak of {} MB, {:.1} s",
        getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() / 1024,
        begun.elapsed().as_secs_f64(),
    );
}
