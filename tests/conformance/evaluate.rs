//! `reflect evaluate --evaluator SPEC`: the rows of TEA's `reflection.evaluate`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::program::Program;
use crate::rows;

/// Rows that we disagree with, with the reason. Each must differ; a row that agrees is an error.
const DISAGREE: &[(&str, &str)] = &[
    (
        "custom-009",
        "a score of 3 is outside 0 to 1, so there is no verdict; otherwise it would beat every other",
    ),
    (
        "custom-020",
        "failing code has not judged the draft: `failed`, neither a pass nor a zero",
    ),
    (
        "custom-031",
        "an unknown language is an error in the evaluator's file: exit code 2 before any evaluation",
    ),
    (
        "custom-041",
        "a `return` at the top level of Python code works, as in the documentation",
    ),
    (
        "custom-044",
        "a missing interpreter is a failure, not a bad draft",
    ),
    (
        "judge-042",
        "the draft is delimited as text to judge, not as instructions to the judge",
    ),
    (
        "judge-040",
        "an unreachable model is exit code 4, not a bad draft",
    ),
];

/// Whether a row of these features is about the surrounding loop, not about a verdict.
fn is_about_the_loop(row: &Value) -> bool {
    row["action"] == "reflection.loop"
}

#[test]
fn verdicts_agree_with_the_rows() {
    let rows = rows::of_features(&[
        "evaluate",
        "evaluate.schema",
        "evaluate.schema.coercion",
        "evaluate.custom",
        "evaluate.llm",
        "sandbox",
    ]);
    let (mut agree, mut disagree, mut of_loop) = (0, 0, 0);
    let mut wrong = Vec::new();
    for row in &rows {
        let id = row["id"].as_str().expect("an id");
        if is_about_the_loop(row) {
            of_loop += 1;
            continue;
        }
        let differences = rows::differences(row, &verdict(row));
        let listed = DISAGREE.iter().find(|(listed, _)| *listed == id);
        match (differences.is_empty(), listed) {
            (true, None) => agree += 1,
            (false, Some(_)) => disagree += 1,
            (true, Some(_)) => {
                wrong.push(format!("{id} agrees, and is listed as one that does not"));
            }
            (false, None) => {
                wrong.push(format!(
                    "{id} ({}): {}",
                    row["title"],
                    differences.join("; ")
                ));
            }
        }
    }
    println!(
        "{} rows: {agree} agree, {disagree} differ on purpose, {of_loop} are about the loop, {} are wrong",
        rows.len(),
        wrong.len()
    );
    assert!(agree + disagree >= 80, "rows are missing");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Returns the type of a row's evaluator.
fn kind(row: &Value) -> &str {
    match row["evaluator"]["type"].as_str() {
        Some(kind) => kind,
        // Code that tries to run a command.
        None => "custom",
    }
}

/// Returns the program's verdict on a row's data.
fn verdict(row: &Value) -> Value {
    let program = Program::new();
    program.file("spec.json", &spec(row).to_string());
    for (name, content) in row["files"].as_object().into_iter().flatten() {
        program.file(name, &content.to_string());
    }
    let data = match (&row["data"], &row["state"]["reflection_output"]) {
        (Value::Null, Value::Null) => json!("text under test"),
        (Value::Null, data) | (data, _) => data.clone(),
    };
    let mut args = vec!["evaluate", "--evaluator", "spec.json", "--format", "json"];
    args.extend(["--input-format", "json", "--quiet"]);
    if kind(row) == "custom" {
        args.push("--allow-exec");
    }
    if kind(row) == "llm" {
        // If the row names a model, it replies from a file.
        match row["evaluator"]["model"].as_str() {
            Some(model) => {
                program.file("named.toml", &script(row));
                // Only the user's configuration may name a script.
                let alias = format!("[aliases]\n{model} = 'scripted:named.toml'\n");
                program.file("home/.config/reflect/config.toml", &alias);
                program.file("judge.toml", "[[reply]]\ntext = 'Nobody asked me.'\n");
            }
            None => program.file("judge.toml", &script(row)),
        }
        args.extend(["--provider", "scripted:judge.toml"]);
    }
    let ran = program.run(&args, &data.to_string());
    match ran.code {
        Some(0 | 3 | 6) => serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", row["id"], ran.stdout)),
        Some(2 | 4) => rows::refusal(&ran.stderr),
        code => panic!("{}: exit code {code:?}\n{}", row["id"], ran.stderr),
    }
}

/// Converts the evaluator of a row to a file for `reflect`.
fn spec(row: &Value) -> Value {
    let evaluator = &row["evaluator"];
    match evaluator["type"].as_str() {
        None => json!({
            "type": "custom",
            "language": "lua",
            "run": "os.execute('true') return true",
        }),
        Some("custom") => match evaluator["returns"].get(0) {
            Some(returned) => json!({
                "type": "custom",
                "language": "lua",
                "run": match returned.get("$raise") {
                    Some(message) => format!("error({message})"),
                    None => format!("return {}", lua(returned)),
                },
            }),
            None => evaluator.clone(),
        },
        Some("llm") => {
            let mut spec = evaluator.clone();
            spec.as_object_mut().expect("an object").remove("responses");
            spec
        }
        Some(_) => evaluator.clone(),
    }
}

/// Returns the judge's replies as a script; the last one repeats. If a row specifies the judge's prompt, the
/// script replies only to that.
fn script(row: &Value) -> String {
    let answers = row["evaluator"]["responses"].as_array().expect("answers");
    let shown = row["recommended"]["judge_prompt_contains"]
        .get(0)
        .or_else(|| {
            let prompt = row["expected"]["judge_messages"].get(1)?.get("content")?;
            // A prompt without a template has no variables.
            row["evaluator"]["prompt"]
                .as_str()?
                .contains("{{")
                .then_some(prompt)
        });
    let mut script = String::new();
    for (number, answer) in answers.iter().enumerate() {
        script.push_str("[[reply]]\n");
        if number + 1 == answers.len() {
            script.push_str("times = 0\n");
        }
        if let Some(shown) = shown {
            let _ = writeln!(script, "contains = {shown}");
        }
        let _ = match answer.get("$raise") {
            Some(message) => writeln!(
                script,
                "error = {{ class = \"unreachable\", message = {message} }}"
            ),
            None => writeln!(script, "text = {answer}"),
        };
    }
    script
}

/// Converts a JSON value to a Lua expression.
fn lua(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(lua).collect();
            format!("{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("[{}] = {}", Value::from(key.as_str()), lua(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        scalar => scalar.to_string(),
    }
}
