//! Batches: every task has exactly one row, whatever happens to the server, the process or the input.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Ran, Test};
use crate::plan::{verdict, with_server};
use crate::support::server::{Fault, Planned, Protocol, Purpose, Reply, Server};

/// Returns tasks with the ids `t0`, `t1`, …
pub(crate) fn tasks(number: usize) -> String {
    (0..number)
        .map(|n| {
            json!({"id": format!("t{n}"), "prompt": format!("Write about item {n}.")}).to_string()
                + "\n"
        })
        .collect()
}

/// Starts a server that writes a text for every task and judges it as good.
pub(crate) fn server() -> Server {
    slow_server(Duration::ZERO)
}

fn slow_server(wait: Duration) -> Server {
    let server = Server::start();
    server.on(Purpose::Write, move |request| {
        let prompt = request.prompt();
        let item = prompt.split("Write about ").nth(1).unwrap_or_default();
        let item: String = item.chars().take_while(|c| *c != '.').collect();
        Reply::text(&format!("A text about {item}.")).first_wait(wait)
    });
    server.on(Purpose::Judge, move |_| {
        Reply::text(&verdict(5).to_string()).first_wait(wait)
    });
    server
}

/// Creates a world with this many tasks; the arguments are added later.
pub(crate) fn world(server: &Server, number: usize) -> Test {
    with_server(server, Protocol::OpenAi).file("tasks.jsonl", tasks(number))
}

pub(crate) const BATCH: [&str; 6] = [
    "batch",
    "tasks.jsonl",
    "-c",
    "criteria.toml",
    "-o",
    "out.jsonl",
];

/// Reads the rows from the file; every line must be JSON.
#[track_caller]
pub(crate) fn rows(ran: &Ran) -> Vec<Value> {
    let text = ran.read("out.jsonl");
    assert!(
        text.is_empty() || text.ends_with('\n'),
        "the last row is incomplete"
    );
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect()
}

/// Returns the status by id. Every id must have one row.
#[track_caller]
pub(crate) fn statuses(rows: &[Value]) -> BTreeMap<String, String> {
    let mut statuses = BTreeMap::new();
    for row in rows {
        let text = |key: &str| row[key].as_str().expect("a text").to_owned();
        let twice = statuses.insert(text("id"), text("status"));
        assert_eq!(twice, None, "{} has two rows", row["id"]);
    }
    statuses
}

#[track_caller]
fn all_met(rows: &[Value], number: usize) {
    let statuses = statuses(rows);
    assert_eq!(statuses.len(), number, "{statuses:?}");
    for (id, status) in statuses {
        assert_eq!(status, "met", "{id}");
    }
}

/// Waits for a condition.
#[track_caller]
fn until(what: &str, happened: impl Fn() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "waiting for {what}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn every_task_has_a_row_and_a_run() {
    let server = server();
    let ran = world(&server, 12)
        .args(BATCH)
        .stdout("")
        .stderr_has("12 tasks: 12 met")
        .run();
    let rows = rows(&ran);
    all_met(&rows, 12);
    assert_eq!(server.calls(), 24);
    let row = rows.iter().find(|row| row["id"] == "t7").expect("its row");
    assert_eq!(row["output"], "A text about item 7.");
    assert_eq!((&row["line"], &row["exit_code"]), (&json!(8), &json!(0)));
    assert_eq!(row["convergence_reason"], "quality_met");
    assert_eq!(row["token_usage"]["total"], 240);
    assert!(row["overall_score"].as_f64() > Some(0.8) && row["error"].is_null());
    let id = row["run_id"].as_str().expect("a run");
    ran.then(["history", "show", id, "--best"])
        .stdout("A text about item 7.\n")
        .run();
    // Nothing is left to do, and no model is called.
    ran.then(BATCH).stderr_has("12 tasks: 12 met").run();
    assert_eq!(server.calls(), 24);
}

