//! `reflect run`: what `llm.call` requests from a server, what is printed, and limits.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Ran, Test, each};
use crate::plan::{BOTH, answering, with_server};
use crate::script::has;
use crate::support::server::{Fault, Protocol, Recorded, Reply, Server};

/// A workflow with one `llm.call` with these keys.
fn asking(keys: &Value) -> String {
    json!({ "nodes": [{ "name": "ask", "uses": "llm.call", "with": keys }] }).to_string()
}

fn run(server: &Server, protocol: Protocol, file: &str) -> Test {
    with_server(server, protocol)
        .file("w.yaml", file)
        .args(["run", "w.yaml"])
}

/// A workflow that only runs Lua.
fn lua(file: &str, args: &[&str]) -> Test {
    Test::new()
        .file("w.yaml", file)
        .args(["run", "w.yaml"])
        .args(args)
}

#[test]
fn a_response_format_is_sent_to_the_server() {
    let schema = json!({
        "type": "object",
        "properties": { "title": { "type": "string" } },
        "required": ["title"],
        "additionalProperties": false,
    });
    let formats = [
        json!({ "type": "json_schema", "json_schema": { "name": "title", "schema": schema } }),
        json!({ "type": "json_object" }),
        json!("json_object"),
        json!({ "type": "text" }),
    ];
    let cases: Vec<(Protocol, &Value)> = BOTH
        .iter()
        .flat_map(|protocol| formats.iter().map(|format| (*protocol, format)))
        .collect();
    each(
        &cases,
        |(protocol, format)| format!("{protocol:?} {format}"),
        |(protocol, format)| {
            let server = answering([Reply::text("{\"title\": \"A\"}")]);
            let file = asking(&json!({ "prompt": "A title", "response_format": format }));
            run(&server, *protocol, &file)
                .stdout("{\"title\": \"A\"}\n")
                .run();
            let body = &server.chats()[0].body;
            let kind = format.get("type").unwrap_or(format);
            match (*protocol, kind.as_str()) {
                (_, Some("text")) => {
                    assert!(body["format"].is_null() && body["response_format"].is_null());
                }
                (Protocol::Ollama, Some("json_schema")) => assert_eq!(body["format"], schema),
                (Protocol::Ollama, _) => assert_eq!(body["format"], json!({ "type": "object" })),
                (Protocol::OpenAi, Some("json_schema")) => assert_eq!(
                    body["response_format"],
                    json!({
                        "type": "json_schema",
                        "json_schema": { "name": "title", "strict": true, "schema": schema },
                    })
                ),
                (Protocol::OpenAi, _) => {
                    assert_eq!(body["response_format"], json!({ "type": "json_object" }));
                }
            }
        },
    );
    for (format, said) in [
        (
            json!({ "type": "json_schema" }),
            "needs the key `json_schema`",
        ),
        (
            json!({ "type": "json_schema", "json_schema": {} }),
            "needs the key `schema`",
        ),
        (
            json!({ "type": "json_schema", "json_schema": { "schema": {}, "strict": false } }),
            "a schema is always strict here",
        ),
        (
            json!({ "type": "json_object", "json_schema": { "schema": {} } }),
            "this schema would have no effect",
        ),
        (json!({ "type": "jason" }), "one of"),
    ] {
        lua(
            &asking(&json!({ "prompt": "x", "response_format": format })),
            &["--check"],
        )
        .code(2)
        .stderr_has(said)
        .stderr_has("w.yaml:1:")
        .run();
    }
}

/// Returns the result of a call, the number of requests, and the duration.
fn tried(
    protocol: Protocol,
    faults: usize,
    keys: &Value,
    args: &[&str],
    code: i32,
) -> (Ran, usize, Duration) {
    let server = Server::start();
    for _ in 0..faults {
        server.fault(Fault::status(503));
    }
    server.reply_text("at last");
    let mut all = json!({ "prompt": "x" });
    for (key, value) in keys.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    let begun = Instant::now();
    let ran = run(&server, protocol, &asking(&all))
        .args(["--format", "json"])
        .args(args)
        .code(code)
        .run();
    (ran, server.calls(), begun.elapsed())
}

