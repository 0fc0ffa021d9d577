//! Parsers for the evaluator-specific keys of a criterion, one file per evaluator.

pub(super) mod command;
mod compare;
mod contains;
mod length;
pub(super) mod llm;
mod regex;
mod schema;
mod script;

use std::ops::{Range, RangeInclusive};

pub(super) use self::schema::{SchemaOptions, assemble};

use schemars::Schema;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::file::CommonKeys;
use crate::text::plural;
use crate::{
    source::{self, Source, SourceError},
    types::{Evaluator, HumanDuration, HumanSize, Origin},
};

/// How the keys of one evaluator are parsed. A new evaluator needs a row in [`KINDS`].
pub(super) struct EvaluatorKind {
    /// The value of `evaluator = "..."`.
    pub name: &'static str,
    /// The names of its keys.
    pub keys: fn() -> &'static [&'static str],
    /// The JSON Schema of its keys.
    pub schema: fn() -> Schema,
    /// Parses its keys from what remains of a criterion's table after the common keys.
    pub read: fn(&Source, Spanned<DeTable<'_>>) -> Result<Evaluator, SourceError>,
}

/// All evaluators; the first is the default.
pub(super) const KINDS: &[EvaluatorKind] = &[
    llm::KIND,
    regex::KIND,
    length::KIND,
    contains::KIND,
    compare::KIND,
    schema::KIND,
    script::KIND,
    command::KIND,
];

/// Returns the evaluator that a criterion's table names.
pub(super) fn of_table(
    source: &Source,
    table: &DeTable<'_>,
) -> Result<&'static EvaluatorKind, SourceError> {
    let Some(value) = table.get("evaluator") else {
        return Ok(&KINDS[0]);
    };
    let DeValue::String(name) = value.get_ref() else {
        return Err(source.error(value.span(), "`evaluator`: expected a string"));
    };
    named(source, name, value.span())
}

/// Returns the evaluator called `name`. `place` is the span of the name.
pub(super) fn named(
    source: &Source,
    name: &str,
    place: Range<usize>,
) -> Result<&'static EvaluatorKind, SourceError> {
    if let Some(kind) = KINDS.iter().find(|k| k.name == name) {
        return Ok(kind);
    }
    let names = || KINDS.iter().map(|k| k.name);
    let near = source::similar(name, names());
    Err(source
        .error(place, &format!("unknown evaluator `{name}`"))
        .help_if(near.map(|n| format!("did you mean `{n}`?")))
        .help(format!("known evaluators: {}", source::list(names()))))
}

/// Checks that each key belongs to the evaluator. The error distinguishes keys of another evaluator
/// from unknown keys.
pub(super) fn check_keys(
    source: &Source,
    kind: &EvaluatorKind,
    config: &DeTable<'_>,
) -> Result<(), SourceError> {
    let own = (kind.keys)();
    // Report the first unknown key in file order, not in alphabetical order.
    let unknown = config
        .keys()
        .filter(|key| !own.contains(&key.get_ref().as_ref()))
        .min_by_key(|key| key.span().start);
    let Some(key) = unknown else {
        return Ok(());
    };
    let name = key.get_ref().as_ref();
    let others: Vec<&str> = KINDS
        .iter()
        .filter(|other| (other.keys)().contains(&name))
        .map(|other| other.name)
        .collect();
    if let Some(other) = others.first() {
        return Err(source
            .error(
                key.span(),
                &format!(
                    "the key `{name}` belongs to the evaluator{} {}, but this criterion's evaluator is `{}`",
                    plural(others.len(), "", "s"),
                    source::list(others.iter().copied()),
                    kind.name
                ),
            )
            .help(format!("add `evaluator = \"{other}\"` if that is meant")));
    }
    let known: Vec<&str> = source::fields::<CommonKeys>()
        .iter()
        .chain(own)
        .copied()
        .collect();
    Err(source::unknown_key(source, key.span(), name, &known))
}

/// Returns the span of a key's value, or of the table header if the key is missing.
fn place_of(table: &Spanned<DeTable<'_>>, key: &str) -> Range<usize> {
    source::value_span(table.get_ref(), &[key]).unwrap_or_else(|| table.span())
}

/// Returns the file and line where a criterion begins. `table` is the span of its header.
pub(super) fn origin(source: &Source, table: &Range<usize>) -> Origin {
    match source.path() {
        Some(path) => Origin {
            file: Some(path.to_owned()),
            line: source.position(table.start).0,
            script: None,
        },
        None => Origin::default(),
    }
}

/// Checks the limits of code, because criteria files are untrusted: `timeout` against its maximum
/// and `memory` against its range.
fn check_limits(
    source: &Source,
    at: &dyn Fn(&str) -> Range<usize>,
    (time, longest): (HumanDuration, HumanDuration),
    (memory, range): (HumanSize, RangeInclusive<HumanSize>),
) -> Result<(), SourceError> {
    if time > longest {
        return Err(source.error(
            at("timeout"),
            &format!("`timeout` must be at most {longest}, not {time}"),
        ));
    }
    if !range.contains(&memory) {
        return Err(source.error(
            at("memory"),
            &format!(
                "`memory` must be from {} to {}, not {memory}",
                range.start(),
                range.end()
            ),
        ));
    }
    Ok(())
}
