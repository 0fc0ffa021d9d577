//! The checks of `reflect doctor`, and its report.

pub(super) mod models;
pub(super) mod places;

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use console::{Alignment, Style, pad_str};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::error::CliError;
use super::printer;
use crate::types::{ExitCode, SCHEMA_VERSION};

/// The area that a check belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Area {
    /// A fixed name, for programs.
    pub(super) name: &'static str,
    /// The instance within the area, if there can be several.
    pub(super) subject: Option<String>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// No problem found.
    Ok,
    /// For information.
    Note,
    /// A run works, but not as well as it could.
    Warning,
    /// A run would fail with this exit code.
    Failed(ExitCode),
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Failed(_) => "failed",
        }
    }

    /// A sign that works without colours.
    fn sign(self) -> (&'static str, Style) {
        let style = Style::new();
        match self {
            Self::Ok => ("✓", style.green()),
            Self::Note => ("·", style),
            Self::Warning => ("!", style.yellow()),
            Self::Failed(_) => ("✗", style.red()),
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Check {
    name: &'static str,
    level: Level,
    finding: String,
    advice: Option<String>,
    measured: Map<String, Value>,
}

impl Check {
    pub(super) fn new(name: &'static str, level: Level, finding: impl Into<String>) -> Self {
        Self {
            name,
            level,
            finding: finding.into(),
            advice: None,
            measured: Map::new(),
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub(super) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Adds a figure, if it is known.
    #[must_use]
    pub(super) fn figure(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.measured.insert(name.to_owned(), value.into());
        }
        self
    }
}

/// The results of all checks.
#[derive(Debug, Default)]
pub(super) struct Report {
    checks: Vec<(Area, Check)>,
}

/// A check in the output of `doctor --json`.
#[derive(Serialize)]
struct Printed<'a> {
    area: &'static str,
    subject: Option<&'a str>,
    check: &'static str,
    level: &'static str,
    finding: &'a str,
    advice: Option<&'a str>,
    measured: &'a Map<String, Value>,
}

impl Report {
    /// Adds a check. The checks of an area must be added one after the other.
    pub(super) fn add(&mut self, area: &Area, check: Check) {
        self.checks.push((area.clone(), check));
    }

    /// Adds an error that a run would fail with.
    pub(super) fn failed(&mut self, area: Area, name: &'static str, error: &CliError) {
        let mut lines = error.message.lines();
        let mut finding = lines.next().unwrap_or_default().to_owned();
        // A rendered source position spans several lines; the `-->` line and the message suffice.
        if let Some(place) = lines.find_map(|line| line.trim().strip_prefix("--> ")) {
            finding = format!("{place}: {finding}");
        }
        let check = Check::new(name, Level::Failed(error.code), finding);
        let check = match &error.hint {
            Some(hint) => check.advice(hint),
            None => check,
        };
        self.checks.push((area, check));
    }

    /// Returns the exit code of the worst failure. Usage errors come first because the configuration must be
    /// fixed first.
    pub(super) fn exit_code(&self) -> ExitCode {
        let rank = |code: ExitCode| match code {
            ExitCode::Success => 0,
            ExitCode::Usage => 3,
            ExitCode::Provider => 2,
            _ => 1,
        };
        self.checks
            .iter()
            .filter_map(|(_, check)| match check.level {
                Level::Failed(code) => Some(code),
                _ => None,
            })
            .max_by_key(|code| rank(*code))
            .unwrap_or(ExitCode::Success)
    }

    fn count(&self, level: &str) -> usize {
        let of_level = self.checks.iter().filter(|(_, c)| c.level.name() == level);
        of_level.count()
    }

    /// Renders the report as text.
    pub(super) fn text(&self) -> String {
        let coloured = std::io::stdout().is_terminal() && console::colors_enabled();
        let width = self.checks.iter().map(|(_, c)| c.name.chars().count());
        let width = width.max().unwrap_or_default();
        let mut out = String::new();
        let mut last = None;
        for (area, check) in &self.checks {
            if last != Some(area) {
                let between = if last.is_some() { "\n" } else { "" };
                let subject = area.subject.as_deref().unwrap_or_default();
                let title = format!("{} {subject}", area.name);
                let title = printer::without_controls(title.trim_end()).into_owned();
                let _ = writeln!(out, "{between}{title}");
                last = Some(area);
            }
            let (sign, style) = check.level.sign();
            let sign = style.force_styling(coloured).apply_to(sign);
            let name = pad_str(check.name, width, Alignment::Left, None);
            let finding = printer::without_controls(&check.finding);
            let _ = writeln!(out, "  {sign} {name}  {finding}");
            if let Some(advice) = &check.advice {
                let advice = printer::without_controls(advice);
                let _ = writeln!(out, "    {:width$}  → {advice}", "");
            }
        }
        let number = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            number => format!("{number} {what}s"),
        };
        let warnings = number(self.count("warning"), "warning");
        let _ = match self.count("failed") {
            0 => writeln!(out, "\nA run would work; {warnings}."),
            failed => writeln!(
                out,
                "\nA run would fail: {}; {warnings}.",
                number(failed, "fault")
            ),
        };
        out
    }

    /// Renders the report as JSON.
    pub(super) fn json(&self) -> Result<String, CliError> {
        let checks: Vec<Printed<'_>> = self
            .checks
            .iter()
            .map(|(area, check)| Printed {
                area: area.name,
                subject: area.subject.as_deref(),
                check: check.name,
                level: check.level.name(),
                finding: &check.finding,
                advice: check.advice.as_deref(),
                measured: &check.measured,
            })
            .collect();
        let code = self.exit_code();
        printer::json(&json!({
            "schema_version": SCHEMA_VERSION,
            "well": code == ExitCode::Success,
            "exit_code": code,
            "checks": checks,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Area = Area {
        name: "storage",
        subject: None,
    };

    #[test]
    fn the_worst_decides_the_exit_code() {
        let mut report = Report::default();
        assert_eq!(report.exit_code(), ExitCode::Success);
        report.add(&HERE, Check::new("a", Level::Warning, "so"));
        assert_eq!(report.exit_code(), ExitCode::Success);
        for code in [ExitCode::Failure, ExitCode::Provider, ExitCode::Usage] {
            report.add(&HERE, Check::new("b", Level::Failed(code), "so"));
            assert_eq!(report.exit_code(), code);
        }
    }

    #[test]
    fn control_characters_in_findings_are_removed() {
        let mut report = Report::default();
        let check = Check::new("model", Level::Note, "a\u{1b}[2Jb").advice("c\u{7}d");
        report.add(&HERE, check);
        assert!(!report.text().contains(['\u{1b}', '\u{7}']));
    }

    #[test]
    fn an_error_in_a_file_shows_its_position() {
        let mut report = Report::default();
        let error = CliError::usage("there is no key `x`\n --> config.toml:2:1\n  |\n2 | x = 1");
        report.failed(HERE, "settings", &error.hint("take it away"));
        let text = report.text();
        assert!(
            text.contains("✗ settings  config.toml:2:1: there is no key `x`"),
            "{text}"
        );
        assert!(text.contains("→ take it away"), "{text}");
        assert!(
            text.contains("A run would fail: 1 fault; 0 warnings."),
            "{text}"
        );
    }
}
