//! Rows `evaluate.custom` and `sandbox`: what scripts return, and how it is interpreted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use reflect::engine::{EvaluateOnce, Loop, Text};
use reflect::evaluate::{ExecPermission, Tools};
use reflect::model::ScriptedModel;
use reflect::types::{LoopSettings, RunRecord, Stamped, Status, Task};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// The peer's threshold for scores; `reflect` has one per criterion.
const FLOOR: f64 = 0.5;

/// Rows that we deliberately interpret differently, with the reason.
const DISAGREE: &[(&str, &str)] = &[
    (
        "custom-009",
        "scores go from 0 to 1: one outside is clamped, as in the peer's second runtime, and the evidence \
         says so; a 3 would outweigh everything else in a mean",
    ),
    (
        "custom-020",
        "a failing script says nothing about the draft: it is neither valid nor a zero but has its own \
         status, which ends the run",
    ),
    (
        "custom-030",
        "criteria without code are rejected before anything runs, as custom-033 recommends for the loop",
    ),
    (
        "custom-031",
        "an unknown language is rejected once before anything runs, not for each draft",
    ),
    (
        "custom-041",
        "a top-level `return` works in Python, as in the peer's own documentation",
    ),
    (
        "custom-044",
        "a missing Prolog says nothing about the draft: see custom-020",
    ),
];

/// The result of `reflect` for a row.
#[derive(Debug, Default, PartialEq)]
struct Got {
    /// Why the criteria were rejected.
    refused: Option<String>,
    /// Why there is no verdict.
    failed: Option<String>,
    valid: Option<bool>,
    score: Option<f64>,
    errors: Vec<String>,
    suggestions: Vec<String>,
    evidence: String,
}

fn rows() -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(include_str!("tea.json")).unwrap();
    let ours = |row: &Value| matches!(row["feature"].as_str(), Some("evaluate.custom" | "sandbox"));
    all.into_iter().filter(ours).collect()
}

fn row(id: &str) -> Value {
    rows().into_iter().find(|row| row["id"] == id).unwrap()
}

/// Returns the expectations of a row: `recommended` overrides `expected`. If they disagree on validity, the
/// other old expectations belong to the wrong verdict and are dropped.
fn expected(row: &Value) -> Map<String, Value> {
    let mut expected = row["expected"].as_object().unwrap().clone();
    if let Some(recommended) = row["recommended"].as_object() {
        if recommended.get("valid") != expected.get("valid") {
            expected.clear();
        }
        expected.extend(recommended.clone());
    }
    expected
}

fn tools() -> Tools {
    Tools::with_worker(PathBuf::from(env!("CARGO_BIN_EXE_reflect")))
        .allow(ExecPermission::given_by_user())
}

/// Returns a criteria file with one script.
fn criteria(language: &str, code: Option<&str>) -> String {
    let mut criterion = toml::Table::new();
    criterion.insert("name".to_owned(), "custom".into());
    criterion.insert("evaluator".to_owned(), "script".into());
    criterion.insert("language".to_owned(), language.into());
    criterion.insert("threshold".to_owned(), FLOOR.into());
    if let Some(code) = code {
        criterion.insert("code".to_owned(), code.into());
    }
    let mut file = toml::Table::new();
    file.insert("threshold".to_owned(), FLOOR.into());
    file.insert(
        "criteria".to_owned(),
        toml::Value::Array(vec![criterion.into()]),
    );
    file.to_string()
}

/// Returns code that returns this value, or fails as requested.
fn returning(value: &Value, language: &str) -> String {
    if let Some(message) = value["$raise"].as_str() {
        return match language {
            "lua" => format!("error({message:?})"),
            _ => format!("raise RuntimeError({message:?})"),
        };
    }
    let text = value.to_string();
    assert!(!text.contains("]=]") && !text.contains("'''"));
    match language {
        "lua" => format!("return json.decode([=[{text}]=])"),
        _ => format!("import json\nreturn json.loads(r'''{text}''')"),
    }
}

async fn evaluate(criteria: &str, data: &Value) -> Got {
    let criteria = match reflect::criteria::parse(criteria, "row.toml") {
        Ok(criteria) => Arc::new(criteria),
        Err(error) => {
            return Got {
                refused: Some(error.to_string()),
                ..Got::default()
            };
        }
    };
    let critique = EvaluateOnce::new(criteria, None, &tools()).unwrap();
    let text = Text {
        content: data.to_string(),
        file: None,
    };
    let record = critique
        .run(
            &Task::default(),
            text,
            &mut |_: &Stamped| {},
            &CancellationToken::new(),
        )
        .await;
    got(&record)
}

