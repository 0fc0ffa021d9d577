use serde::Serialize;

use crate::types::RunRecord;

/// The result as one JSON object (design §6), indented, with a final newline.
pub fn json(record: &RunRecord) -> String {
    pretty(&record.result())
}

/// JSON for programs and people: indented, with a final newline.
pub(super) fn pretty(value: &(impl Serialize + ?Sized)) -> String {
    let mut text = serde_json::to_string_pretty(value)
        .unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
    text.push('\n');
    text
}
