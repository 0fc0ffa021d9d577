//! `batch --replan`: failed tasks are retried in another way, if that may help.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::batch::{BATCH, rows, world};
use crate::plan::verdict;
use crate::support::server::{Fault, Planned, Purpose, Reply, Server};

/// Starts a server that fails this many times and then writes well. Its judge approves every text.
fn server(bad: usize, how: impl Fn() -> Planned + Send + Sync + 'static) -> Server {
    let server = Server::start();
    let calls = Arc::new(AtomicUsize::new(0));
    server.on(Purpose::Write, move |_| {
        if calls.fetch_add(1, Ordering::Relaxed) < bad {
            how()
        } else {
            Reply::text("A text.").into()
        }
    });
    server.on(Purpose::Judge, |_| Reply::text(&verdict(5).to_string()));
    server
}

/// Returns the writer's prompts.
fn prompts(server: &Server) -> Vec<String> {
    let chats = server.chats();
    let writers = chats.iter().filter(|it| it.purpose() == Purpose::Write);
    writers
        .map(crate::support::server::Recorded::prompt)
        .collect()
}

/// Whether the prompt says why an earlier attempt failed.
fn is_told(prompt: &str) -> bool {
    prompt.contains("An earlier attempt at this task failed")
}

#[test]
fn a_task_that_succeeds_at_the_third_attempt_has_one_row() {
    let server = server(2, || Fault::status(503).into());
    let ran = world(&server, 1)
        .args(BATCH)
        .args(["--retries", "0", "--replan", "2"])
        .stderr_has("1 task: 1 met")
        .stderr_has("verdict: tasks.jsonl: succeeded, 1 of 1 tasks done")
        .stderr_has("  tried again in another way: 1, 1 of them to an end")
        .run();
    let rows = rows(&ran);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(
        (&row["status"], &row["attempts"]),
        (&json!("met"), &json!(3))
    );
    assert_eq!(
        (&row["error"], &row["error_category"]),
        (&json!(null), &json!(null))
    );
    let before = row["replanned"].as_array().expect("earlier attempts");
    assert_eq!(before.len(), 2);
    for attempt in before {
        assert_eq!(attempt["error_category"], "network");
        assert_ne!(attempt["run_id"], row["run_id"]);
        let adjusted = attempt["adjusted"].as_str().expect("words");
        assert!(
            adjusted.contains("the writer receives advice"),
            "{adjusted}"
        );
    }
    let told: Vec<bool> = prompts(&server).iter().map(|it| is_told(it)).collect();
    assert_eq!(told, [false, true, true]);
    // The wait after a transient failure grows with each attempt.
    assert!(ran.took > Duration::from_secs(3), "{:?}", ran.took);
    // Each attempt is a run, and repeating the command does nothing.
    let runs = ran.then(["history", "list", "--json"]).run().json();
    assert_eq!(runs.as_array().map(Vec::len), Some(3));
    let calls = server.calls();
    ran.then(BATCH).args(["--replan", "2"]).run();
    assert_eq!(server.calls(), calls);
}

#[test]
fn retries_are_limited_and_off_by_default() {
    for (replan, tries) in [(None, 1), (Some("0"), 1), (Some("1"), 2)] {
        let server = server(9, || Fault::status(503).into());
        let test = world(&server, 1).args(BATCH).args(["--retries", "0"]);
        let args: Vec<&str> = replan.into_iter().flat_map(|n| ["--replan", n]).collect();
        let ran = test.args(args).code(4).run();
        let rows = rows(&ran);
        assert_eq!((rows.len(), &rows[0]["attempts"]), (1, &json!(tries)));
        assert_eq!(rows[0]["status"], "failed");
        assert_eq!(server.calls(), tries);
    }
}

#[test]
fn a_stronger_model_takes_over() {
    let server = server(2, || {
        Reply::text("A text.")
            .first_wait(Duration::from_secs(20))
            .into()
    });
    let ran = world(&server, 1)
        .args(BATCH)
        .args(["--retries", "0", "--timeout-first-token", "200ms"])
        .args(["--stronger-model", "strong", "--replan", "3"])
        .run();
    let rows = rows(&ran);
    let adjusted: Vec<&str> = rows[0]["replanned"]
        .as_array()
        .expect("earlier attempts")
        .iter()
        .map(|attempt| attempt["adjusted"].as_str().expect("words"))
        .collect();
    assert_eq!(adjusted.len(), 2);
    // The second attempt only changes the prompt.
    assert!(!adjusted[0].contains("strong"), "{adjusted:?}");
    assert!(adjusted[1].contains("the stronger model openai:strong writes"));
    let models: Vec<Value> = server
        .chats()
        .iter()
        .filter(|it| it.purpose() == Purpose::Write)
        .map(|it| it.body["model"].clone())
        .collect();
    assert_eq!(models, ["test", "test", "strong"]);
    assert_eq!(rows[0]["replanned"][0]["error_category"], "timeout");
}

#[test]
fn a_failure_that_would_repeat_is_not_retried() {
    let refused = server(9, || {
        Fault::error(
            400,
            &json!({"error": {"message": "messages: not like this"}}),
        )
        .into()
    });
    let unjudged = Server::start();
    unjudged.on(Purpose::Write, |_| Reply::text("A text."));
    unjudged.on(Purpose::Judge, |_| Reply::text("I like it."));
    for (server, status, category, code) in [
        (refused, "failed", "validation", 4),
        (unjudged, "unjudged", "execution", 6),
    ] {
        let ran = world(&server, 1)
            .args(BATCH)
            .args(["--retries", "0", "--replan", "3"])
            .code(code)
            .run();
        let row = &rows(&ran)[0];
        assert_eq!(
            (&row["status"], &row["attempts"]),
            (&json!(status), &json!(1))
        );
        assert_eq!(row["error_category"], category);
        assert_eq!(row["replanned"], Value::Null);
        assert_eq!(prompts(&server).len(), 1, "{status}");
    }
    // A rejected key ends the batch.
    let key = server(9, || {
        Fault::error(401, &json!({"error": {"message": "Incorrect API key"}})).into()
    });
    let ran = world(&key, 2)
        .args(BATCH)
        .args(["--replan", "3", "-j", "1"])
        .code(4)
        .run();
    assert!(rows(&ran).is_empty());
    assert_eq!(key.calls(), 1);
}
