//! Ollama's real behaviour, with recorded responses (`tests/data/ollama`).

use std::net::TcpListener;

use crate::harness::{KEY, Test};
use crate::plan::{CRITERIA, usual_server};
use crate::support::server::Server;

/// A list with `big:120b-remote`, which runs on another host, and local models.
const TAGS: &str = include_str!("../data/ollama/tags-with-remote-model.json");

fn draft(server: &Server) -> Test {
    Test::new()
        .file("criteria.toml", CRITERIA)
        .env("OLLAMA_HOST", server.url())
        .args(["draft", "Write a line.", "-c", "criteria.toml"])
}

/// Returns the recorded list with only the remote model.
fn only_remote() -> String {
    let mut tags: serde_json::Value = serde_json::from_str(TAGS).expect("JSON");
    let models = tags["models"].as_array_mut().expect("a list");
    models.retain(|model| model["remote_host"].is_string());
    assert_eq!(models.len(), 1);
    tags.to_string()
}

#[test]
fn a_model_on_another_host_is_never_chosen_automatically() {
    for args in [&[][..], &["--provider", "ollama"], &["--offline"]] {
        let server = usual_server();
        server.tags(TAGS);
        draft(&server)
            .args(args)
            .stdout("The second draft.\n")
            .run();
        assert_ne!(
            server.chats()[0].body["model"],
            "big:120b-remote",
            "{args:?}"
        );
    }
    // With only a remote model, Ollama counts as having none.
    let server = Server::start();
    server.tags(&only_remote());
    draft(&server)
        .args(["--provider", "ollama"])
        .code(4)
        .stderr_has("has no models")
        .run();
    assert_eq!(server.calls(), 0);
    // Older servers mark remote models only by their name.
    let server = Server::start();
    server.models(&[("gpt-oss:120b-cloud", 8192), ("kimi:cloud", 8192)]);
    draft(&server)
        .args(["--provider", "ollama"])
        .code(4)
        .stderr_has("has no models")
        .run();
}

#[test]
fn a_model_on_another_host_is_reported() {
    let named = ["-m", "ollama:big:120b-remote"];
    let server = usual_server();
    server.tags(TAGS);
    draft(&server)
        .args(named)
        .stdout("The second draft.\n")
        .stderr_has("model: ollama:big:120b-remote")
        .stderr_has("; your prompt leaves this machine for http://127.0.0.1:9")
        .run();
    let server = Server::start();
    server.tags(TAGS);
    draft(&server)
        .args(named)
        .arg("--offline")
        .code(2)
        .stderr_has("`ollama:big:120b-remote` runs at http://127.0.0.1:9, which --offline forbids")
        .run();
    // As a judge, and with a window set by the user.
    draft(&server)
        .args([
            "-m",
            "ollama:smollm2:1t",
            "--judge-model",
            "big:120b-remote",
        ])
        .args(["--offline", "--num-ctx", "4096"])
        .code(2)
        .stderr_has("runs at http://127.0.0.1:9")
        .run();
    draft(&server)
        .args(["-m", "ollama:gpt-oss:120b-cloud", "--offline"])
        .code(2)
        .stderr_has("runs at ollama.com")
        .run();
    // An untrusted file may not name it, either.
    draft(&server)
        .args(["-m", "ollama:smollm2:1t"])
        .file(
            "criteria.toml",
            "[[criteria]]\nname = 'clear'\nmodel = 'big:120b-remote'\n",
        )
        .code(2)
        .stderr_has("--allow-models")
        .run();
    assert_eq!(server.calls(), 0);
}

#[test]
fn doctor_and_list_show_where_a_model_runs() {
    let server = usual_server();
    server.tags(TAGS);
    let ran = Test::new()
        .env("OLLAMA_HOST", server.url())
        .args(["doctor", "--no-calls", "-m", "ollama:big:120b-remote"])
        .run();
    let said = "! location";
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
    assert!(ran.stdout.contains("http://127.0.0.1:9"), "{}", ran.stdout);
    let ran = Test::new()
        .env("OLLAMA_HOST", server.url())
        .args(["models", "list", "--provider", "ollama"])
        .run();
    let line = ran
        .stdout
        .lines()
        .find(|line| line.contains("big:120b-remote"));
    assert!(
        line.is_some_and(|line| line.contains("runs at http://127.0.0.1:9")),
        "{}",
        ran.stdout
    );
}

