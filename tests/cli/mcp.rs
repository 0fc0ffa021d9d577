//! The tools for agents: requests and answers on stdin and stdout, one JSON object a line.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{KEY, Ran, Running, Test};
use crate::plan::{CRITERIA, FIRST, SECOND, answering, usual, usual_server, verdict, with_server};
use crate::support::server::{Fault, Protocol, Purpose, Reply, Server};

/// Runs a command, which needs permission.
const COMMAND: &str = r#"
name = "command"
[[criteria]]
name = "runs"
evaluator = "command"
command = ["true"]
"#;

/// A client that writes requests and reads what comes.
struct Client {
    running: Running,
    requests: u64,
}

impl Client {
    /// Starts the server with these arguments, and agrees on a protocol version.
    #[track_caller]
    fn start(test: Test, args: &[&str]) -> Self {
        let test = test.arg("mcp").args(args).silent_stdin();
        let mut client = Self {
            running: test.spawn(),
            requests: 0,
        };
        let about = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}});
        let id = client.request("initialize", &about);
        let answer = client.answer(id);
        assert_eq!(
            answer["result"]["serverInfo"]["name"], "reflect",
            "{answer}"
        );
        client.notify("notifications/initialized", &json!({}));
        client
    }

    fn send(&mut self, message: &Value) {
        self.running.write(&format!("{message}\n"));
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Begins a call, with its own number as progress token.
    fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        let token = self.requests + 1;
        let params =
            json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}});
        self.request("tools/call", &params)
    }

    /// Everything that has come so far.
    fn messages(&self) -> Vec<Value> {
        let printed = self.running.printed();
        let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
        let lines = whole.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("stdout carries nothing but messages"))
            .collect()
    }

    /// Waits for a message.
    #[track_caller]
    fn wait(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let messages = self.messages();
            if let Some(message) = messages.iter().find(|message| wanted(message)) {
                return message.clone();
            }
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "no {what}: {messages:#?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[track_caller]
    fn answer(&self, id: u64) -> Value {
        self.wait(&format!("answer to {id}"), |message| message["id"] == id)
    }

    #[track_caller]
    fn result(&self, id: u64) -> Value {
        self.answer(id)["result"].clone()
    }

    #[track_caller]
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin(tool, arguments);
        self.result(id)
    }

    /// Makes a call that fails, and returns what the model reads.
    #[track_caller]
    fn fails(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result:#}");
        text(&result)
    }

    /// The progress of a call so far: its values and its lines.
    fn progress(&self, token: u64) -> Vec<(f64, Value, String)> {
        let messages = self.messages().into_iter();
        messages
            .filter(|message| message["method"] == "notifications/progress")
            .map(|message| message["params"].clone())
            .filter(|params| params["progressToken"] == token)
            .map(|params| {
                let value = params["progress"].as_f64().expect("a number");
                let line = params["message"].as_str().expect("a text").to_owned();
                (value, params["total"].clone(), line)
            })
            .collect()
    }

    /// Waits until a call has made progress with this line.
    #[track_caller]
    fn until(&self, token: u64, line: &str) {
        self.wait(line, |message| {
            let params = &message["params"];
            params["progressToken"] == token
                && params["message"]
                    .as_str()
                    .is_some_and(|it| it.contains(line))
        });
    }

    /// Ends the input, and waits for the end of the server.
    #[track_caller]
    fn end(mut self) -> Ran {
        self.running.end_input();
        let start = Instant::now();
        let ran = self.running.finish();
        // Clients kill a server that takes longer.
        assert!(
            start.elapsed() < Duration::from_secs(3),
            "{:?}",
            start.elapsed()
        );
        ran
    }
}

