//! How each evaluator's own keys are read from a criteria file, one file each.

pub(super) mod command;
mod compare;
mod contains;
mod length;
pub(super) mod llm;
mod regex;
mod schema;
mod script;

use std::ops::{Range, RangeInclusive};

pub(super) use self::schema::{Manner, assemble};

use schemars::Schema;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::file::Common;
use crate::text::plural;
use crate::{
    source::{self, Source, SourceError},
    types::{Evaluator, HumanDuration, HumanSize, Origin},
};

/// How an evaluator's own keys are read. A new evaluator is a row in [`KINDS`].
pub(super) struct Kind {
    /// As written in `evaluator = "..."`.
    pub name: &'static str,
    /// Its own keys.
    pub keys: fn() -> &'static [&'static str],
    /// The JSON Schema of its own keys.
    pub schema: fn() -> Schema,
    /// Reads its own keys from what is left of a criterion's table.
    pub read: fn(&Source, Spanned<DeTable<'_>>) -> Result<Evaluator, SourceError>,
}

/// All evaluators; the first is the default.
pub(super) const KINDS: &[Kind] = &[
    llm::KIND,
    regex::KIND,
    length::KIND,
    contains::KIND,
    compare::KIND,
    schema::KIND,
    script::KIND,
    command::KIND,
];

/// The evaluator that a criterion's table asks for.
pub(super) fn of_table(source: &Source, table: &DeTable<'_>) -> Result<&'static Kind, SourceError> {
    let Some(value) = table.get("evaluator") else {
        return Ok(&KINDS[0]);
    };
    let DeValue::String(name) = value.get_ref() else {
        return Err(source.error(value.span(), "`evaluator`: expected a text in quotes"));
    };
    named(source, name, value.span())
}

/// The evaluator of this name; the place is where it is asked for.
pub(super) fn named(
    source: &Source,
    name: &str,
    place: Range<usize>,
) -> Result<&'static Kind, SourceError> {
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

/// Each key must be one of the evaluator's own. One that is another evaluator's is told apart from one
/// that nobody knows.
pub(super) fn check_keys(
    source: &Source,
    kind: &Kind,
    config: &DeTable<'_>,
) -> Result<(), SourceError> {
    let own = (kind.keys)();
    // The first in the file, not in the alphabet.
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
                    "the key `{name}` belongs to the evaluator{} {}, and this criterion's evaluator is `{}`",
                    plural(others.len(), "", "s"),
                    source::list(others.iter().copied()),
                    kind.name
                ),
            )
            .help(format!("add `evaluator = \"{other}\"` if that is meant")));
    }
    let known: Vec<&str> = source::fields::<Common>()
        .iter()
        .chain(own)
        .copied()
        .collect();
    Err(source::unknown_key(source, key.span(), name, &known))
}

/// The place of a key's value, or of the table's head if it is not there.
fn place_of(table: &Spanned<DeTable<'_>>, key: &str) -> Range<usize> {
    source::value_span(table.get_ref(), &[key]).unwrap_or_else(|| table.span())
}

/// Where a criterion begins; `table` is the place of its head.
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

/// The limits of code are bounded, for criteria files are not ours: a time with its longest, and an amount
/// of memory with its range.
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