#[test]
fn without_a_log_only_the_rows_are_kept() {
    let server = server();
    let ran = world(&server, 3).args(BATCH).arg("--no-log").run();
    all_met(&rows(&ran), 3);
    assert_eq!(
        ran.then(["history", "list", "--json"]).run().json(),
        json!([])
    );
}

#[test]
fn connections_are_shared() {
    let server = slow_server(Duration::from_millis(5));
    world(&server, 30).args(BATCH).args(["-j", "3"]).run();
    assert!(server.connections() <= 6, "{}", server.connections());
}

/// Starts a server with the given faults that otherwise writes a text and judges it as good.
pub(crate) fn server_with_faults(
    fault: impl Fn() -> Option<Fault> + Clone + Send + Sync + 'static,
) -> Server {
    let server = Server::start();
    let other = fault.clone();
    server.on(Purpose::Write, move |_| match fault() {
        Some(fault) => Planned::from(fault),
        None => Reply::text("A text.").into(),
    });
    server.on(Purpose::Judge, move |_| match other() {
        Some(fault) => Planned::from(fault),
        None => Reply::text(&verdict(5).to_string()).into(),
    });
    server
}

#[test]
fn every_id_has_one_row_despite_faults_of_every_kind() {
    const TASKS: usize = 60;
    let calls = Arc::new(AtomicUsize::new(0));
    let server = server_with_faults(move || {
        // Each kind in one of twenty calls.
        Some(match calls.fetch_add(1, Ordering::Relaxed) % 20 {
            1 => Fault::status(500),
            3 => Fault::rate_limit("retry-after-ms", "20"),
            5 => Fault::Reset,
            7 => Fault::Unfinished(vec!["half a".to_owned()]),
            9 => Fault::Raw(b"data: nonsense\n\n".to_vec()),
            11 => Fault::error(
                400,
                &json!({"error": {"message": "messages: not like this"}}),
            ),
            13 => Fault::error(413, &json!({"error": {"message": "Request too large"}})),
            15 => Fault::Cut(Reply::pieces(&["A", " text", " that", " ends"])),
            17 => Fault::status(503),
            _ => return None,
        })
    });
    let ran = world(&server, TASKS)
        .args(BATCH)
        .args(["--retries", "1", "-j", "8"])
        .code(4)
        .stderr_has("60 tasks: ")
        .run();
    let first = rows(&ran);
    let became = statuses(&first);
    assert_eq!(became.len(), TASKS);
    let failed = first.iter().filter(|row| row["status"] == "failed").count();
    assert!(failed > 5 && failed < TASKS, "{failed}");
    for row in &first {
        let said = row["error"].as_str().is_some_and(|error| !error.is_empty());
        assert_eq!(said, row["status"] != "met", "{row}");
    }
    // Failed tasks are repeated; successful ones are not.
    let good = repair(&server);
    let again = ran.then(BATCH).arg("--retry-failed").run();
    all_met(&rows(&again), TASKS);
    assert!(good.load(Ordering::Relaxed) <= 2 * failed);
    let kept = |rows: &[Value]| -> Vec<String> {
        let rows = rows
            .iter()
            .filter(|row| became[row["id"].as_str().expect("an id")] == "met");
        rows.map(Value::to_string).collect()
    };
    assert_eq!(kept(&rows(&again)), kept(&first));
}

/// Makes the server behave from now on, and counts its calls.
fn repair(server: &Server) -> Arc<AtomicUsize> {
    let calls = Arc::new(AtomicUsize::new(0));
    let (a, b) = (Arc::clone(&calls), Arc::clone(&calls));
    server.on(Purpose::Write, move |_| {
        a.fetch_add(1, Ordering::Relaxed);
        Reply::text("A text.")
    });
    server.on(Purpose::Judge, move |_| {
        b.fetch_add(1, Ordering::Relaxed);
        Reply::text(&verdict(5).to_string())
    });
    calls
}

