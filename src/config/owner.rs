//! Whether a project's file is the user's own.

use std::path::Path;

/// Why a project's file must not be read, as the end of a sentence about it; `None` if it may be. It and its folder
/// must belong to the user, whatever their modes, as `git` has it with `safe.directory`; and it must not point to a
/// file elsewhere, whose lines its errors would show.
pub(super) fn distrusted(file: &Path) -> Option<&'static str> {
    let folder = file.parent()?;
    let points_out = match (file.canonicalize(), folder.canonicalize()) {
        (Ok(file), Ok(folder)) => !file.starts_with(folder),
        _ => false,
    };
    if points_out {
        return Some("it is a symbolic link to a file outside its folder");
    }
    (!is_own(file) || !is_own(folder)).then_some("it belongs to another user")
}

#[cfg(unix)]
fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid().as_raw();
    std::fs::metadata(path).is_ok_and(|metadata| metadata.uid() == user)
}

/// Files have no single owner here; a user's folders are closed to others by the system's own rules.
#[cfg(not(unix))]
fn is_own(_: &Path) -> bool {
    true
}
