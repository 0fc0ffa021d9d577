//! `--set KEY=VALUE`: a setting of the configuration file on the command line.

use indexmap::IndexMap;

use super::layer::keys;
use crate::source::{self, SourceError};

/// The name of this source in errors.
pub(super) const NAME: &str = "--set";

/// Converts assignments to the text of a configuration file, one line per key. The last value of a key wins.
///
/// # Errors
/// If one of them is not `KEY=VALUE`.
pub(super) fn file(assignments: &[String]) -> Result<String, SourceError> {
    let mut values = IndexMap::new();
    for text in assignments {
        let Some((key, value)) = text.split_once('=').filter(|(key, _)| is_key(key.trim())) else {
            return Err(
                SourceError::for_file(NAME, &format!("`{text}` is not `KEY=VALUE`"))
                    .help("for example: `--set loop.tie_margin=0.05`"),
            );
        };
        values.insert(full_key(key.trim()), literal(value.trim()));
    }
    let lines = values
        .into_iter()
        .map(|(key, value)| format!("{key} = {value}\n"));
    Ok(lines.collect())
}

/// Whether this is a plain or dotted key. Rejecting anything else keeps other TOML out of the file.
fn is_key(text: &str) -> bool {
    text.split('.').all(|part| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    })
}

/// Returns the key with its table, which is optional if only one table has such a key.
fn full_key(key: &str) -> String {
    let key = key.replace('-', "_");
    let all = keys();
    if key.contains('.') || all.contains(&key) {
        return key;
    }
    let mut found = all
        .iter()
        .filter(|full| full.rsplit('.').next() == Some(key.as_str()));
    match (found.next(), found.next()) {
        (Some(full), None) => full.clone(),
        _ => key,
    }
}

/// Returns the value as TOML: unchanged if it is valid TOML, otherwise as a string.
fn literal(value: &str) -> String {
    let is_value = source::table(&source::Source::new(NAME, &format!("value = {value}")))
        .is_ok_and(|table| table.get_ref().len() == 1);
    if is_value && !value.contains('\n') {
        value.to_owned()
    } else {
        // A JSON string is a TOML string on one line.
        serde_json::Value::from(value).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_assignments_to_toml() {
        let all = [
            "tie-margin=0.2",
            "timeouts.idle=5m",
            "model = a:b",
            "tie_margin=0.3",
        ];
        let all = all.map(str::to_owned);
        assert_eq!(
            file(&all).unwrap(),
            "loop.tie_margin = 0.3\ntimeouts.idle = \"5m\"\nmodel = \"a:b\"\n"
        );
        for bad in ["tie_margin", "=1", "a b=1", "[x]\ny=1"] {
            assert!(file(&[bad.to_owned()]).is_err(), "{bad}");
        }
        let injected = file(&["model=\"a\"\noffline = false".to_owned()]).unwrap();
        assert_eq!(injected.lines().count(), 1, "{injected}");
    }
}
