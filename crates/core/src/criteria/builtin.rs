use super::file;
use crate::{source::Source, types::Criteria};

/// The names of the built-in sets, as in `task_type = "code"`.
pub const BUILTIN_NAMES: &[&str] = &["code", "writing", "analysis", "reasoning"];

/// The text of a built-in set's file.
pub(super) fn text(name: &str) -> Option<&'static str> {
    Some(match name {
        "code" => include_str!("builtin/code.toml"),
        "writing" => include_str!("builtin/writing.toml"),
        "analysis" => include_str!("builtin/analysis.toml"),
        "reasoning" => include_str!("builtin/reasoning.toml"),
        _ => return None,
    })
}

/// A built-in set; `None` if there is none of that name.
pub fn builtin(name: &str) -> Option<Criteria> {
    let source = Source::new(&format!("built-in {name}"), text(name)?);
    // The four texts are part of the program, and a test reads each of them.
    file::read_source(&source).ok()
}

/// All built-in sets, in the order of [`BUILTIN_NAMES`].
pub fn builtins() -> Vec<Criteria> {
    BUILTIN_NAMES.iter().filter_map(|n| builtin(n)).collect()
}
