//! The results file of a batch, which makes it resumable.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::bytes::Regex;
use serde::Deserialize;

use super::ids::Seen;
use super::row::{Row, Status};
use super::tally::Tally;
use crate::types::ExitCode;

/// The maximum length of a row, in bytes.
const LIMIT: u64 = 256 << 20;

/// The results file. Each row is written immediately. The file is locked against other processes while it is
/// open.
#[derive(Debug)]
pub struct Results {
    file: File,
    path: PathBuf,
}

/// Why a results file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// It cannot be read or written.
    #[error("cannot write `{}`: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// Another process has it open.
    #[error("another batch is writing to `{}` right now", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It contains something other than rows.
    #[error("`{}`, line {line}: not a batch result", .path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
}

/// The fields of a row that resuming needs.
#[derive(Deserialize)]
struct Known {
    id: Option<String>,
    line: u64,
    status: Status,
    exit_code: ExitCode,
}

/// The earlier results in a file.
#[derive(Debug, Default)]
pub struct Before {
    /// The tasks that have a row.
    pub done: Seen,
    /// The counts of their results.
    pub tally: Tally,
    /// Whether an incomplete last row was removed.
    pub fixed: bool,
}

impl Results {
    /// Opens or creates a results file. With `again`, removes failed rows so that their tasks are repeated.
    /// Also removes an incomplete last row.
    pub fn open(path: &Path, again: bool) -> Result<(Self, Before), ResultsError> {
        let wrap = |error| ResultsError::Io {
            path: path.to_owned(),
            error,
        };
        let mut file = open(path).map_err(wrap)?;
        if !file.metadata().map_err(wrap)?.is_file() {
            // A device or a pipe has no earlier results.
            let path = path.to_owned();
            return Ok((Self { file, path }, Before::default()));
        }
        lock(&file, path)?;
        if !is_at(&file, path) {
            // The process that held the lock replaced the file in the meantime.
            return Err(ResultsError::InUse {
                path: path.to_owned(),
            });
        }
        let mut before = Before::default();
        let mut kept = again.then(|| temporary(path)).transpose().map_err(wrap)?;
        let end = scan(&mut file, path, &mut before, kept.as_mut())?;
        let length = file.metadata().map_err(wrap)?.len();
        match end {
            End::Whole => {}
            End::Unfinished => file.write_all(b"\n").map_err(wrap)?,
            End::Torn(at) => {
                before.fixed = true;
                file.set_len(at).map_err(wrap)?;
            }
        }
        if let Some(kept) = kept.filter(|kept| kept.has_left_out) {
            file = kept.replace(path, &file)?;
        } else if length > 0 {
            file.seek(SeekFrom::End(0)).map_err(wrap)?;
        }
        let path = path.to_owned();
        Ok((Self { file, path }, before))
    }

    /// Appends a row. It has been passed to the system when this returns, so it survives a killed process.
    ///
    /// # Errors
    /// If the row cannot be written. Its written part is removed, now or at the next opening.
    pub fn append(&mut self, row: &Row) -> Result<(), ResultsError> {
        let length = self.file.metadata().ok().filter(std::fs::Metadata::is_file);
        let written = self.file.write_all(row.to_line().as_bytes());
        written.map_err(|error| {
            if let Some(before) = length {
                let _ = self.file.set_len(before.len());
            }
            ResultsError::Io {
                path: self.path.clone(),
                error,
            }
        })
    }
}

fn open(path: &Path) -> io::Result<File> {
    let special = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    OpenOptions::new()
        .read(!special)
        .append(true)
        .create(true)
        .open(path)
}

fn lock(file: &File, path: &Path) -> Result<(), ResultsError> {
    let path = || path.to_owned();
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(ResultsError::InUse { path: path() }),
        // Some cluster file systems have no locks. The user must then prevent concurrent writes.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(error)) => Err(ResultsError::Io {
            path: path(),
            error,
        }),
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// How a file ends.
enum End {
    /// With a complete row, or empty.
    Whole,
    /// With a complete row without its line end.
    Unfinished,
    /// With part of a row, at this offset.
    Torn(u64),
}

