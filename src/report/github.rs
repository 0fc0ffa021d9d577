//! Evaluated texts as workflow commands of GitHub Actions, which become annotations in a pull request.
//!
//! The syntax and its escapes are those of `@actions/core`:
//! <https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts>.

use std::fmt::Write as _;
use std::path::Path;

use super::critique::headline;
use super::findings::{Finding, Level, findings};
use super::html::printable;
use super::place::relative;
use crate::types::{Criteria, RunRecord};

/// Renders an annotation for each finding, and a notice with the score for each text that meets the criteria. Paths
/// below `folder` are relative to it.
pub fn github(
    criteria: &Criteria,
    records: &[(Option<String>, RunRecord)],
    folder: &Path,
) -> String {
    let mut out = String::new();
    for (file, record) in records {
        let file = file.as_deref().map(|file| relative(file, folder));
        for finding in findings(criteria, record) {
            out.push_str(&annotation(file.as_deref(), &finding));
        }
        if record.success {
            let message = headline(record);
            out.push_str(&command(
                "notice",
                file.as_deref(),
                None,
                "reflect",
                &message,
            ));
        }
    }
    out
}

fn annotation(file: Option<&str>, finding: &Finding<'_>) -> String {
    let level = match finding.level {
        Level::NoVerdict | Level::Error => "error",
        Level::Warning => "warning",
    };
    command(level, file, finding.line, finding.name(), &finding.message)
}

fn command(
    level: &str,
    file: Option<&str>,
    line: Option<u64>,
    title: &str,
    message: &str,
) -> String {
    let mut out = format!("::{level} ");
    if let Some(file) = file {
        // Writing to a text does not fail.
        let _ = write!(out, "file={},", property(file));
    }
    if let Some(line) = line {
        let _ = write!(out, "line={line},");
    }
    let _ = writeln!(out, "title={}::{}", property(title), data(message));
    out
}

/// A message. Line breaks would end the command, and the rest could be another one.
fn data(text: &str) -> String {
    printable(text)
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property, in which colons and commas are escaped as well.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
