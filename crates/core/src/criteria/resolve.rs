use std::path::{Path, PathBuf};

use super::{
    builtin::{BUILTIN_NAMES, builtin},
    file,
};
use crate::{
    source::{self, Reach, SourceError},
    types::Criteria,
};

/// A set that can be asked for by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    /// The name, for `-c NAME`.
    pub name: String,
    /// Its file; `None` for a built-in set.
    pub path: Option<PathBuf>,
}

impl Available {
    /// Reads the set. `reach` says which files a criteria file may refer to, from its full path.
    pub fn read(&self, reach: &dyn Fn(&Path) -> Reach) -> Result<Criteria, SourceError> {
        match &self.path {
            Some(path) => file::load(path, reach),
            None => builtin(&self.name).ok_or_else(|| {
                SourceError::whole(&self.name, "there is no built-in set of this name")
            }),
        }
    }
}

/// The sets that can be asked for by name: those of the directories, in their order, then the built-in
/// ones. A name appears once, with what it stands for.
pub fn available(search_path: &[PathBuf]) -> Vec<Available> {
    let mut all: Vec<Available> = Vec::new();
    for dir in search_path {
        // A directory that is not there holds no criteria; that is no error.
        let Ok(entries) = std::fs::read_dir(dir) else {
            continue;
        };
        let mut here: Vec<Available> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let is_toml = path.extension().is_some_and(|e| e == "toml");
                Some(Available {
                    name: path.file_stem().filter(|_| is_toml)?.to_str()?.to_owned(),
                    path: Some(path),
                })
            })
            .collect();
        here.sort_by(|a, b| a.name.cmp(&b.name));
        all.extend(here);
    }
    all.extend(BUILTIN_NAMES.iter().map(|name| Available {
        name: (*name).to_owned(),
        path: None,
    }));
    let mut seen = std::collections::HashSet::new();
    all.retain(|a| seen.insert(a.name.clone()));
    all
}

/// Finds the criteria that a PATH or a NAME stands for. What has a directory in it or ends with `.toml`
/// is a path. A name is `NAME.toml` in one of the directories, in their order, or a built-in set: so a
/// user's own file goes before a built-in set of the same name. A path need not be there; reading it says
/// so.
pub fn locate(spec: &str, search_path: &[PathBuf]) -> Result<Available, SourceError> {
    let path = Path::new(spec);
    let found = |path: Option<PathBuf>| Available {
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
        SourceError::whole(spec, "there are no criteria of this name, and no such file")
            .help_if(near.map(|n| format!("did you mean `{n}`?")))
            .help(format!("known names: {}", source::list(names()))),
    )
}

/// Reads a built-in set.
///
/// # Errors
/// If there is none of this name.
pub fn built_in(name: &str) -> Result<Criteria, SourceError> {
    builtin(name).ok_or_else(|| {
        let near = source::similar(name, BUILTIN_NAMES.iter().copied());
        SourceError::whole(name, "there are no built-in criteria of this name")
            .help_if(near.map(|near| format!("did you mean `{near}`?")))
    })
}

/// Whether this is the text of a criteria file, and neither its path nor a name: it has more than one line.
pub fn is_inline(spec: &str) -> bool {
    spec.trim_end().contains('\n')
}

/// Reads the criteria that a PATH or a NAME stands for, as [`locate`] finds them; or those of a text that is itself
/// that of a criteria file. `reach` says which files a criteria file may refer to, from its full path.
pub fn resolve(
    spec: &str,
    search_path: &[PathBuf],
    reach: &dyn Fn(&Path) -> Reach,
) -> Result<Criteria, SourceError> {
    if is_inline(spec) {
        return file::parse(spec, "criteria");
    }
    locate(spec, search_path)?.read(reach)
}
