//! How successful replies are interpreted.

use crate::setup::{BOTH, Setup, ask, call, judging, writing};
use crate::support::server::{Chunks, Fault, Protocol, Reply, Server};
use reflect::model::{ChatEvent, ChatRequest, EndReason, Think};
use reflect::types::TokenUsage;
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn a_plain_reply_arrives_in_pieces() {
    for protocol in BOTH {
        let server = Server::start();
        let pieces = Reply::pieces(&["One ", "two ", "drei ä€𝄞."]).wait(Duration::from_millis(60));
        server.reply(pieces.usage(12, 7, Some(5)));
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
fn any_split_of_the_bytes_gives_the_same_reply() {
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
            let cut = call(&*model, writing());
            assert_eq!(cut.reply, expected.reply, "{size}");
            assert_eq!(cut.notices(), expected.notices(), "{size}");
        }
    }
}

#[test]
fn every_valid_framing_is_parsed() {
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
fn reasoning_is_never_part_of_the_reply() {
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
        // With reasoning off, a reply that contains only reasoning is not requested again.
        let request = ChatRequest {
            think: Think::Off,
            ..writing()
        };
        let ask = || call(&*model, request.clone()).ok();
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
fn the_end_reason_is_reported() {
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
fn logprobs_belong_to_the_reply() {
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
fn missing_usage_is_unknown() {
    for protocol in BOTH {
        let server = Server::start();
        server.reply(Reply::text("a").no_usage());
        let reply = ask(&Setup::new(protocol), &server, writing()).ok();
        assert_eq!(reply.usage, TokenUsage::default());
    }
}

#[test]
fn the_last_usage_wins_at_any_position() {
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
fn a_server_without_streaming_is_supported() {
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
    // Nothing was shown yet, so a lone closing tag can be recognized.
    assert_eq!(ask(&setup, &server, writing()).ok().text, "the answer");
}

#[test]
fn endless_whitespace_in_json_is_stopped() {
    for protocol in BOTH {
        let server = Server::start();
        let mut pieces = vec!["{\"score\":"];
        pieces.extend([" \n\t  "; 100]);
        server.reply(Reply::pieces(&pieces).wait(Duration::from_millis(1)));
        let outcome = ask(&Setup::new(protocol), &server, judging());
        assert!(
            outcome.notices()[0].contains("white space characters in a row"),
            "{:?}",
            outcome.notices()
        );
        let reply = outcome.ok();
        assert_eq!(reply.end, Some(EndReason::Length));
        assert!(reply.text.len() < 250);
        // A text may contain any amount of whitespace.
        server.reply(Reply::pieces(&pieces));
        assert_eq!(
            ask(&Setup::new(protocol), &server, writing()).ok().end,
            Some(EndReason::Stop)
        );
    }
}
