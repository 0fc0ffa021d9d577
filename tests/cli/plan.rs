//! The usual run: a draft that fails, and a revision that passes. Four calls.

use serde_json::{Value, json};

use crate::harness::{KEY, Test};
use crate::support::server::{Planned, Protocol, Reply, Server};

pub(crate) const BOTH: [Protocol; 2] = [Protocol::Ollama, Protocol::OpenAi];

pub(crate) const FIRST: &str = "The first draft.";
pub(crate) const SECOND: &str = "The second draft.";

/// One criterion for the judge, and one hard check.
pub(crate) const CRITERIA: &str = r#"
name = "house"
threshold = 0.8

[[criteria]]
name = "clear"
description = "A reader understands it at once."

[[criteria]]
name = "short"
evaluator = "length"
unit = "words"
max = 50
"#;

/// A verdict with this step (1 to 5) on the criterion `clear`; below 4 with an issue.
pub(crate) fn verdict(step: u8) -> Value {
    let issues = if step < 4 {
        json!([{"type": "missing", "severity": "major", "criterion": "clear",
            "description": "It does not say what it is about.", "suggested_fix": "Say it first."}])
    } else {
        json!([])
    };
    json!({"scores": {"clear": {"analysis": "As it reads.", "score": step}}, "issues": issues,
        "confidence": 0.8})
}

/// The replies of the usual run.
pub(crate) fn usual() -> Vec<Reply> {
    let verdict = |step| Reply::text(&verdict(step).to_string());
    vec![
        Reply::text(FIRST),
        verdict(2),
        Reply::text(SECOND),
        verdict(5),
    ]
}

/// Starts a server that gives these replies in order.
pub(crate) fn answering(replies: impl IntoIterator<Item = impl Into<Planned>>) -> Server {
    let server = Server::start();
    for reply in replies {
        match reply.into() {
            Planned::Reply(reply) => server.reply(*reply),
            Planned::Fault(fault) => server.fault(*fault),
        };
    }
    server
}

/// Starts a server for the usual run.
pub(crate) fn usual_server() -> Server {
    answering(usual())
}

/// A world configured for the server, with a key for it.
pub(crate) fn with_server(server: &Server, protocol: Protocol) -> Test {
    with_address(&server.url(), protocol)
}

/// Like [`with_server`], for an address.
pub(crate) fn with_address(url: &str, protocol: Protocol) -> Test {
    let test = Test::new().file("criteria.toml", CRITERIA);
    match protocol {
        Protocol::Ollama => test
            .env("OLLAMA_HOST", url)
            .env("OLLAMA_API_KEY", KEY)
            .env("REFLECT_MODEL", "ollama:test"),
        Protocol::OpenAi => test
            .env("OPENAI_BASE_URL", format!("{url}/v1"))
            .env("OPENAI_API_KEY", KEY)
            .env("REFLECT_MODEL", "openai:test"),
    }
}

/// Runs `reflect draft` with the server.
pub(crate) fn draft(server: &Server, protocol: Protocol) -> Test {
    with_server(server, protocol).args(["draft", "Write a line.", "-c", "criteria.toml"])
}
