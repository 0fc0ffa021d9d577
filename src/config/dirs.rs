use std::path::{Path, PathBuf};

use super::env::Env;

/// The name of a project file.
pub const PROJECT_FILE: &str = ".reflect.toml";

/// The value of a variable as a path, if it is not empty.
fn path(env: Env<'_>, name: &str) -> Option<PathBuf> {
    env(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// Like [`path`], but only if it is absolute: the XDG specification says to ignore relative paths.
fn absolute(env: Env<'_>, name: &str) -> Option<PathBuf> {
    path(env, name).filter(|p| p.is_absolute())
}

/// The user's home directory.
pub(super) fn home(env: Env<'_>) -> Option<PathBuf> {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    absolute(env, name).or_else(|| etcetera::home_dir().ok())
}

/// The path of the user's config file, which may not exist: `$REFLECT_CONFIG`, else
/// `$XDG_CONFIG_HOME/reflect/config.toml`, else `~/.config/reflect/config.toml` on Linux and macOS,
/// `%APPDATA%\reflect\config.toml` on Windows. `None` if there is no home directory.
pub fn user_file(env: Env<'_>) -> Option<PathBuf> {
    if let Some(file) = path(env, "REFLECT_CONFIG") {
        return Some(file);
    }
    let base = absolute(env, "XDG_CONFIG_HOME").or_else(|| {
        if cfg!(windows) {
            absolute(env, "APPDATA")
        } else {
            Some(home(env)?.join(".config"))
        }
    })?;
    Some(base.join("reflect").join("config.toml"))
}

/// The directory of the run log and other state: `$REFLECT_STATE_DIR`, else `$XDG_STATE_HOME/reflect`, else
/// `~/.local/state/reflect`; `%LOCALAPPDATA%\reflect` on Windows. `None` if there is no home directory.
pub fn state_dir(env: Env<'_>) -> Option<PathBuf> {
    if let Some(dir) = path(env, "REFLECT_STATE_DIR") {
        return Some(dir);
    }
    let base = absolute(env, "XDG_STATE_HOME").or_else(|| {
        if cfg!(windows) {
            absolute(env, "LOCALAPPDATA")
        } else {
            Some(home(env)?.join(".local").join("state"))
        }
    })?;
    Some(base.join("reflect"))
}

/// The run log: `reflect.db` in [`state_dir`].
pub fn store_file(env: Env<'_>) -> Option<PathBuf> {
    Some(state_dir(env)?.join("reflect.db"))
}

/// The cache directory, for downloads such as weights: `$REFLECT_CACHE_DIR`, else `$XDG_CACHE_HOME/reflect`,
/// else `~/.cache/reflect`; `%LOCALAPPDATA%\reflect` on Windows. `None` if there is no home directory.
pub fn cache_dir(env: Env<'_>) -> Option<PathBuf> {
    if let Some(dir) = path(env, "REFLECT_CACHE_DIR") {
        return Some(dir);
    }
    let base = absolute(env, "XDG_CACHE_HOME").or_else(|| {
        if cfg!(windows) {
            absolute(env, "LOCALAPPDATA")
        } else {
            Some(home(env)?.join(".cache"))
        }
    })?;
    Some(base.join("reflect"))
}

/// The project file: `.reflect.toml` in this directory or the nearest parent that has one.
pub fn project_file(directory: &Path) -> Option<PathBuf> {
    directory
        .ancestors()
        .map(|dir| dir.join(PROJECT_FILE))
        .find(|file| file.is_file())
}
