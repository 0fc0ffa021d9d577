//! The `compare` evaluator with a judge that compares two texts.

use serde_json::{Value, json};

use crate::harness::Test;

const REFERENCE: &str = "Rain falls on the pond.";
const DRAFT: &str = "A frog leaps.";

const PAIRWISE: &str = "\
[[criteria]]
name = 'tone'
description = 'It is calm.'
evaluator = 'compare'
method = 'pairwise'
reference = 'Rain falls on the pond.'
";

/// Scripts the judge's reply when this text comes first.
fn choice(in_front: &str, better: &str, reason: &str) -> String {
    let answer = json!({ "reason": reason, "better": better });
    let front = json!(format!("<draft-a>\n{in_front}"));
    format!("[[reply]]\npurpose = 'judge'\ncontains = {front}\ntext = '''{answer}'''\n")
}

/// Scripts the judge's choices with the draft first and second.
fn choices(forth: &str, back: &str) -> String {
    choice(DRAFT, forth, "A is short.") + &choice(REFERENCE, back, "B is short.")
}

fn evaluate(criteria: &str, script: &str) -> Test {
    Test::new()
        .args(["evaluate", "draft.txt", "-c", "c.toml", "--format", "json"])
        .args(["--provider", "scripted:judge.toml"])
        .file("c.toml", criteria)
        .file("draft.txt", DRAFT)
        .file("judge.toml", script)
}

fn of(result: &Value) -> &Value {
    &result["evaluation"]["criteria"][0]
}

#[test]
fn a_draft_as_good_as_the_reference_passes() {
    for (forth, back, score, words) in [
        ("A", "B", 1.0, "better than the reference text."),
        (
            "A",
            "A",
            0.8,
            "neither better nor worse than the reference text.",
        ),
        (
            "tie",
            "B",
            0.8,
            "neither better nor worse than the reference text.",
        ),
    ] {
        let result = evaluate(PAIRWISE, &choices(forth, back)).run().json();
        assert_eq!(of(&result)["score"], score);
        assert_eq!(of(&result)["passed"], true);
        assert_eq!(result["success"], true);
        assert_eq!(result["evaluation"]["issues"], json!([]));
        assert_eq!(result["total_llm_calls"], 2);
        let evidence = of(&result)["evidence"].as_str().unwrap_or_default();
        assert!(evidence.starts_with(words), "{evidence}");
        assert!(evidence.contains("draft as A: A is short. With the draft as B: B is short."));
    }
}

#[test]
fn a_lost_comparison_is_an_issue_with_the_judges_reason() {
    let ran = evaluate(PAIRWISE, &choices("B", "A")).code(3).run();
    let result = ran.json();
    assert_eq!(of(&result)["score"], 0.0);
    let issue = &result["evaluation"]["issues"][0];
    assert_eq!(issue["severity"], "major");
    assert_eq!(issue["criterion"], "tone");
    let fix = issue["suggested_fix"].as_str().unwrap_or_default();
    assert!(fix.contains("A is short."), "{issue}");
    // The verdict is cached: the script has no other reply.
    let again = ran
        .then(["evaluate", "draft.txt", "-c", "c.toml", "--format", "json"])
        .args(["--provider", "scripted:judge.toml"])
        .file("judge.toml", "")
        .code(3)
        .run()
        .json();
    assert_eq!(of(&again)["cached"], true);
    assert_eq!(of(&again)["score"], 0.0);
}

/// A threshold above a tie requires a better draft.
#[test]
fn a_tie_fails_a_threshold_above_it() {
    let criteria = format!("{PAIRWISE}threshold = 1\n");
    let result = evaluate(&criteria, &choices("A", "A")).code(3).run().json();
    assert_eq!(of(&result)["passed"], false);
    assert_eq!(result["evaluation"]["issues"][0]["criterion"], "tone");
}

#[test]
fn an_unparseable_reply_is_not_a_tie() {
    let script = "[[reply]]\ntext = 'I like both.'\ntimes = 0\n";
    let result = evaluate(PAIRWISE, script).code(6).run().json();
    assert_eq!(of(&result)["status"], "unparsed");
    assert_eq!(of(&result)["score"], Value::Null);
}

/// Hard checks come first. If a required one fails, the judge is not called.
#[test]
fn the_judge_is_skipped_if_a_required_check_fails() {
    let criteria = format!(
        "{PAIRWISE}[[criteria]]\nname = 'long'\nevaluator = 'length'\nmin = 9\nrequired = true\n"
    );
    let result = evaluate(&criteria, "").code(3).run().json();
    assert_eq!(of(&result)["status"], "skipped");
    assert_eq!(result["total_llm_calls"], 0);
}

/// A first draft has no earlier version; a revision that the judge prefers is better.
#[test]
fn a_revision_is_compared_with_its_predecessor() {
    let script = format!(
        "[[reply]]\npurpose = 'write'\ntext = '{DRAFT}'\n\
         [[reply]]\npurpose = 'write'\ntext = '{REFERENCE}'\n{}{}",
        choice(REFERENCE, "A", "A has water in it."),
        choice(DRAFT, "B", "B has water in it.")
    );
    let result = Test::new()
        .args(["draft", "Write a line.", "-c", "c.toml", "--format", "json"])
        .args(["--provider", "scripted:script.toml"])
        .file(
            "c.toml",
            "[[criteria]]\nname = 'kept'\nevaluator = 'compare'\nmethod = 'pairwise'\nwith = 'prior'\n\
             [[criteria]]\nname = 'long'\nevaluator = 'length'\nmin = 5\n",
        )
        .file("script.toml", script)
        .run()
        .json();
    let seen: Vec<&str> = result["history"]["versions"]
        .as_array()
        .expect("versions")
        .iter()
        .filter_map(|version| of(version)["evidence"].as_str())
        .collect();
    assert_eq!(
        seen,
        [
            "there is no version before to compare with",
            "better than the version before. With the draft as A: A has water in it. With the draft as B: \
             B has water in it.",
        ]
    );
}

#[test]
fn a_comparison_has_no_min_or_max() {
    Test::new()
        .args(["criteria", "check", "c.toml"])
        .file("c.toml", format!("{PAIRWISE}min = 0.5\n"))
        .code(2)
        .stdout("")
        .stderr_has("c.toml:7:7")
        .stderr_has("`min` is not allowed with the method `pairwise`")
        .stderr_has("hint: remove it")
        .run();
}
