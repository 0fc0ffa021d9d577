//! The files that evidence is looked for in.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use crate::source::{SourceError, neighbour};
use crate::types::EvidenceSource;

/// How much is read: more is a mistake, such as a home directory, and would make every run wait for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The most bytes of one file.
    pub(super) file: u64,
    /// The most files.
    pub(super) files: usize,
    /// The most bytes of all files together.
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

/// A text that evidence is looked for in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Document {
    /// Its path, from where the user named it.
    pub(super) path: String,
    pub(super) source: EvidenceSource,
    pub(super) text: String,
}

/// What was read, and what people should know about it.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) documents: Vec<Document>,
    pub(super) warnings: Vec<String>,
    /// Files that are read already, by whatever name.
    seen: HashSet<PathBuf>,
    bytes: u64,
    full: bool,
}

/// Reads files and folders. In folders, what is hidden, ignored by `.gitignore` or `.ignore`, or no text is
/// left out, and symbolic links are not followed. A file that is named itself is read in any case, or is
/// an error.
///
/// # Errors
/// If a path does not exist, a file is no text or too large, or a folder has nothing in it that can be used.
pub(super) fn read(paths: &[PathBuf], limits: &Limits) -> Result<Reading, SourceError> {
    let mut reading = Reading::default();
    for path in paths {
        let shown = path.display().to_string();
        let metadata = fs_err::metadata(path).map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                SourceError::whole(&shown, "there is no such file or folder")
                    .help_if(neighbour(path))
            } else {
                SourceError::whole(&shown, &format!("it cannot be read: {error}"))
            }
        })?;
        if metadata.is_dir() {
            reading.folder(path, limits)?;
        } else if metadata.is_file() {
            reading.file(path, limits)?;
        } else {
            return Err(SourceError::whole(
                &shown,
                "this is neither a file nor a folder",
            ));
        }
    }
    Ok(reading)
}

/// Why a file is not used.
enum Unusable {
    /// It is larger than it may be.
    Large,
    /// It is no UTF-8 text.
    Binary,
    /// There is nothing in it.
    Blank,
    /// The system says so.
    Unreadable(String),
}

impl Reading {
    fn file(&mut self, path: &Path, limits: &Limits) -> Result<(), SourceError> {
        let fail = |message: &str| SourceError::whole(&path.display().to_string(), message);
        if self.is_known(path) {
            return Ok(());
        }
        match load(path, limits.file) {
            Ok(text) => {
                self.add(path, text, limits);
                Ok(())
            }
            Err(Unusable::Large) => Err(fail(&format!(
                "the file is larger than {}, too large to look for evidence in",
                megabytes(limits.file)
            ))
            .help("give the part of it that matters, or the folder that it is in: large files are left out there")),
            Err(Unusable::Binary) => Err(fail("this is not a text file")
                .help("evidence is looked for in UTF-8 text: code and documents")),
            Err(Unusable::Blank) => Err(fail("the file is empty")),
            Err(Unusable::Unreadable(reason)) => Err(fail(&format!("it cannot be read: {reason}"))),
        }
    }

    fn folder(&mut self, folder: &Path, limits: &Limits) -> Result<(), SourceError> {
        let shown = folder.display().to_string();
        let walk = WalkBuilder::new(folder)
            .follow_links(false)
            // A `.gitignore` says what is not worth reading also where there is no repository.
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
                Err(Unusable::Large) => large.push(entry.path().display().to_string()),
                Err(Unusable::Unreadable(reason)) => {
                    unreadable.push(format!("{}: {reason}", entry.path().display()));
                }
                Err(Unusable::Binary | Unusable::Blank) => {}
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
                self.warnings.push(format!(
                    "no evidence is looked for in what is {why}: {first}{more}"
                ));
            }
        }
        if used == 0 && !self.full {
            return Err(SourceError::whole(
                &shown,
                "there is no text in this folder to look for evidence in",
            )
            .help("what is hidden, in a `.gitignore`, or no text is left out; name such a file itself"));
        }
        Ok(())
    }

    /// Says once that the rest is left out.
    fn is_full(&mut self, folder: &str, limits: &Limits) {
        if !self.full {
            self.full = true;
            let count = self.documents.len();
            self.warnings.push(format!(
                "evidence is looked for in the first {count} files only, of at most {} or {}: not in the \
                 rest of {folder}; name the folders that matter",
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

/// Reads a text file, not more of it than is allowed.
fn load(path: &Path, limit: u64) -> Result<String, Unusable> {
    let unreadable = |error: std::io::Error| Unusable::Unreadable(error.to_string());
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(Unusable::Large);
    }
    if bytes.contains(&0) {
        return Err(Unusable::Binary);
    }
    let text = String::from_utf8(bytes).map_err(|_| Unusable::Binary)?;
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    if text.trim().is_empty() {
        return Err(Unusable::Blank);
    }
    Ok(text)
}

/// Endings of texts for people.
const DOCUMENT_ENDINGS: &[&str] = &[
    "adoc", "asciidoc", "htm", "html", "man", "markdown", "md", "mdx", "org", "pod", "rst", "rtf",
    "tex", "texi", "text", "textile", "txt", "wiki",
];

/// Names of texts for people, without an ending.
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

/// What kind of text a file is, by its name: a document if it is one of those known as such, else code.
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

        fn read(&self, names: &[&str], limits: Limits) -> Result<Reading, SourceError> {
            let paths: Vec<PathBuf> = names.iter().map(|name| self.0.path().join(name)).collect();
            read(&paths, &limits)
        }

        fn names(&self, reading: &Reading) -> Vec<String> {
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
        // What is named is read.
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
            ("giude.md", "there is no such file or folder"),
            ("image.png", "this is not a text file"),
            ("empty.md", "the file is empty"),
            ("big.txt", "larger than 1 MB"),
            ("bare", "there is no text in this folder"),
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
            reading.warnings[0].contains("not in the rest of"),
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
