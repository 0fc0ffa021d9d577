//! `--context`: known facts from a context file.

use serde_json::{Value, json};

use crate::harness::Test;
use crate::plan::{answering, usual_server, verdict, with_server};
use crate::support::server::{Protocol, Recorded, Reply, Server};

fn context() -> Value {
    json!({
        "sessionId": "abc",
        "currentMessage": "Write a line.",
        "messageHistory": [
            {"role": "user", "content": "the first thing said"},
            {"role": "assistant", "content": "the second thing said"},
            {"role": "user", "content": "the third thing said"},
            {"role": "assistant", "content": "the fourth thing said"}
        ],
        "retrievedFacts": [{"content": "Use drizzle-kit for migrations", "confidence": 0.85}],
        "retrievedProcedures": [
            {"name": "Migrate", "content": "Generate, then push.", "successRate": 0.9}
        ]
    })
}

fn draft(server: &Server, args: &[&str]) -> Test {
    with_server(server, Protocol::OpenAi)
        .args(["draft", "Write a line.", "-c", "criteria.toml"])
        .args(["--context", "context.json"])
        .args(args)
        .file("context.json", context().to_string())
}

#[test]
fn writer_judge_and_reviser_receive_the_same_context_in_the_same_place() {
    let server = usual_server();
    let ran = draft(&server, &["--format", "json"]).run();
    let prompts: Vec<String> = server.chats().iter().map(Recorded::prompt).collect();
    assert_eq!(prompts.len(), 4);
    let end = prompts[0].find("</procedures>").expect("procedures");
    for prompt in &prompts {
        assert_eq!(prompt[..end], prompts[0][..end], "one prefix for all calls");
        for part in [
            "the second thing said",
            "the fourth thing said",
            "- Use drizzle-kit for migrations (confidence 0.85)",
            "- Migrate: Generate, then push. (success rate 0.90)",
        ] {
            assert!(prompt[..end].contains(part), "{part}: {prompt}");
        }
        assert!(!prompt.contains("the first thing said"), "{prompt}");
    }
    let evidence = json!([
        {"iteration": 1, "source": "memory", "content": "Use drizzle-kit for migrations",
            "relevance": 0.85, "supports_claim": null, "location": null},
        {"iteration": 1, "source": "memory", "content": "Migrate: Generate, then push.",
            "relevance": 0.9, "supports_claim": null, "location": null}
    ]);
    assert_eq!(ran.json()["evidence"], evidence);
    assert_eq!(
        ran.history()["evidence"],
        evidence,
        "the run log has it, too"
    );
}

#[test]
fn the_run_log_contains_the_context() {
    let server = usual_server();
    let ran = draft(&server, &["--format", "ndjson"]).run();
    let task = &ran.lines()[0]["task"];
    assert_eq!(task["message_history"].as_array().unwrap().len(), 3);
    assert_eq!(task["facts"][0]["confidence"], 0.85);
    assert_eq!(task["procedures"][0]["success_rate"], 0.9);
}

#[test]
fn the_number_of_messages_is_a_flag_and_a_setting() {
    for (args, config, there, not_there) in [
        (
            &["--context-messages", "4"][..],
            "",
            "the first thing",
            "fifth",
        ),
        (
            &["--context-messages", "1"],
            "context_messages = 4",
            "the fourth thing",
            "the third thing",
        ),
        (
            &[],
            "context_messages = 2",
            "the third thing",
            "the second thing",
        ),
        (
            &["--context-messages", "0"],
            "",
            "drizzle",
            "the fourth thing",
        ),
    ] {
        let server = answering([Reply::text("A line."), Reply::text(&verdict(5).to_string())]);
        draft(&server, args)
            .file("reflect.toml", config)
            .args(["--config", "reflect.toml"])
            .run();
        let prompt = server.chats()[0].prompt();
        assert!(prompt.contains(there), "{args:?} {config}: {prompt}");
        assert!(!prompt.contains(not_there), "{args:?} {config}: {prompt}");
    }
}

#[test]
fn evaluate_accepts_a_context_file() {
    let server = answering([Reply::text(&verdict(5).to_string())]);
    let ran = with_server(&server, Protocol::Ollama)
        .args([
            "evaluate",
            "-c",
            "criteria.toml",
            "--context",
            "context.json",
        ])
        .args(["--format", "json"])
        .file("context.json", context().to_string())
        .stdin("A line.")
        .run();
    assert!(server.chats()[0].prompt().contains("drizzle-kit"));
    assert_eq!(ran.json()["evidence"][0]["source"], "memory");
}

#[test]
fn errors_in_a_context_file_show_their_position() {
    let cases = [
        (
            "{\n  \"retrievedFacts\": [\n    {\"content\": \"a\", \"confidence\": 85}\n  ]\n}",
            "context.json:3:36",
            "expected a number from 0 to 1",
        ),
        (
            "{\"retrievedFact\": []}",
            "context.json:1:2",
            "did you mean `retrievedFacts`?",
        ),
        ("[]", "context.json:1:1", "expected an object `{...}`"),
        (
            "{\"messageHistory\": [{\"role\": \"user\"}]}",
            "context.json:1:",
            "the key `content` is missing",
        ),
        (
            "{\"messageHistory\": [}",
            "context.json:1:21",
            "invalid JSON",
        ),
        ("", "context.json", "invalid JSON"),
    ];
    for (text, place, message) in cases {
        let server = Server::start();
        draft(&server, &[])
            .file("context.json", text)
            .code(2)
            .stdout("")
            .stderr_has(place)
            .stderr_has(message)
            .stderr_has("hint: ")
            .stderr_has("for example: {\"messageHistory\"")
            .run();
        assert!(server.requests().is_empty(), "{text}");
    }
    let server = Server::start();
    draft(&server, &["--context", "contxt.json"])
        .code(2)
        .stderr_has("--context")
        .run();
    let server = Server::start();
    with_server(&server, Protocol::Ollama)
        .args([
            "draft",
            "x",
            "-c",
            "criteria.toml",
            "--context",
            "nowhere.json",
        ])
        .code(2)
        .stderr_has("no such file")
        .run();
    assert!(server.requests().is_empty());
}
