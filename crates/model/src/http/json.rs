//! Lenient parsing of JSON responses: a field of an unexpected type is ignored, and a character that is split across
//! two frames is joined.

use std::borrow::Cow;

use serde_json::Value;

use crate::TokenLogprob;

/// Parses a count: an integer of at least 0, also as `12.0` or `"12"`. Anything else (`-1`, `null`) is `None`.
pub(crate) fn count(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        value => value.as_f64()?,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is not negative, and no count is that large"
    )]
    (0.0..=1e15)
        .contains(&number)
        .then_some(number.round() as u64)
}

/// The text of a field, or of each part of a list of parts; empty for any other value.
pub(crate) fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let parts = value.as_array().into_iter().flatten();
    let parts = parts.filter_map(|part| part.get("text")?.as_str());
    value.as_str().into_iter().chain(parts)
}

/// Parses a token and its length in bytes; `None` if its text or log-probability is missing.
pub(crate) fn logprob(token: &Value) -> Option<(usize, TokenLogprob)> {
    let of = |token: &Value| {
        let text = token["token"].as_str()?.to_owned();
        Some((text, token["logprob"].as_f64()?))
    };
    let (text, logprob) = of(token)?;
    let bytes = token["bytes"].as_array();
    let length = bytes.map_or(text.len(), Vec::len);
    let top = token["top_logprobs"].as_array().into_iter().flatten();
    let top = top.filter_map(of).collect();
    Some((
        length,
        TokenLogprob {
            token: text,
            logprob,
            top,
        },
    ))
}

/// Joins surrogate pairs (`\ud83d` and `\ude00`) that some servers split across two frames. A lone half becomes
/// U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Surrogates {
    /// The first half, at the end of a string in an earlier frame.
    held: Option<u16>,
}

impl Surrogates {
    /// The frame with complete characters only.
    pub(crate) fn join<'a>(&mut self, frame: &'a str) -> Cow<'a, str> {
        if !frame.contains("\\ud") && !frame.contains("\\uD") {
            return Cow::Borrowed(frame);
        }
        let mut joined = String::with_capacity(frame.len() + 6);
        let mut rest = frame;
        while let Some(at) = rest.find('\\') {
            let (before, escape) = rest.split_at(at);
            joined.push_str(before);
            rest = match unit(escape) {
                Some(high @ 0xD800..=0xDBFF) => {
                    let after = &escape[6..];
                    if matches!(unit(after), Some(0xDC00..=0xDFFF)) {
                        joined.push_str(&escape[..12]);
                        &escape[12..]
                    } else {
                        if after.starts_with('"') && self.held.is_none() {
                            self.held = Some(high);
                        } else {
                            joined.push('\u{fffd}');
                        }
                        after
                    }
                }
                Some(low @ 0xDC00..=0xDFFF) => {
                    let high = self.held.take_if(|_| joined.ends_with('"'));
                    let pair = high.map_or(vec![low], |high| vec![high, low]);
                    joined.push_str(&String::from_utf16_lossy(&pair));
                    &escape[6..]
                }
                _ => {
                    // Any other escape; skip the escaped character, which may be a backslash.
                    let end = escape
                        .char_indices()
                        .nth(2)
                        .map_or(escape.len(), |(at, _)| at);
                    joined.push_str(&escape[..end]);
                    &escape[end..]
                }
            };
        }
        joined.push_str(rest);
        Cow::Owned(joined)
    }
}

/// The UTF-16 unit of a `\u` escape at the start of a text.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_are_parsed_in_any_form() {
        for (value, read) in [
            (json!(12), Some(12)),
            (json!(12.0), Some(12)),
            (json!("12"), Some(12)),
            (json!(0), Some(0)),
            (json!(-1), None),
            (json!(""), None),
            (json!("many"), None),
            (json!("NaN"), None),
            (json!(1e300), None),
            (json!(null), None),
            (json!([12]), None),
        ] {
            assert_eq!(count(&value), read, "{value}");
        }
    }

    #[test]
    fn surrogate_halves_are_joined_across_frames() {
        let join = |frames: &[&str]| -> Vec<String> {
            let mut surrogates = Surrogates::default();
            let read = |frame: &&str| serde_json::from_str(&surrogates.join(frame)).unwrap();
            frames.iter().map(read).collect()
        };
        assert_eq!(join(&[r#""a\ud83d""#, r#""\ude00b""#]), ["a", "😀b"]);
        assert_eq!(
            join(&[r#""\uD83D""#, r#""""#, r#""\uDE00""#]),
            ["", "", "😀"]
        );
        assert_eq!(join(&[r#""\ud83d\ude00 \\ud83d \n""#]), ["😀 \\ud83d \n"]);
        assert_eq!(
            join(&[r#""\ud83dx""#, r#""x\ude00""#]),
            ["\u{fffd}x", "x\u{fffd}"]
        );
        assert_eq!(join(&[r#""\ude00""#]), ["\u{fffd}"]);
    }
}