/// The first text of a result.
fn text(result: &Value) -> String {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {result:#}"))
        .to_owned()
}

/// A world with the server, and a folder with the criteria `house`.
fn world(server: &Server) -> Test {
    with_server(server, Protocol::OpenAi)
        .file("criteria/house.toml", CRITERIA)
        .file("criteria/command.toml", COMMAND)
}

const FOLDER: [&str; 2] = ["--criteria-dir", "criteria"];

fn draft() -> Value {
    json!({"prompt": "Write a line.", "criteria": "house"})
}

/// A server that takes its time with the first draft.
fn slow() -> Server {
    answering([Reply::pieces(&["word "; 600]).wait(Duration::from_millis(50))])
}

#[test]
fn the_tools_and_their_schemas() {
    let mut client = Client::start(world(&Server::start()), &[]);
    let id = client.request("tools/list", &json!({}));
    let tools = client.result(id);
    insta::assert_snapshot!("mcp_tools", format!("{:#}", tools["tools"]));
    for tool in tools["tools"].as_array().expect("tools") {
        for schema in ["inputSchema", "outputSchema"] {
            jsonschema::validator_for(&tool[schema]).expect("a schema");
        }
    }
    let id = client.request("tools/call", &json!({"name": "delete", "arguments": {}}));
    assert_eq!(client.answer(id)["error"]["code"], -32602);
    client.end();
}

#[test]
fn a_draft_with_progress() {
    let server = usual_server();
    let mut client = Client::start(world(&server), &FOLDER);
    let id = client.begin("draft", &draft());
    let result = client.result(id);
    assert_eq!(result["isError"], false, "{result:#}");
    assert_eq!(text(&result), SECOND);
    let outcome = &result["structuredContent"];
    assert_eq!(outcome["success"], true);
    assert_eq!(outcome["convergence_reason"], "quality_met");
    assert_eq!(outcome["output"], SECOND);
    assert_eq!(outcome["iterations_used"], 2);
    assert_eq!(outcome["issues"], json!([]));
    assert!(outcome["overall_score"].as_f64() > Some(0.9), "{outcome:#}");

    let progress = client.progress(id);
    let lines: Vec<&str> = progress.iter().map(|(_, _, line)| line.as_str()).collect();
    assert_eq!(lines[..2], ["draft 1: writing", "draft 1: evaluating"]);
    assert!(
        lines.iter().any(|line| line.contains("draft 2")),
        "{lines:?}"
    );
    assert!(
        lines
            .last()
            .is_some_and(|line| line.starts_with("criteria met")),
        "{lines:?}"
    );
    assert!(
        progress.is_sorted_by(|one, other| one.0 < other.0),
        "{progress:?}"
    );
    assert!(
        progress
            .iter()
            .all(|(value, total, _)| *value <= 2.0 && *total == 5.0)
    );

    let run = outcome["run_id"].clone();
    let shown = client.call("show_run", &json!({"run_id": run}));
    assert_eq!(shown["structuredContent"], *outcome);
    assert!(text(&shown).contains("It does not say what it is about."));
    assert!(
        client
            .fails("show_run", &json!({"run_id": "abcdef01"}))
            .contains("abcdef01")
    );

    let history = client.end().history();
    assert_eq!(history["run_id"], run);
    assert_eq!(history["output"], SECOND);
}

#[test]
fn a_call_without_a_token_sends_no_progress() {
    let server = usual_server();
    let mut client = Client::start(world(&server), &[&FOLDER[..], &["--no-log"]].concat());
    let params = json!({"name": "draft", "arguments": draft()});
    let id = client.request("tools/call", &params);
    assert_eq!(text(&client.result(id)), SECOND);
    assert!(client.messages().iter().all(|it| it["method"].is_null()));
    assert_eq!(
        client.fails("show_run", &json!({"run_id": "last"})),
        "error: no runs yet"
    );
    client.end();
}

#[test]
fn criteria_that_are_not_met_are_a_result() {
    let server = answering([Reply::text(FIRST), Reply::text(&verdict(2).to_string())]);
    let mut client = Client::start(world(&server), &FOLDER);
    let result = client.call(
        "draft",
        &json!({"prompt": "x", "criteria": "house", "max_iterations": 1}),
    );
    assert_eq!(result["isError"], false);
    assert_eq!(text(&result), FIRST);
    let outcome = &result["structuredContent"];
    assert_eq!(outcome["success"], false);
    assert_eq!(outcome["convergence_reason"], "max_iterations");
    assert_eq!(outcome["issues"][0]["severity"], "major");
    client.end();
}

#[test]
fn a_draft_that_the_user_does_not_want_is_not_returned() {
    let server = answering([Reply::text(FIRST), Reply::text(&verdict(2).to_string())]);
    let args = [&FOLDER[..], &["-n", "1", "--on-failure", "raise"]].concat();
    let mut client = Client::start(world(&server), &args);
    let result = client.call("draft", &draft());
    assert_eq!(result["isError"], false);
    assert_eq!(result["structuredContent"]["output"], Value::Null);
    assert!(!result.to_string().contains(FIRST), "{result:#}");
    client.end();
}

#[test]
fn a_client_cannot_raise_limits() {
    let server = answering([Reply::text(FIRST), Reply::text(&verdict(2).to_string())]);
    let mut client = Client::start(world(&server), &[&FOLDER[..], &["-n", "1"]].concat());
    let call = json!({"prompt": "x", "criteria": "house", "max_iterations": 9});
    let result = client.call("draft", &call);
    assert_eq!(
        result["structuredContent"]["iterations_used"], 1,
        "{result:#}"
    );
    assert_eq!(server.calls(), 2);
    for key in ["max_cost", "allow_exec", "model", "base_url"] {
        let error = client.fails("draft", &json!({"prompt": "x", key: "1"}));
        assert!(
            error.contains(&format!("unknown argument `{key}`")),
            "{error}"
        );
    }
    client.end();
}

#[test]
fn evaluate_and_revise_a_text() {
    let server = answering(
        [Reply::text(&verdict(2).to_string())]
            .into_iter()
            .chain(usual().split_off(1)),
    );
    let mut client = Client::start(world(&server), &FOLDER);
    let call = json!({"text": FIRST, "criteria": "house"});
    let result = client.call("evaluate", &call);
    assert_eq!(result["isError"], false);
    assert!(text(&result).contains("clear"), "{result:#}");
    let outcome = &result["structuredContent"];
    assert_eq!(
        (&outcome["success"], &outcome["output"]),
        (&json!(false), &json!(null))
    );
    assert_eq!(outcome["issues"][0]["criterion"], "clear");
    assert_eq!(outcome["criteria_scores"]["short"], 1.0);

    let result = client.call("revise", &call);
    assert_eq!(text(&result), SECOND, "{result:#}");
    client.end();
}

#[test]
fn criteria_are_names() {
    let server = Server::start();
    let test = world(&server)
        .file("secret.toml", CRITERIA)
        .file("folder/criteria.toml", CRITERIA);
    #[cfg(unix)]
    std::os::unix::fs::symlink(test.path("secret.toml"), test.path("criteria/link.toml"))
        .expect("a link");
    let absolute = test.path("secret.toml").display().to_string();
    let mut client = Client::start(test, &FOLDER);
    let listed = client.call("list_criteria", &json!({}));
    let names: Vec<&str> = listed["structuredContent"]["criteria"]
        .as_array()
        .expect("criteria")
        .iter()
        .filter_map(|set| set["name"].as_str())
        .collect();
    assert!(
        names.contains(&"house") && names.contains(&"writing"),
        "{names:?}"
    );
    assert!(!names.contains(&"link"), "{names:?}");
    for bad in [
        "hous",
        "../secret",
        "../secret.toml",
        "secret.toml",
        "house.toml",
        "criteria/house",
        "link",
        &absolute,
        CRITERIA,
        "-",
        "",
    ] {
        let error = client.fails("draft", &json!({"prompt": "x", "criteria": bad}));
        assert!(error.starts_with("error: no criteria named"), "{error}");
        assert!(
            error.contains("\nhint: ") && error.contains("`house`"),
            "{error}"
        );
    }
    for (tool, bad) in [
        ("draft", json!({"prompt": " "})),
        ("draft", json!({})),
        ("revise", json!({"text": "", "criteria": "house"})),
        ("revise", json!({"text": "x"})),
        ("evaluate", json!({"text": "\n", "criteria": "house"})),
        ("draft", json!({"prompt": "x", "max_iterations": 0})),
        ("draft", json!({"prompt": "x", "max_iterations": "many"})),
    ] {
        client.fails(tool, &bad);
    }
    assert_eq!(server.calls(), 0);
    client.end();
}

#[test]
fn programs_need_permission_at_start() {
    let call = json!({"text": "x", "criteria": "command"});
    let mut client = Client::start(world(&Server::start()), &FOLDER);
    let error = client.fails("evaluate", &call);
    assert!(error.contains("needs your permission"), "{error}");
    client.end();

    let args = [&FOLDER[..], &["--allow-exec"]].concat();
    let mut client = Client::start(world(&Server::start()), &args);
    let result = client.call("evaluate", &call);
    assert_eq!(result["structuredContent"]["success"], true, "{result:#}");
    client.end();
}

#[test]
fn a_cancelled_call_can_be_resumed() {
    let server = slow();
    let mut client = Client::start(world(&server), &FOLDER);
    let id = client.begin("draft", &draft());
    client.until(id, "draft 1: writing");
    while server.calls() < 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let cancelled = json!({"requestId": id, "reason": "enough"});
    client.notify("notifications/cancelled", &cancelled);
    // The server goes on; the run has ended as soon as the log says so.
    let start = Instant::now();
    loop {
        let shown = client.call("show_run", &json!({"run_id": "last"}));
        if shown["structuredContent"]["convergence_reason"] == "interrupted" {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{shown:#}");
    }
    assert!(client.messages().iter().all(|message| message["id"] != id));
    let ran = client.end();
    for reply in usual() {
        server.reply(reply);
    }
    ran.then(["history", "resume", "last"])
        .stdout(&format!("{SECOND}\n"))
        .run();
}

#[test]
fn the_end_of_input_cancels_calls() {
    let server = slow();
    let mut client = Client::start(world(&server), &FOLDER);
    let id = client.begin("draft", &draft());
    client.until(id, "draft 1: writing");
    let ran = client.end();
    assert_eq!(ran.history()["convergence_reason"], "interrupted");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_server() {
    for signal in ["INT", "TERM"] {
        let server = slow();
        let mut client = Client::start(world(&server), &FOLDER);
        let id = client.begin("draft", &draft());
        client.until(id, "draft 1: writing");
        client.running.signal(signal);
        let ran = client.running.finish();
        assert_eq!(ran.history()["convergence_reason"], "interrupted");
    }
}

#[test]
fn requests_before_the_end_of_input_are_answered() {
    let about = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"}});
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "list_criteria", "arguments": {}}}),
    ];
    let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
    let input = lines.join("\n") + "\n";
    let ran = Test::new().arg("mcp").stdin(input).run();
    assert_eq!(ran.lines().len(), 2, "{}", ran.stdout);
    Test::new().arg("mcp").stdout("").run();
}

