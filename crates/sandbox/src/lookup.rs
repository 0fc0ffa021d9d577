use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::command::CommandError;

/// The environment variables that every program gets: the search path, the user, the language and the time zone; on
/// Windows also those that a process needs to start.
const MINIMUM: [&str; 9] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SystemRoot",
    "PATHEXT",
    "COMSPEC",
];

/// A minimal environment: `PATH`, `HOME`, the language and time zone, and the variables in `allow`, with their values
/// in this process. Keys and other secrets are included only if named.
pub fn minimal_env(allow: &[&str]) -> Vec<(OsString, OsString)> {
    MINIMUM
        .iter()
        .chain(allow)
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
        .collect()
}

/// Checks that a program can be run: a name without a separator is looked up on the `PATH`, any other is relative to
/// `cwd`.
///
/// # Errors
/// If it does not exist or is not executable; names the searched places.
pub fn check_program(program: &str, cwd: &Path) -> Result<(), CommandError> {
    find_program(program.as_ref(), &minimal_env(&[]), cwd).map(|_| ())
}

/// Finds the file to run: a name without a separator is looked up on the `PATH` of `env`, any other is relative to
/// `cwd`.
pub(super) fn find_program(
    program: &OsStr,
    env: &[(OsString, OsString)],
    cwd: &Path,
) -> Result<PathBuf, CommandError> {
    let shown = program.to_string_lossy().into_owned();
    let path = env
        .iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value.clone());
    if let Ok(found) = which::which_in(program, path.as_ref(), cwd) {
        return Ok(found);
    }
    let is_path = Path::new(program).components().count() > 1;
    let candidates: Vec<PathBuf> = if is_path {
        vec![cwd.join(program)]
    } else {
        std::env::split_paths(path.as_deref().unwrap_or_default())
            .map(|directory| directory.join(program))
            .collect()
    };
    if shown.is_empty() {
        return Err(CommandError::Empty);
    }
    if let Some(there) = candidates.into_iter().find(|c| c.exists()) {
        let reason = if there.is_dir() {
            "is a directory".to_owned()
        } else {
            format!("not executable; try `chmod +x {}`", there.display())
        };
        return Err(CommandError::NotExecutable {
            path: there,
            reason,
        });
    }
    Err(CommandError::NotFound {
        program: shown,
        looked: match path {
            _ if is_path => format!("searched `{}`", cwd.display()),
            Some(path) => format!("searched the PATH `{}`", path.to_string_lossy()),
            None => "the environment has no PATH".to_owned(),
        },
    })
}
