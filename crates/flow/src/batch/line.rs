//! Parses one line of the input.

use serde_json::{Map, Value};

use super::template::PromptTemplate;
use crate::evidence::Context;
use crate::source::similar;
use crate::types::{ContextBlock, Task};

/// The keys of a line. `instructions`, in data derived from `IFEval`, is the original form of the checks
/// under `criteria`; it is ignored.
const KEYS: [&str; 6] = [
    "id",
    "prompt",
    "context",
    "criteria",
    "vars",
    "instructions",
];

/// A line of the input: a task, or the reason why it is invalid.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The number of its first line in the input, from 1.
    pub line: u64,
    /// The given id, or else the line number. `None` if the line is invalid and its id is unreadable or
    /// belongs to another task.
    pub id: Option<String>,
    /// The task with its criteria, or the problem with the line.
    pub task: Result<Item, String>,
    /// The length of the line in bytes.
    pub bytes: usize,
}

/// A task of a batch.
#[derive(Debug, Clone)]
pub struct Item {
    /// The prompt with its context.
    pub task: Task,
    /// The line's own criteria: a file, the name of a set, or the text of a criteria file. `None` for those
    /// of the batch.
    pub criteria: Option<String>,
}

/// Returns the id of a line, if it has one. Numbers are valid ids.
///
/// # Errors
/// If the value is not a valid id.
pub(super) fn id(fields: &Map<String, Value>) -> Result<Option<String>, String> {
    match fields.get("id") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if !id.is_empty() => Ok(Some(id.clone())),
        Some(Value::Number(id)) => Ok(Some(id.to_string())),
        Some(_) => Err("`id` must be a string or a number".to_owned()),
    }
}

/// Parses the fields of a line.
///
/// # Errors
/// The problem with the line, in one sentence.
pub(super) fn item(
    mut fields: Map<String, Value>,
    base: &Task,
    template: Option<&PromptTemplate>,
    messages: u32,
) -> Result<Item, String> {
    if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let meant = match similar(unknown, KEYS) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "put custom values under `vars`".to_owned(),
        };
        return Err(format!("unknown key `{unknown}`: {meant}"));
    }
    let mut task = base.clone();
    if let Some(context) = fields.remove("context") {
        give_context(context, &mut task, messages)?;
    }
    let criteria = criteria(&mut fields)?;
    let own = text(&mut fields, "prompt")?;
    let vars = match fields.remove("vars") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(vars)) => vars,
        Some(_) => return Err("`vars` must be an object".to_owned()),
    };
    task.prompt = match (template, own) {
        (Some(template), own) => {
            let mut values = vars;
            values.extend(own.map(|prompt| ("prompt".to_owned(), Value::String(prompt))));
            values.extend(fields.remove("id").map(|id| ("id".to_owned(), id)));
            template.fill(&values).map_err(|error| error.to_string())?
        }
        // A prompt is a template only if the line has `vars`.
        (None, Some(prompt)) if !vars.is_empty() => PromptTemplate::new(&prompt)
            .map_err(|error| format!("invalid template in `prompt`: {error}"))?
            .fill(&vars)
            .map_err(|error| error.to_string())?,
        (None, Some(prompt)) => prompt,
        (None, None) => return Err("missing key `prompt`".to_owned()),
    };
    if task.prompt.trim().is_empty() {
        return Err("the prompt is empty".to_owned());
    }
    Ok(Item { task, criteria })
}

/// Returns the criteria of a line: a name, the text of a criteria file, or an object with its keys.
fn criteria(fields: &mut Map<String, Value>) -> Result<Option<String>, String> {
    match fields.remove("criteria") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(held @ Value::Object(_)) => toml::to_string(&held)
            .map(Some)
            .map_err(|error| format!("`criteria`: {error}")),
        Some(_) => Err("`criteria` must be a text, or an object as in a criteria file".to_owned()),
    }
}

