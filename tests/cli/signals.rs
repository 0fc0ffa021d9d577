//! What signals do: the first ends the run and keeps what there is, the second ends the process.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::Running;
use crate::plan::{BOTH, FIRST, answering, draft, verdict};
use crate::support::server::{Protocol, Reply, Server};

/// A server that takes its time with the third call, the revision.
fn slow() -> Server {
    answering([
        Reply::text(FIRST),
        Reply::text(&verdict(2).to_string()),
        Reply::pieces(&["word "; 600]).wait(Duration::from_millis(50)),
    ])
}

/// Waits until the run is in its slow call.
fn until_slow(server: &Server) {
    let start = Instant::now();
    while server.calls() < 3 {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "the third call does not come"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
}

fn promptly(running: Running) -> crate::harness::Ran {
    let start = Instant::now();
    let ran = running.finish();
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
    ran
}

#[test]
fn a_signal_ends_the_run_and_nothing_is_lost() {
    for protocol in BOTH {
        for signal in ["INT", "TERM"] {
            let server = slow();
            let running = draft(&server, protocol)
                .code(130)
                .stdout("")
                .stderr_has("interrupted: the draft was not written; nothing is lost: `reflect history show ")
                .spawn();
            until_slow(&server);
            running.signal(signal);
            let ran = promptly(running);
            let history = ran.history();
            assert_eq!(history["convergence_reason"], "interrupted");
            assert_eq!(history["output"], FIRST);
            ran.then(["history", "show", "last", "--best"])
                .stdout("The first draft.\n")
                .run();
        }
    }
}

#[test]
fn the_second_signal_ends_at_once() {
    let server = slow();
    let running = draft(&server, Protocol::Ollama)
        .code(130)
        .stdout("")
        .spawn();
    until_slow(&server);
    running.signal("INT");
    // The run may have ended already: then there is nothing to end at once.
    running.try_signal("INT");
    promptly(running);
}

#[test]
fn a_signal_before_the_first_answer() {
    let server = answering([Reply::text(FIRST).first_wait(Duration::from_secs(20))]);
    let running = draft(&server, Protocol::OpenAi)
        .code(130)
        .stdout("")
        .stderr_has("interrupted")
        .spawn();
    while server.calls() < 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal("INT");
    let ran = promptly(running);
    assert!(ran.drafts().is_empty());
}

#[test]
fn the_wait_before_a_retry_can_be_interrupted() {
    let server = Server::start();
    server.fault(crate::support::server::Fault::rate_limit(
        "Retry-After",
        "30",
    ));
    let running = draft(&server, Protocol::OpenAi)
        .code(130)
        .stdout("")
        .spawn();
    while server.calls() < 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    running.signal("INT");
    promptly(running);
}

#[test]
fn an_interrupted_run_in_json_and_ndjson() {
    let server = slow();
    let running = draft(&server, Protocol::Ollama)
        .args(["--format", "ndjson"])
        .code(130)
        .spawn();
    until_slow(&server);
    running.signal("INT");
    let lines = promptly(running).lines();
    let ends = lines
        .iter()
        .filter(|line| line["event"] == "run_end")
        .count();
    assert_eq!(ends, 1);
    let end = lines.last().expect("a line");
    assert_eq!(end["event"], "run_end");
    assert_eq!(end["exit_code"], 130);
    assert_eq!(end["convergence_reason"], "interrupted");

    let server = slow();
    let running = draft(&server, Protocol::Ollama)
        .args(["--format", "json"])
        .code(130)
        .spawn();
    until_slow(&server);
    running.signal("INT");
    let result = promptly(running).json();
    assert_eq!(result["convergence_reason"], "interrupted");
    assert_eq!(result["final_output"], FIRST);
    assert_ne!(result["run_id"], Value::Null);
}

/// A file that was to be replaced is left as it is.
#[test]
fn an_interrupted_run_leaves_the_output_file_alone() {
    let server = slow();
    let running = draft(&server, Protocol::Ollama)
        .file("out.md", "as it was\n")
        .args(["-o", "out.md"])
        .code(130)
        .stdout("")
        .spawn();
    until_slow(&server);
    running.signal("TERM");
    let ran = promptly(running);
    assert_eq!(ran.read("out.md"), "as it was\n");
    let left = std::fs::read_dir(ran.path("")).expect("a folder").count();
    assert_eq!(left, 2, "no temporary file is left behind");
}
