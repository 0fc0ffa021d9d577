//! The one place that prints. Standard output carries the answer and nothing else; everything else goes
//! to standard error.

use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use super::error::CliError;

/// Whether the reader of standard output is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// It is.
    There,
    /// It has closed the pipe: nothing more need be written, and nothing went wrong.
    Gone,
}

/// Writes to standard output and flushes.
///
/// # Errors
/// If the text cannot be written, for instance because the disk is full.
pub(super) fn print(text: &str) -> Result<Reader, CliError> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(CliError::failure(format!(
            "cannot write to standard output: {error}"
        ))),
    }
}

/// Writes a line to standard error. A failure is ignored: there is nobody left to tell.
///
/// Much of what is said comes from models, servers and files; control characters in it could rewrite
/// what the terminal shows.
pub(super) fn say(line: &str) {
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "{}", without_controls(line));
}

/// Writes text to standard error as it is, with no line break after it. It must be free of control characters but
/// for those that are ours: styles, and movements of the cursor.
pub(super) fn draw(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}

/// The text with control characters, but for line breaks and tabs, made visible.
pub(super) fn without_controls(text: &str) -> std::borrow::Cow<'_, str> {
    let control = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(control) {
        text.replace(control, "\u{fffd}").into()
    } else {
        text.into()
    }
}

/// Reports a command's failure.
pub(super) fn report(error: &CliError) {
    match error.coloured() {
        // What comes from the file is free of control characters already.
        Some(text) if console::colors_enabled_stderr() => {
            let _ = writeln!(io::stderr().lock(), "reflect: {text}");
        }
        _ => say(&format!("reflect: error: {error}")),
    }
}

/// A text as it ends on standard output or in a file: with exactly one final newline.
pub(super) fn with_final_newline(text: &str) -> String {
    let mut text = text.trim_end_matches('\n').to_owned();
    text.push('\n');
    text
}

/// JSON for programs and people: indented, with a final newline.
///
/// # Errors
/// If the value cannot be written as JSON.
pub(super) fn json(value: &(impl Serialize + ?Sized)) -> Result<String, CliError> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| CliError::failure(error.to_string()))?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(without_controls("a\n\tb"), "a\n\tb");
        assert_eq!(without_controls("a\u{1b}[2Jb\r"), "a\u{fffd}[2Jb\u{fffd}");
    }

    #[test]
    fn exactly_one_final_newline() {
        assert_eq!(with_final_newline("a"), "a\n");
        assert_eq!(with_final_newline("a\n\n"), "a\n");
    }
}
