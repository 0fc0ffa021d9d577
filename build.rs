//! Tells the program which commit it is built from, for `reflect --version`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = env!("CARGO_PKG_VERSION");
    // A debug build is not built anew after every commit.
    let released = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = released
        .then(|| packaged().or_else(checked_out))
        .flatten()
        .map(|commit| format!(" ({commit})"))
        .unwrap_or_default();
    println!("cargo::rustc-env=REFLECT_VERSION={version}{commit}");
}

/// The commit that Cargo wrote down when the package was made.
fn packaged() -> Option<String> {
    let info = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, after) = info.split_once("\"sha1\":")?;
    let commit = after.trim_start().strip_prefix('"')?.get(..10)?;
    commit
        .chars()
        .all(|c| c.is_ascii_hexdigit())
        .then(|| commit.to_owned())
}

/// The commit and day of the repository that this folder is the top of; another one above it says nothing about us.
fn checked_out() -> Option<String> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let here = std::env::var_os("CARGO_MANIFEST_DIR")?;
    if Path::new(&top).canonicalize().ok()? != Path::new(&here).canonicalize().ok()? {
        return None;
    }
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["show", "--no-patch", "--format=%h %cs", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}
