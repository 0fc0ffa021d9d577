//! The reflector's automatic assessments of batches and workflows, and what batches store in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::batch::{BATCH, rows, server, server_with_faults, statuses, world};
use crate::harness::Test;
use crate::memory::listed;
use crate::plan::{FIRST, verdict};
use crate::support::server::{Fault, Purpose, Reply, Server};

/// Starts a server on which every twentieth call fails, each time in another way.
fn faulty_server() -> Server {
    let calls = Arc::new(AtomicUsize::new(0));
    server_with_faults(move || {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        (call % 20 == 19).then(|| match call / 20 % 4 {
            0 => Fault::status(500),
            1 => Fault::Reset,
            2 => Fault::error(400, &json!({"error": {"message": "not like this"}})),
            _ => Fault::status(503),
        })
    })
}

#[test]
fn the_verdict_on_a_faulty_batch_agrees_with_its_rows() {
    let server = faulty_server();
    let ran = world(&server, 60)
        .args(BATCH)
        .args(["--retries", "0", "--no-cache", "-j", "4"])
        .code(4)
        .stderr_has("  pattern: repeated_errors: ")
        .stderr_has(" attempts failed in the same way: network (")
        .stderr_has("  suggestion: check the network and the address")
        .stderr_has("  hint: `--retry-failed --replan 2` retries the failed tasks")
        .run();
    let all = rows(&ran);
    assert_eq!(statuses(&all).len(), 60);
    let of = |category: &str| {
        let same = |row: &&Value| row["error_category"] == category;
        all.iter().filter(same).count()
    };
    let failed = all.iter().filter(|row| row["status"] == "failed").count();
    assert!((3..=8).contains(&failed), "{failed}");
    // A rejected request is another category of failure.
    assert!(of("network") >= 2 && of("validation") >= 1);
    assert_eq!(of("network") + of("validation"), failed);
    let said = format!(
        "verdict: tasks.jsonl: succeeded, {} of 60 tasks done, {failed} failed",
        60 - failed
    );
    assert!(ran.stderr.contains(&said), "{said}\n{}", ran.stderr);
}

#[test]
fn the_criteria_come_from_the_configuration_and_earlier_rows_count() {
    let server = server();
    server.fault_at(1, Fault::error(400, &json!({"error": {"message": "no"}})));
    let ran = world(&server, 4)
        .args(BATCH)
        .args(["-j", "1"])
        .code(4)
        .stderr_has("verdict: tasks.jsonl: failed, 3 of 4 tasks done, 1 failed")
        .run();
    let five = "{\"id\": \"t4\", \"prompt\": \"Write about item 4.\"}\n";
    let tasks = ran.read("tasks.jsonl") + five;
    ran.then(BATCH)
        .file("tasks.jsonl", tasks)
        .file("mild.toml", "[reflector]\nmin_success_rate = 0.75\n")
        .args(["--config", "mild.toml"])
        .code(4)
        .stderr_has("verdict: tasks.jsonl: succeeded, 4 of 5 tasks done, 1 failed")
        .run();
    // No task ran, so there is nothing to assess.
    ran.then(BATCH).code(4).stderr_lacks("verdict: ").run();
}

#[test]
fn a_task_that_misses_its_criteria_counts_as_failed() {
    let server = Server::start();
    server.on(Purpose::Write, |_| Reply::text("A text."));
    server.on(Purpose::Judge, |_| Reply::text(&verdict(2).to_string()));
    world(&server, 3)
        .args(BATCH)
        .args(["-n", "1"])
        .code(3)
        .stderr_has("verdict: tasks.jsonl: failed, 0 of 3 tasks done, 3 failed")
        .stderr_has("  suggestion: where criteria are not met: more drafts (`-n`)")
        .stderr_lacks("--replan")
        .run();
}

/// A workflow of two nodes, of which the second calls a model.
const FLOW: &str = "\
name: flow
nodes:
  - name: prepare
    run: return { topic = 'tea' }
    language: lua
  - name: write
    uses: llm.call
    with:
      prompt: Write about {{ state.topic }}.
edges:
  - {from: __start__, to: prepare}
  - {from: prepare, to: write}
  - {from: write, to: __end__}
";

fn flow(replies: &str) -> Test {
    Test::new()
        .file("flow.yaml", FLOW)
        .file("script.toml", replies)
        .args(["run", "flow.yaml", "--provider", "scripted:script.toml"])
}

