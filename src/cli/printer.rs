//! The one place that prints. Standard output carries the answer and nothing else; everything else goes
//! to standard error.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write};

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

/// Writes to standard output and flushes. On a terminal control characters are made visible: much of what is printed
/// comes from models and files. A pipe and a file get the text as it is.
///
/// # Errors
/// If the text cannot be written, for instance because the disk is full.
pub(super) fn print(text: &str) -> Result<Reader, CliError> {
    print_styled(&for_device(text, &io::stdout()))
}

/// The text as this device gets it: without control characters, if it is a terminal.
pub(super) fn for_device<'a>(text: &'a str, device: &impl IsTerminal) -> Cow<'a, str> {
    if device.is_terminal() {
        without_controls(text)
    } else {
        text.into()
    }
}

/// Writes text with styles of ours in it, which must be free of other control characters.
///
/// # Errors
/// If the text cannot be written.
pub(super) fn print_styled(text: &str) -> Result<Reader, CliError> {
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

/// The text with control characters, but for line breaks and tabs, made visible as `cat -v` shows them: `^[` for an
/// escape.
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
        assert_eq!(without_controls("a\u{1b}[2Jb\r"), "a^[[2Jb^M");
        assert_eq!(without_controls("a\r\nb\0"), "a\nb^@");
        assert_eq!(without_controls("\u{7f}\u{9b}2J"), "^?<U+009B>2J");
    }

    #[test]
    fn exactly_one_final_newline() {
        assert_eq!(with_final_newline("a"), "a\n");
        assert_eq!(with_final_newline("a\n\n"), "a\n");
    }
}
