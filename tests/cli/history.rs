//! `reflect history`: finding, comparing, exporting and deleting runs.

use std::fs;

use crate::harness::{Ran, Test};
use crate::plan::{BOTH, FIRST, SECOND, draft, usual_server, with_server};
use crate::support::server::{Protocol, Reply, Server};

/// A run with two drafts, `The first draft.` and `The second draft.`.
fn one_run() -> Ran {
    draft(&usual_server(), Protocol::OpenAi).run()
}

/// Another run in the same world, with another prompt.
fn another(ran: &Ran, prompt: &str) -> Ran {
    let server = usual_server();
    ran.then(["draft", prompt, "-c", "criteria.toml", "--no-cache"])
        .env("OPENAI_BASE_URL", format!("{}/v1", server.url()))
        .run()
}

/// Returns the prompts of the listed runs.
#[track_caller]
fn listed(ran: &Ran, args: &[&str]) -> Vec<String> {
    let args = [&["history", "list", "--json"], args].concat();
    let runs = ran.then(args).run().json();
    let titles = runs.as_array().expect("runs").iter();
    titles
        .map(|run| run["title"].as_str().expect("a title").to_owned())
        .collect()
}

#[test]
fn runs_are_found_by_text_and_by_metadata() {
    let ran = one_run();
    another(&ran, "Explain ownership.\nBe brief about zebras.");
    let (one, other) = ("Write a line.", "Explain ownership.");
    for (args, expected) in [
        (&[][..], &[other, one][..]),
        (&["zebra"], &[other]),
        (&["EXPL", "own"], &[other]),
        (&["\"second draft\""], &[other, one]),
        (&["\"draft second\""], &[]),
        (&["line", "zebra"], &[]),
        (&["-n", "1"], &[other]),
        (&["--since", "1h"], &[other, one]),
        (&["--since", "2100-01-01"], &[]),
        (&["--model", "openai:TEST"], &[other, one]),
        (&["--model", "qwen"], &[]),
        (&["--command", "draft"], &[other, one]),
        (&["--command", "evaluate"], &[]),
        (&["--criteria", "house"], &[other, one]),
        (&["--criteria", "hous"], &[]),
        (&["--success"], &[other, one]),
        (&["--failed"], &[]),
    ] {
        assert_eq!(listed(&ran, args), expected, "{args:?}");
    }
    ran.then(["history", "list", "giraffe"])
        .stdout("")
        .stderr_has("no matching runs")
        .run();
    ran.then(["history", "list", "?!"])
        .code(2)
        .stderr_has("`?!` contains no word to search for")
        .run();
    ran.then(["history", "list", "--since", "soon"])
        .code(2)
        .stderr_has("--since: `soon` is not a valid age or date")
        .stderr_has("hint: use an age such as `12h`")
        .run();
}

#[test]
fn drafts_are_compared() {
    let ran = one_run();
    let diff = |args: &[&str]| ran.then([&["history", "diff"], args].concat());
    let lines = diff(&[]).run().stdout;
    assert!(
        lines.ends_with("@@ -1 +1 @@\n-The first draft.\n+The second draft.\n"),
        "{lines}"
    );
    assert!(
        lines.starts_with("--- ") && lines.contains(" draft 1\n+++ "),
        "{lines}"
    );
    let words = diff(&["last:2", "last:1", "--words"]).run().stdout;
    assert!(
        words.ends_with("The [-second-]{+first+} draft.\n"),
        "{words}"
    );
    let coloured = diff(&["--color=always"]).run().stdout;
    assert!(coloured.contains("\u{1b}[31m-"), "{coloured:?}");
    diff(&["last:1", "last:1"])
        .stdout("")
        .stderr_has("draft 1 are the same")
        .run();
    another(&ran, "Write another line.");
    diff(&["last", "last:2"]).stdout("").run();
    for (args, said) in [
        (
            &["last:7"][..],
            "`last:7`: the run has no draft 7\nhint: choose one of its drafts with `RUN:N`: 1, 2",
        ),
        (&["last:x"], "`last:x` is not a draft"),
        (&["ffffffff"], "no run `ffffffff`"),
    ] {
        diff(args).code(2).stderr_has(said).run();
    }
}

#[test]
fn a_run_is_exported_in_the_requested_format() {
    let ran = one_run();
    let export = |args: &[&str]| ran.then([&["history", "export"], args].concat());
    let markdown = export(&[]).run().stdout;
    assert!(
        markdown.starts_with("The second draft.\n\n---\n"),
        "{markdown}"
    );
    assert_eq!(
        export(&["last", "--format", "markdown"]).run().stdout,
        markdown
    );
    assert_eq!(export(&["--format", "json"]).run().json(), ran.history());
    export(&["-o", "out.html"]).stdout("").stderr("").run();
    let page = ran.read("out.html");
    assert!(page.starts_with("<!doctype html>") && page.contains("The second draft."));
    assert_eq!(export(&["--format", "html"]).run().stdout, page);
    // The flag overrides the file extension.
    export(&["-o", "out.json", "--format", "md"]).run();
    assert_eq!(ran.read("out.json"), markdown);
    for (file, said) in [
        ("nowhere/x.html", "cannot write `nowhere/x.html`"),
        ("x.pdf", "unknown report format"),
    ] {
        export(&["-o", file]).code(2).stderr_has(said).run();
    }
}

