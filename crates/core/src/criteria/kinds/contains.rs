use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{EvaluatorKind, place_of};
use crate::source::{self, Source, SourceError};
use crate::types::{ContainsConfig, Evaluator, MAX_TEXTS};

pub(super) const KIND: EvaluatorKind = EvaluatorKind {
    name: "contains",
    keys: source::fields::<ContainsConfig>,
    schema: source::schema_of::<ContainsConfig>,
    read,
};

fn read(source: &Source, table: Spanned<DeTable<'_>>) -> Result<Evaluator, SourceError> {
    let whole = table.span();
    let lists = ["all", "any", "none"].map(|key| (key, places(&table, key)));
    let config: ContainsConfig = source::table_into(source, table)?;
    let texts = [&config.all, &config.any, &config.none];
    if lists.iter().all(|(_, places)| places.is_none()) {
        return Err(source
            .error(whole, "a `contains` criterion needs `all`, `any` or `none`")
            .help("for example: all = [\"Installation\", \"Licence\"]"));
    }
    for ((key, places), texts) in lists.iter().zip(texts) {
        if let Some((list, items)) = places {
            check_list(source, &config, key, texts, list, items)?;
        }
    }
    if let [(_, Some((_, wanted))), _, (_, Some((_, banned)))] = &lists {
        check_contradictions(source, &config, wanted, banned)?;
    }
    Ok(Evaluator::Contains(config))
}

/// Returns the span of a list and of each of its items, or `None` if the key is missing.
fn places(table: &Spanned<DeTable<'_>>, key: &str) -> Option<(Range<usize>, Vec<Range<usize>>)> {
    let DeValue::Array(items) = table.get_ref().get(key)?.get_ref() else {
        return Some((place_of(table, key), Vec::new()));
    };
    Some((
        place_of(table, key),
        items.iter().map(Spanned::span).collect(),
    ))
}

fn check_list(
    source: &Source,
    config: &ContainsConfig,
    key: &str,
    texts: &[String],
    list: &Range<usize>,
    items: &[Range<usize>],
) -> Result<(), SourceError> {
    if texts.is_empty() {
        return Err(source
            .error(list.clone(), &format!("`{key}` is empty"))
            .help("remove it if it should not count"));
    }
    if texts.len() > MAX_TEXTS {
        let count = texts.len();
        return Err(source.error(
            list.clone(),
            &format!("`{key}` has {count} texts, at most {MAX_TEXTS} are allowed"),
        ));
    }
    for (number, (text, at)) in texts.iter().zip(items).enumerate() {
        if text.is_empty() {
            return Err(source.error(
                at.clone(),
                &format!("`{key}`: this text is empty, so every draft contains it"),
            ));
        }
        if let Some(first) = texts[..number].iter().position(|other| other == text) {
            return Err(source
                .error(at.clone(), &format!("`{key}`: `{text}` is listed twice"))
                .also(items[first].clone(), "first listed here"));
        }
        if config.finder(text).is_err() {
            return Err(source.error(at.clone(), &format!("`{key}`: this text is too long")));
        }
    }
    Ok(())
}

/// Checks that no required text contains a forbidden one.
fn check_contradictions(
    source: &Source,
    config: &ContainsConfig,
    wanted: &[Range<usize>],
    banned: &[Range<usize>],
) -> Result<(), SourceError> {
    for (text, at) in config.none.iter().zip(banned) {
        let Ok(finder) = config.finder(text) else {
            continue;
        };
        let clash = config.all.iter().position(|wanted| finder.is_match(wanted));
        if let Some((whole, place)) = clash.and_then(|i| Some((&config.all[i], wanted.get(i)?))) {
            return Err(source
                .error(
                    at.clone(),
                    &format!("`none` forbids `{text}`, but `{whole}` in `all` contains it"),
                )
                .also(place.clone(), "required here"));
        }
    }
    Ok(())
}
