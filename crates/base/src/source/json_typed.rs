use std::ops::Range;

use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::{
    Source, SourceError, list, similar,
    toml_text::{found_in_words, unknown, unknown_key},
};

/// Deserializes a whole JSON text. Errors give the position and the expected type.
pub fn json<T: DeserializeOwned>(source: &Source) -> Result<T, SourceError> {
    serde_json::from_str(source.text()).map_err(|error| {
        let whole = error.to_string();
        // The position is rendered separately.
        let message = whole
            .rfind(" at line ")
            .map_or(whole.as_str(), |end| &whole[..end]);
        let at = offset(source.text(), &error);
        let span = value_that_ends_at(source.text(), at);
        if error.classify() != Category::Data {
            return source
                .error(span, &format!("invalid JSON: {message}"))
                .help("check commas, quotes and brackets before this place");
        }
        if let Some(name) = message
            .strip_prefix("missing field `")
            .and_then(|rest| rest.strip_suffix('`'))
        {
            return source
                .error(span, &format!("the key `{name}` is missing"))
                .label("in the object that ends here");
        }
        if let Some(name) = message
            .strip_prefix("duplicate field `")
            .and_then(|rest| rest.strip_suffix('`'))
        {
            return source.error(span, &format!("the key `{name}` is set twice"));
        }
        if let Some((name, known)) = unknown(message, "unknown field `") {
            return unknown_key(source, span, name, &known);
        }
        if let Some((name, known)) = unknown(message, "unknown variant `") {
            let near = similar(name, known.iter().copied());
            return source
                .error(span, &format!("unknown value `{name}`"))
                .help_if(near.map(|n| format!("did you mean `{n}`?")))
                .help(format!("known values: {}", list(known)));
        }
        match message
            .strip_prefix("invalid type: ")
            .and_then(|rest| rest.rsplit_once(", expected "))
        {
            Some((found, wanted)) => source
                .error(span, &format!("expected {}", in_words(wanted)))
                .label(format!("this is {}", found_in_words(found, "an object"))),
            // One of our own types rejected a complete value; serde reports the character after it.
            None => source.error(value_that_ends_before(source.text(), at), message),
        }
    })
}

/// The byte offset of a serde error: the last byte that the parser consumed.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    let line_start = match error.line() {
        0 | 1 => 0,
        line => text
            .match_indices('\n')
            .nth(line - 2)
            .map_or(text.len(), |(at, _)| at + 1),
    };
    line_start + error.column().saturating_sub(1)
}

/// The value whose last byte is at `at`, or that begins right after it.
fn value_that_ends_at(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let mut last = at.min(bytes.len().saturating_sub(1));
    // serde reports a list or object before it consumes the bracket.
    while bytes
        .get(last)
        .is_some_and(|byte| b" \t\r\n:,".contains(byte))
        && last + 1 < bytes.len()
    {
        last += 1;
    }
    let mut first = last;
    if bytes.get(last) == Some(&b'"') {
        let escaped = |at: usize| {
            bytes[..at]
                .iter()
                .rev()
                .take_while(|b| **b == b'\\')
                .count()
                % 2
                == 1
        };
        while first > 0 {
            first -= 1;
            if bytes[first] == b'"' && !escaped(first) {
                break;
            }
        }
    } else {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let ends_word = bytes.get(last).copied().is_some_and(word);
        while ends_word && first > 0 && word(bytes[first - 1]) {
            first -= 1;
        }
    }
    first..(last + 1).min(text.len())
}

/// The value that ends at `at`, or before the bracket at `at`.
fn value_that_ends_before(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let mut last = at.min(bytes.len().saturating_sub(1));
    let mut brackets = 1;
    while last > 0 {
        match bytes[last] {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'}' | b']' if brackets > 0 => brackets -= 1,
            _ => break,
        }
        last -= 1;
    }
    value_that_ends_at(text, last)
}

fn in_words(wanted: &str) -> &str {
    match wanted {
        "a string" | "string" => "a string",
        "f64" | "f32" => "a number",
        "a sequence" => "an array `[...]`",
        other if other.starts_with("struct ") => "an object `{...}`",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "the test only checks errors")]
    struct Top {
        name: String,
        #[serde(default)]
        share: f64,
        #[serde(default)]
        items: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "the test only checks errors")]
    struct Inner {
        text: String,
    }

    #[test]
    fn errors_show_the_position_and_expected_type() {
        let cases = [
            ("{\"name\": 1}", "t:1:10: expected a string"),
            (
                "{\"name\": \"a\",\n \"share\": \"x\\\"y\"}",
                "t:2:11: expected a number",
            ),
            (
                "{\"name\": \"a\", \"items\": {}}",
                "t:1:24: expected an array `[...]`",
            ),
            ("{\"share\": 1}", "t:1:12: the key `name` is missing"),
            (
                "{\"name\": \"a\", \"name\": \"b\"}",
                "t:1:15: the key `name` is set twice",
            ),
            ("\"x\"", "t:1:1: expected an object `{...}`"),
            (
                "{\"name\": \"a\",}",
                "t:1:14: invalid JSON: trailing comma (check commas, quotes and brackets before this place)",
            ),
            (
                "",
                "t:1:1: invalid JSON: EOF while parsing a value (check commas, quotes and brackets before this place)",
            ),
        ];
        for (text, wanted) in cases {
            let error = json::<Top>(&Source::new("t", text)).unwrap_err();
            assert_eq!(error.to_string(), wanted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "[\\[\\]{}\",:a-z0-9\\\\\n é]{0,40}") {
            if let Err(error) = json::<Top>(&Source::new("t", &text)) {
                prop_assert!(!error.render(false).is_empty());
            }
        }
    }
}
