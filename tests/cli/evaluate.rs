//! `reflect evaluate`: one report for each text, and the exit code of the worst.

use serde_json::{Value, json};

use crate::harness::Test;

const SHORT: &str =
    "name = 'short'\n[[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 5\n";

const CLEAR: &str = "name = 'clear'\n[[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 5\n\
                     required = true\n[[criteria]]\nname = 'clear'\ndescription = 'It is clear.'\n";

const GOOD: &str = "One two three.\n";
const LONG: &str = "One two three four five six seven.\n";

fn evaluate() -> Test {
    Test::new()
        .arg("evaluate")
        .file("short.toml", SHORT)
        .file("clear.toml", CLEAR)
        .file("good.txt", GOOD)
        .file("long.txt", LONG)
}

/// A judge that gives the same step of the scale again and again.
fn judge(step: u8) -> String {
    let verdict = json!({
        "scores": { "clear": { "reason": "It says what it says.", "score": step } },
        "issues": [],
        "confidence": 0.9
    });
    format!("[[reply]]\ntext = '''{verdict}'''\ntimes = 0\n")
}

#[test]
fn a_good_text_passes_and_a_bad_one_fails_with_the_place_and_the_fix() {
    evaluate()
        .args(["good.txt", "-c", "short.toml"])
        .stdout("good.txt: meets the criteria, score 1.00\n  ✓ length  1.00  3 words\n")
        .run();
    evaluate()
        .args(["long.txt", "-c", "short.toml"])
        .code(3)
        .stdout(
            "long.txt: does not meet the criteria, score 0.71; not met: `length`, 1 major issue\n\
             \x20 ✗ length  0.71  7 words\n\
             \x20 - major, incorrect: the text has 7 words, at most 5 are allowed [length]\n\
             \x20   fix: cut at least 2 words\n",
        )
        .run();
}

/// Hard checks ask nobody: no model is chosen, none is looked for.
#[test]
fn hard_checks_open_no_model() {
    let ran = evaluate()
        .args(["good.txt", "-c", "short.toml", "--format", "json"])
        .stderr_lacks("judge:")
        .stderr_lacks("model:")
        .run();
    let result = ran.json();
    assert_eq!(result["models"], json!({ "writer": null, "judge": null }));
    assert_eq!(result["total_llm_calls"], 0);
    assert_eq!(result["token_usage"]["total"], Value::Null);
}

#[test]
fn standard_input_is_judged_without_a_name_or_by_a_dash() {
    for args in [&["-c", "short.toml"][..], &["-", "-c", "short.toml"]] {
        let ran = evaluate()
            .args(args)
            .arg("--format")
            .arg("json")
            .stdin(LONG)
            .code(3)
            .run();
        assert_eq!(ran.json()["file"], Value::Null);
        assert_eq!(ran.json()["success"], false);
    }
}

#[test]
fn several_texts_have_a_report_each_and_the_exit_code_of_the_worst() {
    let ran = evaluate()
        .args([
            "good.txt",
            "long.txt",
            "-c",
            "short.toml",
            "--format",
            "json",
        ])
        .code(3)
        .run();
    let results = ran.json();
    let successes: Vec<_> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|result| (result["file"].clone(), result["success"].clone()))
        .collect();
    assert_eq!(
        successes,
        [
            (json!("good.txt"), json!(true)),
            (json!("long.txt"), json!(false))
        ]
    );
    evaluate()
        .args(["good.txt", "long.txt", "-c", "short.toml", "--exit-zero"])
        .run();
}

#[test]
fn the_judge_is_asked_once_and_not_where_something_required_is_missing() {
    let ran = evaluate()
        .args(["good.txt", "-c", "clear.toml", "--format", "json"])
        .args(["--provider", "scripted:judge.toml"])
        .file("judge.toml", judge(4))
        .stderr_has("judge: scripted:judge.toml, from --provider")
        .run();
    assert_eq!(ran.json()["total_llm_calls"], 1);
    assert_eq!(ran.json()["evaluation"]["criteria_scores"]["clear"], 0.85);
    let skipped = evaluate()
        .args(["long.txt", "-c", "clear.toml", "--format", "json"])
        .args(["--provider", "scripted:judge.toml"])
        .file("judge.toml", judge(5))
        .code(3)
        .run();
    let result = skipped.json();
    assert_eq!(result["total_llm_calls"], 0);
    assert_eq!(result["evaluation"]["criteria"][1]["status"], "skipped");
    assert_eq!(
        result["evaluation"]["criteria_scores"]["clear"],
        Value::Null
    );
}

