use std::fmt;
use std::str::FromStr;

use reqwest::Url;

use crate::model::BaseUrl;

/// The default port of a server's ingress.
const INGRESS: u16 = 8080;

/// The usual port of a server's admin API.
const ADMIN: u16 = 9070;

/// A Restate server and the name of a batch on it: `restate://HOST[:PORT][/NAME]`, or `https://…` behind TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineAddress(Url);

impl EngineAddress {
    /// Returns the URL of its ingress, which accepts requests.
    pub fn ingress(&self) -> String {
        self.url(self.0.port_or_known_default().unwrap_or(INGRESS))
    }

    /// Returns the URL of its admin API at the usual port.
    pub fn admin(&self) -> String {
        self.url(ADMIN)
    }

    fn url(&self, port: u16) -> String {
        let encrypted = self.0.scheme() == "https";
        let scheme = if encrypted { "https" } else { "http" };
        format!(
            "{scheme}://{}:{port}",
            self.0.host_str().unwrap_or_default()
        )
    }

    /// Returns the batch name, which separates its tasks from the same tasks of another batch. Empty if none
    /// is given.
    pub fn name(&self) -> &str {
        self.0.path().trim_start_matches('/')
    }

    /// Whether the server is on this machine.
    pub fn is_local(&self) -> bool {
        BaseUrl::openai(&self.ingress()).is_ok_and(|url| url.is_loopback())
    }
}

impl fmt::Display for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl FromStr for EngineAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const WRONG: &str = "it must be restate://HOST[:PORT][/NAME] or https://HOST[:PORT][/NAME], \
            for example restate://localhost";
        let mut url: Url = text.trim_end_matches('/').parse().map_err(|_| WRONG)?;
        // Parsing drops trailing control characters, which may expose a slash.
        if url.path() == "/" {
            url.set_path("");
        }
        let address = Self(url);
        let Self(url) = &address;
        let has_host = url.host_str().is_some_and(|host| !host.is_empty());
        // A user, a password or a query is meaningless here and would be lost.
        let has_more = !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some()
            || address.name().contains('/');
        if !matches!(url.scheme(), "restate" | "https") || !has_host || has_more {
            return Err(WRONG.to_owned());
        }
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ports_and_the_name_are_optional() {
        let at = |text: &str| text.parse::<EngineAddress>().unwrap();
        let plain = at("restate://host");
        assert_eq!(plain.ingress(), "http://host:8080");
        assert_eq!(plain.admin(), "http://host:9070");
        assert_eq!(plain.name(), "");
        let named = at("restate://[::1]:81/nightly");
        assert_eq!(named.ingress(), "http://[::1]:81");
        assert_eq!(named.admin(), "http://[::1]:9070");
        assert_eq!(named.name(), "nightly");
        assert_eq!(at(&named.to_string()), named);
        let encrypted = at("https://host/nightly");
        assert_eq!(encrypted.ingress(), "https://host:443");
        assert_eq!(encrypted.admin(), "https://host:9070");
        assert_eq!(at(&encrypted.to_string()), encrypted);
    }

    #[test]
    fn only_loopback_is_this_machine() {
        for (text, is_local) in [
            ("restate://localhost", true),
            ("restate://127.0.0.1:81", true),
            ("restate://[::1]", true),
            ("restate://queue", false),
            ("restate://10.0.0.1", false),
        ] {
            let address: EngineAddress = text.parse().unwrap();
            assert_eq!(address.is_local(), is_local, "{text}");
        }
    }

    #[test]
    fn an_address_with_missing_or_extra_parts_is_rejected() {
        for bad in [
            "",
            "host",
            "http://host",
            "restate://",
            "restate:///name",
            "restate://user:key@host",
            "restate://host:port",
            "restate://host:70000",
            "restate://host/a/b",
            "restate://host/a?b",
            "restate://host/a#b",
            "https://user@host",
        ] {
            assert!(bad.parse::<EngineAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_final_slash_is_ignored() {
        let plain: EngineAddress = "restate://host".parse().unwrap();
        for text in [
            "restate://host/",
            "restate://host/\u{b}",
            "restate://host//",
        ] {
            assert_eq!(text.parse(), Ok(plain.clone()), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(text in "(restate://|https://)?.{0,30}") {
            if let Ok(address) = text.parse::<EngineAddress>() {
                prop_assert_eq!(address.to_string().parse::<EngineAddress>(), Ok(address));
            }
        }
    }
}