#[test]
fn a_workflow_that_fails_ends_with_a_verdict_on_its_nodes() {
    flow("[[reply]]\nerror = { class = 'transient', message = 'the request timed out' }\n")
        .args(["--retries", "0"])
        .code(4)
        .stderr_has("verdict: flow: failed, 1 of 2 tasks done, 1 failed, try another plan")
        .stderr_has("  suggestion: raise the timeout, or break the task into smaller ones")
        .run();
    let good = "[[reply]]\ntext = 'A text about tea.'\n";
    flow(good)
        .stdout("A text about tea.\n")
        .stderr_lacks("verdict: ")
        .run();
    flow(good)
        .arg("-v")
        .stderr_has("verdict: flow: succeeded, 2 of 2 tasks done")
        .run();
    // An error in the file says nothing about the plan.
    flow(good)
        .file("flow.yaml", FLOW.replace("state.topic", "state.subject"))
        .code(2)
        .stderr_has("`state.subject` is undefined")
        .stderr_lacks("verdict: ")
        .run();
}

#[test]
fn lessons_of_a_batch_reach_the_next_one_and_are_measured() {
    let poor = Server::start();
    poor.on(Purpose::Write, |_| Reply::text(FIRST));
    poor.on(Purpose::Judge, |_| Reply::text(&verdict(2).to_string()));
    let first = world(&poor, 4)
        .args(BATCH)
        .args(["-n", "1", "--no-cache"])
        .code(3)
        .stderr_lacks("memory: ")
        .run();
    // Without `--memory`, nothing is learned.
    assert!(listed(&first, &[]).is_empty());
    let second = first
        .then([
            "batch",
            "tasks.jsonl",
            "-c",
            "criteria.toml",
            "-o",
            "b.jsonl",
        ])
        .args(["-n", "1", "--no-cache", "--memory"])
        .code(3)
        .stderr_has("memory: empty")
        .stderr_has("memory: learned from the batch: 2 new")
        .run();
    let insights = listed(&second, &[]);
    assert_eq!(insights.len(), 2, "{insights:?}");
    assert_eq!(insights[0]["evidence"].as_array().map(Vec::len), Some(4));

    let good = server();
    let third = second
        .then([
            "batch",
            "tasks.jsonl",
            "-c",
            "criteria.toml",
            "-o",
            "c.jsonl",
        ])
        .args(["-n", "1", "--no-cache", "--memory", "-j", "1"])
        .env("OPENAI_BASE_URL", good.openai_url())
        .stderr_has("memory: 2 of 2 used, in 4 of 4 tasks")
        .stderr_has("memory: 1 rises from ")
        .stderr_has(" (4 tasks)")
        .run();
    let writers = good.chats();
    let mut told = writers
        .iter()
        .filter(|it| it.purpose() == Purpose::Write)
        .map(crate::support::server::Recorded::prompt);
    assert!(told.all(|prompt| prompt.contains("It does not say what it is about.")));
    assert_eq!(listed(&third, &[])[0]["uses"], 4);
}

#[test]
fn failures_that_a_writer_can_avoid_are_stored_in_memory() {
    let server = Server::start();
    server.on(Purpose::Write, |_| {
        Reply::text("A text.").first_wait(Duration::from_secs(20))
    });
    let ran = world(&server, 3)
        .args(BATCH)
        .args(["--retries", "0", "--timeout-first-token", "200ms"])
        .arg("--memory")
        .code(4)
        .stderr_has("memory: learned from the batch: 1 new")
        .run();
    let insights = listed(&ran, &[]);
    assert_eq!(insights.len(), 1);
    let content = insights[0]["content"].as_str().expect("a text");
    assert!(
        content.contains("3 attempts failed by timeout"),
        "{content}"
    );
    assert_eq!(insights[0]["model"], "openai:test");
}

/// The output of a loop is the answer, and a single node is not a plan.
#[test]
fn a_single_loop_is_not_assessed_as_a_plan() {
    let flow = "\
nodes:
  - name: profile
    uses: reflection.loop
    with:
      generator: {action: llm.call, prompt: Write JSON.}
      evaluator: {type: schema, schema: {type: object, required: [name, email]}}
      corrector: {action: llm.call, prompt: Again.}
      max_iterations: 2
      on_failure: return_best
    output: profile
";
    let reply = |text: &str| format!("[[reply]]\ntext = '{text}'\n");
    let test = || {
        Test::new()
            .file("flow.yaml", flow)
            .file(
                "script.toml",
                reply(r#"Here: {"name": "Ann"}"#) + &reply(r#"["role"]"#),
            )
            .args(["run", "flow.yaml", "--provider", "scripted:script.toml"])
            .code(3)
    };
    let ran = test()
        .stderr_lacks("verdict: ")
        .stderr_lacks("suggestion")
        .run();
    let printed: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(printed, json!({ "name": "Ann" }));
    let ran = test()
        .args(["--format", "json"])
        .stderr_lacks("verdict: ")
        .run();
    assert_eq!(ran.json()["output"], printed);
    test().arg("-v").stderr_has("verdict: ").run();
}