#[test]
fn a_call_is_retried_with_the_number_and_delays_of_the_file() {
    each(
        &BOTH,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let soon = json!({ "max_retries": 3, "base_delay": 0.01, "max_delay": 0.02 });
            let (ran, calls, time) = tried(*protocol, 3, &soon, &[], 0);
            assert_eq!(calls, 4);
            assert_eq!(ran.json()["state"]["attempts"], 4);
            assert_eq!(ran.json()["total_llm_calls"], 4);
            let again = ran.stderr.matches("scripted status 503").count();
            assert_eq!(again, 3, "{}", ran.stderr);
            assert!(ran.stderr.contains("; retrying in 0.0"), "{}", ran.stderr);
            assert!(time < Duration::from_secs(20), "{time:?}");

            let (_, calls, _) = tried(*protocol, 1, &json!({ "max_retries": 0 }), &[], 4);
            assert_eq!(calls, 1);
            // The user's setting for this call overrides the file.
            let (_, calls, _) = tried(*protocol, 2, &soon, &["--retries", "1"], 4);
            assert_eq!(calls, 2);
        },
    );
}

#[test]
fn a_call_has_the_timeout_of_the_file() {
    let server = Server::start();
    server.fault(Fault::SlowFirst(Duration::from_secs(40)));
    let begun = Instant::now();
    let keys = json!({ "prompt": "x", "timeout": 0.5, "max_retries": 5 });
    run(&server, Protocol::OpenAi, &asking(&keys))
        .code(4)
        .stdout("")
        .run();
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
    for (keys, said) in [
        (
            json!({ "prompt": "x", "timeout": -1 }),
            "`timeout`: expected a number from 0 to 86400",
        ),
        (
            json!({ "prompt": "x", "max_retries": 0.5 }),
            "`max_retries`: expected a whole number",
        ),
        (
            json!({ "prompt": "x", "base_delay": "soon" }),
            "`base_delay`: expected a number",
        ),
    ] {
        lua(&asking(&keys), &["--check"])
            .code(2)
            .stderr_has(said)
            .run();
    }
}

#[test]
fn code_is_extracted_from_its_fence() {
    let reply = "Here you are:\n\n```python\ndef f():\n    pass\n```\n\nHave fun!";
    for (extract, answer) in [
        (json!(true), "def f():\n    pass\n".to_owned()),
        (json!(false), format!("{reply}\n")),
    ] {
        let server = answering([Reply::text(reply)]);
        let file = asking(&json!({ "prompt": "x", "extract": extract }));
        run(&server, Protocol::OpenAi, &file).stdout(&answer).run();
    }
    let server = answering([Reply::text("x = 1")]);
    let file = asking(&json!({ "prompt": "x", "extract": true }));
    run(&server, Protocol::OpenAi, &file)
        .stdout("x = 1\n")
        .run();
}

#[test]
fn a_result_is_reflected_on_at_the_users_request() {
    let file = "\
nodes:
  - name: write
    run: return 'bad'
    language: lua
    reflection:
      triggers: [manual]
      evaluator: {type: custom, language: lua, run: 'return output == \"good\"'}
      corrector: {run: 'return \"good\"', language: lua}
  - name: tell
    run: return state.reflection_output or 'not reflected on'
    language: lua
";
    lua(file, &[])
        .stdout("not reflected on\n")
        .stderr_lacks("reflecting")
        .run();
    lua(file, &["--reflect", "write"])
        .stdout("good\n")
        .stderr_has("node write: reflecting (manual: requested by the user)")
        .run();
    lua(file, &["--reflect", "wirte"])
        .code(2)
        .stderr_has("unknown node `wirte`")
        .stderr_has("did you mean `write`?")
        .run();
    lua(file, &["--reflect", "tell"])
        .code(2)
        .stderr_has("the node `tell` has no `reflection` with the trigger `manual`")
        .stderr_has("triggers: [manual]")
        .run();
}

