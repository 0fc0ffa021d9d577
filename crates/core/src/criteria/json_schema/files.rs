//! Loads the documents that a schema refers to while the criteria file is read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::Mutex;
use referencing::{Draft, Retrieve, SPECIFICATIONS, Uri};
use reqwest::Url;
use serde_json::Value;

use super::{INLINE, graph};
use crate::source::{Data, FileAccess, SourceError};

/// The maximum number of documents that one schema may consist of.
const MAX_DOCUMENTS: usize = 200;

/// Reads every document that the schema refers to, directly or through other documents. `inline_documents`
/// holds the documents written in the criteria file itself. Returns the documents by name: a URL
/// relative to the folder, or an absolute one.
///
/// # Errors
/// If a document cannot be loaded. The error points at the `$ref` that leads to it, or at the
/// position in the document.
pub(crate) fn gather(
    root: &Data,
    base: Option<&str>,
    inline_documents: IndexMap<String, Data>,
    folder: Option<&Path>,
    reach: FileAccess,
) -> Result<IndexMap<String, Data>, SourceError> {
    let library = DocumentLoader::new(folder, reach, inline_documents)
        .map_err(|message| root.source().file_error(&message))?;
    let start = library
        .folder
        .join(base.unwrap_or(INLINE))
        .map_err(|error| {
            root.error("", &format!("this is not a valid schema location: {error}"))
        })?;
    let draft = Draft::default().detect(root.value());
    let library = Arc::new(library);
    let retriever: Arc<dyn Retrieve> = library.clone();
    let prepared = SPECIFICATIONS
        .add(start.as_str(), root.value().clone())
        .and_then(|builder| builder.draft(draft).retriever(retriever).prepare())
        .map(drop);
    let state = std::mem::take(&mut *library.lock());
    if let Some((uri, failure)) = state.failures.into_iter().next() {
        let name = library.name_of(&uri);
        let read = state.read.values().map(|(url, data)| (url, data));
        let documents: Vec<(&Url, &Data)> = std::iter::once((&start, root)).chain(read).collect();
        let of_draft = |data: &Data| {
            let draft = data.value().get("$schema").and_then(Value::as_str);
            draft.is_some_and(|draft| draft.trim_end_matches('#') == uri)
        };
        if let Some((_, data)) = documents.iter().find(|(_, data)| of_draft(data)) {
            return Err(data
                .error("/$schema", &super::unknown_draft(&uri))
                .help(super::KNOWN_DRAFTS));
        }
        let place = documents
            .iter()
            .flat_map(|(url, data)| {
                graph::references(data.value())
                    .into_iter()
                    .map(move |(pointer, text)| (url, data, pointer, text))
            })
            .find(|(url, _, _, text)| {
                url.join(text).is_ok_and(|mut target| {
                    target.set_fragment(None);
                    target.as_str() == uri
                })
            });
        return Err(match (failure, place) {
            (LoadError::Unreadable(error), None) => error,
            (LoadError::Unreadable(error), Some((_, data, _, text))) => error.help(format!(
                "the `$ref` `{text}` in {} refers to this file",
                data.source().name()
            )),
            (LoadError::Absent(reason, hint), Some((_, data, pointer, text))) => data
                .error(
                    &pointer,
                    &format!("the `$ref` `{text}` cannot be resolved: {reason}"),
                )
                .help_if(hint),
            (LoadError::Absent(reason, hint), None) => root
                .error("", &format!("the schema needs `{name}`: {reason}"))
                .help_if(hint),
        });
    }
    prepared.map_err(|error| root.error("", &format!("the schema cannot be used: {error}")))?;
    Ok(state
        .read
        .into_iter()
        .map(|(name, (_, data))| (name, data))
        .collect())
}

/// Reads a file that a criteria file names, relative to its folder, and returns it with its name: a
/// URL relative to the folder, or an absolute one.
///
/// # Errors
/// If the file cannot be read (the error points at `place`) or parsed (it points at the position in
/// the file).
pub(crate) fn open(
    file: &str,
    folder: Option<&Path>,
    reach: FileAccess,
    place: &dyn Fn(&str) -> SourceError,
) -> Result<(String, Data), SourceError> {
    let library =
        DocumentLoader::new(folder, reach, IndexMap::new()).map_err(|message| place(&message))?;
    // Without symbolic links and `..`, so that a URL can name it.
    let path = library.path.as_deref().unwrap_or(Path::new("")).join(file);
    let path = match path.canonicalize() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && library.path.is_some() => {
            return Err(place(&format!("the file `{file}` does not exist"))
                .help("paths are relative to the criteria file's folder"));
        }
        found => found.unwrap_or(path),
    };
    let data = library.open(&path).map_err(|failure| match failure {
        LoadError::Unreadable(error) => error,
        LoadError::Absent(reason, hint) => {
            place(&format!("the file `{file}` cannot be used: {reason}")).help_if(hint)
        }
    })?;
    let url = Url::from_file_path(&path)
        .map_err(|()| place(&format!("the file `{file}` has a name that cannot be used")))?;
    Ok((library.name_of(url.as_str()), data))
}

