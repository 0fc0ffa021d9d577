//! Masks values that may be secrets in errors about configuration files.

use super::{file::Tables, layer::keys, provider::Provider, settings::Settings};
use crate::source::{self, Source, SourceError, redact};

/// Masks the values in the lines that an error shows, except those of known settings without secrets.
/// Misspelt keys are unknown, so their values are masked too.
pub(super) fn conceal(source: &Source, error: SourceError) -> SourceError {
    let mut table = String::new();
    let mut masked = String::with_capacity(source.text().len());
    for line in source.text().split_inclusive('\n') {
        if let Some(name) = header(line) {
            name.clone_into(&mut table);
            masked.push_str(line);
        } else {
            masked.push_str(&mask(&table, line));
        }
    }
    error.masked_as(&masked)
}

/// The name of the table that begins on this line.
fn header(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix('[')?.trim_start_matches('[');
    let name = name.get(..name.find(']')?)?.trim();
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        .then_some(name)
}

/// Masks the value on a line of a table if it may be a secret.
fn mask(table: &str, line: &str) -> String {
    let Some((key, value)) = line.split_once('=') else {
        // Part of a multi-line value, or invalid TOML.
        return stars(line);
    };
    let name = key.rsplit('.').next().unwrap_or(key).trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-. \"'".contains(c);
    if !key.chars().all(is_name) {
        return stars(line);
    }
    let value = match name {
        "base_url" => redact(value).into_owned(),
        _ if is_public(table, key, name) => redact(value).into_owned(),
        _ => stars(value),
    };
    format!("{key}={value}")
}

/// Whether the value of a key in a table is safe to show.
fn is_public(table: &str, key: &str, name: &str) -> bool {
    let path = format!("{table}.{key}");
    if ["headers", "extra_body"].iter().any(|it| path.contains(it)) {
        return false;
    }
    let others = [
        source::fields::<Settings>(),
        &["kind", "api_key_env", "input", "output", "cached_input"],
        &["exec", "models", "endpoints"],
    ];
    let is_known = others.iter().any(|keys| keys.contains(&name))
        || keys()
            .iter()
            .any(|key| key.rsplit('.').next() == Some(name));
    let is_table = source::fields::<Tables>().contains(&name);
    debug_assert!(source::fields::<Provider>().contains(&"api_key_env"));
    (is_known && !is_table) || table.trim() == "aliases"
}

/// Masks everything but whitespace and keeps the length in bytes, so that positions stay valid.
fn stars(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let shown = if c.is_whitespace() { c } else { '*' };
            let times = if c.is_whitespace() { 1 } else { c.len_utf8() };
            std::iter::repeat_n(shown, times)
        })
        .collect()
}
