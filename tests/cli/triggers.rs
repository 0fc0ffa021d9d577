//! What makes the loop reflect, besides the verdict on every version: what is asked, and who is told.

use serde_json::{Value, json};

use crate::harness::{Ran, Test};

const CLEAR: &str = "[[criteria]]\nname = 'clear'\ndescription = 'It is clear.'\n";

fn reply(purpose: &str, text: &str) -> String {
    format!("[[reply]]\npurpose = \"{purpose}\"\ntext = '''{text}'''\n")
}

/// A reply of the writer's to a prompt that contains this.
fn told(of: &str, text: &str) -> String {
    format!("[[reply]]\npurpose = 'write'\ncontains = '''{of}'''\ntext = '''{text}'''\n")
}

/// A verdict with this step of the scale, and an issue with these words.
fn judged(step: u8, issue: &str) -> String {
    let issues = if step < 4 {
        json!([{"type": "incorrect", "severity": "major", "criterion": "clear", "description": issue}])
    } else {
        json!([])
    };
    let verdict = json!({"scores": {"clear": {"reason": "As it reads.", "score": step}}, "issues": issues, "confidence": 0.8});
    reply("judge", &verdict.to_string())
}

fn draft(script: &[String]) -> Test {
    Test::new()
        .args([
            "draft",
            "Write a line.",
            "-c",
            "criteria.toml",
            "--provider",
            "scripted:script.toml",
            "--format",
            "ndjson",
        ])
        .file("criteria.toml", CLEAR)
        .file("script.toml", script.concat())
}

/// The reflections of a run: which trigger, and what was said.
fn reflections(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let lines = ran.lines();
    let said = lines.iter().filter(|line| line["event"] == "reflection");
    said.map(|line| (text(&line["trigger"]), text(&line["text"])))
        .collect()
}

fn calls(ran: &Ran) -> usize {
    let lines = ran.lines();
    lines.iter().filter(|line| line["event"] == "call").count()
}

const ADVICE: &str = "The roof was lost; keep it.";

/// A run in which the second version is worse, and the third is good.
fn falling(between: &[String]) -> Vec<String> {
    let before = [
        reply("write", "one with a roof"),
        judged(3, "The roof leaks."),
        reply("write", "two with nothing"),
        judged(1, "Nobody knows what this is about."),
    ];
    let after = [judged(5, "")];
    [&before, between, &after].concat()
}

#[test]
fn a_drop_is_reflected_on_and_the_next_revision_is_told() {
    let script = falling(&[
        told("two with nothing", ADVICE),
        told(ADVICE, "three with a roof"),
    ]);
    let ran = draft(&script)
        .args(["--quality-drop-threshold", "0.1"])
        .run();
    let said = [("quality_drop".to_owned(), ADVICE.to_owned())];
    assert_eq!(reflections(&ran), said);
    assert_eq!(calls(&ran), 7);
    assert_eq!(ran.drafts()[2], "three with a roof");
    assert!(
        ran.stderr.contains("is well below version 1's"),
        "{}",
        ran.stderr
    );
    let result = ran.history();
    assert_eq!(result["reflections"][0]["text"], ADVICE);
    assert_eq!(result["history"]["versions"][2]["based_on"], 1);
}

#[test]
fn a_drop_is_not_reflected_on_unless_that_is_asked_for() {
    let script = falling(&[reply("write", "three with a roof")]);
    for args in [
        &[][..],
        &["--quality-drop-threshold", "0"],
        // It fell by 0.6.
        &["--quality-drop-threshold", "0.7"],
    ] {
        let ran = draft(&script).args(args).run();
        assert_eq!(reflections(&ran), []);
        assert_eq!(calls(&ran), 6);
        assert_eq!(ran.history().get("reflections"), None);
    }
    draft(&script)
        .args(["--quality-drop-threshold", "2"])
        .code(2)
        .stderr_has("from 0 to 1")
        .run();
    draft(&script)
        .file(
            "criteria.toml",
            format!("[loop]\nquality_drop_threshold = 2\n{CLEAR}"),
        )
        .code(2)
        .stderr_has("`quality_drop_threshold` must be a number from 0 to 1")
        .run();
}

