use std::{
    io::{ErrorKind, Read as _},
    path::Path,
};

use super::{Source, SourceError, similar};

/// The size limit for files, in bytes (1 MB). Handwritten files are far smaller, so a larger file is most likely the
/// wrong one.
pub const MAX_BYTES: u64 = 1_000_000;

/// Reads a text file. It must be a regular file or a pipe, at most [`MAX_BYTES`] long, and valid UTF-8.
pub fn read(path: &Path) -> Result<Source, SourceError> {
    let name = path.display().to_string();
    let fail = |message: &str| SourceError::for_file(&name, message);
    if name.is_empty() {
        return Err(SourceError::for_file("``", "the path is empty"));
    }
    let io = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => fail("no such file").help_if(similar_file_hint(path)),
        ErrorKind::PermissionDenied => {
            fail("permission denied").help("check the permissions and the owner of the file")
        }
        _ => fail(&format!("cannot read the file: {}", reason(&error))),
    };
    // Checked before opening, because opening a directory fails differently on each system.
    if std::fs::metadata(path).map_err(io)?.is_dir() {
        return Err(fail("this is a directory, not a file"));
    }
    let file = std::fs::File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(fail(&format!(
            "the file is larger than {} MB",
            MAX_BYTES / 1_000_000
        ))
        .help("is it the right file?"));
    }
    let not_text = |at: usize, what: &str| {
        let line = bytes[..at].split(|b| *b == b'\n').count();
        fail(&format!(
            "not a text file: {what} in line {line}, at byte {at}"
        ))
        .help("the file must be UTF-8 text")
    };
    if let Some(at) = bytes.iter().position(|b| *b == 0) {
        return Err(not_text(at, "a zero byte"));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Source {
            path: path.canonicalize().ok().map(Into::into),
            ..Source::new(&name, text)
        }),
        Err(error) => Err(not_text(
            error.valid_up_to(),
            &format!("invalid UTF-8 byte 0x{:02x}", bytes[error.valid_up_to()]),
        )),
    }
}

/// Reads a text file named at a position in another file. After all symbolic links are resolved, it must be in that
/// file's folder or below it: a criteria folder from somebody else must not be able to send arbitrary files of the
/// user to a model. [`FileAccess`](super::FileAccess) does not lift this rule.
///
/// # Errors
/// An error at that position if the file is outside the folder, missing, or not a readable text file.
pub fn read_relative(
    source: &Source,
    span: std::ops::Range<usize>,
    file: &Path,
) -> Result<Source, SourceError> {
    let wrong = |message: &str| source.error(span.clone(), message);
    let shown = file.display();
    if file.as_os_str().is_empty() {
        return Err(wrong("the path is empty"));
    }
    let Some(folder) = source.path().and_then(Path::parent) else {
        return Err(wrong(&format!(
            "`{shown}` is relative to the folder of this file, but this text has no file"
        )));
    };
    let wanted = folder.join(file);
    let found = wanted.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            wrong(&format!("no such file: `{shown}`")).help_if(similar_file_hint(&wanted))
        }
        _ => wrong(&format!("cannot read `{shown}`: {}", reason(&error))),
    })?;
    if !found.starts_with(folder) {
        return Err(
            wrong(&format!("`{shown}` is outside the folder of this file"))
                .help(format!("copy it into `{}`", folder.display())),
        );
    }
    // Refuse pipes and devices, which could block.
    if !found.is_file() {
        return Err(wrong(&format!("`{shown}` is not a file")));
    }
    read(&found).map_err(|error| {
        let here = wrong(&format!("`{shown}`: {}", error.message()));
        let hints = error.hints().iter();
        hints.fold(here, |here, hint| here.help(hint.as_str()))
    })
}

/// Whether the argument is a path rather than a name: it contains a directory separator or ends with `.toml`.
pub fn is_path(spec: &str) -> bool {
    let is_toml = |e: &std::ffi::OsStr| e.eq_ignore_ascii_case("toml");
    spec.contains(std::path::is_separator) || Path::new(spec).extension().is_some_and(is_toml)
}

/// The operating system's message without Rust's `(os error 13)` suffix.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// A hint that names a file in the same directory with a similar name.
pub fn similar_file_hint(path: &Path) -> Option<String> {
    let wanted = path.file_name()?.to_str()?;
    let parent = path.parent()?;
    let dir = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    if !dir.is_dir() {
        return Some(format!(
            "the directory `{}` does not exist either",
            dir.display()
        ));
    }
    // A directory may hold millions of names; a few hundred are enough for a hint.
    let names: Vec<String> = std::fs::read_dir(dir)
        .ok()?
        .take(500)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let found = similar(wanted, names.iter().map(String::as_str))?;
    Some(format!("did you mean `{}`?", parent.join(found).display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: &[u8]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.toml");
        std::fs::write(&path, bytes).unwrap();
        read(&path).unwrap_err().message().to_owned()
    }

    #[test]
    fn each_kind_of_invalid_file_has_its_own_message() {
        assert_eq!(
            message(b"a = 1\nb\0"),
            "not a text file: a zero byte in line 2, at byte 7"
        );
        assert_eq!(
            message(b"a = \"\xff\""),
            "not a text file: invalid UTF-8 byte 0xff in line 1, at byte 5"
        );
        let large = vec![b'#'; usize::try_from(MAX_BYTES).unwrap() + 1];
        assert!(message(&large).contains("larger than 1 MB"));
        let dir = tempfile::tempdir().unwrap();
        let error = read(dir.path()).unwrap_err();
        assert_eq!(error.message(), "this is a directory, not a file");
        assert!(read(Path::new("")).is_err());
    }

    #[test]
    fn a_missing_file_suggests_a_similar_one() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("code.toml"), "").unwrap();
        let error = read(&dir.path().join("cdoe.toml")).unwrap_err();
        assert_eq!(error.message(), "no such file");
        assert!(error.hints()[0].contains("code.toml"), "{error}");
        let error = read(&dir.path().join("no/where.toml")).unwrap_err();
        assert!(error.hints()[0].contains("does not exist either"));
    }

    #[test]
    fn a_file_at_the_limit_is_read_and_its_byte_order_mark_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let mut text = "\u{feff}".to_owned();
        text.push_str(&"#".repeat(usize::try_from(MAX_BYTES).unwrap() - 3));
        std::fs::write(&path, text).unwrap();
        assert_eq!(read(&path).unwrap().text().len() as u64, MAX_BYTES - 3);
    }

    #[cfg(unix)]
    #[test]
    fn an_unreadable_file_says_so() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "a = 1").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
        // Root can read every file; then the test has nothing to check.
        if let Err(error) = read(&path) {
            assert_eq!(error.message(), "permission denied");
        }
    }
}
