use toml::{Spanned, de::DeTable};

use super::{Kind, place_of};
use crate::source::{self, Source, SourceError};
use crate::types::{Evaluator, RegexConfig};

pub(super) const KIND: Kind = Kind {
    name: "regex",
    keys: source::fields::<RegexConfig>,
    schema: source::schema_of::<RegexConfig>,
    read,
};

fn read(source: &Source, table: Spanned<DeTable<'_>>) -> Result<Evaluator, SourceError> {
    let span = place_of(&table, "pattern");
    let config: RegexConfig = source::table_into(source, table)?;
    if config.pattern.is_empty() {
        return Err(source.error(span, "`pattern` is empty, and so matches every draft"));
    }
    if let Err(error) = config.compile() {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        let short = last.strip_prefix("error: ").unwrap_or(last);
        let error = source.error(
            span,
            &format!("`pattern` is no regular expression: {short}"),
        );
        let error = if text.contains('\n') {
            error.help(text.as_str())
        } else {
            error
        };
        return Err(
            if short.contains("look-around") || short.contains("backreference") {
                error.help("say what must not be there in a criterion of its own, with `expect = \"absent\"`")
            } else {
                error
            },
        );
    }
    Ok(Evaluator::Regex(config))
}
