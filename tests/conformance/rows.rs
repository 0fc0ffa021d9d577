//! The rows, and their comparison with the program's output.

use serde_json::Value;

/// Returns all rows of some features.
pub(crate) fn of_features(features: &[&str]) -> Vec<Value> {
    let rows: Vec<Value> = serde_json::from_str(include_str!("tea.json")).expect("rows");
    rows.into_iter()
        .filter(|row| features.iter().any(|feature| row["feature"] == *feature))
        .collect()
}

/// Returns the result for an unusable evaluator, in the form of a verdict.
pub(crate) fn refusal(message: &str) -> Value {
    serde_json::json!({
        "success": false,
        "valid": false,
        "score": 0.0,
        "errors": [{ "message": message }],
        "refused": true,
    })
}

/// Returns the differences between a verdict and a row's expectations.
pub(crate) fn differences(row: &Value, verdict: &Value) -> Vec<String> {
    let wanted = row.get("recommended").unwrap_or(&row["expected"]);
    let mut found = Vec::new();
    let mut differ = |what: &str, wanted: &Value, got: &Value| {
        found.push(format!("{what}: {wanted} is required, {got} came"));
    };
    for (key, wanted) in wanted.as_object().expect("an object") {
        match key.as_str() {
            // The program cannot start because the file is invalid.
            "raises" => {
                if verdict["refused"] != true {
                    differ(key, wanted, verdict);
                }
            }
            "valid" | "success" => {
                if &verdict[key] != wanted {
                    differ(key, wanted, &verdict[key]);
                }
            }
            "unparsed" => {
                if (verdict["status"] == "unparsed") != (wanted == true) {
                    differ(key, wanted, &verdict["status"]);
                }
            }
            "score" => {
                let (wanted_score, got) = (wanted.as_f64(), verdict[key].as_f64());
                let near =
                    matches!((wanted_score, got), (Some(a), Some(b)) if (a - b).abs() < 1e-9);
                if !near {
                    differ(key, wanted, &verdict[key]);
                }
            }
            "errors_count" => {
                let count = verdict["errors"].as_array().map_or(0, Vec::len);
                if wanted.as_u64() != Some(count as u64) {
                    differ(key, wanted, &verdict["errors"]);
                }
            }
            "errors" => {
                let places = |errors: &Value| -> Vec<(String, String)> {
                    let errors = errors.as_array().cloned().unwrap_or_default();
                    let mut places: Vec<_> = errors
                        .iter()
                        .filter(|error| error["keyword"].is_string())
                        .map(|error| (place(&error["path"]), place(&error["keyword"])))
                        .collect();
                    places.sort();
                    places
                };
                let wanted_places = places(wanted);
                if !wanted_places.is_empty() && wanted_places != places(&verdict[key]) {
                    differ(key, wanted, &verdict[key]);
                }
            }
            // Both are right: the code did not get through.
            "either" => {
                if verdict["valid"] != false {
                    differ(key, wanted, verdict);
                }
            }
            // The wording of a library, and what the caller checks.
            "suggestions"
            | "errors_contains"
            | "judge_model"
            | "judge_messages"
            | "judge_prompt_contains"
            | "note" => {}
            other => panic!("{}: nothing compares `{other}`", row["id"]),
        }
    }
    found
}

/// Normalizes a position: `/a/0` and `a.0` are the same.
fn place(path: &Value) -> String {
    path.as_str()
        .unwrap_or_default()
        .trim_start_matches('/')
        .replace('/', ".")
}
