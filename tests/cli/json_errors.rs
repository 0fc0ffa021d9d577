//! Errors where JSON is to be printed: one object on stdout, for every command.

use serde_json::{Value, json};

use crate::harness::Test;

/// The object on stdout, which has these keys and no others.
#[track_caller]
fn error(test: Test, code: i32) -> Value {
    let ran = test.code(code).run();
    let mut object = ran.json();
    assert_eq!(object["schema_version"], 1);
    assert_eq!(object["exit_code"], code);
    assert_eq!(object.as_object().expect("an object").len(), 3, "{object}");
    let message = object["error"]["message"].as_str().expect("a message");
    let first = message.lines().next().unwrap_or_default();
    assert!(ran.stderr.contains(first), "{message} {}", ran.stderr);
    object["error"].take()
}

#[test]
fn every_command_with_json_prints_its_error_as_one_object() {
    for line in [
        "draft x -c missing.toml --json",
        "draft x -c missing.toml --format json",
        "revise missing.md -c missing.toml --format=json",
        "evaluate missing.md -c missing.toml --json",
        "run missing.yaml --json",
        "assess missing.json --json",
        "history show 7f3a91c2 --json",
        "history list --since never --json",
        "history resume 7f3a91c2 --json",
        "criteria show missing.toml --json",
        "criteria list --json --config missing.toml",
        "models list --provider nobody --json",
        "bench judge missing.jsonl -c missing.toml --json",
    ] {
        let error = error(Test::new().args(line.split(' ')), 2);
        assert!(error.get("hint").is_some(), "{line}: {error}");
    }
}

#[test]
fn an_error_in_a_file_has_its_position() {
    let wrong = || {
        Test::new()
            .args(["evaluate", "a.md", "--json", "-c", "c.toml"])
            .file("a.md", "A text.")
            .file("c.toml", "name = 'c'\nwieght = 2\n")
    };
    let error = error(wrong(), 2);
    assert_eq!(error["message"], "unknown key `wieght`");
    assert!(error["hint"].as_str().unwrap().starts_with("known keys: "));
    assert_eq!(error["location"]["line"], 2);
    assert_eq!(error["location"]["column"], 1);
    assert!(
        error["location"]["file"]
            .as_str()
            .unwrap()
            .ends_with("c.toml")
    );
    // People see the place as before.
    wrong().code(2).stderr_has("--> c.toml:2:1").run();
}

#[test]
fn a_wrong_command_line_is_an_error_like_any_other() {
    let error = |args: &[&str]| error(Test::new().args(args), 2);
    assert_eq!(
        error(&["draft", "x", "--json", "--tempature", "1"]),
        json!({
            "message": "unexpected argument '--tempature' found",
            "hint": "a similar argument exists: '--temperature'",
        })
    );
    let missing = error(&["criteria", "show", "--format", "json"]);
    assert_eq!(missing["hint"], Value::Null);
    // What is behind `--` is no flag.
    Test::new()
        .args(["draft", "x", "--", "y", "--json"])
        .code(2)
        .stdout("")
        .run();
}

/// The result is already one object.
#[test]
#[cfg(target_os = "linux")]
fn an_error_after_the_result_adds_nothing_to_stdout() {
    let ran = Test::new()
        .args(["evaluate", "a.md", "--json", "-c", "c.toml"])
        .args(["--report", "/dev/full"])
        .file("a.md", "A text.")
        .file(
            "c.toml",
            "[[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 5\n",
        )
        .code(1)
        .stderr_has("cannot write `/dev/full`")
        .run();
    assert_eq!(ran.json()["success"], true);
}
