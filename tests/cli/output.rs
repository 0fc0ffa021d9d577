//! The output: what is printed, where, and in which format.

use serde_json::{Value, json};

use crate::harness::Test;
use crate::plan::{BOTH, FIRST, SECOND, answering, draft, usual_server, verdict};
use crate::support::server::{Fault, Protocol, Purpose, Reply, Server};

fn judged(step: u8) -> Reply {
    Reply::text(&verdict(step).to_string())
}

/// Starts a server whose drafts never pass.
fn never_content() -> Server {
    let server = Server::start();
    server.on(Purpose::Write, |_| Reply::text(FIRST));
    server.on(Purpose::Judge, |_| judged(2));
    server
}

#[test]
fn stdout_contains_only_the_draft() {
    for protocol in BOTH {
        let server = usual_server();
        let ran = draft(&server, protocol).stdout("The second draft.\n").run();
        assert_eq!(server.calls(), 4);
        assert_eq!(ran.drafts(), [FIRST, SECOND]);
        let name = format!("progress_{protocol:?}").to_lowercase();
        insta::assert_snapshot!(name, ran.said());
    }
}

#[test]
fn one_final_newline() {
    for (text, printed) in [
        ("one", "one\n"),
        ("one\n", "one\n"),
        ("one\n\n\n", "one\n"),
        ("  one\n\n  two", "one\n\n  two\n"),
        ("\u{feff}ein Wörtchen 🦀", "\u{feff}ein Wörtchen 🦀\n"),
    ] {
        let server = answering([Reply::text(text), judged(5)]);
        draft(&server, Protocol::OpenAi).stdout(printed).run();
    }
}

#[test]
fn quiet_prints_nothing_to_stderr() {
    let server = usual_server();
    draft(&server, Protocol::OpenAi)
        .arg("-q")
        .stdout("The second draft.\n")
        .stderr("")
        .run();
    // Errors are still reported.
    let server = usual_server();
    server.fault_at(3, Fault::status(401));
    let ran = draft(&server, Protocol::OpenAi)
        .arg("-q")
        .code(4)
        .stdout("The first draft.\n")
        .run();
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
}

#[test]
fn every_exit_code_that_a_run_can_have() {
    draft(&usual_server(), Protocol::OpenAi)
        .stdout("The second draft.\n")
        .run();
    draft(&never_content(), Protocol::OpenAi)
        .code(3)
        .stdout("The first draft.\n")
        .stderr_has("rejected: ")
        .stderr_has("stopped: the text hardly changes")
        .run();
    draft(&never_content(), Protocol::OpenAi)
        .args(["-n", "1"])
        .code(3)
        .stdout("The first draft.\n")
        .stderr_has("stopped: the iteration limit is reached")
        .run();
    draft(&never_content(), Protocol::OpenAi)
        .args(["--max-total-tokens", "200"])
        .code(5)
        .stdout("The first draft.\n")
        .stderr_has("stopped: the token limit is reached")
        .run();
    let slow = answering([
        Reply::text(FIRST),
        judged(2),
        Reply::text(SECOND).first_wait(std::time::Duration::from_secs(20)),
    ]);
    let ran = draft(&slow, Protocol::OpenAi)
        .args(["--max-time", "2s"])
        .code(5)
        .stdout("The first draft.\n")
        .stderr_has("stopped: the time limit is reached")
        .run();
    assert!(ran.took < std::time::Duration::from_secs(6));
}

#[test]
fn exit_zero_is_for_unmet_criteria_and_limits_only() {
    let zero = |server: &Server| draft(server, Protocol::OpenAi).arg("--exit-zero");
    zero(&never_content()).stdout("The first draft.\n").run();
    zero(&never_content())
        .args(["--max-total-tokens", "200"])
        .stdout("The first draft.\n")
        .run();
    let server = usual_server();
    server.fault_at(1, Fault::status(401));
    zero(&server).code(4).run();
    let server = answering([Reply::text(FIRST)]);
    server.on(Purpose::Judge, |_| Reply::text("five"));
    zero(&server).code(6).run();
    zero(&usual_server())
        .args(["-c", "nowhere.toml"])
        .code(2)
        .run();
}

