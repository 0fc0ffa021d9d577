//! Finds and reads the files to search for evidence.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use crate::source::{SourceError, similar_file_hint};
use crate::types::EvidenceSource;

/// Limits on what is read. More is probably a mistake, such as a home directory, and would delay
/// every run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The maximum size of one file, in bytes.
    pub(super) file: u64,
    /// The maximum number of files.
    pub(super) files: usize,
    /// The maximum total size, in bytes.
    pub(super) total: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file: 1_000_000,
            files: 5_000,
            total: 32_000_000,
        }
    }
}

/// A text to search for evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Document {
    /// Its path, relative to the path that the user gave.
    pub(super) path: String,
    pub(super) source: EvidenceSource,
    pub(super) text: String,
}

/// The documents read, with warnings about skipped files.
#[derive(Debug, Default)]
pub(super) struct LoadedFiles {
    pub(super) documents: Vec<Document>,
    pub(super) warnings: Vec<String>,
    /// The canonical paths of files already read.
    seen: HashSet<PathBuf>,
    bytes: u64,
    full: bool,
}

/// Reads files and folders. Skips hidden, ignored (`.gitignore`, `.ignore`) and binary files in
/// folders, and does not follow symbolic links. A file that is named directly is always read, or an
/// error.
///
/// # Errors
/// If a path does not exist, a named file is binary or too large, or a folder contains no usable
/// file.
pub(super) fn read(paths: &[PathBuf], limits: &Limits) -> Result<LoadedFiles, SourceError> {
    let mut reading = LoadedFiles::default();
    for path in paths {
        let shown = path.display().to_string();
        let metadata = fs_err::metadata(path).map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                SourceError::for_file(&shown, "no such file or folder")
                    .help_if(similar_file_hint(path))
            } else {
                SourceError::for_file(&shown, &format!("cannot read it: {error}"))
            }
        })?;
        if metadata.is_dir() {
            reading.folder(path, limits)?;
        } else if metadata.is_file() {
            reading.file(path, limits)?;
        } else {
            return Err(SourceError::for_file(
                &shown,
                "this is neither a file nor a folder",
            ));
        }
    }
    Ok(reading)
}

/// Why a file is skipped.
enum SkipReason {
    /// It exceeds the size limit.
    Large,
    /// It is not UTF-8 text.
    Binary,
    /// It is empty.
    Blank,
    /// Reading failed with this system error.
    Unreadable(String),
}

impl LoadedFiles {
    fn file(&mut self, path: &Path, limits: &Limits) -> Result<(), SourceError> {
        let fail = |message: &str| SourceError::for_file(&path.display().to_string(), message);
        if self.is_known(path) {
            return Ok(());
        }
        match load(path, limits.file) {
            Ok(text) => {
                self.add(path, text, limits);
                Ok(())
            }
            Err(SkipReason::Large) => Err(fail(&format!(
                "the file is larger than {}, the limit for evidence",
                megabytes(limits.file)
            ))
            .help("pass a smaller part of it, or its folder: large files in folders are skipped")),
            Err(SkipReason::Binary) => Err(fail("this is not a text file")
                .help("evidence must be UTF-8 text, such as code and documents")),
            Err(SkipReason::Blank) => Err(fail("the file is empty")),
            Err(SkipReason::Unreadable(reason)) => Err(fail(&format!("cannot read it: {reason}"))),
        }
    }

