//! Finds JSON in model output: bare, in fences, and within prose.

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;

use super::unique_keys::UniqueKeys;

/// A complete JSON value in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundValue {
    pub(super) value: Value,
    /// The byte offset of its start.
    pub(super) start: usize,
    /// The byte offset of its end, exclusive.
    pub(super) end: usize,
}

/// Text that begins as JSON but is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BrokenValue {
    /// The byte offset of its start.
    pub(super) start: usize,
    /// The byte offset of the syntax error.
    pub(super) end: usize,
    /// The syntax error.
    pub(super) reason: String,
}

/// The JSON in a text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Scan {
    /// The outermost complete values, in order.
    pub(super) found: Vec<FoundValue>,
    /// The outermost broken pieces, in order.
    pub(super) broken: Vec<BrokenValue>,
}

impl Scan {
    /// Returns the longest broken piece.
    pub(super) fn longest_broken(&self) -> Option<&BrokenValue> {
        self.broken.iter().max_by_key(|it| it.end - it.start)
    }
}

/// Finds the outermost JSON values that begin with `{` or `[`.
///
/// Values inside a broken or truncated value are not returned: they may be complete although their
/// surroundings are lost. Runs in linear time.
pub(super) fn scan(text: &str) -> Scan {
    let mut scan = Scan::default();
    let mut at = 0;
    while let Some(open) = text[at..].find(['{', '[']) {
        at += open;
        let rest = &text[at..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let error = match values.next() {
            Some(Ok(value)) => {
                let end = at + values.byte_offset();
                let start = std::mem::replace(&mut at, end);
                scan.found.push(FoundValue { value, start, end });
                continue;
            }
            Some(Err(error)) => error,
            None => break,
        };
        let progress = offset(rest, &error);
        let message = error.to_string();
        let too_deep = message.starts_with("recursion limit");
        let json = begins_json(rest);
        let told = |b: &u8| *b == b'"' || b.is_ascii_digit();
        if json || too_deep || rest.as_bytes()[..progress].iter().any(told) {
            scan.broken.push(BrokenValue {
                start: at,
                end: at + progress,
                reason: if error.is_eof() {
                    "it is cut off".to_owned()
                } else if too_deep {
                    "it is nested too deeply".to_owned()
                } else {
                    let end = message.find(" at line ").unwrap_or(message.len());
                    message[..end].to_owned()
                },
            });
        }
        if error.is_eof() || too_deep {
            break;
        }
        at += if json { length(rest) } else { progress.max(1) };
        at = text.ceil_char_boundary(at);
    }
    scan
}

/// Returns whether a text that begins with a bracket is probably JSON: its first token is a string
/// or a key. A brace in prose, a `[[table]]` or a reference in brackets is not.
pub(super) fn begins_json(text: &str) -> bool {
    let inner = text.trim_start_matches(|c: char| c == '[' || c.is_whitespace());
    let (object, inner) = match inner.strip_prefix('{') {
        Some(inner) => (true, inner.trim_start()),
        None => (false, inner),
    };
    if inner.starts_with(['"', '\'', '“', '\\'])
        || inner.starts_with("//")
        || inner.starts_with("/*")
    {
        return true;
    }
    let key = inner.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
    object && key.len() < inner.len() && key.trim_start().starts_with(':')
}

/// Returns the length of a broken piece: up to the bracket that closes its first one, ignoring
/// strings, or the whole text if the brackets do not match.
fn length(text: &str) -> usize {
    let mut open = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' if open.pop() != Some(byte) => break,
            b'}' | b']' if open.is_empty() => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Parses JSON with two harmless mistakes that models make: a trailing comma, and a line break
/// within a string. Returns `None` for any other mistake, or if an object has a duplicate key.
pub(super) fn lenient(text: &str) -> Option<Value> {
    let options = ParseOptions {
        allow_trailing_commas: true,
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let read: UniqueKeys = parse_to_serde_value(text, &options).ok()?;
    Some(read.0)
}

/// Returns the byte offset at which parsing failed.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    let lines = error.line().saturating_sub(1);
    let before: usize = text.split_inclusive('\n').take(lines).map(str::len).sum();
    (before + error.column().saturating_sub(1)).min(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values(text: &str) -> Vec<Value> {
        let found = scan(text).found;
        found.into_iter().map(|found| found.value).collect()
    }

    #[test]
    fn values_are_found_among_prose_and_fences() {
        assert_eq!(values("no {json} here [see below]"), Vec::<Value>::new());
        assert_eq!(
            values("First {\"a\": 1}, then:\n```json\n[1, {\"b\": 2}]\n```\nDone {really}."),
            [json!({ "a": 1 }), json!([1, { "b": 2 }])]
        );
        assert_eq!(values("{x {\"a\": 1}"), [json!({ "a": 1 })]);
        assert_eq!(values("é{é}{\"é\": \"é\"}"), [json!({ "é": "é" })]);
    }

    #[test]
    fn pieces_of_what_is_broken_are_no_values() {
        assert_eq!(values("{\"a\": {\"b\": 1}, \"c\""), Vec::<Value>::new());
        assert_eq!(scan("[[table]]\n{x} [ {").broken, []);
        assert_eq!(values("{\"a\": {\"b\": 1}, oops}"), Vec::<Value>::new());
        for broken in [
            "{\"a\": {\"b\": 1} \"c\": {\"d\": 1}}",
            "{\"a\": \"x \"y\" z\", \"c\": {\"d\": 1}}",
            "{a: 1, c: {\"d\": 1}}",
            "{'a': 1, 'c': {\"d\": 1}}",
            "[{\"a\": 1,}, {\"d\": 1}]",
        ] {
            assert_eq!(values(broken), Vec::<Value>::new(), "{broken}");
            assert_eq!(
                values(&format!("{broken} {{\"e\": 2}}")),
                [json!({ "e": 2 })]
            );
        }
        let scan = scan("text\n{\"a\": {\"b\": 1}, oops} {x}");
        let broken = scan.longest_broken().unwrap();
        assert_eq!((broken.start, broken.end), (5, 21));
        assert!(broken.reason.contains("key must be a string"), "{broken:?}");
    }

    #[test]
    fn depth_and_length_are_no_danger() {
        let deep = "[".repeat(1_000_000);
        let scanned = scan(&deep);
        assert!(scanned.found.is_empty());
        assert_eq!(scanned.broken[0].reason, "it is nested too deeply");
        for depth in [200, 100_000] {
            let deep = format!("{{\"a\":{}1,}}", "[".repeat(depth));
            assert_eq!(lenient(&deep), None);
        }
        let started = std::time::Instant::now();
        assert!(values(&"{\"a\":".repeat(60)).is_empty());
        assert!(values(&"{x".repeat(500_000)).is_empty());
        assert!(values(&"{\"a\":1,x".repeat(200_000)).is_empty());
        assert!(started.elapsed().as_secs() < 20);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"([{}\[\]":,0-9a-z \n]|é|😀|\\)*"#) {
            let _ = scan(&text);
        }

        #[test]
        fn prose_around_a_value_changes_nothing(before in "[^{}\\[\\]]{0,80}", after in "[^{}\\[\\]]{0,80}") {
            let value = json!({ "a": [1, { "b": "}" }] });
            prop_assert_eq!(values(&format!("{before}{value}{after}")), [value]);
        }
    }
}
