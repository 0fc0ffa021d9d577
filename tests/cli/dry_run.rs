//! `--dry-run`: shows the plan without calling a model, using the network or writing files.

use serde_json::Value;

use crate::harness::{KEY, Ran, Test};
use crate::plan::{BOTH, answering, usual_server, verdict, with_server};
use crate::support::server::{Protocol, Reply, Server};

/// Runs a dry run, which must leave nothing behind.
#[track_caller]
fn dry(server: &Server, test: Test) -> Ran {
    let ran = test.arg("--dry-run").stderr("").run();
    assert!(server.requests().is_empty(), "a request was made");
    for trace in ["../home/.local", "../home/.cache", "out.md", "report.md"] {
        assert!(!ran.path(trace).exists(), "{trace} was written");
    }
    ran
}

fn drafts(server: &Server, protocol: Protocol) -> Test {
    with_server(server, protocol)
        .file("notes.txt", "The notes say how to write a line.")
        .args([
            "draft",
            "Write a line.",
            "-c",
            "criteria.toml",
            "-f",
            "notes.txt",
        ])
}

#[track_caller]
fn range(value: &Value) -> (u64, u64) {
    let figure = |name: &str| value[name].as_u64().expect("a figure");
    (figure("least"), figure("most"))
}

/// The messages must equal those of the real run, and its calls must be within the estimate.
#[test]
fn the_first_call_equals_that_of_the_real_run() {
    for protocol in BOTH {
        let server = usual_server();
        let ran = dry(
            &server,
            drafts(&server, protocol)
                .args(["-q", "--format", "json", "--evidence", "notes.txt"])
                .args(["-o", "out.md", "--report", "report.md"]),
        );
        let plan = ran.json();
        assert_eq!(plan["dry_run"], true);
        let model = &plan["settings"]["model"];
        assert_eq!(model["origin"], "REFLECT_MODEL");
        assert_eq!(
            plan["settings"]["loop.max_iterations"]["origin"],
            "built-in"
        );
        assert!(
            plan["models"]["writes"]
                .as_str()
                .expect("a text")
                .contains(":test, from REFLECT_MODEL")
        );
        drafts(&server, protocol)
            .args(["--evidence", "notes.txt"])
            .run();
        let sent = &server.chats()[0].body["messages"];
        assert_eq!(&plan["first_call"]["messages"], sent);
        let estimate = &plan["estimate"];
        let (least, most) = range(&estimate["calls"]);
        let calls = server.calls() as u64;
        assert!((least..=most).contains(&calls), "{calls}: {estimate}");
        assert_eq!(least, 2);
        for figure in ["tokens_read", "tokens_written"] {
            let (least, most) = range(&estimate[figure]);
            assert!(0 < least && least < most, "{estimate}");
        }
    }
}

#[test]
fn the_text_output() {
    let server = Server::start();
    let ran = dry(
        &server,
        drafts(&server, Protocol::OpenAi).args(["-n", "2", "--judge-model", "ollama:big"]),
    );
    for part in [
        "dry run: no model is called, and nothing is written\n\nsettings\n",
        "  loop.max_iterations = 2  # --max-iterations\n",
        "\nmodels\n  writes: openai:test, from REFLECT_MODEL\n  judges: ollama:big\n",
        "\nfirst call: a draft, from the writer\n--- system\n",
        "--- user\n",
        "The notes say how to write a line.",
        "each draft: 1 hard check, then 1 call to the judge",
        "up to 1 revision",
        "estimate (rough",
        "  calls          2 to 8\n",
    ] {
        assert!(ran.stdout.contains(part), "no {part:?} in\n{}", ran.stdout);
    }
}