#[test]
fn state_names_have_defaults_unless_they_are_set() {
    let file = "\
state_schema:
  who: {type: str, default: you}
  times: {type: int, default: 2}
variables: {times: 3}
nodes: [{name: a, uses: state.set, with: {said: '{{ state.who }} {{ state.times }}'}}]
";
    lua(file, &[]).stdout("you 3\n").run();
    lua(file, &["--input", "{\"who\": \"me\"}"])
        .stdout("me 3\n")
        .run();
    lua(&file.replace("default: 2", "default: two"), &["--check"])
        .code(2)
        .stderr_has("`default`: expected a whole number")
        .stderr_has("w.yaml:3:31")
        .run();
    let undefined = "nodes: [{name: a, uses: state.set, with: {x: 'On {{ state.missing[0] }}'}}]";
    lua(undefined, &[])
        .code(2)
        .stderr_has("`state.missing[0]` is undefined")
        .stderr_has("w.yaml:1:53")
        .run();
}

#[test]
fn each_trigger_reflects_only_on_what_it_names() {
    let file = "\
reflection:
  evaluator: {type: custom, language: lua, run: 'return output ~= \"bad\"'}
  corrector: {run: 'return \"good\"', language: lua}
  TRIGGER
nodes:
  - {name: one, run: 'return {score = 0.9, x = 1}', language: lua}
  - {name: two, uses: state.set, with: {y: bad}}
  - {name: three, run: 'return {score = 0.2, z = \"bad\"}', language: lua}
";
    for (trigger, said) in [
        (
            "reflect_on_tools: [state.set]",
            "node two: reflecting (tool_result: `two` returned a result)",
        ),
        (
            "reflect_on_tools: [three]",
            "node three: reflecting (tool_result: `three` returned a result)",
        ),
        (
            "quality_drop_threshold: 0.5",
            "node three: reflecting (quality_drop: the score fell from 0.90 to 0.20)",
        ),
        (
            "triggers: [completion]",
            "node three: reflecting (completion: all steps ended)",
        ),
        (
            "reflection_interval: 2",
            "node two: reflecting (step_interval: step 2 ended)",
        ),
    ] {
        let ran = lua(&file.replace("TRIGGER", trigger), &[])
            .stderr_has(said)
            .run();
        assert_eq!(
            ran.stderr.matches("reflecting (").count(),
            1,
            "{}",
            ran.stderr
        );
    }
    // Which node is the last may depend on its result, under the name of its output.
    let edges = "
edges:
  - {from: one, to: two, when: state.first.x == 1}
  - {from: one, to: __end__}
  - {from: two, to: three}
";
    let file_with_edges = file.replace("x = 1}', ", "x = 1}', output: first, ") + edges;
    let completion = file_with_edges.replace("TRIGGER", "triggers: [completion]");
    let ran = lua(&completion, &[]).run();
    assert_eq!(
        ran.stderr.matches("reflecting (").count(),
        1,
        "{}",
        ran.stderr
    );
    lua(&file.replace("TRIGGER", "quality_drop_threshold: 0.8"), &[])
        .stderr_lacks("reflecting (")
        .run();
    lua(
        &file.replace("TRIGGER", "triggers: [tool_result]"),
        &["--check"],
    )
    .code(2)
    .stderr_has("the trigger `tool_result` needs the key `reflect_on_tools`")
    .run();
}

