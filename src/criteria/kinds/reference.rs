//! Files that a criteria file refers to. Criteria files are other people's: what they refer to lies
//! beside them or below, so that none can carry a file of the user's to a model.

use std::ops::Range;
use std::path::{Component, Path};

use crate::source::{self, Source, SourceError};

/// Reads a text file in the folder of the criteria file, or below it.
///
/// # Errors
/// At this place of the criteria file, if the path leads out of that folder, by itself or by a symbolic
/// link, or if the file cannot be read or is no text.
pub(super) fn read(source: &Source, at: Range<usize>, path: &str) -> Result<String, SourceError> {
    let wrong = |message: &str| source.error(at.clone(), message);
    if path.trim().is_empty() {
        return Err(wrong("the path is empty"));
    }
    let outside = || {
        wrong(&format!(
            "`{path}` is not in the folder of this file, or below it"
        ))
        .help("what a criteria file refers to lies beside it; copy the file there")
    };
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(path).components().all(inside) {
        return Err(outside());
    }
    let folder = match Path::new(source.name()).parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let file = folder.join(path);
    // One that is not there has no real path; reading it says so.
    if let (Ok(folder), Ok(file)) = (fs_err::canonicalize(folder), fs_err::canonicalize(&file))
        && !file.starts_with(folder)
    {
        return Err(outside());
    }
    // Nothing that one would wait for.
    if file.exists() && !file.is_file() {
        return Err(wrong(&format!("`{path}` is not a file")));
    }
    match source::read(&file) {
        Ok(text) => Ok(text.text().to_owned()),
        Err(error) => Err(error.hints().iter().fold(
            wrong(&format!("`{path}`: {}", error.message())),
            |wrong, hint| wrong.help(hint.as_str()),
        )),
    }
}
