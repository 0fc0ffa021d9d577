//! Reading the documents that a schema refers to, when the criteria file is read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::Mutex;
use referencing::{Draft, Retrieve, SPECIFICATIONS, Uri};
use reqwest::Url;
use serde_json::Value;

use super::{INLINE, graph};
use crate::source::{Data, Reach, SourceError};

/// The most documents that one schema may be made of.
const MAX_DOCUMENTS: usize = 200;

/// Reads every document that the schema refers to, directly or through others; `given` are those that stand
/// in the criteria file itself. They come by their names: relative URLs from the folder, or absolute ones.
///
/// # Errors
/// If a document cannot be had: at the `$ref` that leads to it, or at the place in the document.
pub(crate) fn gather(
    root: &Data,
    base: Option<&str>,
    given: IndexMap<String, Data>,
    folder: Option<&Path>,
    reach: Reach,
) -> Result<IndexMap<String, Data>, SourceError> {
    let library = Library::new(folder, reach, given)
        .map_err(|message| root.source().error_of_whole(&message))?;
    let start = library
        .folder
        .join(base.unwrap_or(INLINE))
        .map_err(|error| root.error("", &format!("this is no place of a schema: {error}")))?;
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
            (Failure::Unreadable(error), None) => error,
            (Failure::Unreadable(error), Some((_, data, _, text))) => error.help(format!(
                "the `$ref` `{text}` in {} leads to this file",
                data.source().name()
            )),
            (Failure::Absent(reason, hint), Some((_, data, pointer, text))) => data
                .error(
                    &pointer,
                    &format!("the `$ref` `{text}` leads nowhere: {reason}"),
                )
                .help_if(hint),
            (Failure::Absent(reason, hint), None) => root
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

/// Reads a file that a criteria file names, as seen from its folder; returns it with its name: a relative URL
/// from the folder, or an absolute one.
///
/// # Errors
/// What is wrong, at `place`; or at the place in the file.
pub(crate) fn open(
    file: &str,
    folder: Option<&Path>,
    reach: Reach,
    place: &dyn Fn(&str) -> SourceError,
) -> Result<(String, Data), SourceError> {
    let library =
        Library::new(folder, reach, IndexMap::new()).map_err(|message| place(&message))?;
    // Without links and without `..`, so that it can be named by a URL.
    let path = library.path.as_deref().unwrap_or(Path::new("")).join(file);
    let path = match path.canonicalize() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && library.path.is_some() => {
            return Err(place(&format!("there is no file `{file}`"))
                .help("files are looked for in the criteria file's folder"));
        }
        found => found.unwrap_or(path),
    };
    let data = library.open(&path).map_err(|failure| match failure {
        Failure::Unreadable(error) => error,
        Failure::Absent(reason, hint) => {
            place(&format!("the file `{file}` cannot be used: {reason}")).help_if(hint)
        }
    })?;
    let url = Url::from_file_path(&path)
        .map_err(|()| place(&format!("the file `{file}` has a name that cannot be used")))?;
    Ok((library.name_of(url.as_str()), data))
}

/// Why a document could not be had.
enum Failure {
    /// It is there, but it cannot be read.
    Unreadable(SourceError),
    /// It is not there, or may not be read; with what to do about it.
    Absent(String, Option<String>),
}

/// What was read so far.
#[derive(Default)]
struct State {
    /// By name, with the URL.
    read: IndexMap<String, (Url, Data)>,
    /// By URL.
    failures: IndexMap<String, Failure>,
}

/// The documents that can be had.
struct Library {
    /// The URL of the criteria file's folder.
    folder: Url,
    /// The folder without links, if there is one.
    path: Option<PathBuf>,
    /// The same as people named it.
    shown: PathBuf,
    reach: Reach,
    given: IndexMap<String, Data>,
    state: Mutex<State>,
}

impl Library {
    fn new(
        folder: Option<&Path>,
        reach: Reach,
        given: IndexMap<String, Data>,
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
            given,
            state: Mutex::default(),
        })
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
    }

    /// What a document is named by: its place seen from the folder.
    fn name_of(&self, uri: &str) -> String {
        Url::parse(uri)
            .ok()
            .filter(|url| url.scheme() == "file")
            .and_then(|url| self.folder.make_relative(&url))
            .unwrap_or_else(|| uri.to_owned())
    }

    fn fetch(&self, uri: &str) -> Result<Data, Failure> {
        if self.lock().read.len() >= MAX_DOCUMENTS {
            let reason = format!("the schema is made of more than {MAX_DOCUMENTS} documents");
            return Err(Failure::Absent(reason, None));
        }
        if let Some(data) = self.given.get(&self.name_of(uri)) {
            return Ok(data.clone());
        }
        // One with a host is a file of another machine, on systems that know such files.
        let url = Url::parse(uri)
            .ok()
            .filter(|url| url.scheme() == "file" && url.host().is_none());
        let Some(file) = url.and_then(|url| url.to_file_path().ok()) else {
            return Err(Failure::Absent(
                "nothing is fetched from the network for a schema".to_owned(),
                Some(format!(
                    "fetch it once, and name the file: documents = {{ \"{uri}\" = \"FILE\" }}"
                )),
            ));
        };
        self.open(&file)
    }

    /// Reads a file, if it may be read.
    fn open(&self, file: &Path) -> Result<Data, Failure> {
        let Some(folder) = &self.path else {
            return Err(Failure::Absent(
                "these criteria are in no file, so there is no folder to look in".to_owned(),
                None,
            ));
        };
        let outside = || {
            Failure::Absent(
                "it is outside of the criteria file's folder".to_owned(),
                Some(
                    "copy it there; or, if you trust the criteria file, let it read files elsewhere with \
                     `--allow-exec`, or for good with `[trust] exec` in your configuration"
                        .to_owned(),
                ),
            )
        };
        let inside = |file: &Path| self.reach == Reach::Anywhere || file.starts_with(folder);
        if !inside(file) {
            return Err(outside());
        }
        // A link may lead out of the folder.
        match file.canonicalize() {
            Ok(real) if !inside(&real) => return Err(outside()),
            // Reading a named pipe or a device may never end.
            Ok(real) if !real.is_file() && !real.is_dir() => {
                return Err(Failure::Absent("it is not a file".to_owned(), None));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Failure::Absent("there is no such file".to_owned(), None));
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
        Data::read(&shown).map_err(Failure::Unreadable)
    }
}

impl Retrieve for Library {
    /// Never fails: what could not be had stands in the list of failures, with more than could be said here.
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
