//! How files are named in reports that other programs read.

use std::path::{Component, Path};

/// The path with `/` between its parts, relative to `folder` if it is below it.
pub(super) fn relative(file: &str, folder: &Path) -> String {
    let path = Path::new(file);
    let path = path.strip_prefix(folder).unwrap_or(path);
    if path.is_absolute() {
        return file.replace(std::path::MAIN_SEPARATOR, "/");
    }
    let parts = path.components().filter(|it| *it != Component::CurDir);
    let parts: Vec<_> = parts.map(|it| it.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

/// The same as a URI reference (RFC 3986).
pub(super) fn uri(file: &str, folder: &Path) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    // The unreserved characters, and the separator.
    const PATH: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~')
        .remove(b'/');
    let path = relative(file, folder);
    let encoded = utf8_percent_encode(&path, PATH);
    if Path::new(file).is_absolute() && path.starts_with('/') {
        format!("file://{encoded}")
    } else {
        encoded.to_string()
    }
}
