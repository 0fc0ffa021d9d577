//! Recorded responses of real Ollama servers, served byte for byte.

use std::path::Path;

use crate::setup::{Outcome, Setup, ask, judging, writing};
use crate::support::server::{Fault, Protocol, Server};
use reflect::model::{ChatEvent, ChatRequest, EndReason, ErrorClass, RetryPolicy, Think};
use serde_json::{Value, json};

const VERSIONS: [&str; 3] = ["2026-05", "2026-08", "2026-08-native"];

/// Returns the recorded response of this version to this request; `None` if there is none.
fn recorded(version: &str, name: &str) -> Option<Fault> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/ollama")
        .join(format!("{version}.jsonl"));
    let text = std::fs::read_to_string(path).unwrap();
    let exchange = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|exchange| exchange["name"] == name)?;
    let body = exchange["body"].as_str().unwrap().to_owned();
    let status = u16::try_from(exchange["status"].as_u64().unwrap()).unwrap();
    Some(if status == 200 {
        Fault::Raw(body.into_bytes())
    } else {
        Fault::Status {
            status,
            headers: Vec::new(),
            body,
        }
    })
}

fn setup(protocol: Protocol) -> Setup {
    Setup {
        retries: RetryPolicy {
            max_retries: 0,
            ..RetryPolicy::default()
        },
        ..Setup::new(protocol)
    }
}

/// Makes a call whose first responses are recorded; the next one is the text `answer`.
fn replay(
    protocol: Protocol,
    version: &str,
    names: &[&str],
    request: ChatRequest,
) -> Option<(Outcome, Server)> {
    let server = Server::start();
    for name in names {
        server.fault(recorded(version, name)?);
    }
    server.reply_text("answer");
    let outcome = ask(&setup(protocol), &server, request);
    Some((outcome, server))
}

#[test]
fn plain_replies_and_their_usage() {
    for version in VERSIONS {
        let (outcome, _) = replay(Protocol::Ollama, version, &["chat"], writing()).unwrap();
        let reply = outcome.ok();
        assert!(!reply.text.is_empty(), "{version}");
        assert_eq!(reply.end, Some(EndReason::Stop), "{version}");
        assert!(reply.usage.prompt.is_some_and(|n| n > 0), "{version}");
        let (outcome, _) = replay(Protocol::Ollama, version, &["chat-length"], writing()).unwrap();
        assert_eq!(outcome.ok().end, Some(EndReason::Length), "{version}");
    }
}

/// A schema that Ollama cannot convert: status 500 in May, status 400 with llama.cpp's message since then.
#[test]
fn a_schema_that_cannot_be_converted_is_omitted() {
    for version in VERSIONS {
        for name in [
            "chat-format-bad-pattern",
            "chat-format-bad-ref",
            "chat-format-bad-type",
            "chat-format-not-schema",
        ] {
            let (outcome, server) = replay(Protocol::Ollama, version, &[name], judging()).unwrap();
            assert_eq!(outcome.ok().text, "answer", "{version} {name}");
            let chats = server.chats();
            assert_eq!(chats.len(), 2, "{version} {name}");
            assert!(chats[0].body.get("format").is_some(), "{version} {name}");
            assert!(chats[1].body.get("format").is_none(), "{version} {name}");
        }
        let (outcome, server) = replay(
            Protocol::OpenAi,
            version,
            &["v1-bad-schema", "v1-bad-schema"],
            judging(),
        )
        .unwrap();
        assert_eq!(outcome.ok().text, "answer", "{version}");
        assert!(
            server.chats()[2].body.get("response_format").is_none(),
            "{version}"
        );
    }
}

/// A model that cannot reason rejects `think`; the field is omitted and the run continues.
#[test]
fn a_model_that_cannot_reason_is_called_without_think() {
    let thinking = || ChatRequest {
        think: Think::Low,
        ..writing()
    };
    for version in VERSIONS {
        for name in ["think-unsupported", "think-level-unsupported"] {
            let (outcome, server) = replay(Protocol::Ollama, version, &[name], thinking()).unwrap();
            assert_eq!(outcome.ok().text, "answer", "{version} {name}");
            assert!(
                server.chats()[1].body.get("think").is_none(),
                "{version} {name}"
            );
        }
        let (outcome, server) = replay(
            Protocol::OpenAi,
            version,
            &["v1-reasoning-effort-plain"],
            thinking(),
        )
        .unwrap();
        assert_eq!(outcome.ok().text, "answer", "{version}");
        assert!(
            server.chats()[0].body.get("reasoning_effort").is_some(),
            "{version}"
        );
        assert!(
            server.chats()[1].body.get("reasoning_effort").is_none(),
            "{version}"
        );
    }
}

