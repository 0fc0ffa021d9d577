//! Server faults at each call of a run. Nothing is lost, and the message says what to do.

use std::time::Duration;

use serde_json::json;

use crate::harness::{KEY, Test, drafts_of, each};
use crate::plan::{BOTH, FIRST, SECOND, draft, usual_server, with_address};
use crate::support::server::{Chunks, Fault, Protocol, Reply};

/// The calls of the usual run, from 1: draft, evaluate, revise, evaluate.
const CALLS: [usize; 4] = [1, 2, 3, 4];

/// A fault with its message.
struct Case {
    name: &'static str,
    fault: Fault,
    /// The error and the hint.
    said: &'static [&'static str],
    /// The protocol with this fault; `None` for both.
    only: Option<Protocol>,
}

fn case(name: &'static str, fault: Fault, said: &'static [&'static str]) -> Case {
    Case {
        name,
        fault,
        said,
        only: None,
    }
}

impl Case {
    fn only(mut self, protocol: Protocol) -> Self {
        self.only = Some(protocol);
        self
    }
}

fn message(text: &str) -> serde_json::Value {
    json!({"error": {"message": text}})
}

/// Faults that a retry does not fix.
fn lasting() -> Vec<Case> {
    let openai = Protocol::OpenAi;
    let ollama = Protocol::Ollama;
    vec![
        case(
            "401",
            // Servers often repeat the rejected key.
            Fault::error(401, &message(&format!("Incorrect API key provided: {KEY}"))),
            &["not authorized", "Incorrect API key", "hint: check that the API key is set"],
        ),
        case(
            "403",
            Fault::error(403, &message("Project has no access to this model")),
            &["not authorized", "no access", "check the model and the account"],
        ),
        case(
            "404, the model",
            Fault::error(404, &json!({"error": "model 'test' not found, try pulling it first"})),
            &["not found: model 'test' not found", "ollama pull test"],
        )
        .only(ollama),
        case(
            "404, the model",
            Fault::error(
                404,
                &json!({"error": {"message": "The model `tset` does not exist", "code": "model_not_found"}}),
            ),
            &["not found: The model `tset` does not exist"],
        )
        .only(openai),
        case(
            "404, the address",
            Fault::error(404, &json!({"detail": "Not Found"})),
            &["not found", "/v1/chat/completions", "hint: "],
        )
        .only(openai),
        case(
            "400 for a reason of its own",
            Fault::error(400, &message("messages: roles must alternate")),
            &["request rejected: messages: roles must alternate (HTTP 400)"],
        ),
        case(
            "413",
            Fault::error(413, &message("Request too large")),
            &["too long for the model", "hint: shorten the prompt"],
        ),
        case(
            "context overflow",
            Fault::error(
                400,
                &json!({"error": {"code": "context_length_exceeded", "message": "This model's maximum \
                    context length is 8192 tokens. However, you requested 10000 tokens."}}),
            ),
            &["about 10000 tokens do not fit the window of 8192", "shorten the prompt"],
        ),
        case(
            "quota",
            Fault::error(
                429,
                &json!({"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}),
            ),
            &["out of quota", "hint: add credit"],
        ),
        case(
            "no JSON in the stream",
            Fault::Raw(b"{\"message\":{\"content\":\"half\"},\"done\":false}\nupstream failed\n".to_vec()),
            &["unexpected response", "upstream failed"],
        )
        .only(ollama),
        case(
            "no JSON in the stream",
            Fault::Raw(b"data: upstream failed\n\n".to_vec()),
            &["unexpected response", "upstream failed"],
        )
        .only(openai),
        case(
            "a web page",
            Fault::Raw(b"<html><head><title>Log in to the network</title></head></html>".to_vec()),
            &["unexpected response", "Log in to the network"],
        ),
        case(
            "an error in a 200 that lasts",
            Fault::ErrorInside(
                vec!["half".to_owned()],
                json!({"message": "bad key", "type": "authentication_error"}),
            ),
            &["not authorized: bad key", "hint: check that the API key is set"],
        ),
    ]
}

/// Transient faults.
fn passing() -> Vec<Case> {
    let some = || vec!["half a ".to_owned(), "sentence".to_owned()];
    vec![
        case(
            "429 with Retry-After",
            Fault::rate_limit("Retry-After", "0.01"),
            &["rate limited: slow down (HTTP 429)"],
        ),
        case(
            "429 without",
            Fault::status(429),
            &["rate limited: scripted status 429"],
        ),
        case(
            "500",
            Fault::status(500),
            &["the server failed", "HTTP 500"],
        ),
        case(
            "503",
            Fault::status(503),
            &["the server failed", "HTTP 503"],
        ),
        case(
            "502 of a proxy",
            Fault::Status {
                status: 502,
                headers: vec![("Content-Type".to_owned(), "text/html".to_owned())],
                body: "<html><title>502 Bad Gateway</title></html>".to_owned(),
            },
            &["502 Bad Gateway (HTTP 502)"],
        ),
        case("a reset connection", Fault::Reset, &["the server failed"]),
        case(
            "a cut stream",
            Fault::Cut(Reply::pieces(&["a", "b", "c", "d"])),
            &["the reply was cut off"],
        ),
        case(
            "an end without a terminal event",
            Fault::Unfinished(some()),
            &["the reply was cut off"],
        ),
        case(
            "nothing at all",
            Fault::Raw(Vec::new()),
            &["the reply was cut off"],
        ),
        case(
            "a slow first token",
            Fault::SlowFirst(Duration::from_secs(3)),
            &["no response within 0.8 s", "--timeout-first-token"],
        ),
        case(
            "an idle stream",
            Fault::Idle(some(), Duration::from_secs(3)),
            &[
                "the reply stalled: no response within 0.6 s",
                "--timeout-idle",
            ],
        ),
        case(
            "an error in a 200",
            Fault::ErrorInside(some(), json!("model runner has unexpectedly stopped")),
            &["the server failed: model runner has unexpectedly stopped"],
        ),
    ]
}

/// All cases with each protocol and each call.
fn matrix(cases: &[Case]) -> Vec<(&Case, Protocol, usize)> {
    let mut all = Vec::new();
    for case in cases {
        for protocol in BOTH {
            if case.only.is_none_or(|only| only == protocol) {
                all.extend(CALLS.map(|call| (case, protocol, call)));
            }
        }
    }
    all
}

fn name((case, protocol, call): &(&Case, Protocol, usize)) -> String {
    format!("{} ({protocol:?}, call {call})", case.name)
}

/// Uses shorter timeouts, but only in the cases about timeouts, because the machine may be busy.
fn patience(test: Test, case: &Case) -> Test {
    match case.fault {
        Fault::SlowFirst(_) => test.args(["--timeout-first-token", "0.8s"]),
        Fault::Idle(..) => test.args(["--timeout-idle", "0.6s"]),
        _ => test,
    }
}

/// Runs into the fault and checks the result.
fn fails(case: &Case, protocol: Protocol, call: usize) {
    let server = usual_server();
    server.fault_at(call, case.fault.clone());
    // From the second call on there is a draft, which is printed whatever fails.
    let (answer, drafts) = match call {
        1 => ("", &[][..]),
        2 | 3 => ("The first draft.\n", &[FIRST][..]),
        _ => ("The first draft.\n", &[FIRST, SECOND][..]),
    };
    let mut test = patience(draft(&server, protocol), case)
        .args(["--retries", "0"])
        .code(4)
        .stdout(answer)
        .stderr_has("error: ")
        .stderr_has(&server.url())
        .stderr_has("reflect history show ");
    // A server's message about a rejected request is passed on unchanged.
    if !case.name.starts_with("400") {
        test = test.stderr_has("\nhint: ");
    }
    for part in case.said {
        test = test.stderr_has(part);
    }
    let ran = test.run();
    assert_eq!(server.calls(), call, "calls");
    let history = ran.history();
    assert_eq!(drafts_of(&history), drafts);
    assert_eq!(history["convergence_reason"], "model_error");
    assert_eq!(history["success"], false);
    let error = history["error"].as_str().expect("the error");
    assert!(error.contains(case.said[0]), "{error}");
}

#[test]
fn a_permanent_fault_ends_the_run_with_the_best_draft() {
    each(&matrix(&lasting()), name, |(case, protocol, call)| {
        fails(case, *protocol, *call);
    });
}

#[test]
fn a_transient_fault_ends_the_run_without_retries() {
    each(&matrix(&passing()), name, |(case, protocol, call)| {
        fails(case, *protocol, *call);
    });
}

#[test]
fn a_transient_fault_is_retried() {
    each(&matrix(&passing()), name, |(case, protocol, call)| {
        let server = usual_server();
        server.fault_at(*call, case.fault.clone());
        let ran = patience(draft(&server, *protocol), case)
            .args(["--retries", "1"])
            .stdout("The second draft.\n")
            .stderr_has(case.said[0])
            .stderr_has("; retrying in ")
            .run();
        assert_eq!(server.calls(), 5);
        let history = ran.history();
        assert_eq!(drafts_of(&history), [FIRST, SECOND]);
        assert_eq!(history["total_llm_calls"], 5);
    });
}

#[test]
fn a_permanent_fault_is_not_retried() {
    each(
        &lasting(),
        |case| case.name.to_owned(),
        |case| {
            let server = usual_server();
            server.fault_at(1, case.fault.clone());
            draft(&server, case.only.unwrap_or(Protocol::OpenAi))
                .code(4)
                .stderr_lacks("retrying")
                .run();
            assert_eq!(server.calls(), 1);
        },
    );
}

#[test]
fn retries_are_limited() {
    for call in CALLS {
        let server = usual_server();
        for number in call..call + 3 {
            server.fault_at(number, Fault::rate_limit("Retry-After", "0"));
        }
        let ran = draft(&server, Protocol::OpenAi)
            .args(["--retries", "2"])
            .code(4)
            .run();
        assert_eq!(ran.stderr.matches("; retrying in ").count(), 2);
        assert_eq!(server.calls(), call + 2);
    }
}

/// A parameter that the server rejects is omitted from then on.
#[test]
fn an_unknown_parameter_is_omitted() {
    let unsupported = |name: &str| {
        Fault::error(
            400,
            &json!({"error": {"message": format!("Unsupported parameter: '{name}' is not supported with this model."),
                "type": "invalid_request_error", "param": name, "code": "unsupported_parameter"}}),
        )
    };
    let cases: Vec<(&str, usize)> = ["temperature", "seed", "top_p"]
        .into_iter()
        .flat_map(|name| [1, 3].map(|call| (name, call)))
        .chain([2, 4].map(|call| ("response_format", call)))
        .chain(CALLS.map(|call| ("seed", call)))
        .collect();
    each(
        &cases,
        |case| format!("{case:?}"),
        |&(name, call)| {
            let server = usual_server();
            server.fault_at(call, unsupported(name));
            draft(&server, Protocol::OpenAi)
                .args(["--temperature", "0.5", "--seed", "7", "--top-p", "0.9"])
                .stdout("The second draft.\n")
                .run();
            assert_eq!(server.calls(), 5);
            let chats = server.chats();
            assert!(chats[call - 1].body.get(name).is_some(), "it was sent");
            let again = &chats[call].body;
            let changed = again.get(name) != chats[call - 1].body.get(name);
            assert!(changed, "not again as it was: {again}");
            if name != "response_format" {
                let later = chats[call + 1..]
                    .iter()
                    .filter(|chat| chat.body.get(name).is_some());
                assert_eq!(later.count(), 0, "it is remembered");
            }
        },
    );
}

type Form = fn(Reply) -> Reply;

/// Unusual framing of lines is not a fault.
#[test]
fn unusual_framing_is_accepted() {
    let text = "Ein Wörtchen – «naïve» 🦀, done.";
    let forms: [(&str, Form); 7] = [
        ("split UTF-8", |reply| reply.chunks(Chunks::Bytes(1))),
        ("three bytes at a time", |reply| {
            reply.chunks(Chunks::Bytes(3))
        }),
        ("all at once", |reply| reply.chunks(Chunks::One)),
        ("CRLF", |reply| reply.crlf().chunks(Chunks::Bytes(7))),
        ("comments", |reply| reply.comments()),
        ("glued frames", |reply| reply.glued().chunks(Chunks::One)),
        ("no last line end", |reply| {
            reply.no_final_newline().no_done_marker()
        }),
    ];
    let cases: Vec<_> = forms
        .iter()
        .flat_map(|form| BOTH.map(|protocol| (form, protocol)))
        .collect();
    each(
        &cases,
        |((name, _), protocol)| format!("{name} ({protocol:?})"),
        |((_, form), protocol)| {
            let verdict = |step| Reply::text(&crate::plan::verdict(step).to_string());
            let server = crate::plan::answering(
                [
                    Reply::pieces(&["The ", "first"]),
                    verdict(2),
                    Reply::pieces(&[&text[..5], &text[5..]]),
                    verdict(5),
                ]
                .map(form),
            );
            let ran = draft(&server, *protocol).stdout(&format!("{text}\n")).run();
            assert_eq!(ran.drafts(), ["The first", text]);
        },
    );
}

#[test]
fn no_server_is_listening() {
    for (protocol, advice) in [
        (Protocol::Ollama, "is `ollama serve` running?"),
        (Protocol::OpenAi, "no server listens at that address"),
    ] {
        let ran = with_address("http://127.0.0.1:1", protocol)
            .args(["draft", "Write a line.", "-c", "criteria.toml"])
            .code(4)
            .stdout("")
            .stderr_has("error: cannot reach the server")
            .stderr_has("127.0.0.1:1")
            .stderr_has(advice)
            .stderr_lacks("retrying")
            .run();
        assert!(ran.took < Duration::from_secs(3), "{:?}", ran.took);
    }
}

#[test]
fn the_server_goes_away_in_the_middle_of_a_run() {
    // The listener closes after two calls, so the third one finds a closed port.
    each(
        &BOTH,
        |protocol| format!("{protocol:?}"),
        |&protocol| {
            let server = usual_server();
            server.fault_at(3, Fault::Reset);
            draft(&server, protocol)
                .args(["--retries", "0"])
                .code(4)
                .stdout("The first draft.\n")
                .run();
        },
    );
}

#[test]
fn a_name_that_does_not_exist() {
    for protocol in BOTH {
        with_address("http://nowhere.invalid", protocol)
            .args(["draft", "Write a line.", "--retries", "0"])
            .code(4)
            .stdout("")
            .stderr_has("nowhere.invalid")
            .run();
    }
}

#[test]
fn a_server_without_tls() {
    let server = usual_server();
    for protocol in BOTH {
        with_address(&server.url().replace("http:", "https:"), protocol)
            .args(["draft", "Write a line."])
            .code(4)
            .stdout("")
            .stderr_has("TLS failed")
            .stderr_has("https://127.0.0.1")
            .stderr_lacks("retrying")
            .run();
    }
    assert_eq!(server.calls(), 0);
}

/// A missing certificate file is named.
#[test]
fn missing_certificates_are_named() {
    let server = usual_server();
    with_address(&server.url().replace("http:", "https:"), Protocol::OpenAi)
        .env("SSL_CERT_FILE", "/nowhere/ca.pem")
        .args(["draft", "Write a line."])
        .code(4)
        .stderr_has("hint: SSL_CERT_FILE is /nowhere/ca.pem, which does not exist")
        .run();
}

#[test]
fn a_failing_proxy_is_named_without_its_password() {
    with_address("https://somewhere.example/v1", Protocol::OpenAi)
        .env("HTTPS_PROXY", "http://me:secret@127.0.0.1:1")
        .args(["draft", "Write a line.", "--retries", "0"])
        .code(4)
        .stderr_has("the connection through the proxy http://127.0.0.1:1 from HTTPS_PROXY failed")
        .stderr_has("NO_PROXY=somewhere.example")
        .stderr_lacks("secret")
        .run();
}

/// A call that never ends is stopped by its limit, including retries.
#[test]
fn a_call_has_a_total_time_limit() {
    let server =
        crate::plan::answering([Reply::pieces(&["word "; 400]).wait(Duration::from_millis(20))]);
    let ran = draft(&server, Protocol::Ollama)
        .args(["--timeout-total", "0.5s"])
        .code(4)
        .stdout("")
        .stderr_has("--timeout-total")
        .run();
    assert!(ran.took < Duration::from_secs(4), "{:?}", ran.took);
}
