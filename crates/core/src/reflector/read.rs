use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::episode::ErrorFields;
use super::{Episode, Plan, PlannedTask, TaskResult, TaskStatus, dependencies};
use crate::source::{self, Source, SourceError, json_span, schema_of, similar};

const EXAMPLE: &str = "for example: {\"plan\": {\"id\": \"release\", \"tasks\": [{\"id\": \"build\", \"tool\": \"cargo\"}]}, \
     \"results\": [{\"task_id\": \"build\", \"status\": \"failed\", \"error\": \"timed out\", \"seconds\": 30}]}; \
     `reflect assess --schema` prints all keys";

/// Parses an episode from JSON. Ignores unknown keys, because executors have more to say, but
/// rejects a key that looks like a misspelling of a known one.
///
/// # Errors
/// If it is invalid JSON or not an episode, two tasks have the same name, a name is empty or
/// belongs to no task, tasks depend on each other in a cycle, a number is out of range, or a
/// success has an error. The error shows the position.
pub fn read(source: &Source) -> Result<Episode, SourceError> {
    let episode: Episode = source::json(source).map_err(|error| error.help(EXAMPLE))?;
    let checked = spelling(source)
        .and_then(|()| plan(&episode.plan))
        .and_then(|()| results(&episode));
    match checked {
        Ok(()) => Ok(episode),
        Err(error) => {
            let span = json_span(source.text(), &error.pointer).unwrap_or(0..0);
            Err(source.error(span, &error.message).help_if(error.help))
        }
    }
}

/// Returns the JSON Schema (2020-12) of the input of [`read`], generated from the types that parse
/// it.
pub fn schema() -> Value {
    let mut schema = schema_of::<Episode>().to_value();
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("A plan and its results, for `reflect assess`");
    schema
}

/// An error in the value at a JSON Pointer.
struct EpisodeError {
    pointer: String,
    message: String,
    help: Option<String>,
}

impl EpisodeError {
    fn new(pointer: String, message: impl Into<String>) -> Self {
        Self {
            pointer,
            message: message.into(),
            help: None,
        }
    }

    fn did_you_mean(self, name: Option<&str>) -> Self {
        Self {
            help: name.map(|name| format!("did you mean `{name}`?")),
            ..self
        }
    }
}

/// Finds a key that looks like a misspelling of a known one.
fn spelling(source: &Source) -> Result<(), EpisodeError> {
    let Ok(whole) = serde_json::from_str::<Value>(source.text()) else {
        return Ok(());
    };
    known_keys(&whole, "", source::fields::<Episode>())?;
    known_keys(&whole["plan"], "/plan", source::fields::<Plan>())?;
    for (place, task) in items(&whole["plan"]["tasks"]) {
        let pointer = format!("/plan/tasks/{place}");
        known_keys(task, &pointer, source::fields::<PlannedTask>())?;
    }
    for (place, result) in items(&whole["results"]) {
        let pointer = format!("/results/{place}");
        known_keys(result, &pointer, source::fields::<TaskResult>())?;
        let pointer = format!("{pointer}/error");
        known_keys(&result["error"], &pointer, source::fields::<ErrorFields>())?;
    }
    Ok(())
}

fn items(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

fn known_keys(value: &Value, pointer: &str, known: &[&str]) -> Result<(), EpisodeError> {
    let Some(map) = value.as_object() else {
        return Ok(());
    };
    for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
        // If the known key is present as well, the other one is not a misspelling of it.
        let open = known
            .iter()
            .copied()
            .filter(|name| !map.contains_key(*name));
        if let Some(meant) = similar(key, open) {
            let pointer = source::pointer::join(pointer, key);
            return Err(EpisodeError::new(pointer, format!("unknown key `{key}`"))
                .did_you_mean(Some(meant)));
        }
    }
    Ok(())
}