#[test]
fn output_of_code_is_shown_but_not_part_of_the_result() {
    let file = "nodes: [{name: a, language: lua, run: \"print('one\\\\ntwo\\\\27[2J'); return 'answer'\"}]";
    lua(file, &[])
        .stdout("answer\n")
        .stderr_has("node a printed: one\nnode a printed: two^[[2J")
        .run();
    let ran = lua(file, &["--format", "ndjson", "-q"]).run();
    let print = ran
        .lines()
        .into_iter()
        .find(|event| event["event"] == "print");
    assert_eq!(print.expect("the event")["text"], "one\ntwo\u{1b}[2J\n");
    let fails = "nodes: [{name: a, language: lua, run: \"print('so far'); error('no', 0)\"}]";
    lua(fails, &[])
        .code(1)
        .stderr_has("node a printed: so far")
        .stderr_has("node `a`: the lua script failed in line 1: no\n")
        .run();
}

#[test]
fn exponential_growth_is_stopped() {
    let doubles = "\
variables: {x: 0123456789abcdef}
nodes:
  - {name: double, uses: state.set, with: {x: '{{ state.x ~ state.x }}'}, next: double}
";
    lua(doubles, &["-q"])
        .code(2)
        .stderr_has("the result is larger than 16 MiB")
        .stderr_has("w.yaml:3:")
        .run();
    let file = "nodes: [{name: a, uses: state.set, with: {y: '{{ state.big[:8000000] }}'}}]";
    Test::new()
        .file("w.yaml", file)
        .file(
            "big.json",
            json!({ "big": "x".repeat(60 << 20) }).to_string(),
        )
        .args(["run", "w.yaml", "--input", "@big.json"])
        .code(5)
        .stderr_has("the state is larger than 64 MiB; most of it is `big`")
        .run();
}

#[test]
fn excessive_numbers_and_nesting_are_errors() {
    let file = "nodes: [{name: a, language: lua, run: return 1}]";
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    Test::new()
        .file("w.yaml", file)
        .file("deep.json", deep)
        .args(["run", "w.yaml", "--input", "@deep.json"])
        .code(2)
        .stderr_has("`deep.json` is not JSON: recursion limit exceeded")
        .run();
    lua(file, &["--input", "{\"n\": 1e999}"])
        .code(2)
        .stderr_has("number out of range")
        .run();
    let nests = "\
nodes:
  - {name: nest, uses: state.set, with: {x: ['{{ state.x | default(0) }}']}, next: nest}
";
    lua(nests, &["-q"])
        .code(2)
        .stderr_has("nested too deeply")
        .run();
    let itself = "\
nodes:
  - name: draft
    uses: reflection.loop
    with:
      generator: {run: return state, language: lua}
      evaluator: {type: custom, language: lua, run: return false}
      max_iterations: 6
";
    let ran = lua(itself, &["--no-log"]).code(3).run();
    assert!(ran.stdout.len() < 1_000_000, "{}", ran.stdout.len());
}

