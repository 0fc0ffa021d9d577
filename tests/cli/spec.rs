//! `reflect evaluate --evaluator`: a single evaluator from a file, and its verdict.

use serde_json::json;

use crate::harness::Test;

const SPEC: &str = "type: schema\nschema:\n  type: object\n  required: [name, email]\n  properties:\n    name: {type: string, minLength: 1}\n    email: {type: string, pattern: '^[^@]+@[^@]+\\.[^@]+$'}\n    age: {type: integer}\n";

fn verdict() -> Test {
    Test::new()
        .args(["evaluate", "--evaluator", "spec.yaml"])
        .file("spec.yaml", SPEC)
}

#[test]
fn the_verdict_has_the_expected_form() {
    let ran = verdict()
        .args(["--format", "json"])
        .stdin("{\"name\": \"Ada\", \"email\": \"nope\", \"age\": \"x\"}")
        .code(3)
        .run();
    let verdict = ran.json();
    assert_eq!(verdict["success"], true, "it was judged");
    assert_eq!(verdict["valid"], false);
    assert_eq!(verdict["score"], 0.0, "a schema is met or not");
    assert_eq!(verdict["ranking_score"], 0.666_667);
    assert_eq!(verdict["status"], "ok");
    assert_eq!(verdict["evaluator"], "schema");
    assert_eq!(verdict["file"], json!(null));
    assert_eq!(verdict["schema_version"], 1);
    let errors = verdict["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 2);
    assert_eq!(errors[0]["path"], "/email");
    assert_eq!(errors[0]["keyword"], "pattern");
    assert_eq!(
        errors[1]["message"],
        "`/age` is \"x\", but an integer is required"
    );
    assert_eq!(verdict["suggestions"][1], "make `/age` an integer");
    assert_eq!(errors[1]["suggestion"], verdict["suggestions"][1]);
}

#[test]
fn a_valid_value_is_returned_as_parsed() {
    let ran = verdict()
        .args(["--format", "json"])
        .stdin("{\"name\": \"Ada\", \"email\": \"a@b.co\", \"age\": \"36\"}")
        .run();
    let verdict = ran.json();
    assert_eq!(verdict["valid"], true);
    assert_eq!(verdict["score"], 1.0);
    assert_eq!(verdict["errors"], json!([]));
    assert_eq!(verdict["value"]["age"], 36);
}

/// The suggestions of a passing verdict are not errors.
#[test]
fn suggestions_of_a_passing_verdict_appear_once() {
    for spec in [
        "type: llm\nprompt: Is it good?\n",
        "type: custom\nlanguage: lua\nrun: return { valid = true, score = 0.9, suggestions = { 'Cut it.' } }\n",
    ] {
        let said = r#"{"valid": true, "score": 0.9, "suggestions": ["Cut it."]}"#;
        let verdict = |format: &str| {
            verdict()
                .args(["--provider", "scripted:judge.toml", "--format", format])
                .file("spec.yaml", spec)
                .file("judge.toml", format!("[[reply]]\ntext = '{said}'\n"))
                .stdin("A text.")
                .run()
        };
        let json = verdict("json").json();
        assert_eq!(json["errors"], json!([]), "{spec}");
        assert_eq!(json["suggestions"], json!(["Cut it."]), "{spec}");
        let text = verdict("text").stdout;
        assert_eq!(text.matches("Cut it.").count(), 1, "{text}");
    }
}

#[test]
fn text_and_markdown_show_the_verdict() {
    let bad = "{\n\"name\": \"Ada\"\n}";
    verdict()
        .stdin(bad)
        .code(3)
        .stdout(
            "stdin: invalid, score 0.00 (0.67 for ranking)\n\
             \x20 1 error\n\
             \x20 - line 1: the property `email` is missing at the top level\n\
             \x20   fix: add the property `email` (a string) at the top level\n",
        )
        .run();
    verdict()
        .args(["--format", "markdown"])
        .stdin(bad)
        .code(3)
        .stdout(
            "## stdin: invalid, score 0.00 (0.67 for ranking)\n\n\
             1 error\n\n\
             ### Errors\n\n\
             - line 1: the property `email` is missing at the top level\n\
             \x20 - Fix: add the property `email` (a string) at the top level\n",
        )
        .run();
    verdict()
        .stdin("{\"name\": \"Ada\", \"email\": \"a@b.co\"}")
        .stdout("stdin: valid, score 1.00\n  valid\n")
        .run();
}

#[test]
fn events_and_reports_and_several_files_work_as_with_criteria() {
    let test = || {
        verdict()
            .file("good.json", "{\"name\": \"Ada\", \"email\": \"a@b.co\"}")
            .file("bad.json", "{}")
            .args(["good.json", "bad.json"])
            .code(3)
    };
    let lines = test().args(["--format", "ndjson"]).run().lines();
    assert_eq!(
        lines
            .iter()
            .filter(|line| line["event"] == "run_end")
            .count(),
        2
    );
    let verdicts = test().args(["--format", "json"]).run().json();
    assert_eq!(verdicts[0]["file"], "good.json");
    assert_eq!(verdicts[0]["valid"], true);
    assert_eq!(verdicts[1]["valid"], false);
    assert_eq!(verdicts[1]["errors"].as_array().unwrap().len(), 2);
    let ran = test().args(["--report", "report.json"]).run();
    let report: serde_json::Value = serde_json::from_str(&ran.read("report.json")).unwrap();
    assert!(report[1]["ranking_score"].as_f64().unwrap() < 1.0);
}

#[test]
fn a_schema_may_be_in_a_separate_file() {
    let test = |spec: &str| {
        Test::new()
            .args(["evaluate", "--evaluator", "specs/spec.json"])
            .file("specs/spec.json", spec)
            .file("specs/person.yaml", "$ref: age.json\n")
            .file("specs/age.json", "{\"type\": \"integer\"}")
    };
    test("{\"type\": \"schema\", \"schema\": \"person.yaml\"}")
        .stdin("\"7\"")
        .run();
    test("{\"type\": \"schema\", \"schema\": {\"$ref\": \"person.yaml\"}}")
        .stdin("[7]")
        .code(3)
        .run();
    test("{\"type\": \"schema\", \"schema\": {\"$ref\": \"none.yaml\"}}")
        .code(2)
        .stderr_has("the `$ref` `none.yaml` cannot be resolved")
        .stderr_has("specs/spec.json:1:39")
        .run();
}

#[test]
fn json_input_is_evaluated_by_its_value() {
    let test = |input: &str| {
        Test::new()
            .args([
                "evaluate",
                "--evaluator",
                "spec.toml",
                "--input-format",
                "json",
            ])
            .file(
                "spec.toml",
                "type = 'schema'\nschema = { type = 'string', maxLength = 3 }\n",
            )
            .stdin(input)
    };
    test("\"a\\nb\"").run();
    test("\"four\"").code(3).run();
    test("abc")
        .code(2)
        .stderr_has("stdin is not JSON")
        .stderr_has("hint: remove `--input-format json`")
        .run();
}

#[test]
fn unusable_evaluators_are_rejected_before_any_evaluation() {
    let test = |spec: &str| {
        Test::new()
            .args(["evaluate", "--evaluator", "spec.yaml"])
            .file("spec.yaml", spec)
            .stdin("{}")
            .code(2)
            .stdout("")
    };
    test("type: magic")
        .stderr_has("unknown evaluator type `magic`")
        .stderr_has("known types: `schema`, `llm` and `custom`")
        .run();
    test("type: schema\nschema: {type: strange}")
        .stderr_has("spec.yaml:2:16")
        .run();
    test("type: schema")
        .stderr_has("needs the key `schema`")
        .run();
    test("a: [").stderr_has("invalid YAML").run();
    verdict()
        .args(["-c", "writing"])
        .code(2)
        .stderr_has("cannot be used with")
        .run();
    Test::new()
        .args(["evaluate", "--evaluator", "none.yaml"])
        .stdin("{}")
        .code(2)
        .stderr_has("no such file")
        .run();
}
