//! The destination of outputs: stdout or files.

use std::fmt::Display;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::args::{BatchArgs, Format, OutputArgs, OutputFormat, ReportFormat, RunArgs};
use super::error::CliError;
use super::printer::{self, Reader};
use crate::report;
use crate::types::{RunRecord, Stamped};

/// The destination of an output: stdout or a file. A file is prepared at the start, so that an unwritable
/// path is reported before any work, and written atomically at the end.
pub(super) struct Output {
    /// The path, as the user wrote it.
    path: PathBuf,
    target: Target,
}

enum Target {
    Stdout,
    /// A file, replaced atomically.
    File {
        /// Its path, with symbolic links resolved: the target of a link is replaced, not the link.
        path: PathBuf,
        temporary: NamedTempFile,
    },
    /// A device or a pipe, opened for writing. Replacing it, as root could, would destroy it.
    Special,
}

/// Returns the file that an option names; `None` for stdout (`-`).
pub(super) fn named_file(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| *path != Path::new("-"))
}

impl Output {
    /// Prepares the destination of an option: a file, or stdout if it is absent or `-`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, CliError> {
        let Some(path) = named_file(path) else {
            return Ok(Self {
                path: PathBuf::from("-"),
                target: Target::Stdout,
            });
        };
        let metadata = fs_err::metadata(path);
        if metadata.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
            return Err(CliError::usage(cannot_write(path, &"it is a directory")));
        }
        let exists = metadata.is_ok();
        let target = if metadata.is_ok_and(|metadata| !metadata.is_file()) {
            Target::Special
        } else {
            let real = real_path(path);
            if exists {
                let writable = std::fs::OpenOptions::new().write(true).open(&real);
                writable.map_err(|error| unusable(path, &error))?;
            }
            let temporary = temporary_beside(&real).map_err(|error| unusable(path, &error))?;
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

    /// Whether it is stdout.
    pub(super) fn is_stdout(&self) -> bool {
        matches!(self.target, Target::Stdout)
    }

    /// Writes the text. A file appears only when it is complete.
    ///
    /// # Errors
    /// If writing fails.
    pub(super) fn write(self, text: &str) -> Result<Reader, CliError> {
        let written = match self.target {
            Target::Stdout => return printer::print(text),
            Target::File {
                path,
                mut temporary,
            } => temporary
                .write_all(text.as_bytes())
                .and_then(|()| temporary.as_file().sync_all())
                .and_then(|()| {
                    if let Ok(replaced) = fs_err::metadata(&path) {
                        let _ = fs_err::set_permissions(temporary.path(), replaced.permissions());
                    }
                    temporary.persist(&path).map_err(|error| error.error)
                })
                .map(drop),
            Target::Special => std::fs::OpenOptions::new()
                .write(true)
                .open(&self.path)
                .and_then(|mut file| {
                    let text = printer::for_device(text, &file);
                    file.write_all(text.as_bytes())
                }),
        };
        written
            .map(|()| Reader::There)
            .map_err(|error| CliError::failure(cannot_write(&self.path, &inner(&error))))
    }

    /// Writes a text that was expensive to produce. If that fails, writes it to stdout, else to a new file,
    /// and the error names the place. `kept` is a hint on how to get the text if it is stored elsewhere.
    ///
    /// # Errors
    /// If the text cannot be written to its destination.
    pub(super) fn deliver(self, text: &str, kept: Option<String>) -> Result<Reader, CliError> {
        let stdout_is_free = !self.is_stdout();
        self.write(text)
            .map_err(|error| elsewhere(error, text, stdout_is_free, kept))
    }

    /// Whether both are the same destination.
    fn is_same(&self, other: &Self) -> bool {
        match (&self.target, &other.target) {
            (Target::Stdout, Target::Stdout) => true,
            (Target::File { path: one, .. }, Target::File { path: other, .. }) => one == other,
            _ => false,
        }
    }
}

/// Rescues a text that could not be written to its destination: to stdout if that is free, else to a new file
/// unless it is `kept` elsewhere. The error names the place.
pub(super) fn elsewhere(
    error: CliError,
    text: &str,
    stdout_is_free: bool,
    kept: Option<String>,
) -> CliError {
    let printed = stdout_is_free && matches!(printer::print(text), Ok(Reader::There));
    match kept {
        _ if printed => error.hint("wrote the output to stdout instead"),
        Some(kept) => error.hint(kept),
        None => rescue(error, text),
    }
}

/// Writes a text to a new file, or to stderr if that fails. The error names the place.
fn rescue(error: CliError, text: &str) -> CliError {
    let folders = [std::env::temp_dir(), PathBuf::from(".")];
    let saved = folders.iter().find_map(|folder| {
        let mut builder = tempfile::Builder::new();
        let mut file = builder
            .prefix("reflect-")
            .suffix(".txt")
            .tempfile_in(folder)
            .ok()?;
        file.write_all(text.as_bytes()).ok()?;
        file.keep().ok()
    });
    if let Some((_, path)) = saved {
        return error.hint(format!("wrote the output to `{}` instead", path.display()));
    }
    printer::say(text);
    error.hint("wrote the output to stderr instead")
}

