//! How each evaluator's own keys are read from a criteria file, one file each.

mod length;
mod llm;
mod regex;
mod schema;

use std::ops::Range;

pub(super) use self::schema::{Manner, REACH, assemble};

use schemars::Schema;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::file::Common;
use crate::{
    source::{self, Source, SourceError},
    types::Evaluator,
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
pub(super) const KINDS: &[Kind] = &[llm::KIND, regex::KIND, length::KIND, schema::KIND];

/// Evaluators of the design (§1) that this version does not have.
const PLANNED: &[&str] = &["script", "command", "compare", "contains"];

/// The evaluator that a criterion's table asks for.
pub(super) fn of_table(source: &Source, table: &DeTable<'_>) -> Result<&'static Kind, SourceError> {
    let Some(value) = table.get("evaluator") else {
        return Ok(&KINDS[0]);
    };
    let DeValue::String(name) = value.get_ref() else {
        return Err(source.error(value.span(), "`evaluator`: a text in quotes is wanted here"));
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
    let known = format!("known evaluators: {}", source::list(names()));
    if PLANNED.contains(&name) {
        return Err(source
            .error(
                place,
                &format!("this version has no evaluator `{name}` yet"),
            )
            .help(known));
    }
    let near = source::similar(name, names());
    Err(source
        .error(place, &format!("unknown evaluator `{name}`"))
        .help_if(near.map(|n| format!("did you mean `{n}`?")))
        .help(known))
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
    if let Some(other) = KINDS.iter().find(|k| (k.keys)().contains(&name)) {
        return Err(source
            .error(
                key.span(),
                &format!(
                    "the key `{name}` belongs to the evaluator `{}`, and this criterion's evaluator is `{}`",
                    other.name, kind.name
                ),
            )
            .help(format!("add `evaluator = \"{}\"` if that is meant", other.name)));
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
