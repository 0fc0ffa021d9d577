//! Batches on a real Restate server, with real workers, one of which is killed: every task once, and no finished call
//! again.
//!
//! The server is `restate-server` of the npm package `@restatedev/restate-server`: the program that
//! `RESTATE_SERVER` names, or one on the path. Before several workers stands `haproxy`, with the file that `docs/deploy`
//! ships. Where one of them is missing the tests say so and pass, unless `REFLECT_TEST_REQUIRE_ALL=1` is set.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests, and a test that is skipped says so"
)]

#[expect(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test program uses another part of it"
)]
#[path = "support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::server::{Fault, Planned, Purpose, Reply, Server};
use tempfile::TempDir;

/// The longest that anything here may take. Far more than it should.
const LIMIT: Duration = Duration::from_mins(2);

/// How long the scripted server takes for an answer.
const ANSWER: Duration = Duration::from_millis(400);

/// How long it may take until an answer is in the journal.
const KEPT: Duration = Duration::from_millis(600);

/// How long it may take until others notice that a worker is gone.
const NOTICED: Duration = Duration::from_millis(300);

const CRITERIA: &str = "\
name = 'house'
threshold = 0.8
[[criteria]]
name = 'clear'
description = 'A reader understands it at once.'
";

/// The key with which the server signs, of 32 bytes of 7.
const IDENTITY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n\
    -----END PRIVATE KEY-----\n";

/// What models were asked, when.
type Asked = Arc<Mutex<Vec<(String, Instant)>>>;

/// A process that ends with the test.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(command: &mut Command, log: PathBuf) -> Self {
        let child = command
            .stdin(Stdio::null())
            .stdout(File::create(&log).unwrap())
            .stderr(File::options().append(true).open(&log).unwrap())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it without a word.
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end.
    #[track_caller]
    fn code(&mut self) -> i32 {
        let code = wait_for("the end of a process", || self.child.try_wait().unwrap());
        code.code().unwrap_or(-1)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            println!("--- {}\n{}", self.log.display(), self.said());
        }
    }
}

#[track_caller]
fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "{what}: waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The server's program; `None`, said aloud, where there is none.
fn program() -> Option<PathBuf> {
    let named = std::env::var_os("RESTATE_SERVER").map(PathBuf::from);
    named.or_else(|| on_path("restate-server"))
}

/// A program on the path, or where Debian has servers; `None`, said aloud, where there is none.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let found = places.find_map(|folder| Some(folder.join(name)).filter(|it| it.is_file()));
    if found.is_none() {
        let required = std::env::var_os("REFLECT_TEST_REQUIRE_ALL").is_some_and(|v| v == "1");
        assert!(!required, "`{name}` is required and missing");
        println!("SKIPPED, nothing was tested: `{name}` is not installed");
    }
    found
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// A Restate server, a load balancer, a scripted server for the models, and a folder.
struct World {
    // What is first goes first.
    _balancer: Process,
    _server: Process,
    /// Where the balancer listens.
    balanced: u16,
    /// Where it takes requests to the server over TLS.
    encrypted: u16,
    /// Its certificate there.
    certificate: PathBuf,
    /// Where it looks for workers.
    places: Vec<u16>,
    models: Server,
    asked: Asked,
    ingress: u16,
    admin: u16,
    /// The server's public key.
    identity: String,
    folder: TempDir,
}

