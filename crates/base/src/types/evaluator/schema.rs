use std::fmt::Write as _;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How much of a schema writers and judges see, in characters. More would leave no room for the draft.
const SHOWN: usize = 12_000;

/// The configuration of the `schema` evaluator: the JSON value in a draft must be valid against a JSON Schema (draft
/// 4, 6, 7, 2019-09 or 2020-12, as `$schema` says; 2020-12 by default).
///
/// Includes all referenced documents, so evaluating a draft reads no files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaConfig {
    /// The schema: an object, or `true` or `false`.
    pub schema: Value,
    /// The location of the schema, as a URL relative to the criteria file's folder. Relative `$ref`s are resolved
    /// against it. `None`: the folder itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The documents that `$ref`s lead to, by URL: absolute, or relative to the criteria file's folder.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub documents: IndexMap<String, Value>,
    /// Whether to coerce values of the wrong type if the conversion is unambiguous, such as the string "42" to a
    /// number. Default: true.
    #[serde(default = "yes")]
    pub coerce: bool,
    /// Whether to check `format`. Default: false.
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

    /// The regular expressions in the schema and its documents: all values of `pattern` and names in
    /// `patternProperties`.
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

    /// The rule as a sentence for writers and judges.
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