    fn folder(&mut self, folder: &Path, limits: &Limits) -> Result<(), SourceError> {
        let shown = folder.display().to_string();
        let walk = WalkBuilder::new(folder)
            .follow_links(false)
            // Apply `.gitignore` files outside of repositories, too.
            .require_git(false)
            .sort_by_file_path(Path::cmp)
            .build();
        let (mut used, mut large, mut unreadable) = (0_usize, Vec::new(), Vec::new());
        for entry in walk {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    unreadable.push(error.to_string());
                    continue;
                }
            };
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            if self.is_known(entry.path()) {
                used += 1;
                continue;
            }
            if self.documents.len() >= limits.files || self.bytes >= limits.total {
                self.is_full(&shown, limits);
                break;
            }
            match load(entry.path(), limits.file) {
                Ok(text) => {
                    self.add(entry.path(), text, limits);
                    used += 1;
                }
                Err(SkipReason::Large) => large.push(entry.path().display().to_string()),
                Err(SkipReason::Unreadable(reason)) => {
                    unreadable.push(format!("{}: {reason}", entry.path().display()));
                }
                Err(SkipReason::Binary | SkipReason::Blank) => {}
            }
        }
        let left_out = [
            (large, format!("larger than {}", megabytes(limits.file))),
            (unreadable, "not readable".to_owned()),
        ];
        for (files, why) in left_out {
            if let Some(first) = files.first() {
                let more = match files.len() {
                    1 => String::new(),
                    count => format!(" and {} more", count - 1),
                };
                self.warnings
                    .push(format!("skipped as evidence ({why}): {first}{more}"));
            }
        }
        if used == 0 && !self.full {
            return Err(SourceError::for_file(
                &shown,
                "this folder contains no text to search for evidence",
            )
            .help("hidden, ignored (`.gitignore`) and binary files are skipped; pass such a file by name"));
        }
        Ok(())
    }

    /// Returns whether a limit is reached, and warns once about the rest.
    fn is_full(&mut self, folder: &str, limits: &Limits) {
        if !self.full {
            self.full = true;
            let count = self.documents.len();
            self.warnings.push(format!(
                "only the first {count} files are searched for evidence (limits: {} and {}), not the \
                 rest of {folder}; pass more specific folders",
                limits.files,
                megabytes(limits.total)
            ));
        }
    }

    fn is_known(&self, path: &Path) -> bool {
        fs_err::canonicalize(path).is_ok_and(|path| self.seen.contains(&path))
    }

    fn add(&mut self, path: &Path, text: String, limits: &Limits) {
        if self.bytes >= limits.total || self.documents.len() >= limits.files {
            self.is_full(&path.display().to_string(), limits);
            return;
        }
        if let Ok(path) = fs_err::canonicalize(path) {
            self.seen.insert(path);
        }
        self.bytes += text.len() as u64;
        let shown = path.strip_prefix(".").unwrap_or(path);
        self.documents.push(Document {
            path: shown.display().to_string(),
            source: source_of(path),
            text,
        });
    }
}

/// Reads a text file of at most `limit` bytes.
fn load(path: &Path, limit: u64) -> Result<String, SkipReason> {
    let unreadable = |error: std::io::Error| SkipReason::Unreadable(error.to_string());
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(SkipReason::Large);
    }
    if bytes.contains(&0) {
        return Err(SkipReason::Binary);
    }
    let text = String::from_utf8(bytes).map_err(|_| SkipReason::Binary)?;
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    if text.trim().is_empty() {
        return Err(SkipReason::Blank);
    }
    Ok(text)
}

/// File extensions of prose.
const DOCUMENT_ENDINGS: &[&str] = &[
    "adoc", "asciidoc", "htm", "html", "man", "markdown", "md", "mdx", "org", "pod", "rst", "rtf",
    "tex", "texi", "text", "textile", "txt", "wiki",
];

/// File names of prose without an extension.
const DOCUMENT_NAMES: &[&str] = &[
    "authors",
    "changelog",
    "changes",
    "contributing",
    "copying",
    "history",
    "install",
    "license",
    "news",
    "notice",
    "readme",
    "todo",
];

