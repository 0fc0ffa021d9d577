//! Secrets of this process: API keys, header values and passwords, which programs started by it must not read and
//! whose text must not be shown, stored or sent.
//!
//! A program that the user allowed can still read files of the user and the memory of older processes. What it
//! prints is therefore searched for known secrets before anything else sees it.

use std::borrow::Cow;
use std::ffi::OsStr;

use memchr::memmem;
use parking_lot::RwLock;
use secrecy::{ExposeSecret as _, SecretString};

/// Shorter values are placeholders for local servers; replacing them would garble ordinary text.
const SHORTEST: usize = 8;

/// What a secret is replaced by.
const REDACTED: &str = "[key]";

/// Name of the variable that marks the processes of a sandbox. An outer `reflect` must still find it in our
/// environment.
pub const SANDBOX_MARK: &str = "REFLECT_SANDBOX";

/// The known secrets, the longest first: one may be a part of another.
static KNOWN: RwLock<Vec<SecretString>> = RwLock::new(Vec::new());

/// Adds a secret to those that [`redact`] removes. Values of fewer than 8 bytes are ignored.
pub fn remember(secret: &str) {
    let secret = secret.trim();
    if secret.len() < SHORTEST {
        return;
    }
    add(secret);
    // In JSON it is written differently if it holds quotes or backslashes.
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

/// Adds the value of a request header; of `Bearer TOKEN` and the like also the token alone.
pub fn remember_header(value: &str) {
    remember(value);
    if let Some(("Bearer" | "Basic" | "Token", token)) = value.trim().split_once(' ') {
        remember(token);
    }
}

/// The bytes with each known secret replaced by `[key]`.
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

/// The text with each known secret replaced by `[key]`.
pub fn redact_text(text: String) -> String {
    match String::from_utf8_lossy(&redact(text.into_bytes())) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => text,
    }
}

/// Whether a variable of this name holds a secret by custom.
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

/// Hides the environment and the memory of this process from others, and remembers the secrets in the environment.
/// `std::env` works as before. `main` calls this first, while there is only one thread.
///
/// Other processes of the user, such as a command that judges drafts, can read the environment that a process was
/// started with (`/proc/PID/environ`). It is copied and then overwritten in place. On Linux the process is also
/// marked as not dumpable, so that only root can read its memory.
pub fn hide_own() {
    for (name, value) in std::env::vars_os() {
        // A path is where a secret is, not the secret.
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
        // A kernel that refuses still has an empty environment to show.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "the block that the kernel shows can only be changed in place"
)]
fn overwrite_environment() {
    use std::ffi::{CStr, c_char};
    unsafe extern "C" {
        static environ: *const *mut c_char;
    }
    let keep = format!("{SANDBOX_MARK}=");
    // SAFETY: there is only one thread, so nothing reads or changes the environment meanwhile. `environ` is null or
    // a list of C strings that ends with null, in the writable block that the kernel made. Their addresses are
    // collected before `set_var` replaces the list; each string is overwritten up to its own end, and nothing points
    // to it any more, because `set_var` has put a copy in its place.
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
