//! Texts that people write as files (TOML; data in JSON and YAML, too), and errors in them that show the
//! place: file, line, column,
//! the line itself with a caret, and what was probably meant. This room knows nothing of what the files
//! are about.

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
pub use read::neighbour;
pub use read::{MAX_BYTES, is_path, read, read_beside};
pub use redact::redact;
pub use schema::schema_of;
pub use suggest::{list, similar};
pub use toml_text::unknown_key;
pub use toml_text::{parse, table, table_into, value_span};

use std::{fmt, ops::Range, path::Path, sync::Arc};

/// A text with the name it is announced under. Cheap to clone.
///
/// `Debug` leaves the text out: it may hold keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    name: Arc<str>,
    text: Arc<str>,
    path: Option<Arc<Path>>,
    reach: Reach,
}

/// Which files a text may refer to for data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// Those in its own folder, and in folders within it.
    #[default]
    Folder,
    /// All that can be read: only where the user allowed it. Never the network.
    Anywhere,
}

impl Source {
    /// A text that is already here. The name is a path, or what stands for one (`<stdin>`, `built-in code`).
    /// A byte order mark at the beginning is dropped.
    pub fn new(name: &str, text: &str) -> Self {
        Self {
            name: name.into(),
            text: text.strip_prefix('\u{feff}').unwrap_or(text).into(),
            path: None,
            reach: Reach::default(),
        }
    }

    /// The same text, which may refer to the files that this says of its full path. One that is no file
    /// keeps to what it had.
    #[must_use]
    pub fn with_reach(self, reach: &dyn Fn(&Path) -> Reach) -> Self {
        Self {
            reach: self.path().map_or(self.reach, reach),
            ..self
        }
    }

    /// The same text up to this byte, with all places as they are.
    #[must_use]
    pub fn until(&self, end: usize) -> Self {
        Self {
            text: self.text.get(..end).unwrap_or(&self.text).into(),
            ..self.clone()
        }
    }

    /// Which files it may refer to for data. Default: those in its folder.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// The file that it was read from: absolute, with symbolic links resolved. `None` for a text that
    /// comes from elsewhere.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The folder of the file that it was read from: other files that the text names are looked for
    /// there.
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

    /// Whether there is nothing in it but white space and comments.
    pub fn is_blank(&self) -> bool {
        self.text
            .lines()
            .all(|line| line.trim_start().is_empty() || line.trim_start().starts_with('#'))
    }

    /// Line and column of a byte offset, both counted from 1, the column in characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        position(&self.text, offset)
    }

    /// An error at a place of this text.
    pub fn error(&self, span: Range<usize>, message: &str) -> SourceError {
        SourceError::at(self, span, message)
    }

    /// An error about the whole text.
    pub fn error_of_whole(&self, message: &str) -> SourceError {
        SourceError::whole(&self.name, message)
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
        assert_eq!(source.position(4), (2, 1), "inside of a character");
        assert_eq!(source.position(5), (2, 2));
        assert_eq!(source.position(99), (3, 2));
    }

    #[test]
    fn blank_means_nothing_but_comments() {
        assert!(Source::new("x", "").is_blank());
        assert!(Source::new("x", " \n# a\n\t#b\r\n").is_blank());
        assert!(!Source::new("x", "#\na = 1").is_blank());
    }
}
