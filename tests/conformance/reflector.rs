//! The rows `reflector` of `other-seeds.json`: expectations from LAIOS's tests of its reflector, for `reflect
//! assess`.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::program::Program;

const ROWS: &str = include_str!("other-seeds.json");

/// Rows that we disagree with, with the reason. Each must differ; a row that agrees is an error.
const DISAGREE: &[(&str, &str)] = &[];

#[test]
fn verdicts_agree_with_the_rows() {
    let rows: Vec<Value> = serde_json::from_str(ROWS).unwrap();
    let rows: Vec<&Value> = rows
        .iter()
        .filter(|row| row["feature"] == "reflector")
        .collect();
    let (mut agree, mut disagree) = (0, 0);
    let mut wrong = Vec::new();
    for row in &rows {
        let id = row["id"].as_str().unwrap();
        let differences = differences(row);
        let listed = DISAGREE.iter().any(|(listed, _)| *listed == id);
        match (differences.is_empty(), listed) {
            (true, false) => agree += 1,
            (false, true) => disagree += 1,
            (true, true) => wrong.push(format!("{id} agrees, and is listed as one that does not")),
            (false, false) => wrong.push(format!(
                "{id} ({}): {}",
                row["title"],
                differences.join("; ")
            )),
        }
    }
    println!(
        "{} rows: {agree} agree, {disagree} differ on purpose, {} are wrong",
        rows.len(),
        wrong.len()
    );
    assert!(rows.len() >= 17, "rows are missing");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Converts the plan and results of a row.
fn episode(given: &Value) -> Value {
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    let mut results: Vec<Value> = Vec::new();
    let mut add = |status: &str, more: Value| {
        let mut result = Map::new();
        result.insert(
            "task_id".to_owned(),
            json!(format!("task-{}", results.len())),
        );
        result.insert("status".to_owned(), json!(status));
        result.extend(more.as_object().cloned().unwrap_or_default());
        results.push(Value::Object(result));
    };
    for group in [&given["plan"], &given["episode"]] {
        for _ in 0..count(&group["ok"]) {
            add("success", json!({}));
        }
        for _ in 0..count(&group["failed"]) {
            add("failed", json!({}));
        }
    }
    if given["task"].is_object() {
        add("success", json!({ "seconds": given["task"]["seconds"] }));
    }
    if given["error"].is_string() {
        add("failed", json!({ "error": given["error"] }));
    }
    for error in given["errors"].as_array().into_iter().flatten() {
        add("failed", json!({ "error": error }));
    }
    for seconds in given["seconds"].as_array().into_iter().flatten() {
        add("success", json!({ "seconds": seconds }));
    }
    let tools = count(&given["episode"]["tools"]);
    let tasks: Vec<Value> = (0_u64..)
        .zip(&results)
        .map(|(place, result)| {
            let tool = match (&given["tool"], place.checked_rem(tools)) {
                (Value::String(tool), _) => json!(tool),
                (_, Some(tool)) => json!(format!("tool-{tool}")),
                _ => Value::Null,
            };
            json!({ "id": result["task_id"], "tool": tool })
        })
        .collect();
    json!({ "plan": { "id": "plan", "tasks": tasks }, "results": results })
}

/// Returns the program's verdict on a row's episode, or on its only task if the row is about a task.
fn verdict(row: &Value) -> Value {
    let given = &row["given"];
    let program = Program::new();
    let mut config = String::from("[reflector]\n");
    for (key, value) in given["config"].as_object().into_iter().flatten() {
        let _ = writeln!(config, "{key} = {value}");
    }
    program.file("config.toml", &config);
    let mut episode = episode(given);
    if episode["plan"]["tasks"] == json!([]) {
        // The row is only about the criteria.
        episode["plan"]["tasks"] = json!([{ "id": "task-0" }]);
    }
    let args = ["assess", "-", "--format", "json", "--config", "config.toml"];
    let ran = program.run(&args, &episode.to_string());
    assert!(
        matches!(ran.code, Some(0 | 3)),
        "{}: {}",
        row["id"],
        ran.stderr
    );
    // A called model is named on stderr.
    let llm_called = ran.stderr.contains("judge: ");
    let mut verdict: Value = serde_json::from_str(&ran.stdout).unwrap();
    verdict["llm_called"] = json!(llm_called || verdict["model"] != Value::Null);
    if given["task"].is_object() || given["error"].is_string() {
        let task = verdict["tasks"][0].clone();
        verdict
            .as_object_mut()
            .unwrap()
            .extend(task.as_object().cloned().unwrap());
    }
    verdict
}

/// Returns the differences between the program's verdict and a row.
fn differences(row: &Value) -> Vec<String> {
    let verdict = verdict(row);
    let wanted = row.get("recommended").unwrap_or(&row["expected"]);
    let at_least = |key: &str, wanted: &Value| {
        verdict[key].as_array().map_or(0, Vec::len) as u64 >= wanted.as_u64().unwrap()
    };
    let mut found = Vec::new();
    for (key, wanted) in wanted.as_object().unwrap() {
        let good = match key.as_str() {
            "success" | "issues" | "should_replan" | "category" | "llm_called" => {
                verdict[key] == *wanted
            }
            "confidence_gt" => verdict["confidence"].as_f64() > wanted.as_f64(),
            "confidence_lt" => verdict["confidence"].as_f64() < wanted.as_f64(),
            "issues_min" => at_least("issues", wanted),
            "suggestions_min" => at_least("suggestions", wanted),
            "patterns_min" => at_least("patterns", wanted),
            "insights_min" => at_least("insights", wanted),
            // Nothing is kept between two calls, so there is nothing to clear.
            "after_clear" => Some(remembered()) == wanted.as_u64(),
            "patterns_any" => verdict["patterns"]
                .as_array()
                .unwrap()
                .iter()
                .any(|pattern| {
                    let contains = wanted["description_contains"].as_str().unwrap_or_default();
                    pattern["pattern_type"] == wanted["pattern_type"]
                        && pattern["description"].as_str().unwrap().contains(contains)
                }),
            "insight_category" => verdict["insights"]
                .as_array()
                .unwrap()
                .iter()
                .any(|insight| insight["category"] == *wanted),
            "min_success_rate"
            | "max_execution_time_multiplier"
            | "require_all_tasks_complete"
            | "check_output_quality" => verdict["criteria"][key] == *wanted,
            other => panic!("{}: nothing compares `{other}`", row["id"]),
        };
        if !good {
            let got = verdict.get(key).unwrap_or(&verdict);
            found.push(format!("{key}: {wanted} is required, and this came: {got}"));
        }
    }
    found
}

/// Returns the number of patterns and insights in a good episode after a bad one in the same folder.
fn remembered() -> u64 {
    let program = Program::new();
    let run = |status: &str| {
        let episode = json!({
            "plan": { "id": "plan", "tasks": [{ "id": "a", "tool": "test.tool" }] },
            "results": [{ "task_id": "a", "status": status }]
        });
        let ran = program.run(&["assess", "-", "--format", "json"], &episode.to_string());
        let verdict: Value = serde_json::from_str(&ran.stdout).unwrap();
        let count = |key: &str| verdict[key].as_array().map_or(0, Vec::len) as u64;
        count("patterns") + count("insights")
    };
    assert!(run("failed") > 0);
    run("success")
}