fn got(record: &RunRecord) -> Got {
    let evaluation = record.versions[0].evaluation.as_ref().unwrap();
    let result = &evaluation.criteria[0];
    let evidence = result.evidence.clone().unwrap_or_default();
    if result.status == Status::Failed {
        assert_eq!((result.score, result.passed), (None, false));
        return Got {
            failed: Some(evidence),
            ..Got::default()
        };
    }
    assert_eq!(result.status, Status::Ok);
    Got {
        valid: Some(result.passed),
        score: result.score,
        errors: evaluation
            .issues
            .iter()
            .map(|it| it.description.clone())
            .collect(),
        suggestions: evaluation.suggestions.clone(),
        evidence,
        ..Got::default()
    }
}

/// Returns the languages to test. Python is skipped with a message if it is missing, unless all tests are
/// required.
fn languages() -> Vec<&'static str> {
    let mut languages = vec!["lua"];
    if has("python3") {
        languages.push("python");
    }
    languages
}

/// Whether a program is installed. If not, prints a message, or fails if all tests are required.
pub(crate) fn has(program: &str) -> bool {
    let there = std::process::Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    let required = std::env::var_os("REFLECT_TEST_REQUIRE_ALL").is_some_and(|v| v == "1");
    assert!(there || !required, "`{program}` is required and missing");
    if !there {
        println!("SKIPPED: `{program}` is not installed");
    }
    there
}

/// Returns the differences from the row's expectations.
fn differences(got: &Got, expected: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |what: &str, got: Value, expected: Option<&Value>| {
        if let Some(expected) = expected.filter(|expected| **expected != got) {
            found.push(format!("{what}: {got}, expected {expected}"));
        }
    };
    check("valid", json!(got.valid), expected.get("valid"));
    check("score", json!(got.score), expected.get("score"));
    check(
        "suggestions",
        json!(got.suggestions),
        expected.get("suggestions"),
    );
    check(
        "errors_count",
        json!(got.errors.len()),
        expected.get("errors_count"),
    );
    for part in expected
        .get("errors_contains")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let part = part.as_str().unwrap();
        if !got.errors.iter().any(|error| error.contains(part)) {
            found.push(format!("errors: {:?} lack {part:?}", got.errors));
        }
    }
    found
}

#[tokio::test]
async fn every_row_agrees_or_is_listed_as_a_disagreement() {
    let (mut agreed, mut differed) = (0, Vec::new());
    for row in rows() {
        let id = row["id"].as_str().unwrap();
        // These have their own tests below.
        if matches!(id, "custom-032" | "custom-033" | "custom-044" | "lua-002") {
            continue;
        }
        let expected = expected(&row);
        let evaluator = &row["evaluator"];
        let own = evaluator["language"].as_str();
        let tried = match own {
            Some(language) => vec![language],
            // Code in a row is Python.
            None if evaluator["run"].is_string() => languages()
                .into_iter()
                .filter(|it| *it == "python")
                .collect(),
            None => languages(),
        };
        for language in tried {
            let code = match (evaluator["run"].as_str(), evaluator["returns"].get(0)) {
                (Some(code), _) => Some(code.to_owned()),
                (None, Some(value)) => Some(returning(value, language)),
                (None, None) => None,
            };
            let got = evaluate(&criteria(language, code.as_deref()), &row["data"]).await;
            let found = differences(&got, &expected);
            let known = DISAGREE.iter().any(|(known, _)| *known == id);
            if found.is_empty() && !known {
                agreed += 1;
            } else {
                assert!(known, "{id} in {language}: {found:#?}\n{got:#?}");
                assert!(
                    !found.is_empty(),
                    "{id} in {language} agrees: remove it from the list"
                );
                differed.push(id.to_owned());
            }
        }
    }
    println!("{agreed} agree; known to differ: {differed:?}");
    assert!(agreed >= 16, "{agreed}");
}

#[test]
fn every_disagreement_names_a_row_and_a_reason() {
    for (id, reason) in DISAGREE {
        assert!(reason.len() > 40, "{id}");
        assert_eq!(row(id)["id"], *id);
    }
}

