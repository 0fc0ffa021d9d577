//! Where outputs go: standard output, or files of the user.

use std::fmt::Display;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::args::{BatchArgs, Format, OutputArgs, OutputFormat, ReportFormat, RunArgs};
use super::error::CliError;
use super::printer::{self, Reader};
use crate::report;
use crate::types::{RunRecord, Stamped};

/// Where an output goes: standard output, or a file. A file is prepared at the start, so that a place that cannot be
/// written to is found before any work is done, and put in place in one step at the end.
pub(super) struct Output {
    /// As the user wrote it.
    path: PathBuf,
    target: Target,
}

enum Target {
    Stdout,
    /// A file, there or not, put in place in one step.
    File {
        /// Where it is, links followed: what is behind a link is replaced, not the link.
        path: PathBuf,
        temporary: NamedTempFile,
    },
    /// A device or a pipe: it is written to. To replace it, as root could, would destroy it.
    Special,
}

/// The file that an option names; `None` where that is standard output, which `-` stands for.
pub(super) fn named_file(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| *path != Path::new("-"))
}

impl Output {
    /// Prepares to write where an option says: to a file; without one, or with `-`, to standard output.
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

    /// Whether it is standard output.
    pub(super) fn is_stdout(&self) -> bool {
        matches!(self.target, Target::Stdout)
    }

    /// Writes the text; a file is then in its place.
    ///
    /// # Errors
    /// If it cannot be written.
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

    /// Writes a text that has cost something. If that fails it is written elsewhere, and the error says where:
    /// to standard output, else to a new file. `kept` says how to get it where it is kept anyway.
    ///
    /// # Errors
    /// If it cannot be written where it was meant to go.
    pub(super) fn deliver(self, text: &str, kept: Option<String>) -> Result<Reader, CliError> {
        let stdout_is_free = !self.is_stdout();
        self.write(text)
            .map_err(|error| elsewhere(error, text, stdout_is_free, kept))
    }

    /// Whether both are the same place, so that one would replace or follow the other.
    fn is_same(&self, other: &Self) -> bool {
        match (&self.target, &other.target) {
            (Target::Stdout, Target::Stdout) => true,
            (Target::File { path: one, .. }, Target::File { path: other, .. }) => one == other,
            _ => false,
        }
    }
}

/// Writes a text that could not be written where it was meant to go to standard output, if that is free, else to a new
/// file, unless it is `kept` anyway. The error says where it is.
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

/// Writes a text that can go nowhere else to a new file, or to standard error if that fails as well; the error says
/// where it is.
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
    /// Whether what is asked for goes together.
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
    /// The file that rows are added to; `None` for standard output.
    pub(super) fn file(&self) -> Option<&Path> {
        named_file(self.output.as_deref())
    }
}

impl<F: OutputFormat> OutputArgs<F> {
    /// Whether what is asked for goes together.
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

    /// Where the answer goes, and where the report does if there is to be one.
    ///
    /// # Errors
    /// If one of them cannot be written, or if they are the same file.
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

    /// In which form the report is written, by the name of its file.
    pub(super) fn report_format(&self) -> ReportFormat {
        let named = self.report.as_deref().and_then(ReportFormat::of_file);
        named.unwrap_or(ReportFormat::Markdown)
    }
}

/// Events on standard output, and the answer elsewhere.
pub(super) fn events_and_output() -> CliError {
    CliError::usage(
        "`--format ndjson` prints events to stdout, and cannot be combined with `--output`",
    )
    .hint("redirect stdout, or use `--format json`")
}

impl ReportFormat {
    /// The form that the ending of a file's name asks for; `None` for one in which no report is written.
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

    /// The same.
    ///
    /// # Errors
    /// If no report is written in that form.
    pub(super) fn for_file(path: &Path) -> Result<Self, CliError> {
        Self::of_file(path).ok_or_else(|| {
            CliError::usage(format!(
                "cannot write `{}`: unknown report format",
                path.display()
            ))
            .hint("use a file name that ends in .html, .json or .md")
        })
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

/// The path with all links followed, also of a file that does not exist yet.
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
    // Temporary files are private by default; this one becomes a file like any other.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder_of(path))
}

/// The error of a file that could not be prepared. What the user has to change is a usage error; a full disk is not.
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

/// What the system said, without the name of a temporary file.
fn inner(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(std::error::Error::source);
    inner.map_or_else(|| error.to_string(), ToString::to_string)
}

fn cannot_write(path: &Path, why: &dyn Display) -> String {
    format!("cannot write `{}`: {why}", path.display())
}