/// Returns the recorded list with a change.
fn tags(change: impl FnOnce(&mut serde_json::Value)) -> String {
    let mut tags = serde_json::from_str(TAGS).expect("JSON");
    change(&mut tags);
    tags.to_string()
}

#[test]
fn by_default_a_loaded_model_is_preferred_to_the_newest() {
    let size = |tags: &mut serde_json::Value, name: &str, size: &str| {
        for model in tags["models"].as_array_mut().expect("a list") {
            if model["name"] == name {
                model["details"]["parameter_size"] = size.into();
            }
        }
    };
    let loaded = serde_json::json!([{"name": "smollm2:1t", "context_length": 8192}]);
    for (list, model, why) in [
        // All models are small: the newest local one, which the server lists first.
        (
            TAGS.to_owned(),
            "parrot:latest",
            "the newest model installed",
        ),
        (
            tags(|tags| tags["loaded"] = loaded.clone()),
            "smollm2:1t",
            "which is loaded",
        ),
        // Models below a billion parameters are used only if there is nothing larger.
        (
            tags(|tags| {
                tags["loaded"] = loaded.clone();
                size(tags, "thinker:135m", "8.2B");
            }),
            "thinker:135m",
            "the newest model installed",
        ),
    ] {
        for args in [&[][..], &["-m", "ollama:"]] {
            let server = usual_server();
            server.tags(&list);
            draft(&server)
                .args(args)
                .stdout("The second draft.\n")
                .stderr_has(&format!("model: ollama:{model}, "))
                .stderr_has(why)
                .run();
            assert_eq!(server.chats()[0].body["model"], model, "{args:?}");
        }
    }
}

