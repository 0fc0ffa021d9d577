use std::ops::Range;

use super::pointer;

/// The byte range of the value at a JSON Pointer. The text must begin (after white space) with a valid JSON value.
/// Returns `None` if there is no such value. Of duplicate keys the last one counts, as in JSON parsers.
pub fn json_span(text: &str, pointer: &str) -> Option<Range<usize>> {
    let walker = JsonScanner { text };
    let mut at = walker.blank(0);
    for step in pointer::steps(pointer) {
        at = match walker.byte(at)? {
            b'{' => walker.member(at, &step)?,
            b'[' => walker.item(at, step.parse().ok()?)?,
            _ => return None,
        };
    }
    Some(at..walker.end(at)?)
}

struct JsonScanner<'a> {
    text: &'a str,
}

impl JsonScanner<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The first position from `at` that is not white space.
    fn blank(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.len() - rest.trim_start_matches([' ', '\n', '\r', '\t']).len()
    }

    /// The end of the value that begins at `at`.
    fn end(&self, at: usize) -> Option<usize> {
        let mut at = at;
        let mut depth = 0_usize;
        loop {
            match self.byte(at)? {
                b'"' => at = self.string_end(at)?,
                b'{' | b'[' => {
                    depth += 1;
                    at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    at += 1;
                }
                b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => at += 1,
                _ => at = self.word_end(at),
            }
            if depth == 0 {
                return Some(at);
            }
        }
    }

    fn string_end(&self, at: usize) -> Option<usize> {
        let mut at = at + 1;
        loop {
            match self.byte(at)? {
                b'"' => return Some(at + 1),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    /// The end of a number, `true`, `false` or `null`.
    fn word_end(&self, at: usize) -> usize {
        let ends = |b: &u8| b",:]} \n\r\t".contains(b);
        let rest = self.text.as_bytes().get(at..).unwrap_or_default();
        at + rest.iter().position(ends).unwrap_or(rest.len()).max(1)
    }

    /// The start of the value of `key` in the object that begins at `at`.
    fn member(&self, at: usize, key: &str) -> Option<usize> {
        let mut at = self.blank(at + 1);
        let mut found = None;
        while self.byte(at)? == b'"' {
            let end = self.string_end(at)?;
            let name: String = serde_json::from_str(self.text.get(at..end)?).ok()?;
            let value = self.blank(self.blank(end) + 1);
            if name == key {
                found = Some(value);
            }
            at = self.blank(self.end(value)?);
            if self.byte(at)? != b',' {
                break;
            }
            at = self.blank(at + 1);
        }
        found
    }

    /// The start of an item in the array that begins at `at`.
    fn item(&self, at: usize, index: usize) -> Option<usize> {
        let mut at = self.blank(at + 1);
        for _ in 0..index {
            at = self.blank(self.end(at)?);
            if self.byte(at)? != b',' {
                return None;
            }
            at = self.blank(at + 1);
        }
        (self.byte(at)? != b']').then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn at<'a>(text: &'a str, pointer: &str) -> Option<&'a str> {
        json_span(text, pointer).map(|span| &text[span])
    }

    #[test]
    fn values_are_found_by_pointer() {
        let text =
            r#" {"a": [1, {"b/c": "x\"]"}, -2.5e3], "d" : null, "a": [true , [ ]]} and more"#;
        assert_eq!(at(text, "/a/0"), Some("true"), "the last of duplicate keys");
        assert_eq!(at(text, "/a/1"), Some("[ ]"));
        assert_eq!(at(text, "/d"), Some("null"));
        assert_eq!(at(text, "/e"), None);
        assert_eq!(at(text, "/a/2"), None);
        assert_eq!(at(text, "/a/1/0"), None);
        let text = r#"[{"b/c": "x\"]"}, 12]"#;
        assert_eq!(at(text, "/0/b~1c"), Some(r#""x\"]""#));
        assert_eq!(at(text, "/1"), Some("12"));
        assert_eq!(at(text, ""), Some(text));
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in r#"[\[\]{}",:\\a1é \n]{0,40}"#, pointer in "(/[a01~]{0,2}){0,3}") {
            let _ = json_span(&text, &pointer);
        }

        #[test]
        fn the_span_contains_the_value(items in proptest::collection::vec("[a-z\"\\\\{\\[é]{0,6}", 1..6), at in 0_usize..6) {
            let text = serde_json::json!({ "k": items }).to_string();
            let pointer = format!("/k/{at}");
            let whole: Value = serde_json::from_str(&text).unwrap();
            let found = json_span(&text, &pointer).map(|span| serde_json::from_str::<Value>(&text[span]).unwrap());
            prop_assert_eq!(found.as_ref(), whole.pointer(&pointer));
        }
    }
}