/// Checks the keys of a result, and the types of their values.
#[track_caller]
fn check_result(result: &Value) {
    let keys: Vec<&str> = result
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "schema_version",
        "run_id",
        "success",
        "convergence_reason",
        "output",
        "final_output",
        "best_output",
        "final_evaluation",
        "best_evaluation",
        "issues",
        "history",
        "iterations_used",
        "total_llm_calls",
        "stopped_early",
        "token_usage",
        "cost",
        "execution_time",
        "models",
        "evidence",
        "warnings",
    ];
    for key in expected {
        assert!(keys.contains(&key), "`{key}` is missing in {keys:?}");
    }
    for key in &keys {
        assert!(expected.contains(key) || *key == "error", "`{key}` is new");
    }
    for version in result["history"]["versions"].as_array().expect("versions") {
        for key in [
            "iteration",
            "output",
            "based_on",
            "strategy",
            "improvements_applied",
            "evaluation",
            "timestamp",
            "token_usage",
            "duration_ms",
        ] {
            assert!(
                version.get(key).is_some(),
                "`{key}` is missing in {version}"
            );
        }
        let Some(evaluation) = version["evaluation"].as_object() else {
            continue;
        };
        for key in [
            "overall_score",
            "criteria_scores",
            "satisfactory",
            "issues",
            "suggestions",
            "confidence",
            "status",
            "spread",
        ] {
            assert!(
                evaluation.contains_key(key),
                "`{key}` is missing in {evaluation:?}"
            );
        }
    }
    for key in ["prompt", "completion", "total", "cached"] {
        assert!(
            result["token_usage"].get(key).is_some(),
            "token_usage.{key}"
        );
    }
}

#[test]
fn json_is_one_object() {
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi)
        .args(["--format", "json"])
        .run();
    let result = ran.json();
    check_result(&result);
    assert_eq!(result["output"], SECOND);
    assert_eq!(result["history"]["versions"][1]["based_on"], 1);
    assert!(ran.stdout.ends_with("}\n"));
    insta::assert_snapshot!("json", ran.plain(&ran.stdout));
    // The log contains the same.
    assert_eq!(ran.history(), result);
}

#[test]
fn unknown_values_are_null() {
    let server = answering([
        Reply::text(FIRST).no_usage(),
        Reply::text(&json!({"scores": {"clear": {"reason": "", "score": 5}}}).to_string())
            .no_usage(),
    ]);
    let result = draft(&server, Protocol::OpenAi)
        .args(["--format", "json"])
        .run()
        .json();
    check_result(&result);
    assert_eq!(
        result["token_usage"],
        json!({"prompt": null, "completion": null, "total": null, "cached": null})
    );
    assert_eq!(result["cost"], Value::Null);
    assert_eq!(result["best_evaluation"]["confidence"], Value::Null);
}

#[test]
fn json_after_failures() {
    let server = usual_server();
    server.fault_at(3, Fault::status(401));
    let result = draft(&server, Protocol::OpenAi)
        .args(["--format", "json"])
        .code(4)
        .run()
        .json();
    check_result(&result);
    assert_eq!(result["success"], false);
    assert_eq!(result["output"], FIRST);
    assert!(result["error"].as_str().expect("an error").contains("401"));

    let result = draft(&never_content(), Protocol::OpenAi)
        .args(["--format", "json"])
        .code(3)
        .run()
        .json();
    check_result(&result);
    assert_eq!(result["convergence_reason"], "stable");
    assert_eq!(result.get("error"), None);
}

