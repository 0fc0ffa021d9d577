//! Batches on a real Restate server with real workers, some of which fail: every task is done once, and no
//! answered call is repeated.
//!
//! The server is `restate-server` of the npm package `@restatedev/restate-server`: the program named by
//! `RESTATE_SERVER`, or the one on the path. The workers are behind `haproxy`, with the configuration shipped
//! in `docs/deploy`. If one of them is missing, the tests print a message and pass, unless
//! `REFLECT_TEST_REQUIRE_ALL=1` is set.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers, and messages about skipped tests"
)]

#[expect(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test program uses a different part of it"
)]
#[path = "../support/mod.rs"]
mod support;

mod failures;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use world::{ANSWER, KEPT, LIMIT, NOTICED, OVERLOADED, Process, TOKENS, World, program, wait_for};

/// Checks that repeated calls were in progress when a worker was killed, and were repeated once.
#[track_caller]
fn only_calls_in_progress_are_repeated(asked: &[(String, Instant)], killed: Instant) -> usize {
    let mut times: BTreeMap<&str, Vec<Instant>> = BTreeMap::new();
    for (prompt, time) in asked {
        times.entry(prompt).or_default().push(*time);
    }
    let repeated: Vec<_> = times.iter().filter(|(_, times)| times.len() > 1).collect();
    // Seconds after the worker was killed.
    let after = |time: Instant| match time.checked_duration_since(killed) {
        Some(after) => after.as_secs_f64(),
        None => -killed.duration_since(time).as_secs_f64(),
    };
    let begun: Vec<Vec<f64>> = repeated
        .iter()
        .map(|(_, times)| times.iter().map(|time| after(*time)).collect())
        .collect();
    let under_way = -(ANSWER + KEPT).as_secs_f64()..NOTICED.as_secs_f64();
    for times in &begun {
        assert_eq!(times.len(), 2, "asked more than twice: {begun:?}");
        assert!(
            under_way.contains(&times[0]),
            "asked again for no reason: {begun:?}"
        );
    }
    repeated.len()
}

/// Checks that the rows count the tokens of all calls, including the lost ones in progress.
#[track_caller]
pub(crate) fn rows_count_lost_calls(
    rows: &[Value],
    asked: usize,
    repeated: usize,
    under_way: usize,
) {
    let sum = |value: &dyn Fn(&Value) -> Option<u64>| {
        usize::try_from(rows.iter().filter_map(value).sum::<u64>()).unwrap()
    };
    let lost = sum(&|row| row["lost_calls"].as_u64());
    // A worker may fail after recording a call and before making it, or have the lost verdict in its cache.
    assert!(
        (repeated..=under_way).contains(&lost),
        "{lost}, {repeated} of {under_way}"
    );
    let tokens = sum(&|row| row["token_usage"]["total"].as_u64());
    let possible = TOKENS * asked..=TOKENS * (4 * rows.len() + lost);
    assert!(possible.contains(&tokens), "{tokens} of {possible:?}");
}

