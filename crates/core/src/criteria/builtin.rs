use super::file;
use crate::{source::Source, types::Criteria};

/// The names of the built-in sets, as used in `task_type = "code"`.
pub const BUILTIN_NAMES: &[&str] = &["code", "writing", "analysis", "reasoning"];

/// Returns the criteria file text of a built-in set.
pub(super) fn text(name: &str) -> Option<&'static str> {
    Some(match name {
        "code" => include_str!("builtin/code.toml"),
        "writing" => include_str!("builtin/writing.toml"),
        "analysis" => include_str!("builtin/analysis.toml"),
        "reasoning" => include_str!("builtin/reasoning.toml"),
        _ => return None,
    })
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
