//! Early stop: a draft that can no longer pass is cancelled while it is being written.

use std::time::Duration;

use serde_json::json;

use crate::harness::Test;
use crate::plan::with_server;
use crate::support::server::{Protocol, Reply, Server};

const CRITERIA: &str = r#"
[[criteria]]
name = "short"
evaluator = "length"
max = 20

[[criteria]]
name = "clean"
evaluator = "regex"
pattern = "tempest"
expect = "absent"

[[criteria]]
name = "clear"
description = "It is clear."
"#;

const SHORT: &str = "The storm came at night and took the roof.";
/// Returns unique sentences of seven words each.
fn sentences(count: usize) -> Vec<String> {
    let sentence = |n| format!("House {n} lost its roof to wind{n}. ");
    (0..count).map(sentence).collect()
}

fn prose(count: usize) -> String {
    sentences(count).concat()
}

/// A reply of this many sentences, in pieces.
fn long(count: usize) -> String {
    let pieces: Vec<String> = sentences(count)
        .iter()
        .map(|it| format!("{it:?}"))
        .collect();
    let pieces = pieces.join(", ");
    format!("[[reply]]\npurpose = 'write'\npieces = [{pieces}]\n")
}

fn write(text: &str) -> String {
    format!("[[reply]]\npurpose = 'write'\ntext = '''{text}'''\n")
}

fn told(of: &str, text: &str) -> String {
    format!("[[reply]]\npurpose = 'write'\ncontains = '''{of}'''\ntext = '''{text}'''\n")
}

fn judged(step: u8) -> String {
    let verdict = json!({"scores": {"clear": {"reason": "As it reads.", "score": step}}, "issues": [], "confidence": 0.8});
    format!("[[reply]]\npurpose = 'judge'\ntext = '''{verdict}'''\n")
}

fn draft(script: &[String]) -> Test {
    Test::new()
        .args(["draft", "Tell of the storm.", "-c", "criteria.toml"])
        .args(["--provider", "scripted:script.toml"])
        .args(["--strategy", "full_rewrite"])
        .file("criteria.toml", CRITERIA)
        .file("script.toml", script.concat())
}

#[test]
fn a_far_too_long_draft_is_stopped_and_requested_again() {
    let script = [
        long(200),
        told("The last reply was far too long and was stopped", SHORT),
        judged(5),
    ];
    let ran = draft(&script)
        .args(["--format", "json"])
        .stderr_has("draft 1: reply rejected: it was stopped after ")
        .stderr_has("words, far more than requested")
        .stderr_has("1 reply stopped early")
        .stderr_has(" estimated)")
        .run();
    let result = ran.json();
    // The usage includes tokens that the server could not report, marked as estimated.
    let estimated = result["token_usage"]["estimated"].as_u64().expect("tokens");
    assert!(estimated > 100, "{result}");
    assert!(result["token_usage"]["total"].as_u64() >= Some(estimated));
    assert_eq!(result["output"], SHORT);
    assert_eq!(result["stopped_early"], 1);
    assert_eq!(result["iterations_used"], 1);
    assert_eq!(result["total_llm_calls"], 3);
    let lines = draft(&script).args(["--format", "ndjson"]).run().lines();
    let rejected: Vec<_> = lines
        .iter()
        .filter(|line| line["event"] == "rejected")
        .collect();
    assert_eq!(rejected.len(), 1);
    assert_eq!(rejected[0]["stopped_early"], true);
    let text = rejected[0]["text"].as_str().expect("what there is of it");
    assert!(text.len() < 2100, "{text}");
}

#[test]
fn a_first_draft_with_an_issue_is_completed_and_revised() {
    let first = format!("A tempest came.\n\n{}", prose(9));
    let script = [
        write(&first),
        judged(5),
        told("A tempest came.", &prose(9)),
        judged(5),
    ];
    let criteria = CRITERIA.replace("max = 20", "max = 200");
    let ran = draft(&script).file("criteria.toml", criteria).run();
    assert_eq!(ran.drafts()[0], first.trim());
}

#[test]
fn the_second_attempt_is_completed_and_can_be_revised() {
    let second = prose(25);
    let script = [
        long(200),
        write(&second),
        judged(5),
        write(SHORT),
        judged(5),
    ];
    let result = draft(&script).args(["--format", "json"]).run().json();
    assert_eq!(result["stopped_early"], 1);
    assert_eq!(result["history"]["versions"][0]["output"], second.trim());
    assert_eq!(result["output"], SHORT);
}

#[test]
fn a_revision_is_stopped_only_for_criteria_that_the_best_draft_meets() {
    // The first draft is short, so a long one can never be better.
    let script = [
        write(SHORT),
        judged(3),
        long(100),
        told("The last reply was stopped", "The storm took the roof."),
        judged(5),
    ];
    let result = draft(&script).args(["--format", "json"]).run().json();
    assert_eq!(result["stopped_early"], 1);
    assert_eq!(result["output"], "The storm took the roof.");
    // The first draft is too long itself, so a shorter revision is an improvement.
    let less = prose(20);
    let script = [write(&prose(30)), judged(5), write(&less), judged(5)];
    let result = draft(&script)
        .args(["--format", "json", "-n", "2", "--grey-zone", "0"])
        .code(3)
        .run()
        .json();
    assert_eq!(result["stopped_early"], 0);
    assert_eq!(result["output"], less.trim());
}

#[test]
fn after_two_stops_in_a_row_no_draft_is_stopped() {
    let script = [
        write(SHORT),
        judged(3),
        long(25),
        long(25),
        long(25),
        judged(5),
    ];
    let result = draft(&script)
        .args(["--format", "json", "-n", "4", "--plateau-iterations", "9"])
        .code(3)
        .run()
        .json();
    assert_eq!(result["stopped_early"], 2);
    assert_eq!(result["history"]["versions"][1]["iteration"], 4);
    assert_eq!(result["output"], SHORT);
}

#[test]
fn early_stop_can_be_turned_off() {
    let text = prose(100);
    let script = [write(&text), judged(5)];
    let off = |test: Test| {
        let result = test
            .args(["--format", "json", "-n", "1"])
            .code(3)
            .run()
            .json();
        assert_eq!(result["stopped_early"], 0);
        assert_eq!(result["output"], text.trim());
    };
    off(draft(&script).arg("--no-early-stop"));
    off(draft(&script).file(
        "../home/.config/reflect/config.toml",
        "[loop]\nearly_stop = false\n",
    ));
    off(draft(&script).file(
        "criteria.toml",
        format!("[loop]\nearly_stop = false\n\n{CRITERIA}"),
    ));
}

#[test]
fn the_server_sees_the_closed_connection() {
    let pieces = sentences(500);
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let wait = Duration::from_millis(20);
    for protocol in [Protocol::OpenAi, Protocol::Ollama] {
        let server = Server::start();
        let verdict = json!({"scores": {"clear": {"reason": "As it reads.", "score": 5}}, "issues": [], "confidence": 0.8});
        server
            .reply(Reply::pieces(&pieces).wait(wait))
            .reply_text(SHORT)
            .reply_verdict(&verdict);
        with_server(&server, protocol)
            .args(["draft", "Tell of the storm.", "-c", "criteria.toml"])
            .file("criteria.toml", CRITERIA)
            .stdout(&format!("{SHORT}\n"))
            .stderr_has("1 reply stopped early")
            .run();
        // Writing the full reply takes ten seconds.
        assert!(
            server.busy() < Duration::from_secs(5),
            "{:?}",
            server.busy()
        );
        assert_eq!(server.calls(), 3);
    }
}
