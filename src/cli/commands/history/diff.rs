//! `reflect history diff`: shows how two drafts differ.

use std::io::IsTerminal as _;

use crate::cli::args::{ColorWhen, GlobalArgs};
use crate::cli::diff::{Layout, render};
use crate::cli::error::CliError;
use crate::cli::printer;
use crate::report;
use crate::store::{Store, short_id};
use crate::types::{RunRecord, Version};

/// Formats the difference between two drafts. Without `other`, compares the first draft of the run with
/// `one`.
pub(super) fn diff(
    store: &Store,
    (one, other): (&str, Option<&str>),
    words: bool,
    context: usize,
    global: &GlobalArgs,
) -> Result<String, CliError> {
    let one = Chosen::read(store, one)?;
    let other = other.map(|it| Chosen::read(store, it)).transpose()?;
    let (old, new) = match &other {
        Some(other) => (one.draft()?, other.draft()?),
        None => (one.first()?, one.draft()?),
    };
    let layout = if words { Layout::Words } else { Layout::Lines };
    let terminal = std::io::stdout().is_terminal() && console::colors_enabled();
    let colours = terminal || global.color == ColorWhen::Always;
    let found = report::diff(&old.output, &new.output, context);
    let names = (one.name(old), other.as_ref().unwrap_or(&one).name(new));
    if found.hunks.is_empty() && !global.quiet {
        printer::say(&format!("{} and {} are the same", names.0, names.1));
    }
    Ok(render(&found, (&names.0, &names.1), layout, colours))
}

/// A run and one of its drafts, as named on the command line.
struct Chosen {
    spec: String,
    record: RunRecord,
    /// `None` for the answer of the run.
    number: Option<u32>,
}

impl Chosen {
    fn read(store: &Store, spec: &str) -> Result<Self, CliError> {
        let (run, number) = match spec.split_once(':') {
            None => (spec, None),
            Some((run, number)) => {
                let number = number.parse().map_err(|_| {
                    CliError::usage(format!("`{spec}` is not a draft"))
                        .hint("write `RUN:N`, for example `last:2`")
                })?;
                (run, Some(number))
            }
        };
        let events = store.events(store.find(run)?)?;
        Ok(Self {
            spec: spec.to_owned(),
            record: RunRecord::from_events(&events),
            number,
        })
    }

    /// Returns the draft with this number. Without a number, returns the answer, or the best draft if there
    /// is none.
    fn draft(&self) -> Result<&Version, CliError> {
        let found = match self.number {
            Some(number) => self.record.version(number),
            None => self.record.selected().or_else(|| self.record.best()),
        };
        found.ok_or_else(|| self.missing_draft())
    }

    fn first(&self) -> Result<&Version, CliError> {
        self.record
            .versions
            .first()
            .ok_or_else(|| self.missing_draft())
    }

    fn missing_draft(&self) -> CliError {
        let numbers: Vec<String> = self
            .record
            .versions
            .iter()
            .map(|version| version.iteration.to_string())
            .collect();
        let error = match self.number {
            Some(number) => {
                CliError::usage(format!("`{}`: the run has no draft {number}", self.spec))
            }
            None => CliError::usage(format!("`{}`: the run selected no draft", self.spec)),
        };
        if numbers.is_empty() {
            return error;
        }
        error.hint(format!(
            "choose one of its drafts with `RUN:N`: {}",
            numbers.join(", ")
        ))
    }

    fn name(&self, version: &Version) -> String {
        let run = self.record.run_id.map(short_id).unwrap_or_default();
        format!("{run} draft {}", version.iteration)
    }
}