#[test]
fn killing_the_process_at_any_time_loses_no_row() {
    const TASKS: usize = 250;
    let server = slow_server(Duration::from_millis(8));
    let first = world(&server, TASKS).arg("--version").run();
    let mut last = 0;
    for round in 0..20 {
        let running = first.then(BATCH).args(["-j", "4", "-q"]).spawn();
        // Each round uses another moment, the same in every test run: before the first call, during it, after
        // some.
        let calls = server.calls() + round * 7 % 19;
        until("the batch to make progress", || server.calls() >= calls);
        running.kill_after(Duration::from_millis(round as u64 * 5 % 13));
        let text = std::fs::read_to_string(first.path("out.jsonl")).unwrap_or_default();
        let whole = text.matches('\n').count();
        assert!(whole >= last, "rows were lost");
        last = whole;
    }
    assert!(last > 0 && last < TASKS, "{last}");
    let ran = first.then(BATCH).run();
    all_met(&rows(&ran), TASKS);
    for row in rows(&ran) {
        let item = row["id"]
            .as_str()
            .expect("an id")
            .trim_start_matches('t')
            .to_owned();
        assert_eq!(row["output"], format!("A text about item {item}."));
    }
}

#[test]
fn an_incomplete_row_is_repeated() {
    let server = server();
    let ran = world(&server, 3).args(BATCH).args(["-j", "1"]).run();
    let text = ran.read("out.jsonl");
    let torn = &text[..text.len() - 20];
    let again = world(&server, 3)
        .file("out.jsonl", torn)
        .args(BATCH)
        .stderr_has("2 tasks already done in `out.jsonl`")
        .stderr_has("is incomplete; running its task again")
        .run();
    all_met(&rows(&again), 3);
    assert_eq!(server.calls(), 6 + 2);
}

#[test]
fn a_batch_survives_a_burst_of_429s() {
    let server = server();
    for _ in 0..25 {
        server.fault(Fault::rate_limit("retry-after-ms", "40"));
    }
    let ran = world(&server, 30)
        .args(BATCH)
        // A local server starts with one call at a time, which may receive all of the 429s.
        .args(["--retries", "25"])
        .run();
    all_met(&rows(&ran), 30);
    assert_eq!(server.calls(), 60 + 25);
}

#[test]
fn requests_per_minute_are_limited() {
    let server = server();
    let args = ["--requests-per-minute", "600", "-j", "8"];
    let ran = world(&server, 10).args(BATCH).args(args).run();
    all_met(&rows(&ran), 10);
    // The first eleven of 20 calls start immediately, the others at ten per second.
    assert!(ran.took > Duration::from_millis(800), "{:?}", ran.took);
}

#[test]
fn rows_are_written_on_completion_or_in_order() {
    let server = Server::start();
    server.on(Purpose::Write, |request| {
        let first = request.prompt().contains("about item 0.");
        let wait = Duration::from_millis(if first { 400 } else { 0 });
        Reply::text("A text.").first_wait(wait)
    });
    server.on(Purpose::Judge, |_| Reply::text(&verdict(5).to_string()));
    let args = ["batch", "tasks.jsonl", "-c", "criteria.toml", "-j", "4"];
    let lines = |ran: Ran| -> Vec<u64> {
        ran.lines()
            .iter()
            .map(|row| row["line"].as_u64().expect("a line"))
            .collect()
    };
    let as_done = lines(world(&server, 8).args(args).run());
    assert_eq!(as_done.last(), Some(&1));
    let in_order = lines(world(&server, 8).args(args).arg("--ordered").run());
    assert_eq!(in_order, (1..=8).collect::<Vec<u64>>());
}