/// Checks that every line is an event, and that the only `run_end` is the last one.
#[track_caller]
fn check_events(lines: &[Value], code: u8) {
    let names: Vec<&str> = lines
        .iter()
        .map(|line| line["event"].as_str().expect("a name"))
        .collect();
    let ends = names.iter().filter(|name| **name == "run_end").count();
    assert_eq!(ends, 1, "{names:?}");
    let end = lines.last().expect("a line");
    assert_eq!(end["event"], "run_end");
    assert_eq!(end["exit_code"], code, "{end}");
    assert_eq!(end["schema_version"], 1);
    for line in lines {
        assert!(line["time"].is_string(), "{line}");
    }
}

#[test]
fn ndjson_is_the_events() {
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi)
        .args(["--format", "ndjson"])
        .run();
    let lines = ran.lines();
    check_events(&lines, 0);
    assert_eq!(lines[0]["event"], "run_start");
    assert!(lines.iter().all(|line| line["event"] != "delta"));
    insta::assert_snapshot!("ndjson", ran.plain(&ran.stdout));
    // The log contains the same events.
    ran.then(["history", "show", "--format", "ndjson"])
        .stdout(&ran.stdout)
        .run();

    let server = usual_server();
    let lines = draft(&server, Protocol::OpenAi)
        .args(["--format", "ndjson", "--stream-deltas"])
        .run()
        .lines();
    check_events(&lines, 0);
    let text: String = lines
        .iter()
        .filter(|line| line["event"] == "delta" && line["phase"] != "evaluate")
        .filter_map(|line| line["text"].as_str())
        .collect();
    assert_eq!(text, format!("{FIRST}{SECOND}"));
}

#[test]
fn ndjson_always_ends_with_run_end() {
    let events = |server: &Server| draft(server, Protocol::OpenAi).args(["--format", "ndjson"]);
    for call in 1..=4 {
        let server = usual_server();
        server.fault_at(call, Fault::status(401));
        let lines = events(&server).code(4).run().lines();
        check_events(&lines, 4);
        let error = lines.last().expect("a line")["error"].to_string();
        assert!(error.contains("401"), "{error}");
    }
    let lines = events(&never_content()).code(3).run().lines();
    check_events(&lines, 3);
    let lines = events(&never_content()).arg("--exit-zero").run().lines();
    check_events(&lines, 3);
    // Including runs that never started.
    let server = usual_server();
    let failed: [(Test, u8, &str); 5] = [
        (
            events(&server).file("criteria.toml", "treshold = 1"),
            2,
            "treshold",
        ),
        // An invalid command line.
        (
            events(&server).args(["--prompt-file", "x"]),
            2,
            "'[PROMPT]' cannot be used with '--prompt-file <FILE>'",
        ),
        (
            events(&server).args(["-m", "olama:x", "--provider", "olama"]),
            2,
            "olama",
        ),
        (
            events(&server).args(["--report", "nowhere/x.md"]),
            2,
            "nowhere",
        ),
        (
            events(&server).env("REFLECT_RETRIES", "many"),
            2,
            "REFLECT_RETRIES",
        ),
    ];
    for (test, code, said) in failed {
        let lines = test.code(i32::from(code)).run().lines();
        check_events(&lines, code);
        assert!(lines[0]["error"].as_str().expect("an error").contains(said));
    }
    assert_eq!(server.calls(), 0);
}

#[test]
fn markdown_is_the_draft_and_the_report() {
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi)
        .args(["--format", "markdown"])
        .run();
    assert!(ran.stdout.starts_with("The second draft.\n\n---\n"));
    insta::assert_snapshot!("markdown", ran.plain(&ran.stdout));
}

#[test]
fn history_as_text() {
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi).run();
    let shown = ran.then(["history", "show"]).run();
    insta::assert_snapshot!("history_show", shown.plain(&shown.stdout));
    let listed = ran.then(["history", "list"]).run();
    let line = listed.plain(&listed.stdout);
    assert!(line.contains("[TIME]  1.00   quality_met"), "{line}");
    assert!(line.ends_with("Write a line.\n"), "{line}");
}

