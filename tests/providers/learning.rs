//! Adapting to rejected parameters.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use reflect::model::ollama::NumCtx;
use reflect::model::openai::StructuredOutput;
use reflect::model::{ChatRequest, ErrorClass, Message, Purpose, Role, Think, complete};
use serde_json::{Value, json};

use crate::setup::{BOTH, Setup, ask, call, everything, judging, run, writing};
use crate::support::server::{Fault, Planned, Protocol, Purpose as Asked, Reply, Server};

fn unsupported(name: &str) -> Fault {
    Fault::error(
        400,
        &json!({"error": {"message": format!("Unsupported parameter: '{name}' is not supported with this model."),
            "type": "invalid_request_error", "param": name, "code": "unsupported_parameter"}}),
    )
}

#[test]
fn rejected_parameters_are_omitted_permanently() {
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
fn a_parameter_with_a_wrong_value_is_not_omitted() {
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
fn structured_output_falls_back_step_by_step() {
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

    // The user's choice is not changed.
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
fn concurrent_calls_learn_once() {
    let server = Server::start();
    let arrived = Arc::new(Barrier::new(2));
    server.on(Asked::Judge, move |request| {
        if request.body["response_format"]["type"] == json!("json_schema") {
            // Both are in progress before either is rejected.
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
    // One fallback step, not two.
    let last = &server.chats()[3].body;
    assert_eq!(last["response_format"]["type"], json!("json_object"));
}

#[test]
fn a_model_that_always_reasons_uses_the_lowest_effort() {
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
        .on(Asked::Write, |request| {
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
fn a_model_that_cannot_reason_is_not_requested_to() {
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
fn the_error_of_a_too_long_prompt_has_token_counts() {
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
fn a_silently_truncated_prompt_is_detected() {
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