#[test]
fn runs_are_deleted() {
    let ran = one_run();
    for prompt in ["Two.", "Three.", "Four."] {
        another(&ran, prompt);
    }
    let rm = |args: &[&str]| ran.then([&["history", "rm"], args].concat());
    rm(&["last"]).stdout("").stderr("deleted 1 run\n").run();
    assert_eq!(listed(&ran, &[]), ["Three.", "Two.", "Write a line."]);
    // If one run does not exist, nothing is deleted.
    rm(&["last", "ffffffff"])
        .code(2)
        .stderr_has("no run `ffffffff`")
        .run();
    rm(&["--older-than", "1h"]).stderr("deleted 0 runs\n").run();
    rm(&["--all"])
        .code(2)
        .stderr_has("this would delete 3 runs from the log\nhint: confirm with `--yes`")
        .run();
    assert_eq!(listed(&ran, &[]).len(), 3);
    for args in [
        &[][..],
        &["last", "--all"],
        &["--all", "--older-than", "1d"],
    ] {
        rm(args).code(2).run();
    }
    rm(&["--older-than", "2100-01-01"]).code(2).run();
    rm(&["--all", "--yes", "-q"]).stderr("").run();
    assert!(listed(&ran, &[]).is_empty());
    rm(&["last"]).code(2).run();
    Test::new()
        .args(["history", "rm", "last"])
        .code(2)
        .stderr_has("no runs yet")
        .run();
}

#[test]
fn the_log_is_at_the_printed_path() {
    let ran = one_run();
    let path = ran.then(["history", "path"]).stderr("").run().stdout;
    assert!(fs::metadata(path.trim_end()).expect("a file").is_file());
    let none = Test::new().args(["history", "path"]).run();
    assert!(
        fs::metadata(none.stdout.trim_end()).is_err(),
        "no file is created"
    );
}

#[test]
fn old_runs_are_deleted_according_to_the_settings() {
    let ran = one_run();
    another(&ran, "Two.");
    let server = usual_server();
    let config = |text: &str, code: i32| {
        ran.then([
            "draft",
            "Three.",
            "-c",
            "criteria.toml",
            "--config",
            "config.toml",
        ])
        .env("OPENAI_BASE_URL", format!("{}/v1", server.url()))
        .file("config.toml", text)
        .code(code)
    };
    config("[history]\nkeep_runs = 0\n", 2)
        .stderr_has("config.toml:2:13")
        .stderr_has("`history.keep_runs` must be at least 1")
        .run();
    // The run about to start does not count yet.
    config("[history]\nkeep_runs = 1\n", 0).run();
    assert_eq!(listed(&ran, &[]), ["Three.", "Two."]);
}

#[test]
fn the_errors_of_a_correction_and_the_reasons_of_strategies_are_shown() {
    for protocol in BOTH {
        let server = Server::start();
        server.reply(Reply::text("The sky is blue, and the sea as well."));
        let ran = with_server(&server, protocol)
            .args([
                "revise",
                "text.md",
                "--errors",
                "errors",
                "--strategy",
                "full_rewrite",
            ])
            .file("text.md", "The sky is green, and the sea as well.")
            .file("errors", "the sky is not green")
            .run();
        let shown = ran.then(["history", "show"]).run().stdout;
        assert!(shown.contains("incorrect: the sky is not green"), "{shown}");
    }
    let ran = one_run();
    let shown = ran.then(["history", "show"]).run().stdout;
    let events = ran
        .then(["history", "show", "--format", "ndjson"])
        .run()
        .lines();
    let reasons: Vec<&str> = events
        .iter()
        .filter(|event| event["event"] == "strategy")
        .map(|event| event["reason"].as_str().expect("a reason"))
        .collect();
    for reason in reasons {
        assert!(shown.contains(reason), "{reason}: {shown}");
    }
    assert_eq!(ran.drafts(), [FIRST, SECOND]);
}

#[test]
fn stats_show_the_gain_of_the_loop() {
    let ran = one_run();
    let run = &ran.then(["history", "list", "--json"]).run().json()[0];
    let (first, last) = (run["first_score"].as_f64(), run["overall_score"].as_f64());
    assert!(first < last, "{run}");
    // Four calls of 120 tokens each; the model has no price.
    assert_eq!(
        (run["tokens"].as_u64(), run["cost"].is_null()),
        (Some(480), true)
    );
    let stats = ran.then(["history", "stats", "--json"]).run().json();
    let group = &stats[0];
    assert_eq!(
        (group["criteria"].as_str(), group["runs"].as_u64()),
        (Some("house"), Some(1))
    );
    assert_eq!(group["model"], "openai:test");
    assert_eq!(
        (group["met"].as_f64(), group["worse"].as_f64()),
        (Some(1.0), Some(0.0))
    );
    let gain = group["gain_per_1000_tokens"].as_f64().expect("a gain");
    let expected = (last.expect("a score") - first.expect("a score")) / 0.48;
    assert!((gain - expected).abs() < 1e-9, "{gain} is not {expected}");
    let text = ran.then(["history", "stats"]).run().stdout;
    assert!(
        text.starts_with("house · openai:test: 1 run, 100 % met; score "),
        "{text}"
    );
    ran.then(["history", "stats", "-m", "other"])
        .stdout("")
        .stderr_has("no matching runs")
        .run();
}
