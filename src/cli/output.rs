//! Writing files for the user.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::error::CliError;

/// A file that will be written at the end of a run. It is opened at the start, so that a place that
/// cannot be written to is found before any work is done, and put in place in one step.
pub(super) struct OutputFile {
    path: PathBuf,
    temporary: NamedTempFile,
}

impl OutputFile {
    /// Prepares to write a file.
    pub(super) fn prepare(path: &Path) -> Result<Self, CliError> {
        let failed = |error: &dyn std::fmt::Display| {
            CliError::failure(format!("cannot write `{}`: {error}", path.display()))
        };
        if path.is_dir() {
            return Err(failed(&"it is a directory"));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".reflect-");
        // Temporary files are private by default; this one becomes a file like any other.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let temporary = builder
            .tempfile_in(folder)
            .map_err(|error| failed(&error))?;
        Ok(Self {
            path: path.to_owned(),
            temporary,
        })
    }

    /// Writes the text and puts the file in place.
    pub(super) fn write(mut self, text: &str) -> Result<(), CliError> {
        let failed = |path: &Path, error: &dyn std::fmt::Display| {
            CliError::failure(format!("cannot write `{}`: {error}", path.display()))
        };
        self.temporary
            .write_all(text.as_bytes())
            .and_then(|()| self.temporary.as_file().sync_all())
            .map_err(|error| failed(&self.path, &error))?;
        if let Ok(replaced) = fs_err::metadata(&self.path) {
            let _ = fs_err::set_permissions(self.temporary.path(), replaced.permissions());
        }
        self.temporary
            .persist(&self.path)
            .map_err(|error| failed(&self.path, &error.error))?;
        Ok(())
    }
}
