//! Extracts the statement of an error message, without quoted parts such as file names, addresses
//! and values, which may contain any word.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::{ErrorCode, TaskError};

/// The maximum number of bytes of a message that are considered, and the maximum number of lines.
/// The cause is at the beginning or, in a traceback, at the end.
const MOST_BYTES: usize = 4000;
const MOST_LINES: usize = 20;

/// The minimum number of words of a statement after its quotations are removed.
const LEAST_WORDS: usize = 2;

/// Words that say only that there is an error.
const EMPTY_WORDS: [&str; 6] = ["error", "failed", "failure", "fatal", "exception", "x"];

static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#""[^"\n]*"|`[^`\n]*`|(^|[\s(\[:=,])'[^'\n]*'"#).expect("a test uses it")
});

static BODY: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(.*?)([:,;.!?)\]]*)$").expect("a test uses it"));

/// An error type at the beginning of a line: `java.net.SocketTimeoutException: …`.
static TYPE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:Uncaught |Error: )?(?:[\w.]*[.:])?([A-Z]\w*(?:Error|Exception))\b")
        .expect("a test uses it")
});

/// Returns the lines of a message that may state the cause, most likely first.
pub(super) fn lines(message: &str) -> Vec<&str> {
    let traceback = message.contains("Traceback (most recent call last)");
    let not_blank = |line: &&str| !line.trim().is_empty();
    if traceback {
        // The exception itself follows its indented stack.
        let last = message
            .lines()
            .rev()
            .take(MOST_LINES)
            .filter(not_blank)
            .find(|line| !line.starts_with([' ', '\t']));
        return last.into_iter().map(shortened).collect();
    }
    message
        .lines()
        .filter(not_blank)
        .take(MOST_LINES)
        .map(shortened)
        .collect()
}

