use std::{
    fmt,
    io::Read as _,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use secrecy::SecretString;

use super::{
    env::Env,
    provider::{KeyCommand, Provider},
};
use crate::source::SourceError;

/// How long a command may take to print a key. The user may have to type a password for it.
const PATIENCE: Duration = Duration::from_mins(1);

/// A key and its origin. `Debug` output omits the key.
#[derive(Clone)]
pub struct FoundKey {
    /// The key.
    pub secret: SecretString,
    /// Where it was found, for messages: `the environment variable OPENAI_API_KEY`.
    pub origin: String,
}

impl fmt::Debug for FoundKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FoundKey(from {})", self.origin)
    }
}

/// Looks up the key of a provider, in this order: the environment (`api_key_env`, else `default_env`, the
/// provider's usual variable), `api_key_cmd`, `api_key`. Returns `None` if there is none.
///
/// Waits up to a minute for the command.
///
/// # Errors
/// If the command fails or prints no key. The message never contains its output.
pub fn api_key(
    name: &str,
    provider: Option<&Provider>,
    default_env: Option<&str>,
    env: Env<'_>,
) -> Result<Option<FoundKey>, SourceError> {
    let variable = provider
        .and_then(|p| p.api_key_env.as_deref())
        .or(default_env);
    if let Some(variable) = variable
        && let Some(value) = env(variable).filter(|v| !v.is_empty())
    {
        let text = value.to_str().map(str::trim).unwrap_or_default();
        let origin = format!("the environment variable {variable}");
        return key(text, origin).map(Some);
    }
    let Some(provider) = provider else {
        return Ok(None);
    };
    if let Some(command) = &provider.api_key_cmd {
        let origin = format!("`api_key_cmd` of provider `{name}`");
        let text = run(command).map_err(|message| SourceError::for_file(&origin, &message))?;
        return key(text.lines().next().unwrap_or_default().trim(), origin).map(Some);
    }
    match &provider.api_key {
        Some(secret) => {
            let origin = format!("`api_key` of provider `{name}`");
            let text = secrecy::ExposeSecret::expose_secret(secret).trim();
            key(text, origin).map(Some)
        }
        None => Ok(None),
    }
}

/// Checks that a key is valid in an HTTP header.
fn key(text: &str, origin: String) -> Result<FoundKey, SourceError> {
    if text.is_empty() {
        return Err(SourceError::for_file(&origin, "it contains no key"));
    }
    if !text.chars().all(|c| c.is_ascii_graphic()) {
        return Err(SourceError::for_file(
            &origin,
            "the key contains invalid characters (spaces, line breaks, non-ASCII)",
        ));
    }
    Ok(FoundKey {
        secret: SecretString::from(text),
        origin,
    })
}

fn run(command: &KeyCommand) -> Result<String, String> {
    let mut child = match command {
        KeyCommand::Words(words) => {
            let (program, arguments) = words.split_first().ok_or("the command is empty")?;
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
        KeyCommand::Shell(text) if cfg!(windows) => {
            let mut command = Command::new("cmd");
            command.args(["/C", text]);
            command
        }
        KeyCommand::Shell(text) => {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            command
        }
    };
    // Show its errors and questions to the user. Standard input may be the prompt, so the command must not
    // read it.
    let mut child = child
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| format!("cannot start the command: {error}"))?;
    let (sender, receiver) = std::sync::mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut text = String::new();
            // Keys are short: limit what is read.
            let read = stdout.take(65_536).read_to_string(&mut text);
            // The receiver is gone if the command took too long.
            let _ = sender.send(read.map(|_| text));
        });
    }
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(None) => {
                // Ignore errors: the command may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "the command took longer than {} s",
                    PATIENCE.as_secs()
                ));
            }
            Err(error) => return Err(format!("cannot wait for the command: {error}")),
        }
    };
    if !status.success() {
        return Err(format!("the command failed ({status})"));
    }
    receiver
        .recv_timeout(Duration::from_secs(1))
        .map_err(|_| {
            "the command ended, but a process it started keeps its output open".to_owned()
        })?
        .map_err(|_| "the command printed binary data".to_owned())
}
