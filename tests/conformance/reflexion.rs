//! The rows `convergence` and `reflexion_loop` of `other-seeds.json`: complete runs of the program with a
//! scripted model.
//!
//! If a row describes a peer's behaviour that we deliberately improve on, [`differs`] returns ours and the
//! reason. All other rows are checked unchanged.

use std::process::Command;

use serde_json::{Value, json};

const ROWS: &str = include_str!("other-seeds.json");

/// Returns our value for a row and key where it deliberately differs, with the reason.
fn differs(id: &str, key: &str) -> Option<(Value, &'static str)> {
    Some(match (id, key) {
        ("gal-010" | "gal-012" | "gal-013", "success") => (
            json!(false),
            "recommended: a severe issue is enforced in code, whatever the model says and in whatever wrapping",
        ),
        ("gal-010", "iterations") => (json!(3), "the draft does not pass, so it is revised"),
        ("gal-010", "critique") => (
            json!({"issues": 1, "confidence": 0.7, "passes": false}),
            "the fence is removed",
        ),
        ("gal-011", "success") => (
            json!(false),
            "recommended: the verdict is requested again; without one, the draft does not pass",
        ),
        ("gal-015", "confidence") => (json!(0.0), "recommended: 0 is a value"),
        ("gal-021", "critique_prompt_contains") => (
            json!([]),
            "without evidence, the prompt does not mention it",
        ),
        ("gal-022", "revision_prompt_contains") => (
            json!(["- major: no index.", "Fix: add one"]),
            "a Markdown list with the criterion; the severity is in lower case",
        ),
        ("gal-023", "raises") => (
            json!(false),
            "recommended: the completed iterations are kept, and the draft is the answer",
        ),
        _ => return None,
    })
}

/// The result of a run of the program.
struct Ran {
    code: i32,
    result: Value,
}

fn run(criteria: &str, script: &str, context: Option<&Value>, args: &[String]) -> Ran {
    let world = tempfile::tempdir().expect("a folder");
    if let Some(context) = context {
        std::fs::write(world.path().join("context.json"), context.to_string()).expect("a file");
    }
    std::fs::write(world.path().join("criteria.toml"), criteria).expect("a file");
    std::fs::write(world.path().join("script.toml"), script).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_reflect"))
        .env_clear()
        .env("HOME", world.path())
        .env("USERPROFILE", world.path())
        .env("APPDATA", world.path())
        .env("LOCALAPPDATA", world.path())
        .current_dir(world.path())
        .args(["draft", "Write it.", "-c", "criteria.toml", "--provider"])
        .args([
            "scripted:script.toml",
            "--format",
            "json",
            "--no-log",
            "--quiet",
        ])
        .args(context.map(|_| "--context=context.json"))
        .args(args)
        .output()
        .expect("the program starts");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    Ran {
        code: output.status.code().expect("an exit code"),
        result: serde_json::from_str(&stdout).unwrap_or_else(|error| {
            panic!(
                "{error}: {stdout}\n{}",
                String::from_utf8_lossy(&output.stderr)
            )
        }),
    }
}

fn rows(feature: &str) -> Vec<Value> {
    let rows: Vec<Value> = serde_json::from_str(ROWS).expect("JSON");
    rows.into_iter()
        .filter(|row| row["feature"] == feature)
        .collect()
}

/// Compares every expectation of a row with the actual value. Returns the failures.
fn check(row: &Value, actual: impl Fn(&str) -> Option<Value>) -> Vec<String> {
    let id = row["id"].as_str().unwrap_or_default();
    let expected = row["expected"].as_object().expect("expectations");
    expected
        .iter()
        .filter_map(|(key, expected)| {
            let expected = differs(id, key).map_or(expected.clone(), |(ours, _)| ours);
            let Some(actual) = actual(key) else {
                return Some(format!("{id}: nobody knows `{key}`"));
            };
            (actual != expected).then(|| format!("{id}: `{key}` is {actual}, not {expected}"))
        })
        .collect()
}

