//! Rows of `reflection.loop`, related features and templates, as equivalent workflows.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use reflect::evaluate::{ExecPermission, Tools};
use reflect::model::{Sampling, ScriptedModel, Think};
use reflect::types::ExitCode;
use reflect::workflow::{
    self, ChosenModel, Event, Failure, ModelChoice, ModelSource, Outcome, World,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::custom::has;
use crate::rows::of_features;

/// Rows that we deliberately interpret differently, with the reason.
const DISAGREE: &[(&str, &str)] = &[
    (
        "loop-002",
        "a schema's score falls with the number of errors (seeds-origin §6.7), so that the best of several \
         is not just the first",
    ),
    ("loop-003", "as loop-002"),
    (
        "loop-017",
        "an unknown action is rejected before anything runs, in correctors too",
    ),
    (
        "fail-025",
        "scores go from 0 to 1: -5 counts as 0, so the draft is the best one",
    ),
    (
        "schema-034",
        "an unknown evaluator type is rejected before anything runs, as cfg-004 recommends",
    ),
    ("correct-007", "as loop-017"),
    (
        "judge-049",
        "a verdict without a score counts as 1 or 0; otherwise a valid draft would rank below a failed one",
    ),
];

/// A scripted model; `None` if no model may be called.
struct Script(Option<Arc<ScriptedModel>>);

#[async_trait(?Send)]
impl ModelSource for Script {
    async fn open(&self, _: &ModelChoice) -> Result<ChosenModel, Failure> {
        let Some(model) = &self.0 else {
            return Err(Failure::new(ExitCode::Provider, "there is no model"));
        };
        Ok(ChosenModel {
            model: Arc::<ScriptedModel>::clone(model),
            sampling: Sampling::default(),
            decided: Sampling::default(),
            think: Think::default(),
        })
    }
}

fn run(workflow: &workflow::Workflow, input: Map<String, Value>, script: Option<&str>) -> Outcome {
    watched(workflow, input, script, |_| {})
}

/// Runs a workflow with an observer of every event.
fn watched(
    workflow: &workflow::Workflow,
    input: Map<String, Value>,
    script: Option<&str>,
    observer: impl FnMut(&Event<'_>) + Send + 'static,
) -> Outcome {
    run_in(workflow, input, &world(script, observer))
}

fn world(script: Option<&str>, observer: impl FnMut(&Event<'_>) + Send + 'static) -> World {
    let model = script.map(|script| {
        Arc::new(ScriptedModel::parse(Path::new("script.toml"), script).expect("a script"))
    });
    let tools = Tools::with_worker(PathBuf::from(env!("CARGO_BIN_EXE_reflect")))
        .allow(ExecPermission::given_by_user());
    World::new(
        tools,
        Arc::new(Script(model)),
        Box::new(observer),
        CancellationToken::new(),
    )
}

fn run_in(workflow: &workflow::Workflow, input: Map<String, Value>, world: &World) -> Outcome {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(workflow.run(input, world))
}

/// The prefix of printed observations: who sees it, the state, and the length of the history.
const SEEN: &str = "SEEN";

/// Returns Lua code that prints what it sees and returns the value of the current attempt; the last one
/// repeats.
fn lua(who: &str, values: &Value) -> Value {
    let text = values.to_string();
    assert!(!text.contains("]==]"));
    let code = format!(
        "local seen = {{ history_len = #(state.reflection_history or {{}}) }}\n\
         for name, value in pairs(state) do\n\
           if name ~= 'reflection_history' then seen[name] = value end\n\
         end\n\
         print('{SEEN} {who} ' .. json.encode(seen))\n\
         local all = json.decode([==[{text}]==])\n\
         local one = all[math.min(state.reflection_iteration or 1, #all)]\n\
         if type(one) == 'table' and one['$raise'] then error(one['$raise'], 0) end\n\
         if type(one) == 'table' and one['$from_state'] then return state[one['$from_state']] end\n\
         return one"
    );
    json!({ "run": code, "language": "lua" })
}

fn actor(who: &str, row: &Value) -> Value {
    match row.get("unknown_action") {
        Some(action) => json!({ "action": action }),
        None => lua(who, &row["outputs"]),
    }
}

fn evaluator(row: &Value) -> Value {
    let mut evaluator = row.clone();
    if let Some(object) = evaluator.as_object_mut() {
        object.remove("responses");
    }
    let mut code = match (row.get("returns"), row.get("passes_when_iteration")) {
        (Some(returns), _) => lua("evaluator", returns),
        (None, Some(number)) => json!({
            "run": format!("return state.reflection_iteration == {number}"),
            "language": "lua",
        }),
        (None, None) => return evaluator,
    };
    code["type"] = json!("custom");
    code
}

/// Returns the judges' replies of a row as a script.
fn script_of(row: &Value) -> Option<String> {
    let responses = row["evaluator"]["responses"].as_array()?;
    let text = |response: &Value| reply("judge", response.as_str().unwrap_or_default());
    Some(responses.iter().map(text).collect())
}

/// What the generator, corrector and evaluator of a row saw, call by call.
#[derive(Default)]
struct Seen(Vec<(String, Value)>);

impl Seen {
    fn take(&mut self, event: &Event<'_>) {
        if let Event::Print { text, .. } = event {
            for line in text.lines() {
                let mut words = line.splitn(3, ' ');
                let (Some(SEEN), Some(who), Some(state)) =
                    (words.next(), words.next(), words.next())
                else {
                    panic!("unexpected output: {line}");
                };
                let state = serde_json::from_str(state).expect("JSON");
                self.0.push((who.to_owned(), state));
            }
        }
    }

    fn of(&self, who: &str) -> Vec<&Value> {
        let calls = self.0.iter().filter(|(name, _)| name == who);
        calls.map(|(_, state)| state).collect()
    }
}

/// Returns the differences between expected and actual observations. Values missing in the row were not
/// recorded.
fn sight(what: &str, wanted: &Value, seen: Option<&&Value>) -> Vec<String> {
    let Some(seen) = seen else {
        return vec![format!("{what}: nothing was seen")];
    };
    // Lua does not distinguish an empty list from an empty object.
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let fields = wanted.as_object().into_iter().flatten();
    fields
        .filter_map(|(key, wanted)| {
            let got = seen[key].clone();
            let same = match key.as_str() {
                "reflection_errors" => {
                    let (wanted, got) = (errors_of(wanted), errors_of(&json!(list(&got))));
                    wanted.len() == got.len() && wanted.iter().zip(&got).all(|(a, b)| is_said(a, b))
                }
                "reflection_best_score" => wanted.as_f64() == got.as_f64(),
                _ => *wanted == got,
            };
            (!same).then(|| format!("{what}: {key}: {wanted} is required, {got} was seen"))
        })
        .collect()
}

fn workflow_of(row: &Value) -> Value {
    let mut with = Map::new();
    for key in ["max_iterations", "on_failure", "data", "errors"] {
        if let Some(value) = row.get(key) {
            with.insert(key.to_owned(), value.clone());
        }
    }
    let action = row["action"].as_str().unwrap_or("reflection.loop");
    if let Some(generator) = row.get("generator").filter(|it| !it.is_null()) {
        with.insert("generator".to_owned(), actor("generator", generator));
    }
    if let Some(given) = row.get("evaluator").filter(|it| !it.is_null()) {
        with.insert("evaluator".to_owned(), evaluator(given));
    }
    if let Some(corrector) = row.get("corrector") {
        with.insert("corrector".to_owned(), actor("corrector", corrector));
    }
    json!({ "name": "row", "nodes": [{ "name": "it", "uses": action, "with": with, "output": "r" }] })
}

fn wanted(row: &Value) -> Map<String, Value> {
    let mut wanted = row["expected"].as_object().cloned().unwrap_or_default();
    if let Some(recommended) = row["recommended"].as_object() {
        if recommended.contains_key("raises") {
            wanted.clear();
        }
        // With another output, the old expectations about it do not apply either.
        if recommended.contains_key("output") {
            wanted.retain(|key, _| !matches!(key.as_str(), "best" | "top_level" | "history"));
        }
        // A corrector's text is a draft, for which the generator is not called.
        if recommended.contains_key("output") && row.get("corrector").is_some() {
            let calls = &row["expected"]["calls"];
            let count = |who: &str| calls[who].as_u64().unwrap_or_default();
            wanted["calls"]["generator"] = json!(count("generator") - count("corrector"));
        }
        wanted.extend(recommended.clone());
    }
    wanted
}

/// Returns the differences between the expectations and the result.
fn differences(row: &Value) -> Vec<String> {
    let wanted = wanted(row);
    let raises = wanted.contains_key("raises");
    let text = workflow_of(row).to_string();
    let workflow = match workflow::parse(&text, "row.yaml") {
        Ok(workflow) => workflow,
        Err(error) if raises => {
            let part = wanted["raises"]["message_contains"].as_str().unwrap_or("");
            return (!error.to_string().contains(part))
                .then(|| format!("raises: {error}"))
                .into_iter()
                .collect();
        }
        Err(error) => return vec![format!("refused: {error}")],
    };
    let input = row["state"].as_object().cloned().unwrap_or_default();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let watcher = Arc::clone(&seen);
    let script = script_of(row);
    let outcome = watched(&workflow, input, script.as_deref(), move |event| {
        watcher
            .lock()
            .expect("the lock is not poisoned")
            .take(event);
    });
    let seen = seen.lock().expect("the lock is not poisoned");
    let null = Value::Null;
    let result = outcome.state.get("r").unwrap_or(&null);
    let mut found = Vec::new();
    let mut same = |what: &str, wanted: &Value, got: &Value| {
        if wanted != got {
            found.push(format!("{what}: {wanted} is required, {got} came"));
        }
    };
    if raises {
        same("raises", &json!(true), &json!(outcome.failure.is_some()));
        same("code", &json!(3), &json!(outcome.exit_code));
    } else if let Some((_, failure)) = &outcome.failure {
        return vec![format!("failed: {failure}")];
    }
    let history = outcome
        .state
        .get("reflection_history")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for (key, wanted) in &wanted {
        let field = |name: &str| result[name].clone();
        match key.as_str() {
            "success" | "valid" | "exhausted" | "corrected_output" => {
                same(key, wanted, &field(key));
            }
            "error" => same(key, &json!(true), &json!(is_said(wanted, &field(key)))),
            "iterations" => same(key, wanted, &field("reflection_iteration")),
            "output" => same(key, wanted, &field("reflection_output")),
            "best" => same(key, wanted, &field("reflection_best")),
            "best_score" if raises => {}
            "best_score" => same(key, wanted, &field("reflection_best_score")),
            "history_len" => same(key, wanted, &json!(history.len())),
            "calls" => {
                for (who, count) in wanted.as_object().into_iter().flatten() {
                    // Only code records its calls; a model's calls are counted.
                    let calls = match who.as_str() {
                        "evaluator" if script.is_some() => json!(outcome.total_llm_calls),
                        "evaluator" if row["evaluator"].get("returns").is_none() => continue,
                        who => json!(seen.of(who).len()),
                    };
                    same(&format!("calls of the {who}"), count, &calls);
                }
            }
            "errors_count" => {
                let errors = field("reflection_errors");
                same(key, wanted, &json!(errors.as_array().map_or(0, Vec::len)));
            }
            "top_level" => {
                for (name, wanted) in wanted.as_object().into_iter().flatten() {
                    // The loop's own fields are never overwritten.
                    same(name, wanted, &field(name));
                }
            }
            "history" => {
                for (wanted, got) in wanted.as_array().into_iter().flatten().zip(&history) {
                    for name in ["iteration", "output", "score", "valid"] {
                        same(&format!("history {name}"), &wanted[name], &got[name]);
                    }
                    let errors = (errors_of(&wanted["errors"]), errors_of(&got["errors"]));
                    let alike = errors.0.len() == errors.1.len()
                        && errors.0.iter().zip(&errors.1).all(|(a, b)| is_said(a, b));
                    if !alike {
                        same("history errors", &wanted["errors"], &got["errors"]);
                    }
                }
            }
            _ => {}
        }
    }
    found.extend(sights(&wanted, &seen));
    found
}

/// Returns the differences in what the generator and the corrector saw.
fn sights(wanted: &Map<String, Value>, seen: &Seen) -> Vec<String> {
    let mut found = Vec::new();
    for who in ["generator", "corrector"] {
        let all = wanted.get(&format!("{who}_saw")).and_then(Value::as_array);
        let count = wanted.get("calls").and_then(|calls| calls[who].as_u64());
        let most = count.map_or(usize::MAX, |count| count.try_into().unwrap_or(usize::MAX));
        for (at, wanted) in all.into_iter().flatten().take(most).enumerate() {
            let what = format!("call {} of the {who}", at + 1);
            found.extend(sight(&what, wanted, seen.of(who).get(at)));
        }
    }
    found
}

/// Returns the messages of errors; for errors of a library, the rule instead.
fn errors_of(errors: &Value) -> Vec<Value> {
    let errors = errors.as_array().into_iter().flatten();
    errors
        .map(|error| error.get("keyword").unwrap_or(&error["message"]).clone())
        .collect()
}

/// Whether a message contains what is expected; ours may contain more, such as a line number.
fn is_said(wanted: &Value, got: &Value) -> bool {
    match (wanted.as_str(), got.as_str()) {
        (Some(wanted), Some(got)) => wanted.split(": ").all(|part| got.contains(part)),
        _ => wanted == got,
    }
}

/// Fails if an unlisted row differs, or if a listed one agrees.
fn verdict(what: &str, rows: &[(String, Vec<String>)]) {
    let known: HashSet<&str> = DISAGREE.iter().map(|(id, _)| *id).collect();
    let mut wrong = String::new();
    let mut differ = 0;
    for (id, found) in rows {
        let listed = known.contains(id.as_str());
        if listed {
            differ += 1;
        }
        if found.is_empty() == listed {
            let _ = writeln!(wrong, "{id} (listed: {listed}): {found:#?}");
        }
    }
    println!(
        "{what}: {} agree, {differ} differ on purpose, of {}",
        rows.len() - differ,
        rows.len()
    );
    assert!(wrong.is_empty(), "{wrong}");
}

fn id(row: &Value) -> String {
    row["id"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn loops_and_corrections() {
    let of_evaluators = of_features(&["evaluate.custom", "evaluate.llm"])
        .into_iter()
        .filter(|row| row["action"] == "reflection.loop");
    let rows: Vec<(String, Vec<String>)> = of_features(&[
        "loop.core",
        "loop.corrector",
        "loop.generator",
        "loop.result",
        "loop.tracking",
        "loop.state",
        "on_failure.return_best",
        "on_failure.return_last",
        "on_failure.raise",
        "config",
        "correct",
        "evaluate",
    ])
    .into_iter()
    .chain(of_evaluators)
    .map(|row| (id(&row), differences(&row)))
    .collect();
    assert!(rows.len() > 40);
    verdict("loops", &rows);
}

#[test]
fn templates() {
    let mut rows = Vec::new();
    for row in of_features(&["template"]) {
        let file = json!({ "nodes": [{
            "name": "t", "uses": "state.set", "with": { "rendered": row["template"] },
        }] });
        let wanted = wanted(&row);
        let state = row["state"].as_object().cloned().unwrap_or_default();
        let got = match workflow::parse(&file.to_string(), "row.yaml") {
            Err(_) => Value::from("raises"),
            Ok(workflow) => {
                let outcome = run(&workflow, state, None);
                let rendered = outcome.state.get("rendered").cloned();
                rendered.unwrap_or_else(|| Value::from("raises"))
            }
        };
        let plain = |value: &Value| match value {
            Value::String(text) => serde_json::from_str(text.trim_end_matches(" (JSON)"))
                .unwrap_or_else(|_| value.clone()),
            other => other.clone(),
        };
        let agrees = match id(&row).as_str() {
            // Cases that the row leaves open.
            "tmpl-008" => got == "raises",
            "tmpl-009" => got == "true null",
            _ if wanted.contains_key("raises") => got == "raises",
            _ => plain(&got) == plain(&wanted["rendered"]),
        };
        let problem = (!agrees).then(|| format!("{got} came, {wanted:?} is required"));
        rows.push((id(&row), problem.into_iter().collect()));
    }
    assert_eq!(rows.len(), 20);
    verdict("templates", &rows);
}

#[test]
fn registry_limits_and_the_shape_of_history() {
    let names: HashSet<&str> = workflow::action_names().collect();
    for row in of_features(&["registry"]) {
        for name in row["expected"]["names"].as_array().into_iter().flatten() {
            assert!(names.contains(name.as_str().unwrap_or_default()), "{name}");
        }
    }
    // The equivalent of a circuit breaker is the limit of a loop: exactly this many attempts, numbered from
    // 1. The next run counts from the start.
    for limit in [3_usize, 2, 100] {
        let row = json!({
            "generator": { "outputs": ["x"] },
            "evaluator": { "type": "custom", "returns": [false] },
            "max_iterations": limit,
        });
        let workflow = workflow::parse(&workflow_of(&row).to_string(), "row.yaml").unwrap();
        for _ in 0..2 {
            let outcome = run(&workflow, Map::new(), None);
            let history = &outcome.state.get("r").unwrap()["reflection_history"];
            let numbers: Vec<u64> = history
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["iteration"].as_u64().unwrap())
                .collect();
            assert_eq!(numbers, (1..=limit as u64).collect::<Vec<_>>());
            assert_eq!(outcome.exit_code, ExitCode::NotMet);
        }
    }
    let row = json!({
        "generator": { "outputs": [{ "result": "first" }, { "result": "test" }] },
        "evaluator": { "type": "custom", "returns": [
            { "valid": false, "score": 0.75, "errors": [{ "message": "validation failed" }] },
        ] },
        "max_iterations": 2,
    });
    let workflow = workflow::parse(&workflow_of(&row).to_string(), "row.yaml").unwrap();
    let outcome = run(&workflow, Map::new(), None);
    let attempt = &outcome.state.get("reflection_history").unwrap()[1];
    for row in of_features(&["history.shape"]) {
        for (key, wanted) in row["expected"]["attempt"].as_object().unwrap() {
            assert_eq!(&attempt[key], wanted, "{key}");
        }
    }
    for key in ["evaluation", "usage", "duration_ms"] {
        assert!(!attempt[key].is_null(), "{key}: {attempt}");
    }
}

#[test]
fn cb_003_ten_threads_each_reach_the_limit_of_their_loop() {
    let wanted = &of_features(&["circuit_breaker"])
        .into_iter()
        .find(|row| row["id"] == "cb-003")
        .expect("the row")["expected"];
    let limit = wanted["limit"].as_u64().expect("a limit");
    let file = json!({ "nodes": [{ "name": "it", "uses": "reflection.loop", "output": "r", "with": {
        "generator": { "uses": "state.set", "with": { "by": "{{ state.me }}", "at": "{{ state.reflection_iteration }}" } },
        "evaluator": { "type": "schema", "schema": { "type": "string" } },
        "max_iterations": limit,
    } }] });
    let workflow = workflow::parse(&file.to_string(), "row.yaml").unwrap();
    let judged = Arc::new(Mutex::new(0));
    let counts = Arc::clone(&judged);
    // One file and one world for all threads.
    let world = world(None, move |event: &Event<'_>| {
        if let Event::Loop { event, .. } = event
            && matches!(event.event, reflect::types::Event::Evaluation { .. })
        {
            *counts.lock().expect("the lock is not poisoned") += 1;
        }
    });
    thread::scope(|scope| {
        for me in 0..10 {
            let (workflow, world) = (&workflow, &world);
            scope.spawn(move || {
                let input = Map::from_iter([("me".to_owned(), json!(me))]);
                let outcome = run_in(workflow, input, world);
                let result = outcome.state.get("r").expect("a result");
                assert_eq!(result["exhausted"], wanted["open"]);
                assert_eq!(result["reflection_iteration"], limit);
                let drafts: Vec<&Value> = result["reflection_history"]
                    .as_array()
                    .expect("a history")
                    .iter()
                    .map(|entry| &entry["output"])
                    .collect();
                let all: Vec<Value> = (1..=limit)
                    .map(|at| json!({ "by": me, "at": at }))
                    .collect();
                assert_eq!(drafts, all.iter().collect::<Vec<_>>());
            });
        }
    });
    assert_eq!(
        *judged.lock().expect("the lock is not poisoned"),
        10 * limit
    );
}

#[test]
fn a_thousand_iterations_keep_a_complete_history() {
    let file = json!({ "nodes": [{ "name": "it", "uses": "reflection.loop", "with": {
        "generator": {
            "uses": "state.set",
            "with": { "text": "the same text again, after {{ state.reflection_history | length }}" },
        },
        "evaluator": { "type": "schema", "schema": { "type": "string" } },
        "max_iterations": 1000,
    } }] });
    let workflow = workflow::parse(&file.to_string(), "row.yaml").unwrap();
    let begun = Instant::now();
    let outcome = run(&workflow, Map::new(), None);
    let history = outcome.state.get("reflection_history").unwrap();
    assert_eq!(history.as_array().unwrap().len(), 1000);
    assert_eq!(history[999]["iteration"], 1000);
    assert_eq!(
        history[999]["output"]["text"],
        "the same text again, after 999"
    );
    assert!(
        history.to_string().len() < 2_000_000,
        "it grows with its content"
    );
    assert!(
        begun.elapsed() < Duration::from_mins(2),
        "{:?}",
        begun.elapsed()
    );
}

/// Runs one of our files, which is equivalent to an example of the reference.
fn file(name: &str, input: &Value, script: &str) -> Outcome {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/workflows")
        .join(name);
    let workflow = workflow::load(&path, &|_| reflect::source::FileAccess::Folder)
        .unwrap_or_else(|error| panic!("{}", error.render(false)));
    let outcome = run(&workflow, input.as_object().cloned().unwrap(), Some(script));
    if let Some((node, failure)) = &outcome.failure {
        panic!("{name}: {node}: {failure:?}");
    }
    outcome
}

/// A reply that is given once, to any request with this purpose.
fn reply(purpose: &str, text: &str) -> String {
    format!("[[reply]]\npurpose = '{purpose}'\ntext = '''{text}'''\n")
}

fn of<'o>(outcome: &'o Outcome, path: &str) -> &'o Value {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let value = outcome.state.get(first).unwrap_or(&Value::Null);
    if rest.is_empty() {
        return value;
    }
    value.pointer(&format!("/{rest}")).unwrap_or(&Value::Null)
}

#[test]
fn yaml_001_and_002_code_generates_and_corrects() {
    if !has("python3") {
        return;
    }
    let outcome = file("two_steps.yaml", &json!({ "subject": "climate" }), "");
    assert_eq!(of(&outcome, "generation_attempts"), 2);
    assert_eq!(of(&outcome, "note/summary"), "what it is about");
    let first = of(&outcome, "reflection_history/0/errors/0/message");
    assert!(first.as_str().unwrap().contains("summary"), "{first}");
    assert_eq!(outcome.total_llm_calls, 0);

    let outcome = file("words.yaml", &json!({ "min_words": 50 }), "");
    let scores: Vec<f64> = of(&outcome, "reflection_history")
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["score"].as_f64().unwrap())
        .collect();
    assert_eq!(scores, [0.4, 0.8, 1.0]);
    assert_eq!(of(&outcome, "reflection_history/0/errors/0/field"), "text");
    assert_eq!(outcome.exit_code, ExitCode::Success);
}

