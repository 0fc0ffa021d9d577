//! Shell completion. The shell runs this program to get candidates, so models, criteria, runs and profiles
//! are always current. Completion makes no network calls and ignores what it cannot read.

mod bash;
mod values;

use std::ffi::OsString;
use std::path::Path;

use clap_complete::Shell;
use clap_complete::env::{CompleteEnv, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

use self::bash::Bash;
use super::args;
use super::error::CliError;

pub(super) use self::values::{criteria, models, profiles, providers, runs, settings};

/// The variable that names the shell requesting candidates. Something else may set clap's default,
/// `COMPLETE`.
const VARIABLE: &str = "_REFLECT_COMPLETE";

const SHELLS: Shells<'static> = Shells(&[&Bash, &Elvish, &Fish, &Powershell, &Zsh]);

/// Prints the candidates if a shell requests them. Returns whether one did.
pub(super) fn answered(args: impl Iterator<Item = OsString>) -> bool {
    if std::env::var_os(VARIABLE).is_none_or(|shell| shell.is_empty()) {
        return false;
    }
    let here = std::env::current_dir().ok();
    // A shell cannot use an error.
    let _ = CompleteEnv::with_factory(args::command)
        .var(VARIABLE)
        .shells(SHELLS)
        .try_complete(args, here.as_deref());
    true
}

/// Returns the script that registers the completion with a shell.
pub(super) fn script(shell: Shell) -> Result<String, CliError> {
    let shell: &dyn EnvCompleter = match shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::PowerShell => &Powershell,
        Shell::Zsh => &Zsh,
        other => {
            return Err(CliError::usage(format!(
                "no completion script for `{other}`"
            )));
        }
    };
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, "reflect", "reflect", "reflect", &mut script)
        .map_err(|error| CliError::failure(error.to_string()))?;
    let script = String::from_utf8_lossy(&script);
    let script = script.trim();
    // In a folder of `fpath`, the file is the body of a function that zsh calls for the first completion. It
    // must answer that one too.
    let script = match script.strip_suffix(REGISTRATION) {
        Some(rest) => format!(
            "{rest}if [ \"$funcstack[1]\" = \"_reflect\" ]; then\n    _clap_dynamic_completer_reflect \"$@\"\nfi\n\
             {REGISTRATION}"
        ),
        None => script.to_owned(),
    };
    Ok(script + "\n")
}

/// The last line of zsh's script.
const REGISTRATION: &str = "compdef _clap_dynamic_completer_reflect reflect";

/// Whether a path may lead to criteria: a folder or a TOML file.
fn leads_to_criteria(path: &Path) -> bool {
    path.is_dir()
        || path
            .extension()
            .is_some_and(|extension| extension == "toml")
}
