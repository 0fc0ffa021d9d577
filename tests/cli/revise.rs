//! `reflect revise`: the loop from an existing text, and single corrections.

use serde_json::{Value, json};

use crate::harness::{Test, drafts_of};

const CLEAR: &str = "name = 'clear'\n[[criteria]]\nname = 'clear'\ndescription = 'It is clear.'\n";
const SHORT: &str =
    "name = 'short'\n[[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 5\n";

fn reply(purpose: &str, text: &str) -> String {
    format!("[[reply]]\npurpose = \"{purpose}\"\ntext = '''{text}'''\n")
}

fn judged(step: u8) -> String {
    let verdict = json!({"scores": {"clear": {"reason": "As it reads.", "score": step}}, "issues": [], "confidence": 0.8});
    reply("judge", &verdict.to_string())
}

/// A reply to a prompt that contains this.
fn asked(part: &str, text: &str) -> String {
    format!(
        "[[reply]]\npurpose = 'write'\ncontains = {}\ntext = '''{text}'''\n",
        toml::Value::String(part.to_owned())
    )
}

fn revise(script: &[String]) -> Test {
    Test::new()
        .args(["revise", "--provider", "scripted:script.toml"])
        .file("script.toml", script.concat())
        .file("clear.toml", CLEAR)
        .file("short.toml", SHORT)
}

#[test]
fn a_good_text_is_unchanged_and_the_writer_is_not_called() {
    let text = "  Ein Käfer\tlief.\r\n\r\n```\nx  \n```\n\n";
    let ran = revise(&[judged(5)])
        .args(["text.md", "-c", "clear.toml"])
        .file("text.md", text)
        .stdout(&format!("{}\n", text.trim_end_matches('\n')))
        .stderr_lacks("writing")
        .run();
    let result = ran.history();
    assert_eq!(result["convergence_reason"], "quality_met");
    assert_eq!(result["total_llm_calls"], 1);
    assert_eq!(drafts_of(&result), [text]);
    // With hard checks only, no model is called at all.
    let ran = revise(&[])
        .args(["text.md", "-c", "short.toml", "--format", "json"])
        .file("text.md", "One two three.")
        .run();
    assert_eq!(ran.json()["total_llm_calls"], 0);
    assert_eq!(ran.json()["output"], "One two three.");
}

#[test]
fn a_bad_text_is_revised_from_a_file_or_a_pipe() {
    let long = "One two three four five six seven.\n";
    let script = [asked(
        "One two three four five six seven.",
        "One two three four.",
    )];
    revise(&script)
        .args(["text.md", "-c", "short.toml", "--prompt", "Count."])
        .file("text.md", long)
        .stdout("One two three four.\n")
        .run();
    for args in [&["-c", "short.toml"][..], &["-", "-c", "short.toml"]] {
        revise(&script)
            .args(args)
            .stdin(long)
            .stdout("One two three four.\n")
            .run();
    }
    // In place.
    let ran = revise(&script)
        .args(["text.md", "-c", "short.toml", "-o", "text.md"])
        .file("text.md", long)
        .stdout("")
        .run();
    assert_eq!(ran.read("text.md"), "One two three four.\n");
    // With the alias of the command.
    Test::new()
        .args(["correct", "text.md", "-c", "short.toml"])
        .args(["--provider", "scripted:script.toml"])
        .file("script.toml", script.concat())
        .file("short.toml", SHORT)
        .file("text.md", long)
        .stdout("One two three four.\n")
        .run();
}

#[test]
fn the_prompt_contains_the_task_if_it_is_known() {
    let unknown = "Requirements:";
    let long = "One two three four five six seven.";
    revise(&[asked(unknown, "One two.")])
        .args(["-c", "short.toml"])
        .stdin(long)
        .stdout("One two.\n")
        .run();
    revise(&[asked("Count to two.", "One two.")])
        .args(["-c", "short.toml", "--prompt-file", "task.md"])
        .file("task.md", "Count to two.")
        .stdin(long)
        .stdout("One two.\n")
        .run();
}

