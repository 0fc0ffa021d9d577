//! Durations and sizes as people write them in files and flags.

use std::{fmt, str::FromStr, time::Duration};

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A duration above 0, written as `10s`, `2m` or `1h 30m`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct HumanDuration(Duration);

impl HumanDuration {
    /// A duration in seconds; must be above 0.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Wraps a duration; `None` if it is 0.
    pub const fn new(duration: Duration) -> Option<Self> {
        if duration.is_zero() {
            return None;
        }
        Some(Self(duration))
    }

    /// The time span.
    pub fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid duration `{text}`; write `10s`, `2m` or `1h 30m`");
        let span: SignedDuration = text.trim().parse().map_err(|_| wrong())?;
        match Duration::try_from(span) {
            Ok(duration) if !duration.is_zero() => Ok(Self(duration)),
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for HumanDuration {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<HumanDuration> for String {
    fn from(duration: HumanDuration) -> Self {
        duration.to_string()
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = SignedDuration::try_from(self.0).unwrap_or(SignedDuration::MAX);
        write!(f, "{span:#}")
    }
}

impl fmt::Debug for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl JsonSchema for HumanDuration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["10s", "2m", "1h 30m"] })
    }
}

/// A memory size above 0, written as `512KB`, `256MB` or `2GiB`. Units are powers of 1024, with or without the `i`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct HumanSize(u64);

/// The units, largest first.
const UNITS: [(&str, u64); 3] = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];

impl HumanSize {
    /// A size in mebibytes; must be above 0.
    pub const fn from_mib(mebibytes: u64) -> Self {
        Self(mebibytes << 20)
    }

    /// The size in bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for HumanSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid memory size `{text}`; write `64MB`, `256MB` or `2GB`");
        let plain = text.trim().to_ascii_uppercase().replace("IB", "B");
        let (number, unit) = UNITS
            .iter()
            .find_map(|(unit, bytes)| {
                let number = plain
                    .strip_suffix(unit)
                    .or_else(|| plain.strip_suffix(&unit[..1]))?;
                Some((number, *bytes))
            })
            .ok_or_else(wrong)?;
        let number: u64 = number.trim().parse().map_err(|_| wrong())?;
        match number.checked_mul(unit) {
            Some(bytes) if bytes > 0 => Ok(Self(bytes)),
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for HumanSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<HumanSize> for String {
    fn from(size: HumanSize) -> Self {
        size.to_string()
    }
}

impl fmt::Display for HumanSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value is a multiple of a kilobyte, so the smallest unit always divides it.
        let (unit, bytes) = UNITS
            .iter()
            .find(|(_, bytes)| self.0.is_multiple_of(*bytes))
            .unwrap_or(&UNITS[2]);
        write!(f, "{}{unit}", self.0 / bytes)
    }
}

impl fmt::Debug for HumanSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl JsonSchema for HumanSize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["64MB", "256MB", "2GB"] })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_parse_in_common_notations() {
        for (text, bytes) in [
            ("64MB", 64 << 20),
            (" 2 GiB ", 2 << 30),
            ("512k", 512 << 10),
            ("1g", 1 << 30),
        ] {
            assert_eq!(text.parse::<HumanSize>().unwrap().bytes(), bytes, "{text}");
        }
        for wrong in [
            "",
            "0MB",
            "-1MB",
            "64",
            "MB",
            "1.5GB",
            "99999999999999GB",
            "5XB",
        ] {
            let error = wrong.parse::<HumanSize>().unwrap_err();
            assert!(error.contains("write `64MB`"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn formatting_and_parsing_round_trip(kilobytes in 1_u64..1 << 40) {
            let size = HumanSize(kilobytes << 10);
            prop_assert_eq!(size.to_string().parse::<HumanSize>(), Ok(size));
        }

        #[test]
        fn arbitrary_text_never_panics(text in ".*") {
            let _ = text.parse::<HumanSize>();
        }
    }
}
