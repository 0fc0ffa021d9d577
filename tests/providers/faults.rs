//! Server errors.

use crate::setup::{BOTH, Setup, ask, call, run, writing};
use crate::support::server::Purpose as Asked;
use crate::support::server::{Fault, Protocol, Reply, Server};
use reflect::model::ollama::{find_ollama, list_installed};
use reflect::model::openai::list_models;
use reflect::model::{EndReason, ErrorClass, RetryPolicy};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn error_statuses_have_the_right_class() {
    use ErrorClass::{Auth, ContextTooLong, NotFound, Quota, Rate, Rejected, Transient};
    for protocol in BOTH {
        for (status, class) in [
            (400, Rejected),
            (401, Auth),
            (402, Quota),
            (403, Auth),
            (404, NotFound),
            (413, ContextTooLong),
            (429, Rate),
            (500, Transient),
            (503, Transient),
            (529, Transient),
        ] {
            let server = Server::start();
            for _ in 0..3 {
                server.fault(Fault::status(status));
            }
            let outcome = ask(&Setup::new(protocol), &server, writing());
            let tries = if class.is_retryable() { 3 } else { 1 };
            assert_eq!(outcome.reply.attempts, tries, "{status}");
            assert_eq!(server.calls(), tries as usize, "{status}");
            let error = outcome.error();
            assert_eq!(error.class, class, "{status}");
            assert_eq!(error.status, Some(status));
            assert!(error.message.contains("scripted"), "{error}");
            assert!(error.url.unwrap().starts_with(&server.url()));
        }
    }
}

#[test]
fn quota_is_not_retried() {
    let server = Server::start();
    server.fault(Fault::error(
        429,
        &json!({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota",
            "code": "insufficient_quota"}}),
    ));
    let error = ask(&Setup::new(Protocol::OpenAi), &server, writing()).error();
    assert_eq!(error.class, ErrorClass::Quota);
    assert_eq!(server.calls(), 1);
}

#[test]
fn the_wait_that_a_server_requests_is_respected() {
    for (header, value, expected) in [
        ("Retry-After", "0", 0),
        ("Retry-After", "0.02", 20),
        ("retry-after-ms", "15", 15),
        // More than the limit in this test.
        ("Retry-After", "9000", 40),
        ("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT", 0),
    ] {
        let server = Server::start();
        server
            .fault(Fault::rate_limit(header, value))
            .reply_text("a");
        let start = Instant::now();
        let outcome = ask(&Setup::new(Protocol::OpenAi), &server, writing());
        let (error, wait) = outcome.retries()[0];
        assert_eq!(error.class, ErrorClass::Rate);
        assert_eq!(wait, Duration::from_millis(expected), "{header}: {value}");
        assert!(start.elapsed() >= wait);
        assert_eq!(outcome.ok().text, "a");
    }
}

#[test]
fn a_retry_discards_earlier_output() {
    for protocol in BOTH {
        let server = Server::start();
        server
            .fault(Fault::Unfinished(vec!["lost".to_owned()]))
            .fault(Fault::Reset)
            .reply_text("found");
        let outcome = ask(&Setup::new(protocol), &server, writing());
        assert_eq!(outcome.retries()[0].0.class, ErrorClass::CutOff);
        assert_eq!(outcome.retries()[1].0.class, ErrorClass::Transient);
        let reply = outcome.ok();
        assert_eq!(reply.text, "found");
        assert_eq!(reply.attempts, 3);
    }
}

#[test]
fn an_end_without_a_terminal_event_is_an_error() {
    for protocol in BOTH {
        for fault in [
            Fault::Unfinished(vec!["a".to_owned()]),
            Fault::Cut(Reply::pieces(&["a", "b", "c", "d"])),
            Fault::Raw(Vec::new()),
        ] {
            let server = Server::start();
            for _ in 0..3 {
                server.fault(fault.clone());
            }
            let error = ask(&Setup::new(protocol), &server, writing()).error();
            assert_eq!(error.class, ErrorClass::CutOff, "{fault:?}");
            assert_eq!(server.calls(), 3);
        }
    }
    // `[DONE]` does not make it complete.
    let server = Server::start();
    server.on(Asked::Write, |_| Reply::text("a").finish(""));
    let error = ask(&Setup::new(Protocol::OpenAi), &server, writing()).error();
    assert_eq!(error.class, ErrorClass::CutOff);
}

