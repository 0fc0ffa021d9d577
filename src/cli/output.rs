//! Writing files for the user.

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::args::{Format, OutputArgs, ReportFormat, RunArgs};
use super::error::CliError;
use crate::report;
use crate::types::{RunRecord, Stamped};

/// A file that will be written at the end of a run. It is opened at the start, so that a place that
/// cannot be written to is found before any work is done.
pub(super) struct OutputFile {
    /// As the user wrote it.
    path: PathBuf,
    target: Target,
}

enum Target {
    /// A file, there or not, put in place in one step.
    File {
        /// Where it is, links followed: what is behind a link is replaced, not the link.
        path: PathBuf,
        temporary: NamedTempFile,
    },
    /// A device or a pipe: it is written to. To replace it, as root could, would destroy it.
    Special,
}

impl OutputFile {
    /// Prepares to write a file.
    pub(super) fn prepare(path: &Path) -> Result<Self, CliError> {
        let metadata = fs_err::metadata(path);
        if metadata.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
            return Err(failed(path, &"it is a directory"));
        }
        let target = if metadata.is_ok_and(|metadata| !metadata.is_file()) {
            Target::Special
        } else {
            let real = fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let temporary = temporary_beside(&real).map_err(|error| failed(path, &error))?;
            Target::File {
                path: real,
                temporary,
            }
        };
        Ok(Self {
            path: path.to_owned(),
            target,
        })
    }

    /// Prepares to write a file, if there is to be one.
    pub(super) fn prepare_if(path: Option<&Path>) -> Result<Option<Self>, CliError> {
        path.map(Self::prepare).transpose()
    }

    /// Writes the text and puts the file in place.
    pub(super) fn write(self, text: &str) -> Result<(), CliError> {
        match self.target {
            Target::File {
                path,
                mut temporary,
            } => {
                temporary
                    .write_all(text.as_bytes())
                    .and_then(|()| temporary.as_file().sync_all())
                    .map_err(|error| failed(&self.path, &error))?;
                if let Ok(replaced) = fs_err::metadata(&path) {
                    let _ = fs_err::set_permissions(temporary.path(), replaced.permissions());
                }
                temporary
                    .persist(&path)
                    .map_err(|error| failed(&self.path, &error.error))?;
                Ok(())
            }
            Target::Special => std::fs::OpenOptions::new()
                .write(true)
                .open(&self.path)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(|error| failed(&self.path, &error)),
        }
    }
}

impl RunArgs {
    /// Whether what is asked for goes together.
    pub(super) fn check(&self) -> Result<(), CliError> {
        if self.extract && self.output.format != Format::Text {
            return Err(CliError::usage(
                "`--extract` is about the answer as text, and `--format` asks for something else",
            )
            .hint("leave one of them out"));
        }
        self.output.check()
    }
}

impl OutputArgs {
    /// Whether what is asked for goes together.
    pub(super) fn check(&self) -> Result<(), CliError> {
        if self.format == Format::Ndjson && self.output.is_some() {
            return Err(CliError::usage(
                "`--format ndjson` prints events as they happen, and `--output` the answer",
            )
            .hint("redirect standard output for the events, or use `--format json`"));
        }
        Ok(())
    }

    /// In which form the report is written, by the name of its file: as Markdown where that says nothing.
    pub(super) fn report_format(&self) -> ReportFormat {
        let named = self.report.as_deref().and_then(ReportFormat::of_file);
        named.unwrap_or(ReportFormat::Markdown)
    }
}

impl ReportFormat {
    /// The form that the ending of a file's name asks for.
    pub(super) fn of_file(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "html" | "htm" => Some(Self::Html),
            "json" => Some(Self::Json),
            "md" | "markdown" => Some(Self::Markdown),
            _ => None,
        }
    }

    /// The report on a run.
    pub(super) fn report(self, record: &RunRecord, events: &[Stamped]) -> String {
        match self {
            Self::Markdown => report::markdown(record),
            Self::Html => report::html(&[events]),
            Self::Json => report::json(record),
        }
    }
}

fn temporary_beside(path: &Path) -> std::io::Result<NamedTempFile> {
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
    builder.tempfile_in(folder)
}

fn failed(path: &Path, error: &dyn Display) -> CliError {
    CliError::failure(format!("cannot write `{}`: {error}", path.display()))
}
