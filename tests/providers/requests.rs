//! The requests that are sent.

use crate::setup::{BOTH, Setup, ask, call, everything, writing};
use crate::support::server::{Fault, Protocol, Server};
use reflect::model::ApiKey;
use reflect::model::ollama::NumCtx;
use reflect::model::openai::{OpenAiModel, OpenAiOptions};
use reflect::types::ModelId;
use serde_json::json;

#[test]
fn only_requested_parameters_are_sent() {
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
            "options": {}})
    );
    assert_eq!(chats[0].header("authorization"), None);
}

#[test]
fn all_parameters_are_sent_on_request() {
    let server = Server::start();
    server.reply_text("{}").reply_text("{}");
    let num_ctx = NumCtx::fixed(6144);
    let setup = Setup {
        num_ctx,
        ..Setup::new(Protocol::Ollama)
    };
    ask(&setup, &server, everything()).ok();
    ask(&Setup::new(Protocol::OpenAi), &server, everything()).ok();
    let asked = everything();
    let schema = asked.schema.as_ref().unwrap().schema();
    let body = &server.chats()[0].body;
    assert_eq!(&body["format"], schema);
    assert_eq!(body["think"], json!(false));
    assert_eq!(
        body["options"],
        json!({"num_ctx": 6144, "num_predict": 50, "temperature": 0.0, "top_p": 0.9, "seed": 7,
            "repeat_penalty": 1.0})
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
fn extra_fields_take_precedence_and_some_are_rejected() {
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
fn a_key_is_sent_only_to_its_own_server() {
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
fn a_key_in_an_error_message_is_redacted() {
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

/// Prompt and reply share the window: when it is full, Ollama drops the start of the prompt.
#[test]
fn a_reply_is_limited_to_what_the_window_holds() {
    let limit = |window, max_tokens| {
        let server = Server::start();
        server.reply_text("a");
        let setup = Setup {
            num_ctx: NumCtx::fixed(window),
            ..Setup::new(Protocol::Ollama)
        };
        let mut request = writing();
        request.sampling.max_tokens = max_tokens;
        ask(&setup, &server, request).ok();
        server.chats()[0].body["options"]["num_predict"].clone()
    };
    // The estimate is one token per three bytes of the prompt.
    assert_eq!(limit(4096, None), json!(4096 - 9));
    assert_eq!(limit(4096, Some(500)), json!(500));
    assert_eq!(limit(4096, Some(5000)), json!(4096 - 9));
    // The estimate may be too high, so the limit never becomes zero.
    assert_eq!(limit(200, None), json!(256));
}