#[test]
fn an_error_inside_a_stream_is_an_error() {
    let setup = |protocol| Setup {
        retries: RetryPolicy::none(),
        ..Setup::new(protocol)
    };
    for protocol in BOTH {
        for (error, class) in [
            (
                json!("model runner has unexpectedly stopped"),
                ErrorClass::Transient,
            ),
            (
                json!({"message": "slow down", "code": 429}),
                ErrorClass::Rate,
            ),
            (
                json!({"message": "no", "type": "authentication_error"}),
                ErrorClass::Auth,
            ),
            (
                json!({"message": "x", "code": "insufficient_quota"}),
                ErrorClass::Quota,
            ),
            (
                json!({"message": "request (9000 tokens) exceeds the available context size (4096 tokens)",
                    "type": "exceed_context_size_error", "code": 400}),
                ErrorClass::ContextTooLong,
            ),
        ] {
            let server = Server::start();
            server.fault(Fault::ErrorInside(
                vec!["partial".to_owned()],
                error.clone(),
            ));
            let outcome = ask(&setup(protocol), &server, writing());
            assert_eq!(outcome.reply.text, "partial");
            assert_eq!(outcome.error().class, class, "{error}");
        }
    }
    // OpenRouter has its own finish reason for errors.
    let server = Server::start();
    server.reply(Reply::text("a").finish("error"));
    let error = ask(&setup(Protocol::OpenAi), &server, writing()).error();
    assert_eq!(error.class, ErrorClass::Transient);
}

#[test]
fn an_unparseable_response_is_shown_without_markup() {
    for (protocol, bytes) in [
        (Protocol::Ollama, "upstream \u{1b}[31mfailed\u{1b}[0m\n"),
        (
            Protocol::Ollama,
            "{\"message\":{\"content\":\"a\"},\"done\":false}\nupstream failed\n",
        ),
        (Protocol::Ollama, "{\"something\": \"upstream failed\"}\n"),
        (Protocol::OpenAi, "data: upstream failed\n\n"),
        (
            Protocol::OpenAi,
            "<html><title>upstream failed</title></html>",
        ),
        (
            Protocol::OpenAi,
            "{\"choices\": 7, \"say\": \"upstream failed\"}",
        ),
    ] {
        let server = Server::start();
        server.fault(Fault::Raw(bytes.as_bytes().to_vec()));
        let error = ask(&Setup::new(protocol), &server, writing()).error();
        assert_eq!(error.class, ErrorClass::Protocol, "{bytes}");
        assert!(error.message.contains("upstream failed"), "{error}");
        assert!(!error.message.contains('\u{1b}'));
    }
}

#[test]
fn a_complete_reply_does_not_wait_for_the_end_of_the_stream() {
    let server = Server::start();
    let chunk = json!({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]});
    let head = format!("data: {chunk}\n\ndata: [DONE]\n\n");
    server.fault(Fault::Raw(head.into_bytes()));
    assert_eq!(
        ask(&Setup::new(Protocol::OpenAi), &server, writing())
            .ok()
            .text,
        "a"
    );
}

#[test]
fn a_missing_model_comes_with_advice() {
    let server = Server::start();
    server.models(&[("tests:7b", 1), ("other", 1)]);
    server.fault(Fault::error(
        404,
        &json!({"error": "model 'test' not found"}),
    ));
    let error = ask(&Setup::new(Protocol::Ollama), &server, writing()).error();
    assert_eq!(error.class, ErrorClass::NotFound);
    let hint = error.hint.unwrap();
    assert!(
        hint.contains("ollama pull test") && hint.contains("`tests:7b`"),
        "{hint}"
    );

    server.fault(Fault::error(
        404,
        &json!({"error": {"message": "The model `test` does not exist", "code": "model_not_found"}}),
    ));
    let error = ask(&Setup::new(Protocol::OpenAi), &server, writing()).error();
    assert_eq!(error.hint.as_deref(), Some("did you mean `tests:7b`?"));
}

#[test]
fn an_error_about_a_wrong_path_names_the_address() {
    let server = Server::start();
    server.fault(Fault::error(404, &json!({"detail": "Not Found"})));
    let url = format!("{}/proxy", server.url());
    let error = call(&*Setup::new(Protocol::OpenAi).model(&url), writing()).error();
    assert_eq!(error.class, ErrorClass::NotFound);
    assert_eq!(error.url.unwrap(), format!("{url}/chat/completions"));
    assert!(error.hint.unwrap().contains("/v1"));
}