#[test]
fn a_killed_worker_loses_only_the_calls_in_progress() {
    const TASKS: usize = 12;
    let Some(world) = World::new() else { return };
    let mut workers = vec![world.worker("a"), world.worker("b")];
    let mut all_repeated = 0;
    for (name, index) in [("second", 1), ("first", 0)] {
        let before = world.asked().len();
        let out = format!("{name}.jsonl");
        let mut batch = world.batch(name, TASKS, &["-o", &out]);
        wait_for("a third of the calls", || {
            (world.asked().len() >= before + TASKS + TASKS / 2).then_some(())
        });
        let mut worker = workers.remove(index);
        let killed = Instant::now();
        worker.kill();
        assert_eq!(batch.code(), 0, "{}", batch.output());
        let rows = world.rows(&out, TASKS);
        let asked = world.asked().split_off(before);
        let repeated = only_calls_in_progress_are_repeated(&asked, killed);
        all_repeated += repeated;
        assert_eq!(asked.len(), 4 * TASKS + repeated);
        rows_count_lost_calls(&rows, asked.len(), repeated, TASKS);
        // Repeating the command runs nothing again, with the same file and without it.
        let mut batch = world.batch(name, TASKS, &["-o", &out]);
        assert_eq!(batch.code(), 0, "{}", batch.output());
        let anew = format!("{name}-anew.jsonl");
        let mut batch = world.batch(name, TASKS, &["-o", &anew]);
        assert_eq!(batch.code(), 0, "{}", batch.output());
        let text = |rows: Vec<Value>| -> BTreeSet<String> {
            rows.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            text(world.rows(&out, TASKS)),
            text(world.rows(&anew, TASKS))
        );
        assert_eq!(world.asked().len(), before + asked.len());
        workers.insert(index, world.worker(&format!("{name}-again")));
    }
    assert!(all_repeated > 0, "no call was under way");
    drop(workers);
    a_failed_task_is_retried_in_another_way(&world);
    a_task_on_a_worker_receives_memory(&world);
    a_decision_comes_from_outside(&world);
    a_task_brings_no_files_and_no_addresses(&world);
    a_server_may_be_behind_tls(&world);
    unsigned_requests_are_refused(&world);
    a_stopping_worker_completes_its_calls(&world);
    a_worker_without_a_model_leaves_the_tasks_to_others(&world);
    spending_can_be_limited_and_stopped(&world);
    limits_are_shared_by_all_workers(&world);
}

