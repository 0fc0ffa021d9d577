//! A Restate server, a load balancer and a scripted model server, with workers and batches that use them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::server::{Fault, Planned, Purpose, Reply, Server};

/// The time limit of every wait, far longer than needed.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// How long the scripted server takes for a reply.
pub(crate) const ANSWER: Duration = Duration::from_millis(400);

/// How many tokens a call uses.
pub(crate) const TOKENS: usize = 120;

/// How long it may take until a reply is in the journal.
pub(crate) const KEPT: Duration = Duration::from_millis(600);

/// How long it may take until others notice that a worker has failed.
pub(crate) const NOTICED: Duration = Duration::from_millis(300);

pub(crate) const CRITERIA: &str = "\
name = 'house'
threshold = 0.8
[[criteria]]
name = 'clear'
description = 'A reader understands it at once.'
";

/// The key with which the server signs: 32 bytes of 7.
pub(crate) const IDENTITY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n\
    -----END PRIVATE KEY-----\n";

/// The prompts sent to models, with their times.
pub(crate) type Asked = Arc<Mutex<Vec<(String, Instant)>>>;

/// A process that is killed at the end of the test.
pub(crate) struct Process {
    pub(crate) child: Child,
    command: Command,
    log: PathBuf,
}

impl Process {
    pub(crate) fn start(mut command: Command, log: PathBuf) -> Self {
        File::create(&log).unwrap();
        let child = spawn(&mut command, &log);
        Self {
            child,
            command,
            log,
        }
    }

    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Kills it and starts it again.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = spawn(&mut self.command, &self.log);
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn code(&mut self) -> i32 {
        let code = wait_for("the end of a process", || self.child.try_wait().unwrap());
        code.code().unwrap_or(-1)
    }
}

pub(crate) fn spawn(command: &mut Command, log: &Path) -> Child {
    let output = || File::options().append(true).open(log).unwrap();
    command
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output())
        .spawn()
        .unwrap()
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            println!("--- {}\n{}", self.log.display(), self.output());
        }
    }
}

#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the server's program; `None` with a message if there is none.
pub(crate) fn program() -> Option<PathBuf> {
    let named = std::env::var_os("RESTATE_SERVER").map(PathBuf::from);
    named.or_else(|| on_path("restate-server"))
}

/// Finds a program on the path or where Debian installs servers; `None` with a message if there is none.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
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

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// A Restate server, a load balancer, a scripted model server, and a folder.
pub(crate) struct World {
    // Dropped in this order.
    pub(crate) balancer: RefCell<Process>,
    pub(crate) server: RefCell<Process>,
    /// The port of the balancer.
    balanced: u16,
    /// The port of the TLS proxy in front of the server.
    pub(crate) encrypted: u16,
    /// The certificate of that proxy.
    certificate: PathBuf,
    /// The addresses at which the balancer expects workers.
    pub(crate) places: Vec<SocketAddrV4>,
    pub(crate) models: Server,
    asked: Asked,
    pub(crate) ingress: u16,
    pub(crate) admin: u16,
    /// The server's public key.
    pub(crate) identity: String,
    folder: TempDir,
}

impl World {
    /// Starts on the loopback interface.
    pub(crate) fn new() -> Option<Self> {
        Self::on(Ipv4Addr::LOCALHOST, &[])
    }

