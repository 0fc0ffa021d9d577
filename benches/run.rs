//! What a run costs besides the model: `cargo bench --bench run --no-default-features`.
//!
//! Against a server of ours on the loopback interface that answers at once:
//! - CPU time of a task (draft, evaluate, revise, evaluate), in the library, where an answer comes whole and where each
//!   of its 250 events is an HTTP chunk of its own; the latter with the run log, too;
//! - from the start of the process to its first request, and the process's peak memory;
//!
//! and against the same server at the pace of real ones: how much longer a run takes than its calls.
//!
//! `-- cpu`, `-- start` or `-- wall` measures only that.
//!
//! Figures are the least and the median of several rounds: the machine may be doing other things.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where something is wrong"
)]

#[path = "../tests/support/mod.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "made for the tests, which use all of it"
)]
mod support;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use reflect::engine::{Loop, Observer};
use reflect::model::openai::{OpenAiModel, OpenAiOptions};
use reflect::model::{BaseUrl, CallReport, ChatModel, Connection, Exchange};
use reflect::store::{Store, Transcript};
use reflect::types::{Event, ModelId, RunRecord, Stamped, Task};
use serde_json::{Value, json};
use support::server::{Chunks, Planned, Purpose, Reply, Server};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 7;
const TASKS: usize = 50;

fn main() {
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let wants = |part: &str| wanted.is_empty() || wanted.iter().any(|arg| arg == part);
    if wants("cpu") {
        cpu_per_task(Chunks::One, false);
        cpu_per_task(Chunks::Frames, false);
        cpu_per_task(Chunks::Frames, true);
    }
    if wants("start") {
        start_and_memory();
    }
    if wants("wall") {
        // Faster than any real server, so that what is ours weighs more; and as fast as the fastest.
        wall_time(50, 1);
        wall_time(200, 4);
    }
}

/// A verdict on the built-in set `writing`.
fn verdict(step: u8) -> Value {
    let scores: serde_json::Map<String, Value> = ["clarity", "coherence", "completeness", "tone"]
        .into_iter()
        .map(|name| {
            (
                name.to_owned(),
                json!({ "reason": "as it is", "score": step }),
            )
        })
        .collect();
    let issue = json!({
        "type": "missing", "severity": "minor", "criterion": "clarity",
        "description": "The second sentence is vague.", "suggested_fix": "Name the thing.",
    });
    json!({ "scores": scores, "issues": [issue], "confidence": 0.8 })
}

/// About 200 words, as a small draft has. It does not say the same twice, or it would be taken for a model that
/// goes in circles; and each one begins in its own way, or its verdict would be known already.
fn draft(number: usize) -> String {
    const COLOURS: [&str; 14] = [
        "brown", "red", "grey", "black", "white", "blue", "green", "yellow", "pale", "dark",
        "bright", "golden", "silver", "violet",
    ];
    let sentence = |(number, colour): (usize, &&str)| {
        let other = COLOURS[(number * 5 + 3) % COLOURS.len()];
        format!(
            "The {colour} fox jumps {number} times over some {other} dog, and {colour} hares do so again. "
        )
    };
    let sentences: String = COLOURS.iter().enumerate().map(sentence).collect();
    format!("Number {number}. {sentences}")
}

/// Answers every task with a draft, a bad verdict, a revision, a good verdict.
fn serve(chunks: Chunks, first_wait: Duration, wait: Duration) -> Server {
    let server = Server::start();
    let reply = move |text: &str| {
        let pieces: Vec<&str> = text.split_inclusive(' ').collect();
        Planned::from(
            Reply::pieces(&pieces)
                .chunks(chunks)
                .first_wait(first_wait)
                .wait(wait)
                .usage(800, 200, Some(600)),
        )
    };
    let written = std::sync::atomic::AtomicUsize::new(0);
    server.on(Purpose::Write, move |_| {
        reply(&draft(
            written.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
        ))
    });
    let judged = std::sync::atomic::AtomicUsize::new(0);
    server.on(Purpose::Judge, move |_| {
        let count = judged.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        reply(&verdict(if count.is_multiple_of(2) { 3 } else { 5 }).to_string())
    });
    server
}

fn plan(server: &Server) -> Loop {
    let id = ModelId {
        provider: "openai".to_owned(),
        model: "fake".to_owned(),
    };
    let base_url = BaseUrl::openai(&server.openai_url()).unwrap();
    let model: Arc<dyn ChatModel> =
        Arc::new(OpenAiModel::new(OpenAiOptions::new(id, Connection::new(base_url))).unwrap());
    let criteria = reflect::criteria::builtin("writing").unwrap();
    Loop::builder(model, Arc::new(criteria)).build().unwrap()
}

fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .unwrap()
        .into()
}

fn cpu_per_task(chunks: Chunks, with_log: bool) {
    let server = serve(chunks, Duration::ZERO, Duration::ZERO);
    let plan = plan(&server);
    let folder = tempfile::tempdir().unwrap();
    let mut store = with_log.then(|| Store::open(&folder.path().join("log.db")).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut figures = Vec::new();
    for _ in 0..ROUNDS {
        let begun = thread_cpu();
        for _ in 0..TASKS {
            let mut log = Log {
                store: store.as_mut(),
                run: None,
                seq: 0,
                transcript: Transcript::default(),
            };
            let record: RunRecord = runtime.block_on(plan.run(
                &Task::new("Write about foxes."),
                &mut log,
                &CancellationToken::new(),
            ));
            assert_eq!(record.total_llm_calls, 4);
        }
        figures.push(thread_cpu().saturating_sub(begun) / u32::try_from(TASKS).unwrap());
    }
    let answers = match chunks {
        Chunks::One => ", answers whole",
        _ => ", a chunk each event",
    };
    let log = if with_log { ", run log" } else { "" };
    report(&format!("CPU time of a task{answers}{log}"), figures);
}

struct Log<'a> {
    store: Option<&'a mut Store>,
    run: Option<uuid::Uuid>,
    seq: u64,
    transcript: Transcript,
}

impl Observer for Log<'_> {
    fn on_call(&mut self, event: &Stamped, call: &CallReport<'_>) {
        let Some(store) = &mut self.store else {
            return;
        };
        let call = Exchange::of(call, call.request.messages.clone()).unwrap();
        let run = self.run.unwrap();
        store
            .append_call(run, self.seq, event, call, &mut self.transcript)
            .unwrap();
        self.seq += 1;
    }

    fn on_event(&mut self, event: &Stamped) {
        if let Event::RunStart { run_id, .. } = event.event {
            self.run = Some(run_id);
        }
        if let Some(store) = &mut self.store {
            store.append(self.run.unwrap(), self.seq, event).unwrap();
            self.seq += 1;
        }
    }
}

fn command(server: &Server, home: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reflect"));
    command
        .args([
            "draft",
            "Write about foxes.",
            "-c",
            "writing",
            "-m",
            "fake",
            "--base-url",
        ])
        .arg(server.openai_url())
        .env_clear()
        .env("HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn start_and_memory() {
    let home = tempfile::tempdir().unwrap();
    let mut figures = Vec::new();
    let mut peak = 0.0_f64;
    for _ in 0..ROUNDS {
        let server = Arc::new(serve(Chunks::Frames, Duration::ZERO, Duration::ZERO));
        let begun = Instant::now();
        let mut child = command(&server, home.path()).spawn().unwrap();
        while server.calls() == 0 {
            std::thread::sleep(Duration::from_micros(50));
        }
        figures.push(begun.elapsed());
        while child.try_wait().unwrap().is_none() {
            peak = peak.max(peak_memory(child.id()).unwrap_or(0.0));
            std::thread::sleep(Duration::from_micros(200));
        }
        assert!(child.wait().unwrap().success());
    }
    report(
        "from the start of the process to its first request",
        figures,
    );
    println!("{:58} {:8.1} MB", "peak memory of a run", peak);
}

/// The most memory that a running process has had, in MB; `None` where the system does not tell.
fn peak_memory(pid: u32) -> Option<f64> {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}

/// So many milliseconds to the first piece, and between two pieces.
fn wall_time(first: u64, between: u64) {
    let (first_wait, wait) = (Duration::from_millis(first), Duration::from_millis(between));
    let home = tempfile::tempdir().unwrap();
    let mut shares = Vec::new();
    for _ in 0..ROUNDS {
        let server = serve(Chunks::Frames, first_wait, wait);
        let begun = Instant::now();
        assert!(command(&server, home.path()).status().unwrap().success());
        let whole = begun.elapsed();
        shares.push(whole.as_secs_f64() / server.busy().as_secs_f64());
    }
    shares.sort_by(f64::total_cmp);
    println!(
        "{:58} {:8.3}  (median {:.3})",
        format!("wall time of a run / time of the server, {first} + {between} ms"),
        shares[0],
        shares[ROUNDS / 2]
    );
}

fn report(what: &str, mut figures: Vec<Duration>) {
    figures.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "{what:58} {:8.3} ms (median {:.3} ms)",
        ms(figures[0]),
        ms(figures[figures.len() / 2])
    );
}