#[test]
fn a_verdict_that_cannot_be_read_is_neither_a_pass_nor_a_zero() {
    evaluate()
        .args(["good.txt", "-c", "clear.toml"])
        .args(["--provider", "scripted:judge.toml"])
        .file("judge.toml", "[[reply]]\ntext = 'Hm.'\ntimes = 0\n")
        .code(6)
        .stderr_has("the judge's reply could not be used")
        .stdout(
            "good.txt: could not be judged for some criteria; the others score 1.00\n\x20 ✓ length  1.00  3 words\n\x20 ? clear   unparsed  the judge's reply could not be used: it holds no complete JSON object: Hm.\n",
        )
        .run();
}

#[test]
fn events_end_with_one_run_end_for_each_text() {
    let ran = evaluate()
        .args([
            "good.txt",
            "long.txt",
            "-c",
            "short.toml",
            "--format",
            "ndjson",
        ])
        .code(3)
        .run();
    let events: Vec<String> = ran
        .lines()
        .iter()
        .map(|line| line["event"].as_str().unwrap().to_owned())
        .collect();
    let one = ["run_start", "draft", "phase", "evaluation", "run_end"];
    assert_eq!(events, [one, one].concat());
    let wrong = evaluate()
        .args(["nothing.txt", "-c", "short.toml", "--format", "ndjson"])
        .code(2)
        .run();
    assert_eq!(wrong.lines()[0]["event"], "run_end");
}

#[test]
fn a_report_is_written_beside_the_answer() {
    let ran = evaluate()
        .args([
            "long.txt",
            "-c",
            "short.toml",
            "--report",
            "report.md",
            "-o",
            "out.txt",
        ])
        .code(3)
        .stdout("")
        .run();
    assert!(ran.read("out.txt").starts_with("long.txt: does not meet"));
    let report = ran.read("report.md");
    assert!(
        report.starts_with("## long.txt: does not meet the criteria"),
        "{report}"
    );
    assert!(
        report.contains("| length | 0.71 | 1.00 | ✗ | 7 words |"),
        "{report}"
    );
}

#[test]
fn what_is_judged_is_in_the_history() {
    let ran = evaluate()
        .args(["long.txt", "-c", "short.toml"])
        .code(3)
        .run();
    let list = ran.then(["history", "list"]).run();
    let said = &list.stdout;
    assert!(
        said.contains("not_met") && said.contains("long.txt"),
        "{said}"
    );
    let none = evaluate()
        .args(["good.txt", "-c", "short.toml", "--no-log"])
        .run();
    none.then(["history", "list"])
        .stderr_has("no runs yet")
        .run();
}

#[test]
fn what_is_wrong_is_found_before_anything_is_judged() {
    evaluate()
        .args(["good.txt", "missing.txt", "-c", "short.toml"])
        .code(2)
        .stdout("")
        .stderr_has("missing.txt")
        .run();
    evaluate()
        .args(["empty.txt", "-c", "short.toml"])
        .file("empty.txt", " \n")
        .code(2)
        .stderr_has("`empty.txt` is empty; there is nothing to judge")
        .run();
    evaluate()
        .args(["binary.bin", "-c", "short.toml"])
        .file("binary.bin", b"\xff\xfe\x00")
        .code(2)
        .stderr_has("is not UTF-8 text")
        .run();
    evaluate()
        .args(["-", "-", "-c", "short.toml"])
        .stdin(GOOD)
        .code(2)
        .stderr_has("stdin can be evaluated only once")
        .run();
}

#[test]
fn critique_is_the_same_command() {
    Test::new()
        .args(["critique", "good.txt", "-c", "short.toml"])
        .file("short.toml", SHORT)
        .file("good.txt", GOOD)
        .stdout("good.txt: meets the criteria, score 1.00\n  ✓ length  1.00  3 words\n")
        .run();
}
