//! `reflect evaluate`: one report per text, and the exit code of the worst.

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

/// A judge that always gives the same scale step.
fn judge(step: u8) -> String {
    let verdict = json!({
        "scores": { "clear": { "reason": "It says what it says.", "score": step } },
        "issues": [],
        "confidence": 0.9
    });
    format!("[[reply]]\ntext = '''{verdict}'''\ntimes = 0\n")
}

#[test]
fn a_good_text_passes_and_a_bad_one_fails_with_position_and_fix() {
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

/// Hard checks need no model, so none is chosen or contacted.
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
fn stdin_is_evaluated_without_a_file_or_with_a_dash() {
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
fn each_text_has_a_report_and_the_worst_decides_the_exit_code() {
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
fn the_judge_is_called_once_and_skipped_if_a_required_check_fails() {
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
fn an_unparseable_verdict_is_neither_a_pass_nor_a_zero() {
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
fn a_report_is_written_in_addition_to_the_output() {
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
fn evaluations_are_in_the_history() {
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
fn wrong_input_is_found_before_any_evaluation() {
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
