//! The user's own editor.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::error::CliError;
use super::paths;

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
        Some(name) => format!("`{name}` says `{text}`"),
        None => "set `VISUAL` or `EDITOR` to your editor".to_owned(),
    };
    // An editor is often named with its flags: `code --wait`.
    let words = shlex::split(&text).unwrap_or_default();
    let Some((program, arguments)) = words.split_first() else {
        return Err(CliError::usage("the editor's command line cannot be read").hint(hint()));
    };
    let status = Command::new(program)
        .args(arguments)
        .arg(file)
        .stdout(screen())
        .status()
        .map_err(|error| {
            CliError::failure(format!("the editor `{program}` cannot be started: {error}"))
                .hint(hint())
        })?;
    if status.success() {
        Ok(())
    } else {
        Err(CliError::failure(format!("the editor `{program}` failed ({status})")).hint(hint()))
    }
}

/// Where the editor draws: on the terminal also where standard output is a pipe, which it would draw into.
fn screen() -> Stdio {
    if std::io::stdout().is_terminal() {
        return Stdio::inherit();
    }
    let terminal = std::fs::OpenOptions::new().write(true).open("/dev/tty");
    terminal.map_or_else(|_| Stdio::inherit(), Stdio::from)
}
