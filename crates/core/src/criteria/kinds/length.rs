use toml::{Spanned, de::DeTable};

use super::{EvaluatorKind, place_of};
use crate::source::{self, Source, SourceError};
use crate::types::{Evaluator, LengthConfig};

pub(super) const KIND: EvaluatorKind = EvaluatorKind {
    name: "length",
    keys: source::fields::<LengthConfig>,
    schema: source::schema_of::<LengthConfig>,
    read,
};

fn read(source: &Source, table: Spanned<DeTable<'_>>) -> Result<Evaluator, SourceError> {
    let whole = table.span();
    let (min_span, max_span) = (place_of(&table, "min"), place_of(&table, "max"));
    let config: LengthConfig = source::table_into(source, table)?;
    match (config.min, config.max) {
        (None, None) => Err(source
            .error(whole, "a length criterion needs `min`, `max` or both")
            .help(format!("for example: max = 300 ({})", config.unit.as_str()))),
        (_, Some(0)) => Err(source.error(
            max_span,
            "`max` must be at least 1, because drafts are never empty",
        )),
        (Some(min), Some(max)) if min > max => Err(source
            .error(min_span, &format!("`min` ({min}) is above `max` ({max})"))
            .also(max_span, "`max` is here")),
        _ => Ok(Evaluator::Length(config)),
    }
}