#[test]
fn csv_and_a_template() {
    let server = server();
    let csv = "id,topic,style\na,\"tea, green\",plain\nb,milk,\"\"\nc,oat\n";
    let ran = with_server(&server, Protocol::OpenAi)
        .file("topics.csv", csv)
        .args([
            "batch",
            "topics.csv",
            "-c",
            "criteria.toml",
            "-o",
            "out.jsonl",
        ])
        .args(["--prompt", "Write about {{ topic }}. Style: {{ style }}"])
        .code(2)
        .stderr_has("topics.csv:4: it has 2 columns, and the first line names 3")
        .run();
    let rows = rows(&ran);
    let output =
        |id: &str| rows.iter().find(|row| row["id"] == id).expect("a row")["output"].clone();
    assert_eq!(output("a"), "A text about tea, green.");
    assert_eq!(output("b"), "A text about milk.");
    let bad = rows.iter().find(|row| row["id"].is_null()).expect("a row");
    assert_eq!(
        (&bad["line"], &bad["status"]),
        (&json!(4), &json!("invalid"))
    );
}

#[test]
fn standard_input_and_lines_without_id() {
    let server = server();
    let ran = with_server(&server, Protocol::OpenAi)
        .args(["batch", "-", "-c", "criteria.toml", "--ordered", "-q"])
        .stdin("{\"prompt\": \"Write about tea.\"}\n\n{\"prompt\": \"Write about {{ x }}.\", \"vars\": {\"x\": 7}}\n")
        .stderr("")
        .run();
    let rows = ran.lines();
    assert_eq!((&rows[0]["id"], &rows[1]["id"]), (&json!("1"), &json!("3")));
    assert_eq!(rows[1]["output"], "A text about 7.");
}

/// Ctrl-D, as a keyboard sends it: the end of input.
#[cfg(unix)]
const CTRL_D: &str = "\u{4}";

#[cfg(unix)]
#[test]
fn typing_tasks_shows_a_hint_about_ctrl_d_unless_quiet() {
    let said = "reading tasks from standard input; end them with Ctrl-D";
    let server = server();
    let batch =
        || with_server(&server, Protocol::OpenAi).args(["batch", "-", "-c", "criteria.toml"]);
    let terminal = batch().at_terminal(24, 80);
    terminal.until(said).press(CTRL_D);
    terminal.finish();
    let terminal = batch().arg("-q").stderr_lacks(said).at_terminal(24, 80);
    terminal.press(CTRL_D);
    terminal.finish();
}

#[cfg(unix)]
#[test]
fn the_progress_bar_shows_the_rate() {
    let server = slow_server(Duration::from_millis(150));
    let terminal = world(&server, 6)
        .args(BATCH)
        .args(["-j", "1"])
        .at_terminal(24, 100);
    let rate = regex::Regex::new(r" · ([1-9]\d*\.\d|0\.[1-9]) a second · .* left · 1 at once");
    let rate = rate.expect("a pattern");
    terminal.until_screen("a rate", |screen| rate.is_match(screen));
    terminal.finish();
}

const BAD: &str = "{\"id\": \"a\", \"prompt\": \"Write about tea.\"}\nnonsense\n{\"id\": \"b\", \"promt\": \"x\"}\n\
                   {\"id\": \"a\", \"prompt\": \"Write about tea again.\"}\n\
                   {\"id\": \"c\", \"prompt\": \"x\", \"criteria\": \"missing.toml\"}\n\
                   {\"id\": \"d\", \"prompt\": \"Write about milk.\"}\n";

#[test]
fn bad_lines_do_not_stop_other_tasks() {
    let server = server();
    let ran = with_server(&server, Protocol::OpenAi)
        .file("tasks.jsonl", BAD)
        .args(BATCH)
        .code(2)
        .stderr_has("warning: tasks.jsonl:2: invalid JSON")
        .stderr_has("warning: tasks.jsonl:3: unknown key `promt`: did you mean `prompt`?")
        .stderr_has("warning: tasks.jsonl:4: the id `a` is already used by an earlier task")
        .stderr_has("the criteria `missing.toml` cannot be used")
        .stderr_has("6 tasks: 2 met, 4 invalid")
        .run();
    let mut rows = rows(&ran);
    rows.sort_by_key(|row| row["line"].as_u64());
    let ids: Vec<&Value> = rows.iter().map(|row| &row["id"]).collect();
    assert_eq!(json!(ids), json!(["a", null, "b", null, "c", "d"]));
    for row in &rows {
        assert_eq!(row["status"] == "met", row["error"].is_null(), "{row}");
    }
    assert_eq!(server.calls(), 4);
    // They have no second row, and can be fixed.
    let before = ran.read("out.jsonl");
    let again = ran.then(BATCH).code(2).run();
    assert_eq!(again.read("out.jsonl"), before);
    let fixed = again
        .then(BATCH)
        .file(
            "tasks.jsonl",
            BAD.replace("promt", "prompt")
                .replace("missing.toml", "criteria.toml"),
        )
        .arg("--retry-failed")
        .code(2)
        .stderr_has("6 tasks: 4 met, 2 invalid")
        .run();
    assert_eq!(fixed.read("out.jsonl").lines().count(), 6);
}

