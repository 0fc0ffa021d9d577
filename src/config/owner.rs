//! Checks that a project file belongs to the user.

use std::path::Path;

/// Returns why a project file is ignored, as the end of a sentence, or `None` if it may be read. As with
/// `safe.directory` in `git`, the file and its folder must belong to the user. The file must not be a link to
/// another folder, because errors would show lines of its target.
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

/// Always true: files have no single owner here, and the system keeps other users out of a user's folders.
#[cfg(not(unix))]
fn is_own(_: &Path) -> bool {
    true
}