#[test]
fn an_ollama_without_models_is_named() {
    let server = Server::start();
    server.tags(r#"{"models": []}"#);
    let of = |args: &[&str]| Test::new().env("OLLAMA_HOST", server.url()).args(args);
    of(&["models", "list"])
        .stderr_has("ollama: no models installed; download one, for example with `ollama pull")
        .run();
    // The weights of the embedded model are not downloaded either.
    of(&["doctor", "--no-calls", "--offline"])
        .reports()
        .code(4)
        .stdout_has("has no models (`ollama pull qwen3:4b`)")
        .stdout_has("its weights are not on this machine, and --offline prevents the download")
        .run();
}

#[test]
fn doctor_shows_the_ollama_version() {
    let server = Server::start();
    server.tags(TAGS);
    Test::new()
        .env("OLLAMA_HOST", server.url())
        .args(["doctor", "--no-calls"])
        .stdout_has("Ollama 0.32.1 at http://127.0.0.1:")
        .run();
}

#[test]
fn doctor_reports_system_and_messages_of_a_modelfile() {
    let server = Server::start();
    server.tags(&tags(|tags| {
        tags["models"][2]["system"] = "You are a pirate.".into();
        tags["models"][2]["messages"] = serde_json::json!([{"role": "user", "content": "Ahoy"}]);
    }));
    Test::new()
        .env("OLLAMA_HOST", server.url())
        .args(["doctor", "--no-calls", "-m", "ollama:smollm2:1t"])
        .stdout_has("reflect replaces its Modelfile's SYSTEM; its MESSAGE entries come first")
        .run();
}

#[test]
fn a_window_beyond_the_model_is_reported() {
    let server = usual_server();
    server.tags(TAGS);
    draft(&server)
        .args(["-m", "ollama:smollm2:1t", "--num-ctx", "16384"])
        .stdout("The second draft.\n")
        .stderr_has("warning: num_ctx is 16384, but ollama:smollm2:1t supports at most 8192 tokens")
        .run();
}

/// By default, a reasoning model reasons as a writer but not as a judge. `judge.think` changes that, and
/// reserves tokens.
#[test]
fn the_judge_has_its_own_reasoning_setting() {
    let run = |model: &str, config: &str| {
        let server = usual_server();
        server.tags(TAGS);
        draft(&server)
            .file("config.toml", config)
            .args(["--config", "config.toml", "-m", &format!("ollama:{model}")])
            .stdout("The second draft.\n")
            .run();
        let mut chats = server.chats().into_iter().map(|chat| chat.body);
        (
            chats.next().expect("a draft"),
            chats.next().expect("a verdict"),
        )
    };
    let (writes, judges) = run("thinker:135m", "");
    assert!(writes.get("think").is_none());
    assert_eq!(judges["think"], false);
    assert_eq!(judges["options"]["temperature"], 0.0);
    let short = judges["options"]["num_predict"].as_u64().expect("a limit");

    let (writes, judges) = run("thinker:135m", "think = 'high'\n[judge]\nthink = 'on'\n");
    assert_eq!(
        (&writes["think"], &judges["think"]),
        (&"high".into(), &true.into())
    );
    // Reasoning loops at temperature 0, and needs more tokens.
    assert!(judges["options"].get("temperature").is_none());
    let long = judges["options"]["num_predict"].as_u64().expect("a limit");
    assert!(long >= short + 4096 || long > 4096, "{short} {long}");

    // `think` is omitted for a model that cannot reason.
    let (_, judges) = run("smollm2:1t", "");
    assert!(judges.get("think").is_none());
}

/// A slow server counts as running: the prompt must not go elsewhere.
#[test]
fn an_unresponsive_ollama_is_not_skipped() {
    let busy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = busy.local_addr().expect("an address").to_string();
    Test::new()
        .file("criteria.toml", CRITERIA)
        .env("OLLAMA_HOST", &address)
        .env("OPENAI_API_KEY", KEY)
        .env("HTTPS_PROXY", "http://127.0.0.1:1")
        .args([
            "draft",
            "Write.",
            "-c",
            "criteria.toml",
            "--timeout-connect",
            "1s",
        ])
        .code(4)
        .stderr_has("accepts connections but does not respond yet; waiting up to 1 s")
        .stderr_has("does not respond")
        .stderr_has("hint: ")
        .stderr_lacks("OPENAI_API_KEY")
        .run();
}

/// The main paths with a real server: `OLLAMA_HOST` names it, and `REFLECT_TEST_MODEL` a model (the default
/// is the one that `reflect` chooses). Any model works, because only hard checks decide.
#[test]
#[ignore = "needs a real Ollama: OLLAMA_HOST=… cargo test --test cli -- --ignored real_ollama"]
fn the_main_paths_work_with_a_real_ollama() {
    let host = std::env::var("OLLAMA_HOST").expect("OLLAMA_HOST names a server");
    let model = std::env::var("REFLECT_TEST_MODEL").unwrap_or_default();
    let run = |args: &[&str]| {
        Test::new()
            .file(
                "criteria.toml",
                "[[criteria]]\nname = 'some'\nevaluator = 'length'\nmin = 1\n",
            )
            .file(
                "judged.toml",
                "threshold = 0.0\n[[criteria]]\nname = 'clear'\nthreshold = 0.0\n",
            )
            .file("draft.txt", "Ollama serves models.\n")
            .env("OLLAMA_HOST", &host)
            .args(args)
            .args(["-m", &format!("ollama:{model}")])
    };
    run(&["doctor"]).stdout_has("A run would work").run();
    let ran = run(&["draft", "Say hello in a sentence.", "-c", "criteria.toml"]).run();
    assert!(!ran.stdout.trim().is_empty());
    run(&["revise", "draft.txt", "-c", "criteria.toml"]).run();
    // However strictly it judges.
    let ran = run(&[
        "evaluate",
        "draft.txt",
        "-c",
        "judged.toml",
        "--format",
        "json",
    ])
    .run();
    assert!(ran.json()["total_llm_calls"].as_u64() > Some(0));
}