#[test]
fn with_fail_fast_a_bad_line_is_found_before_any_call() {
    let server = server();
    with_server(&server, Protocol::OpenAi)
        .file("tasks.jsonl", BAD)
        .args(BATCH)
        .arg("--fail-fast")
        .code(2)
        .stdout("")
        .stderr_has("tasks.jsonl:2: invalid JSON")
        .stderr_has("hint: no task was started")
        .run();
    assert_eq!(server.calls(), 0);
}

#[test]
fn with_fail_fast_nothing_starts_after_a_failure() {
    let server = server();
    server.fault(Fault::error(
        400,
        &json!({"error": {"message": "not like this"}}),
    ));
    let ran = world(&server, 20)
        .args(BATCH)
        .args(["--fail-fast", "-j", "1"])
        .code(4)
        .stderr_has("task `t0` failed: ")
        .stderr_has("`--fail-fast` is set")
        .run();
    assert_eq!(rows(&ran).len(), 1);
    assert_eq!(server.calls(), 1);
}

#[test]
fn tasks_with_the_same_criteria_follow_each_other() {
    let server = server();
    let other = "name = 'short'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nunit = 'words'\nmax = 50";
    let lines: String = (0..6)
        .map(|n| {
            let criteria = if n % 2 == 0 {
                "criteria.toml"
            } else {
                "other.toml"
            };
            json!({"prompt": format!("Write about item {n}."), "criteria": criteria}).to_string()
                + "\n"
        })
        .collect();
    let ran = with_server(&server, Protocol::OpenAi)
        .file("tasks.jsonl", lines)
        .file("other.toml", other)
        .args(BATCH)
        .args(["-j", "1"])
        .run();
    let order: Vec<u64> = rows(&ran)
        .iter()
        .map(|row| row["line"].as_u64().expect("a line"))
        .collect();
    assert_eq!(order, [1, 3, 5, 2, 4, 6]);
    // Only half of them need a judge.
    assert_eq!(server.calls(), 6 + 3);
}

#[test]
fn shards_together_cover_all_tasks() {
    let server = server();
    let mut ids = Vec::new();
    for part in ["0/3", "1/3", "2/3"] {
        let ran = world(&server, 10).args(BATCH).args(["--shard", part]).run();
        let rows = rows(&ran);
        assert!((3..=4).contains(&rows.len()), "{part}");
        ids.extend(statuses(&rows).into_keys());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 10);
    world(&server, 1)
        .args(BATCH)
        .args(["--shard", "3/3"])
        .code(2)
        .stderr_has("from 0 to 2")
        .run();
}