/// If no revision is better, the given text is the answer. No draft is written from scratch, because it would
/// not be a revision.
#[test]
fn a_worse_revision_is_not_kept() {
    let script = [
        judged(3),
        reply("write", "Worse."),
        judged(2),
        reply("write", "Worse again."),
        judged(2),
    ];
    let ran = revise(&script)
        .args(["text.md", "-c", "clear.toml", "-n", "9"])
        .args(["--plateau-iterations", "2"])
        .file("text.md", "The given text.\n")
        .code(3)
        .stdout("The given text.\n")
        .stderr_has("no revision beat the first draft")
        .run();
    let result = ran.history();
    assert_eq!(result["convergence_reason"], "plateau");
    let bases: Vec<Value> = result["history"]["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["based_on"].clone())
        .collect();
    assert_eq!(bases, [Value::Null, json!(1), json!(1)]);
}

#[test]
fn the_given_text_is_printed_if_the_model_fails() {
    let failing = "[[reply]]\nerror = { class = 'auth', message = 'no such key' }\n".to_owned();
    revise(&[failing])
        .args(["text.md", "-c", "clear.toml"])
        .file("text.md", "The given text.\n")
        .code(4)
        .stdout("The given text.\n")
        .stderr_has("without an evaluation")
        .run();
}

#[test]
fn results_events_and_history_name_the_command_and_the_file() {
    let script = [judged(3), reply("write", "Better."), judged(5)];
    let run = || {
        revise(&script)
            .args(["text.md", "-c", "clear.toml"])
            .file("text.md", "The given text.\n")
    };
    let ran = run().args(["--format", "json"]).run();
    let result = ran.json();
    assert_eq!(result["success"], true);
    assert_eq!(result["output"], "Better.");
    assert_eq!(drafts_of(&result), ["The given text.\n", "Better."]);
    let ran = run().args(["--format", "ndjson"]).run();
    let lines = ran.lines();
    assert_eq!(lines[0]["command"], "revise");
    assert_eq!(lines[0]["file"], "text.md");
    assert_eq!(lines[1]["event"], "draft");
    assert_eq!(lines[1]["output"], "The given text.\n");
    assert_eq!(lines.last().unwrap()["event"], "run_end");
    let shown = ran.then(["history", "show"]).run().stdout;
    for part in [
        "file      text.md",
        "\ndraft 1: score 0.60",
        "  | The given text.",
        "selected: draft 2",
    ] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
    let best = ran.then(["history", "show", "--best"]).run().stdout;
    assert_eq!(best, "Better.\n");
    let listed = ran.then(["history", "list"]).run().stdout;
    assert!(listed.contains("quality_met"), "{listed}");
    assert!(listed.contains("text.md"), "{listed}");
}

#[test]
fn listed_errors_are_fixed_in_one_revision_without_a_judge() {
    let verdict = json!({"valid": false, "errors": [{"message": "the sky is green", "path": "/sky", "suggestion": "write blue"}]});
    let verdict = verdict.to_string();
    for (errors, told) in [
        ("- the sky is green\n", "- major: the sky is green"),
        (r#"["the sky is green"]"#, "- major: the sky is green"),
        (
            verdict.as_str(),
            "- major, at `/sky`: the sky is green. Fix: write blue",
        ),
    ] {
        let ran = revise(&[asked(told, "The sky is blue.")])
            .args(["text.md", "--errors", "errors", "--format", "ndjson"])
            .file("text.md", "The sky is green.")
            .file("errors", errors)
            .stderr_lacks("criteria:")
            .stderr_lacks("evaluating")
            .run();
        let lines = ran.lines();
        assert_eq!(lines[0]["models"]["judge"], Value::Null);
        assert_eq!(
            lines[2]["open"][0]["description"], "the sky is green",
            "{lines:?}"
        );
        let end = lines.last().unwrap();
        assert_eq!(
            (&end["convergence_reason"], &end["success"]),
            (&json!("corrected"), &json!(true))
        );
    }
    let ran = revise(&[reply("write", "The sky is blue.")])
        .args(["text.md", "--errors", "-"])
        .file("text.md", "The sky is green.")
        .stdin("the sky is green")
        .stdout("The sky is blue.\n")
        .stderr_has("corrected · draft 2 of 2 · 1 call")
        .run();
    let shown = ran.then(["history", "show"]).run().stdout;
    assert!(shown.contains("selected: draft 2"), "{shown}");
    let report = ran
        .then(["history", "show", "--format", "markdown"])
        .run()
        .stdout;
    assert!(report.contains("Corrected · draft 2"), "{report}");
}

/// The writer's prompt contains the criteria, but their programs do not run.
#[test]
fn a_correction_receives_the_criteria_but_runs_none() {
    let criteria = "name = 'ours'\n[[criteria]]\nname = 'builds'\ndescription = 'It builds.'\n\
                    evaluator = 'command'\ncommand = ['no-such-program']\n";
    revise(&[asked("- It builds.", "fn main() {}")])
        .args(["text.rs", "--errors", "errors", "-c", "ours.toml"])
        .env("REFLECT_JUDGE_MODEL", "openai:none")
        .file("ours.toml", criteria)
        .file("text.rs", "fn main() {")
        .file("errors", "this file contains an unclosed delimiter")
        .stdout("fn main() {}\n")
        .run();
}

/// Options about judging or several revisions are rejected if neither happens.
#[test]
fn a_correction_rejects_options_that_would_have_no_effect() {
    for args in [
        &["--judge-model", "openai:none"][..],
        &["--stronger-model", "openai:none"],
        &["--judge-samples", "3"],
        &["--no-cache"],
        &["-n", "5"],
        &["--threshold", "0.9"],
        &["--candidates", "2"],
        &["--select", "latest"],
        &["--steps"],
        &["--prefetch"],
        &["-i"],
    ] {
        revise(&[])
            .args(["text.md", "--errors", "errors"])
            .args(args)
            .file("text.md", "The sky is green.")
            .file("errors", "the sky is green")
            .code(2)
            .stderr_has("'--errors <FILE>' cannot be used with")
            .run();
    }
}

#[test]
fn a_correction_accepts_the_verdict_of_evaluate() {
    let spec = "type: schema\nschema: { type: object, required: [name] }\n";
    let ran = Test::new()
        .args(["evaluate", "data.json", "--evaluator", "spec.yaml"])
        .args(["--format", "json"])
        .file("data.json", "{}")
        .file("spec.yaml", spec)
        .code(3)
        .run();
    let corrected = "{\"name\": \"Ada\"}";
    revise(&[asked("name", corrected)])
        .args(["data.json", "--errors", "-"])
        .file("data.json", "{}")
        .stdin(ran.stdout.clone())
        .stdout(&format!("{corrected}\n"))
        .run();
}

#[test]
fn a_rejected_correction_is_requested_again_before_the_text_is_kept() {
    let refusal = reply("write", "I'm sorry, but I can't help with that.");
    let run = |script: &[String]| {
        revise(script)
            .args(["text.md", "--errors", "errors"])
            .file("text.md", "The sky is green.")
            .file("errors", "the sky is green")
    };
    run(&[refusal.clone(), reply("write", "The sky is blue.")])
        .stdout("The sky is blue.\n")
        .run();
    run(&[refusal.clone(), refusal])
        .code(3)
        .stdout("The sky is green.\n")
        .stderr_has("no valid draft")
        .run();
}

#[test]
fn bad_input_is_rejected_before_any_call() {
    let latin: &[u8] = b"caf\xe9";
    for (args, said) in [
        (
            &["empty.md", "-c", "clear.toml"][..],
            "`empty.md` is empty; there is nothing to revise",
        ),
        (&["-c", "clear.toml"], "stdin is empty"),
        (&["none.md", "-c", "clear.toml"], "none.md"),
        (&["latin.md", "-c", "clear.toml"], "is not UTF-8 text"),
        (&[".", "-c", "clear.toml"], "is a directory"),
        (&["text.md", "-c", "none.toml"], "none.toml"),
        (
            &["text.md", "--errors", "empty.md"],
            "`empty.md` lists no errors",
        ),
        (
            &["text.md", "--errors", "errors.json"],
            "it has neither `errors` nor `issues`",
        ),
        (&["text.md", "--errors", "broken.json"], "broken.json:2"),
        (&["text.md", "--errors", "none.txt"], "none.txt"),
        (&["--errors", "-"], "cannot both come from stdin"),
    ] {
        let ran = revise(&[])
            .args(args)
            .file("empty.md", " \n")
            .file("latin.md", latin)
            .file("text.md", "A text.")
            .file("errors.json", "{\"scores\": {}}")
            .file("broken.json", "[\n\"a\" \"b\"]")
            .code(2)
            .stdout("")
            .stderr_has(said)
            .run();
        assert!(!ran.stderr.contains("model:"), "{}", ran.stderr);
    }
}

/// Without a task, the text itself is the search query.
#[test]
fn evidence_is_searched_with_the_text() {
    let fact = "The heron nests in tall reeds beside the lake.";
    let ran = revise(&[asked("nests in tall reeds", "The heron nests in reeds.")])
        .args([
            "-c",
            "short.toml",
            "--evidence",
            "notes",
            "--format",
            "ndjson",
        ])
        .file("notes/birds.md", fact)
        .file("notes/stones.md", "Granite is an igneous rock.")
        .stdin("The heron nests on the roof of the old lake house.")
        .run();
    let lines = ran.lines();
    let found = lines
        .iter()
        .find(|line| line["event"] == "evidence")
        .unwrap();
    assert_eq!(found["iteration"], 1);
    assert_eq!(found["evidence"][0]["content"], fact);
}
