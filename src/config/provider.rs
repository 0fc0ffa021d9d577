use std::collections::BTreeMap;
use std::ffi::OsStr;

use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::Env;
use super::settings::check_url;
use crate::secrets;

/// A server of the user's, or what is different about a well-known one: `[providers.NAME]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Provider {
    /// The protocol. Default: that of the well-known provider of this name.
    pub kind: Option<ProviderKind>,
    /// The server's address. Default: that of the well-known provider of this name.
    pub base_url: Option<String>,
    /// The model where none is named.
    pub model: Option<String>,
    /// The environment variable that holds the key. It overrides the two keys below.
    pub api_key_env: Option<String>,
    /// A command that prints the key: a list of words, or a text for the shell.
    pub api_key_cmd: Option<KeyCommand>,
    /// The key itself. Only in a file that others cannot read.
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// Headers of every request. Their values are kept as secret as keys.
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: BTreeMap<String, SecretString>,
    /// Fields that are added to the body of every request.
    pub extra_body: BTreeMap<String, serde_json::Value>,
    /// Whether answers are streamed. Default: true; false for gateways that cannot.
    pub stream: Option<bool>,
}

/// The protocol that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// `OpenAI`'s chat completions.
    #[serde(rename = "openai")]
    OpenAi,
    /// Ollama's own.
    Ollama,
}

/// A command that prints a key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum KeyCommand {
    /// For the shell.
    Shell(String),
    /// A program and its arguments.
    Words(Vec<String>),
}

impl Provider {
    /// Registers the keys and headers of this entry as secrets, because programs that the user allows may
    /// read the file. The output of `api_key_cmd` is registered when the key is needed.
    pub fn remember_secrets(&self, env: Env<'_>) {
        let variable = self.api_key_env.as_deref().and_then(env);
        if let Some(key) = variable.as_deref().and_then(OsStr::to_str) {
            secrets::remember(key);
        }
        if let Some(key) = &self.api_key {
            secrets::remember(key.expose_secret());
        }
        for value in self.headers.values() {
            secrets::remember_header(value.expose_secret());
        }
    }

    /// Checks the values. The error is the invalid key and a message.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if let Some(Err(message)) = self.base_url.as_deref().map(check_url) {
            return Err(("base_url", format!("`base_url` must be {message}")));
        }
        let empty = match &self.api_key_cmd {
            Some(KeyCommand::Shell(text)) => text.trim().is_empty(),
            Some(KeyCommand::Words(words)) => words.first().is_none_or(String::is_empty),
            None => false,
        };
        if empty {
            return Err(("api_key_cmd", "`api_key_cmd` is empty".to_owned()));
        }
        Ok(())
    }
}
