//! Frames that differ from an earlier one only in their text. Most of a stream do, and then there is no need to read
//! them as JSON again.

use std::borrow::Cow;

/// What stands around the text in a frame that says nothing but that.
///
/// JSON is read from the left to the right: where the same bytes come before a string and the same after it, the frame
/// means the same but for the string.
#[derive(Debug, Default)]
pub(crate) struct Mould {
    /// Ends with the quotation mark that opens the text; empty if no frame was taken yet.
    before: String,
    /// Begins with the quotation mark that closes it.
    after: String,
}

impl Mould {
    /// Takes the form of a frame that says nothing but this text, which is a part of it; what is no part of it, or no
    /// whole string, is passed over.
    pub(crate) fn take(&mut self, frame: &str, text: &str) {
        let start = text.as_ptr().addr().wrapping_sub(frame.as_ptr().addr());
        let end = start.wrapping_add(text.len());
        let (Some(before), Some(after)) = (frame.get(..start), frame.get(end..)) else {
            return;
        };
        if before.ends_with('"') && after.starts_with('"') {
            before.clone_into(&mut self.before);
            after.clone_into(&mut self.after);
        }
    }

    /// The text of a frame of the same form at the beginning of these bytes, and what is behind it; `None` if there is
    /// no such frame.
    pub(crate) fn text<'a>(&self, bytes: &'a [u8]) -> Option<(Cow<'a, str>, &'a [u8])> {
        if self.before.is_empty() {
            return None;
        }
        let inside = bytes.strip_prefix(self.before.as_bytes())?;
        let special = inside
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\' | ..b' '))?;
        let (text, rest) = match inside[special] {
            b'"' => {
                let (text, rest) = inside.split_at(special);
                (Cow::Borrowed(str::from_utf8(text).ok()?), rest)
            }
            b'\\' => {
                let string = &bytes[self.before.len() - 1..];
                let mut strings =
                    serde_json::Deserializer::from_slice(string).into_iter::<String>();
                let text = strings.next()?.ok()?;
                (Cow::Owned(text), &string[strings.byte_offset() - 1..])
            }
            // Not in a string of JSON.
            _ => return None,
        };
        Some((text, rest.strip_prefix(self.after.as_bytes())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mould(frame: &str, text: &str) -> Mould {
        let mut mould = Mould::default();
        let at = frame.find(text).unwrap();
        mould.take(frame, &frame[at..at + text.len()]);
        mould
    }

    #[test]
    fn only_the_text_may_differ() {
        let mould = mould(r#"{"a":"x","b":1}"#, "x");
        for (frame, text) in [
            (r#"{"a":"grün 𝄞","b":1}"#, "grün 𝄞"),
            (r#"{"a":"","b":1}"#, ""),
            (r#"{"a":"y\n\"\u00e4\ud834\udd1e","b":1}"#, "y\n\"ä𝄞"),
            (r#"{"a":"\",\"b\":1}","b":1}"#, r#"","b":1}"#),
        ] {
            let found = mould.text(frame.as_bytes());
            assert_eq!(found, Some((text.into(), &b""[..])), "{frame}");
            let followed = format!("{frame}{frame}");
            let found = mould.text(followed.as_bytes());
            assert_eq!(found, Some((text.into(), frame.as_bytes())), "{frame}");
        }
        let spaced = mould.text(br#"{"a":"y","b":1} "#);
        assert_eq!(spaced, Some(("y".into(), &b" "[..])));
        for other in [
            r#"{"a":"y","b":2}"#,
            r#"{"c":"y","b":1}"#,
            r#"{"a":"y\","b":1}"#,
            r#"{"a":"y\x","b":1}"#,
            r#"{"a":"y\ud834","b":1}"#,
            r#"{"a":"y","a":"z","b":1}"#,
            r#"{"a":","b":1}"#,
            "{\"a\":\"y\n\",\"b\":1}",
            "{\"a\":\"\\\"y\n\",\"b\":1}",
            r#"{"a":null,"b":1}"#,
            "",
        ] {
            assert_eq!(mould.text(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn what_is_no_string_of_the_frame_is_not_taken() {
        let mut mould = Mould::default();
        assert_eq!(mould.text(b""), None);
        let frame = r#"{"a":"xyz"}"#;
        for text in ["xyz", "", &frame[6..8], &frame[7..9], frame] {
            mould.take(frame, text);
            assert_eq!(mould.text(frame.as_bytes()), None, "{text}");
        }
        mould.take(frame, &frame[6..9]);
        let found = mould.text(frame.as_bytes());
        assert_eq!(found, Some(("xyz".into(), &b""[..])));
    }
}
