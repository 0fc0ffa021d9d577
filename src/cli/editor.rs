//! The user's editor.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::CliError;
use super::{interrupt, paths, printer};

/// The editor if neither `VISUAL` nor `EDITOR` is set.
const FALLBACK: &str = if cfg!(windows) { "notepad" } else { "vi" };

/// Opens a file in `$VISUAL`, else `$EDITOR`, else `vi` (Windows: `notepad`), and waits until the editor
/// exits. An empty variable counts as unset.
///
/// # Errors
/// If the editor cannot be started or exits with an error.
pub(super) fn edit(file: &Path) -> Result<(), CliError> {
    let (variable, text) = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| Some((Some(name), paths::env_text(name)?)))
        .unwrap_or((None, FALLBACK.to_owned()));
    let hint = || match variable {
        Some(name) => format!("`{name}` is `{text}`"),
        None => "set `VISUAL` or `EDITOR` to your editor".to_owned(),
    };
    // The variable often includes flags: `code --wait`.
    let words = shlex::split(&text).unwrap_or_default();
    let Some((program, arguments)) = words.split_first() else {
        return Err(CliError::usage("invalid command line of the editor").hint(hint()));
    };
    // While the editor runs, Ctrl-C belongs to it.
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

/// Opens a text in the editor; returns `None` if it is unchanged. Drops the final line break that editors
/// add, unless the text had one.
///
/// If the future is dropped before the editor exits, the edited text stays in a file and a message names it.
///
/// # Errors
/// If the file cannot be created, or the editor cannot be started or fails.
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
        // Many editors replace the file.
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

/// A file open in the editor. Reports its path if the run ends before the editor does.
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

/// The editor's stdin: the terminal, even if stdin is a pipe.
fn keys() -> Stdio {
    if std::io::stdin().is_terminal() {
        return Stdio::inherit();
    }
    let terminal = std::fs::File::open("/dev/tty");
    terminal.map_or_else(|_| Stdio::inherit(), Stdio::from)
}

/// The editor's stdout: the terminal, even if stdout is a pipe.
fn screen() -> Stdio {
    if std::io::stdout().is_terminal() {
        return Stdio::inherit();
    }
    let terminal = std::fs::OpenOptions::new().write(true).open("/dev/tty");
    terminal.map_or_else(|_| Stdio::inherit(), Stdio::from)
}
