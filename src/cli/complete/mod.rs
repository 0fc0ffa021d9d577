//! Completion at the shell's prompt: the shell asks this program what may come next, so that models, criteria, runs
//! and profiles are offered as they are at that moment. Nothing is asked over a network, and nothing is said where
//! something cannot be read.

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

/// Says that a shell asks, and which one. The crate's own default, `COMPLETE`, may be set for something else.
const VARIABLE: &str = "_REFLECT_COMPLETE";

const SHELLS: Shells<'static> = Shells(&[&Bash, &Elvish, &Fish, &Powershell, &Zsh]);

/// Answers a shell that asks what may come next. Says whether one did.
pub(super) fn answered(args: impl Iterator<Item = OsString>) -> bool {
    if std::env::var_os(VARIABLE).is_none_or(|shell| shell.is_empty()) {
        return false;
    }
    let here = std::env::current_dir().ok();
    // A shell has no use for an error.
    let _ = CompleteEnv::with_factory(args::command)
        .var(VARIABLE)
        .shells(SHELLS)
        .try_complete(args, here.as_deref());
    true
}

/// The script that makes a shell ask.
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
    // In a folder of `fpath` the file is the body of a function that zsh calls for the first completion: it has
    // to answer that one, too.
    let script = match script.strip_suffix(REGISTRATION) {
        Some(rest) => format!(
            "{rest}if [ \"$funcstack[1]\" = \"_reflect\" ]; then\n    _clap_dynamic_completer_reflect \"$@\"\nfi\n\
             {REGISTRATION}"
        ),
        None => script.to_owned(),
    };
    Ok(script + "\n")
}

/// The last line of the script for zsh.
const REGISTRATION: &str = "compdef _clap_dynamic_completer_reflect reflect";

/// Whether a file or folder may lead to criteria.
fn leads_to_criteria(path: &Path) -> bool {
    path.is_dir()
        || path
            .extension()
            .is_some_and(|extension| extension == "toml")
}