/// For an existing text, the first call is the evaluation.
#[test]
fn existing_texts_are_evaluated_first() {
    for command in ["evaluate", "revise"] {
        let server = answering([Reply::text(&verdict(5).to_string())]);
        let test = || {
            with_server(&server, Protocol::OpenAi)
                .file("text.md", "The text.\n")
                .args([command, "text.md", "-c", "criteria.toml"])
        };
        let plan = dry(&server, test().args(["--format", "json"])).json();
        assert_eq!(plan["first_call"]["for"], "a verdict");
        test().run();
        assert_eq!(
            plan["first_call"]["messages"],
            server.chats()[0].body["messages"],
            "{command}"
        );
    }
}

#[test]
fn a_correction_is_one_call() {
    let server = usual_server();
    let test = || {
        with_server(&server, Protocol::OpenAi)
            .file("text.md", "A first draft.\n")
            .file("errors.txt", "It says too little.\n")
            .args(["revise", "text.md", "--errors", "errors.txt"])
    };
    let plan = dry(&server, test().args(["--format", "json"])).json();
    assert_eq!(plan["first_call"]["for"], "a correction");
    assert_eq!(range(&plan["estimate"]["calls"]), (1, 1));
    test().stdout("The first draft.\n").run();
    assert_eq!(
        plan["first_call"]["messages"],
        server.chats()[0].body["messages"]
    );
}

#[test]
fn hard_checks_need_no_model() {
    let server = Server::start();
    let plan = dry(
        &server,
        with_server(&server, Protocol::OpenAi)
            .file("a.md", "One.")
            .file("b.md", "Two.")
            .file(
                "hard.toml",
                "name = 'h'\n[[criteria]]\nname = 's'\nevaluator = 'length'\nmax = 9\n",
            )
            .args([
                "evaluate",
                "a.md",
                "b.md",
                "-c",
                "hard.toml",
                "--format",
                "json",
            ]),
    )
    .json();
    assert_eq!(plan["first_call"], Value::Null);
    assert_eq!(range(&plan["estimate"]["calls"]), (0, 0));
    assert!(plan["then"].to_string().contains("each of the 2 texts"));
}

/// Choosing the provider would need a network call, so it is left open.
#[test]
fn no_server_is_contacted_to_choose_a_model() {
    let server = Server::start();
    let ran = dry(
        &server,
        Test::new()
            .env("OLLAMA_HOST", server.url())
            .env("OPENAI_API_KEY", KEY)
            .args(["draft", "Write.", "-c", "writing"]),
    );
    assert!(
        ran.stdout.contains("writes: chosen when the run starts"),
        "{}",
        ran.stdout
    );
    // A key command does not run, either.
    let config =
        "[providers.work]\nbase_url = 'http://127.0.0.1:9'\napi_key_cmd = 'touch ran; echo x'\n";
    let ran = dry(
        &server,
        Test::new()
            .file("../home/.config/reflect/config.toml", config)
            .args([
                "draft",
                "Write.",
                "-c",
                "writing",
                "-m",
                "work:a",
                "--judge-model",
                "b",
            ]),
    );
    assert!(ran.stdout.contains("judges: work:b"), "{}", ran.stdout);
    assert!(!ran.path("ran").exists());
}

#[test]
fn a_dry_run_reports_the_same_input_errors() {
    let server = Server::start();
    for (args, said) in [
        (
            vec!["draft", "x", "-c", "nowhere.toml", "--dry-run"],
            "nowhere.toml",
        ),
        (
            vec!["draft", "x", "-n", "0", "--dry-run"],
            "--max-iterations",
        ),
        (
            vec!["draft", "--dry-run", "-c", "writing", "-f", "gone.txt", "x"],
            "gone.txt",
        ),
        (
            vec!["draft", "x", "--dry-run", "--format", "ndjson"],
            "has no events",
        ),
        (
            vec!["evaluate", "gone.md", "-c", "writing", "--dry-run"],
            "gone.md",
        ),
    ] {
        with_server(&server, Protocol::OpenAi)
            .args(args)
            .code(2)
            .stdout("")
            .stderr_has(said)
            .run();
    }
    assert!(server.requests().is_empty());
}