fn plan(plan: &Plan) -> Result<(), EpisodeError> {
    if plan.id.trim().is_empty() {
        return Err(EpisodeError::new(
            "/plan/id".to_owned(),
            "the plan's id is empty",
        ));
    }
    if plan.tasks.is_empty() {
        return Err(EpisodeError::new(
            "/plan/tasks".to_owned(),
            "the plan has no tasks",
        ));
    }
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, task) in plan.tasks.iter().enumerate() {
        let at = |key: &str| format!("/plan/tasks/{place}/{key}");
        if task.id.trim().is_empty() {
            return Err(EpisodeError::new(at("id"), "the task's id is empty"));
        }
        if places.insert(&task.id, place).is_some() {
            return Err(EpisodeError::new(
                at("id"),
                format!("another task has the id `{}`", task.id),
            ));
        }
        if task.expected_seconds.is_some_and(|seconds| seconds <= 0.0) {
            return Err(EpisodeError::new(
                at("expected_seconds"),
                "`expected_seconds` must be above 0",
            ));
        }
    }
    for (place, task) in plan.tasks.iter().enumerate() {
        for (number, id) in task.depends_on.iter().enumerate() {
            if !places.contains_key(id.as_str()) {
                let pointer = format!("/plan/tasks/{place}/depends_on/{number}");
                return Err(no_such_task(pointer, id, plan));
            }
        }
    }
    if let Some(place) = dependencies::waiting(plan).circle {
        let pointer = format!("/plan/tasks/{place}/depends_on");
        let message = "the dependencies of the tasks form a cycle that includes this task or that it depends on";
        return Err(EpisodeError::new(pointer, message));
    }
    Ok(())
}

fn results(episode: &Episode) -> Result<(), EpisodeError> {
    let tasks = episode.plan.tasks.iter();
    let ids: HashSet<&str> = tasks.map(|task| task.id.as_str()).collect();
    for (place, result) in episode.results.iter().enumerate() {
        let at = |key: &str| format!("/results/{place}/{key}");
        if !ids.contains(result.task_id.as_str()) {
            return Err(no_such_task(at("task_id"), &result.task_id, &episode.plan));
        }
        if result.status == TaskStatus::Success && result.error.is_some() {
            return Err(EpisodeError {
                help: Some("set `status` to `failed`, or remove the error".to_owned()),
                ..EpisodeError::new(at("error"), "a successful task must not have an error")
            });
        }
        if result.seconds.is_some_and(|seconds| seconds < 0.0) {
            return Err(EpisodeError::new(
                at("seconds"),
                "`seconds` must be at least 0",
            ));
        }
        if let (Some(started), Some(finished)) = (result.started, result.finished)
            && finished < started
        {
            return Err(EpisodeError::new(
                at("finished"),
                "it ended before it began",
            ));
        }
    }
    Ok(())
}