#[test]
fn limits_apply_to_all_tasks_together() {
    let server = server();
    let ran = world(&server, 10)
        .args(BATCH)
        .args(["--max-total-tokens", "500", "-j", "1"])
        .code(5)
        .stderr_has("token limit reached")
        .run();
    // Each task uses 240 tokens.
    all_met(&rows(&ran), 3);
    let ran = ran
        .then(BATCH)
        .args(["--max-total-tokens", "240", "-j", "1", "--exit-zero"])
        .run();
    all_met(&rows(&ran), 4);
    ran.then(BATCH)
        .args(["--max-cost", "1"])
        .code(2)
        .stderr_has("no price set for `openai:test`")
        .run();
    let prices = "[prices.test]\ninput = 1000.0\noutput = 1000.0\n";
    let ran = ran
        .then(BATCH)
        .file("prices.toml", prices)
        .args(["--config", "prices.toml", "--max-cost", "0.4", "-j", "1"])
        .code(5)
        .stderr_has("cost limit reached")
        .run();
    // Each task costs 0.24.
    all_met(&rows(&ran), 6);
    let ran = ran.then(BATCH).run();
    all_met(&rows(&ran), 10);
    assert_eq!(server.calls(), 20);
}

#[test]
fn the_time_limit_cancels_tasks_in_progress() {
    let server = slow_server(Duration::from_secs(20));
    let ran = world(&server, 5)
        .args(BATCH)
        .args(["--max-time", "700ms"])
        .code(5)
        .stderr_has("time limit reached")
        .run();
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    assert!(rows(&ran).is_empty());
}

#[test]
fn a_failure_that_affects_all_tasks_stops_the_batch_without_failing_any() {
    let server = server();
    server.fault_at(
        5,
        Fault::error(401, &json!({"error": {"message": "Incorrect API key"}})),
    );
    server.fault_at(
        1,
        Fault::error(400, &json!({"error": {"message": "not like this"}})),
    );
    let ran = world(&server, 10)
        .args(BATCH)
        .args(["-j", "1", "--retries", "0"])
        .code(4)
        .stderr_has("not authorized: Incorrect API key")
        .stderr_has("all other tasks would fail too")
        .run();
    let rows = rows(&ran);
    assert!((1..10).contains(&rows.len()), "{rows:?}");
    assert!(
        rows.iter()
            .all(|row| !row["error"].to_string().contains("API key"))
    );
    let ran = ran.then(BATCH).arg("--retry-failed").run();
    all_met(&self::rows(&ran), 10);
}

#[test]
fn two_batches_do_not_write_to_the_same_file() {
    let server = slow_server(Duration::from_millis(300));
    let first = world(&server, 2).arg("--version").run();
    let running = first.then(BATCH).spawn();
    until("the first call", || server.calls() > 0);
    first
        .then(BATCH)
        .code(2)
        .stderr_has("another batch is writing to `out.jsonl`")
        .run();
    all_met(&rows(&running.finish()), 2);
    first
        .then(["batch", "tasks.jsonl", "-o", "criteria.toml"])
        .code(2)
        .stderr_has("`criteria.toml`, line 2: not a batch result")
        .run();
    for (output, said) in [
        ("tasks.jsonl", "`--output` is also the input file"),
        ("nowhere/out.jsonl", "no such folder: `nowhere`"),
    ] {
        first
            .then(["batch", "tasks.jsonl", "-o", output])
            .code(2)
            .stderr_has(said)
            .run();
    }
}

#[cfg(unix)]
#[test]
fn a_signal_lets_tasks_in_progress_finish() {
    const TASKS: usize = 40;
    let server = slow_server(Duration::from_millis(60));
    let first = world(&server, TASKS).arg("--version").run();
    let running = first
        .then(BATCH)
        .args(["-j", "4"])
        .code(130)
        .stderr_has("the batch was stopped: interrupted")
        .stderr_has("run the same command again")
        .stderr_lacks("verdict: ")
        .spawn();
    until("some calls", || server.calls() >= 12);
    running.signal("INT");
    let ran = running.finish();
    let done = rows(&ran).len();
    assert!((4..TASKS).contains(&done), "{done}");
    let ran = ran.then(BATCH).run();
    all_met(&rows(&ran), TASKS);
    // No call was repeated.
    assert_eq!(server.calls(), 2 * TASKS);
}

