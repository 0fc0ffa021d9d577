use serde::Serialize;

use crate::types::RunRecord;

/// Formats the result of a run as one JSON object, indented, with a final newline.
pub fn json(record: &RunRecord) -> String {
    pretty(&record.result())
}

/// Formats a value as indented JSON with a final newline.
pub(super) fn pretty(value: &(impl Serialize + ?Sized)) -> String {
    let mut text = serde_json::to_string_pretty(value)
        .unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
    text.push('\n');
    text
}
