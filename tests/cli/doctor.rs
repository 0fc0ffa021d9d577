//! `reflect doctor`: its checks, its report, and what it leaves unchanged.

use serde_json::{Value, json};

use crate::harness::{KEY, Ran, Test};
use crate::plan::{BOTH, answering, with_server};
use crate::support::server::{Fault, Protocol, Reply, Server};

const USER: &str = "../home/.config/reflect/config.toml";

/// A JSON reply with cached tokens and log-probabilities.
fn in_json() -> Reply {
    Reply::text(r#"{"word_of_verdict": "yes", "step_of_verdict": 5}"#)
        .usage(300, 20, Some(260))
        .logprobs(json!([{"token": "{", "logprob": -0.1,
            "top_logprobs": [{"token": "{", "logprob": -0.1}]}]))
}

/// Starts a server with a fully capable model.
fn able() -> Server {
    let counted: Vec<String> = (0..30).map(|n| format!("{n}, ")).collect();
    let pieces: Vec<&str> = counted.iter().map(String::as_str).collect();
    answering([
        Reply::pieces(&pieces)
            .usage(300, 30, Some(0))
            .wait(std::time::Duration::from_millis(2)),
        in_json(),
    ])
}

/// Returns the only check of this name.
#[track_caller]
fn check(ran: &Ran, name: &str) -> Value {
    let report = ran.json();
    let checks = report["checks"].as_array().expect("checks");
    let mut found = checks.iter().filter(|check| check["check"] == name);
    let one = found
        .next()
        .unwrap_or_else(|| panic!("no {name}: {report:#}"));
    assert!(found.next().is_none(), "two {name}: {report:#}");
    one.clone()
}

#[track_caller]
fn level(ran: &Ran, name: &str) -> String {
    check(ran, name)["level"]
        .as_str()
        .expect("a level")
        .to_owned()
}

#[test]
fn a_fully_capable_model() {
    for protocol in BOTH {
        let server = able();
        let ran = with_server(&server, protocol)
            .args(["doctor", "--json"])
            .stderr_has("two small calls")
            .run();
        let report = ran.json();
        assert_eq!(report["schema_version"], 1);
        assert_eq!(
            (&report["well"], &report["exit_code"]),
            (&json!(true), &json!(0))
        );
        for name in [
            "endpoint",
            "key",
            "model",
            "context window",
            "speed",
            "reasoning",
        ] {
            assert_eq!(level(&ran, name), "ok", "{name}: {report:#}");
        }
        assert_eq!(level(&ran, "structured output"), "ok");
        assert_eq!(
            check(&ran, "context window")["measured"]["context_window"],
            8192
        );
        let speed = &check(&ran, "speed")["measured"];
        assert!(speed["tokens_per_second"].as_f64() > Some(1.0), "{speed}");
        assert!(speed["first_piece_ms"].is_u64(), "{speed}");
        // The variable is named; the key never is, which the harness checks.
        let key = check(&ran, "key")["finding"].to_string();
        assert!(key.contains("_API_KEY"), "{key}");
        if protocol == Protocol::OpenAi {
            assert_eq!(level(&ran, "prompt cache"), "ok");
            assert_eq!(
                check(&ran, "prompt cache")["measured"]["cached_tokens"],
                260
            );
            assert_eq!(level(&ran, "log-probabilities"), "ok");
        }
        assert_eq!(server.calls(), 2);
        // Both calls share a prefix.
        let text = |n: usize| server.chats()[n].body["messages"][0]["content"].to_string();
        let (one, other) = (text(0), text(1));
        let common = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
        assert!(common.count() > 500);
        // The call requests the schema, and the prompt does not reveal its keys.
        assert!(!other.contains("word_of_verdict"));
        let body = server.chats()[1].body.to_string();
        assert!(body.contains("word_of_verdict"), "{body}");
        // Nothing is stored.
        assert!(!ran.path("../home/.local").exists());
    }
}

#[test]
fn the_text_report() {
    let server = able();
    let ran = with_server(&server, Protocol::OpenAi)
        .args(["doctor", "-q"])
        .stderr("")
        .run();
    for part in [
        "configuration\n  · user file",
        "storage\n  ✓ run log",
        "programs\n",
        "model openai:test (writer and judge)\n  ✓ choice",
        "✓ structured output  with the schema enforced, the reply matches the schema\n",
        "✓ prompt cache       260 of 300 tokens of the second call were cached\n",
        "\nA run would work; 0 warnings.\n",
    ] {
        assert!(ran.stdout.contains(part), "no {part:?} in\n{}", ran.stdout);
    }
}

#[test]
fn a_model_with_few_capabilities() {
    let server = answering([
        Reply::reasoning_only("Let me see. One, two."),
        // It reasons even after a retry with reasoning off.
        Reply::reasoning_only("Let me see. One, two."),
        Reply::text("The sea is wet.").usage(300, 5, Some(0)),
    ]);
    server.models(&[("test", 2048)]);
    let ran = with_server(&server, Protocol::OpenAi)
        .args(["doctor", "--json", "--judge-model", "openai:test"])
        .run();
    assert_eq!(level(&ran, "context window"), "warning");
    assert_eq!(level(&ran, "structured output"), "warning");
    assert_eq!(level(&ran, "prompt cache"), "warning");
    assert_eq!(level(&ran, "log-probabilities"), "note");
    let reasoning = check(&ran, "reasoning");
    assert_eq!(reasoning["measured"]["reasoning_characters"], 21);
    assert!(reasoning["finding"].to_string().contains("without a reply"));
    for name in ["context window", "structured output", "prompt cache"] {
        assert!(check(&ran, name)["advice"].is_string(), "{name}");
    }
}

/// A server that rejects a schema gets a weaker request, which is reported.
#[test]
fn structured_output_falls_back_step_by_step() {
    let refuses = |what: &str| {
        let message = format!("response_format of type {what} is not supported");
        Fault::error(400, &json!({"error": {"message": message}}))
    };
    let server = Server::start();
    server.reply_text("One, two.");
    server.fault(refuses("json_schema"));
    server.fault(refuses("json_object"));
    server.reply_text("{\"wet\": true}");
    let ran = with_server(&server, Protocol::OpenAi)
        .args(["doctor", "--json"])
        .run();
    let found = check(&ran, "structured output");
    assert_eq!(found["level"], "warning");
    let finding = found["finding"].to_string();
    assert!(finding.contains("with the prompt alone"), "{finding}");
}

#[test]
fn no_calls_makes_no_calls() {
    for protocol in BOTH {
        let server = Server::start();
        let ran = with_server(&server, protocol)
            .args(["doctor", "--no-calls", "--json"])
            .stderr("")
            .run();
        assert_eq!(server.calls(), 0);
        assert_eq!(level(&ran, "endpoint"), "ok");
        assert_eq!(level(&ran, "not measured"), "note");
    }
}

#[test]
fn each_model_of_a_run_is_checked() {
    let (writer, judge) = (able(), able());
    let ran = with_server(&writer, Protocol::OpenAi)
        .env("OLLAMA_HOST", judge.url())
        .args(["doctor", "--json", "--judge-model", "ollama:test"])
        .run();
    let report = ran.json();
    let subjects: Vec<_> = report["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .filter_map(|check| check["subject"].as_str())
        .collect();
    assert!(subjects.contains(&"openai:test (writes)"), "{subjects:?}");
    assert!(subjects.contains(&"ollama:test (judges)"), "{subjects:?}");
    assert_eq!((writer.calls(), judge.calls()), (2, 2));
}

#[test]
fn a_failing_provider_is_exit_code_4_with_advice() {
    // No server is listening.
    let ran = Test::new()
        .args(["doctor", "--json", "-m", "ollama:qwen3"])
        .code(4)
        .reports()
        .run();
    assert_eq!(level(&ran, "endpoint"), "failed");
    assert!(
        check(&ran, "endpoint")["advice"]
            .to_string()
            .contains("ollama serve")
    );
    assert_eq!(
        (&ran.json()["well"], &ran.json()["exit_code"]),
        (&json!(false), &json!(4))
    );
    // The model does not exist: similar names are suggested.
    let server = Server::start();
    server.models(&[("qwen3:8b", 8192), ("llama3.2:3b", 8192)]);
    for (args, provider) in [
        (["-m", "ollama:qwen"], ("OLLAMA_HOST", server.url())),
        (
            ["-m", "openai:qwen"],
            ("OPENAI_BASE_URL", server.openai_url()),
        ),
    ] {
        let ran = Test::new()
            .env(provider.0, provider.1)
            .args(["doctor", "--json"])
            .args(args)
            .code(4)
            .reports()
            .run();
        let model = check(&ran, "model");
        assert_eq!(model["level"], "failed");
        assert!(model["advice"].to_string().contains("qwen3:8b"), "{model}");
    }
    assert_eq!(server.calls(), 0);
    // No key.
    let ran = Test::new()
        .args(["doctor", "--json", "-m", "openai:gpt-5-mini"])
        .code(4)
        .reports()
        .run();
    assert_eq!(level(&ran, "key"), "failed");
    assert!(
        check(&ran, "key")["advice"]
            .to_string()
            .contains("OPENAI_API_KEY")
    );
    // A rejected key.
    let server = answering([Fault::status(401)]);
    let ran = with_server(&server, Protocol::OpenAi)
        .args(["doctor", "--json"])
        .code(4)
        .reports()
        .run();
    assert_eq!(level(&ran, "answer"), "failed");
}

#[test]
fn an_invalid_configuration_is_exit_code_2_and_the_rest_is_checked() {
    let ran = Test::new()
        .file(USER, "# mine\nretris = 3\n")
        .args(["doctor", "--json"])
        .code(2)
        .reports()
        .run();
    let files = check(&ran, "files");
    assert_eq!(files["level"], "failed");
    assert!(
        files["finding"].to_string().contains("config.toml:2:1"),
        "{files}"
    );
    assert_eq!(level(&ran, "run log"), "ok");
    let ran = Test::new()
        .args(["doctor", "--json", "--temperature", "9"])
        .code(2)
        .reports()
        .run();
    assert_eq!(level(&ran, "settings"), "failed");
    let ran = Test::new()
        .args(["doctor", "--json", "--provider", "olama"])
        .code(2)
        .reports()
        .run();
    assert!(
        check(&ran, "choice")["advice"]
            .to_string()
            .contains("`ollama`")
    );
}

#[cfg(unix)]
#[test]
fn files_and_folders() {
    use std::os::unix::fs::PermissionsExt as _;
    let test = Test::new();
    let here = test.path("").canonicalize().expect("a folder");
    let config = format!(
        "model = 'scripted:script.toml'\ncriteria = 'nowhere'\ncriteria_path = ['{0}/sets', '{0}/gone']\n\
         [trust]\nexec = ['{0}/sets', '{0}/gone']\n",
        here.display()
    );
    let test = test
        .file(USER, config)
        .file("sets/a.toml", "")
        .file(".reflect.toml", "[loop]\nmax_iterations = 2\n")
        .file(
            "script.toml",
            "[[reply]]\ntext = 'One, two.'\n[[reply]]\njson = { wet = true }\n",
        )
        .file("../home/.local/state/reflect/reflect.db", "");
    let mode = |path: &str, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(test.path(path), mode).expect("permissions");
    };
    mode(USER, 0o664);
    mode("sets", 0o777);
    mode("../home/.local/state/reflect/reflect.db", 0o644);
    let ran = test.args(["doctor"]).code(2).reports().run();
    for part in [
        "! user file",
        "✓ project file",
        "/work/.reflect.toml\n",
        "/sets: 1 file\n",
        "/gone is not a folder\n",
        "✗ default",
        "other users can write to it\n",
        "! trusted",
        "! run log",
        "chmod 600",
        "model scripted:script.toml (writer and judge)",
        "A run would fail: 1 fault; ",
    ] {
        assert!(ran.stdout.contains(part), "no {part:?} in\n{}", ran.stdout);
    }
}

#[cfg(unix)]
#[test]
fn an_unwritable_folder_is_exit_code_1() {
    use std::os::unix::fs::PermissionsExt as _;
    let test = Test::new().ordinary_user().folder("closed").file(
        "script.toml",
        "[[reply]]\ntext = 'One, two.'\n[[reply]]\njson = { wet = true }\n",
    );
    let closed = std::fs::Permissions::from_mode(0o555);
    std::fs::set_permissions(test.path("closed"), closed).expect("permissions");
    let ran = test
        .env("REFLECT_STATE_DIR", "closed/state")
        .args(["doctor", "--json", "--provider", "scripted:script.toml"])
        .code(1)
        .reports()
        .run();
    assert_eq!(level(&ran, "run log"), "failed");
}

/// `doctor` does not download embedded models.
#[test]
fn embedded_models_are_not_downloaded() {
    let ran = Test::new()
        .args(["doctor", "--json"])
        .env("HF_ENDPOINT", "http://127.0.0.1:1")
        .run();
    let model = check(&ran, "model");
    assert_eq!(model["level"], "warning");
    assert!(model["advice"].to_string().contains("reflect models pull"));
    assert!(!ran.path("../home/.cache").exists());
}

#[test]
fn a_key_command_runs_once() {
    let server = able();
    let config = format!(
        "[providers.work]\nbase_url = '{}'\nmodel = 'test'\n\
         api_key_cmd = \"echo asked >> asked.txt; echo {KEY}\"\n",
        server.openai_url()
    );
    let ran = Test::new()
        .file(USER, config)
        .args(["doctor", "--json", "-m", "work:"])
        .run();
    if cfg!(unix) {
        assert_eq!(ran.read("asked.txt"), "asked\n");
    }
    let key = check(&ran, "key")["finding"].to_string();
    assert!(key.contains("`api_key_cmd` of provider `work`"), "{key}");
    let bearer = format!("Bearer {KEY}");
    assert_eq!(
        server.chats()[0].header("authorization"),
        Some(bearer.as_str())
    );
}