/// Reads all rows.
fn scan(
    file: &mut File,
    path: &Path,
    before: &mut Before,
    mut kept: Option<&mut Kept>,
) -> Result<End, ResultsError> {
    let wrap = |error| ResultsError::Io {
        path: path.to_owned(),
        error,
    };
    file.seek(SeekFrom::Start(0)).map_err(wrap)?;
    let mut reader = BufReader::new(file);
    let (mut at, mut number) = (0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader
            .by_ref()
            .take(LIMIT)
            .read_until(b'\n', &mut line)
            .map_err(wrap)?;
        if read == 0 {
            return Ok(End::Whole);
        }
        number += 1;
        let ended = line.last() == Some(&b'\n');
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        match serde_json::from_slice::<Known>(&line) {
            Ok(row) => {
                let again = kept.is_some() && row.status.is_failure();
                if !again {
                    before.done.insert(row.id.as_deref(), row.line);
                    before.tally.count(row.status, row.exit_code);
                }
                if let Some(kept) = &mut kept {
                    kept.take(&line, ended, again).map_err(wrap)?;
                }
            }
            Err(_) if is_blank && ended => {}
            Err(_) if !ended && is_torn(&line, before.tally.rows() > 0) => {
                return Ok(End::Torn(at));
            }
            Err(_) => {
                return Err(ResultsError::NotOurs {
                    path: path.to_owned(),
                    line: number,
                });
            }
        }
        at += read as u64;
        if !ended {
            return Ok(End::Unfinished);
        }
    }
}

/// Whether the end of a file is recognizably the start of a row. It will be cut off, so incomplete JSON is
/// not enough: after other rows it must start like a row, and alone in the file it must be complete up to its
/// status.
fn is_torn(fragment: &[u8], after_rows: bool) -> bool {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?s-u)\A\{"id":(null|"([^"\\]|\\.)*"),"line":[0-9]+,"status":"[a-z]"#)
            .expect("a constant pattern")
    });
    const FIRST: &[u8] = br#"{"id":"#;
    let begins = if after_rows {
        match fragment.strip_prefix(FIRST) {
            Some(id) => matches!(id.first(), None | Some(b'"' | b'n')),
            None => FIRST.starts_with(fragment),
        }
    } else {
        HEAD.is_match(fragment)
    };
    begins && serde_json::from_slice::<serde_json::Value>(fragment).is_err_and(|e| e.is_eof())
}

/// The rows to keep, in a file that will replace the old one.
struct Kept {
    file: tempfile::NamedTempFile,
    has_left_out: bool,
}

fn temporary(path: &Path) -> io::Result<Kept> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    Ok(Kept {
        file: tempfile::Builder::new()
            .prefix(".reflect-")
            .tempfile_in(folder)?,
        has_left_out: false,
    })
}

impl Kept {
    fn take(&mut self, line: &[u8], ended: bool, left_out: bool) -> io::Result<()> {
        if left_out {
            self.has_left_out = true;
            return Ok(());
        }
        self.file.write_all(line)?;
        if ended {
            Ok(())
        } else {
            self.file.write_all(b"\n")
        }
    }

    /// Replaces the old file atomically. Returns the new file, locked.
    fn replace(self, path: &Path, old: &File) -> Result<File, ResultsError> {
        let wrap = |error| ResultsError::Io {
            path: path.to_owned(),
            error,
        };
        // Replaces the target of a symbolic link, not the link.
        let real = fs_err::canonicalize(path).map_err(wrap)?;
        self.file.as_file().sync_all().map_err(wrap)?;
        if let Ok(metadata) = old.metadata() {
            let _ = self.file.as_file().set_permissions(metadata.permissions());
        }
        // Locked before it becomes visible.
        let new = OpenOptions::new()
            .append(true)
            .read(true)
            .open(self.file.path())
            .map_err(wrap)?;
        lock(&new, path)?;
        self.file
            .persist(&real)
            .map_err(|error| wrap(error.error))?;
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(id: &str, code: ExitCode) -> Row {
        Row {
            id: Some(id.to_owned()),
            status: Status::of(code),
            exit_code: code,
            ..Row::invalid(1, None, "x".to_owned())
        }
    }

    fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.jsonl");
        std::fs::write(&path, content).unwrap();
        (folder, path)
    }

    fn text(rows: &[Row]) -> String {
        rows.iter().map(Row::to_line).collect()
    }

    #[test]
    fn a_results_file_is_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.jsonl");
        let (mut results, before) = Results::open(&path, false).unwrap();
        assert!(before.done.is_empty());
        results.append(&row("a", ExitCode::Success)).unwrap();
        results.append(&row("b", ExitCode::NotMet)).unwrap();
        drop(results);
        let (mut results, before) = Results::open(&path, false).unwrap();
        assert!(before.done.contains(Some("a"), 0) && before.done.contains(Some("b"), 0));
        assert_eq!(
            (before.tally.rows(), before.tally.exit_code()),
            (2, ExitCode::NotMet)
        );
        results.append(&row("c", ExitCode::Success)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
    }