/// The scores come from a `length` check: a draft of n words scores n hundredths.
#[test]
fn convergence() {
    let rows = rows("convergence");
    assert_eq!(rows.len(), 6);
    let failed: Vec<String> = rows.iter().flat_map(convergence_row).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn convergence_row(row: &Value) -> Vec<String> {
    let config = &row["given"]["config"];
    let threshold = config["quality_threshold"].as_f64().unwrap_or(0.8);
    let criteria = format!(
        "threshold = {threshold}\n[[criteria]]\nname = 'length'\nevaluator = 'length'\nmin = 100\nthreshold = {threshold}\n"
    );
    let script: Vec<String> = row["given"]["scores"]
        .as_array()
        .expect("scores")
        .iter()
        .enumerate()
        .map(|(draft, score)| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to 100"
            )]
            let count = (score.as_f64().expect("a score") * 100.0).round() as usize;
            let words: Vec<String> = (0..count).map(|n| format!("d{draft}w{n}")).collect();
            format!("[[reply]]\ntext = '''{}'''\n", words.join(" "))
        })
        .collect();
    let flags = [
        ("max_iterations", "--max-iterations"),
        ("plateau_iterations", "--plateau-iterations"),
        ("detect_oscillation", "--detect-oscillation"),
    ];
    let args: Vec<String> = flags
        .iter()
        .filter(|(key, _)| !config[key].is_null())
        .map(|(key, flag)| format!("{flag}={}", config[key]))
        .collect();
    let result = run(&criteria, &script.concat(), None, &args).result;
    let history = &result["history"];
    check(row, |key| {
        Some(match key {
            "reason" => result["convergence_reason"].clone(),
            "reason_not" if result["convergence_reason"] == row["expected"][key] => {
                json!("the same")
            }
            "reason_not" => row["expected"][key].clone(),
            "iterations" => result["iterations_used"].clone(),
            "best_iteration" => history["best_version"].clone(),
            "final_iteration" => history["final_version"].clone(),
            _ => return None,
        })
    })
}

