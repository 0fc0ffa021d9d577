//! The secrets of this process: API keys, header values and passwords.
//!
//! Child processes must not read them, and they must never be printed, stored or sent to a model. A program that the
//! user allowed to run can still read the user's files and the memory of other processes, so its output is redacted
//! before anything else reads it.

use std::borrow::Cow;
use std::ffi::OsStr;

use memchr::memmem;
use parking_lot::RwLock;
use secrecy::{ExposeSecret as _, SecretString};

/// Shorter values are usually placeholders for local servers; redacting them would garble ordinary text. In bytes.
const SHORTEST: usize = 8;

/// The replacement for a secret.
const REDACTED: &str = "[key]";

/// The environment variable that marks the processes of a sandbox. It survives [`protect_process`], because an outer
/// `reflect` finds the processes it has to end by this mark.
pub const SANDBOX_MARK: &str = "REFLECT_SANDBOX";

/// The known secrets, longest first, because one secret may contain another.
static KNOWN: RwLock<Vec<SecretString>> = RwLock::new(Vec::new());

/// Registers a secret for [`redact`]. Ignores values shorter than 8 bytes.
pub fn remember(secret: &str) {
    let secret = secret.trim();
    if secret.len() < SHORTEST {
        return;
    }
    add(secret);
    // JSON escapes quotes and backslashes.
    if let Ok(json) = serde_json::to_string(secret) {
        let escaped = json.trim_matches('"');
        if escaped != secret {
            add(escaped);
        }
    }
}

fn add(secret: &str) {
    let mut known = KNOWN.write();
    if known.iter().all(|it| it.expose_secret() != secret) {
        known.push(SecretString::from(secret));
        known.sort_by_key(|it| std::cmp::Reverse(it.expose_secret().len()));
    }
}

/// Registers the value of a request header, and for `Bearer TOKEN`, `Basic TOKEN` and `Token TOKEN` also the token
/// alone.
pub fn remember_header(value: &str) {
    remember(value);
    if let Some(("Bearer" | "Basic" | "Token", token)) = value.trim().split_once(' ') {
        remember(token);
    }
}

/// Replaces each known secret with `[key]`.
pub fn redact(mut bytes: Vec<u8>) -> Vec<u8> {
    let known = KNOWN.read();
    for secret in known.iter().map(|it| it.expose_secret().as_bytes()) {
        let Some(first) = memmem::find(&bytes, secret) else {
            continue;
        };
        let mut clean = bytes[..first].to_vec();
        let mut rest = &bytes[first..];
        while let Some(at) = memmem::find(rest, secret) {
            clean.extend_from_slice(&rest[..at]);
            clean.extend_from_slice(REDACTED.as_bytes());
            rest = &rest[at + secret.len()..];
        }
        clean.extend_from_slice(rest);
        bytes = clean;
    }
    bytes
}

/// Replaces each known secret with `[key]`.
pub fn redact_text(text: String) -> String {
    match String::from_utf8_lossy(&redact(text.into_bytes())) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => text,
    }
}

/// Whether a variable with this name usually holds a secret.
fn names_a_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "CREDENTIALS",
    ]
    .iter()
    .any(|end| name.ends_with(end))
}

/// Registers the secrets in the environment, then hides the environment and memory of this process from other
/// processes. `std::env` keeps working. `main` calls this first, while there is only one thread.
///
/// Other processes of the user, such as a command that checks drafts, could read the initial environment in
/// `/proc/PID/environ`. This function copies the environment and overwrites the original in place. On Linux it also
/// marks the process as not dumpable, so that only root can read its memory.
pub fn protect_process() {
    for (name, value) in std::env::vars_os() {
        // A path points to a secret; it is not secret itself.
        if let Some(value) = value.to_str()
            && names_a_secret(&name)
            && !value.starts_with('/')
        {
            remember(value);
        }
    }
    #[cfg(unix)]
    overwrite_environment();
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Best effort: the environment is already overwritten.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "the kernel exposes this block, so it must be overwritten in place"
)]
fn overwrite_environment() {
    use std::ffi::{CStr, c_char};
    unsafe extern "C" {
        static environ: *const *mut c_char;
    }
    let keep = format!("{SANDBOX_MARK}=");
    // SAFETY: there is only one thread, so nothing else accesses the environment. `environ` is null or a
    // null-terminated list of C strings in the writable block that the kernel created. The loop collects the
    // addresses before `set_var` replaces the list. Each string is overwritten up to its own terminator. Nothing
    // points to it any more, because `set_var` has stored a copy.
    unsafe {
        let mut block = Vec::new();
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            block.push(*next);
            next = next.add(1);
        }
        for (name, value) in std::env::vars_os() {
            std::env::set_var(name, value);
        }
        for entry in block {
            let text = CStr::from_ptr(entry);
            if !text.to_bytes().starts_with(keep.as_bytes()) {
                std::ptr::write_bytes(entry, 0, text.count_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_secrets_are_replaced_everywhere() {
        remember("secret-of-this-test");
        remember("secret-of-this-test-and-more");
        remember("quoted\"secret\\here");
        remember_header("Bearer token-of-this-test");
        let text = |text: &str| redact_text(text.to_owned());
        assert_eq!(
            text("a secret-of-this-test, secret-of-this-test-and-more."),
            "a [key], [key]."
        );
        assert_eq!(
            text(r#"{"a": "quoted\"secret\\here"}"#),
            r#"{"a": "[key]"}"#
        );
        assert_eq!(text("token-of-this-test"), "[key]");
        assert_eq!(
            redact(b"\xff secret-of-this-test\0".to_vec()),
            b"\xff [key]\0"
        );
    }

    #[test]
    fn short_values_are_not_secrets() {
        remember("ollama");
        assert_eq!(redact_text("ollama".to_owned()), "ollama");
    }
}
