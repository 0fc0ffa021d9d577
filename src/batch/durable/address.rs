use std::fmt;
use std::str::FromStr;

use hyper::http::uri::Authority;

/// Where a server of Restate takes requests, unless somebody says otherwise.
const INGRESS: u16 = 8080;

/// Where it is administered.
const ADMIN: u16 = 9070;

/// A Restate server, and the name of a batch on it: `restate://HOST[:PORT][/NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineAddress {
    host: String,
    port: u16,
    name: String,
}

impl EngineAddress {
    /// Where the server takes requests: its ingress.
    pub fn ingress(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Where it is administered, if it is where it usually is.
    pub fn admin(&self) -> String {
        format!("{}:{ADMIN}", self.host)
    }

    /// What tells tasks apart from the same ones of another batch; empty where nothing is said.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "restate://{}:{}", self.host, self.port)?;
        if self.name.is_empty() {
            return Ok(());
        }
        write!(f, "/{}", self.name)
    }
}

impl FromStr for EngineAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const WRONG: &str =
            "it must be restate://HOST[:PORT][/NAME], for example restate://localhost";
        let rest = text.strip_prefix("restate://").ok_or(WRONG)?;
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
            None => INGRESS,
        };
        Ok(Self {
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
        assert_eq!(plain.ingress(), "host:8080");
        assert_eq!(plain.admin(), "host:9070");
        assert_eq!(plain.name(), "");
        let named = at("restate://[::1]:81/nightly");
        assert_eq!(named.ingress(), "[::1]:81");
        assert_eq!(named.admin(), "[::1]:9070");
        assert_eq!(named.name(), "nightly");
        assert_eq!(at(&named.to_string()), named);
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
        fn no_text_makes_it_fall_over(text in "(restate://)?.{0,30}") {
            if let Ok(address) = text.parse::<EngineAddress>() {
                prop_assert_eq!(address.to_string().parse::<EngineAddress>(), Ok(address));
            }
        }
    }
}