/// Sends a request by hand and returns the response.
fn http(method: &str, url: &str, body: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let length = body.len();
    // The server rejects a content type without content.
    let kind = if body.is_empty() {
        ""
    } else {
        "Content-Type: application/json\r\n"
    };
    write!(
        stream,
        "{method} /{path} HTTP/1.1\r\nHost: {host}\r\n{kind}Content-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The server fails, and the stronger model completes the task.
fn a_failed_task_is_retried_in_another_way(world: &World) {
    let worker = world.worker("g");
    let before = world.asked().len();
    let more = |out| {
        [
            "-o",
            out,
            "--retries",
            "0",
            "--stronger-model",
            "strong",
            "--replan",
            "2",
        ]
    };
    let mut batch = world.batch(OVERLOADED, 1, &more("again.jsonl"));
    assert_eq!(batch.code(), 0, "{}", batch.output());
    let said = batch.output();
    assert!(said.contains("tried again in another way: 1"), "{said}");
    let rows = world.rows("again.jsonl", 1);
    assert_eq!(rows[0]["attempts"], 2, "{}", rows[0]);
    let replanned = rows[0]["replanned"].as_array().unwrap();
    assert_eq!(replanned.len(), 1);
    assert_eq!(replanned[0]["error_category"], "network");
    let adjusted = replanned[0]["adjusted"].as_str().unwrap();
    let takes_over = "the stronger model openai:strong writes; the writer receives";
    assert!(adjusted.starts_with(takes_over), "{adjusted}");
    // The failed call, two drafts, two verdicts. The writer's prompt describes the first failure.
    let asked = world.asked().split_off(before);
    let is_told = |prompt: &str| prompt.contains("An earlier attempt at this task failed");
    assert_eq!(asked.len(), 5);
    assert!(!is_told(&asked[0].0) && is_told(&asked[1].0), "{asked:?}");
    // The server knows both attempts, and repeats neither.
    let mut batch = world.batch(OVERLOADED, 1, &more("again-anew.jsonl"));
    assert_eq!(batch.code(), 0, "{}", batch.output());
    assert_eq!(world.rows("again-anew.jsonl", 1), rows);
    assert_eq!(world.asked().len(), before + 5);
    drop(worker);
}

/// Memory is stored with the batch; the runs to compare with are in the worker's log.
fn a_task_on_a_worker_receives_memory(world: &World) {
    let memory = |args: &[&str]| -> Value {
        let mut command = world.reflect("submitter");
        let output = command.arg("memory").args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    };
    let insight = "Name the item in the first word.";
    memory(&["add", "insight", insight, "--criteria", "house"]);
    memory(&["add", "procedure", "Write about an item as it looks."]);
    // This worker has already done tasks.
    let worker = world.worker("a");
    let before = world.asked().len();
    let mut batch = world.batch("recalls", 1, &["-o", "recalls.jsonl", "--memory"]);
    assert_eq!(batch.code(), 0, "{}", batch.output());
    let said = batch.output();
    assert!(
        said.contains("memory: 2 of 2 used, in 1 of 1 task"),
        "{said}"
    );
    let rows = world.rows("recalls.jsonl", 1);
    let asked = world.asked().split_off(before);
    let told = asked.iter().filter(|(prompt, _)| prompt.contains(insight));
    assert_eq!(
        (asked.len(), told.count()),
        (4, 2),
        "the writer receives it, the judge does not"
    );
    // The insight is compared with runs that did not use it; for the procedure, successes are counted.
    for moved in ["memory: 1 falls from 0.70 to ", "memory: 2 is now at 0.67"] {
        assert!(said.contains(moved), "{said}");
    }
    let known = memory(&["list", "--json"]);
    assert_eq!(
        (&known[0]["uses"], &known[1]["uses"]),
        (&json!(1), &json!(1))
    );
    // Changed memory does not change the task's identity, and a run is measured once.
    memory(&["rm", "2", "--yes"]);
    let mut batch = world.batch("recalls", 1, &["-o", "recalls-anew.jsonl", "--memory"]);
    assert_eq!(batch.code(), 0, "{}", batch.output());
    assert_eq!(world.rows("recalls-anew.jsonl", 1), rows);
    assert_eq!(world.asked().len(), before + 4);
    let now = memory(&["list", "--json"]);
    assert_eq!(
        (&now[0]["uses"], &now[0]["confidence"]),
        (&json!(1), &known[0]["confidence"])
    );
    drop(worker);
}

/// The bad draft is accepted, after a longer time than the worker lives.
fn a_decision_comes_from_outside(world: &World) {
    let mut worker = world.worker("e");
    let before = world.asked().len();
    let mut batch = world.batch("asks", 1, &["-o", "asks.jsonl", "--await-decisions"]);
    let url = wait_for("the address of the task", || {
        let said = batch.output();
        let after = said.split("task `t0`: ").nth(1)?;
        Some(after.split("/question").next()?.to_owned())
    });
    let question = || http("POST", &format!("{url}/question"), "");
    wait_for("the question", || {
        question().contains("A first text").then_some(())
    });
    worker.kill();
    let worker = world.worker("f");
    let question = wait_for("the question again", || {
        let answer = question();
        answer.contains("A first text").then_some(answer)
    });
    assert!(question.contains("\"draft\":1"), "{question}");
    let accept = r#"{"draft": 1, "decision": {"accept": 1}}"#;
    let answer = http("POST", &format!("{url}/decide"), accept);
    assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    assert_eq!(batch.code(), 0, "{}", batch.output());
    let row: Value =
        serde_json::from_str(&fs::read_to_string(world.path("asks.jsonl")).unwrap()).unwrap();
    assert_eq!(row["convergence_reason"], "user_accepted", "{row}");
    assert_eq!(row["output"], "A first text about item 0 of asks.", "{row}");
    // One draft and one verdict, on whichever worker.
    assert_eq!(world.asked().len(), before + 2);
    drop(worker);
}

/// Tasks from others run only with models that the worker's owner has set up.
fn a_task_brings_no_files_and_no_addresses(world: &World) {
    let _worker = world.worker("h");
    let before = world.asked().len();
    fs::write(world.path("secret.txt"), "A secret.").unwrap();
    let secret = world.path("secret.txt").display().to_string();
    let scripted = format!("scripted:{secret}");
    let given = |name: &str, model: &str, more: &[&str]| {
        let out = format!("{name}.jsonl");
        let args = [&["-o", out.as_str(), "-m", model], more].concat();
        let mut batch = world.batch(name, 1, &args);
        let code = batch.code();
        let row = fs::read_to_string(world.path(&out)).unwrap_or_default();
        (code, batch.output() + &row)
    };
    let (code, said) = given("scripted", &scripted, &[]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("a file on this machine"), "{said}");
    assert!(!said.contains("A secret."), "{said}");
    // The worker has neither the key nor the address.
    let (code, said) = given("other", "groq:llama", &[]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("has no provider `groq`"), "{said}");
    let (code, said) = given(
        "address",
        "openai:test",
        &["--base-url", "http://127.0.0.1:1/v1"],
    );
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("at their own addresses"), "{said}");
    assert_eq!(world.asked().len(), before);
}

/// A batch reaches the server through a TLS proxy that requires a token.
fn a_server_may_be_behind_tls(world: &World) {
    let _worker = world.worker("p");
    let engine = format!("https://127.0.0.1:{}/tls", world.encrypted);
    let more = ["-o", "tls.jsonl", "--engine", &engine];
    let mut batch = world.batch("tls", 2, &more);
    assert_eq!(batch.code(), 0, "{}", batch.output());
    world.rows("tls.jsonl", 2);
}

/// A worker with its server's identity rejects requests from others.
fn unsigned_requests_are_refused(world: &World) {
    let worker = world.worker_with("o", &["--identity", &world.identity], |_| ());
    let port = worker.output();
    let port = port.split("listens at 127.0.0.1:").nth(1).unwrap();
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    let ask = |path: &str| http("GET", &format!("http://127.0.0.1:{port}/{path}"), "");
    let answer = ask("discover");
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    // The health check needs no signature, because a load balancer uses it.
    let answer = ask("health");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut batch = world.batch("signed", 1, &["-o", "signed.jsonl"]);
    assert_eq!(batch.code(), 0, "{}", batch.output());
    world.rows("signed.jsonl", 1);
}

/// Calls in progress are completed; another worker continues after them.
fn a_stopping_worker_completes_its_calls(world: &World) {
    let mut worker = world.worker("i");
    let before = world.asked().len();
    let mut batch = world.batch("stops", 4, &["-o", "stops.jsonl"]);
    wait_for("the first calls", || {
        (world.asked().len() >= before + 4).then_some(())
    });
    send(&worker, Signal::TERM);
    let _other = world.worker("j");
    assert_eq!(worker.code(), 0, "{}", worker.output());
    assert_eq!(batch.code(), 0, "{}", batch.output());
    world.rows("stops.jsonl", 4);
    // No call was repeated.
    assert_eq!(world.asked().len(), before + 16);
}

fn send(process: &Process, signal: Signal) {
    kill_process(Pid::from_child(&process.child), signal).unwrap();
}

/// One worker has the wrong key, and the others do all tasks. If all have, the batch reports it.
fn a_worker_without_a_model_leaves_the_tasks_to_others(world: &World) {
    let missing_key_hint = |name: &str| {
        world.worker_with(name, &[], |command| {
            command.env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
        })
    };
    let mut broken = missing_key_hint("k");
    let worker = world.worker("l");
    let before = world.asked().len();
    let mut batch = world.batch("unfit", 6, &["-o", "unfit.jsonl"]);
    assert_eq!(batch.code(), 0, "{}", batch.output());
    world.rows("unfit.jsonl", 6);
    assert_eq!(world.asked().len(), before + 24);
    assert!(
        broken.output().contains("go back to the server"),
        "{}",
        broken.output()
    );
    drop(worker);
    let mut batch = world.batch("hopeless", 2, &["-o", "hopeless.jsonl"]);
    assert_eq!(batch.code(), 4, "{}", batch.output());
    let said = batch.output();
    assert!(said.contains("no worker can do the tasks"), "{said}");
    assert_eq!(
        fs::read_to_string(world.path("hopeless.jsonl")).unwrap(),
        ""
    );
    // No task is lost.
    broken.kill();
    let _worker = world.worker("m");
    let mut batch = world.batch("hopeless", 2, &["-o", "hopeless.jsonl"]);
    assert_eq!(batch.code(), 0, "{}", batch.output());
    world.rows("hopeless.jsonl", 2);
}

/// The limit is exceeded at most by the tasks in progress, and submitted tasks end when the batch no longer
/// needs them.
fn spending_can_be_limited_and_stopped(world: &World) {
    let _worker = world.worker("n");
    let more = ["-o", "limited.jsonl", "--max-total-tokens", "2000"];
    let mut batch = world.batch("limited", 40, &more);
    assert_eq!(batch.code(), 5, "{}", batch.output());
    let rows = fs::read_to_string(world.path("limited.jsonl")).unwrap();
    // Each task uses 480 tokens.
    assert!((4..=5).contains(&rows.lines().count()), "{rows}");

    let asked = |name: &str| {
        let all = world.asked();
        all.iter()
            .filter(|(prompt, _)| prompt.contains(name))
            .count()
    };
    let started = |name: &str, more: &[&str]| {
        let batch = world.batch(name, 40, more);
        wait_for("the first calls", || (asked(name) >= 4).then_some(()));
        batch
    };
    let mut batch = started("stopped", &["-o", "stopped.jsonl", "-j", "20"]);
    send(&batch, Signal::INT);
    wait_for("the first signal", || {
        batch.output().contains("stopping: finishing").then_some(())
    });
    send(&batch, Signal::INT);
    assert_eq!(batch.code(), 130, "{}", batch.output());
    assert!(batch.output().contains("cancelled "), "{}", batch.output());
    let admin = format!("http://127.0.0.1:{}", world.admin);
    let mut killed = started("later", &["-o", "later.jsonl", "-j", "20"]);
    killed.kill();
    let cancel = || {
        let mut command = world.reflect("submitter");
        command
            .args(["batch", "--cancel", "--admin", &admin, "--engine"])
            .arg(format!("restate://127.0.0.1:{}/later", world.ingress));
        let mut process = Process::start(command, world.path("cancel.log"));
        assert_eq!(process.code(), 0, "{}", process.output());
        process.output()
    };
    let said = cancel();
    assert!(said.contains("cancelled 20 submitted tasks"), "{said}");
    wait_for("their end", || {
        cancel()
            .contains("cancelled 0 submitted tasks")
            .then_some(())
    });
    let (stopped, later) = (asked("stopped"), asked("later"));
    std::thread::sleep(2 * ANSWER);
    assert_eq!((asked("stopped"), asked("later")), (stopped, later));
    assert!(later < 80, "{later} of 160 calls");
    // Cancelled tasks run when they are submitted again.
    let mut batch = world.batch("later", 2, &["-o", "later.jsonl"]);
    assert_eq!(batch.code(), 0, "{}", batch.output());
    world.rows("later.jsonl", 2);
}

/// Builds a library that sets a program's clock an hour ahead.
fn clock_ahead(world: &World) -> PathBuf {
    let (source, library) = (world.path("ahead.c"), world.path("ahead.so"));
    let ahead = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <time.h>\n\
        int clock_gettime(clockid_t clock, struct timespec *now) {\n\
        int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, \"clock_gettime\");\n\
        int result = real(clock, now);\n\
        if (clock == CLOCK_REALTIME) now->tv_sec += 3600;\n\
        return result; }\n";
    fs::write(&source, ahead).unwrap();
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let now = |preload: &Path| -> u64 {
        let mut command = Command::new("python3");
        command.args(["-c", "import time; print(int(time.time()))"]);
        let shown = command.env("LD_PRELOAD", preload).output().unwrap().stdout;
        String::from_utf8(shown).unwrap().trim().parse().unwrap()
    };
    assert!(now(&library) > now(Path::new("")) + 3500);
    library
}

/// Two calls per second, on any worker and with any clock.
fn limits_are_shared_by_all_workers(world: &World) {
    let library = clock_ahead(world);
    let ahead = world.worker_with("d", &[], |command| {
        command.env("LD_PRELOAD", library);
    });
    let _workers = [ahead, world.worker("c")];
    let before = world.asked().len();
    let more = ["-o", "slow.jsonl", "--requests-per-minute", "120"];
    let mut batch = world.batch("slow", 3, &more);
    assert_eq!(batch.code(), 0, "{}", batch.output());
    world.rows("slow.jsonl", 3);
    let asked = world.asked().split_off(before);
    assert_eq!(asked.len(), 12);
    for (index, (_, first)) in asked.iter().enumerate() {
        let window = asked[index..]
            .iter()
            .filter(|(_, time)| time.duration_since(*first) < Duration::from_millis(1900))
            .count();
        // One second's worth of calls and the current one may start at once.
        assert!(window <= 7, "{window} calls in less than two seconds");
    }
    let took = asked[11].1.duration_since(asked[0].1);
    assert!(took > Duration::from_secs(4), "{took:?}");
}

#[test]
fn without_a_server_there_is_nothing_to_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tasks.jsonl"), "{\"prompt\": \"a\"}\n").unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reflect"));
        command
            .env_clear()
            .env("HOME", folder.path())
            .env("RESTATE_AUTH_TOKEN", "let-me-in")
            .current_dir(folder.path())
            .args(args);
        let mut process = Process::start(command, folder.path().join("log"));
        (process.code(), process.output())
    };
    let batch = [
        "batch",
        "tasks.jsonl",
        "-m",
        "openai:test",
        "--engine",
        "restate://127.0.0.1:1",
    ];
    let (code, said) = run(&batch);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("cannot be reached"), "{said}");
    // The token would be sent unencrypted.
    let unencrypted = "restate://198.51.100.1";
    for args in [
        &[
            "batch",
            "tasks.jsonl",
            "-m",
            "openai:test",
            "--engine",
            unencrypted,
        ][..],
        &["worker", "--listen", "127.0.0.1:0", "--engine", unencrypted],
    ] {
        let (code, said) = run(args);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("RESTATE_AUTH_TOKEN"), "{said}");
        assert!(!said.contains("let-me-in"), "{said}");
    }
    // Each worker would choose a different model.
    let batch = ["batch", "tasks.jsonl", "--engine", "restate://127.0.0.1:1"];
    let (code, said) = run(&batch);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("--model PROVIDER:MODEL"), "{said}");
    let (code, said) = run(&[
        "worker",
        "--listen",
        "0.0.0.0:0",
        "--register",
        "--engine",
        "restate://127.0.0.1:1",
    ]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("--advertise"), "{said}");
}

/// A worker that starts before its server waits for it and reports that. A worker that others cannot reach
/// reports that, too.
#[test]
fn a_worker_waits_for_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let start = |engine: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reflect"));
        command.env_clear().env("HOME", folder.path()).args([
            "worker",
            "--listen",
            "127.0.0.1:0",
            "--register",
            "--engine",
            engine,
        ]);
        Process::start(command, folder.path().join("worker.log"))
    };
    let mut worker = start("restate://127.0.0.1:1");
    wait_for("the warning", || {
        let said = worker.output();
        said.contains("cannot be reached").then_some(())
    });
    assert_eq!(worker.child.try_wait().unwrap(), None);
    assert!(
        worker.output().contains("reflect 0."),
        "{}",
        worker.output()
    );
    assert!(!worker.output().contains("this machine only"));
    worker.kill();
    let worker = start("restate://198.51.100.1");
    wait_for("the warning", || {
        let said = worker.output();
        said.contains("is reachable from this machine only")
            .then_some(())
    });
}

/// The program named by the environment must exist.
#[test]
fn the_named_program_exists() {
    if let Some(program) = program() {
        assert!(Path::new(&program).is_file(), "{}", program.display());
    }
}
