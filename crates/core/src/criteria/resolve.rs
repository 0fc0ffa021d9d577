use std::path::{Path, PathBuf};

use super::{
    builtin::{BUILTIN_NAMES, builtin},
    file,
};
use crate::{
    source::{self, FileAccess, SourceError},
    types::Criteria,
};

/// A set of criteria that can be selected by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AvailableCriteria {
    /// The name, for `-c NAME`.
    pub name: String,
    /// Its file, or `None` for a built-in set.
    pub path: Option<PathBuf>,
}

impl AvailableCriteria {
    /// Reads the set. `reach` returns which files a criteria file may refer to, given its full
    /// path.
    pub fn read(&self, reach: &dyn Fn(&Path) -> FileAccess) -> Result<Criteria, SourceError> {
        match &self.path {
            Some(path) => file::load(path, reach),
            None => builtin(&self.name)
                .ok_or_else(|| SourceError::for_file(&self.name, "no built-in set has this name")),
        }
    }
}

/// Returns the sets that can be selected by name: those of the directories in order, then the
/// built-in ones. A name that exists more than once is listed once, with the set that takes
/// precedence.
pub fn available(search_path: &[PathBuf]) -> Vec<AvailableCriteria> {
    let mut all: Vec<AvailableCriteria> = Vec::new();
    for dir in search_path {
        // A missing directory holds no criteria and is not an error.
        let Ok(entries) = std::fs::read_dir(dir) else {
            continue;
        };
        let mut here: Vec<AvailableCriteria> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let is_toml = path.extension().is_some_and(|e| e == "toml");
                Some(AvailableCriteria {
                    name: path.file_stem().filter(|_| is_toml)?.to_str()?.to_owned(),
                    path: Some(path),
                })
            })
            .collect();
        here.sort_by(|a, b| a.name.cmp(&b.name));
        all.extend(here);
    }
    all.extend(BUILTIN_NAMES.iter().map(|name| AvailableCriteria {
        name: (*name).to_owned(),
        path: None,
    }));
    let mut seen = std::collections::HashSet::new();
    all.retain(|a| seen.insert(a.name.clone()));
    all
}

/// Finds the criteria for a PATH or a NAME. A value that contains a directory or ends with `.toml`
/// is a path. A name is `NAME.toml` in one of the directories, in order, or a built-in set, so a
/// user's own file overrides a built-in set of the same name. A path is not checked here; reading a
/// missing file fails.
pub fn locate(spec: &str, search_path: &[PathBuf]) -> Result<AvailableCriteria, SourceError> {
    let path = Path::new(spec);
    let found = |path: Option<PathBuf>| AvailableCriteria {
        name: spec.to_owned(),
        path,
    };
    if source::is_path(spec) {
        return Ok(found(Some(path.to_owned())));
    }
    for dir in search_path {
        let file = dir.join(format!("{spec}.toml"));
        if !spec.is_empty() && file.exists() {
            return Ok(found(Some(file)));
        }
    }
    if BUILTIN_NAMES.contains(&spec) {
        return Ok(found(None));
    }
    if path.is_file() {
        return Ok(found(Some(path.to_owned())));
    }
    let all = available(search_path);
    let names = || all.iter().map(|a| a.name.as_str());
    let beside = format!("{spec}.toml");
    let near = if Path::new(&beside).is_file() {
        Some(beside.as_str())
    } else {
        source::similar(spec, names())
    };
    Err(
        SourceError::for_file(spec, "no criteria and no file have this name")
            .help_if(near.map(|n| format!("did you mean `{n}`?")))
            .help(format!("known names: {}", source::list(names()))),
    )
}

/// Reads a built-in set.
///
/// # Errors
/// If no built-in set has this name.
pub fn built_in(name: &str) -> Result<Criteria, SourceError> {
    builtin(name).ok_or_else(|| {
        let near = source::similar(name, BUILTIN_NAMES.iter().copied());
        SourceError::for_file(name, "no built-in criteria have this name")
            .help_if(near.map(|near| format!("did you mean `{near}`?")))
    })
}

/// Returns whether `spec` is the text of a criteria file rather than a path or a name: it has more
/// than one line.
pub fn is_inline(spec: &str) -> bool {
    spec.trim_end().contains('\n')
}

/// Reads the criteria for a PATH or a NAME as found by [`locate`], or parses `spec` itself if it is
/// the text of a criteria file. `reach` returns which files a criteria file may refer to, given its
/// full path.
pub fn resolve(
    spec: &str,
    search_path: &[PathBuf],
    reach: &dyn Fn(&Path) -> FileAccess,
) -> Result<Criteria, SourceError> {
    if is_inline(spec) {
        return file::parse(spec, "criteria");
    }
    locate(spec, search_path)?.read(reach)
}
