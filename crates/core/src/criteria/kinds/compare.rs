use std::path::Path;

use toml::{Spanned, de::DeTable};

use super::{EvaluatorKind, place_of};
use crate::source::{self, Source, SourceError};
use crate::types::{CompareConfig, CompareKeys, Evaluator};

pub(super) const KIND: EvaluatorKind = EvaluatorKind {
    name: "compare",
    keys: source::fields::<CompareKeys>,
    schema: source::schema_of::<CompareKeys>,
    read,
};

fn read(source: &Source, table: Spanned<DeTable<'_>>) -> Result<Evaluator, SourceError> {
    let places = table.clone();
    let mut keys: CompareKeys = source::table_into(source, table)?;
    let mut reference = "reference";
    if let Some(path) = keys.reference_file.take() {
        let at = place_of(&places, "reference_file");
        if keys.reference.is_some() {
            return Err(source
                .error(at, "both `reference` and `reference_file` are set")
                .also(place_of(&places, "reference"), "`reference` is here")
                .help("remove one of the two"));
        }
        let file = source::read_relative(source, at, Path::new(&path))?;
        keys.reference = Some(file.text().to_owned());
        // Lets the checks below report errors in the file's text at `reference_file`.
        reference = "reference_file";
    }
    CompareConfig::try_from(keys)
        .map(Evaluator::Compare)
        .map_err(|error| {
            let key = match error.key {
                "reference" => reference,
                key => key,
            };
            source
                .error(place_of(&places, key), &error.message)
                .help_if(error.hint)
        })
}