#[test]
fn several_calls_at_once() {
    let server = Server::start();
    server.on(Purpose::Write, |_| {
        Reply::text(SECOND).first_wait(Duration::from_secs(2))
    });
    server.on(Purpose::Judge, |_| Reply::text(&verdict(5).to_string()));
    let mut client = Client::start(world(&server), &FOLDER);
    let ids: Vec<u64> = (0..4).map(|_| client.begin("draft", &draft())).collect();
    // All of them wait for the model before the first is answered.
    while server.calls() < ids.len() {
        let messages = client.messages();
        let answered = messages
            .iter()
            .any(|it| ids.iter().any(|id| it["id"] == *id));
        assert!(!answered, "one after the other: {messages:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    for id in ids {
        assert_eq!(text(&client.result(id)), SECOND);
    }
    client.end();
}

#[test]
fn a_provider_that_fails() {
    let server = answering([Fault::status(401)]);
    let mut client = Client::start(world(&server), &FOLDER);
    let error = client.fails("draft", &draft());
    assert!(
        error.starts_with("error: ") && !error.contains(KEY),
        "{error}"
    );
    client.end();
}

#[test]
fn a_key_in_a_draft_does_not_reach_the_client() {
    let said = format!("The key is {KEY}.");
    let server = answering([Reply::text(&said), Reply::text(&verdict(5).to_string())]);
    let mut client = Client::start(world(&server), &[&FOLDER[..], &["--no-log"]].concat());
    let result = client.call("draft", &draft());
    assert_eq!(text(&result), "The key is [key].");
    assert_eq!(result["structuredContent"]["output"], "The key is [key].");
    client.end();
}

#[test]
fn wrong_flags_end_the_server_at_once() {
    for (args, said) in [
        (["--criteria-dir", "nowhere"], "`nowhere` is not a folder"),
        (["--max-time", "soon"], "--max-time"),
    ] {
        Test::new()
            .arg("mcp")
            .args(args)
            .code(2)
            .stderr_has(said)
            .run();
    }
}

/// The official client, of the Python SDK: `MCP_PYTHON` names an interpreter that has it.
#[test]
fn the_official_client() {
    let Some(python) = std::env::var_os("MCP_PYTHON") else {
        let required = std::env::var_os("REFLECT_TEST_REQUIRE_ALL").is_some_and(|v| v == "1");
        assert!(
            !required,
            "MCP_PYTHON names no interpreter with the package `mcp`"
        );
        eprintln!("skipped: MCP_PYTHON names no interpreter with the package `mcp`");
        return;
    };
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join(python);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.py");
    for mode in ["auto", "legacy"] {
        let replies = usual().into_iter();
        let server = answering(
            replies.chain([Reply::pieces(&["word "; 600]).wait(Duration::from_millis(50))]),
        );
        let ran = world(&server)
            .program(&python.display().to_string())
            .arg(&script)
            .args([mode, env!("CARGO_BIN_EXE_reflect"), "mcp", "--quiet"])
            .args(FOLDER)
            .run();
        insta::assert_snapshot!(format!("mcp_client_{mode}"), ran.plain(&ran.stdout));
        assert_eq!(ran.history()["convergence_reason"], "interrupted");
    }
}