    #[test]
    fn an_open_results_file_is_locked() {
        let (_folder, path) = file(b"");
        let open = Results::open(&path, false).unwrap();
        let error = Results::open(&path, false).unwrap_err();
        assert!(matches!(error, ResultsError::InUse { .. }), "{error}");
        drop(open);
        Results::open(&path, false).unwrap();
    }

    #[test]
    fn failed_rows_are_removed_so_that_their_tasks_are_repeated() {
        let rows = [
            row("a", ExitCode::Success),
            row("b", ExitCode::Provider),
            row("c", ExitCode::NotMet),
            row("d", ExitCode::JudgeUnusable),
        ];
        let (_folder, path) = file(text(&rows).as_bytes());
        let (mut results, before) = Results::open(&path, true).unwrap();
        assert_eq!(before.done.len(), 2);
        assert_eq!(before.tally.exit_code(), ExitCode::NotMet);
        // The new file is locked like the old one.
        assert!(matches!(
            Results::open(&path, false),
            Err(ResultsError::InUse { .. })
        ));
        results.append(&row("b", ExitCode::Success)).unwrap();
        let expected = text(&[
            rows[0].clone(),
            rows[2].clone(),
            row("b", ExitCode::Success),
        ]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn a_foreign_file_is_not_changed() {
        let contents: [&[u8]; 15] = [
            b"my notes\nmore\n",
            b"{\"id\": 1}\n",
            b"notes\n{",
            b"one line of notes",
            b"{",
            b"{\"id\":",
            b"{\"id\":\"a\",\"name\":\"b",
            b"{\"id\":\"a\",\"line\":1,\"status\":\"met\"}",
            b"{\"a\": 1}",
            b"[1, 2, 3]",
            b"[1, 2,",
            b"\"text",
            b"   ",
            b"\xff\xd8\xff\xe0 JFIF",
            b"\0\0\0\0",
        ];
        for content in contents {
            for again in [false, true] {
                let (_folder, path) = file(content);
                let error = Results::open(&path, again).unwrap_err();
                assert!(
                    matches!(error, ResultsError::NotOurs { line: 1, .. }),
                    "{error}"
                );
                assert_eq!(std::fs::read(&path).unwrap(), content);
            }
        }
    }

    #[test]
    fn a_file_with_foreign_text_after_rows_is_not_changed() {
        let rows = text(&[row("a", ExitCode::Success)]);
        for end in ["a note", "{}", "{\"id\":1}", "{\"id\": \"b", "[1,", "\0\0"] {
            let content = rows.clone() + end;
            let (_folder, path) = file(content.as_bytes());
            let error = Results::open(&path, false).unwrap_err();
            assert!(
                matches!(error, ResultsError::NotOurs { line: 2, .. }),
                "{error}"
            );
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
    }

    #[test]
    fn a_single_row_is_removed_only_if_it_is_recognizably_incomplete() {
        let whole = text(&[row("a \"quoted\" \u{1f980}", ExitCode::Success)]);
        let head = whole.find("met").unwrap() + 1;
        for cut in 1..whole.len() - 1 {
            let (_folder, path) = file(&whole.as_bytes()[..cut]);
            let opened = Results::open(&path, false);
            assert_eq!(
                opened.is_ok_and(|(_, before)| before.fixed),
                cut >= head,
                "{cut}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_other_rows_stay_wherever_the_last_one_is_cut(cut in 1..400_usize, again: bool) {
            let rows = [row("a", ExitCode::Success), row("b", ExitCode::NotMet), row("c", ExitCode::Success)];
            let whole = text(&rows);
            let kept = text(&rows[..2]);
            let cut = (kept.len() + cut).min(whole.len());
            let (_folder, path) = file(&whole.as_bytes()[..cut]);
            let (mut results, before) = Results::open(&path, again).unwrap();
            let complete = cut + 1 >= whole.len();
            prop_assert_eq!(before.done.len(), if complete { 3 } else { 2 });
            prop_assert_eq!(before.fixed, !complete);
            results.append(&row("d", ExitCode::Success)).unwrap();
            let expected = text(if complete { &rows } else { &rows[..2] }) + &row("d", ExitCode::Success).to_line();
            prop_assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        }
    }
}
