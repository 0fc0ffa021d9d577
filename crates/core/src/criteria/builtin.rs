use super::file;
use crate::{source::Source, types::Criteria};

/// The built-in sets that `task_type` can name: the general ones, which a model judges.
pub const TASK_TYPES: &[&str] = &["code", "writing", "analysis", "reasoning"];

/// Declares [`BUILTIN_NAMES`] and [`TEXTS`] from the names of the files in `builtin/`.
macro_rules! sets {
    ($($name:literal),* $(,)?) => {
        /// The names of all built-in sets, as used in `-c NAME`. The first are the [`TASK_TYPES`].
        pub const BUILTIN_NAMES: &[&str] = &[$($name),*];

        /// The criteria files of the sets, in the order of [`BUILTIN_NAMES`].
        const TEXTS: &[&str] = &[$(include_str!(concat!("builtin/", $name, ".toml"))),*];
    };
}

sets![
    "code",
    "writing",
    "analysis",
    "reasoning",
    "commit",
    "pull-request",
    "changelog",
    "release-notes",
    "readme",
    "docstring",
    "unit-test",
    "rust",
    "sql",
    "bug-report",
    "support-reply",
    "email",
    "meeting-minutes",
    "summary",
    "translation",
    "blog",
    "product-text",
    "paragraph",
    "haiku",
    "profile",
];

/// Returns the criteria file text of a built-in set, with its comments.
pub(super) fn text(name: &str) -> Option<&'static str> {
    let index = BUILTIN_NAMES.iter().position(|known| *known == name)?;
    TEXTS.get(index).copied()
}

/// Returns the built-in set called `name`, or `None` if there is none.
pub fn builtin(name: &str) -> Option<Criteria> {
    let source = Source::new(&format!("built-in {name}"), text(name)?);
    // The files are compiled in and each is parsed by a test, so parsing succeeds.
    file::read_source(&source).ok()
}

/// Returns all built-in sets, in the order of [`BUILTIN_NAMES`].
pub fn builtins() -> Vec<Criteria> {
    BUILTIN_NAMES.iter().filter_map(|n| builtin(n)).collect()
}