fn text(fields: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match fields.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{key}` must be a text")),
    }
}

/// Adds the context: a text, several texts with or without names, or the contents of a context file.
fn give_context(context: Value, task: &mut Task, messages: u32) -> Result<(), String> {
    const WRONG: &str = "`context` must be a text, a list of texts or of `{\"name\", \"content\"}`, or an object \
                         as in a context file";
    let block = |name: &str, content: &str| ContextBlock {
        name: name.to_owned(),
        content: content.to_owned(),
    };
    match &context {
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => task.context.push(block("context", text)),
        Value::Array(parts) => {
            for (index, part) in parts.iter().enumerate() {
                let part = match part {
                    Value::String(text) => block(&format!("context {}", index + 1), text),
                    Value::Object(part) => match (part.get("name"), part.get("content")) {
                        (Some(Value::String(name)), Some(Value::String(text))) => block(name, text),
                        _ => return Err(WRONG.to_owned()),
                    },
                    _ => return Err(WRONG.to_owned()),
                };
                task.context.push(part);
            }
        }
        Value::Object(_) => serde_json::from_value::<Context>(context)
            .map_err(|error| format!("`context`: {error}"))?
            .give_to(task, messages),
        _ => return Err(WRONG.to_owned()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(line: Value, template: Option<&str>) -> Result<Item, String> {
        let Value::Object(fields) = line else {
            panic!("a line is an object");
        };
        let template = template.map(|text| PromptTemplate::new(text).unwrap());
        item(fields, &Task::default(), template.as_ref(), 3)
    }

    #[test]
    fn a_prompt_comes_from_the_line_or_the_template() {
        let prompt = |line, template| read(line, template).map(|item| item.task.prompt);
        assert_eq!(
            prompt(json!({"prompt": "A {{ line }}"}), None).unwrap(),
            "A {{ line }}"
        );
        let own = json!({"prompt": "About {{ x }}", "vars": {"x": "tea"}});
        assert_eq!(prompt(own, None).unwrap(), "About tea");
        let template = Some("{{ id }}: {{ prompt }}, {{ x }}");
        let line = json!({"id": 7, "prompt": "tea", "vars": {"x": [1]}});
        assert_eq!(prompt(line, template).unwrap(), "7: tea, [1]");
        assert!(
            prompt(json!({}), None)
                .unwrap_err()
                .contains("missing key `prompt`")
        );
        assert!(
            prompt(json!({"prompt": " \n"}), None)
                .unwrap_err()
                .contains("empty")
        );
    }

    #[test]
    fn context_is_text_or_a_list_of_texts_or_a_context_file() {
        let task =
            |context| read(json!({"prompt": "p", "context": context}), None).map(|it| it.task);
        assert_eq!(task(json!("notes")).unwrap().context[0].content, "notes");
        let two = task(json!(["a", {"name": "b.md", "content": "b"}])).unwrap();
        let names: Vec<&str> = two
            .context
            .iter()
            .map(|block| block.name.as_str())
            .collect();
        assert_eq!(names, ["context 1", "b.md"]);
        let known = task(json!({"retrievedFacts": [{"content": "f", "confidence": 0.5}]})).unwrap();
        assert_eq!(known.facts[0].content, "f");
        for bad in [
            json!(7),
            json!([7]),
            json!({"facts": 1}),
            json!([{"name": "x"}]),
        ] {
            assert!(task(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn criteria_are_named_or_inline() {
        let read = |criteria: Value| {
            let item = read(json!({"prompt": "p", "criteria": criteria}), None).unwrap();
            item.criteria.unwrap()
        };
        assert_eq!(read(json!("blog.toml")), "blog.toml");
        let object = json!({"threshold": 1, "criteria": [
            {"name": "short", "evaluator": "length", "unit": "words", "max": 9},
            {"name": "json", "evaluator": "schema", "schema": {"type": "object", "required": ["a"]}},
        ]});
        let text = "threshold = 1\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 9\n";
        for (held, number) in [(object, 2), (json!(text), 1)] {
            let held = read(held);
            assert!(crate::criteria::is_inline(&held), "{held}");
            let parsed = crate::criteria::parse(&held, "criteria").unwrap();
            assert_eq!(parsed.criteria.len(), number, "{held}");
        }
    }

    #[test]
    fn errors_name_the_problem() {
        for (line, said) in [
            (json!({"promt": "x"}), "did you mean `prompt`?"),
            (json!({"prompt": "x", "topic": "y"}), "under `vars`"),
            (json!({"prompt": 7}), "`prompt` must be a text"),
            (
                json!({"prompt": "x", "criteria": []}),
                "`criteria` must be a text",
            ),
            (
                json!({"prompt": "x", "vars": 7}),
                "`vars` must be an object",
            ),
        ] {
            let error = read(line, None).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
