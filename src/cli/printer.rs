//! The one place that prints. stdout carries only the result; everything else goes to stderr.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::error::CliError;
use super::paint::paint;

/// Whether stdout still has a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// It still reads.
    There,
    /// It has closed the pipe. That is not an error, but nothing more is written.
    Gone,
}

/// Whether anything was written to stdout.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Writes to stdout and flushes. On a terminal, control characters are made visible, because much of the text
/// comes from models and files. Pipes and files get the text unchanged.
///
/// # Errors
/// If the text cannot be written, for instance because the disk is full.
pub(super) fn print(text: &str) -> Result<Reader, CliError> {
    print_styled(&for_device(text, &io::stdout()))
}

/// Prepares a text for a device: without control characters if it is a terminal.
pub(super) fn for_device<'a>(text: &'a str, device: &impl IsTerminal) -> Cow<'a, str> {
    if device.is_terminal() {
        without_controls(text)
    } else {
        text.into()
    }
}

/// Writes a report to stdout, with colors if stdout has them.
///
/// # Errors
/// If the text cannot be written.
pub(super) fn print_report(text: &str) -> Result<Reader, CliError> {
    if console::colors_enabled() {
        print_styled(&paint(&without_controls(text)))
    } else {
        print(text)
    }
}

/// Writes text that contains our own styles but no other control characters.
///
/// # Errors
/// If the text cannot be written.
pub(super) fn print_styled(text: &str) -> Result<Reader, CliError> {
    PRINTED.store(true, Ordering::Relaxed);
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(CliError::failure(format!(
            "cannot write to stdout: {error}"
        ))),
    }
}

/// Writes a line to stderr, with colors if stderr supports them. Ignores errors because there is nowhere to
/// report them.
///
/// Makes control characters visible, because text of models, servers and files could overwrite the terminal.
pub(super) fn say(line: &str) {
    let line = without_controls(line);
    let mut stderr = io::stderr().lock();
    let _ = if console::colors_enabled_stderr() {
        writeln!(stderr, "{}", paint(&line))
    } else {
        writeln!(stderr, "{line}")
    };
}

/// Writes text to stderr unchanged, without a line break. Its only control characters may be our own styles
/// and cursor movements.
pub(super) fn draw(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}

/// Makes control characters visible like `cat -v`, e.g. `^[` for escape. Keeps line breaks and tabs.
pub(super) fn without_controls(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\0'..='\u{1f}' => {
                out.push('^');
                // `@`, the letters, and `[\]^_`.
                out.extend(char::from_u32(u32::from(c) + 0x40));
            }
            '\u{7f}' => out.push_str("^?"),
            c if c.is_control() => {
                let _ = write!(out, "<U+{:04X}>", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.into()
}

/// Writes an error to stdout as JSON, unless something is there already: a reader expects one object.
pub(super) fn print_error(error: &CliError) {
    if !PRINTED.load(Ordering::Relaxed) {
        // The error also goes to stderr, so nothing is lost if this fails.
        let _ = print(&error.json());
    }
}

/// Reports a command's failure.
pub(super) fn report(error: &CliError) {
    match error.coloured() {
        // The quoted file content contains no control characters.
        Some(text) if console::colors_enabled_stderr() => {
            let _ = writeln!(io::stderr().lock(), "{text}");
        }
        _ => say(&format!("error: {error}")),
    }
}

/// Ends a text with exactly one newline.
pub(super) fn with_final_newline(text: &str) -> String {
    let mut text = text.trim_end_matches('\n').to_owned();
    text.push('\n');
    text
}

/// Formats JSON with indentation and a final newline.
///
/// # Errors
/// If the value cannot be serialized.
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
        assert_eq!(without_controls("a\u{1b}[2Jb\r"), "a^[[2Jb^M");
        assert_eq!(without_controls("a\r\nb\0"), "a\nb^@");
        assert_eq!(without_controls("\u{7f}\u{9b}2J"), "^?<U+009B>2J");
    }

    #[test]
    fn texts_end_with_exactly_one_newline() {
        assert_eq!(with_final_newline("a"), "a\n");
        assert_eq!(with_final_newline("a\n\n"), "a\n");
    }
}