impl World {
    fn new() -> Option<Self> {
        let program = program()?;
        let haproxy = on_path("haproxy")?;
        let openssl = on_path("openssl")?;
        let folder = tempfile::tempdir().unwrap();
        let (ingress, admin, fabric) = (free_port(), free_port(), free_port());
        let identity = folder.path().join("identity.pem");
        fs::write(&identity, IDENTITY).unwrap();
        let mut command = Command::new(program);
        command
            .arg("--no-logo")
            .arg("--base-dir")
            .arg(folder.path().join("restate"))
            .env(
                "RESTATE_WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE",
                identity,
            )
            .env("RESTATE_LISTEN_MODE", "tcp")
            .env("RESTATE_BIND_IP", "127.0.0.1")
            .env("RESTATE_BIND_PORT", fabric.to_string())
            .env("RESTATE_INGRESS__BIND_PORT", ingress.to_string())
            .env("RESTATE_ADMIN__BIND_PORT", admin.to_string())
            .env("RESTATE_DEFAULT_NUM_PARTITIONS", "4")
            .env("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "256 MB")
            .env("RESTATE_DISABLE_TELEMETRY", "true")
            .env("DO_NOT_TRACK", "1");
        let server = Process::start(&mut command, folder.path().join("restate.log"));
        for port in [ingress, admin] {
            wait_for("the Restate server", || {
                TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
            });
        }
        let identity = wait_for("the public key", || {
            let said = server.said();
            let key = said.split("\"publickeyv1_").nth(1)?.split('"').next()?;
            Some(format!("publickeyv1_{key}"))
        });
        fs::write(folder.path().join("criteria.toml"), CRITERIA).unwrap();
        let (balanced, places) = (free_port(), vec![free_port(), free_port(), free_port()]);
        let configuration = folder.path().join("haproxy.cfg");
        let (encrypted, certificate) = (free_port(), certificate(&openssl, folder.path()));
        let before = in_front(encrypted, &certificate, ingress);
        fs::write(&configuration, balancing(balanced, &places) + &before).unwrap();
        let mut command = Command::new(haproxy);
        command.arg("-db").arg("-f").arg(&configuration);
        let haproxy = Process::start(&mut command, folder.path().join("haproxy.log"));
        let (models, asked) = models();
        Some(Self {
            _balancer: haproxy,
            balanced,
            encrypted,
            certificate,
            places,
            folder,
            models,
            asked,
            ingress,
            admin,
            identity,
            _server: server,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn reflect(&self, name: &str) -> Command {
        let home = self.path(name);
        fs::create_dir_all(&home).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_reflect"));
        command
            .env_clear()
            .env("HOME", &home)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("OPENAI_BASE_URL", self.models.openai_url())
            .env("OPENAI_API_KEY", "none")
            .env("SSL_CERT_FILE", &self.certificate)
            .env("RESTATE_AUTH_TOKEN", TOKEN)
            .current_dir(self.folder.path());
        command
    }

    /// A worker behind the balancer.
    fn worker(&self, name: &str) -> Process {
        self.worker_with(name, &[], |_| ())
    }

    /// A worker behind the balancer, with more flags, and another environment.
    fn worker_with(&self, name: &str, more: &[&str], change: impl FnOnce(&mut Command)) -> Process {
        let is_free = |port: &&u16| TcpStream::connect((Ipv4Addr::LOCALHOST, **port)).is_err();
        let port = self.places.iter().find(is_free).unwrap();
        let balancer = format!("127.0.0.1:{}", self.balanced);
        let mut command = self.reflect(name);
        command
            .args(["worker", "--register", "--advertise", &balancer])
            .args(["--listen", &format!("127.0.0.1:{port}"), "--engine"])
            .arg(format!("restate://127.0.0.1:{}", self.ingress))
            .args(["--admin", &format!("http://127.0.0.1:{}", self.admin)])
            .args(more);
        change(&mut command);
        let mut worker = Process::start(&mut command, self.path(&format!("{name}.log")));
        wait_for("a worker", || {
            let ended = worker.child.try_wait().unwrap();
            assert!(ended.is_none(), "{}", worker.said());
            worker.said().contains("registered").then_some(())
        });
        // Others may have answered in its name: the balancer must have found it, too.
        wait_for("the balancer", || {
            let said = fs::read_to_string(self.path("haproxy.log")).unwrap();
            let place = format!("workers/worker{port} is ");
            let state = said.rsplit_once(&place).map(|(_, state)| state.to_owned());
            state.is_none_or(|it| it.starts_with("UP")).then_some(())
        });
        worker
    }

    /// A batch of the tasks `t0`, `t1`, … under this name.
    fn batch(&self, name: &str, number: usize, more: &[&str]) -> Process {
        let mut tasks = String::new();
        for n in 0..number {
            // Verdicts on the texts of another batch would be remembered.
            let prompt = format!("Write about item {n} of {name}.");
            let task = json!({"id": format!("t{n}"), "prompt": prompt});
            tasks += &task.to_string();
            tasks.push('\n');
        }
        fs::write(self.path("tasks.jsonl"), tasks).unwrap();
        let mut command = self.reflect("submitter");
        command
            .args(["batch", "tasks.jsonl", "-c", "criteria.toml"])
            .args(["--admin", &format!("http://127.0.0.1:{}", self.admin)])
            .args(more);
        if !more.contains(&"--engine") {
            let engine = format!("restate://127.0.0.1:{}/{name}", self.ingress);
            command.args(["--engine", &engine]);
        }
        if !more.contains(&"-m") {
            command.args(["-m", "openai:test"]);
        }
        let number = self.asked().len();
        Process::start(
            &mut command,
            self.path(&format!("batch-{name}-{number}.log")),
        )
    }

    /// The rows of a file: every task once, all met.
    #[track_caller]
    fn rows(&self, file: &str, number: usize) -> Vec<Value> {
        let text = fs::read_to_string(self.path(file)).unwrap();
        let rows: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let ids: BTreeSet<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
        assert_eq!((ids.len(), rows.len()), (number, number), "{text}");
        for row in &rows {
            assert_eq!(row["status"], "met", "{row}");
        }
        rows
    }

    fn asked(&self) -> Vec<(String, Instant)> {
        self.asked.lock().unwrap().clone()
    }
}

/// The configuration of the balancer, as it is shipped, for the places of this test.
fn balancing(port: u16, workers: &[u16]) -> String {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/deploy/haproxy.cfg");
    let shipped = fs::read_to_string(shipped).unwrap();
    let shipped = shipped
        .replace("bind :9080", &format!("bind 127.0.0.1:{port}"))
        .replace("inter 1s", "inter 200ms");
    let is_example = |line: &&str| !line.trim().starts_with("server worker");
    let mut text: String = shipped.split_inclusive('\n').filter(is_example).collect();
    for worker in workers {
        let server = format!("    server worker{worker} 127.0.0.1:{worker}\n");
        text.push_str(&server);
    }
    text
}

/// What clients of the proxy before the server must present.
const TOKEN: &str = "let-me-in";

/// A proxy before the server, with TLS and a token, as another part of the balancer's configuration.
fn in_front(port: u16, certificate: &Path, ingress: u16) -> String {
    let certificate = certificate.display();
    format!(
        "frontend encrypted\n    bind 127.0.0.1:{port} ssl crt {certificate} alpn h2\n    \
         http-request deny unless {{ req.hdr(authorization) \"Bearer {TOKEN}\" }}\n    \
         default_backend ingress\n\
         backend ingress\n    server ingress 127.0.0.1:{ingress} proto h2\n"
    )
}

/// A certificate for this machine, with its key, in one file.
fn certificate(openssl: &Path, folder: &Path) -> PathBuf {
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    let made = Command::new(openssl)
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let both = fs::read_to_string(&certificate).unwrap() + &fs::read_to_string(&key).unwrap();
    fs::write(&certificate, both).unwrap();
    certificate
}

/// The batch for whose tasks there is no server to write, but for the stronger model.
const OVERLOADED: &str = "overloaded";

/// A server whose first draft on everything is bad, and whose second is good: four calls a task.
fn models() -> (Server, Asked) {
    let asked = Asked::default();
    let server = Server::start();
    let seen = Arc::clone(&asked);
    server.on(Purpose::Write, move |request| {
        let prompt = request.prompt();
        seen.lock().unwrap().push((prompt.clone(), Instant::now()));
        let item = prompt.split("Write about ").nth(1).unwrap_or_default();
        let item: String = item.chars().take_while(|c| *c != '.').collect();
        if item.ends_with(OVERLOADED) && request.body["model"] != "strong" {
            return Planned::from(Fault::status(503));
        }
        let text = if prompt.contains("A first text") {
            format!("A better text about {item}.")
        } else {
            format!("A first text about {item}.")
        };
        Reply::text(&text).first_wait(ANSWER).into()
    });
    let seen = Arc::clone(&asked);
    server.on(Purpose::Judge, move |request| {
        let prompt = request.prompt();
        seen.lock().unwrap().push((prompt.clone(), Instant::now()));
        let verdict = if prompt.contains("A better text") {
            json!({"scores": {"clear": {"reason": "It is.", "score": 5}}, "issues": [], "confidence": 0.8})
        } else {
            json!({"scores": {"clear": {"reason": "It is not.", "score": 2}}, "confidence": 0.8,
                "issues": [{"type": "missing", "severity": "major", "criterion": "clear",
                    "description": "It does not say what it is about.", "suggested_fix": "Say it first."}]})
        };
        Reply::text(&verdict.to_string()).first_wait(ANSWER)
    });
    (server, asked)
}

/// Whatever was asked more than once was on its way when a worker was killed, and was asked once more.
#[track_caller]
fn only_what_was_under_way_is_repeated(asked: &[(String, Instant)], killed: Instant) -> usize {
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

#[test]
fn a_worker_that_is_killed_costs_what_was_under_way_and_no_more() {
    const TASKS: usize = 12;
    let Some(world) = World::new() else { return };
    let mut workers = vec![world.worker("a"), world.worker("b")];
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
        assert_eq!(batch.code(), 0, "{}", batch.said());
        world.rows(&out, TASKS);
        let asked = world.asked().split_off(before);
        let repeated = only_what_was_under_way_is_repeated(&asked, killed);
        assert!(repeated > 0, "the worker that was killed had nothing to do");
        assert_eq!(asked.len(), 4 * TASKS + repeated);
        // The same again runs nothing again: not with the same file, and not without it.
        let mut batch = world.batch(name, TASKS, &["-o", &out]);
        assert_eq!(batch.code(), 0, "{}", batch.said());
        let anew = format!("{name}-anew.jsonl");
        let mut batch = world.batch(name, TASKS, &["-o", &anew]);
        assert_eq!(batch.code(), 0, "{}", batch.said());
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
    drop(workers);
    what_fails_is_tried_again_in_another_way(&world);
    a_task_on_a_worker_is_told_what_is_known(&world);
    a_decision_comes_from_outside(&world);
    a_task_brings_no_files_and_no_addresses(&world);
    a_server_may_be_behind_tls(&world);
    unsigned_requests_are_refused(&world);
    a_worker_that_stops_ends_what_it_has_begun(&world);
    a_worker_without_a_model_leaves_the_tasks_to_others(&world);
    spending_can_be_limited_and_stopped(&world);
    limits_hold_for_all_workers_together(&world);
}

/// An answer to a request that is made by hand.
fn http(method: &str, url: &str, body: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let length = body.len();
    // The server refuses a type of what is not there.
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

/// The server fails, and the stronger model does the task.
fn what_fails_is_tried_again_in_another_way(world: &World) {
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
    assert_eq!(batch.code(), 0, "{}", batch.said());
    let said = batch.said();
    assert!(said.contains("tried again in another way: 1"), "{said}");
    let rows = world.rows("again.jsonl", 1);
    assert_eq!(rows[0]["attempts"], 2, "{}", rows[0]);
    let replanned = rows[0]["replanned"].as_array().unwrap();
    assert_eq!(replanned.len(), 1);
    assert_eq!(replanned[0]["error_category"], "network");
    let adjusted = replanned[0]["adjusted"].as_str().unwrap();
    let takes_over = "the stronger model openai:strong writes; the writer is told";
    assert!(adjusted.starts_with(takes_over), "{adjusted}");
    // The call that failed, two drafts, two verdicts; and the writer knows what the first attempt met.
    let asked = world.asked().split_off(before);
    let is_told = |prompt: &str| prompt.contains("An earlier attempt at this task failed");
    assert_eq!(asked.len(), 5);
    assert!(!is_told(&asked[0].0) && is_told(&asked[1].0), "{asked:?}");
    // Both attempts are known to the server, and none of them is done again.
    let mut batch = world.batch(OVERLOADED, 1, &more("again-anew.jsonl"));
    assert_eq!(batch.code(), 0, "{}", batch.said());
    assert_eq!(world.rows("again-anew.jsonl", 1), rows);
    assert_eq!(world.asked().len(), before + 5);
    drop(worker);
}

/// Memory is where the batch is; the runs that its use is compared with are in the log of the worker.
fn a_task_on_a_worker_is_told_what_is_known(world: &World) {
    let memory = |args: &[&str]| -> Value {
        let mut command = world.reflect("submitter");
        let output = command.arg("memory").args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    };
    let insight = "Name the item in the first word.";
    memory(&["add", "insight", insight, "--criteria", "house"]);
    memory(&["add", "procedure", "Write about an item as it looks."]);
    // This one has done tasks before.
    let worker = world.worker("a");
    let before = world.asked().len();
    let mut batch = world.batch("recalls", 1, &["-o", "recalls.jsonl", "--memory"]);
    assert_eq!(batch.code(), 0, "{}", batch.said());
    let said = batch.said();
    assert!(
        said.contains("memory: 2 of 2 used, in 1 of 1 tasks"),
        "{said}"
    );
    let rows = world.rows("recalls.jsonl", 1);
    let asked = world.asked().split_off(before);
    let told = asked.iter().filter(|(prompt, _)| prompt.contains(insight));
    assert_eq!(
        (asked.len(), told.count()),
        (4, 2),
        "the writer is told, the judge is not"
    );
    // The one is compared with runs that did without; of the other it counts how often it worked.
    for moved in ["memory: 1 falls from 0.70 to ", "memory: 2 is now at 0.67"] {
        assert!(said.contains(moved), "{said}");
    }
    let known = memory(&["list", "--json"]);
    assert_eq!(
        (&known[0]["uses"], &known[1]["uses"]),
        (&json!(1), &json!(1))
    );
    // What is known by now makes it no other task, and a run is measured once.
    memory(&["rm", "2", "--yes"]);
    let mut batch = world.batch("recalls", 1, &["-o", "recalls-anew.jsonl", "--memory"]);
    assert_eq!(batch.code(), 0, "{}", batch.said());
    assert_eq!(world.rows("recalls-anew.jsonl", 1), rows);
    assert_eq!(world.asked().len(), before + 4);
    let now = memory(&["list", "--json"]);
    assert_eq!(
        (&now[0]["uses"], &now[0]["confidence"]),
        (&json!(1), &known[0]["confidence"])
    );
    drop(worker);
}

/// The bad draft is accepted, by somebody who takes longer than the worker lives.
fn a_decision_comes_from_outside(world: &World) {
    let mut worker = world.worker("e");
    let before = world.asked().len();
    let mut batch = world.batch("asks", 1, &["-o", "asks.jsonl", "--await-decisions"]);
    let url = wait_for("the address of the task", || {
        let said = batch.said();
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
    assert_eq!(batch.code(), 0, "{}", batch.said());
    let row: Value =
        serde_json::from_str(&fs::read_to_string(world.path("asks.jsonl")).unwrap()).unwrap();
    assert_eq!(row["convergence_reason"], "user_accepted", "{row}");
    assert_eq!(row["output"], "A first text about item 0 of asks.", "{row}");
    // One draft, one verdict, whoever was there.
    assert_eq!(world.asked().len(), before + 2);
    drop(worker);
}

/// What somebody else hands in runs with the models of the worker's owner, or not at all.
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
        (code, batch.said() + &row)
    };
    let (code, said) = given("scripted", &scripted, &[]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("a file on this machine"), "{said}");
    assert!(!said.contains("A secret."), "{said}");
    // The worker has neither its key nor its address.
    let (code, said) = given("other", "groq:llama", &[]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("does not have the provider `groq`"), "{said}");
    let (code, said) = given(
        "address",
        "openai:test",
        &["--base-url", "http://127.0.0.1:1/v1"],
    );
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("at their own addresses"), "{said}");
    assert_eq!(world.asked().len(), before);
}

/// A batch reaches the server through a proxy with TLS that asks for a token.
fn a_server_may_be_behind_tls(world: &World) {
    let _worker = world.worker("p");
    let engine = format!("https://127.0.0.1:{}/tls", world.encrypted);
    let more = ["-o", "tls.jsonl", "--engine", &engine];
    let mut batch = world.batch("tls", 2, &more);
    assert_eq!(batch.code(), 0, "{}", batch.said());
    world.rows("tls.jsonl", 2);
}

/// A worker that knows its server serves nobody else.
fn unsigned_requests_are_refused(world: &World) {
    let worker = world.worker_with("o", &["--identity", &world.identity], |_| ());
    let port = worker.said();
    let port = port.split("listens at 127.0.0.1:").nth(1).unwrap();
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    let ask = |path: &str| http("GET", &format!("http://127.0.0.1:{port}/{path}"), "");
    let answer = ask("discover");
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    // That it is there, anybody may know: a load balancer asks.
    let answer = ask("health");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut batch = world.batch("signed", 1, &["-o", "signed.jsonl"]);
    assert_eq!(batch.code(), 0, "{}", batch.said());
    world.rows("signed.jsonl", 1);
}

/// Calls under way are worth their money; another worker goes on after them.
fn a_worker_that_stops_ends_what_it_has_begun(world: &World) {
    let mut worker = world.worker("i");
    let before = world.asked().len();
    let mut batch = world.batch("stops", 4, &["-o", "stops.jsonl"]);
    wait_for("the first calls", || {
        (world.asked().len() >= before + 4).then_some(())
    });
    send(&worker, Signal::TERM);
    let _other = world.worker("j");
    assert_eq!(worker.code(), 0, "{}", worker.said());
    assert_eq!(batch.code(), 0, "{}", batch.said());
    world.rows("stops.jsonl", 4);
    // No call was made twice.
    assert_eq!(world.asked().len(), before + 16);
}

fn send(process: &Process, signal: Signal) {
    kill_process(Pid::from_child(&process.child), signal).unwrap();
}

/// One has the wrong key, the others do all of it; where all have, the batch says so.
fn a_worker_without_a_model_leaves_the_tasks_to_others(world: &World) {
    let keyless = |name: &str| {
        world.worker_with(name, &[], |command| {
            command.env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
        })
    };
    let mut broken = keyless("k");
    let worker = world.worker("l");
    let before = world.asked().len();
    let mut batch = world.batch("unfit", 6, &["-o", "unfit.jsonl"]);
    assert_eq!(batch.code(), 0, "{}", batch.said());
    world.rows("unfit.jsonl", 6);
    assert_eq!(world.asked().len(), before + 24);
    assert!(
        broken.said().contains("go back to the server"),
        "{}",
        broken.said()
    );
    drop(worker);
    let mut batch = world.batch("hopeless", 2, &["-o", "hopeless.jsonl"]);
    assert_eq!(batch.code(), 4, "{}", batch.said());
    let said = batch.said();
    assert!(said.contains("no worker can do the tasks"), "{said}");
    assert_eq!(
        fs::read_to_string(world.path("hopeless.jsonl")).unwrap(),
        ""
    );
    // Nothing is lost by that.
    broken.kill();
    let _worker = world.worker("m");
    let mut batch = world.batch("hopeless", 2, &["-o", "hopeless.jsonl"]);
    assert_eq!(batch.code(), 0, "{}", batch.said());
    world.rows("hopeless.jsonl", 2);
}

/// The limit is passed by what is under way at most, and what was handed in ends when nobody wants it any more.
fn spending_can_be_limited_and_stopped(world: &World) {
    let _worker = world.worker("n");
    let more = ["-o", "limited.jsonl", "--max-total-tokens", "2000"];
    let mut batch = world.batch("limited", 40, &more);
    assert_eq!(batch.code(), 5, "{}", batch.said());
    let rows = fs::read_to_string(world.path("limited.jsonl")).unwrap();
    // Each takes 480.
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
        batch
            .said()
            .contains("no more tasks are begun")
            .then_some(())
    });
    send(&batch, Signal::INT);
    assert_eq!(batch.code(), 130, "{}", batch.said());
    assert!(batch.said().contains("cancelled "), "{}", batch.said());
    let admin = format!("http://127.0.0.1:{}", world.admin);
    let mut killed = started("later", &["-o", "later.jsonl", "-j", "20"]);
    killed.kill();
    let cancel = || {
        let mut command = world.reflect("submitter");
        command
            .args(["batch", "--cancel", "--admin", &admin, "--engine"])
            .arg(format!("restate://127.0.0.1:{}/later", world.ingress));
        let mut process = Process::start(&mut command, world.path("cancel.log"));
        assert_eq!(process.code(), 0, "{}", process.said());
        process.said()
    };
    let said = cancel();
    assert!(said.contains("cancelled 20 tasks"), "{said}");
    wait_for("their end", || {
        cancel().contains("cancelled 0 tasks").then_some(())
    });
    let (stopped, later) = (asked("stopped"), asked("later"));
    std::thread::sleep(2 * ANSWER);
    assert_eq!((asked("stopped"), asked("later")), (stopped, later));
    assert!(later < 80, "{later} of 160 calls");
    // What was cancelled is done when it is handed in again.
    let mut batch = world.batch("later", 2, &["-o", "later.jsonl"]);
    assert_eq!(batch.code(), 0, "{}", batch.said());
    world.rows("later.jsonl", 2);
}

/// Two calls a second, whoever makes them.
fn limits_hold_for_all_workers_together(world: &World) {
    let _workers = [world.worker("c"), world.worker("d")];
    let before = world.asked().len();
    let more = ["-o", "slow.jsonl", "--requests-per-minute", "120"];
    let mut batch = world.batch("slow", 3, &more);
    assert_eq!(batch.code(), 0, "{}", batch.said());
    world.rows("slow.jsonl", 3);
    let asked = world.asked().split_off(before);
    assert_eq!(asked.len(), 12);
    for (index, (_, first)) in asked.iter().enumerate() {
        let window = asked[index..]
            .iter()
            .filter(|(_, time)| time.duration_since(*first) < Duration::from_millis(1900))
            .count();
        // What a second is worth may come at once, and the one that is under way.
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
        let mut process = Process::start(
            Command::new(env!("CARGO_BIN_EXE_reflect"))
                .env_clear()
                .env("HOME", folder.path())
                .current_dir(folder.path())
                .args(args),
            folder.path().join("log"),
        );
        (process.code(), process.said())
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
    // Each worker would choose another model.
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

/// A worker that is there before its server waits for it, and says what it waits for. One that nobody else can reach
/// says that, too.
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
        Process::start(&mut command, folder.path().join("worker.log"))
    };
    let mut worker = start("restate://127.0.0.1:1");
    wait_for("the warning", || {
        let said = worker.said();
        said.contains("cannot be reached").then_some(())
    });
    assert_eq!(worker.child.try_wait().unwrap(), None);
    assert!(worker.said().contains("reflect 0."), "{}", worker.said());
    assert!(!worker.said().contains("this machine only"));
    worker.kill();
    let worker = start("restate://198.51.100.1");
    wait_for("the warning", || {
        let said = worker.said();
        said.contains("is reachable from this machine only")
            .then_some(())
    });
}

/// Nothing here is left to the path by mistake.
#[test]
fn the_program_that_is_named_is_there() {
    if let Some(program) = program() {
        assert!(Path::new(&program).is_file(), "{}", program.display());
    }
}
