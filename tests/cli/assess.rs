//! `reflect assess`: evaluates a plan that another tool executed.

use serde_json::{Value, json};

use crate::harness::Test;

/// Two tasks succeed, one times out twice, one fails because of the disk, and one is not run because of it.
fn nightly() -> Value {
    json!({
        "plan": { "id": "nightly", "goal": "Fresh figures.", "tasks": [
            { "id": "fetch", "tool": "http", "expected_seconds": 5 },
            { "id": "clean", "tool": "sql", "depends_on": ["fetch"] },
            { "id": "count", "tool": "sql", "depends_on": ["clean"] },
            { "id": "store", "tool": "disk", "depends_on": ["count"] },
            { "id": "mail", "tool": "smtp", "depends_on": ["store"] }
        ]},
        "results": [
            { "task_id": "fetch", "status": "failed", "error": "Read timed out",
              "finished": "2026-01-31T12:00:00Z" },
            { "task_id": "fetch", "status": "failed", "error": { "message": "slow", "type": "TimeoutError" },
              "finished": "2026-01-31T12:05:00Z" },
            { "task_id": "fetch", "status": "success", "seconds": 20,
              "finished": "2026-01-31T12:06:00Z" },
            { "task_id": "clean", "status": "success", "finished": "2026-01-31T12:07:00Z" },
            { "task_id": "count", "status": "success", "output": " ", "finished": "2026-01-31T12:08:00Z" },
            { "task_id": "store", "status": "failed", "error": "No space left on device",
              "finished": "2026-01-31T12:09:00Z" },
            { "task_id": "mail", "status": "skipped", "finished": "2026-01-31T12:09:00Z" }
        ]
    })
}

/// A plan without failures.
fn good() -> Value {
    json!({
        "plan": { "id": "good", "tasks": [{ "id": "a", "tool": "t" }, { "id": "b", "tool": "t" }] },
        "results": [
            { "task_id": "a", "status": "success", "seconds": 1 },
            { "task_id": "b", "status": "success", "seconds": 1 }
        ]
    })
}

fn assess() -> Test {
    Test::new()
        .arg("assess")
        .file("nightly.json", nightly().to_string())
        .file("good.json", good().to_string())
}

#[test]
fn a_failed_plan_has_exit_code_3_and_a_full_report() {
    assess()
        .arg("nightly.json")
        .code(3)
        .stderr("the plan `nightly` failed: exit code 3 (0 with `--exit-zero`)\n")
        .stdout(
            "nightly: failed, 3 of 5 tasks done, 1 failed, 1 incomplete, try another plan · confidence 0.45\nissues:\n\x20 - only 3 of 5 tasks were done: a success rate of 0.60, and at least 0.80 is required\n\x20 - the task `fetch` is slow: it took 20.0 s, 4.0 times the 5.0 s expected, and at most 2 times is allowed\n\x20 - the task `count` was done, but its output is empty\n\x20 - the task `store` failed (resource): No space left on device\n\x20 - the task `mail` was skipped: it waits for `store`, which failed\npatterns:\n\x20 - repeated_errors: 2 attempts failed in the same way: timeout (fetch)\n\x20 - tool_failure: the tool `http` failed 2 of 3 times (fetch)\n\x20 - low_success_rate: the success rate is 0.60, and at least 0.80 is required (store, mail)\nsuggestions:\n\x20 - raise the timeout, or break the task into smaller ones\n\x20 - `http`: raise the timeout, or break the task into smaller ones\n\x20 - break the plan into smaller tasks, and begin with what most others wait for\n\x20 - break slow tasks into smaller ones, or expect more time of them\n\x20 - say in the task what it is to give, and check what its tool gives back\n\x20 - do less at once, or free memory, disk space or quota; where a rate is limited, wait\n\x20 - run the tasks that are left\nlearned:\n\x20 - the tool `sql` did all 2 of its tasks (0.75)\n\x20 - 2 attempts failed by timeout with the tool `http`: raise the timeout, or break the task into smaller ones (0.67)\n\x20 - trying again helped after failures by timeout: 1 of the tasks were done in the end (0.50)\n\x20 - an attempt failed by resource with the tool `disk`: do less at once, or free memory, disk space or quota; where a rate is limited, wait (0.50)\n",
        )
        .run();
}

