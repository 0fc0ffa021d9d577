//! When to retry a call, and how long to wait.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;

/// How to retry failed calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of retries. Default 3.
    pub max_retries: u32,
    /// The maximum wait before the first retry; it doubles with each retry. The actual wait is random below it ("full
    /// jitter"), so that clients do not retry in sync. Default 1 s.
    pub base: Duration,
    /// The maximum wait before any retry, even if the server requests more. Default 60 s.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 3,
            base: Duration::from_secs(1),
            cap: Duration::from_mins(1),
        }
    }
}

impl RetryPolicy {
    /// No retries.
    pub fn none() -> Self {
        Self {
            max_retries: 0,
            ..Self::default()
        }
    }

    /// The wait before trying a busy server again for the `times`-th time (from 0). It is random between 50 % and 100 %
    /// of a backoff that doubles each time, up to 15 s.
    pub(crate) fn busy_wait(&self, times: u32) -> Duration {
        const LONGEST: Duration = Duration::from_secs(15);
        let ceiling = self
            .base
            .saturating_mul(2_u32.saturating_pow(times))
            .min(self.cap.min(LONGEST));
        ceiling.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// The wait before retry number `retry` (from 0), considering the wait that the server requested.
    pub(crate) fn wait(&self, retry: u32, asked: Option<Duration>) -> Duration {
        if let Some(asked) = asked {
            return asked.min(self.cap);
        }
        let ceiling = self
            .base
            .saturating_mul(2_u32.saturating_pow(retry))
            .min(self.cap);
        ceiling.mul_f64(fastrand::f64())
    }
}

/// The wait that the server requests in any of the usual headers.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(wait) = text("retry-after-ms").and_then(|ms| millis(ms.parse().ok()?)) {
        return Some(wait);
    }
    if let Some(wait) = text("retry-after").and_then(|value| seconds_or_date(value, now)) {
        return Some(wait);
    }
    // Of OpenAI's two limits, wait only for an exhausted one.
    ["requests", "tokens"]
        .into_iter()
        .filter(|kind| {
            text(&format!("x-ratelimit-remaining-{kind}"))
                .is_some_and(|left| left.parse() == Ok(0_u64))
        })
        .filter_map(|kind| go_duration(text(&format!("x-ratelimit-reset-{kind}"))?))
        .max()
}

fn seconds_or_date(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(value)
        .ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

fn millis(ms: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(ms / 1000.0).ok()
}

/// Parses a Go duration: `6m0s`, `1.5s`, `20ms`. A bare number is in seconds.
pub(crate) fn go_duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    duration_with_units(text)
}

/// Parses a non-negative Go duration with units, such as `1h30m` or `1.5s`.
pub(crate) fn duration_with_units(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit = tail
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let factor = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * factor;
        rest = tail;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn asked(headers: &[(&'static str, &str)]) -> Option<u128> {
        let now: Timestamp = "1994-11-06T08:49:07Z".parse().unwrap();
        let headers = headers
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_str(value).unwrap(),
                )
            })
            .collect();
        retry_after(&headers, now).map(|wait| wait.as_millis())
    }

    #[test]
    fn all_retry_headers_are_parsed() {
        assert_eq!(asked(&[]), None);
        assert_eq!(asked(&[("retry-after", "7")]), Some(7000));
        assert_eq!(asked(&[("retry-after", "0.5")]), Some(500));
        assert_eq!(
            asked(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]),
            Some(30_000)
        );
        assert_eq!(
            asked(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]),
            Some(0)
        );
        assert_eq!(asked(&[("retry-after", "soon")]), None);
        assert_eq!(asked(&[("retry-after", "-3")]), None);
        assert_eq!(
            asked(&[("retry-after-ms", "120"), ("retry-after", "1")]),
            Some(120)
        );
        assert_eq!(
            asked(&[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "1m2.5s"),
                ("x-ratelimit-remaining-tokens", "100"),
                ("x-ratelimit-reset-tokens", "6h"),
            ]),
            Some(62_500)
        );
    }

    #[test]
    fn go_durations_are_parsed() {
        let ms = |text| go_duration(text).map(|d| d.as_millis());
        assert_eq!(ms("6m0s"), Some(360_000));
        assert_eq!(ms("20ms"), Some(20));
        assert_eq!(ms("34s"), Some(34_000));
        assert_eq!(ms("2"), Some(2000));
        assert_eq!(ms("1d"), None);
        assert_eq!(ms("s"), None);
    }

    #[test]
    fn waits_grow_and_are_capped() {
        let policy = RetryPolicy {
            max_retries: 9,
            base: Duration::from_millis(100),
            cap: Duration::from_millis(500),
        };
        for _ in 0..200 {
            assert!(policy.wait(0, None) <= Duration::from_millis(100));
            assert!(policy.wait(1, None) <= Duration::from_millis(200));
            assert!(policy.wait(40, None) <= Duration::from_millis(500));
        }
        let asked = |seconds| policy.wait(0, Some(Duration::from_millis(seconds)));
        assert_eq!(asked(300), Duration::from_millis(300));
        assert_eq!(asked(9000), Duration::from_millis(500));
    }
}