/// Our behaviour in the rows that we disagree with.
#[tokio::test]
async fn our_behaviour_in_the_listed_rows() {
    let of = async |id: &str, language: &str| {
        let row = row(id);
        let code = match row["evaluator"]["run"].as_str() {
            Some(code) => Some(code.to_owned()),
            None => row["evaluator"]["returns"]
                .get(0)
                .map(|value| returning(value, language)),
        };
        evaluate(&criteria(language, code.as_deref()), &row["data"]).await
    };
    let large = of("custom-009", "lua").await;
    assert_eq!((large.valid, large.score), (Some(true), Some(1.0)));
    assert!(large.evidence.contains("score 3, taken as 1"), "{large:?}");

    let raised = of("custom-020", "lua").await.failed.unwrap();
    assert!(
        raised.contains("line 1") && raised.contains("kaput"),
        "{raised}"
    );

    let refused = of("custom-030", "lua").await.refused.unwrap();
    assert!(
        refused.contains("a script criterion needs `code` or `file`"),
        "{refused}"
    );

    let refused = of("custom-031", "ruby").await.refused.unwrap();
    assert!(refused.contains("unknown value `ruby`"), "{refused}");
    assert!(
        refused.contains("`lua`, `python` and `prolog`"),
        "{refused}"
    );

    if has("python3") {
        let returned = of("custom-041", "python").await;
        assert_eq!((returned.valid, returned.score), (Some(true), Some(1.0)));
        assert_eq!(returned.errors, Vec::<String>::new());
    }
    // If the runtime is missing, the script fails too, with a hint on how to install it.
    let prolog = of("custom-044", "prolog").await.failed.unwrap();
    assert!(prolog.contains("prolog"), "{prolog}");
}

/// `recommended`: a configuration error.
#[tokio::test]
async fn custom_033_without_code_the_loop_does_not_start() {
    assert_eq!(row("custom-033")["recommended"]["raises"]["kind"], "config");
    let got = evaluate(&criteria("lua", None), &json!("a")).await;
    assert!(got.refused.is_some(), "{got:?}");
}

#[tokio::test]
async fn custom_032_the_script_sees_the_iteration_number() {
    let row = row("custom-032");
    let expected = expected(&row);
    let passes_when = &row["evaluator"]["passes_when_iteration"];
    let code = format!("return state.iteration == {passes_when}");
    let replies: Vec<String> = row["generator"]["outputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|output| format!("[[reply]]\ntext = {output}\n"))
        .collect();
    let model = Arc::new(ScriptedModel::parse(Path::new("row.toml"), &replies.concat()).unwrap());
    let most = u32::try_from(row["max_iterations"].as_u64().unwrap()).unwrap();
    let criteria = reflect::criteria::parse(&criteria("lua", Some(&code)), "row.toml").unwrap();
    let settings = LoopSettings {
        max_iterations: Some(most),
        // The peer has no plateau.
        plateau_iterations: Some(most),
        ..LoopSettings::default()
    };
    let plan = Loop::builder(model, Arc::new(criteria))
        .settings(settings)
        .tools(tools())
        .build()
        .unwrap();
    let record = plan
        .run(
            &Task::new("Write a letter."),
            &mut |_: &Stamped| {},
            &CancellationToken::new(),
        )
        .await;
    let result = record.result();
    assert_eq!(json!(result.success), expected["success"]);
    assert_eq!(json!(result.iterations_used), expected["iterations"]);
    assert_eq!(json!(result.output), expected["output"]);
    assert_eq!(json!(result.best_output), expected["best"]);
    assert_eq!(
        json!(result.total_llm_calls),
        expected["calls"]["generator"]
    );
    let best = result.best_evaluation.unwrap();
    assert_eq!(json!(best.overall_score), expected["best_score"]);
    assert_eq!(json!(best.issues.len()), expected["errors_count"]);
    let history: Vec<Value> = result
        .history
        .versions
        .iter()
        .map(|version| {
            let evaluation = version.evaluation.as_ref().unwrap();
            let errors = evaluation
                .issues
                .iter()
                .map(|it| json!({ "message": it.description }));
            json!({
                "iteration": version.iteration,
                "output": version.output,
                "score": evaluation.overall_score,
                "valid": evaluation.satisfactory,
                "errors": errors.collect::<Vec<_>>(),
            })
        })
        .collect();
    assert_eq!(json!(history), expected["history"]);
}

/// Both are allowed; here the script fails because there is no `os` to call.
#[tokio::test]
async fn lua_002_scripts_cannot_run_commands() {
    let row = row("lua-002");
    let folder = tempfile::tempdir().unwrap();
    let proof = folder.path().join("proof");
    for code in [
        format!("os.execute('touch {}')\nreturn true", proof.display()),
        format!("io.popen('touch {}')\nreturn true", proof.display()),
    ] {
        let got = evaluate(&criteria("lua", Some(&code)), &json!("x")).await;
        let allowed = row["expected"]["either"].as_array().unwrap();
        let invalid = got.valid == Some(false) && allowed.contains(&json!("valid=false"));
        let error = got.failed.is_some() && allowed.contains(&json!("error"));
        assert!(invalid || error, "{got:?}");
        assert!(!proof.exists());
    }
}