    /// Starts on this interface. The balancer also expects workers on these other machines.
    pub(crate) fn on(interface: Ipv4Addr, machines: &[Ipv4Addr]) -> Option<Self> {
        let program = program()?;
        let program_of_balancer = on_path("haproxy")?;
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
            .env("RESTATE_BIND_IP", interface.to_string())
            .env("RESTATE_ADVERTISED_HOST", "127.0.0.1")
            .env("RESTATE_BIND_PORT", fabric.to_string())
            .env("RESTATE_INGRESS__BIND_PORT", ingress.to_string())
            .env("RESTATE_ADMIN__BIND_PORT", admin.to_string())
            .env("RESTATE_DEFAULT_NUM_PARTITIONS", "4")
            .env("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "256 MB")
            .env("RESTATE_DISABLE_TELEMETRY", "true")
            .env("DO_NOT_TRACK", "1");
        let server = Process::start(command, folder.path().join("restate.log"));
        for port in [ingress, admin] {
            wait_for("the Restate server", || {
                TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
            });
        }
        let identity = wait_for("the public key", || {
            let output = server.output();
            let key = output.split("\"publickeyv1_").nth(1)?.split('"').next()?;
            Some(format!("publickeyv1_{key}"))
        });
        fs::write(folder.path().join("criteria.toml"), CRITERIA).unwrap();
        let balanced = free_port();
        let local = [Ipv4Addr::LOCALHOST; 3];
        let places = local.iter().chain(machines);
        let places: Vec<SocketAddrV4> = places
            .map(|machine| SocketAddrV4::new(*machine, free_port()))
            .collect();
        let configuration = folder.path().join("haproxy.cfg");
        let (encrypted, certificate) = (free_port(), certificate(&openssl, folder.path()));
        let proxy = tls_proxy(encrypted, &certificate, ingress);
        fs::write(&configuration, balancing(balanced, &places) + &proxy).unwrap();
        let mut command = Command::new(program_of_balancer);
        command.arg("-db").arg("-f").arg(&configuration);
        let haproxy = Process::start(command, folder.path().join("haproxy.log"));
        let (models, asked) = models(interface);
        Some(Self {
            balancer: RefCell::new(haproxy),
            server: RefCell::new(server),
            balanced,
            encrypted,
            certificate,
            places,
            models,
            asked,
            ingress,
            admin,
            identity,
            folder,
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn reflect(&self, name: &str) -> Command {
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

    /// Starts a worker behind the balancer.
    pub(crate) fn worker(&self, name: &str) -> Process {
        self.worker_with(name, &[], |_| ())
    }

    /// Starts a worker behind the balancer, with more flags and a changed environment.
    pub(crate) fn worker_with(
        &self,
        name: &str,
        more: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Process {
        let is_free = |place: &&SocketAddrV4| TcpStream::connect(place).is_err();
        let place = self.places.iter().find(is_free).unwrap();
        let command = self.worker_command(name, *place, Ipv4Addr::LOCALHOST, more);
        self.start_worker(name, *place, command, change)
    }

    /// Returns a command for a worker behind the balancer that reaches the server at this address.
    pub(crate) fn worker_command(
        &self,
        name: &str,
        place: SocketAddrV4,
        server: Ipv4Addr,
        more: &[&str],
    ) -> Command {
        let balancer = format!("127.0.0.1:{}", self.balanced);
        let mut command = self.reflect(name);
        command
            .args(["worker", "--register", "--advertise", &balancer])
            .args(["--listen", &place.to_string(), "--engine"])
            .arg(format!("restate://{server}:{}", self.ingress))
            .args(["--admin", &format!("http://{server}:{}", self.admin)])
            .args(more);
        command
    }

    /// Waits until the balancer sends tasks to this worker.
    pub(crate) fn wait_for_balancer(&self, place: SocketAddrV4) {
        wait_for("the balancer", || {
            let output = self.balancer.borrow().output();
            let name = format!("workers/worker{} is ", place.port());
            let state = output.rsplit_once(&name).map(|(_, state)| state.to_owned());
            state.is_none_or(|it| it.starts_with("UP")).then_some(())
        });
    }

    /// Starts a worker and waits until the server and the balancer know it.
    pub(crate) fn start_worker(
        &self,
        name: &str,
        place: SocketAddrV4,
        mut command: Command,
        change: impl FnOnce(&mut Command),
    ) -> Process {
        change(&mut command);
        let mut worker = Process::start(command, self.path(&format!("{name}.log")));
        wait_for("a worker", || {
            let ended = worker.child.try_wait().unwrap();
            assert!(ended.is_none(), "{}", worker.output());
            worker.output().contains("registered").then_some(())
        });
        // Another worker may have responded instead, so wait until the balancer has found this one.
        self.wait_for_balancer(place);
        worker
    }

    /// Starts a batch of the tasks `t0`, `t1`, … under this name.
    pub(crate) fn batch(&self, name: &str, number: usize, more: &[&str]) -> Process {
        let mut tasks = String::new();
        for n in 0..number {
            // Otherwise verdicts on the texts of another batch would be cached.
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
        Process::start(command, self.path(&format!("batch-{name}-{number}.log")))
    }

    /// Returns the rows of a file; checks that every task occurs once and is met.
    #[track_caller]
    pub(crate) fn rows(&self, file: &str, number: usize) -> Vec<Value> {
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

    pub(crate) fn asked(&self) -> Vec<(String, Instant)> {
        self.asked.lock().unwrap().clone()
    }
}

/// Returns the shipped configuration of the balancer, adapted to the addresses of this test.
pub(crate) fn balancing(port: u16, workers: &[SocketAddrV4]) -> String {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/deploy/haproxy.cfg");
    let shipped = fs::read_to_string(shipped).unwrap();
    let shipped = shipped
        .replace("bind :9080", &format!("bind 127.0.0.1:{port}"))
        .replace("inter 5s fastinter 1s", "inter 200ms");
    let is_example = |line: &&str| !line.trim().starts_with("server worker");
    let mut text: String = shipped.split_inclusive('\n').filter(is_example).collect();
    for worker in workers {
        let server = format!("    server worker{} {worker}\n", worker.port());
        text.push_str(&server);
    }
    text
}

/// The bearer token for the proxy in front of the server.
pub(crate) const TOKEN: &str = "let-me-in";

/// Returns the configuration of a TLS proxy in front of the server that requires a token.
pub(crate) fn tls_proxy(port: u16, certificate: &Path, ingress: u16) -> String {
    let certificate = certificate.display();
    format!(
        "frontend encrypted\n    bind 127.0.0.1:{port} ssl crt {certificate} alpn h2\n    \
         http-request deny unless {{ req.hdr(authorization) \"Bearer {TOKEN}\" }}\n    \
         default_backend ingress\n\
         backend ingress\n    server ingress 127.0.0.1:{ingress} proto h2\n"
    )
}

/// Creates a certificate for this machine, with its key, in one file.
pub(crate) fn certificate(openssl: &Path, folder: &Path) -> PathBuf {
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

/// The batch whose tasks only the stronger model completes.
pub(crate) const OVERLOADED: &str = "overloaded";

/// Starts a server whose first drafts fail and whose second ones pass: four calls per task.
pub(crate) fn models(interface: Ipv4Addr) -> (Server, Asked) {
    let asked = Asked::default();
    let server = Server::start_on(interface);
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