/// Why a document could not be loaded.
enum LoadError {
    /// It exists but cannot be parsed.
    Unreadable(SourceError),
    /// It is missing or may not be read. Holds the reason and a hint.
    Absent(String, Option<String>),
}

/// The documents read and failed so far.
#[derive(Default)]
struct LoadedDocuments {
    /// Maps names to URLs and contents.
    read: IndexMap<String, (Url, Data)>,
    /// Maps URLs to failures.
    failures: IndexMap<String, LoadError>,
}

/// Loads documents and remembers them.
struct DocumentLoader {
    /// The URL of the criteria file's folder.
    folder: Url,
    /// The folder with symbolic links resolved, if it exists.
    path: Option<PathBuf>,
    /// The folder as the user wrote it.
    shown: PathBuf,
    reach: FileAccess,
    inline_documents: IndexMap<String, Data>,
    state: Mutex<LoadedDocuments>,
}

impl DocumentLoader {
    fn new(
        folder: Option<&Path>,
        reach: FileAccess,
        inline_documents: IndexMap<String, Data>,
    ) -> Result<Self, String> {
        let path = folder
            .map(|folder| {
                folder.canonicalize().map_err(|error| {
                    format!(
                        "the folder `{}` cannot be opened: {error}",
                        folder.display()
                    )
                })
            })
            .transpose()?;
        let url = match &path {
            Some(path) => Url::from_directory_path(path),
            None => Url::parse("file:///criteria/").map_err(drop),
        }
        .map_err(|()| "the criteria file's folder has a name that cannot be used".to_owned())?;
        Ok(Self {
            folder: url,
            path,
            shown: folder.unwrap_or(Path::new("")).to_owned(),
            reach,
            inline_documents,
            state: Mutex::default(),
        })
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, LoadedDocuments> {
        self.state.lock()
    }

    /// Returns the name of a document: its path relative to the folder.
    fn name_of(&self, uri: &str) -> String {
        Url::parse(uri)
            .ok()
            .filter(|url| url.scheme() == "file")
            .and_then(|url| self.folder.make_relative(&url))
            .unwrap_or_else(|| uri.to_owned())
    }

    fn fetch(&self, uri: &str) -> Result<Data, LoadError> {
        if self.lock().read.len() >= MAX_DOCUMENTS {
            let reason = format!("the schema consists of more than {MAX_DOCUMENTS} documents");
            return Err(LoadError::Absent(reason, None));
        }
        if let Some(data) = self.inline_documents.get(&self.name_of(uri)) {
            return Ok(data.clone());
        }
        // On some systems a file URL with a host is a file on another machine.
        let url = Url::parse(uri)
            .ok()
            .filter(|url| url.scheme() == "file" && url.host().is_none());
        let Some(file) = url.and_then(|url| url.to_file_path().ok()) else {
            return Err(LoadError::Absent(
                "schemas are not fetched from the network".to_owned(),
                Some(format!(
                    "download it, and name the file: documents = {{ \"{uri}\" = \"FILE\" }}"
                )),
            ));
        };
        self.open(&file)
    }

    /// Reads a file if access is allowed.
    fn open(&self, file: &Path) -> Result<Data, LoadError> {
        let Some(folder) = &self.path else {
            return Err(LoadError::Absent(
                "these criteria do not come from a file, so they have no folder".to_owned(),
                None,
            ));
        };
        let outside = || {
            LoadError::Absent(
                "it is outside the criteria file's folder".to_owned(),
                Some(
                    "copy it there, or, if you trust the criteria file, let it read files elsewhere with \
                     `--allow-exec`, or permanently with `[trust] exec` in your configuration"
                        .to_owned(),
                ),
            )
        };
        let inside = |file: &Path| self.reach == FileAccess::Anywhere || file.starts_with(folder);
        if !inside(file) {
            return Err(outside());
        }
        // A symbolic link may lead out of the folder.
        match file.canonicalize() {
            Ok(real) if !inside(&real) => return Err(outside()),
            // Reading a named pipe or a device may never return.
            Ok(real) if !real.is_file() && !real.is_dir() => {
                return Err(LoadError::Absent("it is not a file".to_owned(), None));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(LoadError::Absent("there is no such file".to_owned(), None));
            }
            _ => {}
        }
        let shown = match file.strip_prefix(folder) {
            Ok(rest) => self
                .shown
                .strip_prefix(".")
                .unwrap_or(&self.shown)
                .join(rest),
            Err(_) => file.to_owned(),
        };
        Data::read(&shown).map_err(LoadError::Unreadable)
    }
}

impl Retrieve for DocumentLoader {
    /// Never fails: documents that cannot be loaded are recorded in the failures, with more detail
    /// than this error could hold.
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let uri = uri.as_str();
        match self.fetch(uri) {
            Ok(data) => {
                let value = data.value().clone();
                if let Ok(url) = Url::parse(uri) {
                    self.lock().read.insert(self.name_of(uri), (url, data));
                }
                Ok(value)
            }
            Err(failure) => {
                self.lock().failures.insert(uri.to_owned(), failure);
                Ok(Value::Bool(true))
            }
        }
    }
}