impl RunArgs {
    /// Rejects incompatible options.
    pub(super) fn check(&self) -> Result<(), CliError> {
        if self.extract && self.output.format != Format::Text {
            return Err(
                CliError::usage("`--extract` needs `--format text`").hint("remove one of them")
            );
        }
        self.output.check()
    }
}

impl BatchArgs {
    /// Returns the file that rows are appended to; `None` for stdout.
    pub(super) fn file(&self) -> Option<&Path> {
        named_file(self.output.as_deref())
    }
}

impl<F: OutputFormat> OutputArgs<F> {
    /// Rejects incompatible options.
    pub(super) fn check(&self) -> Result<(), CliError> {
        let events = self.format == F::NDJSON;
        if events && named_file(self.output.as_deref()).is_some() {
            return Err(events_and_output());
        }
        let answer_printed = named_file(self.output.as_deref()).is_none();
        if let Some(report) = &self.report {
            if named_file(Some(report)).is_none() && answer_printed {
                return Err(CliError::usage(if events {
                    "`--format ndjson` and `--report -` both write to stdout"
                } else {
                    "the draft and `--report -` both go to stdout"
                })
                .hint("write one of them to a file"));
            }
            ReportFormat::for_file(report)?;
        }
        Ok(())
    }

    /// Opens the destinations of the answer and of the report, if there is one.
    ///
    /// # Errors
    /// If one of them cannot be written, or both are the same file.
    pub(super) fn open(&self) -> Result<(Output, Option<Output>), CliError> {
        let output = Output::open(self.output.as_deref())?;
        let report = match &self.report {
            Some(path) => Some(Output::open(Some(path))?),
            None => None,
        };
        if let Some(report) = &report
            && output.is_same(report)
        {
            return Err(CliError::usage(format!(
                "`--output` and `--report` name the same file: `{}`",
                report.path.display()
            ))
            .hint("use different files"));
        }
        Ok((output, report))
    }

    /// Returns the report format, from its file name.
    pub(super) fn report_format(&self) -> ReportFormat {
        let named = self.report.as_deref().and_then(ReportFormat::of_file);
        named.unwrap_or(ReportFormat::Markdown)
    }
}

/// Creates the error for events on stdout combined with `--output`.
pub(super) fn events_and_output() -> CliError {
    CliError::usage(
        "`--format ndjson` prints events to stdout, and cannot be combined with `--output`",
    )
    .hint("redirect stdout, or use `--format json`")
}

impl ReportFormat {
    /// Returns the format for a file extension; `None` if it is unknown.
    fn of_file(path: &Path) -> Option<Self> {
        let Some(ending) = path.extension() else {
            return Some(Self::Markdown);
        };
        match ending.to_str()?.to_ascii_lowercase().as_str() {
            "html" | "htm" => Some(Self::Html),
            "json" => Some(Self::Json),
            "md" | "markdown" | "txt" => Some(Self::Markdown),
            _ => None,
        }
    }

    /// Returns the format for a file extension.
    ///
    /// # Errors
    /// If the extension is unknown.
    pub(super) fn for_file(path: &Path) -> Result<Self, CliError> {
        Self::of_file(path).ok_or_else(|| {
            CliError::usage(format!(
                "cannot write `{}`: unknown report format",
                path.display()
            ))
            .hint("use a file name that ends in .html, .json or .md")
        })
    }

    /// Renders the report on a run.
    pub(super) fn report(self, record: &RunRecord, events: &[Stamped]) -> String {
        match self {
            Self::Markdown => report::markdown(record),
            Self::Html => report::html(&[events]),
            Self::Json => report::json(record),
        }
    }
}

/// Resolves all symbolic links in a path, even if the file does not exist yet.
pub(super) fn real_path(path: &Path) -> PathBuf {
    fs_err::canonicalize(path).unwrap_or_else(|_| {
        match (fs_err::canonicalize(folder_of(path)), path.file_name()) {
            (Ok(folder), Some(name)) => folder.join(name),
            _ => path.to_owned(),
        }
    })
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn temporary_beside(path: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".reflect-");
    // Temporary files are private by default, but this one becomes a normal file.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder_of(path))
}

/// Converts the error of preparing a file. Problems that the user can fix are usage errors; a full disk is
/// not.
pub(super) fn unusable(path: &Path, error: &std::io::Error) -> CliError {
    let folder = folder_of(path);
    if !folder.exists() {
        return CliError::usage(cannot_write(
            path,
            &format!("no such folder: `{}`", folder.display()),
        ))
        .hint("create the folder, or choose another file");
    }
    let message = cannot_write(path, &inner(error));
    match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::NotADirectory
        | ErrorKind::PermissionDenied
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::InvalidFilename
        | ErrorKind::InvalidInput => CliError::usage(message),
        _ => CliError::failure(message),
    }
}

/// Returns the system's message, without the name of a temporary file.
fn inner(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(std::error::Error::source);
    inner.map_or_else(|| error.to_string(), ToString::to_string)
}

fn cannot_write(path: &Path, why: &dyn Display) -> String {
    format!("cannot write `{}`: {why}", path.display())
}
