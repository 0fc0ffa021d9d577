use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::command::CommandError;

/// What every program may know: where programs are, who the user is, the language, the time zone;
/// on Windows also what a process cannot start without.
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

/// The environment of a program: `PATH`, `HOME`, the language and time zone, and the variables in
/// `allow`, each as this process has it. Keys and other secrets are not passed on unless named.
pub fn minimal_env(allow: &[&str]) -> Vec<(OsString, OsString)> {
    MINIMUM
        .iter()
        .chain(allow)
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
        .collect()
}

/// Whether a program can be run: a name without a separator is looked up on the `PATH`, any other is taken
/// relative to `cwd`.
///
/// # Errors
/// That it is not there or cannot be run, and where it was looked for.
pub fn check_program(program: &str, cwd: &Path) -> Result<(), CommandError> {
    find_program(program.as_ref(), &minimal_env(&[]), cwd).map(|_| ())
}

/// The file to run: a name without a separator is looked up on the `PATH` of `env`, any other is
/// taken relative to `cwd`.
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
            "it is a directory".to_owned()
        } else {
            format!("it is not executable; try `chmod +x {}`", there.display())
        };
        return Err(CommandError::NotExecutable {
            path: there,
            reason,
        });
    }
    Err(CommandError::NotFound {
        program: shown,
        looked: match path {
            _ if is_path => format!("looked in `{}`", cwd.display()),
            Some(path) => format!("looked on the PATH `{}`", path.to_string_lossy()),
            None => "there is no PATH to look on".to_owned(),
        },
    })
}
