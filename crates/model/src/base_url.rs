//! Base URLs of servers, in all the forms in which people write them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use crate::source::redact;

/// The base URL of a server's API, such as `https://api.openai.com/v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

/// An invalid base URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{url}` cannot be used as a base URL: {reason}")]
pub struct BaseUrlError {
    /// The URL as entered, with possible secrets masked.
    pub url: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Ollama's default port.
const OLLAMA_PORT: u16 = 11434;

impl BaseUrl {
    /// Parses the base URL of a server with `OpenAI`'s chat completions API.
    ///
    /// `https://x`, `https://x/`, `https://x/v1`, `https://x/v1/` and `https://x/v1/chat/completions` all mean
    /// `https://x/v1`. Any other path is kept, because some providers have their own (`/v1beta/openai`). Without a
    /// scheme, hosts on this machine and in private networks get `http://`, all others `https://`. A query is kept.
    pub fn openai(text: &str) -> Result<Self, BaseUrlError> {
        let text = text.trim();
        let mut url = if text.contains("://") {
            checked(text, Url::parse(text))?
        } else {
            let url = checked(text, Url::parse(&format!("http://{text}")))?;
            if is_private(&url) {
                url
            } else {
                checked(text, Url::parse(&format!("https://{text}")))?
            }
        };
        let mut path = url.path().trim_end_matches('/');
        for end in ["/chat/completions", "/completions", "/responses", "/models"] {
            path = path.strip_suffix(end).unwrap_or(path);
        }
        let path = path.trim_end_matches('/');
        let path = if path.is_empty() { "/v1" } else { path }.to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }

    /// Parses the base URL of an Ollama server by the rules of `OLLAMA_HOST`.
    ///
    /// An empty text means `http://127.0.0.1:11434`. Without a scheme, the default is `http` and port 11434.
    /// `http://h` means port 80, `https://h` means port 443, and a bare `ollama.com` means `https`. Surrounding white
    /// space and quotes are removed, an invalid port is replaced with the default, and a path is kept. Addresses that
    /// mean "all interfaces" (`0.0.0.0`, `::`, or no host) become the loopback address, because a client cannot
    /// connect to them.
    pub fn ollama(text: &str) -> Result<Self, BaseUrlError> {
        let trimmed = text.trim().trim_matches(|c| c == '"' || c == '\'').trim();
        let (scheme, rest, default_port) = match trimmed.split_once("://") {
            None if trimmed == "ollama.com" => ("https", trimmed, 443),
            None => ("http", trimmed, OLLAMA_PORT),
            Some(("https", rest)) => ("https", rest, 443),
            Some(("http", rest)) => ("http", rest, 80),
            Some((scheme, _)) => {
                return Err(BaseUrlError {
                    url: trimmed.to_owned(),
                    reason: format!("unsupported scheme `{scheme}`; use http or https"),
                });
            }
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = host_and_port(authority);
        let port = port.map_or(default_port, |port| {
            port.parse::<u16>().unwrap_or(default_port)
        });
        let host = match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) if address.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
            Ok(IpAddr::V6(address)) if address.is_unspecified() => {
                format!("[{}]", Ipv6Addr::LOCALHOST)
            }
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            _ if host.is_empty() => Ipv4Addr::LOCALHOST.to_string(),
            _ => host.to_owned(),
        };
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix("/api").unwrap_or(path);
        let path = if path == "api" { "" } else { path };
        let address = format!("{scheme}://{host}:{port}/{path}");
        let mut url = checked(&address, Url::parse(&address))?;
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }

    /// The URL.
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// Whether the host is this machine.
    pub fn is_loopback(&self) -> bool {
        super::http::client::is_loopback(&self.0)
    }

    /// Whether both point to the same server and path; `localhost` and `127.0.0.1` are the same host.
    pub fn is_same(&self, other: &Self) -> bool {
        let rest = |url: &Url| {
            let (port, path) = (url.port_or_known_default(), url.path().to_owned());
            (url.scheme().to_owned(), port, path)
        };
        let is_one_machine = self.is_loopback() && other.is_loopback();
        self == other || (is_one_machine && rest(&self.0) == rest(&other.0))
    }

    /// The URL of a path below this one.
    pub(crate) fn join(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        let joined = format!("{}/{path}", url.path().trim_end_matches('/'));
        url.set_path(&joined);
        url
    }
}

/// Prints the URL with possible secrets masked.
impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact(self.0.as_str().trim_end_matches('/')))
    }
}

/// Splits `host:port`. An IPv6 address may be in brackets.
fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    let bare = authority.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<Ipv6Addr>().is_ok() {
        return (bare, None);
    }
    match authority.rsplit_once(':') {
        Some((host, port)) => (
            host.trim_start_matches('[').trim_end_matches(']'),
            Some(port),
        ),
        None => (authority, None),
    }
}