/// Returns the kind of a file by its name: a document if it is known as one, else code.
fn source_of(path: &Path) -> EvidenceSource {
    let lower = |text: Option<&std::ffi::OsStr>| {
        text.and_then(|text| text.to_str())
            .unwrap_or_default()
            .to_lowercase()
    };
    let ending = lower(path.extension());
    let is_document = if ending.is_empty() {
        DOCUMENT_NAMES.contains(&lower(path.file_stem()).as_str())
    } else {
        DOCUMENT_ENDINGS.contains(&ending.as_str())
    };
    if is_document {
        EvidenceSource::Documentation
    } else {
        EvidenceSource::Codebase
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new(files: &[(&str, &[u8])]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (name, content) in files {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            Self(folder)
        }

        fn read(&self, names: &[&str], limits: Limits) -> Result<LoadedFiles, SourceError> {
            let paths: Vec<PathBuf> = names.iter().map(|name| self.0.path().join(name)).collect();
            read(&paths, &limits)
        }

        fn names(&self, reading: &LoadedFiles) -> Vec<String> {
            let root = format!("{}/", self.0.path().display());
            let mut names: Vec<String> = reading
                .documents
                .iter()
                .map(|document| document.path.replace(&root, ""))
                .collect();
            names.sort();
            names
        }
    }

    #[test]
    fn a_folder_is_read_without_what_is_hidden_ignored_or_no_text() {
        let folder = Folder::new(&[
            ("src/main.rs", b"fn main() {}"),
            ("docs/guide.md", b"\xef\xbb\xbf# Guide"),
            ("README", b"Read me."),
            (".secret", b"hidden"),
            (".gitignore", b"target/\n*.log\n"),
            ("target/out.rs", b"generated"),
            ("a.log", b"logged"),
            ("image.png", b"\x89PNG\0\0"),
            ("latin.txt", b"caf\xe9"),
            ("empty.md", b" \n"),
        ]);
        let reading = folder.read(&["", "src"], Limits::default()).unwrap();
        assert_eq!(
            folder.names(&reading),
            ["README", "docs/guide.md", "src/main.rs"]
        );
        assert!(reading.warnings.is_empty(), "{:?}", reading.warnings);
        let source = |name: &str| {
            let document = reading.documents.iter().find(|d| d.path.ends_with(name));
            document.unwrap().source
        };
        assert_eq!(source("main.rs"), EvidenceSource::Codebase);
        assert_eq!(source("guide.md"), EvidenceSource::Documentation);
        assert_eq!(source("README"), EvidenceSource::Documentation);
        // A file that is named directly is read.
        let reading = folder
            .read(&[".secret", "a.log"], Limits::default())
            .unwrap();
        assert_eq!(folder.names(&reading), [".secret", "a.log"]);
    }

    #[test]
    fn what_cannot_be_used_is_an_error_where_it_was_asked_for() {
        let folder = Folder::new(&[
            ("guide.md", b"# Guide"),
            ("image.png", b"\x89PNG\0"),
            ("empty.md", b""),
            ("big.txt", &[b'x'; 2000]),
            ("bare/.hidden", b"x"),
        ]);
        let limits = Limits {
            file: 1000,
            ..Limits::default()
        };
        for (name, message) in [
            ("giude.md", "no such file or folder"),
            ("image.png", "this is not a text file"),
            ("empty.md", "the file is empty"),
            ("big.txt", "larger than 1 MB"),
            ("bare", "this folder contains no text"),
        ] {
            let error = folder.read(&[name], limits).unwrap_err();
            assert!(error.message().contains(message), "{error}");
        }
        let error = folder.read(&["giude.md"], limits).unwrap_err();
        assert!(error.hints()[0].contains("guide.md"), "{error}");
    }

    #[test]
    fn bounds_are_kept_and_said() {
        let files: Vec<(String, Vec<u8>)> = (0..20)
            .map(|n| (format!("f{n:02}.txt"), vec![b'x'; 100]))
            .collect();
        let mut files: Vec<(&str, &[u8])> = files
            .iter()
            .map(|(name, content)| (name.as_str(), content.as_slice()))
            .collect();
        files.push(("big.txt", &[b'x'; 2000]));
        let folder = Folder::new(&files);
        let few = Limits {
            file: 1000,
            files: 5,
            ..Limits::default()
        };
        let reading = folder.read(&[""], few).unwrap();
        assert_eq!(reading.documents.len(), 5);
        assert_eq!(reading.warnings.len(), 2, "{:?}", reading.warnings);
        assert!(reading.warnings[0].contains("big.txt") || reading.warnings[1].contains("big.txt"));
        let small = Limits {
            total: 350,
            ..Limits::default()
        };
        let reading = folder.read(&["f00.txt", ""], small).unwrap();
        let total: usize = reading.documents.iter().map(|d| d.text.len()).sum();
        assert!(total <= 350 + 2000, "{total}");
        assert!(
            reading.warnings[0].contains("not the rest of"),
            "{:?}",
            reading.warnings
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_in_folders_are_not_followed() {
        let folder = Folder::new(&[("a/x.txt", b"text")]);
        let root = folder.0.path();
        std::os::unix::fs::symlink(root, root.join("a/loop")).unwrap();
        let reading = folder.read(&["a"], Limits::default()).unwrap();
        assert_eq!(folder.names(&reading), ["a/x.txt"]);
        let reading = folder.read(&["a/loop/a"], Limits::default()).unwrap();
        assert_eq!(reading.documents.len(), 1, "but what is named is read");
    }
}
