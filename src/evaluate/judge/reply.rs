//! Finding JSON in what a model writes.

use serde_json::{Map, Value};

/// The most objects that are tried in a reply: each try reads on to the object's end.
const MAX_TRIES: usize = 200;

/// Tags that models put around their reasoning. What stands between them is no answer.
const REASONING: [&str; 3] = ["think", "thinking", "reasoning"];

/// The outermost JSON objects in a reply, in order. What stands within an object that was cut off is none: its
/// scores may be complete and its issues lost. What stands in a block of reasoning is none, either.
pub(super) fn objects(reply: &str) -> Vec<Map<String, Value>> {
    let text = without_reasoning(reply);
    let mut found = Vec::new();
    let mut at = 0;
    for _ in 0..MAX_TRIES {
        let Some(open) = text[at..].find('{') else {
            break;
        };
        at += open;
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Object(object))) => {
                at += values.byte_offset();
                found.push(object);
            }
            Some(Err(error)) if error.is_eof() => break,
            _ => at += 1,
        }
    }
    found
}

/// The reply after its blocks of reasoning. Servers leave them out, most of the time. Only blocks before the
/// first object count: later, a tag is text of the verdict, which may be about a draft that has such tags.
fn without_reasoning(reply: &str) -> &str {
    let mut rest = reply.trim_start();
    while let Some(tag) = REASONING
        .iter()
        .find(|tag| starts_with(rest, &format!("<{tag}>")))
    {
        let closing = format!("</{tag}>");
        match find(rest, &closing) {
            Some(end) => rest = rest[end + closing.len()..].trim_start(),
            // It never came to an answer.
            None => return "",
        }
    }
    // The opening tag may have been part of the prompt.
    for tag in REASONING {
        let closing = format!("</{tag}>");
        if !rest.starts_with(['{', '`'])
            && let Some(end) = find(rest, &closing)
            && rest[end..].contains('{')
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
    // Lower-casing ASCII letters moves no byte.
    text.to_ascii_lowercase().find(wanted)
}

/// Looks a key up under any of these names; null counts as not there.
pub(super) fn any<'a>(object: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a Value> {
    keys.iter()
        .filter_map(|key| object.get(*key))
        .find(|value| !value.is_null())
}

/// A truth value, also as text.
pub(super) fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" => Some(true),
            "false" | "no" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// A number, also as text.
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