/// If a reply contains only reasoning, repeating the request would not help, so the next one turns reasoning
/// off.
#[test]
fn a_reply_with_only_reasoning_is_requested_again_without_it() {
    let limited = |limit| {
        let mut request = writing();
        request.sampling.max_tokens = limit;
        request
    };
    for version in ["2026-05", "2026-08"] {
        for (name, limit, says) in [
            ("think-default", None, "reasoned but wrote no answer"),
            (
                "think-budget-spent",
                Some(12),
                "spent its limit of 12 tokens on reasoning",
            ),
            (
                "think-budget-spent",
                None,
                "filled its context window with reasoning",
            ),
        ] {
            let (outcome, server) =
                replay(Protocol::Ollama, version, &[name], limited(limit)).unwrap();
            let notices = outcome.notices().join("\n");
            assert!(notices.contains(says), "{version} {name}: {notices}");
            let reply = outcome.ok();
            assert_eq!(
                (reply.text.as_str(), reply.attempts),
                ("answer", 2),
                "{version} {name}"
            );
            assert_eq!(
                server.chats()[1].body["think"],
                json!(false),
                "{version} {name}"
            );
        }
    }
    // Only once: a model that reasons anyway is not called again.
    let (outcome, server) = replay(
        Protocol::Ollama,
        "2026-05",
        &["think-default", "think-default"],
        writing(),
    )
    .unwrap();
    let reply = outcome.ok();
    assert_eq!((reply.text.as_str(), server.calls()), ("", 2));
    assert!(!reply.reasoning.is_empty());
}

/// Reasoning counts towards the limit and prevents `format` from being applied, so verdicts do without it by
/// default.
#[test]
fn replies_with_a_schema_do_not_reason_by_default() {
    let (_, server) = replay(
        Protocol::Ollama,
        "2026-05",
        &["think-false-format"],
        judging(),
    )
    .unwrap();
    assert_eq!(server.chats()[0].body["think"], json!(false));
    let asked = ChatRequest {
        think: Think::On,
        ..judging()
    };
    let (_, server) = replay(Protocol::Ollama, "2026-05", &["think-false-format"], asked).unwrap();
    assert_eq!(server.chats()[0].body["think"], json!(true));
    let (_, server) = replay(Protocol::Ollama, "2026-05", &["chat"], writing()).unwrap();
    assert!(server.chats()[0].body.get("think").is_none());
}

/// Ollama's `/v1` drops the start of a too long prompt without an error.
#[test]
fn a_truncated_prompt_is_reported() {
    let long = || {
        let mut request = writing();
        request.messages[0].content = "word ".repeat(12_000);
        request
    };
    for (version, read) in [("2026-05", 4096), ("2026-08", 2050)] {
        let (outcome, _) = replay(Protocol::OpenAi, version, &["v1-too-long"], long()).unwrap();
        let notices = outcome.notices().join("\n");
        let says = format!("the server processed only {read} tokens of a prompt with at least 75");
        assert!(notices.contains(&says), "{version}: {notices}");
        assert!(notices.contains("`--model ollama:NAME`"), "{notices}");
        let (outcome, _) = replay(Protocol::OpenAi, version, &["v1-too-long"], writing()).unwrap();
        assert!(outcome.notices().is_empty(), "{version}");
    }
    let (outcome, _) =
        replay(Protocol::OpenAi, "2026-08-native", &["v1-too-long"], long()).unwrap();
    assert_eq!(outcome.error().class, ErrorClass::ContextTooLong);
}

/// Some gateways cannot stream.
#[test]
fn a_reply_need_not_be_streamed() {
    for protocol in [Protocol::Ollama, Protocol::OpenAi] {
        let server = Server::start();
        if protocol == Protocol::Ollama {
            let whole = json!({"message": {"role": "assistant", "content": "whole"}, "done": true,
                "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 1});
            server.fault(Fault::Raw(whole.to_string().into_bytes()));
        } else {
            server.reply_text("whole");
        }
        let setup = Setup {
            stream: false,
            ..setup(protocol)
        };
        let reply = ask(&setup, &server, writing()).ok();
        assert_eq!((reply.text.as_str(), reply.attempts), ("whole", 1));
        assert_eq!(server.chats()[0].body["stream"], false, "{protocol:?}");
    }
}

#[test]
fn every_error_has_the_right_class() {
    use ErrorClass::{Auth, ContextTooLong, NotFound, Rejected, Transient};
    for version in VERSIONS {
        for (name, class) in [
            ("error-model-missing", NotFound),
            ("error-model-cloud", Auth),
            ("error-too-long", ContextTooLong),
            ("error-option-type", Rejected),
            ("error-keep-alive", Rejected),
            ("error-runner-killed-while-reading", Transient),
        ] {
            let Some((outcome, _)) = replay(Protocol::Ollama, version, &[name], writing()) else {
                continue;
            };
            let error = outcome.error();
            assert_eq!(error.class, class, "{version} {name}: {error:?}");
        }
    }
}

/// No recorded response breaks an adapter: each ends in a reply or an error.
#[test]
fn every_recorded_response_ends() {
    for version in VERSIONS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/data/ollama/{version}.jsonl"));
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let exchange: Value = serde_json::from_str(line).unwrap();
            let (name, path) = (
                exchange["name"].as_str().unwrap(),
                &exchange["request"]["path"],
            );
            let protocol = match path.as_str().unwrap() {
                "/api/chat" => Protocol::Ollama,
                "/v1/chat/completions" => Protocol::OpenAi,
                _ => continue,
            };
            let names = [name; 4];
            let (outcome, _) = replay(protocol, version, &names, judging()).unwrap();
            if outcome.result.is_ok() {
                assert!(outcome.reply.end.is_some(), "{version} {name}");
                assert!(
                    matches!(outcome.events.last(), Some(ChatEvent::End(_)) | None)
                        || outcome.reply.end == Some(EndReason::Repetition),
                    "{version} {name}"
                );
            }
        }
    }
}