#[test]
fn the_models_of_a_server_are_listed() {
    let server = Server::start();
    server.models(&[("b", 4096), ("test", 8192)]);
    let ollama = Setup::new(Protocol::Ollama).connection(&server.url());
    let times = (Duration::from_secs(5), Duration::from_secs(5));
    let found = run(find_ollama(&ollama, times, || panic!("it is not busy")));
    let found = found.unwrap().unwrap();
    assert_eq!(found, run(list_installed(&ollama)).unwrap());
    assert_eq!(found[1].name, "test");
    assert_eq!(found[1].details.as_deref(), Some("1.0B Q4_K_M"));
    let openai = Setup::new(Protocol::OpenAi).connection(&server.openai_url());
    let found = run(list_models(&openai)).unwrap();
    assert_eq!(found[0].context_window, Some(4096));
    for protocol in BOTH {
        let model = Setup::new(protocol).model(&server.url());
        assert_eq!(run(model.info()).unwrap().context_window, Some(8192));
    }
    server.models(&[("b", 1), ("c", 1)]);
    for protocol in BOTH {
        let error = run(Setup::new(protocol).model(&server.url()).info()).unwrap_err();
        assert_eq!(error.class, ErrorClass::NotFound, "{error}");
    }
}

/// A server that lacks memory or cannot read a model would fail again.
#[test]
fn permanent_server_errors_are_not_retried() {
    for (message, advice) in [
        (
            "model requires more system memory (9.1 GiB) than is available (3.2 GiB)",
            "--num-ctx",
        ),
        ("CUDA error: out of memory", "smaller model"),
        (
            "unable to load model: /models/blobs/sha256-1",
            "ollama pull",
        ),
        (
            "this model may be incompatible with your version of Ollama",
            "update the server",
        ),
        ("llama-server binary not found", "reinstall it"),
    ] {
        let server = Server::start();
        server.fault(Fault::error(500, &json!({ "error": message })));
        let error = ask(&Setup::new(Protocol::Ollama), &server, writing()).error();
        assert_eq!(error.class, ErrorClass::Unable, "{message}");
        assert_eq!(server.calls(), 1, "{message}");
        let hint = error.hint.unwrap();
        assert!(hint.contains(advice), "{hint}");
        assert!(!hint.contains("may be temporary"), "{hint}");
    }
    // A crashed runner may crash again, so it is retried once.
    let server = Server::start();
    let died = json!({ "error": "model runner has unexpectedly stopped" });
    for _ in 0..3 {
        server.fault(Fault::error(500, &died));
    }
    ask(&Setup::new(Protocol::Ollama), &server, writing()).error();
    assert_eq!(server.calls(), 2);
}

/// This lasts as long as another run, which exceeds the number of retries.
#[test]
fn a_full_server_is_waited_for() {
    let server = Server::start();
    let busy =
        json!({ "error": "server busy, please try again. maximum pending requests exceeded" });
    for _ in 0..6 {
        server.fault(Fault::error(503, &busy));
    }
    server.reply_text("At last.");
    let outcome = ask(&Setup::new(Protocol::Ollama), &server, writing());
    assert_eq!(outcome.ok().text, "At last.");
    assert_eq!(server.calls(), 7);
}

#[test]
fn errors_of_cloud_models_say_how_to_sign_in() {
    for (status, body, advice) in [
        (
            401,
            json!({"error": "unauthorized", "signin_url": "https://ollama.com/connect?name=x"}),
            "ollama signin",
        ),
        (
            403,
            json!({"error": "ollama cloud is disabled: remote model is unavailable"}),
            "cloud disabled",
        ),
    ] {
        let server = Server::start();
        server.fault(Fault::error(status, &body));
        let error = ask(&Setup::new(Protocol::Ollama), &server, writing()).error();
        assert_eq!(error.class, ErrorClass::Auth);
        assert!(error.hint.unwrap().contains(advice));
        assert!(
            status != 401 || error.message.contains("https://ollama.com/connect"),
            "{}",
            error.message
        );
    }
}

/// Recorded ends of two versions of Ollama.
#[test]
fn ollamas_own_loop_detection_counts_as_repetition() {
    for recorded in [
        include_str!("../data/ollama/stream-loop-guard-2026-05.ndjson"),
        include_str!("../data/ollama/stream-loop-guard-2026-08.ndjson"),
    ] {
        let server = Server::start();
        server.fault(Fault::Raw(recorded.as_bytes().to_vec()));
        let outcome = ask(&Setup::new(Protocol::Ollama), &server, writing());
        assert!(
            outcome.notices()[0].contains("repeated itself"),
            "{:?}",
            outcome.notices()
        );
        let reply = outcome.ok();
        assert_eq!(reply.end, Some(EndReason::Repetition));
        assert!(reply.text.starts_with(" no no no"), "{}", reply.text);
        assert_eq!(server.calls(), 1);
    }
}