/// In this order: the call itself, the state, the settings of the file.
#[test]
fn the_state_selects_the_judge() {
    let file = |model: &str| {
        format!(
            "
settings: {{llm: {{provider: openai, model: of-settings}}}}
nodes:
  - name: write
    uses: reflection.loop
    with:
      generator: {{run: return 'a text', language: lua}}
      evaluator: {{type: llm, prompt: 'Is it good?'{model}}}
      max_iterations: 1
  - name: judge
    uses: reflection.evaluate
    with: {{evaluator_type: llm, prompt: 'Is it?', data: a text{model}}}
"
        )
    };
    for (model, input, asked) in [
        ("", json!({}), "of-settings"),
        ("", json!({ "llm_model": "of-state" }), "of-state"),
        (", model: own", json!({ "llm_model": "of-state" }), "own"),
    ] {
        let server = Server::start();
        server.models(&[("of-settings", 8192), ("of-state", 8192), ("own", 8192)]);
        for _ in 0..2 {
            server.reply_text(r#"{"valid": true, "score": 1}"#);
        }
        run(&server, Protocol::OpenAi, &file(model))
            .env_remove("REFLECT_MODEL")
            .args(["--input", &input.to_string()])
            .run();
        let models: Vec<_> = server
            .chats()
            .iter()
            .map(|chat| chat.body["model"].clone())
            .collect();
        assert_eq!(models, [asked, asked], "{model}, {input}");
    }
}

/// Rounds of critique without a verdict. A variable sets their number, and the earlier answer is JSON whose
/// keys are used.
const ROUNDS: &str = r#"
variables: {model: gpt-4, rounds: 2}
nodes:
  - name: parse
    uses: llm.call
    with:
      model: "{{ variables.model }}"
      prompt: "As JSON: {{ state.job }}, {{ state.wishes | default([]) | tojson }}"
      response_format: {type: json_object}
    output: parsed
  - name: code
    uses: reason.self_correct
    with:
      task: "Write {{ state.job }}."
      generator_model: "{{ variables.model }}"
      improvement_rounds: "{{ variables.rounds }}"
      critic_prompt: "Is this right?\n{{ output }}\nMind {{ state.parsed.edges | tojson }}."
    output: code
  - name: tell
    uses: state.set
    with:
      told:
        code: "{{ state.code.output }}"
        rounds: "{{ state.code.rounds_completed }}"
        first: "{{ state.code.improvement_history[0].output }}"
        said: "{{ state.code.improvement_history | map(attribute='critique') | join('; ') }}"
"#;

#[test]
fn yaml_008_an_answer_is_improved_in_rounds() {
    let server = answering([
        Reply::text("{\"edges\": [\"0\"], \"content\": \"not this\"}"),
        Reply::text("draft one"),
        Reply::text("no case for 0"),
        Reply::text("draft two"),
        Reply::text("too long"),
        Reply::text("draft three"),
    ]);
    let ran = run(&server, Protocol::OpenAi, ROUNDS)
        .args(["--input", "{\"job\": \"fib\"}", "--format", "json"])
        .run();
    let state = &ran.json()["state"];
    assert_eq!(
        state["told"],
        json!({ "code": "draft three", "rounds": 2, "first": "draft one", "said": "no case for 0; too long" })
    );
    assert_eq!(
        state["parsed"]["content"],
        "{\"edges\": [\"0\"], \"content\": \"not this\"}"
    );
    let prompts: Vec<String> = server.chats().iter().map(Recorded::prompt).collect();
    assert_eq!(
        prompts[2],
        "Write fib.\ndraft one\nIs this right?\ndraft one\nMind [\"0\"]."
    );
    assert!(prompts[3].contains("no case for 0"), "{}", prompts[3]);
    assert!(!prompts[5].contains("draft one"), "{}", prompts[5]);
    for (rounds, said) in [
        ("-1", "from 0 to 100"),
        ("101", "from 0 to 100"),
        ("[]", "from 0 to 100"),
    ] {
        let file = ROUNDS.replace("\"{{ variables.rounds }}\"", rounds);
        lua(&file, &["--check"]).code(2).stderr_has(said).run();
    }
}

/// A node that calls a model, and a loop that does.
const ASKS: &str = r#"
nodes:
  - name: plan
    uses: llm.call
    with:
      prompt: "Plan a line."
  - name: grow
    uses: reflection.loop
    with:
      generator:
        uses: llm.call
        prompt: "Write a line."
      evaluator:
        type: llm
        prompt: "Is this a line? {{ state.reflection_output }}"
      max_iterations: 1
"#;

#[test]
fn verbose_output_describes_each_call() {
    let ask = |flag: &str| {
        let server = answering([
            Reply::text("A plan.").reasoning("Let me plan."),
            Reply::text("A line.").reasoning("Let me write."),
            Reply::text("{\"score\": 1, \"valid\": true}"),
        ]);
        run(&server, Protocol::OpenAi, ASKS)
            .arg(flag)
            .stdout("A line.\n")
            .run()
            .stderr
    };
    let all = |said: &str, wanted: &[&str], unwanted: &[&str]| {
        for text in wanted {
            assert!(said.contains(text), "no {text:?} in {said}");
        }
        for text in unwanted {
            assert!(!said.contains(text), "{text:?} in {said}");
        }
    };
    let figures = [
        "node plan: openai:test took ",
        "draft 1: openai:test took ",
        "120 tokens (100 of them the prompt)",
    ];
    all(&ask("--no-log"), &[], &figures);
    let said = ask("-v");
    all(&said, &figures, &["[user]", "Let me"]);
    // Of the writer and of the judge.
    assert_eq!(said.matches("draft 1: openai:test took ").count(), 2);
    let words = [
        "node plan: request to openai:test to write at http://127.0.0.1:",
        "[user]\n> Plan a line.",
        "[answer]\n< A plan.",
        "draft 1: request to openai:test to write at http://127.0.0.1:",
        "[user]\n> Write a line.",
        "[answer]\n< A line.",
        "> Is this a line? A line.",
    ];
    all(&ask("-vv"), &words, &[]);
    let reasoning = ["~ Let me plan.", "~ Let me write."];
    all(&ask("--show-reasoning"), &reasoning, &["[user]", " took "]);
}

/// An example of the whole language: `action` for the node, a schema, a corrector that receives the errors as
/// JSON, and all keys of the loop.
const PROFILE: &str = r#"
nodes:
  - name: make_a_profile
    action: reflection.loop
    with:
      generator:
        action: llm.call
        prompt: "Write JSON."
      evaluator:
        type: schema
        schema:
          type: object
          required: [name, email]
      corrector:
        action: llm.call
        prompt: |
          Fix this JSON:
          It was: {{ state.reflection_output }}
          It lacks: {{ state.reflection_errors | tojson }}
      max_iterations: 3
      on_failure: ON_FAILURE
"#;

#[test]
fn an_example_of_the_whole_language_runs() {
    let half = Reply::text("{\"name\": \"Ann\"}");
    let whole = Reply::text("{\"name\": \"Ann\", \"email\": \"ann@example.org\"}");
    let server = answering([half.clone(), whole]);
    let file = PROFILE.replace("ON_FAILURE", "return_best");
    let ran = run(&server, Protocol::OpenAi, &file).run();
    let profile: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(
        profile,
        json!({ "name": "Ann", "email": "ann@example.org" })
    );
    let prompt = server.chats()[1].prompt();
    assert!(prompt.contains("It was: {\"name\":\"Ann\"}"), "{prompt}");
    assert!(prompt.contains("\"keyword\":\"required\""), "{prompt}");

    for (on_failure, stdout) in [
        ("return_last", "{\n  \"name\": \"Ann\"\n}\n"),
        ("raise", ""),
    ] {
        let server = answering([half.clone(), half.clone(), half.clone()]);
        let file = PROFILE.replace("ON_FAILURE", on_failure);
        let ran = run(&server, Protocol::OpenAi, &file)
            .code(3)
            .stdout(stdout)
            .run();
        let raised = ran
            .stderr
            .contains("Reflection loop failed after 3 iterations");
        assert_eq!(raised, on_failure == "raise", "{}", ran.stderr);
        assert_eq!(server.calls(), 3);
    }
}

#[test]
fn the_draft_of_the_code_example_is_the_content_of_the_fence() {
    if !has("python3") {
        return;
    }
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/workflows/code.yaml");
    let file = std::fs::read_to_string(path).expect("an example");
    let server = answering([
        Reply::text("Sure!\n```python\ndef f(: pass\n```\n"),
        Reply::text("```py\ndef f(): pass\n```"),
    ]);
    run(&server, Protocol::OpenAi, &file)
        .args(["--allow-exec", "--input", "{\"task\": \"nothing\"}"])
        .stdout("def f(): pass\n")
        .run();
    let prompt = server.chats()[1].prompt();
    assert!(
        prompt.contains("SyntaxError") && !prompt.contains("Sure!"),
        "{prompt}"
    );
}
