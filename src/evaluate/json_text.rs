//! Finding JSON in what models write: bare, in fences, after and before prose.

use serde_json::Value;

/// A complete JSON value in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) value: Value,
    /// The byte that it begins at.
    pub(super) start: usize,
}

/// Something that begins as JSON and does not end so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    /// The byte that it begins at.
    pub(super) start: usize,
    /// The byte where it is no JSON any more.
    pub(super) end: usize,
    /// What is wrong there.
    pub(super) reason: String,
}

/// What JSON there is in a text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Scan {
    /// The outermost complete values, in order.
    pub(super) found: Vec<Found>,
    /// The longest piece that is broken.
    pub(super) broken: Option<Broken>,
}

/// Finds the outermost JSON values that begin with one of these characters (`{`, `[`).
///
/// What stands within a value that is cut off or broken is none: it may be complete, and what is around it is
/// lost. Takes time in proportion to the text.
pub(super) fn scan(text: &str, opens: &[char]) -> Scan {
    let mut scan = Scan::default();
    let mut at = 0;
    while let Some(open) = text[at..].find(opens) {
        at += open;
        let rest = &text[at..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                scan.found.push(Found { value, start: at });
                at += values.byte_offset().max(1);
            }
            Some(Err(error)) => {
                let progress = offset(rest, &error);
                let message = error.to_string();
                let over = error.is_eof();
                let too_deep = message.starts_with("recursion limit");
                let broken = Broken {
                    start: at,
                    end: at + progress,
                    reason: if over {
                        "it is cut off".to_owned()
                    } else if too_deep {
                        "it is nested too deeply".to_owned()
                    } else {
                        let end = message.find(" at line ").unwrap_or(message.len());
                        message[..end].to_owned()
                    },
                };
                let length = |broken: &Broken| broken.end - broken.start;
                // A brace in prose, or a `[[table]]`, is wrong before anything that JSON would have.
                let told = |b: &u8| *b == b'"' || b.is_ascii_digit();
                let like_json = too_deep || rest.as_bytes()[..progress].iter().any(told);
                if like_json
                    && scan
                        .broken
                        .as_ref()
                        .is_none_or(|longest| length(longest) < length(&broken))
                {
                    scan.broken = Some(broken);
                }
                if over || too_deep {
                    break;
                }
                at += progress.max(1);
            }
            None => at += 1,
        }
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
    scan
}

/// The byte at which reading failed.
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
        let found = scan(text, &['{', '[']).found;
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
        assert_eq!(scan("[[table]]\n{x} [ {", &['{', '[']).broken, None);
        assert_eq!(values("{\"a\": {\"b\": 1}, oops}"), Vec::<Value>::new());
        let scan = scan("text\n{\"a\": {\"b\": 1}, oops} {x}", &['{', '[']);
        let broken = scan.broken.unwrap();
        assert_eq!((broken.start, broken.end), (5, 21));
        assert!(broken.reason.contains("key must be a string"), "{broken:?}");
    }

    #[test]
    fn depth_and_length_are_no_danger() {
        let deep = "[".repeat(1_000_000);
        let scanned = scan(&deep, &['{', '[']);
        assert!(scanned.found.is_empty());
        assert_eq!(scanned.broken.unwrap().reason, "it is nested too deeply");
        let started = std::time::Instant::now();
        assert!(values(&"{\"a\":".repeat(60)).is_empty());
        assert!(values(&"{x".repeat(500_000)).is_empty());
        assert!(values(&"{\"a\":1,x".repeat(200_000)).is_empty());
        assert!(started.elapsed().as_secs() < 20);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"([{}\[\]":,0-9a-z \n]|é|😀|\\)*"#) {
            let _ = scan(&text, &['{', '[']);
        }

        #[test]
        fn prose_around_a_value_changes_nothing(before in "[^{}\\[\\]]{0,80}", after in "[^{}\\[\\]]{0,80}") {
            let value = json!({ "a": [1, { "b": "}" }] });
            prop_assert_eq!(values(&format!("{before}{value}{after}")), [value]);
        }
    }
}