#[test]
fn reflexion_loop() {
    let rows = rows("reflexion_loop");
    assert_eq!(rows.len(), 18);
    let failed: Vec<String> = rows.iter().flat_map(reflexion_row).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Converts the peer's critique to a verdict: the same issues and confidence, and a scale step for `passes`.
/// A missing `passes` counts as true, as there.
fn verdict(critique: &str) -> String {
    let bare = critique
        .trim_start_matches("```json\n")
        .trim_end_matches("\n```");
    let Ok(Value::Object(given)) = serde_json::from_str(bare) else {
        return critique.to_owned();
    };
    let passes = given.get("passes").and_then(Value::as_bool).unwrap_or(true);
    let step = if passes { 5 } else { 3 };
    let mut issues = given["issues"].clone();
    for issue in issues.as_array_mut().into_iter().flatten() {
        issue["criterion"] = json!("quality");
    }
    let verdict = json!({
        "scores": {"quality": {"reason": "As it reads.", "score": step}},
        "issues": issues,
        "confidence": given["confidence"],
    });
    critique.replace(bare, &verdict.to_string())
}

/// Returns the script of a row. Each reply counts 10 prompt and 5 completion tokens. The second draft is
/// returned only if its prompt contains `told`.
fn script(row: &Value, told: &str) -> String {
    let list = |key: &str| row["given"][key].as_array().cloned().unwrap_or_default();
    let usage = "usage = { prompt = 10, completion = 5 }";
    let mut replies = Vec::new();
    for (number, draft) in list("drafts").iter().enumerate() {
        let condition = if number == 1 && !told.is_empty() {
            format!("contains = '''{told}'''\n")
        } else {
            String::new()
        };
        let answer = match draft.as_str() {
            Some(text) => format!("text = '''{text}'''\n{usage}\n"),
            None => "error = { class = 'unreachable', message = 'timeout' }\n".to_owned(),
        };
        replies.push(format!("[[reply]]\npurpose = 'write'\n{condition}{answer}"));
    }
    if row["id"] == "gal-021" {
        let caught = verdict(r#"{"issues":[],"confidence":0.1,"passes":true}"#);
        replies.push(format!(
            "[[reply]]\npurpose = 'judge'\ncontains = \"\\n<evidence\"\ntext = '''{caught}'''\n{usage}\n"
        ));
    }
    for critique in list("critiques") {
        let verdict = verdict(critique.as_str().expect("a text"));
        // An unparseable reply is requested again, so it repeats.
        let times = u8::from(verdict.contains("scores"));
        replies.push(format!(
            "[[reply]]\npurpose = 'judge'\ntimes = {times}\ntext = '''{verdict}'''\n{usage}\n"
        ));
    }
    replies.concat()
}

fn reflexion_row(row: &Value) -> Vec<String> {
    let id = row["id"].as_str().unwrap_or_default();
    let criteria = "[[criteria]]\nname = 'quality'\ndescription = 'It is good.'\n";
    // The peer's default is 3, ours is 5.
    let limit = row["given"]["max_iterations"].as_u64().unwrap_or(3);
    let mut args = vec![format!("--max-iterations={limit}")];
    if id == "gal-024" {
        // An unchanged text is reported when it ends the run; by default another draft may still help.
        args.extend(["--plateau-iterations=2", "--adapt=false"].map(str::to_owned));
    }
    // The peer has one critique, but our run continues.
    let mut row = row.clone();
    if id == "gal-010" {
        let critique = row["given"]["critiques"][0].clone();
        row["given"]["critiques"] = json!([critique, critique, critique]);
        row["given"]["drafts"] = json!(["d1", "d2", "d3"]);
    }
    if matches!(id, "gal-012" | "gal-013") {
        row["given"]["max_iterations"] = json!(1);
        return reflexion_of(&row, criteria, &["--max-iterations=1".to_owned()]);
    }
    reflexion_of(&row, criteria, &args)
}

/// Returns the facts of a row as a context file with `retrievedFacts`.
fn context(row: &Value) -> Option<Value> {
    let facts = row["given"]["context"]["facts"].as_array()?.iter();
    let facts: Vec<Value> = facts
        .map(|fact| json!({"content": fact[0], "confidence": fact[1]}))
        .collect();
    Some(json!({ "retrievedFacts": facts }))
}

/// Returns the evidence of a run, with the fields that the rows use.
fn evidence(result: &Value) -> Value {
    let pieces = result["evidence"].as_array().into_iter().flatten();
    pieces
        .map(|piece| {
            json!({
                "source": piece["source"],
                "content": piece["content"],
                "relevance": piece["relevance"],
            })
        })
        .collect()
}

fn reflexion_of(row: &Value, criteria: &str, args: &[String]) -> Vec<String> {
    let id = row["id"].as_str().unwrap_or_default();
    let told: Vec<String> = differs(id, "revision_prompt_contains")
        .and_then(|(ours, _)| serde_json::from_value(ours).ok())
        .unwrap_or_default();
    let ran = run(
        criteria,
        &script(row, &told.join(" ")),
        context(row).as_ref(),
        args,
    );
    let result = &ran.result;
    let versions = result["history"]["versions"].as_array().expect("versions");
    let first = &versions[0]["evaluation"];
    let mut failed = check(row, |key| {
        Some(match key {
            "success" | "total_llm_calls" => result[key].clone(),
            "iterations" => result["iterations_used"].clone(),
            "final_draft" => result["final_output"].clone(),
            "evidence" => evidence(result),
            // The script's default verdict has another confidence.
            "critique_prompt_contains" if first["confidence"] == json!(0.9) => json!([]),
            "confidence" | "issues" => first[key].clone(),
            "revised" => versions.iter().map(|v| !v["based_on"].is_null()).collect(),
            "critique" => {
                let issues = first["issues"].as_array().map_or(0, Vec::len);
                let shown = if issues == 0 {
                    json!([])
                } else {
                    json!(issues)
                };
                json!({"issues": shown, "confidence": first["confidence"], "passes": first["satisfactory"]})
            }
            "total_tokens" => {
                let calls = result["total_llm_calls"].as_u64().unwrap_or_default();
                if result["token_usage"]["total"] == json!(15 * calls) {
                    json!("sum of 4 usages")
                } else {
                    result["token_usage"].clone()
                }
            }
            // The second draft exists only if its prompt contained the expected text.
            "revision_prompt_contains" if versions.len() == 2 => json!(told),
            "raises" => json!(result["output"].is_null()),
            _ => return None,
        })
    });
    let also = |what: bool, said: &str| (!what).then(|| format!("{id}: {said}"));
    failed.extend(match id {
        "gal-011" => also(
            ran.code == 6 && first["status"] == "unparsed",
            "without a verdict the draft does not pass",
        ),
        "gal-023" => also(
            ran.code == 4 && result["output"] == "d1",
            "the existing draft is the answer",
        ),
        "gal-024" => also(
            result["convergence_reason"] == "stable",
            "an unchanged revision is noticed",
        ),
        _ => None,
    });
    failed
}

/// Every listed difference must refer to an existing row and key.
#[test]
fn listed_differences_refer_to_existing_rows() {
    let keys = [
        ("gal-010", "critique"),
        ("gal-022", "revision_prompt_contains"),
        ("gal-023", "raises"),
    ];
    let rows = rows("reflexion_loop");
    for (id, key) in keys {
        let row = rows.iter().find(|row| row["id"] == id).expect("the row");
        let (ours, why) = differs(id, key).expect("a difference");
        assert_ne!(row["expected"][key], ours);
        assert!(!why.is_empty());
    }
}
