//! `reflect run`: workflows from the command line.

use serde_json::{Value, json};

use crate::harness::Test;
use crate::script::has;

/// A loop in Lua whose second attempt passes.
const LOOP: &str = "\
name: grow
nodes:
  - name: grow
    uses: reflection.loop
    with:
      generator:
        run: return string.rep('x', state.reflection_iteration * 5)
        language: lua
      evaluator:
        type: custom
        language: lua
        run: |
          return { valid = #output >= state.least, score = math.min(1, #output / state.least),
            errors = { { message = 'too short' } } }
      max_iterations: 2
      on_failure: ON_FAILURE
";

fn grow(least: u32, on_failure: &str) -> Test {
    Test::new()
        .file("grow.yaml", LOOP.replace("ON_FAILURE", on_failure))
        .args([
            "run",
            "grow.yaml",
            "--input",
            &json!({ "least": least }).to_string(),
        ])
}

/// A run with these replies of a scripted model, in order.
fn scripted(file: &str, text: &str, input: &Value, replies: &str) -> Test {
    Test::new()
        .file(file, text)
        .file("script.toml", replies)
        .args(["run", file, "--provider", "scripted:script.toml"])
        .args(["--input", &input.to_string()])
}

#[test]
fn the_result_of_a_loop_is_the_value_parsed_by_the_schema() {
    let file = "\
name: w
nodes:
  - name: age
    uses: reflection.loop
    with:
      generator: { run: \"return { age = '42' }\", language: lua }
      evaluator:
        type: schema
        schema: { type: object, properties: { age: { type: integer } } }
";
    let ran = Test::new()
        .file("w.yaml", file)
        .args(["run", "w.yaml", "--format", "json"])
        .run();
    assert_eq!(ran.json()["state"]["reflection_output"]["age"], 42);
    assert_eq!(ran.json()["state"]["age"], 42);
    // Without a schema, it is unchanged.
    let file = "\
name: w
nodes:
  - name: say
    uses: reflection.loop
    with:
      generator: { run: return 'a text', language: lua }
      evaluator: { type: schema }
";
    Test::new()
        .file("w.yaml", file)
        .args(["run", "w.yaml"])
        .stdout("a text\n")
        .run();
}

#[test]
fn a_command_check_of_a_loop_receives_the_content_of_a_fence() {
    let file = "\
name: w
nodes:
  - name: script
    uses: reflection.loop
    with:
      generator: { action: llm.call, prompt: A script. }
      evaluator: { type: command, command: [sh, -e, '{draft_file}'] }
      max_iterations: 1
";
    scripted(
        "w.yaml",
        file,
        &json!({}),
        "[[reply]]\ntext = \"```sh\\nexit 0\\n```\"\n",
    )
    .arg("--allow-exec")
    .run();
}

#[test]
fn the_last_draft_is_printed_and_the_exit_code_shows_whether_it_passes() {
    grow(10, "return_best").stdout("xxxxxxxxxx\n").run();
    grow(99, "return_best").code(3).stdout("xxxxxxxxxx\n").run();
    grow(99, "return_best")
        .arg("--exit-zero")
        .stdout("xxxxxxxxxx\n")
        .run();
    grow(99, "raise")
        .code(3)
        .stdout("")
        .stderr_has("node `grow`: Reflection loop failed after 2 iterations")
        .stderr_has("attempt 1: score 0.05: too short")
        .run();
    grow(10, "return_best")
        .args(["--fail-on-state", "reflection_iteration=2"])
        .code(3)
        .stderr_has("reflection_iteration=2")
        .run();
}

#[test]
fn json_contains_the_whole_state_and_events_end_with_one_run_end() {
    let ran = grow(10, "return_best").args(["--format", "json"]).run();
    let result = ran.json();
    assert_eq!(result["success"], true);
    assert_eq!(result["output"], "xxxxxxxxxx");
    assert_eq!(
        result["state"]["reflection_history"][0]["errors"][0]["message"],
        "too short"
    );
    assert_eq!(result["state"]["least"], 10);
    assert_eq!(result["nodes"][0]["node"], "grow");

    let ran = grow(99, "raise").args(["--format", "ndjson"]).code(3).run();
    let events: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let ends = events
        .iter()
        .filter(|event| event["event"] == "run_end")
        .count();
    assert_eq!(ends, 1);
    assert_eq!(events[0]["event"], "workflow_start");
    assert_eq!(events.last().expect("events")["exit_code"], 3);
    assert!(
        events
            .iter()
            .any(|event| event["event"] == "evaluation" && event["node"] == "grow")
    );

    let ran = Test::new()
        .args(["run", "none.yaml", "--format", "ndjson"])
        .code(2)
        .run();
    assert!(ran.stdout.contains("\"run_end\""), "{}", ran.stdout);
}

#[test]
fn code_needs_permission_and_the_error_names_the_node_and_the_flag() {
    let text = "nodes:\n  - name: danger\n    run: |\n      import os\n      return os.getcwd()\n";
    Test::new()
        .file("w.yaml", text)
        .args(["run", "w.yaml"])
        .code(2)
        .stdout("")
        .stderr_has("the node `danger` runs this python code")
        .stderr_has("import os")
        .stderr_has("--allow-exec")
        .run();
    Test::new()
        .file("w.yaml", text)
        .args(["run", "w.yaml", "--dry-run"])
        .stdout(
            "workflow\nnode danger: run\nruns python code on this machine: node danger, line 4\n",
        )
        .run();
    if has("python3") {
        let file = "nodes:\n  - name: greet\n    run: |\n      return {'said': 'hello ' + who}\n";
        Test::new()
            .file("w.yaml", file)
            .args([
                "run",
                "w.yaml",
                "--allow-exec",
                "--input",
                "{\"who\": \"you\"}",
            ])
            .stdout("{\n  \"said\": \"hello you\"\n}\n")
            .run();
    }
}

#[test]
#[cfg(unix)]
fn commands_receive_values_as_arguments_and_on_stdin() {
    let text = "nodes:\n  - name: upper\n    uses: command\n    with:\n      command: [tr, a-z, \"{{ state.to }}\"]\n      stdin: \"{{ state.text }}\"\n";
    Test::new()
        .file("w.yaml", text)
        .args([
            "run",
            "w.yaml",
            "--allow-exec",
            "--input",
            "{\"text\": \"abc\", \"to\": \"A-Z\"}",
        ])
        .stdout("ABC\n")
        .run();
    let fails = "nodes:\n  - name: stop\n    shell: echo no >&2; exit 4\n";
    Test::new()
        .file("w.yaml", fails)
        .args(["run", "w.yaml", "--allow-exec"])
        .code(1)
        .stderr_has("node `stop`")
        .stderr_has("ended with exit code 4: no")
        .run();
}

#[test]
#[cfg(unix)]
fn an_evaluator_command_runs_in_the_folder_that_the_file_sets() {
    let text = "\
nodes:
  - name: draft
    uses: reflection.loop
    with:
      generator: {run: return 'x', language: lua}
      evaluator: {type: command, command: [test, -f, marker], cwd: data}
      max_iterations: 1
";
    Test::new()
        .file("sub/w.yaml", text)
        .file("sub/data/marker", "")
        .args(["run", "sub/w.yaml", "--allow-exec"])
        .stdout("x\n")
        .run();
}

#[test]
fn a_file_is_checked_without_running_and_errors_show_their_position() {
    grow(1, "return_best")
        .arg("--check")
        .stdout("grow.yaml: ok\n")
        .run();
    grow(1, "return_bset")
        .arg("--check")
        .code(2)
        .stderr_has("did you mean `return_best`?")
        .stderr_has("grow.yaml:16:19")
        .run();
    let text = "nodes:\n  - name: ask\n    uses: llm.call\n    with:\n      prompt: |\n        Hello\n        {{ state.who }}\n";
    scripted("w.yaml", text, &json!({}), "")
        .code(2)
        .stderr_has("`state.who` is undefined")
        .stderr_has("w.yaml:7:12")
        .run();
    let typed = "state_schema: {n: int}\nnodes: [{name: a, run: return 1, language: lua}]\n";
    Test::new()
        .file("w.yaml", typed)
        .args(["run", "w.yaml", "--input", "{\"n\": \"x\"}"])
        .code(2)
        .stderr_has("a whole number is required")
        .run();
    Test::new()
        .file("w.yaml", typed)
        .args(["run", "w.yaml", "--input", "[1]"])
        .code(2)
        .stderr_has("not a JSON object")
        .run();
}

#[test]
fn a_failing_model_ends_the_run_with_the_state_so_far() {
    let text = "nodes:\n  - name: ask\n    uses: llm.call\n    with: {prompt: Hello}\n";
    scripted(
        "w.yaml",
        text,
        &json!({}),
        "[[reply]]\ntext = 'Good day.'\n",
    )
    .stdout("Good day.\n")
    .run();
    let failing = "[[reply]]\nerror = { class = 'auth', message = 'who are you' }\n";
    scripted("w.yaml", text, &json!({}), failing)
        .code(4)
        .stdout("")
        .stderr_has("who are you")
        .run();
}

#[test]
fn triggers_select_the_steps_to_reflect_on() {
    let text = "\
reflection:
  reflection_interval: 2
  evaluator: {type: custom, language: lua, run: 'return output ~= \"bad\"'}
  corrector: {run: 'return \"good\"', language: lua}
nodes:
  - {name: one, run: 'return \"bad\"', language: lua, output: one}
  - {name: two, run: 'return \"bad\"', language: lua, output: two}
  - {name: three, run: 'return {same = state.one, other = state.two.reflection_output}', language: lua}
";
    let ran = Test::new()
        .file("w.yaml", text)
        .args(["run", "w.yaml", "--format", "json"])
        .stderr_has("reflecting (step_interval: step 2 ended)")
        .run();
    assert_eq!(
        ran.json()["output"],
        json!({ "same": "bad", "other": "good" })
    );

    let text = "\
nodes:
  - name: fragile
    run: |
      if not state.fixed then error('not yet') end
      return 'done'
    language: lua
    reflection:
      reflect_on_error: true
      evaluator: {type: custom, language: lua, run: 'return output == \"done\"'}
      corrector: {run: 'return {fixed = true}', language: lua}
";
    Test::new()
        .file("w.yaml", text)
        .args(["run", "w.yaml"])
        .stdout("done\n")
        .stderr_has("reflecting (error: ")
        .run();
}

fn example(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/workflows");
    std::fs::read_to_string(path.join(name)).expect("an example")
}

#[test]
fn the_json_example_is_fixed_by_the_model() {
    let replies = "\
[[reply]]
text = 'Sure: {\"name\": \"Alice\", \"email\": \"alice\", \"age\": 30, \"role\": \"dev\"}'
[[reply]]
contains = 'at \"/email\"'
text = '{\"name\": \"Alice\", \"email\": \"alice@example.org\", \"age\": 30, \"role\": \"dev\"}'
";
    let input = json!({ "request": "Alice" });
    let ran = scripted("profile.yaml", &example("profile.yaml"), &input, replies).run();
    let profile: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(profile["email"], "alice@example.org");
}

#[test]
fn the_code_example_is_compiled() {
    if !has("python3") {
        return;
    }
    let replies = "\
[[reply]]
text = 'def f(: pass'
[[reply]]
contains = 'SyntaxError'
text = 'def f(): pass'
";
    let input = json!({ "task": "nothing" });
    scripted("code.yaml", &example("code.yaml"), &input, replies)
        .arg("--allow-exec")
        .stdout("def f(): pass\n")
        .run();
}

#[test]
fn the_judge_example_returns_the_verdict() {
    let replies = "\
[[reply]]
purpose = 'write'
text = 'A wave.'
[[reply]]
purpose = 'judge'
text = '{\"valid\": true, \"score\": 0.5, \"reason\": \"thin\"}'
[[reply]]
purpose = 'write'
contains = 'Issues of the last one'
text = 'A wave under the moon.'
[[reply]]
purpose = 'judge'
contains = 'under the moon'
text = '{\"valid\": true, \"score\": 0.8, \"reason\": \"good\"}'
";
    let input = json!({ "topic": "the sea" });
    let ran = scripted("judge.yaml", &example("judge.yaml"), &input, replies).run();
    let told: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(told["poem"], "A wave under the moon.");
    assert_eq!(
        (told["reason"].as_str(), told["attempts"].as_u64()),
        (Some("good"), Some(2))
    );
}

#[test]
fn the_article_example_runs_in_several_steps() {
    let long = "word ".repeat(45);
    let replies = format!(
        "[[reply]]\ntext = '1. a'\n[[reply]]\ncontains = '1. a'\ntext = 'Too short.'\n\
         [[reply]]\ncontains = 'It has 2 words'\ntext = '{long}'\n[[reply]]\ntext = 'A Title'\n"
    );
    let input = json!({ "topic": "compilers" });
    let ran = scripted("article.yaml", &example("article.yaml"), &input, &replies)
        .args(["--format", "json"])
        .run();
    let text = ran.json()["state"]["text"]
        .as_str()
        .expect("a text")
        .to_owned();
    assert!(text.starts_with("# A Title\n\nword word"), "{text}");
    let replies = "[[reply]]\ntimes = 0\ntext = 'short'\n";
    scripted("article.yaml", &example("article.yaml"), &input, replies)
        .code(3)
        .stdout("There is no article about compilers yet.\n")
        .run();
}
