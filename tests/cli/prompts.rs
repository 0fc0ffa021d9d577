//! `--prompt-dir`: custom templates, and what revisions see of the run.

use serde_json::json;

use crate::harness::Test;
use crate::plan::{answering, usual, verdict, with_server};
use crate::support::server::{Protocol, Reply, Server};

fn draft(server: &Server, args: &[&str]) -> Test {
    with_server(server, Protocol::OpenAi)
        .args(["draft", "Write a line.", "-c", "criteria.toml"])
        .args(args)
}

/// Returns the last message of each request.
fn asked(server: &Server) -> Vec<String> {
    server
        .chats()
        .iter()
        .map(|request| {
            let messages = request.body["messages"].as_array();
            let last = messages.and_then(|messages| messages.last());
            let content = last.and_then(|message| message["content"].as_str());
            content.expect("a message").to_owned()
        })
        .collect()
}

#[test]
fn custom_templates_replace_the_built_in_ones_individually() {
    let server = answering(usual());
    draft(&server, &["--prompt-dir", "prompts"])
        .file("prompts/draft.j2", "In one line.\n{{ task }}")
        .file(
            "prompts/revise.j2",
            "Better, please: {{ draft }}{{ feedback }}{{ wishes }}{# words #}",
        )
        .stdout("The second draft.\n")
        .run();
    let asked = asked(&server);
    assert_eq!(asked[0], "In one line.\nWrite a line.");
    assert!(
        asked[1].contains("You are a strict, fair reviewer."),
        "{}",
        asked[1]
    );
    assert!(
        asked[2]
            .starts_with("Better, please: <draft>\nThe first draft.\n</draft><feedback>\n- major"),
        "{}",
        asked[2]
    );
}

#[test]
fn the_initial_templates_produce_the_built_in_prompts() {
    let made = Test::new()
        .args(["config", "prompts", "prompts"])
        .stderr_has("wrote 11 templates to prompts")
        .run();
    let revise = made.read("prompts/revise.j2");
    assert!(
        revise.starts_with("{# revise.j2: asks for the whole draft again"),
        "{revise}"
    );
    made.then(["config", "prompts", "prompts"])
        .code(2)
        .stderr_has("the file already exists")
        .stderr_has("--force")
        .run();
    made.then(["config", "prompts", "prompts", "--force"]).run();

    let (ours, own) = (answering(usual()), answering(usual()));
    draft(&ours, &[]).run();
    let mut test = draft(&own, &["--prompt-dir", "prompts"]);
    for name in [
        "base", "draft", "evaluate", "feedback", "evidence", "revise",
    ] {
        let name = format!("prompts/{name}.j2");
        test = test.file(&name, made.read(&name));
    }
    test.run();
    assert_eq!(asked(&own), asked(&ours));
}

#[test]
fn an_invalid_template_is_rejected_before_any_call() {
    for (file, text, shown) in [
        (
            "draft.j2",
            "{{ task }}\nAs {{ author }}.",
            "2 | As {{ author }}.\n  |       ^^^^^^",
        ),
        ("draft.j2", "{{ task }}\n{% if note %}", "syntax error"),
        ("draft.j2", "Write.", "does not show `task`"),
        ("drafts.j2", "{{ task }}", "did you mean `draft.j2`?"),
        ("notes.txt", "x", "the templates are `base.j2`"),
        (
            "evaluate.j2",
            "{{ draft }}{{ own }}{{ form }}{{ examples[7].draft }}",
            "variables of `evaluate.j2`: `task`",
        ),
    ] {
        let server = Server::start();
        for format in ["text", "ndjson"] {
            let ran = draft(&server, &["--prompt-dir", "prompts", "--format", format])
                .file(&format!("prompts/{file}"), text)
                .code(2)
                .stderr_has(shown)
                .run();
            if format == "ndjson" {
                assert_eq!(ran.lines().len(), 1, "one end");
            }
        }
        assert!(server.requests().is_empty(), "{file}");
    }
    let server = Server::start();
    draft(&server, &["--prompt-dir", "nowhere"])
        .code(2)
        .stderr_has("nowhere: no such folder")
        .run();
}

#[test]
fn only_the_user_sets_the_template_folder() {
    let server = answering(usual());
    with_server(&server, Protocol::OpenAi)
        .args(["draft", "Write a line.", "-c", "criteria.toml"])
        .file("config/config.toml", "prompt_dir = 'prompts'\n")
        .file("config/prompts/draft.j2", "Mine: {{ task }}")
        .env("REFLECT_CONFIG", "config/config.toml")
        .run();
    assert!(asked(&server)[0].starts_with("Mine: Write a line."));
    for (file, text) in [
        (".reflect.toml", "prompt_dir = 'prompts'\n"),
        (
            "criteria.toml",
            "name = 'x'\nprompt_dir = 'prompts'\n[[criteria]]\nname = 'clear'\ndescription = 'Clear.'\n",
        ),
        (
            "criteria.toml",
            "name = 'x'\n[loop]\nprompt_dir = 'prompts'\n[[criteria]]\nname = 'clear'\ndescription = 'Clear.'\n",
        ),
    ] {
        draft(&Server::start(), &[])
            .file(file, text)
            .file("prompts/draft.j2", "Mine: {{ task }}")
            .code(2)
            .stderr_has("prompt_dir")
            .run();
    }
}

#[test]
fn a_text_is_judged_with_a_custom_template() {
    let server = answering([Reply::text(&verdict(5).to_string())]);
    with_server(&server, Protocol::OpenAi)
        .args(["evaluate", "text.md", "-c", "criteria.toml"])
        .args(["--prompt-dir", "prompts"])
        .file("text.md", "A text.")
        .file(
            "prompts/evaluate.j2",
            "Be kind.\n{{ draft }}\n{{ own }}{{ form }}",
        )
        .run();
    assert!(asked(&server)[0].starts_with("Be kind.\n<draft>\nA text.\n</draft>"));
}

#[test]
fn a_revision_sees_earlier_attempts() {
    let issue = |step: u8, what: &str| {
        let mut verdict = verdict(step);
        verdict["issues"] = json!([{"type": "incorrect", "severity": "major", "criterion": "clear",
            "description": what, "suggested_fix": "Write it anew."}]);
        Reply::text(&verdict.to_string())
    };
    for (flags, history, earlier) in [
        (&[][..], true, false),
        (
            &[
                "--include-reflection-history",
                "false",
                "--include-prior-versions",
                "true",
            ],
            false,
            true,
        ),
    ] {
        let server = answering([
            Reply::text("One."),
            issue(3, "It does not say who waits."),
            Reply::text("Two."),
            issue(1, "Every sentence lacks its verb."),
            Reply::text("Three."),
            Reply::text(&verdict(5).to_string()),
        ]);
        let test = draft(&server, flags).args(["--adapt", "false"]);
        test.stdout("Three.\n").run();
        let asked = asked(&server);
        let last = &asked[4];
        assert_eq!(
            last.contains("Failed: a revision with these issues: Every sentence lacks its verb."),
            history,
            "{last}"
        );
        assert_eq!(
            last.contains("<earlier-draft name=\"2, thrown away\">\nTwo.\n"),
            earlier,
            "{last}"
        );
        assert!(!asked[2].contains("Tried") && !asked[2].contains("earlier-draft"));
        assert!(
            !asked[5].contains("Tried") && !asked[5].contains("earlier-draft"),
            "no judge sees it"
        );
    }
}