/// The loop goes on as it would have without.
#[test]
fn a_reflection_of_no_use_is_not_used() {
    let none = "contains = 'worse-draft'\n";
    for (of_no_use, warned) in [
        ("text = ''", false),
        ("text = 'Nothing.'", false),
        ("text = 'The roof'\nend = 'length'", false),
        (
            "error = { class = 'context_too_long', message = 'far too long' }",
            true,
        ),
    ] {
        let between = [
            format!("[[reply]]\npurpose = 'write'\n{none}{of_no_use}\n"),
            reply("write", "three with a roof"),
        ];
        let ran = draft(&falling(&between))
            .args(["--quality-drop-threshold", "0.1"])
            .run();
        assert_eq!(reflections(&ran), [], "{of_no_use}");
        assert_eq!(calls(&ran), 7, "{of_no_use}");
        let warnings = ran.history()["warnings"].to_string();
        assert_eq!(
            warnings.contains("without a reflection"),
            warned,
            "{warnings}"
        );
    }
}

#[test]
fn where_nobody_answers_nobody_reflects() {
    let script = falling(&[
        "[[reply]]\npurpose = 'write'\nerror = { class = 'auth', message = 'wrong key' }\n"
            .to_owned(),
    ]);
    let ran = draft(&script)
        .args(["--quality-drop-threshold", "0.1"])
        .code(4)
        .stderr_has("wrong key")
        .run();
    assert_eq!(ran.drafts().len(), 2);
}

const REFUSAL: &str = "I'm sorry, but I can't help with that.";

#[test]
fn a_failed_revision_is_reflected_on_and_made_again() {
    let script = [
        reply("write", "one with a roof"),
        judged(3, "The roof leaks."),
        reply("write", REFUSAL),
        told("It could not be used: the model refused", ADVICE),
        told(ADVICE, "two with a roof"),
        judged(5, ""),
    ];
    let ran = draft(&script).args(["--reflect-on-error", "-n", "2"]).run();
    let said = [("error".to_owned(), ADVICE.to_owned())];
    assert_eq!(reflections(&ran), said);
    assert_eq!(ran.drafts(), ["one with a roof", "two with a roof"]);
    // Without it the attempt is lost.
    let script = [
        reply("write", "one with a roof"),
        judged(3, "The roof leaks."),
        reply("write", REFUSAL),
    ];
    for args in [&[][..], &["--reflect-on-error=false"]] {
        let ran = draft(&script).args(args).args(["-n", "2"]).code(3).run();
        assert_eq!(calls(&ran), 3);
    }
}

#[test]
fn a_first_draft_that_fails_twice_is_reflected_on_before_it_is_given_up() {
    let failing = |third: &str| {
        [
            reply("write", REFUSAL),
            told("The last reply was a refusal", REFUSAL),
            told("It could not be used: the model refused", ADVICE),
            told(ADVICE, third),
            judged(5, ""),
        ]
    };
    let config = format!("[loop]\nreflect_on_error = true\n{CLEAR}");
    let ran = draft(&failing("one with a roof"))
        .file("criteria.toml", &config)
        .run();
    assert_eq!(reflections(&ran).len(), 1);
    assert_eq!(ran.drafts(), ["one with a roof"]);
    let ran = draft(&failing(REFUSAL))
        .file("criteria.toml", &config)
        .code(4)
        .stderr_has("no usable draft")
        .run();
    assert_eq!(calls(&ran), 4);
    // Without it two replies are all.
    let ran = draft(&failing("one with a roof")).code(4).run();
    assert_eq!(calls(&ran), 2);
}

/// What went wrong with a server is not the writer's to mend.
#[test]
fn a_failed_call_is_not_reflected_on() {
    for class in ["auth", "quota", "unreachable"] {
        let script = [format!(
            "[[reply]]\nerror = {{ class = '{class}', message = 'out of order' }}\n"
        )];
        let ran = draft(&script).arg("--reflect-on-error").code(4).run();
        assert_eq!(calls(&ran), 1, "{class}");
        assert_eq!(reflections(&ran), []);
    }
}

#[test]
fn a_reflection_counts_towards_the_token_limit() {
    let advice = format!(
        "[[reply]]\npurpose = 'write'\ntext = '{ADVICE}'\nusage = {{ prompt = 90000, completion = 10000 }}\n"
    );
    let ran = draft(&falling(&[advice]))
        .args([
            "--quality-drop-threshold",
            "0.1",
            "--max-total-tokens",
            "99999",
        ])
        .code(5)
        .run();
    assert_eq!(ran.drafts().len(), 2);
    assert_eq!(reflections(&ran).len(), 1);
}
