//! When the loop stops, which draft it keeps, and what it returns.

use serde_json::{Value, json};

use crate::harness::{Ran, Test, drafts_of};

const CLEAR: &str = "[[criteria]]\nname = 'clear'\ndescription = 'It is clear.'\n";
/// A draft's score is a hundredth of its word count.
const WORDS: &str =
    "[[criteria]]\nname = 'length'\nevaluator = 'length'\nmin = 100\nthreshold = 0.8\n";

/// Returns this many words that only this text contains.
fn words(tag: &str, count: usize) -> String {
    let words: Vec<String> = (0..count).map(|n| format!("{tag}{n}")).collect();
    words.join(" ")
}

fn reply(purpose: &str, text: &str) -> String {
    format!("[[reply]]\npurpose = \"{purpose}\"\ntext = '''{text}'''\n")
}

fn verdict(step: u8, issues: &[&str]) -> String {
    let issues: Vec<Value> = issues
        .iter()
        .map(|text| json!({"type": "incorrect", "severity": "major", "criterion": "clear", "description": text}))
        .collect();
    json!({"scores": {"clear": {"reason": "As it reads.", "score": step}}, "issues": issues, "confidence": 0.8})
        .to_string()
}

/// Creates a script with these drafts, and verdicts with these scale steps and no issues.
fn script(drafts: &[&str], steps: &[u8]) -> String {
    drafts
        .iter()
        .map(|draft| reply("write", draft))
        .chain(
            steps
                .iter()
                .map(|step| reply("judge", &verdict(*step, &[]))),
        )
        .collect()
}

fn draft(criteria: &str, script: impl AsRef<[u8]>) -> Test {
    Test::new()
        .args([
            "draft",
            "Write a line.",
            "-c",
            "criteria.toml",
            "--provider",
            "scripted:script.toml",
            // Confirming a narrow pass has its own test.
            "--judge-confirm",
            "0",
        ])
        .file("criteria.toml", criteria)
        .file("script.toml", script)
}

/// Two drafts without an improvement end a run.
const PATIENCE: [&str; 2] = ["--plateau-iterations", "2"];
const TEXTS: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

/// Runs to the end with these scale steps. Returns the reason and the number of drafts.
fn stopped(steps: &[u8], args: &[&str]) -> (String, usize, Ran) {
    let good = steps.last().is_some_and(|step| *step >= 4);
    let ran = draft(CLEAR, script(&TEXTS, steps))
        .args(args)
        .args(["--format", "json"])
        .code(if good { 0 } else { 3 })
        .run();
    let result = ran.json();
    let reason = result["convergence_reason"]
        .as_str()
        .expect("a reason")
        .to_owned();
    (reason, drafts_of(&result).len(), ran)
}

