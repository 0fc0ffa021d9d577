//! The `script` evaluator: what scripts see and return, and what a failing script means.

use serde_json::{Value, json};

use crate::harness::{KEY, Ran, Test};
use crate::plan::{answering, draft};
use crate::support::server::{Protocol, Purpose, Reply};

/// A criteria file with one script as a multi-line string.
fn criteria(keys: &str, code: &str) -> String {
    format!(
        "name = 'scripted'\n[[criteria]]\nname = 'script'\nevaluator = 'script'\n{keys}\ncode = '''\n{code}\n'''\n"
    )
}

fn evaluate(text: &str, criteria: impl AsRef<[u8]>) -> Test {
    Test::new()
        .args(["evaluate", "text.txt", "-c", "criteria.toml"])
        .file("text.txt", text)
        .file("criteria.toml", criteria)
}

fn lua(text: &str, code: &str) -> Test {
    evaluate(text, criteria("description = 'As the script says.'", code))
}

fn result(ran: &Ran) -> Value {
    ran.json()["evaluation"]["criteria"][0].clone()
}

/// Whether a program is installed. If not, prints a message, or fails if all tests are required.
pub(crate) fn has(program: &str) -> bool {
    let there = std::process::Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    let required = std::env::var_os("REFLECT_TEST_REQUIRE_ALL").is_some_and(|v| v == "1");
    assert!(there || !required, "`{program}` is required and missing");
    if !there {
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), "SKIPPED: `{program}` is not installed");
    }
    there
}

/// In output, return values and errors; the harness searches everything for the key.
#[test]
fn known_keys_are_redacted_in_the_output_of_scripts() {
    for (language, code, exit) in [
        (
            "lua",
            "local key = 'sk-reflect-test-' .. '7f3a9c5e1b2d4860'\nprint(key)\nreturn { valid = false, errors = { key } }",
            3,
        ),
        ("lua", "error('sk-reflect-test-' .. '7f3a9c5e1b2d4860')", 6),
        (
            "python",
            "key = 'sk-reflect-test-' + '7f3a9c5e1b2d4860'\nprint(key)\nreturn {'valid': False, 'errors': [key]}",
            3,
        ),
    ] {
        if language == "python" && !has("python3") {
            continue;
        }
        let ran = evaluate("short", criteria(&format!("language = '{language}'"), code))
            .args(["--allow-exec", "--format", "json"])
            .env("MY_TOKEN", KEY)
            .code(exit)
            .run();
        let shown = ran.json()["evaluation"].to_string();
        assert!(shown.contains("[key]"), "{code}: {shown}");
    }
}

#[test]
fn lua_needs_no_permission_and_its_verdict_is_the_report() {
    lua("short", "return #output < 10")
        .stdout("text.txt: meets the criteria, score 1.00\n  ✓ script  1.00  valid\n")
        .run();
    let code = "return { score = 0.5, errors = { { message = 'too long', line = 1, suggestion = 'cut it' }, 'dull' } }";
    lua("a long text", code)
        .code(3)
        .stdout(
            "text.txt: does not meet the criteria, score 0.50; not met: `script`, 2 major issues\n\
             \x20 ✗ script  0.50  score 0.5\n\
             \x20 - major, incorrect: too long [script]\n\
             \x20   fix: cut it\n\
             \x20 - major, incorrect: dull [script]\n",
        )
        .run();
}

#[test]
fn a_score_has_a_lower_default_threshold_than_hard_checks() {
    for (score, code) in [("0.69", 3), ("0.8", 0)] {
        let ran = lua("x", &format!("return {score}"))
            .args(["--format", "json"])
            .code(code)
            .run();
        assert_eq!(result(&ran)["threshold"], 0.7);
        assert_eq!(result(&ran)["passed"], code == 0);
    }
    let ran = lua("x", "return 7").args(["--format", "json"]).run();
    assert_eq!(result(&ran)["score"], 1.0);
    let evidence = "score 7, taken as 1: scores go from 0 to 1";
    assert_eq!(result(&ran)["evidence"], evidence);
}

#[test]
fn a_severe_error_fails_the_draft_but_a_minor_one_does_not() {
    for (severity, code) in [("critical", 3), ("minor", 0)] {
        let script = format!(
            "return {{ valid = true, score = 1, errors = {{ {{ message = 'm', severity = '{severity}' }} }} }}"
        );
        let ran = lua("x", &script)
            .args(["--format", "json"])
            .code(code)
            .run();
        let evaluation = &ran.json()["evaluation"];
        assert_eq!(evaluation["issues"][0]["severity"], severity);
        assert_eq!(evaluation["criteria"][0]["passed"], code == 0);
    }
}

