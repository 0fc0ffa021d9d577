//! Finds and starts the interpreters of the workers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::command::{CommandError, Scratch};
use super::lookup::{find_program, minimal_env};
use super::prolog;
use super::script::{Language, ScriptError, ScriptErrorKind};
use super::worker::WORKER;

const PYTHON: &str = include_str!("worker.py");

/// How to install the interpreter.
pub(super) fn hint(language: Language) -> &'static str {
    match language {
        Language::Lua => "reinstall reflect",
        Language::Python => {
            "install Python 3.8 or newer so that `python3` is on the PATH (Debian and Ubuntu: `apt install python3`; macOS: `brew install python`; Windows: https://www.python.org), or write the script in Lua, which is built in"
        }
        Language::Prolog => {
            "install SWI-Prolog 9 so that `swipl` is on the PATH (Debian and Ubuntu: `apt install swi-prolog-core`; macOS: `brew install swi-prolog`; Windows: https://www.swi-prolog.org), or write the script in Lua, which is built in"
        }
    }
}

/// The command that starts a Lua worker: our own binary.
pub(super) fn lua(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command.env_clear().args([WORKER, "lua"]);
    command
}

/// The command that starts a worker for another language, with the environment `env`.
pub(super) fn command(
    language: Language,
    scratch: &Scratch,
    mut env: Vec<(OsString, OsString)>,
) -> Result<Command, ScriptError> {
    // All text is UTF-8.
    env.retain(|(name, _)| name != "LC_ALL" && name != "LC_CTYPE" && name != "LANG");
    env.push(("LANG".into(), "C.UTF-8".into()));
    for name in ["TMPDIR", "TMP", "TEMP"] {
        env.push((name.into(), scratch.path().into()));
    }
    let program = find(language, &env, scratch.path())?;
    let mut command = Command::new(program);
    command.env_clear().envs(env).current_dir(scratch.path());
    match language {
        // Isolated mode: no user or working directory on the module path, no PYTHON* variables, no site packages.
        Language::Python => {
            command.args(["-I", "-S", "-X", "utf8", "-c", PYTHON]);
        }
        _ => prolog::arguments(&mut command, scratch)
            .map_err(|e| ScriptError::new(language, ScriptErrorKind::Protocol, e.to_string()))?,
    }
    Ok(command)
}

/// Checks that a language's interpreter is installed; Lua always is.
///
/// # Errors
/// If it is missing; names the searched places and says how to install it.
pub fn check_interpreter(language: Language) -> Result<(), ScriptError> {
    match language {
        Language::Lua => Ok(()),
        _ => find(language, &minimal_env(&[]), Path::new("/")).map(|_| ()),
    }
}

/// Finds the interpreter of a language that is not built in.
fn find(
    language: Language,
    env: &[(OsString, OsString)],
    cwd: &Path,
) -> Result<PathBuf, ScriptError> {
    let names: &[&str] = match language {
        Language::Lua => &[],
        // The second is its name on Windows.
        Language::Python => &["python3", "python"],
        Language::Prolog => &["swipl"],
    };
    names
        .iter()
        .map(|name| find_program(name.as_ref(), env, cwd))
        .reduce(|first, second| first.or_else(|e| second.map_err(|_| e)))
        .unwrap_or(Err(CommandError::Empty))
        .map_err(|error| missing(language, &error))
}

fn missing(language: Language, error: &CommandError) -> ScriptError {
    let why = match error {
        CommandError::NotFound { program, looked } => {
            format!("`{program}` not found ({looked})")
        }
        other => other.to_string(),
    };
    let message = format!(
        "cannot run the {language} script: {why}; {}",
        hint(language)
    );
    ScriptError::new(language, ScriptErrorKind::MissingInterpreter, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interpreter_gets_install_instructions() {
        let scratch = Scratch::new().unwrap();
        for (language, program, install) in [
            (Language::Python, "python3", "apt install python3"),
            (Language::Prolog, "swipl", "apt install swi-prolog"),
        ] {
            let env = vec![("PATH".into(), "/nowhere".into())];
            let error = command(language, &scratch, env).unwrap_err();
            assert_eq!(error.kind, ScriptErrorKind::MissingInterpreter);
            let text = error.to_string();
            assert!(text.contains(&format!("`{program}` not found")), "{text}");
            assert!(
                text.contains("/nowhere") && text.contains(install),
                "{text}"
            );
        }
    }
}
