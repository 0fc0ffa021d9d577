//! The criteria that clients may use, by name.

use std::path::PathBuf;

use crate::cli::error::CliError;
use crate::cli::settings;
use crate::criteria::{self, AvailableCriteria};
use crate::source::{list, similar};

/// The folders named at start, then the built-in sets.
pub(super) struct CriteriaNames {
    /// With all symbolic links followed.
    folders: Vec<PathBuf>,
}

impl CriteriaNames {
    /// # Errors
    /// If one of these is not a folder.
    pub(super) fn new(folders: &[PathBuf]) -> Result<Self, CliError> {
        let folder = |path: &PathBuf| match path.canonicalize() {
            Ok(folder) if folder.is_dir() => Ok(folder),
            _ => Err(CliError::usage(format!(
                "--criteria-dir: `{}` is not a folder",
                path.display()
            ))),
        };
        Ok(Self {
            folders: folders.iter().map(folder).collect::<Result<_, _>>()?,
        })
    }

    /// The sets that there are now. A file that is a link to a place outside all folders is not one.
    pub(super) fn all(&self) -> Vec<AvailableCriteria> {
        let mut all = criteria::available(&self.folders);
        all.retain(|set| match &set.path {
            Some(file) => (self.folders.iter()).any(|folder| settings::is_within(file, folder)),
            None => true,
        });
        all
    }

    /// Returns what the set of this name is called elsewhere: its path, or the name of a built-in set. Nothing but a
    /// listed name is found, so a name is never used as a path.
    pub(super) fn find(&self, name: &str) -> Result<String, CliError> {
        let all = self.all();
        let Some(set) = all.iter().find(|set| set.name == name) else {
            let names = || all.iter().map(|set| set.name.as_str());
            let error = CliError::usage(format!("no criteria named `{name}`"));
            return Err(error.hint(known("names", name, names)));
        };
        match &set.path {
            None => Ok(name.to_owned()),
            Some(path) => path.to_str().map(str::to_owned).ok_or_else(|| {
                CliError::usage(format!("the path of the criteria `{name}` is not UTF-8"))
            }),
        }
    }
}

/// A hint for a name that is not one of these.
pub(super) fn known<'n, I: Iterator<Item = &'n str>>(
    what: &str,
    name: &str,
    names: impl Fn() -> I,
) -> String {
    let near = similar(name, names()).map(|near| format!("did you mean `{near}`? "));
    format!("{}{what}: {}", near.unwrap_or_default(), list(names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_in_the_folders_are_found() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("criteria");
        fs_err::create_dir(&folder).unwrap();
        fs_err::write(folder.join("house.toml"), "").unwrap();
        fs_err::write(folder.join("notes.txt"), "").unwrap();
        fs_err::write(root.path().join("secret.toml"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.path().join("secret.toml"), folder.join("link.toml"))
            .unwrap();

        let names = CriteriaNames::new(std::slice::from_ref(&folder)).unwrap();
        let house = folder.canonicalize().unwrap().join("house.toml");
        assert_eq!(names.find("house").unwrap(), house.display().to_string());
        assert_eq!(names.find("writing").unwrap(), "writing");
        for bad in [
            "",
            "notes",
            "link",
            "secret",
            "../secret",
            "../secret.toml",
            "house.toml",
            "./house",
            &house.display().to_string(),
            "name = \"x\"\n",
        ] {
            let error = names.find(bad).unwrap_err();
            assert!(error.hint.unwrap().contains("`house`"), "{bad}");
        }
        assert!(CriteriaNames::new(&[root.path().join("none")]).is_err());
    }
}
