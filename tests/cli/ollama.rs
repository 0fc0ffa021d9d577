//! Ollama as it really behaves, on recorded answers (`tests/data/ollama`).

use std::net::TcpListener;

use crate::harness::{KEY, Test};
use crate::plan::{CRITERIA, usual_server};
use crate::support::server::Server;

/// A list with `big:120b-remote`, which lives on another host, between models that run here.
const TAGS: &str = include_str!("../data/ollama/tags-with-remote-model.json");

fn draft(server: &Server) -> Test {
    Test::new()
        .file("criteria.toml", CRITERIA)
        .env("OLLAMA_HOST", server.url())
        .args(["draft", "Write a line.", "-c", "criteria.toml"])
}

/// The recorded list with nothing but the remote model.
fn only_remote() -> String {
    let mut tags: serde_json::Value = serde_json::from_str(TAGS).expect("JSON");
    let models = tags["models"].as_array_mut().expect("a list");
    models.retain(|model| model["remote_host"].is_string());
    assert_eq!(models.len(), 1);
    tags.to_string()
}

#[test]
fn a_model_on_another_host_is_never_chosen_by_itself() {
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
    // Ollama has nothing else: then it has none.
    let server = Server::start();
    server.tags(&only_remote());
    draft(&server)
        .args(["--provider", "ollama"])
        .code(4)
        .stderr_has("has no model")
        .run();
    assert_eq!(server.calls(), 0);
    // By its name alone, too: older servers say no more.
    let server = Server::start();
    server.models(&[("gpt-oss:120b-cloud", 8192), ("kimi:cloud", 8192)]);
    draft(&server)
        .args(["--provider", "ollama"])
        .code(4)
        .stderr_has("has no model")
        .run();
}

#[test]
fn a_model_on_another_host_leaves_the_machine_and_that_is_said() {
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
        .stderr_has("`ollama:big:120b-remote` runs at http://127.0.0.1:9, and offline only this machine is asked")
        .run();
    // As a judge, and with a window that the user sets.
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
    // Nor for a file that may be somebody else's.
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
fn the_doctor_and_the_list_say_where_a_model_runs() {
    let server = usual_server();
    server.tags(TAGS);
    let ran = Test::new()
        .env("OLLAMA_HOST", server.url())
        .args(["doctor", "--no-calls", "-m", "ollama:big:120b-remote"])
        .run();
    let said = "! where it runs";
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

/// What is slow is there: the prompt does not go elsewhere for that.
#[test]
fn an_ollama_that_does_not_answer_is_no_missing_one() {
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
        .stderr_has("accepts connections but does not answer yet; waiting up to 1 s")
        .stderr_has("does not answer")
        .stderr_has("hint: ")
        .stderr_lacks("OPENAI_API_KEY")
        .run();
}
