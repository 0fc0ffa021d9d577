//! API keys that cannot be printed and are sent to one server only.

use std::fmt;

use reqwest::Url;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

use crate::secrets;
use crate::source::redact;

/// An API key with the one server that it may be sent to.
///
/// Requests to any other server (another base URL or port) omit it.
#[derive(Clone)]
pub struct ApiKey {
    secret: SecretString,
    origin: String,
}

/// Why a key is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The key is empty.
    #[error("the key is empty")]
    Empty,
    /// The key contains characters that a header cannot carry.
    #[error(
        "the key contains white space or invalid characters; check that it was copied completely"
    )]
    Characters,
    /// The address of its server is invalid.
    #[error("`{0}` is not a valid URL for a key")]
    Url(String),
}

impl ApiKey {
    /// A key for the server of `url`: scheme, host and port count, the path does not. Surrounding white space, such
    /// as a final newline in a file, is removed.
    pub fn for_url(secret: &str, url: &str) -> Result<Self, KeyError> {
        let url = Url::parse(url.trim()).map_err(|_| KeyError::Url(redact(url).into_owned()))?;
        let secret = secret.trim();
        if secret.is_empty() {
            return Err(KeyError::Empty);
        }
        if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError::Characters);
        }
        if !url.has_host() {
            return Err(KeyError::Url(redact(url.as_str()).into_owned()));
        }
        secrets::remember(secret);
        Ok(Self {
            secret: SecretString::from(secret),
            origin: url.origin().ascii_serialization(),
        })
    }

    /// Whether the key may be sent to this address.
    pub fn fits(&self, url: &Url) -> bool {
        self.origin == url.origin().ascii_serialization()
    }

    /// The server that the key is for, as `https://host`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The authorization header for a request to `url`; `None` if the key belongs to another server.
    pub(crate) fn bearer(&self, url: &Url) -> Option<HeaderValue> {
        if !self.fits(url) {
            return None;
        }
        let mut value =
            HeaderValue::from_str(&format!("Bearer {}", self.secret.expose_secret())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey(for {})", self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_key_stays_with_its_server() {
        let key = ApiKey::for_url(" sk-12345678\n", "https://api.example.com/v1").unwrap();
        let there = key.bearer(&url("https://api.example.com/v1/chat/completions"));
        assert_eq!(there.unwrap().to_str().unwrap(), "Bearer sk-12345678");
        for other in [
            "http://api.example.com/v1",
            "https://api.example.com:8443/v1",
            "https://evil.example.com/v1",
            "https://api.example.com.evil.org/v1",
        ] {
            assert!(key.bearer(&url(other)).is_none(), "{other}");
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let key = ApiKey::for_url("sk-12345678", "https://api.example.com/v1").unwrap();
        assert!(!format!("{key:?}").contains("1234"));
        let header = key.bearer(&url("https://api.example.com")).unwrap();
        assert!(!format!("{header:?}").contains("1234"));
        let said = "bad key sk-12345678!".to_owned();
        assert_eq!(secrets::redact_text(said), "bad key [key]!");
    }

    #[test]
    fn invalid_keys_are_rejected() {
        let make = |secret| {
            ApiKey::for_url(secret, "https://x.org")
                .map(|_| ())
                .unwrap_err()
        };
        assert_eq!(make(" \n"), KeyError::Empty);
        assert_eq!(make("a b"), KeyError::Characters);
        assert_eq!(make("a\nb"), KeyError::Characters);
        assert!(matches!(
            ApiKey::for_url("k", "nowhere").unwrap_err(),
            KeyError::Url(_)
        ));
    }
}
