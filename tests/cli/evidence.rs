//! `--evidence`: passages of code and documents for the task and for the issues of a draft.

use serde_json::{Value, json};

use crate::harness::Test;
use crate::plan::{answering, verdict, with_server};
use crate::support::server::{Protocol, Recorded, Reply, Server};

const RETRY: &str = "use std::time::Duration;\n\n/// Doubles the wait after each failed attempt.\n\
    fn backoff(attempt: u32) -> Duration {\n    Duration::from_secs(2 << attempt)\n}\n";

const QUEUE: &str = "# The queue\n\nJobs wait in a queue of at most 512 entries.\n\n\
    # Colours\n\nThe sky is blue.\n";

const OTHER: &str = "# Cooking\n\nBoil the potatoes for twenty minutes.\n";

fn project(test: Test) -> Test {
    test.file("project/src/retry.rs", RETRY)
        .file("project/docs/queue.md", QUEUE)
        .file("project/docs/cooking.md", OTHER)
        .file("project/docs/logo.png", b"\x89PNG\0queue backoff")
        .file("project/.gitignore", "generated/\n")
        .file("project/generated/backoff.md", "The backoff is generated.")
        .file("project/.hidden.md", "The backoff is hidden.")
}

fn draft(server: &Server, args: &[&str]) -> Test {
    project(with_server(server, Protocol::OpenAi))
        .args([
            "draft",
            "Explain the backoff of attempts.",
            "-c",
            "criteria.toml",
        ])
        .args(args)
}

/// A verdict with one unsupported issue.
fn unsupported() -> Value {
    let mut verdict = verdict(2);
    verdict["issues"] = json!([{
        "type": "unsupported",
        "severity": "major",
        "criterion": "clear",
        "description": "Nothing backs how many jobs can wait.",
        "quote": "The queue has at most 512 entries",
        "suggested_fix": "Say where the number comes from."
    }]);
    verdict
}

fn places(evidence: &Value) -> Vec<(String, String, Value)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    evidence
        .as_array()
        .expect("evidence")
        .iter()
        .map(|piece| {
            (
                text(&piece["source"]),
                text(&piece["location"]),
                piece["supports_claim"].clone(),
            )
        })
        .collect()
}

#[test]
fn the_task_and_the_issues_get_their_own_evidence() {
    let server = answering([
        Reply::text("The wait doubles. The queue has at most 512 entries."),
        Reply::text(&unsupported().to_string()),
        Reply::text("Better."),
        Reply::text(&verdict(5).to_string()),
    ]);
    let ran = draft(&server, &["--evidence", "project", "--format", "json"])
        .stderr_has("evidence: searching 3 files")
        .run();
    let prompts: Vec<String> = server.chats().iter().map(Recorded::prompt).collect();
    let [first, judged, revised, again] = prompts.as_slice() else {
        panic!("{} calls", prompts.len());
    };
    let place = |prompt: &str, part: &str| prompt.find(part);
    for prompt in &prompts {
        // Evidence for the task precedes the criteria, with the same bytes in every call.
        let code = place(prompt, "fn backoff(attempt: u32)").expect("the code");
        let criteria = place(prompt, "<criteria>\n").or(place(prompt, "Requirements:"));
        assert!(Some(code) < criteria, "{prompt}");
        assert!(
            prompt.contains("codebase, project/src/retry.rs:"),
            "{prompt}"
        );
        for absent in ["potatoes", "generated", "hidden", "PNG"] {
            assert!(!prompt.contains(absent), "{absent}: {prompt}");
        }
    }
    let stable = place(first, "</evidence>").expect("evidence");
    assert!(
        prompts
            .iter()
            .all(|prompt| prompt[..stable] == first[..stable])
    );
    // Evidence for the issue follows the draft, for the reviser and for the next verdict.
    let passage = "Jobs wait in a queue of at most 512 entries.";
    assert!(!first.contains(passage) && !judged.contains(passage));
    for prompt in [revised, again] {
        let queue = place(prompt, passage).expect("the document");
        assert!(place(prompt, "</draft>") < Some(queue), "{prompt}");
        assert!(
            prompt.contains("documentation, project/docs/queue.md:"),
            "{prompt}"
        );
        assert!(
            prompt.contains("on the claim: The queue has at most 512 entries"),
            "{prompt}"
        );
    }
    assert!(judged.contains("\"unsupported\""), "{judged}");
    assert!(
        revised.contains("Claim: \"The queue has at most 512 entries\"."),
        "{revised}"
    );
    let result = ran.json();
    let found = places(&result["evidence"]);
    assert_eq!(
        found[0],
        (
            "codebase".to_owned(),
            "project/src/retry.rs:1-6".to_owned(),
            Value::Null
        )
    );
    let queue = &found[1];
    assert_eq!(
        (queue.0.as_str(), &queue.2),
        ("documentation", &json!("The queue has at most 512 entries"))
    );
    assert_eq!(result["evidence"][0]["iteration"], 1);
    assert_eq!(result["evidence"][1]["iteration"], 2);
    for piece in result["evidence"].as_array().unwrap() {
        let relevance = piece["relevance"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&relevance), "{piece}");
    }
    let issue = &result["history"]["versions"][0]["evaluation"]["issues"][0];
    assert_eq!(issue["claim"], "The queue has at most 512 entries");
    // The run log contains it.
    assert_eq!(ran.history()["evidence"], result["evidence"]);
    let shown = ran
        .then(["history", "show", "last", "--format", "markdown"])
        .run();
    assert!(
        shown
            .stdout
            .contains("### Evidence\n\n- codebase: project/src/retry.rs:1-6 (relevance"),
        "{}",
        shown.stdout
    );
    ran.then(["history", "show", "last"]).run();
}

