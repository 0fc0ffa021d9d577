use std::fmt::Write as _;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most of a schema that writers and judges are shown, in characters: more would leave no room for the
/// draft.
const SHOWN: usize = 12_000;

/// Configuration of the `schema` evaluator: the JSON value in a draft must be valid under a JSON Schema
/// (draft 4, 6, 7, 2019-09 or 2020-12, as its `$schema` says; 2020-12 if it does not).
///
/// All documents that it refers to are in here: nothing is read when a draft is judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaConfig {
    /// The schema: an object, or `true` or `false`.
    pub schema: Value,
    /// Where the schema stands, as a relative URL from the criteria file's folder: relative `$ref`s
    /// start there. `None`: in that folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The documents that `$ref`s lead to, by their URLs: relative to the criteria file's folder, or
    /// absolute.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub documents: IndexMap<String, Value>,
    /// Whether a value of the wrong type is read as the right one where that is beyond doubt, such as
    /// the text "42" as a number. Default: true.
    #[serde(default = "yes")]
    pub coerce: bool,
    /// Whether `format` is checked. Default: false.
    #[serde(default)]
    pub formats: bool,
}

fn yes() -> bool {
    true
}

impl SchemaConfig {
    /// A schema that refers to no other document.
    pub fn new(schema: Value) -> Self {
        Self {
            schema,
            base: None,
            documents: IndexMap::new(),
            coerce: true,
            formats: false,
        }
    }

    /// The regular expressions of the schema and its documents: the values of `pattern` and the names in
    /// `patternProperties`, wherever they stand.
    pub fn patterns(&self) -> Vec<&str> {
        let mut found = Vec::new();
        let mut left: Vec<&Value> = std::iter::once(&self.schema)
            .chain(self.documents.values())
            .collect();
        while let Some(value) = left.pop() {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.get("pattern").and_then(Value::as_str));
                    let named = fields.get("patternProperties").and_then(Value::as_object);
                    found.extend(named.into_iter().flat_map(|it| it.keys()).map(|it| &**it));
                    left.extend(fields.values());
                }
                Value::Array(items) => left.extend(items),
                _ => {}
            }
        }
        found
    }

    /// The rule in words, as writers and judges read it.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "The text must be (or hold) a JSON value that is valid under this JSON Schema: {}",
            self.schema
        );
        for (name, document) in &self.documents {
            let _ = write!(text, "\nwhere `{name}` is: {document}");
        }
        match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}… (the schema goes on)", &text[..end]),
            None => text,
        }
    }
}
