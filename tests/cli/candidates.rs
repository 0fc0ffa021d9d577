//! Several candidates for a version: the best becomes the version, and the others are recorded.

use serde_json::{Value, json};

use crate::harness::{Ran, Test, drafts_of};

/// A draft's score is a tenth of its word count.
const WORDS: &str =
    "[[criteria]]\nname = 'length'\nevaluator = 'length'\nmin = 10\nthreshold = 0.8\n";

/// Returns this many words that only this text contains.
fn words(tag: &str, count: usize) -> String {
    let words: Vec<String> = (0..count).map(|n| format!("{tag}{n}")).collect();
    words.join(" ")
}

fn text(tag: &str, count: usize) -> String {
    format!("[[reply]]\ntext = '{}'\n", words(tag, count))
}

const FAILS: &str = "[[reply]]\nerror = { class = 'rate', message = 'slow down' }\n";

fn draft(replies: &[String]) -> Test {
    Test::new()
        .args(["draft", "Write.", "-c", "criteria.toml"])
        .args(["--provider", "scripted:script.toml", "--adapt", "false"])
        .file("criteria.toml", WORDS)
        .file("script.toml", replies.concat())
}

/// Returns the candidates: version, text, and whether it was chosen.
fn candidates(result: &Value) -> Vec<(u64, &str, bool)> {
    let all = result["history"]["candidates"].as_array();
    all.expect("candidates")
        .iter()
        .map(|it| {
            (
                it["iteration"].as_u64().expect("a number"),
                it["output"].as_str().unwrap_or("none"),
                it["chosen"].as_bool().expect("a truth value"),
            )
        })
        .collect()
}

fn three() -> [String; 4] {
    [text("a", 4), text("b", 5), text("c", 9), text("d", 6)]
}

#[test]
fn the_best_of_three_becomes_the_version() {
    let ran = draft(&three())
        .args(["--candidates", "3", "--format", "json"])
        .stderr_has("draft 2: revising draft 1\n")
        .stderr_has("draft 2: candidate 1 of 3: as usual\n")
        .stderr_has("draft 2: candidate 2 of 3: warmer (temperature 0.9)\n")
        .stderr_has("draft 2: candidate 2 of 3 is the best: score 0.90, the others 0.50, 0.60\n")
        .run();
    let result = ran.json();
    assert_eq!(result["output"], words("c", 9));
    assert_eq!(result["iterations_used"], 2);
    assert_eq!(result["total_llm_calls"], 4);
    assert_eq!(drafts_of(&result).len(), 2);
    let (b, c, d) = (words("b", 5), words("c", 9), words("d", 6));
    assert_eq!(
        candidates(&result),
        [(2, b.as_str(), false), (2, &c, true), (2, &d, false)]
    );
    let first = &result["history"]["candidates"][0];
    assert_eq!(first["difference"], "as usual");
    assert_eq!(first["strategy"], "full_rewrite");
    assert_eq!(first["evaluation"]["overall_score"], 0.5);
    // The run log contains the same, as JSON and as text.
    assert_eq!(ran.history()["history"], result["history"]);
    let shown = ran.then(["history", "show", "last"]).run().stdout;
    assert!(
        shown.contains("draft 2, candidate 1, as usual: score 0.50"),
        "{shown}"
    );
    assert!(shown.contains(&b), "{shown}");
}

#[test]
fn every_step_of_a_candidate_is_an_event() {
    let ran = draft(&three())
        .args(["--candidates", "3", "--format", "ndjson"])
        .run();
    let steps = |candidate: u64| -> Vec<String> {
        ran.lines()
            .iter()
            .filter(|line| line["event"] == "candidate" && line["candidate"] == candidate)
            .map(|line| line["step"].as_str().expect("a step").to_owned())
            .collect()
    };
    assert_eq!(steps(1), ["begun", "written", "judged"]);
    assert_eq!(steps(2), ["begun", "written", "judged", "chosen"]);
}

#[test]
fn a_failed_candidate_does_not_affect_the_others() {
    let replies = [text("a", 4), FAILS.to_owned(), text("c", 9)];
    let ran = draft(&replies)
        .args(["--candidates", "2", "--format", "json"])
        .stderr_has("draft 2: candidate 1 rejected: ")
        .stderr_has("slow down")
        .run();
    let result = ran.json();
    assert_eq!(result["output"], words("c", 9));
    let lost = result["history"]["candidates"][0]["lost"].as_str();
    assert!(
        lost.is_some_and(|lost| lost.contains("slow down")),
        "{lost:?}"
    );
    let replies = [text("a", 4), FAILS.to_owned(), FAILS.to_owned()];
    draft(&replies)
        .args(["--candidates", "2"])
        .code(4)
        .stdout(&format!("{}\n", words("a", 4)))
        .stderr_has("slow down")
        .run();
}

fn auto(ran: &Ran) -> Vec<(u64, bool)> {
    let result = ran.json();
    let all = candidates(&result);
    all.iter().map(|it| (it.0, it.2)).collect()
}

#[test]
fn auto_makes_two_candidates_after_a_revision_that_did_not_help() {
    let replies = [text("a", 5), text("b", 4), text("c", 6), text("d", 9)];
    let ran = draft(&replies)
        .args([
            "--candidates",
            "auto",
            "--min-iterations",
            "3",
            "--format",
            "json",
        ])
        .run();
    assert_eq!(auto(&ran), [(3, false), (3, true)]);
    // While each revision helps, there is one candidate each time, and candidates are not mentioned.
    let replies = [text("a", 5), text("b", 6), text("c", 9)];
    let ran = draft(&replies)
        .args([
            "--candidates",
            "auto",
            "--min-iterations",
            "3",
            "--format",
            "json",
        ])
        .stderr_lacks("candidate")
        .run();
    assert_eq!(ran.json()["history"].get("candidates"), None);
}

#[test]
fn the_number_comes_from_criteria_or_config_and_the_flag_overrides_both() {
    let with = |criteria: &str, args: &[&str]| {
        let ran = draft(&three())
            .file("criteria.toml", format!("{WORDS}\n[loop]\n{criteria}\n"))
            .args(["--format", "json"])
            .args(args)
            .run();
        candidates(&ran.json()).len()
    };
    assert_eq!(with("candidates = 3", &[]), 3);
    assert_eq!(with("candidates = 2", &["--candidates", "3"]), 3);
    let ran = draft(&three())
        .file("config.toml", "[loop]\ncandidates = 3\n")
        .args(["--config", "config.toml", "--format", "json"])
        .run();
    assert_eq!(candidates(&ran.json()).len(), 3);
}

#[test]
fn an_invalid_number_of_candidates_is_rejected_before_any_call() {
    for bad in ["0", "9", "two", "-1", "1.5"] {
        draft(&[])
            .arg(format!("--candidates={bad}"))
            .code(2)
            .stderr_has("--candidates")
            .stderr_has("from 1 to 8, or `auto`")
            .run();
    }
    for bad in [json!(0), json!(9), json!("many"), json!(1.5), json!(true)] {
        draft(&[])
            .file(
                "criteria.toml",
                format!("{WORDS}\n[loop]\ncandidates = {bad}\n"),
            )
            .code(2)
            .stderr_has("criteria.toml:8:14")
            .stderr_has("from 1 to 8")
            .run();
    }
}
