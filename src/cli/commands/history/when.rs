//! Parses points in time in flags.

use jiff::civil::Date;
use jiff::{Span, Timestamp, Zoned};

use crate::cli::error::CliError;

/// Parses an age (`30d`, `12h`), a date, which means its start in the local time zone (`2026-11-21`), or an
/// RFC 3339 timestamp.
pub(in crate::cli::commands) fn parse(flag: &str, text: &str) -> Result<Timestamp, CliError> {
    at(&Zoned::now(), text.trim()).ok_or_else(|| {
        CliError::usage(format!("{flag}: `{text}` is not a valid age or date"))
            .hint("use an age such as `12h`, `30d` or `2w`, or a date such as `2026-11-21`")
    })
}

fn at(now: &Zoned, text: &str) -> Option<Timestamp> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    if let Ok(day) = text.parse::<Date>() {
        let begin = day.to_zoned(now.time_zone().clone()).ok()?;
        return Some(begin.timestamp());
    }
    let age: Span = text.parse().ok()?;
    // A negative age would lie in the future.
    let then = now.checked_sub(age).ok()?;
    (then < *now).then(|| then.timestamp())
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn parses_ages_dates_and_timestamps() {
        let now = "2026-11-21T12:00:00Z".parse::<Timestamp>().unwrap();
        let now = now.to_zoned(TimeZone::UTC);
        for (text, then) in [
            ("30d", "2026-10-22T12:00:00Z"),
            ("2w", "2026-11-07T12:00:00Z"),
            ("1d 12h", "2026-11-20T00:00:00Z"),
            ("90m", "2026-11-21T10:30:00Z"),
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("2026-11-01T05:00:00Z", "2026-11-01T05:00:00Z"),
        ] {
            assert_eq!(at(&now, text), Some(then.parse().unwrap()), "{text}");
        }
        for wrong in ["", "0d", "-3d", "soon", "30", "2026-13-01", "99999999y"] {
            assert_eq!(at(&now, wrong), None, "{wrong}");
        }
    }
}
