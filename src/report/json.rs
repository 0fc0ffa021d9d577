use crate::types::RunRecord;

/// The result as one JSON object (design §6), indented, with a final newline.
pub fn json(record: &RunRecord) -> String {
    let mut text = serde_json::to_string_pretty(&record.result())
        .unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
    text.push('\n');
    text
}
