use std::ops::Range;

use super::pointer;

/// The place of the value that a JSON Pointer leads to, in a text that begins (after white space) with a
/// valid JSON value; `None` if it leads nowhere. Of a key that is there twice, the last counts, as it
/// does for readers.
pub fn json_span(text: &str, pointer: &str) -> Option<Range<usize>> {
    let walker = Walker { text };
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

struct Walker<'a> {
    text: &'a str,
}

impl Walker<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The first place from here that is no white space.
    fn blank(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.len() - rest.trim_start_matches([' ', '\n', '\r', '\t']).len()
    }

    /// Where the value that begins here ends.
    fn end(&self, at: usize) -> Option<usize> {
        let mut at = at;
        let mut depth = 0_usize;
        loop {
            match self.byte(at)? {
                b'"' => at = self.end_of_string(at)?,
                b'{' | b'[' => {
                    depth += 1;
                    at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    at += 1;
                }
                b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => at += 1,
                _ => at = self.end_of_word(at),
            }
            if depth == 0 {
                return Some(at);
            }
        }
    }

    fn end_of_string(&self, at: usize) -> Option<usize> {
        let mut at = at + 1;
        loop {
            match self.byte(at)? {
                b'"' => return Some(at + 1),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    /// A number, `true`, `false` or `null`.
    fn end_of_word(&self, at: usize) -> usize {
        let ends = |b: &u8| b",:]} \n\r\t".contains(b);
        let rest = self.text.as_bytes().get(at..).unwrap_or_default();
        at + rest.iter().position(ends).unwrap_or(rest.len()).max(1)
    }

    /// Where the value under a key of the object that begins here begins.
    fn member(&self, at: usize, key: &str) -> Option<usize> {
        let mut at = self.blank(at + 1);
        let mut found = None;
        while self.byte(at)? == b'"' {
            let end = self.end_of_string(at)?;
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

    /// Where an item of the array that begins here begins.
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
    fn values_are_found_where_they_stand() {
        let text =
            r#" {"a": [1, {"b/c": "x\"]"}, -2.5e3], "d" : null, "a": [true , [ ]]} and more"#;
        assert_eq!(at(text, "/a/0"), Some("true"), "the last of a double key");
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
        fn no_text_makes_it_panic(text in r#"[\[\]{}",:\\a1é \n]{0,40}"#, pointer in "(/[a01~]{0,2}){0,3}") {
            let _ = json_span(&text, &pointer);
        }

        #[test]
        fn what_is_found_is_the_value(items in proptest::collection::vec("[a-z\"\\\\{\\[é]{0,6}", 1..6), at in 0_usize..6) {
            let text = serde_json::json!({ "k": items }).to_string();
            let pointer = format!("/k/{at}");
            let whole: Value = serde_json::from_str(&text).unwrap();
            let found = json_span(&text, &pointer).map(|span| serde_json::from_str::<Value>(&text[span]).unwrap());
            prop_assert_eq!(found.as_ref(), whole.pointer(&pointer));
        }
    }
}
