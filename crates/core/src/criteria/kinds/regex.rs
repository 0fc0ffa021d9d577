use std::ops::Range;

use regex::Regex;
use toml::{Spanned, de::DeTable};

use super::{EvaluatorKind, place_of};
use crate::source::{self, Source, SourceError};
use crate::types::{Evaluator, Expect, Piece, RegexConfig, WHOLE_MATCH};

pub(super) const KIND: EvaluatorKind = EvaluatorKind {
    name: "regex",
    keys: source::fields::<RegexConfig>,
    schema: source::schema_of::<RegexConfig>,
    read,
};

fn read(source: &Source, table: Spanned<DeTable<'_>>) -> Result<Evaluator, SourceError> {
    let at = ["pattern", "min_count", "max_count", "message"].map(|key| place_of(&table, key));
    let [pattern, min_count, max_count, message] = at;
    let config: RegexConfig = source::table_into(source, table)?;
    check_counts(source, &config, min_count, max_count)?;
    if config.pattern.is_empty() {
        return Err(source.error(pattern, "`pattern` is empty, so it matches every draft"));
    }
    match config.compile() {
        Ok(regex) => check_message(source, message, &config, &regex)?,
        Err(error) => return Err(invalid_pattern(source, pattern, "pattern", &error)),
    }
    Ok(Evaluator::Regex(config))
}

fn check_counts(
    source: &Source,
    config: &RegexConfig,
    min_at: Range<usize>,
    max_at: Range<usize>,
) -> Result<(), SourceError> {
    match (config.expect, config.min_count, config.max_count) {
        (_, None, None) => Ok(()),
        (Expect::Absent, min, _) => {
            let (key, at) = match min {
                Some(_) => ("min_count", min_at),
                None => ("max_count", max_at),
            };
            Err(source
                .error(
                    at,
                    &format!("`{key}` contradicts `expect = \"absent\"`, which allows no match"),
                )
                .help("remove one of the two"))
        }
        (Expect::Present, _, Some(0)) => Err(source
            .error(max_at, "`max_count` must be at least 1")
            .help("write `expect = \"absent\"` if no match is allowed")),
        (Expect::Present, Some(0), None) => Err(source.error(
            min_at,
            "`min_count` is 0 without a `max_count`: any draft meets that",
        )),
        (Expect::Present, Some(min), Some(max)) if min > max => Err(source
            .error(
                min_at,
                &format!("`min_count` ({min}) is above `max_count` ({max})"),
            )
            .also(max_at, "`max_count` is here")),
        (Expect::Present, ..) => Ok(()),
    }
}

/// Checks that each placeholder in the message is a value that a match provides.
fn check_message(
    source: &Source,
    at: Range<usize>,
    config: &RegexConfig,
    regex: &Regex,
) -> Result<(), SourceError> {
    let groups = || {
        let names = regex.capture_names().enumerate().skip(1);
        names.map(|(number, name)| name.map_or(number.to_string(), str::to_owned))
    };
    for piece in config.message().unwrap_or_default() {
        let Piece::Value(value) = piece else {
            continue;
        };
        let is_group = value
            .parse::<usize>()
            .map_or(groups().any(|group| group == value), |number| {
                number < regex.captures_len()
            });
        if value != WHOLE_MATCH && !is_group {
            let known: Vec<String> = [WHOLE_MATCH.to_owned()]
                .into_iter()
                .chain(groups())
                .collect();
            let near = source::similar(value, known.iter().map(String::as_str));
            let shown: Vec<String> = known.iter().map(|name| format!("{{{name}}}")).collect();
            return Err(source
                .error(at, &format!("`message`: a match has no part `{{{value}}}`"))
                .help_if(near.map(|name| format!("did you mean `{{{name}}}`?")))
                .help(format!(
                    "known parts: {}; write `{{{{{value}}}}}` for the text `{{{value}}}`",
                    source::list(shown.iter().map(String::as_str))
                )));
        }
        if config.expect == Expect::Present && config.max_count.is_none() {
            return Err(source
                .error(
                    at,
                    &format!(
                        "`message`: `{{{value}}}` refers to a match, but this message is for missing matches"
                    ),
                )
                .help("set `max_count`, or `expect = \"absent\"`, to show a message for matches"));
        }
    }
    Ok(())
}

/// Returns the error for an invalid regular expression in `key`.
pub(super) fn invalid_pattern(
    source: &Source,
    at: Range<usize>,
    key: &str,
    error: &regex::Error,
) -> SourceError {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    let short = last.strip_prefix("error: ").unwrap_or(last);
    let error = source.error(
        at,
        &format!("`{key}` is not a valid regular expression: {short}"),
    );
    let error = if text.contains('\n') {
        error.help(text.as_str())
    } else {
        error
    };
    if short.contains("look-around") || short.contains("backreference") {
        error.help("put what must not match into a separate criterion with `expect = \"absent\"`")
    } else {
        error
    }
}
