//! Parsing of files that people write (TOML, and data in JSON and YAML).
//!
//! Errors show the file, line and column, the affected line with a caret, and a suggestion. This module knows nothing
//! about the content of the files.

mod data;
mod error;
mod fields;
mod hash;
mod json_text;
mod json_typed;
pub mod pointer;
mod read;
mod redact;
mod schema;
mod suggest;
mod toml_text;
mod yaml_text;

pub use data::{Data, DataFormat};
pub use error::SourceError;
pub use fields::fields;
pub use hash::{hash_of, hex};
pub use json_text::json_span;
pub use json_typed::json;
pub use read::similar_file_hint;
pub use read::{MAX_BYTES, is_path, read, read_relative};
pub use redact::redact;
pub use schema::schema_of;
pub use suggest::{list, similar};
pub use toml_text::unknown_key;
pub use toml_text::{parse, table, table_into, value_span};

use std::{fmt, ops::Range, path::Path, sync::Arc};

/// A text with a display name. Cheap to clone.
///
/// `Debug` omits the text, because it may contain keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    name: Arc<str>,
    text: Arc<str>,
    path: Option<Arc<Path>>,
    file_access: FileAccess,
}

/// The files that a text may refer to for data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileAccess {
    /// Files in its own folder and below.
    #[default]
    Folder,
    /// Every readable file. Requires the user's permission. Never covers the network.
    Anywhere,
}

impl Source {
    /// Wraps an existing text. The name is a path or a placeholder (`<stdin>`, `built-in code`). Removes a leading
    /// byte order mark.
    pub fn new(name: &str, text: &str) -> Self {
        Self {
            name: name.into(),
            text: text.strip_prefix('\u{feff}').unwrap_or(text).into(),
            path: None,
            file_access: FileAccess::default(),
        }
    }

    /// Sets which files the text may refer to, by its absolute path. Has no effect on a text that was not read from a
    /// file.
    #[must_use]
    pub fn with_file_access(self, access: &dyn Fn(&Path) -> FileAccess) -> Self {
        Self {
            file_access: self.path().map_or(self.file_access, access),
            ..self
        }
    }

    /// The text truncated at byte `end`; all positions stay the same.
    #[must_use]
    pub fn until(&self, end: usize) -> Self {
        Self {
            text: self.text.get(..end).unwrap_or(&self.text).into(),
            ..self.clone()
        }
    }

    /// The files that the text may refer to for data. Default: those in its folder.
    pub fn file_access(&self) -> FileAccess {
        self.file_access
    }

    /// The file that the text was read from: absolute, symbolic links resolved. `None` if the text does not come from
    /// a file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The folder of that file. Relative file names in the text are resolved against it.
    pub fn folder(&self) -> Option<&Path> {
        self.path()?.parent()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text contains only white space and comments.
    pub fn is_blank(&self) -> bool {
        self.text
            .lines()
            .all(|line| line.trim_start().is_empty() || line.trim_start().starts_with('#'))
    }

    /// The line and column of a byte offset, both counted from 1, the column in characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        position(&self.text, offset)
    }

    /// An error at a position in this text.
    pub fn error(&self, span: Range<usize>, message: &str) -> SourceError {
        SourceError::at(self, span, message)
    }

    /// An error about the whole text.
    pub fn file_error(&self, message: &str) -> SourceError {
        SourceError::for_file(&self.name, message)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({}, {} bytes)", self.name, self.text.len())
    }
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let line = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (line, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_one_in_characters() {
        let source = Source::new("x", "\u{feff}ab\nçd\r\ne");
        assert_eq!(source.position(0), (1, 1));
        assert_eq!(source.position(2), (1, 3));
        assert_eq!(source.position(3), (2, 1));
        assert_eq!(source.position(4), (2, 1), "inside a character");
        assert_eq!(source.position(5), (2, 2));
        assert_eq!(source.position(99), (3, 2));
    }

    #[test]
    fn comments_and_white_space_are_blank() {
        assert!(Source::new("x", "").is_blank());
        assert!(Source::new("x", " \n# a\n\t#b\r\n").is_blank());
        assert!(!Source::new("x", "#\na = 1").is_blank());
    }
}