#[test]
fn an_output_file_is_replaced_atomically() {
    let server = usual_server();
    let test = draft(&server, Protocol::OpenAi)
        .file("out.md", "old\n")
        .args(["-o", "out.md"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(test.path("out.md"), mode).expect("permissions");
    }
    let ran = test.stdout("").run();
    assert_eq!(ran.read("out.md"), "The second draft.\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = std::fs::metadata(ran.path("out.md")).expect("a file");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
    }
    let names = std::fs::read_dir(ran.path("")).expect("a folder").count();
    assert_eq!(names, 2, "no temporary file is left");

    // A new file has normal permissions. A draft that does not meet the criteria is written, too.
    let ran = draft(&never_content(), Protocol::OpenAi)
        .args(["--output", "folder/new.md"])
        .folder("folder")
        .code(3)
        .stdout("")
        .run();
    assert_eq!(ran.read("folder/new.md"), "The first draft.\n");
}

#[test]
fn an_output_file_accepts_every_format() {
    for (format, begins) in [("json", "{\n"), ("markdown", SECOND), ("text", SECOND)] {
        let server = usual_server();
        let ran = draft(&server, Protocol::OpenAi)
            .args(["-o", "out", "--format", format])
            .stdout("")
            .run();
        assert!(ran.read("out").starts_with(begins), "{format}");
    }
}

/// A run without a draft does not change the file.
#[test]
fn without_a_draft_the_file_is_unchanged() {
    let server = usual_server();
    server.fault_at(1, Fault::status(401));
    let ran = draft(&server, Protocol::OpenAi)
        .file("out.md", "old\n")
        .args(["-o", "out.md"])
        .code(4)
        .run();
    assert_eq!(ran.read("out.md"), "old\n");
}

#[cfg(unix)]
#[test]
fn an_output_file_behind_a_link_keeps_the_link() {
    let server = usual_server();
    let test = draft(&server, Protocol::OpenAi).file("real.md", "old\n");
    std::os::unix::fs::symlink("real.md", test.path("link.md")).expect("a link");
    let ran = test.args(["-o", "link.md"]).run();
    assert_eq!(ran.read("real.md"), "The second draft.\n");
    let link = std::fs::symlink_metadata(ran.path("link.md")).expect("a link");
    assert!(link.is_symlink(), "the link is kept");
}

/// A device or a pipe is opened for writing, never replaced. (The test uses a pipe: if it failed as root, it
/// would destroy a device.)
#[cfg(unix)]
#[test]
fn an_output_file_may_be_a_pipe() {
    use std::os::unix::fs::FileTypeExt as _;
    let server = usual_server();
    let test = draft(&server, Protocol::OpenAi).args(["-o", "pipe"]);
    let pipe = test.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let running = test.stdout("").spawn();
    // The run has ended before the pipe is opened; only then is there data to read.
    let metadata = std::fs::metadata(&pipe).expect("a pipe");
    assert!(metadata.file_type().is_fifo());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).expect("text")
    });
    let _ran = running.finish();
    let metadata = std::fs::metadata(&pipe).expect("the pipe still exists");
    assert!(metadata.file_type().is_fifo(), "it is still a pipe");
    assert_eq!(reader.join().expect("a reader"), "The second draft.\n");
}

