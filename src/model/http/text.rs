//! Strings of a frame, read without a copy.

use std::borrow::Cow;
use std::ops::Deref;

use serde::Deserialize;

/// A string that is borrowed from the frame unless it has escapes. A type of its own, since serde copies
/// every `Option<Cow<str>>`.
#[derive(Debug, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Text<'a> {
    /// What is there of it.
    pub(crate) fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self(text.into())
    }

    /// The string as it stands in the frame, unless it has escapes.
    pub(crate) fn borrowed(&self) -> Option<&'a str> {
        match self.0 {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }

    /// The string itself.
    pub(crate) fn into_owned(self) -> String {
        self.0.into_owned()
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_copied_that_has_no_escapes() {
        let read =
            |json: &'static str| serde_json::from_str::<Option<Text<'static>>>(json).unwrap();
        assert!(matches!(read(r#""a b""#), Some(Text(Cow::Borrowed("a b")))));
        assert!(matches!(read(r#""a\nb""#), Some(Text(Cow::Owned(text))) if text == "a\nb"));
        assert!(read("null").is_none());
    }
}