fn shortened(line: &str) -> &str {
    let line = line.trim();
    let mut end = line.len().min(MOST_BYTES);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

/// Returns the error type at the beginning of a line.
pub(super) fn type_named(line: &str) -> Option<&str> {
    TYPE.captures(line)?.get(1).map(|found| found.as_str())
}

/// Returns the statement of a line: in lower case, words separated by single spaces, quotations and
/// names replaced by `x`.
pub(super) fn statement(line: &str) -> String {
    let line = line.replace('’', "'").replace("I/O", "io");
    let bare = plain(&QUOTED.replace_all(&line, "$1 x "));
    let not_blank = words(&bare)
        .filter(|word| !EMPTY_WORDS.contains(word))
        .count();
    if not_blank < LEAST_WORDS && QUOTED.is_match(&line) && type_named(&line).is_none() {
        // `Error: "Permission denied"` states what it quotes; `KeyError: 'timeout'` does not.
        return plain(&line.replace(['"', '`'], " "));
    }
    bare
}

/// Returns the words of a statement.
pub(super) fn words(statement: &str) -> impl DoubleEndedIterator<Item = &str> {
    statement
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
}

fn plain(text: &str) -> String {
    let tokens: Vec<String> = text
        .split_whitespace()
        .map(|token| match token {
            // A dash separates clauses like a comma.
            "-" | "–" | "—" => ",".to_owned(),
            token => {
                let parts = BODY.captures(token);
                let part = |at| parts.as_ref().and_then(|parts| parts.get(at));
                let body = part(1).map_or(token, |body| body.as_str());
                let end = part(2).map_or("", |end| end.as_str());
                if is_name(body) {
                    format!("x{end}")
                } else {
                    token.to_lowercase().replace(['_', '-'], " ")
                }
            }
        })
        .collect();
    tokens.join(" ")
}

/// Returns whether a word without its final punctuation is a path, an address, a file, an option or
/// an assignment.
fn is_name(body: &str) -> bool {
    let file = || {
        let inner = body.trim_matches('.');
        inner.contains('.')
            && inner
                .chars()
                .all(|c| c.is_alphanumeric() || "._-".contains(c))
    };
    body.contains(['/', '\\', '=', '@'])
        || body.contains("::")
        || (body.starts_with("--") && body.len() > 2)
        || file()
}

/// Parses a message that is an error as a JSON object, as many services return it.
pub(super) fn unpacked(message: &str) -> Option<TaskError> {
    let text = message.trim();
    if !text.starts_with('{') || text.len() > 16 * MOST_BYTES {
        return None;
    }
    let Ok(Value::Object(map)) = serde_json::from_str(text) else {
        return None;
    };
    // `{"error": {"message": …}}`
    match map.get("error") {
        Some(Value::Object(inner)) => Some(of_object(inner)),
        _ => Some(of_object(&map)),
    }
}

fn of_object(map: &Map<String, Value>) -> TaskError {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    let said = ["message", "error", "detail", "description", "reason"];
    TaskError {
        message: said
            .into_iter()
            .find_map(text)
            .unwrap_or_default()
            .to_owned(),
        kind: text("type").map(str::to_owned),
        code: ["code", "status"]
            .into_iter()
            .find_map(|key| match map.get(key)? {
                Value::Number(number) => number.as_i64().map(ErrorCode::Number),
                Value::String(name) => Some(ErrorCode::Name(name.clone())),
                _ => None,
            }),
        category: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_quoted_or_named_is_not_stated() {
        let cases = [
            ("Connection timeout", "connection timeout"),
            (
                "Could not parse the title \"Permission denied, a novel\"",
                "could not parse the title x",
            ),
            ("Can't open 'timeout.txt'", "can't open x"),
            ("the user’s input is wrong", "the user's input is wrong"),
            (
                "GET https://example.com/timeout: HTTP 500",
                "get x: http 500",
            ),
            ("cannot read network.py, line 3", "cannot read x, line 3"),
            ("unknown option --timeout", "unknown option x"),
            ("DEADLINE_EXCEEDED", "deadline exceeded"),
            ("read-only file system", "read only file system"),
            ("a time-out - again", "a time out , again"),
            ("Error: \"Permission denied\"", "error: permission denied"),
            ("I/O error", "io error"),
        ];
        for (line, stated) in cases {
            assert_eq!(statement(line), stated, "{line}");
        }
    }

    #[test]
    fn types_stand_at_the_beginning() {
        assert_eq!(
            type_named("java.net.SocketTimeoutException: Read"),
            Some("SocketTimeoutException")
        );
        assert_eq!(type_named("ValueError: x"), Some("ValueError"));
        assert_eq!(type_named("Uncaught TypeError: x"), Some("TypeError"));
        assert_eq!(type_named("the ValueError is gone"), None);
        assert_eq!(type_named("Error: x"), None);
    }

    #[test]
    fn a_traceback_ends_with_its_cause() {
        let text =
            "Traceback (most recent call last):\n  File \"timeout.py\", line 1\nMemoryError\n";
        assert_eq!(lines(text), ["MemoryError"]);
        assert_eq!(lines("\n a \n\nb"), ["a", "b"]);
        assert!(lines(" \n").is_empty());
    }

    #[test]
    fn errors_in_json_are_taken_apart() {
        let error = unpacked(r#"{"error": {"message": "slow down", "type": "t", "code": 429}}"#);
        assert_eq!(
            error,
            Some(TaskError {
                message: "slow down".to_owned(),
                kind: Some("t".to_owned()),
                code: Some(ErrorCode::Number(429)),
                category: None,
            })
        );
        let error = unpacked(r#"{"error": "gone", "status": "NOT_FOUND"}"#).unwrap();
        assert_eq!(error.message, "gone");
        assert_eq!(error.code, Some(ErrorCode::Name("NOT_FOUND".to_owned())));
        assert_eq!(unpacked("{no"), None);
        assert_eq!(unpacked("plain"), None);
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(message in r#"([a-zA-Z'"`/:.\-_=\n\t ]|é|’|—|\{|\}){0,60}"#) {
            for line in lines(&message) {
                let _ = (statement(line), type_named(line));
            }
            let _ = unpacked(&message);
        }
    }
}