#[test]
fn a_successful_plan_has_exit_code_0() {
    assess()
        .arg("good.json")
        .stdout(
            "good: succeeded, 2 of 2 tasks done · confidence 0.95\n\
             learned:\n\
             \x20 - the tool `t` did all 2 of its tasks (0.75)\n",
        )
        .run();
}

#[test]
fn json_has_the_verdict_the_patterns_and_the_insights() {
    let ran = assess()
        .args(["-", "--format", "json"])
        .stdin(nightly().to_string())
        .code(3)
        .run();
    let result = ran.json();
    assert_eq!(result["schema_version"], 1);
    assert_eq!(result["plan_id"], "nightly");
    assert_eq!(result["task_id"], Value::Null);
    assert_eq!(result["success"], false);
    assert_eq!(result["should_replan"], true);
    assert_eq!(result["success_rate"], 0.6);
    let pattern = &result["patterns"][0];
    assert_eq!(pattern["pattern_type"], "repeated_errors");
    assert_eq!(pattern["category"], "timeout");
    assert_eq!(pattern["occurrences"], 2);
    assert_eq!(pattern["affected_tasks"], json!(["fetch"]));
    assert_eq!(pattern["detected_at"], "2026-01-31T12:05:00Z");
    assert_eq!(result["tasks"][3]["category"], "resource");
    assert_eq!(result["tasks"][3]["should_replan"], true);
    assert_eq!(result["insights"][0]["category"], "tool_effectiveness");
    assert_eq!(result["insights"][0]["evidence"], json!(["clean", "count"]));
    assert_eq!(result["criteria"]["min_success_rate"], 0.8);
    assert_eq!(result["model"], Value::Null);
}

#[test]
fn markdown_is_written_to_a_file() {
    let ran = assess()
        .args(["good.json", "--format", "markdown", "-o", "report.md"])
        .stdout("")
        .run();
    assert_eq!(
        ran.read("report.md"),
        "## good: succeeded, 2 of 2 tasks done · confidence 0.95\n\n\
         ### Learned\n\n- the tool `t` did all 2 of its tasks (0.75)\n"
    );
}

#[test]
fn criteria_come_from_flags_and_configuration() {
    let lenient = [
        "--min-success-rate",
        "0.6",
        "--require-all-tasks-complete",
        "false",
    ];
    assess().arg("nightly.json").args(lenient).run();
    let config = "[reflector]\nmin_success_rate = 0.6\nrequire_all_tasks_complete = false\n";
    let configured = || assess().arg("nightly.json").file("c.toml", config);
    configured().args(["--config", "c.toml"]).run();
    configured()
        .args(["--config", "c.toml", "--min-success-rate", "0.7"])
        .code(3)
        .run();
    // A project file may set the required quality of plans.
    configured().file(".reflect.toml", config).run();
    let ran = assess()
        .args(["nightly.json", "--format", "json", "--exit-zero"])
        .args(["--max-execution-time-multiplier", "4"])
        .args(["--check-output-quality", "false"])
        .run();
    let issues = ran.json()["issues"].to_string();
    assert!(
        !issues.contains("slow") && !issues.contains("empty"),
        "{issues}"
    );
    assess()
        .args(["good.json", "--max-execution-time-multiplier", "0"])
        .code(2)
        .stderr_has("`max_execution_time_multiplier` must be above 0")
        .run();
}

#[test]
fn errors_in_a_file_show_their_position() {
    let wrong = |text: &str| {
        assess()
            .arg("-")
            .stdin(text)
            .code(2)
            .stdout("")
            .stderr_has("<stdin>:")
    };
    wrong("{\"plan\": ").stderr_has("invalid JSON").run();
    wrong("{\"plan\": {\"id\": \"p\", \"tasks\": [{\"id\": \"a\"}]},\n \"results\": [{\"task_id\": \"a\", \"status\": \"sucess\"}]}")
        .stderr_has("<stdin>:2:41")
        .stderr_has("unknown value `sucess`")
        .stderr_has("did you mean `success`?")
        .run();
    wrong("{\"plan\": {\"id\": \"p\", \"tasks\": [{\"id\": \"ab\"}]},\n \"results\": [{\"task_id\": \"ac\", \"status\": \"failed\"}]}")
        .stderr_has("the plan has no task `ac`")
        .stderr_has("did you mean `ab`?")
        .run();
    assess()
        .arg("none.json")
        .code(2)
        .stderr_has("none.json")
        .run();
}