#[test]
fn yaml_003_templates_are_rendered_in_each_iteration() {
    if !has("python3") {
        return;
    }
    let script = [
        reply("write", "haiku 1"),
        reply("judge", r#"{"valid": false, "score": 0.3, "reason": "dull", "suggestions": ["more frogs"]}"#),
        "[[reply]]\npurpose = 'write'\ncontains = 'Last time: dull'\ntext = 'haiku 2'\n".to_owned(),
        "[[reply]]\npurpose = 'judge'\ncontains = 'haiku 2'\ntext = '{\"valid\": true, \"score\": 0.9}'\n".to_owned(),
    ]
    .concat();
    let outcome = file("haiku.yaml", &json!({ "task": "a haiku" }), &script);
    assert_eq!(outcome.output, json!({ "haiku": "haiku 2", "attempts": 2 }));
    assert_eq!(outcome.total_llm_calls, 4);
}

#[test]
fn yaml_004_json_is_extracted_from_the_reply() {
    if !has("python3") {
        return;
    }
    let script = reply(
        "write",
        "Here it is:\n```json\n{\"name\": \"Alice\", \"age\": 3}\n```",
    );
    let outcome = file(
        "bare_names.yaml",
        &json!({ "request": "a person" }),
        &script,
    );
    assert_eq!(of(&outcome, "result/name"), "Alice");
    assert_eq!(of(&outcome, "result/attempts"), 1);
    assert_eq!(of(&outcome, "result/fine"), true);
    assert_eq!(outcome.total_llm_calls, 1);
}

#[test]
fn yaml_005_and_006_pass_is_a_verdict_and_history_has_evaluations() {
    if !has("python3") {
        return;
    }
    let script = [
        "[[reply]]\npurpose = 'write'\ncontains = 'style of a poet'\ntext = 'text one'\n".to_owned(),
        "[[reply]]\npurpose = 'judge'\ncontains = 'text one'\ntext = '{\"pass\": true, \"score\": 0.9, \"reason\": \"ok\", \"suggestions\": []}'\n".to_owned(),
    ]
    .concat();
    let input = json!({ "style": "poet", "topic": "energy" });
    let outcome = file("passes.yaml", &input, &script);
    assert_eq!(of(&outcome, "metrics/quality_score"), 0.9);
    assert_eq!(of(&outcome, "metrics/feedback"), "ok");
    assert_eq!(of(&outcome, "done"), true);
    assert_eq!(of(&outcome, "content/reflection_output"), "text one");
    assert_eq!(outcome.total_llm_calls, 2);
}

#[test]
fn yaml_007_the_first_of_two_documents_runs_with_a_threshold() {
    let script = [
        reply("write", "one"),
        reply("judge", r#"{"pass": true, "score": 0.5, "errors": ["too short"]}"#),
        "[[reply]]\npurpose = 'write'\ncontains = 'Be brief about haiku'\ntext = 'two'\n".to_owned(),
        "[[reply]]\npurpose = 'judge'\ncontains = 'two'\ntext = '{\"pass\": true, \"score\": 0.9}'\n".to_owned(),
    ]
    .concat();
    let outcome = file("two_documents.yaml", &json!({ "query": "haiku" }), &script);
    assert_eq!(of(&outcome, "reflection_result/reflection_output"), "two");
    assert_eq!(of(&outcome, "reflection_iteration"), 2);
    assert_eq!(outcome.output, "two");
}

#[test]
fn yaml_007_an_action_of_another_tool_is_rejected_with_its_position() {
    let text =
        "nodes:\n  - name: begin\n    action: learn.textgrad.variable\n    with: {name: prompt}\n";
    let error = workflow::parse(text, "x.yaml").err().unwrap();
    assert_eq!(error.position(), Some((3, 13)));
    assert!(
        error
            .message()
            .contains("unknown action `learn.textgrad.variable`")
    );
}

#[test]
fn yaml_009_the_complete_example_runs() {
    if !has("python3") {
        return;
    }
    let script = [
        reply("write", r#"{"name": "John"}"#),
        "[[reply]]\npurpose = 'write'\ncontains = 'Message: '\ntext = '{\"name\": \"John\", \"email\": \"j@x.co\", \"age\": 3}'\n".to_owned(),
    ]
    .concat();
    let outcome = file(
        "profile_and_use.yaml",
        &json!({ "request": "create John" }),
        &script,
    );
    assert_eq!(
        outcome.output,
        json!({ "message": "Made a profile of John" })
    );
    assert_eq!(of(&outcome, "reflection_iteration"), 2);
    assert_eq!(of(&outcome, "profile/email"), "j@x.co");
    assert_eq!(outcome.total_llm_calls, 2);
}