#[cfg(unix)]
#[test]
fn a_second_signal_exits_immediately() {
    let server = slow_server(Duration::from_secs(20));
    let running = world(&server, 5).args(BATCH).code(130).spawn();
    until("the first call", || server.calls() > 0);
    running.signal("INT");
    std::thread::sleep(Duration::from_millis(100));
    running.signal("INT");
    let ran = running.finish();
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
    assert!(rows(&ran).is_empty());
}

#[test]
fn a_closed_pipe_ends_the_batch_quietly() {
    let server = server();
    world(&server, 50)
        .args(["batch", "tasks.jsonl", "-c", "criteria.toml", "-q"])
        .closed_stdout()
        .stderr("")
        .run();
    assert!(server.calls() < 100);
}

#[test]
fn criteria_that_run_programs_need_permission_for_every_task() {
    let server = server();
    let runs = "name = 'r'\n[[criteria]]\nname = 'r'\nevaluator = 'command'\ncommand = ['true']";
    let ran = with_server(&server, Protocol::OpenAi)
        .file("runs.toml", runs)
        .file(
            "tasks.jsonl",
            "{\"id\": \"a\", \"prompt\": \"Write about tea.\", \"criteria\": \"runs.toml\"}\n",
        )
        .args(BATCH)
        .code(2)
        .stderr_has("needs your permission")
        .run();
    assert_eq!(rows(&ran)[0]["status"], "invalid");
    assert_eq!(server.calls(), 0);
}

#[test]
fn impossible_options_are_rejected_before_any_call() {
    let server = server();
    for (args, said) in [
        (
            &["batch", "missing.jsonl"][..],
            "cannot read `missing.jsonl`",
        ),
        (&["batch", "."], "it is a directory"),
        (
            &["batch", "tasks.jsonl", "--prompt", "{{ x"],
            "--prompt: invalid template",
        ),
        (
            &["batch", "tasks.jsonl", "-j", "0"],
            "a number from 1 to 1024",
        ),
        (&["batch", "tasks.jsonl", "--retry-failed"], "--output"),
        (
            &["batch", "tasks.jsonl", "--retry-failed", "-o", "-"],
            "needs `--output FILE`",
        ),
        (&["batch", "tasks.jsonl", "--max-cost=-1"], "max_cost"),
        (
            &["batch", "tasks.jsonl", "--reflection-interval", "2"],
            "add `--steps`",
        ),
    ] {
        world(&server, 1)
            .args(args)
            .code(2)
            .stdout("")
            .stderr_has(said)
            .run();
    }
    let ran = world(&server, 0).args(BATCH).stderr_has("no tasks").run();
    assert_eq!(ran.read("out.jsonl"), "");
    assert_eq!(server.calls(), 0);
}

/// A build without the feature reports that, whatever the server.
#[cfg(not(feature = "restate"))]
#[test]
fn workers_need_the_restate_feature() {
    let hint = "build it with `cargo install --path . --features restate`";
    Test::new()
        .args(["worker", "--engine", "restate://127.0.0.1:1"])
        .code(2)
        .stdout("")
        .stderr_has(hint)
        .run();
    let server = server();
    world(&server, 1)
        .args(BATCH)
        .args(["--engine", "restate://127.0.0.1:1"])
        .code(2)
        .stdout("")
        .stderr_has(hint)
        .run();
    assert_eq!(server.calls(), 0);
}

/// A batch calls its models through a gate, which must not hide the server's capabilities.
#[test]
fn a_batch_sends_the_same_requests_as_a_single_draft() {
    let server = server();
    let judged = || {
        let mut asked = server.requests();
        asked.retain(|request| request.body.to_string().contains("json_schema"));
        asked.last().expect("a verdict").prompt()
    };
    let ran = world(&server, 1).args(BATCH).run();
    all_met(&rows(&ran), 1);
    let in_batch = judged();
    ran.then(["draft", "Write about item 0.", "-c", "criteria.toml"])
        .run();
    let alone = judged();
    for prompt in [in_batch, alone] {
        assert!(prompt.ends_with("Return only JSON."), "{prompt}");
    }
}
