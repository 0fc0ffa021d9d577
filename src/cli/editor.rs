//! The user's own editor.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::CliError;
use super::{interrupt, paths, printer};

/// The editor where the user names none.
const FALLBACK: &str = if cfg!(windows) { "notepad" } else { "vi" };

/// Lets the user edit a file: in `$VISUAL`, else `$EDITOR`, else `vi` (Windows: `notepad`). A variable that is set
/// to nothing counts as not set. Waits until the editor is closed.
///
/// # Errors
/// If the editor cannot be started, or says that it failed.
pub(super) fn edit(file: &Path) -> Result<(), CliError> {
    let (variable, text) = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| Some((Some(name), paths::env_text(name)?)))
        .unwrap_or((None, FALLBACK.to_owned()));
    let hint = || match variable {
        Some(name) => format!("`{name}` is `{text}`"),
        None => "set `VISUAL` or `EDITOR` to your editor".to_owned(),
    };
    // An editor is often named with its flags: `code --wait`.
    let words = shlex::split(&text).unwrap_or_default();
    let Some((program, arguments)) = words.split_first() else {
        return Err(CliError::usage("invalid command line of the editor").hint(hint()));
    };
    // Ctrl-C in an editor is the editor's.
    let held = interrupt::hold();
    let status = Command::new(program)
        .args(arguments)
        .arg(file)
        .stdin(keys())
        .stdout(screen())
        .status()
        .map_err(|error| {
            CliError::failure(format!("cannot start the editor `{program}`: {error}")).hint(hint())
        })?;
    drop(held);
    if status.success() {
        Ok(())
    } else {
        Err(CliError::failure(format!("the editor `{program}` failed ({status})")).hint(hint()))
    }
}

/// Lets the user write a prompt in the editor, starting from this text.
///
/// # Errors
/// If stderr is not a terminal, or the editor cannot start or fails.
pub(super) fn write_prompt(text: &str) -> Result<String, CliError> {
    if !std::io::stderr().is_terminal() {
        return Err(CliError::usage("--editor needs a terminal"));
    }
    let failed = |error: std::io::Error| {
        CliError::failure(format!("cannot create a file for the editor: {error}"))
    };
    let mut file = tempfile::Builder::new()
        .prefix("reflect-prompt-")
        .suffix(".md")
        .tempfile()
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    edit(file.path())?;
    // Many editors replace the file.
    let text = std::fs::read_to_string(file.path()).map_err(failed)?;
    Ok(text.trim().to_owned())
}

/// Lets the user edit a text in the editor; `None` if it is as it was. A line break at the end, which editors add,
/// is none of the text unless there was one.
///
/// If the result is dropped before the editor is closed, what is written stays in a file, which is named.
///
/// # Errors
/// If there is no place for the file, the editor cannot be started, or it says that it failed.
pub(super) async fn edit_text(text: &str) -> Result<Option<String>, CliError> {
    let failed = |error: std::io::Error| {
        CliError::failure(format!("cannot pass the draft to the editor: {error}"))
    };
    let mut file = tempfile::Builder::new()
        .prefix("reflect-draft-")
        .suffix(".md")
        .tempfile()
        .map_err(failed)?;
    let ended = text.ends_with('\n');
    let given = printer::with_final_newline(text);
    file.write_all(given.as_bytes()).map_err(failed)?;
    let mut unfinished = Unfinished(Some(file.path().to_owned()));
    let edited = tokio::task::spawn_blocking(move || {
        edit(file.path())?;
        // Many an editor puts another file in its place.
        std::fs::read_to_string(file.path()).map_err(failed)
    });
    let edited = edited.await.map_err(|error| failed(error.into()))?;
    unfinished.0 = None;
    let edited = edited?;
    Ok((edited != given).then(|| {
        let bare = edited.strip_suffix('\n').filter(|_| !ended);
        bare.map_or_else(|| edited.clone(), str::to_owned)
    }))
}

/// A file that somebody is editing. Says where it is if nobody waits for it any more.
struct Unfinished(Option<PathBuf>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            let file = file.display();
            printer::say(&format!(
                "the run ended while you edited the draft; your text is in `{file}`"
            ));
        }
    }
}

/// Where the editor is typed into: the terminal also where standard input is a pipe.
fn keys() -> Stdio {
    if std::io::stdin().is_terminal() {
        return Stdio::inherit();
    }
    let terminal = std::fs::File::open("/dev/tty");
    terminal.map_or_else(|_| Stdio::inherit(), Stdio::from)
}

/// Where the editor draws: on the terminal also where standard output is a pipe, which it would draw into.
fn screen() -> Stdio {
    if std::io::stdout().is_terminal() {
        return Stdio::inherit();
    }
    let terminal = std::fs::OpenOptions::new().write(true).open("/dev/tty");
    terminal.map_or_else(|_| Stdio::inherit(), Stdio::from)
}
