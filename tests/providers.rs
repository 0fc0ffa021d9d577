//! The models over HTTP, against a scripted server: every fault that a server or a network can have.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[expect(
    dead_code,
    unreachable_pub,
    reason = "each test program uses another part of it"
)]
mod support;

use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use reflect::model::ollama::{
    NumCtx, OllamaModel, OllamaOptions, list_installed, ollama_is_running,
};
use reflect::model::openai::{OpenAiModel, OpenAiOptions, StructuredOutput, list_models};
use reflect::model::{
    ApiKey, BaseUrl, ChatEvent, ChatModel, ChatRequest, Connection, EndReason, ErrorClass,
    HttpClient, Message, ModelError, Purpose, Reply as Answer, ResponseSchema, RetryPolicy, Role,
    Sampling, Think, Timeouts, complete,
};
use reflect::types::{ModelId, TokenUsage};
use serde_json::{Value, json};
use support::server::{Chunks, Fault, Planned, Protocol, Reply, Server};

const BOTH: [Protocol; 2] = [Protocol::Ollama, Protocol::OpenAi];

/// How a test differs from the usual.
#[derive(Clone)]
struct Setup {
    protocol: Protocol,
    key: Option<ApiKey>,
    retries: RetryPolicy,
    timeouts: Timeouts,
    structured: Option<StructuredOutput>,
    extra_body: Value,
    num_ctx: NumCtx,
}

impl Setup {
    fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            key: None,
            retries: RetryPolicy {
                max_retries: 2,
                base: Duration::from_millis(1),
                cap: Duration::from_millis(40),
            },
            timeouts: Timeouts::default(),
            structured: None,
            extra_body: json!({}),
            num_ctx: NumCtx::default(),
        }
    }

    fn connection(&self, url: &str) -> Connection {
        let base = match self.protocol {
            Protocol::Ollama => BaseUrl::ollama(url),
            Protocol::OpenAi => BaseUrl::openai(url),
        };
        let mut connection = Connection::new(base.unwrap()).with_key(self.key.clone());
        connection.retries = self.retries;
        connection.client = HttpClient::new(self.timeouts);
        connection
    }

    fn model(&self, url: &str) -> Box<dyn ChatModel> {
        let connection = self.connection(url);
        let id = |provider: &str| ModelId {
            provider: provider.to_owned(),
            model: "test".to_owned(),
        };
        match self.protocol {
            Protocol::Ollama => {
                let mut options = OllamaOptions::new(id("ollama"), connection);
                options.num_ctx = self.num_ctx.clone();
                Box::new(OllamaModel::new(options))
            }
            Protocol::OpenAi => {
                let mut options = OpenAiOptions::new(id("openai"), connection);
                options.structured_output = self.structured;
                options
                    .extra_body
                    .clone_from(self.extra_body.as_object().unwrap());
                Box::new(OpenAiModel::new(options).unwrap())
            }
        }
    }
}

/// A call, and all that came of it.
struct Outcome {
    reply: Answer,
    result: Result<(), ModelError>,
    events: Vec<ChatEvent>,
}

impl Outcome {
    fn error(self) -> ModelError {
        self.result.expect_err("the call should have failed")
    }

    fn ok(self) -> Answer {
        self.result.expect("the call should have succeeded");
        self.reply
    }

