//! Finds JSON in a judge's reply.

use serde_json::{Map, Value};

use crate::evaluate::json_text::{FoundValue, Scan, begins_json, lenient, scan};
use crate::evaluate::script_verdict;
use crate::evaluate::unique_keys::UniqueKeys;

/// Tags that models put around their reasoning. Text between them is not part of the answer.
const REASONING: [&str; 3] = ["think", "thinking", "reasoning"];

/// Returns the outermost JSON objects in a reply, in order. Ignores text in reasoning blocks.
///
/// # Errors
/// If any JSON in the reply is broken beyond what [`lenient`] accepts, or the objects are pieces of
/// a larger value: a piece may be a complete verdict while the issues are lost.
pub(super) fn objects(reply: &str) -> Result<Vec<Map<String, Value>>, String> {
    let text = without_reasoning(reply);
    let Scan { mut found, broken } = scan(text);
    if let Some(broken) = broken.iter().find(|it| begins_json(&text[it.start..])) {
        let start = broken.start;
        let end = text.rfind('}').map_or(start, |at| at + 1).max(start);
        let value = lenient(&text[start..end])
            .ok_or_else(|| format!("it holds no complete JSON object: {}", broken.reason))?;
        found.retain(|it| it.start < start);
        found.push(FoundValue { value, start, end });
    }
    let mut objects = Vec::new();
    for FoundValue { value, start, end } in found {
        let (before, after) = (text[..start].trim_end(), text[end..].trim_start());
        match value {
            Value::Object(object) => {
                if before.ends_with(['{', '[', '\\'])
                    || before.ends_with("\":")
                    || before.ends_with("':")
                    || after.starts_with([',', ']', '}', ':', '\\'])
                {
                    return Err("it holds a part of a JSON object, not all of it".to_owned());
                }
                // Values that needed the lenient parser are checked there and may be invalid JSON
                // here.
                if let Err(error) = serde_json::from_str::<UniqueKeys>(&text[start..end])
                    && error.is_data()
                {
                    return Err(format!("its JSON contradicts itself: {error}"));
                }
                objects.push(object);
            }
            Value::Array(items) if items.iter().any(Value::is_object) || before.ends_with(':') => {
                return Err("it holds a list where one JSON object is requested".to_owned());
            }
            _ => {}
        }
    }
    Ok(objects)
}

/// Returns the reply after its reasoning blocks, which most servers remove. Only blocks before the
/// first object count: later, a tag is text of the verdict, which may be about a draft that
/// contains such tags.
fn without_reasoning(reply: &str) -> &str {
    let mut rest = reply.trim_start();
    while let Some(tag) = REASONING
        .iter()
        .find(|tag| starts_with(rest, &format!("<{tag}>")))
    {
        let closing = format!("</{tag}>");
        match find(rest, &closing) {
            Some(end) => rest = rest[end + closing.len()..].trim_start(),
            // The reasoning never ended.
            None => return "",
        }
    }
    // The opening tag may be part of the prompt.
    for tag in REASONING {
        let closing = format!("</{tag}>");
        if !rest.starts_with(['{', '`'])
            && let Some(end) = find(rest, &closing)
            && rest[end..].contains('{')
            && !(scan(rest).found.iter()).any(|it| (it.start..it.end).contains(&end))
        {
            return &rest[end + closing.len()..];
        }
    }
    rest
}

fn starts_with(text: &str, start: &str) -> bool {
    text.get(..start.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

fn find(text: &str, wanted: &str) -> Option<usize> {
    // Lower-casing ASCII letters keeps byte offsets.
    text.to_ascii_lowercase().find(wanted)
}

/// Returns the value under any of these names. Null counts as absent.
///
/// # Errors
/// If several of these names have different values.
pub(super) fn any<'a>(
    object: &'a Map<String, Value>,
    keys: &[&str],
) -> Result<Option<&'a Value>, String> {
    let mut found: Option<(&str, &Value)> = None;
    for &key in keys {
        match (object.get(key), found) {
            (None | Some(Value::Null), _) => {}
            (Some(value), None) => found = Some((key, value)),
            (Some(value), Some((first, before))) => {
                let same = before == value
                    || number(before).is_some_and(|it| Some(it) == number(value))
                    || truth(before).is_some_and(|it| Some(it) == truth(value));
                if !same {
                    return Err(format!(
                        "it contradicts itself: `{first}` is {before} and `{key}` is {value}"
                    ));
                }
            }
        }
    }
    Ok(found.map(|(_, value)| value))
}

/// Parses a boolean, also from a string.
pub(super) fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) if !text.trim().is_empty() => script_verdict::truth(text),
        _ => None,
    }
}

/// Returns the only object of a reply that answers, or `None` if none does. Equal objects count as
/// one.
///
/// # Errors
/// If two answers differ, because it is unclear which one is meant.
pub(super) fn the_one<'a>(
    answers: impl IntoIterator<Item = &'a Map<String, Value>>,
) -> Result<Option<&'a Map<String, Value>>, String> {
    let mut answers = answers.into_iter();
    let first = answers.next();
    if answers.all(|other| Some(other) == first) {
        Ok(first)
    } else {
        Err("it holds two JSON objects that differ, where one is requested".to_owned())
    }
}

/// Parses a number, also from a string.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
    .filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(reply: &str) -> Vec<String> {
        objects(reply)
            .unwrap_or_default()
            .iter()
            .flat_map(|object| object.keys().cloned())
            .collect()
    }

    #[test]
    fn reasoning_is_no_answer() {
        for (reply, found) in [
            (r#"<think>{"a": 1}</think>{"b": 1}"#, &["b"][..]),
            (
                r#"<THINK>x</THINK> <reasoning>{"a": 1}</reasoning> {"b": 1}"#,
                &["b"],
            ),
            (r#"{"a": 1} maybe... </think> {"b": 1}"#, &["a", "b"]),
            (r#"Well, {"a": 1}? </think> {"b": 1}"#, &["b"]),
            (r#"<think>{"a": 1}"#, &[]),
            (r#"<think>{"a": 1}</think>"#, &[]),
            (r#"{"a": "the tag </think> has no {"}"#, &["a"]),
            (r#"Here: {"a": "<think>"} done </think>."#, &["a"]),
        ] {
            assert_eq!(keys(reply), found, "{reply}");
        }
    }

    #[test]
    fn yes_and_no_have_several_forms() {
        for (value, expected) in [
            (Value::Bool(true), Some(true)),
            (Value::from(" False "), Some(false)),
            (Value::from("yes"), Some(true)),
            (Value::from("perhaps"), None),
            (Value::from(1), None),
        ] {
            assert_eq!(truth(&value), expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_reply_makes_it_panic(reply in r#"(</?think>|</?reasoning>|[{}\[\]":,0-9a-z \n]|"a"|é|😀)*"#) {
            let _ = objects(&reply);
        }
    }
}