#[test]
fn the_budget_is_a_flag_and_a_setting() {
    let long = |n: usize| {
        format!(
            "The backoff number {n}. {}",
            "The wait doubles after an attempt. ".repeat(10)
        )
    };
    for (args, config, most) in [
        (&["--evidence-tokens", "120"][..], "", 1),
        (&["--evidence-tokens", "240"], "evidence_tokens = 120", 2),
        (&[], "evidence_tokens = 120", 1),
    ] {
        let server = answering([Reply::text("A line."), Reply::text(&verdict(5).to_string())]);
        let mut test = draft(&server, args)
            .args(["--evidence", "notes", "--config", "reflect.toml"])
            .file("reflect.toml", config);
        for n in 0..9 {
            test = test.file(&format!("notes/{n}.md"), long(n));
        }
        test.run();
        let shown = server.chats()[0].prompt().matches("<evidence name").count();
        assert_eq!(shown, most, "{args:?} {config}");
    }
    draft(
        &Server::start(),
        &["--evidence", "project", "--evidence-tokens", "5"],
    )
    .code(2)
    .stderr_has("--evidence-tokens")
    .run();
}

#[test]
fn evaluate_uses_evidence_that_is_relevant_to_the_text() {
    let server = answering([Reply::text(&verdict(5).to_string())]);
    let ran = project(with_server(&server, Protocol::Ollama))
        .args([
            "evaluate",
            "text.md",
            "-c",
            "criteria.toml",
            "--format",
            "json",
        ])
        .args([
            "--evidence",
            "project/docs",
            "--evidence",
            "project/src/retry.rs",
        ])
        .file("text.md", "Potatoes are boiled for an hour.\n")
        .run();
    let prompt = server.chats()[0].prompt();
    assert!(
        prompt.contains("Boil the potatoes for twenty minutes."),
        "{prompt}"
    );
    assert!(
        prompt.find("</draft>") < prompt.find("Boil the"),
        "{prompt}"
    );
    assert!(!prompt.contains("backoff"), "{prompt}");
    let found = places(&ran.json()["evidence"]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1, "project/docs/cooking.md:1-3");
}

/// Finding nothing relevant is not an error.
#[test]
fn without_relevant_passages_there_is_no_evidence() {
    let server = answering([Reply::text("A line."), Reply::text(&verdict(5).to_string())]);
    let ran = draft(
        &server,
        &["--evidence", "project/docs/cooking.md", "--format", "json"],
    )
    .run();
    assert_eq!(ran.json()["evidence"], json!([]));
    assert!(!server.chats()[0].prompt().contains("<evidence name"));
}

#[test]
fn unusable_evidence_paths_are_usage_errors() {
    let cases: [(&[&str], &str, &str); 6] = [
        (
            &["--evidence", "projct"],
            "no such file or folder",
            "did you mean `project`?",
        ),
        (
            &["--evidence", "project/docs/logo.png"],
            "not a text file",
            "UTF-8",
        ),
        (
            &["--evidence", "big.txt"],
            "larger than 1 MB",
            "or its folder",
        ),
        (
            &["--evidence", "empty"],
            "this folder contains no text",
            "pass such a file by name",
        ),
        (
            &["--evidence", "project", "--evidence", "binary"],
            "this folder contains no text",
            "hidden",
        ),
        (&["--evidence", "blank.md"], "the file is empty", "blank.md"),
    ];
    for (args, message, hint) in cases {
        let server = Server::start();
        draft(&server, args)
            .folder("empty")
            .file("binary/a.png", b"\0")
            .file("blank.md", " \n")
            .file("big.txt", vec![b'x'; 1_000_001])
            .code(2)
            .stdout("")
            .stderr_has(message)
            .stderr_has(hint)
            .run();
        assert!(server.requests().is_empty(), "{args:?}");
    }
}

/// Files skipped because of a limit are reported on stderr and in the result.
#[test]
fn a_too_large_file_in_a_folder_is_skipped_with_a_warning() {
    let server = answering([Reply::text("A line."), Reply::text(&verdict(5).to_string())]);
    let ran = draft(&server, &["--evidence", "project", "--format", "json"])
        .file("project/dump.txt", vec![b'x'; 1_000_001])
        .stderr_has("warning: skipped as evidence (larger than 1 MB): project/dump.txt")
        .run();
    assert!(
        ran.json()["warnings"][0]
            .as_str()
            .unwrap()
            .contains("project/dump.txt")
    );
}