    fn notices(&self) -> Vec<&str> {
        let events = self.events.iter();
        events
            .filter_map(|event| match event {
                ChatEvent::Notice(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    fn retries(&self) -> Vec<(&ModelError, Duration)> {
        let events = self.events.iter();
        events
            .filter_map(|event| match event {
                ChatEvent::Retry { error, wait } => Some((error, *wait)),
                _ => None,
            })
            .collect()
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

fn call(model: &dyn ChatModel, request: ChatRequest) -> Outcome {
    run(async {
        let mut events = Vec::new();
        let (reply, result) = complete(model, request, |event| events.push(event.clone())).await;
        Outcome {
            reply,
            result,
            events,
        }
    })
}

fn ask(setup: &Setup, server: &Server, request: ChatRequest) -> Outcome {
    call(&*setup.model(&server.url()), request)
}

fn writing() -> ChatRequest {
    ChatRequest::new(
        Purpose::Write,
        vec![
            Message::new(Role::System, "You write."),
            Message::new(Role::User, "Write a line."),
        ],
    )
}

fn judging() -> ChatRequest {
    let schema = json!({"type": "object", "properties": {"score": {"type": "number"}},
        "required": ["score"], "additionalProperties": false});
    ChatRequest {
        schema: Some(Arc::new(ResponseSchema {
            name: "verdict".to_owned(),
            schema,
        })),
        ..ChatRequest::new(Purpose::Judge, vec![Message::new(Role::User, "Judge it.")])
    }
}

// ---------------------------------------------------------------- good answers

#[test]
fn a_plain_answer_comes_in_pieces() {
    for protocol in BOTH {
        let server = Server::start();
        server.reply(Reply::pieces(&["One ", "two ", "drei ä€𝄞."]).usage(12, 7, Some(5)));
        let outcome = ask(&Setup::new(protocol), &server, writing());
        let texts = outcome.events.iter();
        let texts = texts
            .filter(|event| matches!(event, ChatEvent::Text(_)))
            .count();
        assert_eq!(texts, 3);
        let reply = outcome.ok();
        assert_eq!(reply.text, "One two drei ä€𝄞.");
        assert_eq!(reply.end, Some(EndReason::Stop));
        assert_eq!(reply.attempts, 1);
        let cached = (protocol == Protocol::OpenAi).then_some(5);
        assert_eq!(reply.usage, TokenUsage::new(Some(12), Some(7), cached));
    }
}

#[test]
fn how_the_bytes_are_cut_does_not_matter() {
    for protocol in BOTH {
        let server = Server::start();
        let reply = || {
            Reply::pieces(&["<thi", "nk>Grübeln</think>", "\n\nein ", "Wort – 𝄞"])
                .reasoning("vorher ü")
        };
        server.reply(reply());
        let setup = Setup::new(protocol);
        let model = setup.model(&server.url());
        let expected = call(&*model, writing());
        assert_eq!(expected.reply.text, "ein Wort – 𝄞");
        assert_eq!(expected.reply.reasoning, "vorher üGrübeln");
        for size in [1, 2, 3, 5, 7, 16, 61, 100_000] {
            server.reply(reply().chunks(Chunks::Bytes(size)));
            assert_eq!(call(&*model, writing()).events, expected.events, "{size}");
        }
    }
}

#[test]
fn every_legal_framing_is_understood() {
    for protocol in BOTH {
        let server = Server::start();
        let base = || Reply::pieces(&["a ", "b"]);
        for reply in [
            base().crlf(),
            base().comments(),
            base().glued(),
            base().glued().crlf().comments(),
            base().no_done_marker(),
            base().no_final_newline(),
            base().no_done_marker().no_final_newline(),
            base().comments().crlf().chunks(Chunks::Bytes(1)),
            base().chunks(Chunks::One),
        ] {
            server.reply(reply.clone());
            let answer = ask(&Setup::new(protocol), &server, writing()).ok();
            assert_eq!(answer.text, "a b", "{reply:?}");
            assert_eq!(answer.usage.prompt, Some(100), "{reply:?}");
        }
    }
}

#[test]
fn reasoning_is_never_part_of_the_answer() {
    for protocol in BOTH {
        let server = Server::start();
        server
            .reply(Reply::text("answer").reasoning("field"))
            .reply(Reply::text("<think>tag</think>answer"))
            .reply(Reply::reasoning_only("nothing else"))
            .reply(Reply::text("<think>never closed"))
            .reply(Reply::text("The tag <think>x</think> stays."));
        let setup = Setup::new(protocol);
        let model = setup.model(&server.url());
        let ask = || call(&*model, writing()).ok();
        for (text, reasoning) in [
            ("answer", "field"),
            ("answer", "tag"),
            ("", "nothing else"),
            ("", "never closed"),
            ("The tag <think>x</think> stays.", ""),
        ] {
            let reply = ask();
            assert_eq!((&*reply.text, &*reply.reasoning), (text, reasoning));
        }
    }
}

#[test]
fn other_names_of_the_reasoning_field() {
    let server = Server::start();
    for name in ["reasoning", "reasoning_content", "thinking"] {
        let chunk =
            json!({"choices": [{"delta": {name: "hm", "content": "a"}, "finish_reason": "stop"}]});
        server.fault(Fault::Raw(format!("data: {chunk}\n\n").into_bytes()));
        let reply = ask(&Setup::new(Protocol::OpenAi), &server, writing()).ok();
        assert_eq!((&*reply.text, &*reply.reasoning), ("a", "hm"), "{name}");
    }
}

#[test]
fn how_an_answer_ends_is_told() {
    for protocol in BOTH {
        let server = Server::start();
        server.reply(Reply::cut_by_length("half a"));
        let reply = ask(&Setup::new(protocol), &server, writing()).ok();
        assert_eq!(reply.end, Some(EndReason::Length));
        assert_eq!(reply.text, "half a");
        server.reply(Reply::empty());
        let reply = ask(&Setup::new(protocol), &server, writing()).ok();
        assert_eq!((reply.end, &*reply.text), (Some(EndReason::Stop), ""));
    }
    let server = Server::start();
    server.reply(Reply::refusal("I cannot."));
    let reply = ask(&Setup::new(Protocol::OpenAi), &server, writing()).ok();
    assert_eq!(
        reply.end,
        Some(EndReason::Refused("content_filter: I cannot.".to_owned()))
    );
    server.fault(Fault::error(
        400,
        &json!({"error": {"code": "content_filter", "message": "filtered"}}),
    ));
    let reply = ask(&Setup::new(Protocol::OpenAi), &server, writing()).ok();
    assert_eq!(reply.end, Some(EndReason::Refused("filtered".to_owned())));
}

#[test]
fn logprobs_are_those_of_the_answer() {
    let token = |text: &str, logprob: f64| {
        json!({"token": text, "logprob": logprob, "bytes": text.as_bytes(),
            "top_logprobs": [{"token": text, "logprob": logprob}, {"token": "x", "logprob": -3.0}]})
    };
    for protocol in BOTH {
        let server = Server::start();
        server.reply(Reply::text("<think>é</think>0.9").logprobs(json!([
            token("<think>", -0.1),
            token("é", -0.2),
            token("</think>", -0.3),
            token("0", -0.4),
            token(".9", -0.5),
        ])));
        let request = ChatRequest {
            top_logprobs: Some(2),
            ..writing()
        };
        let reply = ask(&Setup::new(protocol), &server, request).ok();
        let tokens: Vec<&str> = reply.logprobs.iter().map(|t| t.token.as_str()).collect();
        assert_eq!(tokens, ["0", ".9"]);
        assert_eq!(reply.logprobs[1].top.len(), 2);
        let body = &server.chats()[0].body;
        assert_eq!(body["logprobs"], json!(true));
        assert_eq!(body["top_logprobs"], json!(2));
    }
}

#[test]
fn usage_that_is_not_given_is_not_known() {
    for protocol in BOTH {
        let server = Server::start();
        server.reply(Reply::text("a").no_usage());
        let reply = ask(&Setup::new(protocol), &server, writing()).ok();
        assert_eq!(reply.usage, TokenUsage::default());
    }
}

#[test]
fn the_last_usage_wins_wherever_it_stands() {
    let server = Server::start();
    let chunk = |content: &str, finish: Value, usage: Value| {
        format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": {"content": content},
            "finish_reason": finish}], "usage": usage})
        )
    };
    let body = chunk(
        "a",
        json!(null),
        json!({"prompt_tokens": 9, "completion_tokens": 1}),
    ) + &chunk(
        "b",
        json!("stop"),
        json!({"prompt_tokens": 9, "completion_tokens": 2,
            "prompt_cache_hit_tokens": 4}),
    );
    server.fault(Fault::Raw(body.into_bytes()));
    let reply = ask(&Setup::new(Protocol::OpenAi), &server, writing()).ok();
    assert_eq!(reply.usage, TokenUsage::new(Some(9), Some(2), Some(4)));
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let server = Server::start();
    let whole = |text: &str| {
        json!({"object": "chat.completion", "choices": [{"index": 0,
            "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
        .to_string()
        .into_bytes()
    };
    server
        .fault(Fault::Raw(whole("all at once")))
        .fault(Fault::Raw(whole(
            "First this, then that.\n</think>\n\nthe answer",
        )));
    let setup = Setup::new(Protocol::OpenAi);
    let reply = ask(&setup, &server, writing()).ok();
    assert_eq!(reply.text, "all at once");
    assert_eq!(reply.usage.prompt, Some(3));
    // Nothing was shown yet, so a closing tag alone can be recognized.
    assert_eq!(ask(&setup, &server, writing()).ok().text, "the answer");
}

#[test]
fn an_endless_desert_of_blanks_is_stopped() {
    for protocol in BOTH {
        let server = Server::start();
        let mut pieces = vec!["{\"score\":"];
        pieces.extend([" \n\t  "; 100]);
        server.reply(Reply::pieces(&pieces).wait(Duration::from_millis(1)));
        let outcome = ask(&Setup::new(protocol), &server, judging());
        assert!(
            outcome.notices()[0].contains("blanks"),
            "{:?}",
            outcome.notices()
        );
        let reply = outcome.ok();
        assert_eq!(reply.end, Some(EndReason::Length));
        assert!(reply.text.len() < 250);
        // A text may have as many as it likes.
        server.reply(Reply::pieces(&pieces));
        assert_eq!(
            ask(&Setup::new(protocol), &server, writing()).ok().end,
            Some(EndReason::Stop)
        );
    }
}

// ---------------------------------------------------------------- faults

#[test]
fn error_statuses_have_their_class() {
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
fn a_server_says_how_long_to_wait() {
    for (header, value, expected) in [
        ("Retry-After", "0", 0),
        ("Retry-After", "0.02", 20),
        ("retry-after-ms", "15", 15),
        // More than the cap of this test.
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
fn a_retry_makes_void_what_came_before() {
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
fn an_end_without_a_terminal_event_is_no_success() {
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
    server.on(support::server::Purpose::Write, |_| {
        Reply::text("a").finish("")
    });
    let error = ask(&Setup::new(Protocol::OpenAi), &server, writing()).error();
    assert_eq!(error.class, ErrorClass::CutOff);
}

#[test]
fn an_error_inside_an_answer_is_an_error() {
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
    // OpenRouter ends with a reason of its own.
    let server = Server::start();
    server.reply(Reply::text("a").finish("error"));
    let error = ask(&setup(Protocol::OpenAi), &server, writing()).error();
    assert_eq!(error.class, ErrorClass::Transient);
}

#[test]
fn what_is_no_answer_at_all_is_shown_cleaned() {
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
fn times_run_out() {
    let setup = |protocol| Setup {
        retries: RetryPolicy::none(),
        timeouts: Timeouts {
            first_token: Duration::from_millis(120),
            idle: Duration::from_millis(60),
            ..Timeouts::default()
        },
        ..Setup::new(protocol)
    };
    let second = Duration::from_secs(2);
    for protocol in BOTH {
        for (fault, words) in [
            (Fault::SlowFirst(second), "no answer within 0.12 s"),
            (
                Fault::Idle(vec!["a".to_owned()], second),
                "nothing more came within 0.06 s",
            ),
        ] {
            let server = Server::start();
            server.fault(fault);
            let start = Instant::now();
            let error = ask(&setup(protocol), &server, writing()).error();
            assert_eq!(error.class, ErrorClass::Transient);
            assert!(error.message.contains(words), "{error}");
            assert!(start.elapsed() < second);
        }
        // A slow answer that goes on is none of them.
        let server = Server::start();
        server.reply(Reply::pieces(&["a"; 8]).wait(Duration::from_millis(25)));
        assert_eq!(
            ask(&setup(protocol), &server, writing()).ok().text,
            "aaaaaaaa"
        );
    }
}

#[test]
fn a_call_has_a_limit_in_all() {
    let server = Server::start();
    server.reply(Reply::pieces(&["a"; 200]).wait(Duration::from_millis(10)));
    let setup = Setup {
        timeouts: Timeouts {
            total: Duration::from_millis(200),
            ..Timeouts::default()
        },
        ..Setup::new(Protocol::Ollama)
    };
    let error = ask(&setup, &server, writing()).error();
    assert!(
        error.message.contains("longer than 0.2 s in all"),
        "{error}"
    );
    assert_eq!(server.calls(), 1);
}

#[test]
fn a_complete_answer_does_not_wait_for_the_end_of_the_stream() {
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
fn nobody_listens() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{free}");
    for protocol in BOTH {
        let start = Instant::now();
        let model = Setup::new(protocol).model(&url);
        let outcome = call(&*model, writing());
        assert_eq!(outcome.reply.attempts, 1);
        let error = outcome.error();
        assert_eq!(error.class, ErrorClass::Unreachable);
        assert!(start.elapsed() < Duration::from_millis(300));
        let hint = error.hint.unwrap();
        match protocol {
            Protocol::Ollama => {
                assert!(hint.contains("is `ollama serve` running? tried"), "{hint}");
                assert!(hint.contains(&url), "{hint}");
            }
            Protocol::OpenAi => assert!(hint.contains("no server listens there"), "{hint}"),
        }
    }
    let connection = Setup::new(Protocol::Ollama).connection(&url);
    let start = Instant::now();
    let running = run(ollama_is_running(&connection, Duration::from_millis(300)));
    assert_eq!(running, None);
    assert!(start.elapsed() < Duration::from_millis(300));
}

#[test]
fn tls_that_is_none() {
    let server = Server::start();
    let url = server.url().replace("http://", "https://");
    let error = call(&*Setup::new(Protocol::OpenAi).model(&url), writing()).error();
    assert_eq!(error.class, ErrorClass::Unreachable, "{error}");
    assert!(error.message.starts_with("TLS failed"), "{error}");
}

#[test]
fn a_name_that_does_not_exist() {
    let setup = Setup {
        retries: RetryPolicy::none(),
        ..Setup::new(Protocol::OpenAi)
    };
    let error = call(&*setup.model("http://nowhere.invalid"), writing()).error();
    // Without a network, even the name server is out of reach.
    assert!(
        matches!(error.class, ErrorClass::Unreachable | ErrorClass::Transient),
        "{error}"
    );
    if error.message.contains("cannot be resolved") {
        assert!(error.message.contains("nowhere.invalid"), "{error}");
    } else {
        eprintln!("a proxy answers for all names here: {error}");
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let target = Server::start();
    let server = Server::start();
    server.fault(Fault::Status {
        status: 307,
        headers: vec![(
            "Location".to_owned(),
            format!("{}/v1/chat/completions", target.url()),
        )],
        body: String::new(),
    });
    let setup = Setup {
        key: Some(ApiKey::for_url("sk-12345678", &server.url()).unwrap()),
        ..Setup::new(Protocol::OpenAi)
    };
    let error = ask(&setup, &server, writing()).error();
    assert!(error.message.contains(&target.url()), "{error}");
    assert!(target.requests().is_empty());
}

// ---------------------------------------------------------------- models that are not there

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
fn a_wrong_path_names_the_address() {
    let server = Server::start();
    server.fault(Fault::error(404, &json!({"detail": "Not Found"})));
    let url = format!("{}/proxy", server.url());
    let error = call(&*Setup::new(Protocol::OpenAi).model(&url), writing()).error();
    assert_eq!(error.class, ErrorClass::NotFound);
    assert_eq!(error.url.unwrap(), format!("{url}/chat/completions"));
    assert!(error.hint.unwrap().contains("/v1"));
}

#[test]
fn what_a_server_has_is_listed() {
    let server = Server::start();
    server.models(&[("b", 4096), ("test", 8192)]);
    let ollama = Setup::new(Protocol::Ollama).connection(&server.url());
    let found = run(ollama_is_running(&ollama, Duration::from_millis(300))).unwrap();
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

// ---------------------------------------------------------------- what is sent

#[test]
fn nothing_is_sent_that_nobody_asked_for() {
    let server = Server::start();
    server.reply_text("a").reply_text("a");
    ask(&Setup::new(Protocol::OpenAi), &server, writing()).ok();
    ask(&Setup::new(Protocol::Ollama), &server, writing()).ok();
    let chats = server.chats();
    let messages = json!([{"role": "system", "content": "You write."},
        {"role": "user", "content": "Write a line."}]);
    assert_eq!(chats[0].path, "/v1/chat/completions");
    assert_eq!(
        chats[0].body,
        json!({"model": "test", "messages": messages, "stream": true,
            "stream_options": {"include_usage": true}})
    );
    assert_eq!(
        chats[1].body,
        json!({"model": "test", "messages": messages, "stream": true, "truncate": false,
            "shift": false, "keep_alive": "15m", "options": {}})
    );
    assert_eq!(chats[0].header("authorization"), None);
}

fn everything() -> ChatRequest {
    ChatRequest {
        sampling: Sampling {
            temperature: Some(0.0),
            top_p: Some(0.9),
            seed: Some(7),
            max_tokens: Some(50),
        },
        top_logprobs: Some(3),
        think: Think::Off,
        ..judging()
    }
}

#[test]
fn all_that_can_be_asked_for_is_sent() {
    let server = Server::start();
    server.reply_text("{}").reply_text("{}");
    let num_ctx = NumCtx::fixed(6144);
    let setup = Setup {
        num_ctx,
        ..Setup::new(Protocol::Ollama)
    };
    ask(&setup, &server, everything()).ok();
    ask(&Setup::new(Protocol::OpenAi), &server, everything()).ok();
    let schema = &everything().schema.unwrap().schema;
    let body = &server.chats()[0].body;
    assert_eq!(&body["format"], schema);
    assert_eq!(body["think"], json!(false));
    assert_eq!(
        body["options"],
        json!({"num_ctx": 6144, "num_predict": 50, "temperature": 0.0, "top_p": 0.9, "seed": 7})
    );
    let body = &server.chats()[1].body;
    assert_eq!(
        body["response_format"],
        json!({"type": "json_schema", "json_schema": {"name": "verdict", "strict": true,
            "schema": schema}})
    );
    assert_eq!(body["max_tokens"], json!(50));
    assert_eq!(body["reasoning_effort"], json!("none"));
    assert_eq!(body["seed"], json!(7));
}

#[test]
fn extra_fields_go_first_and_some_are_not_allowed() {
    let server = Server::start();
    server.reply_text("a");
    let setup = Setup {
        extra_body: json!({"temperature": 0.3, "user": "me"}),
        ..Setup::new(Protocol::OpenAi)
    };
    ask(&setup, &server, everything()).ok();
    let body = &server.chats()[0].body;
    assert_eq!(body["temperature"], json!(0.3));
    assert_eq!(body["user"], json!("me"));
    let connection = setup.connection(&server.url());
    let id = ModelId {
        provider: "openai".to_owned(),
        model: "test".to_owned(),
    };
    let mut options = OpenAiOptions::new(id, connection);
    options.extra_body.insert("stream".to_owned(), json!(false));
    assert!(
        OpenAiModel::new(options)
            .unwrap_err()
            .message
            .contains("stream")
    );
}

#[test]
fn a_key_goes_to_its_own_server_only() {
    let mine = Server::start();
    let other = Server::start();
    for server in [&mine, &other] {
        server.reply_text("a").reply_text("a");
    }
    for protocol in BOTH {
        let setup = Setup {
            key: Some(ApiKey::for_url("sk-12345678", &mine.url()).unwrap()),
            ..Setup::new(protocol)
        };
        assert!(ask(&setup, &mine, writing()).notices().is_empty());
        let model = setup.model(&other.url());
        let outcome = call(&*model, writing());
        assert!(outcome.notices()[0].contains("is not sent to"));
        assert!(!format!("{outcome:?}", outcome = outcome.events).contains("12345678"));
    }
    assert_eq!(
        mine.chats()[0].header("authorization"),
        Some("Bearer sk-12345678")
    );
    for chat in other.chats() {
        assert_eq!(chat.header("authorization"), None);
    }
}

#[test]
fn a_server_that_repeats_the_key_does_not_make_it_known() {
    let server = Server::start();
    server.fault(Fault::error(
        401,
        &json!({"error": {"message": "wrong key: sk-12345678"}}),
    ));
    let setup = Setup {
        key: Some(ApiKey::for_url("sk-12345678", &server.url()).unwrap()),
        ..Setup::new(Protocol::OpenAi)
    };
    let error = ask(&setup, &server, writing()).error();
    assert_eq!(error.message, "wrong key: [key]");
}

#[test]
fn connections_are_used_again() {
    for protocol in BOTH {
        let server = Server::start();
        server.reply_text("a").reply_text("b").reply_text("c");
        let model = Setup::new(protocol).model(&server.url());
        run(async {
            for _ in 0..3 {
                complete(&*model, writing(), |_| {}).await.1.unwrap();
            }
        });
        assert_eq!(server.connections(), 1, "{protocol:?}");
    }
}

/// Runs another test of this program with a proxy in the environment that nobody listens at.
#[test]
fn a_proxy_is_never_asked_for_loopback() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_plain_answer_comes_in_pieces"])
        .env("HTTP_PROXY", format!("http://{free}"))
        .env("http_proxy", format!("http://{free}"))
        .env("ALL_PROXY", format!("http://{free}"))
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

/// Not run by itself, since it needs a proxy in the environment: see the next test.
#[test]
#[ignore = "run by another test"]
fn a_call_through_the_proxy_of_the_environment() {
    let model = Setup::new(Protocol::OpenAi).model("http://somewhere.example/v1");
    assert_eq!(call(&*model, writing()).ok().text, "by proxy");
}

#[test]
fn a_proxy_is_asked_for_other_addresses() {
    let proxy = Server::start();
    proxy.reply_text("by proxy");
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "a_call_through_the_proxy_of_the_environment",
        ])
        .env("HTTP_PROXY", proxy.url())
        .env("http_proxy", proxy.url())
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
    assert!(proxy.chats()[0].path.contains("somewhere.example"));
}

#[test]
fn dropping_the_stream_ends_the_call() {
    let server = Server::start();
    server.reply(Reply::pieces(&["a"; 1000]).wait(Duration::from_millis(5)));
    let model = Setup::new(Protocol::Ollama).model(&server.url());
    run(async {
        let mut stream = model.chat(writing());
        assert_eq!(
            stream.next().await.unwrap().unwrap(),
            ChatEvent::Text("a".to_owned())
        );
    });
    assert_eq!(server.calls(), 1);
}

// ---------------------------------------------------------------- what is learned

fn unsupported(name: &str) -> Fault {
    Fault::error(
        400,
        &json!({"error": {"message": format!("Unsupported parameter: '{name}' is not supported with this model."),
            "type": "invalid_request_error", "param": name, "code": "unsupported_parameter"}}),
    )
}

#[test]
fn rejected_parameters_are_left_out_once_and_for_all() {
    for name in ["temperature", "seed", "logprobs", "top_p", "stream_options"] {
        let server = Server::start();
        server
            .fault(unsupported(name))
            .reply_text("{}")
            .reply_text("{}");
        let model = Setup::new(Protocol::OpenAi).model(&server.url());
        let outcome = call(&*model, everything());
        assert!(
            outcome.notices()[0].contains(&format!("`{name}`")),
            "{:?}",
            outcome.notices()
        );
        assert_eq!(outcome.retries().len(), 1);
        assert_eq!(outcome.ok().attempts, 2);
        let again = call(&*model, everything());
        assert!(again.notices().is_empty());
        let chats = server.chats();
        assert_eq!(chats.len(), 3);
        assert!(chats[0].body.get(name).is_some());
        for chat in &chats[1..] {
            assert!(chat.body.get(name).is_none(), "{name}");
        }
    }
}

#[test]
fn the_token_limit_is_renamed() {
    let server = Server::start();
    server
        .fault(Fault::error(
            400,
            &json!({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this \
                model. Use 'max_completion_tokens' instead.", "param": "max_tokens",
                "code": "unsupported_parameter"}}),
        ))
        .reply_text("{}");
    ask(&Setup::new(Protocol::OpenAi), &server, everything()).ok();
    let body = &server.chats()[1].body;
    assert_eq!(body["max_completion_tokens"], json!(50));
    assert!(body.get("max_tokens").is_none());
}

#[test]
fn a_wrong_value_is_not_left_out() {
    let server = Server::start();
    server.fault(Fault::error(
        400,
        &json!({"error": {"message": "'temperature' must be at most 2", "param": "temperature",
            "code": "decimal_above_max_value"}}),
    ));
    let error = ask(&Setup::new(Protocol::OpenAi), &server, everything()).error();
    assert_eq!(error.class, ErrorClass::Rejected);
    assert_eq!(server.calls(), 1);
}

#[test]
fn the_demand_for_json_goes_down_step_by_step() {
    let reject = || {
        Fault::error(
            400,
            &json!({"error": {"message": "This response_format type is unavailable now"}}),
        )
    };
    let server = Server::start();
    server
        .fault(reject())
        .fault(reject())
        .reply_text("{}")
        .reply_text("{}");
    let model = Setup::new(Protocol::OpenAi).model(&server.url());
    let outcome = call(&*model, judging());
    assert_eq!(outcome.notices().len(), 2);
    assert_eq!(outcome.ok().text, "{}");
    call(&*model, judging()).ok();
    let formats: Vec<Value> = server
        .chats()
        .iter()
        .map(|chat| chat.body["response_format"]["type"].clone())
        .collect();
    assert_eq!(
        formats,
        [
            json!("json_schema"),
            json!("json_object"),
            json!(null),
            json!(null)
        ]
    );

    // What the user chose is not changed.
    let server = Server::start();
    server.fault(reject());
    let setup = Setup {
        structured: Some(StructuredOutput::JsonSchema),
        ..Setup::new(Protocol::OpenAi)
    };
    assert_eq!(
        ask(&setup, &server, judging()).error().class,
        ErrorClass::Rejected
    );
}

#[test]
fn calls_at_the_same_time_learn_together() {
    let server = Server::start();
    let arrived = Arc::new(Barrier::new(2));
    server.on(support::server::Purpose::Judge, move |request| {
        if request.body["response_format"]["type"] == json!("json_schema") {
            // Both are on their way before either is rejected.
            arrived.wait();
            let error = json!({"error": {"message": "json_schema is not supported"}});
            return Planned::from(Fault::error(400, &error));
        }
        Reply::text("{}").into()
    });
    let model = Setup::new(Protocol::OpenAi).model(&server.url());
    run(async {
        let (one, two) = futures_util::join!(
            complete(&*model, judging(), |_| {}),
            complete(&*model, judging(), |_| {})
        );
        one.1.unwrap();
        two.1.unwrap();
    });
    assert_eq!(server.calls(), 4);
    // One step down the ladder, not two.
    let last = &server.chats()[3].body;
    assert_eq!(last["response_format"]["type"], json!("json_object"));
}

#[test]
fn a_model_that_cannot_be_kept_from_reasoning_does_little_of_it() {
    let server = Server::start();
    server
        .fault(unsupported("reasoning_effort"))
        .fault(unsupported("reasoning_effort"))
        .reply_text("a");
    let outcome = ask(&Setup::new(Protocol::OpenAi), &server, everything());
    assert_eq!(outcome.ok().attempts, 3);
    let chats = server.chats();
    let efforts = chats.iter().map(|chat| &chat.body["reasoning_effort"]);
    assert!(efforts.eq([&json!("none"), &json!("low"), &json!(null)]));
}

#[test]
fn the_scripted_server_follows_its_plan() {
    let server = Server::start();
    server
        .reply_verdict(&json!({"score": 1}))
        .reply_text("second")
        .fault_at(2, Fault::status(400))
        .on(support::server::Purpose::Write, |request| {
            Reply::text(&request.prompt()).first_wait(Duration::from_millis(5))
        });
    let setup = Setup::new(Protocol::Ollama);
    assert_eq!(ask(&setup, &server, judging()).ok().text, "{\"score\":1}");
    assert_eq!(ask(&setup, &server, writing()).error().status, Some(400));
    assert_eq!(ask(&setup, &server, writing()).ok().text, "second");
    let echo = ask(&setup, &server, writing()).ok().text;
    assert_eq!(echo, "You write.\nWrite a line.");
    assert_eq!(ask(&setup, &server, judging()).reply.attempts, 3);
    assert_eq!(server.calls(), 7);
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.method == "POST")
    );
}

#[test]
fn a_model_that_cannot_think_is_not_asked_to() {
    let server = Server::start();
    server
        .fault(Fault::error(
            400,
            &json!({"error": "\"test\" does not support thinking"}),
        ))
        .reply_text("a");
    let request = ChatRequest {
        think: Think::High,
        ..writing()
    };
    let outcome = ask(&Setup::new(Protocol::Ollama), &server, request);
    assert!(outcome.notices()[0].contains("does not support thinking"));
    outcome.ok();
    assert_eq!(server.chats()[0].body["think"], json!("high"));
    assert!(server.chats()[1].body.get("think").is_none());
}

#[test]
fn too_long_a_prompt_says_by_how_much() {
    let message =
        "request (9001 tokens) exceeds the available context size (4096 tokens), try increasing it";
    for protocol in BOTH {
        let server = Server::start();
        server.fault(Fault::error(
            400,
            &json!({"error": {"code": 400, "message": message,
            "type": "exceed_context_size_error"}}),
        ));
        let error = ask(&Setup::new(protocol), &server, writing()).error();
        assert_eq!(error.class, ErrorClass::ContextTooLong);
        let hint = error.hint.unwrap();
        assert!(hint.contains("9001") && hint.contains("4096"), "{hint}");
        assert_eq!(
            hint.contains("num_ctx"),
            protocol == Protocol::Ollama,
            "{hint}"
        );
    }
}

#[test]
fn a_silently_cut_prompt_is_noticed() {
    let server = Server::start();
    server.reply(Reply::text("a").usage(2048, 1, None));
    let setup = Setup {
        num_ctx: NumCtx::fixed(4096),
        ..Setup::new(Protocol::Ollama)
    };
    let long = "word ".repeat(20_000);
    let request = ChatRequest::new(Purpose::Write, vec![Message::new(Role::User, long)]);
    let outcome = ask(&setup, &server, request);
    assert!(outcome.notices()[0].contains("cut off the beginning"));
}
