use std::{
    io::{ErrorKind, Read as _},
    path::Path,
};

use super::{Source, SourceError, similar};

/// The largest file that is read: 1 MB. What people write by hand is a thousand times smaller; more is
/// a mistake, such as the wrong file.
pub const MAX_BYTES: u64 = 1_000_000;

/// Reads a text file. It must be a file (or a pipe), at most [`MAX_BYTES`] long, and UTF-8 text.
pub fn read(path: &Path) -> Result<Source, SourceError> {
    let name = path.display().to_string();
    let fail = |message: &str| SourceError::whole(&name, message);
    if name.is_empty() {
        return Err(SourceError::whole("``", "the path is empty"));
    }
    let io = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => fail("there is no such file").help_if(neighbour(path)),
        ErrorKind::PermissionDenied => {
            fail("the file may not be read").help("check its permissions and its owner")
        }
        _ => fail(&format!("the file cannot be read: {}", reason(&error))),
    };
    // Asked first, since opening a directory is an error of its own on some systems.
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
            "the file is larger than {} MB, which no such file is",
            MAX_BYTES / 1_000_000
        ))
        .help("is it the right file?"));
    }
    let not_text = |at: usize, what: &str| {
        let line = bytes[..at].split(|b| *b == b'\n').count();
        fail(&format!(
            "this is not a text file: {what} in line {line}, at byte {at}"
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
            &format!(
                "byte 0x{:02x}, which is no UTF-8,",
                bytes[error.valid_up_to()]
            ),
        )),
    }
}

/// Reads a text file that another one names at this place of it: one in the folder of that other file, or in a
/// folder within it, once all symbolic links are followed. What people pass on is a folder; a file that
/// reaches out of it could carry anything that the user can read to a model. No [`Reach`](super::Reach)
/// changes that.
///
/// # Errors
/// At this place, if the file lies elsewhere, is not there, or is no text file that can be read.
pub fn read_beside(
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
            "`{shown}` is seen from the folder of this file, and this is no file"
        )));
    };
    let wanted = folder.join(file);
    let found = wanted.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            wrong(&format!("there is no file `{shown}`")).help_if(neighbour(&wanted))
        }
        _ => wrong(&format!(
            "the file `{shown}` cannot be read: {}",
            reason(&error)
        )),
    })?;
    if !found.starts_with(folder) {
        return Err(wrong(&format!(
            "`{shown}` lies outside of the folder of this file"
        ))
        .help(format!("put a copy of it into `{}`", folder.display())));
    }
    // Nothing that one would wait for.
    if !found.is_file() {
        return Err(wrong(&format!("`{shown}` is not a file")));
    }
    read(&found).map_err(|error| {
        let here = wrong(&format!("`{shown}`: {}", error.message()));
        let hints = error.hints().iter();
        hints.fold(here, |here, hint| here.help(hint.as_str()))
    })
}

/// Whether what a person gave is a path and not a name: it has a directory in it, or ends with `.toml`.
pub fn is_path(spec: &str) -> bool {
    let is_toml = |e: &std::ffi::OsStr| e.eq_ignore_ascii_case("toml");
    spec.contains(std::path::is_separator) || Path::new(spec).extension().is_some_and(is_toml)
}

/// An operating system's message without Rust's `(os error 13)`.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// A file in the same directory whose name is nearly the same.
pub fn neighbour(path: &Path) -> Option<String> {
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
    // A few hundred names are enough for a hint; a directory may have millions.
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
    fn every_way_to_be_no_text_file_has_its_own_message() {
        assert_eq!(
            message(b"a = 1\nb\0"),
            "this is not a text file: a zero byte in line 2, at byte 7"
        );
        assert_eq!(
            message(b"a = \"\xff\""),
            "this is not a text file: byte 0xff, which is no UTF-8, in line 1, at byte 5"
        );
        let large = vec![b'#'; usize::try_from(MAX_BYTES).unwrap() + 1];
        assert!(message(&large).contains("larger than 1 MB"));
        let dir = tempfile::tempdir().unwrap();
        let error = read(dir.path()).unwrap_err();
        assert_eq!(error.message(), "this is a directory, not a file");
        assert!(read(Path::new("")).is_err());
    }

    #[test]
    fn a_missing_file_is_named_with_its_neighbour() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("code.toml"), "").unwrap();
        let error = read(&dir.path().join("cdoe.toml")).unwrap_err();
        assert_eq!(error.message(), "there is no such file");
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
        // Root may read everything; then there is nothing to see.
        if let Err(error) = read(&path) {
            assert_eq!(error.message(), "the file may not be read");
        }
    }
}