fn no_such_task(pointer: String, id: &str, plan: &Plan) -> EpisodeError {
    let near = similar(id, plan.tasks.iter().map(|task| task.id.as_str()));
    EpisodeError::new(pointer, format!("the plan has no task `{id}`")).did_you_mean(near)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::reflector::{ErrorCategory, ErrorCode};

    fn refused(text: &str) -> String {
        read(&Source::new("f", text)).unwrap_err().to_string()
    }

    const FULL: &str = r#"{
        "plan": {"id": "p", "goal": "g", "cost": 3, "tasks": [
            {"id": "a", "description": "d", "tool": "t", "expected_seconds": 1.5},
            {"id": "b", "depends_on": ["a"], "retries": 2}
        ]},
        "results": [
            {"task_id": "a", "status": "success", "output": {"x": 1}, "error": null,
             "started": "2026-01-01T00:00:00Z", "finished": "2026-01-01T02:00:02+02:00"},
            {"task_id": "b", "status": "failed", "seconds": 2,
             "error": {"message": "m", "type": "T", "code": 404, "category": "not_found", "retries": 1}}
        ]
    }"#;

    #[test]
    fn all_keys_are_read_and_others_left_alone() {
        let episode = read(&Source::new("f", FULL)).unwrap();
        assert_eq!(episode.results[0].duration(), Some(2.0));
        let error = episode.results[1].error.as_ref().unwrap();
        assert_eq!(error.code, Some(ErrorCode::Number(404)));
        assert_eq!(error.category, Some(ErrorCategory::NotFound));
        let again = serde_json::to_string(&episode).unwrap();
        assert_eq!(read(&Source::new("f", &again)).unwrap(), episode);
    }

    #[test]
    fn the_schema_takes_what_is_read() {
        let schema = schema();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let full: Value = serde_json::from_str(FULL).unwrap();
        assert!(validator.is_valid(&full));
        let mut text = full.clone();
        text["results"][1]["error"] = json!("timed out");
        assert!(validator.is_valid(&text));
        let mut wrong = full.clone();
        wrong["results"][1]["status"] = json!("sucess");
        assert!(!validator.is_valid(&wrong));
        wrong["results"] = Value::Null;
        assert!(!validator.is_valid(&wrong));
    }

    #[test]
    fn faults_are_shown_where_they_are() {
        let with = |task: &str, result: &str| {
            format!(
                "{{\"plan\": {{\"id\": \"p\", \"tasks\": [{{\"id\": \"ab\"}},\n{task}]}},\n\"results\": [{result}]}}"
            )
        };
        let task = |task: &str| refused(&with(task, ""));
        let result = |result: &str| refused(&with("{\"id\": \"b\"}", result));
        let cases = [
            (
                task("{\"id\": \"ab\"}"),
                "f:2:8: another task has the id `ab`",
            ),
            (task("{\"id\": \" \"}"), "f:2:8: the task's id is empty"),
            (
                task("{\"id\": \"b\", \"depends_on\": [\"ac\"]}"),
                "f:2:28: the plan has no task `ac` (did you mean `ab`?)",
            ),
            (
                task("{\"id\": \"b\", \"depends_on\": [\"b\"]}"),
                "f:2:27: the dependencies of the tasks form a cycle",
            ),
            (
                task("{\"id\": \"b\", \"expected_seconds\": 0}"),
                "f:2:33: `expected_seconds` must be above 0",
            ),
            (
                task("{\"id\": \"b\", \"tools\": \"x\"}"),
                "f:2:22: unknown key `tools` (did you mean `tool`?)",
            ),
            (
                result("{\"task_id\": \"abc\", \"status\": \"failed\"}"),
                "f:3:25: the plan has no task `abc` (did you mean `ab`?)",
            ),
            (
                result("{\"task_id\": \"ab\", \"status\": \"success\", \"error\": \"x\"}"),
                "f:3:61: a successful task must not have an error",
            ),
            (
                result("{\"task_id\": \"ab\", \"status\": \"sucess\"}"),
                "f:3:41: unknown value `sucess` (did you mean `success`?",
            ),
            (
                result("{\"task_id\": \"ab\", \"status\": \"failed\", \"started\": \"noon\"}"),
                "f:3:62: `noon` is not a time with a zone, such as `2026-01-31T12:00:00Z`",
            ),
            (
                result("{\"task_id\": \"ab\"}"),
                "f:3:29: the key `status` is missing",
            ),
            (
                result("{\"task_id\": \"ab\", \"status\": \"failed\", \"seconds\": -1}"),
                "f:3:62: `seconds` must be at least 0",
            ),
            (
                refused("{\"plan\": {\"id\": \"p\", \"tasks\": []}, \"results\": []}"),
                "f:1:31: the plan has no tasks",
            ),
            (refused("[]"), "f:1:"),
            (refused("{\"plan\""), "f:1:"),
        ];
        for (error, begins) in cases {
            assert!(error.starts_with(begins), "{error}\n{begins}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"([\[\]{}:,]|"(plan|id|tasks|results|task_id|status|failed|a)"|[0-9é \n]){0,40}"#) {
            if let Err(error) = read(&Source::new("f", &text)) {
                prop_assert!(!error.render(false).is_empty());
            }
        }
    }
}