#[test]
fn a_json_draft_is_available_as_a_value_and_as_text() {
    let code = "return type(output) == 'string' and state.data.name == 'Ada' \
                and state.reflection_output.name == 'Ada' and json.decode(output).name == 'Ada'";
    lua("{\"name\": \"Ada\"}\n", code).run();
    lua(
        "```json\n{\"name\": \"Ada\"}\n```\n",
        "return state.data.name == 'Ada'",
    )
    .run();
    lua(
        "Ada\n",
        "return state.data == nil and state.reflection_output == output",
    )
    .run();
}

#[test]
fn a_script_sees_more_than_the_draft() {
    let code = "return state.iteration == 1 and state.prompt == 'Say hello.' and #state.history == 0 \
                and state.criteria[1].name == 'script' and state.criteria[1].threshold == 0.7";
    lua("hello", code).args(["--prompt", "Say hello."]).run();
}

#[test]
fn a_script_that_fails_is_neither_a_pass_nor_a_zero() {
    for (code, said) in [
        (
            "local x = 1\nreturn x + nil",
            "the lua script failed in line 2: ",
        ),
        ("return = 1", "the lua script failed in line 1: "),
        ("error('kaput')", "kaput"),
        (
            "return 'splendid'",
            "gave no verdict: the text `splendid` is not a verdict",
        ),
        ("return function() end", "the lua script failed"),
    ] {
        let ran = lua("x", code)
            .args(["--format", "json"])
            .code(6)
            .stderr_has("the criterion `script` could not be checked: ")
            .stderr_has(said)
            .run();
        assert_eq!(ran.json()["evaluation"]["status"], "failed");
        assert_eq!(result(&ran)["status"], "failed");
        assert_eq!(result(&ran)["score"], Value::Null);
        assert_eq!(ran.json()["evaluation"]["overall_score"], Value::Null);
    }
}

/// Even inside a single call that the interpreter cannot interrupt.
#[test]
fn an_endless_script_is_killed_at_its_time_limit() {
    for code in [
        "while true do end",
        "return string.find(string.rep('a', 100000), string.rep('a?', 100000) .. 'b') == nil",
    ] {
        let ran = evaluate("x", criteria("timeout = '500ms'", code))
            .code(6)
            .stderr_has("the lua script failed")
            .run();
        assert!(ran.took.as_secs() < 20, "{:?}", ran.took);
    }
    evaluate(
        "x",
        criteria("memory = '16MB'", "return #string.rep('x', 1 << 30) > 0"),
    )
    .code(6)
    .stderr_has("memory")
    .run();
}

#[test]
fn lua_has_no_access_to_the_system() {
    for code in [
        "os.execute('id')",
        "io.open('/etc/passwd')",
        "require('os')",
    ] {
        lua("x", code)
            .code(6)
            .stderr_has("attempt to ")
            .stderr_has("the lua script failed in line 1")
            .run();
    }
}

/// The reviser sees the script's errors, and the script sees earlier versions.
#[test]
fn in_the_loop_errors_reach_the_writer_and_history_reaches_the_script() {
    let code = "if state.iteration == 1 then\n\
                return { score = 0.25, errors = { 'the frog is missing' } }\n\
                end\n\
                local before = state.history[1]\n\
                return state.errors[1].message == 'the frog is missing' and before.output == 'The pond.'\n\
                and before.score == 0.25 and not before.valid and reflection_iteration == 2\n\
                and state.reflection_best == 'The pond.' and state.reflection_best_score == 0.25";
    let server = answering([Reply::text("The pond."), Reply::text("The frog.")]);
    let ran = draft(&server, Protocol::OpenAi)
        .file("criteria.toml", criteria("", code))
        .args(["--adapt", "false"])
        .stdout("The frog.\n")
        .run();
    assert_eq!(ran.drafts(), ["The pond.", "The frog."]);
    let asked = server.requests().last().unwrap().body.to_string();
    assert!(asked.contains("the frog is missing"), "{asked}");
}

/// No revision fixes a failing check, and no verdict of a judge outweighs it.
#[test]
fn in_the_loop_a_failing_script_ends_the_run() {
    let server = answering([Reply::text("The pond.")]);
    server.on(Purpose::Write, |_| Reply::text("Never asked for."));
    server.on(Purpose::Judge, |_| Reply::text("Never asked for."));
    let both = criteria("", "return state.nothing.at_all")
        + "[[criteria]]\nname = 'clear'\ndescription = 'It is clear.'\n";
    let ran = draft(&server, Protocol::OpenAi)
        .file("criteria.toml", both)
        .code(6)
        .stdout("The pond.\n")
        .stderr_has(
            "error: the criterion `script` could not be checked: the lua script failed in line 1",
        )
        .stderr_lacks("--judge-model")
        .run();
    assert_eq!(server.calls(), 1);
    let history = ran.history();
    assert_eq!(history["convergence_reason"], "judge_failed");
    assert_eq!(history["final_evaluation"]["status"], "failed");
    assert_eq!(
        history["final_evaluation"]["criteria"][1]["status"],
        "skipped"
    );
}