#[test]
fn the_schema_accepts_valid_input() {
    let schema = Test::new()
        .args(["assess", "--schema"])
        .stderr("")
        .run()
        .json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&nightly()));
    let mut wrong = nightly();
    wrong["results"][0]["status"] = json!("done");
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn a_model_adds_suggestions_without_changing_the_verdict() {
    let reply = "[[reply]]\npurpose = 'judge'\ncontains = 'No space left on device'\n\
                 json = { success = true, suggestions = ['Mount a larger disk for `store`.'] }\n";
    let ran = assess()
        .args(["nightly.json", "--llm", "--provider", "scripted:m.toml"])
        .args(["--format", "json"])
        .file("m.toml", reply)
        .code(3)
        .stderr_has("judge: scripted:m.toml")
        .run();
    let result = ran.json();
    assert_eq!(result["success"], false);
    assert_eq!(
        result["model_suggestions"],
        json!(["Mount a larger disk for `store`."])
    );
    let suggestions = result["suggestions"].as_array().unwrap();
    assert_eq!(
        suggestions.last(),
        Some(&json!("Mount a larger disk for `store`."))
    );
    assert_eq!(suggestions.len(), 8);
}

#[test]
fn verbose_output_describes_the_call() {
    let ask = |flags: &[&str]| {
        assess()
            .args(["good.json", "--llm", "--provider", "scripted:m.toml"])
            .args(flags)
            .file("m.toml", "[[reply]]\njson = { suggestions = [] }\n")
    };
    ask(&[]).stderr_lacks("suggestions: scripted").run();
    ask(&["-v"])
        .stderr_has("suggestions: scripted:m.toml took ")
        .stderr_lacks("[user]")
        .run();
    ask(&["-vv"])
        .stderr_has("suggestions: request to scripted:m.toml to judge")
        .stderr_has("[user]\n> ")
        .run();
}

#[test]
fn a_failing_model_is_a_warning() {
    let cases = [
        (
            "text = 'I would rather not.'",
            "contains no readable suggestions",
        ),
        (
            "error = { class = 'unreachable', message = 'gone' }",
            "gone",
        ),
        ("end = 'refused'\nrefusal = 'never'", "refused"),
    ];
    for (reply, warning) in cases {
        let ran = assess()
            .args(["good.json", "--llm", "--provider", "scripted:m.toml"])
            .args(["--format", "json"])
            .file("m.toml", format!("[[reply]]\n{reply}\n"))
            .stderr_has("warning: ")
            .stderr_has(warning)
            .run();
        let result = ran.json();
        assert_eq!(result["success"], true);
        assert!(result["warnings"][0].as_str().unwrap().contains(warning));
    }
    assess()
        .args(["good.json", "-m", "ollama:x"])
        .code(2)
        .stderr_has("no model is called without `--llm`")
        .run();
}

/// Text from a file may contain terminal escape sequences.
#[test]
fn control_characters_are_removed() {
    let mut bad = nightly();
    bad["results"][5]["error"] = json!("\u{1b}[2Jgone");
    let ran = assess().arg("-").stdin(bad.to_string()).code(3).run();
    assert!(!ran.stdout.contains('\u{1b}'));
}

#[test]
fn ten_thousand_tasks_are_assessed_quickly() {
    let tasks: Vec<Value> = (0..10_000)
        .map(|id| {
            let before: Vec<String> = (id > 0)
                .then(|| format!("t{}", id - 1))
                .into_iter()
                .collect();
            json!({ "id": format!("t{id}"), "tool": "x", "depends_on": before })
        })
        .collect();
    let results: Vec<Value> = (0..10_000)
        .map(|id| json!({ "task_id": format!("t{id}"), "status": "failed", "error": "timed out", "seconds": id }))
        .collect();
    let episode = json!({ "plan": { "id": "big", "tasks": tasks }, "results": results });
    let ran = assess().arg("-").stdin(episode.to_string()).code(3).run();
    assert!(ran.stdout.contains("and 9982 more"), "{}", ran.stdout);
    assert!(ran.took.as_secs() < 20, "{:?}", ran.took);
}