#[test]
fn each_rule_stops_the_run_and_is_named() {
    let fixed = ["-n", "9", "--adapt", "false"];
    let with = |more: &[&'static str]| [&fixed[..], more].concat();
    for (steps, args, reason, drafts) in [
        (&[3, 3, 3][..], with(&PATIENCE), "plateau", 3),
        (
            &[3, 3, 3, 3],
            with(&["--plateau-iterations", "3"]),
            "plateau",
            4,
        ),
        (&[2, 3, 2, 3], with(&PATIENCE), "oscillation", 4),
        (&[3, 2, 3, 2], with(&[]), "oscillation", 4),
        (
            &[2, 3, 2, 3],
            with(&[&PATIENCE[..], &["--detect-oscillation", "false"]].concat()),
            "plateau",
            4,
        ),
        (&[3], vec!["-n", "1"], "max_iterations", 1),
        (&[2, 3], vec!["-n", "2"], "max_iterations", 2),
        (&[2, 3, 4], with(&[]), "quality_met", 3),
        (
            &[5, 3, 4],
            with(&["--min-iterations", "3"]),
            "quality_met",
            3,
        ),
    ] {
        let (stop, made, _) = stopped(steps, &args);
        assert_eq!(
            (stop.as_str(), made),
            (reason, drafts),
            "{steps:?} {args:?}"
        );
    }
}

#[test]
fn a_series_of_small_gains_stops_the_run() {
    let drafts = [50, 52, 54].map(|count| reply("write", &words("w", count)));
    let run = |args: &[&str]| {
        draft(WORDS, drafts.concat())
            .args(["--format", "json", "--adapt", "false"])
            .args(PATIENCE)
            .args(args)
            .code(3)
            .run()
            .json()
    };
    assert_eq!(run(&["-n", "9"])["convergence_reason"], "diminishing");
    let result = run(&["-n", "3", "--improvement-threshold", "0.01"]);
    assert_eq!(result["convergence_reason"], "max_iterations");
}

#[test]
fn a_plateau_of_equal_texts_or_issues_has_its_own_reason() {
    // A text is not judged twice.
    let same = script(&["the same text"; 3], &[3]);
    let args = ["-n", "9", "--adapt", "false", "--format", "json"];
    let run = |script: String| {
        let test = draft(CLEAR, script).args(args).args(PATIENCE);
        let result = test.code(3).run().json();
        assert_eq!(drafts_of(&result).len(), 3);
        result["convergence_reason"].clone()
    };
    assert_eq!(run(same), "stable");
    let issue = verdict(3, &["The opening buries the point."]);
    let again = verdict(3, &["The opening is too long and hides the point."]);
    let script = [
        reply("write", "one"),
        reply("write", "two"),
        reply("write", "three"),
        reply("judge", &issue),
        reply("judge", &again),
        reply("judge", &again),
    ];
    assert_eq!(run(script.concat()), "repeated_issues");
}

#[test]
fn a_fresh_draft_follows_a_revision_that_did_not_help() {
    let (reason, drafts, ran) = stopped(&[3, 3, 4], &["-n", "9"]);
    assert_eq!((reason.as_str(), drafts), ("quality_met", 3));
    let said = "writing a fresh draft: 0 of 1 revisions helped";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let version = &ran.json()["history"]["versions"][2];
    assert_eq!(version["based_on"], Value::Null);
}

#[test]
fn with_hard_checks_only_the_second_draft_repeats_the_same_prompt() {
    let drafts = [50, 60, 55, 90].map(|count| reply("write", &words("w", count)));
    let ran = draft(WORDS, drafts.concat())
        .args(["--format", "json"])
        .stderr_has("writing a fresh draft: it costs less than a revision")
        .run();
    let bases: Vec<Value> = ran.json()["history"]["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["based_on"].clone())
        .collect();
    assert_eq!(bases, [Value::Null, Value::Null, Value::Null, json!(2)]);
}

#[test]
fn a_stronger_model_takes_over_as_the_last_step() {
    draft(CLEAR, script(&TEXTS, &[3, 3, 3, 5]))
        .args(["-n", "9", "--stronger-model", "scripted:strong.toml"])
        .args(PATIENCE)
        .file("strong.toml", reply("write", "the strong one"))
        .stdout("the strong one\n")
        .stderr_has("trying a stronger model")
        .run();
}

#[test]
fn issues_keep_their_ids_and_resolved_ones_are_counted() {
    let script = [
        reply("write", "one"),
        reply(
            "judge",
            &verdict(
                2,
                &["The opening buries the point.", "The dates are wrong."],
            ),
        ),
        reply("write", "two"),
        reply(
            "judge",
            &verdict(3, &["The dates in the text are still wrong."]),
        ),
    ];
    let ran = draft(CLEAR, script.concat())
        .args(["-n", "2", "--format", "ndjson"])
        .code(3)
        .run();
    let lines = ran.lines();
    let issues: Vec<&Value> = lines
        .iter()
        .filter(|line| line["event"] == "issues")
        .collect();
    let ids = |value: &Value| -> Vec<u64> {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|i| i["id"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(ids(&issues[0]["open"]), [1, 2]);
    assert_eq!(ids(&issues[1]["open"]), [2]);
    assert_eq!(ids(&issues[1]["resolved"]), [1]);
    let result = ran.history();
    assert_eq!(
        result["issues"],
        json!({"found": 2, "resolved": 1, "share_resolved": 0.5})
    );
    let applied = &result["history"]["versions"][1]["improvements_applied"];
    assert_eq!(applied, &json!(["The opening buries the point."]));
}

#[test]
fn a_revision_that_breaks_a_criterion_is_never_selected() {
    let criteria = format!(
        "{CLEAR}[[criteria]]\nname = 'no-todo'\nevaluator = 'regex'\npattern = 'TODO'\nexpect = 'absent'\nweight = 0.1\n"
    );
    let ran = draft(&criteria, script(&["one", "two TODO", "three"], &[2, 3, 2]))
        .args(["--format", "json", "-n", "3"])
        .code(3)
        .stderr_has("keeping draft 1 (")
        .stderr_has("breaks `no-todo`")
        .run();
    assert_eq!(ran.json()["output"], "one");
    assert_eq!(ran.json()["history"]["best_version"], 1);
}

#[test]
fn selection_and_on_failure_decide_what_is_returned() {
    for (args, output) in [
        (&["--select", "highest_score"][..], "one\n"),
        (&["--select", "latest"], "two\n"),
        (&["--select", "weighted_recency"], "one\n"),
        (&["--on-failure", "return_best"], "one\n"),
        (&["--on-failure", "return_last"], "two\n"),
        (&["--on-failure", "raise"], ""),
    ] {
        draft(CLEAR, script(&["one", "two"], &[3, 2]))
            .args(["-n", "2"])
            .args(args)
            .code(3)
            .stdout(output)
            .run();
    }
    let ran = draft(CLEAR, script(&["one", "two"], &[3, 2]))
        .args(["-n", "2", "--on-failure", "raise", "--format", "json"])
        .code(3)
        .run();
    assert_eq!(ran.json()["output"], Value::Null);
    assert_eq!(
        drafts_of(&ran.json()),
        ["one", "two"],
        "the history is complete"
    );
    // If the criteria are met, there is no error to raise.
    draft(CLEAR, script(&["one"], &[4]))
        .args(["--on-failure", "raise"])
        .stdout("one\n")
        .run();
}

#[test]
fn a_failing_loop_still_returns_the_draft() {
    let broken = "[[reply]]\nerror = { class = 'unreachable', message = 'gone' }\n";
    let first = [reply("write", "one"), broken.to_owned()];
    draft(CLEAR, first.concat())
        .code(4)
        .stdout("one\n")
        .stderr_has("warning: draft 1 is printed without an evaluation")
        .stderr_has("gone")
        .run();
    let later = [script(&["one"], &[3]), broken.to_owned()];
    draft(CLEAR, later.concat())
        .code(4)
        .stdout("one\n")
        .stderr_has("warning: the run did not finish; printing draft 1, the best so far")
        .run();
}

#[test]
fn contradictory_settings_are_rejected_before_any_call() {
    // The script is empty: a model call would fail in another way.
    draft(CLEAR, "")
        .args(["-n", "2", "--min-iterations", "3"])
        .code(2)
        .stderr_has("`min_iterations` (3) is greater than `max_iterations` (2)")
        .run();
    draft(
        &format!("[loop]\nmax_iterations = 2\nmin_iterations = 3\n{CLEAR}"),
        "",
    )
    .code(2)
    .stderr_has("criteria.toml:3:")
    .stderr_has("`min_iterations` (3) is greater than `max_iterations` (2)")
    .run();
    draft(&format!("[loop]\nmin_iterations = 3\n{CLEAR}"), "")
        .args(["-n", "2"])
        .code(2)
        .stderr_has("--max-iterations")
        .stderr_has("`min_iterations` comes from criteria `criteria`")
        .run();
    for (flag, value) in [
        ("--tie-margin", "2"),
        ("--improvement-threshold", "-1"),
        ("--min-iterations", "0"),
        ("--adapt", "perhaps"),
        ("--on-failure", "cry"),
        ("--select", "worst"),
    ] {
        draft(CLEAR, "")
            .arg(format!("{flag}={value}"))
            .code(2)
            .stderr_has(flag)
            .run();
    }
}

#[test]
fn a_perfect_first_score_triggers_a_judge_probe() {
    let criteria: Vec<String> = ["a", "b", "c"]
        .iter()
        .map(|name| format!("[[criteria]]\nname = '{name}'\ndescription = 'It is {name}.'\n"))
        .collect();
    let criteria = criteria.concat();
    let scores: serde_json::Map<String, Value> = ["a", "b", "c"]
        .iter()
        .map(|name| {
            (
                (*name).to_owned(),
                json!({"reason": "Perfect.", "score": 5}),
            )
        })
        .collect();
    let verdict = json!({"scores": scores, "issues": [], "confidence": 1}).to_string();
    let script = [reply("write", "one"), reply("judge", &verdict)];
    draft(&criteria, script.concat())
        .stdout("one\n")
        .stderr_has("warning: the judge gave the first draft full scores")
        .stderr_has("hint: add hard checks")
        .run();
}

#[test]
fn a_judge_that_rejects_a_planted_good_text_is_reported() {
    let criteria = format!(
        "{CLEAR}[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 9\n\
         [judge]\nprobe = true\n[probe]\ngood = 'GOOD'\nbad = 'BAD'\n"
    );
    let judge = |more: &str, step| {
        let text = verdict(step, &[]);
        format!("[[reply]]\npurpose = 'judge'\n{more}\ntimes = 0\ntext = '''{text}'''\n")
    };
    let script = |good: u8| {
        let drafts = TEXTS.map(|text| reply("write", text)).concat();
        let bad = judge("contains = \"<draft>\\nBAD\"", 1);
        let good = judge("contains = \"<draft>\\nGOOD\"", good);
        format!("{drafts}{bad}{good}{}", judge("", 3))
    };
    let says = "the judge may be too strict: a planted good text has the score 0.60";
    draft(&criteria, script(3))
        .args(["-n", "2"])
        .code(3)
        .stdout("one\n")
        .stderr_has(says)
        .run();
    // A judge that can be satisfied may be right.
    draft(&criteria, script(5))
        .args(["-n", "2"])
        .code(3)
        .stderr_lacks("never satisfied")
        .run();
}