fn checked<E: fmt::Display>(text: &str, url: Result<Url, E>) -> Result<Url, BaseUrlError> {
    let shown = redact(text).into_owned();
    let error = |reason: &str| BaseUrlError {
        url: shown.clone(),
        reason: reason.to_owned(),
    };
    let mut url = url.map_err(|reason| error(&reason.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(error("it must start with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(error(
            "a URL must not contain a user name or password; use a key or a header",
        ));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Whether the host is this machine or in a private network.
fn is_private(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let top = host.rsplit('.').next().unwrap_or_default();
    match host.trim_start_matches('[').trim_end_matches(']').parse() {
        Ok(IpAddr::V4(address)) => {
            address.is_private() || address.is_loopback() || address.is_unspecified()
        }
        Ok(IpAddr::V6(address)) => {
            address.is_loopback() || address.is_unique_local() || address.is_unspecified()
        }
        Err(_) => !host.contains('.') || matches!(top, "local" | "localhost"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_form_of_an_openai_base() {
        for (text, expected) in [
            ("https://x.org", "https://x.org/v1"),
            ("https://x.org/", "https://x.org/v1"),
            ("https://x.org/v1", "https://x.org/v1"),
            (" https://x.org/v1/ ", "https://x.org/v1"),
            ("https://x.org/v1/chat/completions", "https://x.org/v1"),
            ("https://x.org/v1/models/", "https://x.org/v1"),
            ("https://x.org/chat/completions", "https://x.org/v1"),
            ("https://x.org/v1beta/openai", "https://x.org/v1beta/openai"),
            (
                "https://x.org/v1beta/openai/",
                "https://x.org/v1beta/openai",
            ),
            (
                "https://openrouter.ai/api/v1",
                "https://openrouter.ai/api/v1",
            ),
            ("localhost:1234/v1", "http://localhost:1234/v1"),
            ("localhost:1234", "http://localhost:1234/v1"),
            ("192.168.1.5:8080", "http://192.168.1.5:8080/v1"),
            ("[::1]:8080", "http://[::1]:8080/v1"),
            ("api.x.org", "https://api.x.org/v1"),
            (
                "https://x.org/v1?api-version=3",
                "https://x.org/v1?api-version=3",
            ),
        ] {
            assert_eq!(
                BaseUrl::openai(text).unwrap().to_string(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_base_urls_are_rejected() {
        for text in [
            "",
            "ftp://x.org",
            "https://",
            "http://a b",
            "https://me:secret@x.org/v1",
        ] {
            let error = BaseUrl::openai(text).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn joined_urls_keep_the_query() {
        let base = BaseUrl::openai("https://x.org/v1?api-version=3").unwrap();
        assert_eq!(
            base.join("chat/completions").as_str(),
            "https://x.org/v1/chat/completions?api-version=3"
        );
        let base = BaseUrl::ollama("").unwrap();
        assert_eq!(
            base.join("api/chat").as_str(),
            "http://127.0.0.1:11434/api/chat"
        );
    }

    /// The rules of Ollama's own configuration, with addresses made connectable.
    #[test]
    fn ollama_host_is_parsed_as_by_ollama() {
        for (text, expected) in [
            ("", "http://127.0.0.1:11434"),
            ("1.2.3.4", "http://1.2.3.4:11434"),
            (":1234", "http://127.0.0.1:1234"),
            ("1.2.3.4:1234", "http://1.2.3.4:1234"),
            ("example.com", "http://example.com:11434"),
            ("example.com:1234", "http://example.com:1234"),
            (":66000", "http://127.0.0.1:11434"),
            (":-1", "http://127.0.0.1:11434"),
            ("example.com:", "http://example.com:11434"),
            ("[::1]", "http://[::1]:11434"),
            ("::1", "http://[::1]:11434"),
            ("[::1]:1337", "http://[::1]:1337"),
            ("[::]", "http://[::1]:11434"),
            ("::", "http://[::1]:11434"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("0.0.0.0:8080", "http://127.0.0.1:8080"),
            (" 1.2.3.4 ", "http://1.2.3.4:11434"),
            ("\"1.2.3.4\"", "http://1.2.3.4:11434"),
            (" ' 1.2.3.4 ' ", "http://1.2.3.4:11434"),
            ("http://1.2.3.4", "http://1.2.3.4"),
            ("http://1.2.3.4:4321", "http://1.2.3.4:4321"),
            ("https://1.2.3.4", "https://1.2.3.4"),
            ("https://1.2.3.4:4321/", "https://1.2.3.4:4321"),
            ("https://example.com/ollama", "https://example.com/ollama"),
            ("example.com:1234/ollama/", "http://example.com:1234/ollama"),
            ("http://localhost:11434/api", "http://localhost:11434"),
            ("ollama.com", "https://ollama.com"),
            ("https://ollama.com", "https://ollama.com"),
            ("http://[::1]", "http://[::1]"),
        ] {
            let base = BaseUrl::ollama(text).unwrap();
            assert_eq!(base.to_string(), expected, "{text}");
        }
        assert!(BaseUrl::ollama("ftp://x").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC*") {
            let _ = BaseUrl::openai(&text);
            let _ = BaseUrl::ollama(&text);
        }

        #[test]
        fn openai_base_is_idempotent(host in "[a-z]{1,8}(\\.[a-z]{2,3})?", path in "(/[a-z0-9]{1,5}){0,3}") {
            let once = BaseUrl::openai(&format!("https://{host}{path}")).unwrap();
            prop_assert_eq!(BaseUrl::openai(&once.to_string()).unwrap(), once);
        }
    }
}
