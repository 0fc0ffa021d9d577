use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use hyper::http::uri::Authority;

/// The ingress of a server, unless its address names another port.
const INGRESS: u16 = 8080;

/// The admin API of a server, unless somebody says otherwise.
const ADMIN: u16 = 9070;

/// A Restate server, and the name of a batch on it: `restate://HOST[:PORT][/NAME]`, or `https://…` behind TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineAddress {
    encrypted: bool,
    host: String,
    port: u16,
    name: String,
}

impl EngineAddress {
    /// The URL of its ingress, which takes requests.
    pub fn ingress(&self) -> String {
        self.url(self.port)
    }

    /// The URL of its admin API, if that is at its usual port.
    pub fn admin(&self) -> String {
        self.url(ADMIN)
    }

    fn url(&self, port: u16) -> String {
        let scheme = if self.encrypted { "https" } else { "http" };
        format!("{scheme}://{}:{port}", self.host)
    }

    /// Distinguishes tasks from the same ones of another batch; empty where nothing is given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the server is on this machine.
    pub fn is_local(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let ip = host.parse::<IpAddr>();
        host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
    }
}

impl fmt::Display for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.encrypted { "https" } else { "restate" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)?;
        if self.name.is_empty() {
            return Ok(());
        }
        write!(f, "/{}", self.name)
    }
}

impl FromStr for EngineAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const WRONG: &str = "it must be restate://HOST[:PORT][/NAME] or https://HOST[:PORT][/NAME], \
            for example restate://localhost";
        let (scheme, rest) = text.split_once("://").ok_or(WRONG)?;
        let (encrypted, usual) = match scheme {
            "restate" => (false, INGRESS),
            "https" => (true, 443),
            _ => return Err(WRONG.to_owned()),
        };
        let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
        let authority: Authority = authority.parse().map_err(|_| WRONG)?;
        let host = authority.host();
        // A user or a password has no meaning here, and would be lost.
        if host.is_empty() || authority.as_str().contains('@') || name.contains(['/', '?', '#']) {
            return Err(WRONG.to_owned());
        }
        let after = authority.as_str().strip_prefix(host).unwrap_or_default();
        let port = match after.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| WRONG)?,
            None => usual,
        };
        Ok(Self {
            encrypted,
            host: host.to_owned(),
            port,
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ports_and_a_name_may_be_left_out() {
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
    fn what_would_be_lost_is_refused() {
        for bad in [
            "",
            "host",
            "http://host",
            "restate://",
            "restate:///name",
            "restate://user:key@host",
            "restate://host:port",
            "restate://host:",
            "restate://host:70000",
            "restate://host/a/b",
            "restate://host/a?b",
        ] {
            assert!(bad.parse::<EngineAddress>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fall_over(text in "(restate://|https://)?.{0,30}") {
            if let Ok(address) = text.parse::<EngineAddress>() {
                prop_assert_eq!(address.to_string().parse::<EngineAddress>(), Ok(address));
            }
        }
    }
}