#[test]
fn a_report_in_addition_to_the_draft() {
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi)
        .args(["--report", "report.md"])
        .stdout("The second draft.\n")
        .run();
    let report = ran.read("report.md");
    assert!(report.contains("## Critique report"), "{report}");
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi)
        .args(["--report", "report.JSON", "--format", "ndjson"])
        .run();
    check_result(&serde_json::from_str(&ran.read("report.JSON")).expect("JSON"));
    check_events(&ran.lines(), 0);
    // Also for a run that fails.
    let server = usual_server();
    server.fault_at(3, Fault::status(401));
    let ran = draft(&server, Protocol::OpenAi)
        .args(["--report", "report.md"])
        .code(4)
        .run();
    assert!(ran.read("report.md").contains("401"));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    for args in [
        &[][..],
        &["--format", "json"],
        &["--format", "markdown"],
        &["--format", "ndjson"],
    ] {
        let server = usual_server();
        draft(&server, Protocol::OpenAi)
            .args(args)
            .closed_stdout()
            .stderr_lacks("error")
            .run();
    }
    // Without a reader of the events, no further calls are made.
    let server = never_content();
    draft(&server, Protocol::OpenAi)
        .args(["--format", "ndjson", "-n", "9", "--plateau-iterations", "9"])
        .closed_stdout()
        .run();
    assert!(server.calls() <= 1, "{}", server.calls());
    // Commands that only print.
    for args in [
        &["--help"][..],
        &["draft", "--help"],
        &["completions", "bash"],
        &["config", "show"],
        &["man"],
    ] {
        Test::new().args(args).closed_stdout().stderr("").run();
    }
}

#[test]
fn colours_only_on_request() {
    // The harness rejects any escape in stderr; this test shows that there could be one.
    let server = usual_server();
    draft(&server, Protocol::OpenAi)
        .args(["--color", "never"])
        .run();
    draft(&usual_server(), Protocol::OpenAi)
        .env("NO_COLOR", "1")
        .env("CLICOLOR_FORCE", "1")
        .run();
    // An invalid file is shown in colours, without control characters of its own.
    let wrong = |criteria: &str| {
        Test::new()
            .file("criteria.toml", criteria)
            .args(["draft", "x", "-c", "criteria.toml"])
            .code(2)
    };
    let criteria = "treshold = 1 # \u{1b}]0;owned\u{7}\n";
    let plain = wrong(criteria).run().stderr;
    let coloured = wrong(criteria).arg("--color=always").run().stderr;
    assert!(coloured.contains("\u{1b}[1m"), "{coloured}");
    assert!(!coloured.contains("\u{1b}]"), "{coloured}");
    assert_eq!(console::strip_ansi_codes(&coloured), plain);
}

/// A model's text may contain control characters: the draft is printed unchanged, but the progress is not.
#[test]
fn control_characters_do_not_reach_the_terminal() {
    let issue = json!({"scores": {"clear": {"reason": "\u{1b}[2J", "score": 2}}, "issues": [{
        "type": "missing", "severity": "major", "criterion": "clear",
        "description": "\u{1b}]0;owned\u{7}", "suggested_fix": ""}]});
    let server = answering([Reply::text("a\u{1b}[31mb"), Reply::text(&issue.to_string())]);
    server.on(Purpose::Write, |_| Reply::empty());
    let ran = draft(&server, Protocol::OpenAi)
        .code(3)
        .stdout("a\u{1b}[31mb\n")
        .run();
    let shown = ran.then(["history", "show"]).run();
    assert!(!shown.stdout.contains('\u{1b}'), "{:?}", shown.stdout);
}

#[test]
fn the_scripted_provider_needs_no_network() {
    let script = format!(
        "[[reply]]\npurpose = 'write'\ntext = '{FIRST}'\n\
         [[reply]]\npurpose = 'judge'\njson = {{ scores = {{ clear = {{ reason = '', score = 5 }} }} }}\n"
    );
    Test::new()
        .file("script.toml", script)
        .file("criteria.toml", crate::plan::CRITERIA)
        .args([
            "draft",
            "Write a line.",
            "-c",
            "criteria.toml",
            "--provider",
            "scripted:script.toml",
        ])
        .stdout("The first draft.\n")
        .run();
    for (file, said) in [("script.toml", "txt"), ("nowhere.toml", "nowhere.toml")] {
        Test::new()
            .file("script.toml", "[[reply]]\ntxt = 'a'\n")
            .args(["draft", "Write.", "--provider", &format!("scripted:{file}")])
            .code(2)
            .stderr_has(said)
            .run();
    }
}