/// A script file, named by criteria in their own folder.
fn script_file(file: &str) -> Test {
    Test::new()
        .args(["evaluate", "text.txt", "-c", "set/c.toml"])
        .file("text.txt", "x")
        .file(
            "set/c.toml",
            format!("[[criteria]]\nname = 'x'\nevaluator = 'script'\nfile = '{file}'\n"),
        )
}

#[test]
fn a_script_may_be_a_file_next_to_the_criteria_and_is_recorded() {
    let ran = script_file("checks/long.lua")
        .file(
            "set/checks/long.lua",
            "return #output > 100 -- the log has this\n",
        )
        .args(["--format", "ndjson"])
        .code(3)
        .run();
    let start = &ran.lines()[0];
    assert_eq!(start["event"], "run_start");
    let criterion = &start["criteria"]["criteria"][0];
    assert_eq!(
        criterion["code"],
        "return #output > 100 -- the log has this\n"
    );
    assert_eq!(criterion["language"], "lua");
    assert_eq!(
        criterion["origin"],
        Value::Null,
        "no local path is recorded"
    );
}

#[test]
fn a_script_file_must_be_inside_the_folder() {
    let refused = |test: Test, said: &str| {
        test.code(2)
            .stderr_has("set/c.toml:4:8")
            .stderr_has(said)
            .run();
    };
    let outside = "is outside the folder of this file";
    let secret = |file: &str| script_file(file).file("secret.lua", "return true");
    refused(secret("../secret.lua"), outside);
    refused(secret("nothing.lua"), "no such file: `nothing.lua`");
    #[cfg(unix)]
    {
        refused(secret("/etc/passwd"), outside);
        let test = secret("link.lua");
        std::os::unix::fs::symlink(test.path("secret.lua"), test.path("set/link.lua"))
            .expect("a link");
        refused(test, outside);
    }
}

#[test]
fn errors_in_a_script_criterion_show_their_position() {
    for (keys, said) in [
        ("", "a script criterion needs `code` or `file`"),
        ("code = ' '", "this script is empty"),
        ("code = 'x'\nfile = 'y'", "either `code` or `file`"),
        ("code = 'x'\nlanguage = 'ruby'", "unknown value `ruby`"),
        (
            "code = 'x'\ntimeout = '1h'",
            "`timeout` must be at most 10m, not 1h",
        ),
        ("code = 'x'\ntimeout = '5'", "invalid duration"),
        (
            "code = 'x'\nmemory = '1MB'",
            "`memory` must be from 16MB to 4GB, not 1MB",
        ),
        ("code = 'x'\nmemory = 'much'", "invalid memory size"),
        ("code = 'x'\nrun = 'y'", "unknown key `run`"),
    ] {
        let text = format!("[[criteria]]\nname = 'x'\nevaluator = 'script'\n{keys}\n");
        evaluate("x", text)
            .code(2)
            .stderr_has("criteria.toml:")
            .stderr_has(said)
            .run();
    }
}

#[test]
fn python_scripts_return_verdicts() {
    if !has("python3") {
        return;
    }
    let code = "import json\ndata = json.loads(output)\nmissing = [k for k in ('name', 'email') if k not in data]\n\
                return {'score': 1 - len(missing) / 2, 'errors': [{'message': f'no {k}', 'type': 'missing'} for k in missing]}";
    let ran = evaluate("{\"name\": \"Ada\"}", criteria("language = 'python'", code))
        .args(["--allow-exec", "--format", "json"])
        .code(3)
        .run();
    let evaluation = &ran.json()["evaluation"];
    assert_eq!(evaluation["overall_score"], 0.5);
    assert_eq!(evaluation["issues"][0]["description"], "no email");
    assert_eq!(evaluation["issues"][0]["type"], "missing");
    assert_eq!(
        evaluation["criteria"][0]["value"]["errors"][0],
        json!({ "message": "no email", "type": "missing" })
    );
    evaluate("x", criteria("language = 'python'", "x = 1\nreturn x / 0"))
        .arg("--allow-exec")
        .code(6)
        .stderr_has("the python script failed in line 2")
        .run();
}

#[test]
fn prolog_scripts_return_verdicts() {
    if !has("swipl") {
        return;
    }
    let code = "output(Draft), string_length(Draft, Length), Length < 5.";
    for (text, code_of_exit) in [("abc", 0), ("abcdefgh", 3)] {
        evaluate(text, criteria("language = 'prolog'", code))
            .arg("--allow-exec")
            .code(code_of_exit)
            .run();
    }
    let feedback = "score(0.4), feedback('no rhyme').";
    evaluate("x", criteria("language = 'prolog'", feedback))
        .arg("--allow-exec")
        .code(3)
        .stdout("text.txt: does not meet the criteria, score 0.40; not met: `script`\n  ✗ script  0.40  score 0.4; no rhyme\n")
        .run();
}
