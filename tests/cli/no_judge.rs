//! `--no-judge`: checks evaluate drafts, and criteria for a judge stay unevaluated.

use crate::harness::Test;

const MIXED: &str = "name = 'mixed'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nunit = 'words'\nmax = 5\n\
                     [[criteria]]\nname = 'clarity'\ndescription = 'It is clear.'\n";
const JUDGED: &str =
    "name = 'judged'\n[[criteria]]\nname = 'clarity'\ndescription = 'It is clear.'\n";

/// A script of these drafts and no verdict: asking the judge fails the run.
fn script(drafts: &[&str]) -> String {
    let reply = |draft: &&str| format!("[[reply]]\npurpose = 'write'\ntext = '{draft}'\n");
    drafts.iter().map(reply).collect()
}

fn draft(criteria: &str, drafts: &[&str]) -> Test {
    Test::new()
        .file("criteria.toml", criteria)
        .file("script.toml", script(drafts))
        .args(["draft", "Write about the pond.", "-c", "criteria.toml"])
        .args(["--no-judge", "--provider", "scripted:script.toml"])
}

#[test]
fn the_loop_continues_until_the_checks_are_met_and_says_what_is_unevaluated() {
    let ran = draft(
        MIXED,
        &["The pond is old and very deep.", "The pond is old."],
    )
    .code(3)
    .stdout("The pond is old.\n")
    .run();
    assert!(
        ran.stderr
            .contains("criteria not met: `clarity` not evaluated"),
        "{}",
        ran.stderr
    );
}

#[test]
fn criteria_for_a_judge_alone_take_one_draft() {
    let ran = draft(JUDGED, &["The pond is old."])
        .args(["--format", "json"])
        .code(3)
        .run();
    let result = ran.json();
    assert_eq!(result["output"], "The pond is old.");
    assert_eq!(result["success"], false);
    assert_eq!(result["total_llm_calls"], 1);
    let criterion = &result["best_evaluation"]["criteria"][0];
    assert_eq!(criterion["status"], "skipped", "{criterion}");
    assert!(result["best_evaluation"]["overall_score"].is_null());
}

#[test]
fn a_gate_does_not_open_without_the_judge_that_its_criteria_need() {
    for (criteria, shown) in [(MIXED, "short"), (JUDGED, "clarity")] {
        let ran = Test::new()
            .file("criteria.toml", criteria)
            .file("text.txt", "The pond is old.")
            .args(["evaluate", "text.txt", "-c", "criteria.toml", "--no-judge"])
            .code(3)
            .run();
        assert!(ran.stdout.contains(shown), "{}", ran.stdout);
    }
    let hard = MIXED.split("[[criteria]]\nname = 'clarity'").next();
    Test::new()
        .file("criteria.toml", hard.unwrap_or_default())
        .file("text.txt", "The pond is old.")
        .args(["evaluate", "text.txt", "-c", "criteria.toml", "--no-judge"])
        .run();
}
