use serde_json::{Map, Value, json};

use super::{
    builtin::TASK_TYPES,
    file::{CommonKeys, TopLevelKeys},
    kinds::{EvaluatorKind, KINDS},
};
use crate::source::schema_of;

/// Returns the JSON Schema of a criteria file, generated from the types that parse it. For editors,
/// and for tools that write criteria.
pub fn schema() -> Value {
    let mut root = schema_of::<TopLevelKeys>().to_value();
    let mut kinds: Vec<Value> = KINDS.iter().map(criterion).collect();
    // `evaluator` is optional for the default kind only.
    for kind in kinds.iter_mut().skip(1) {
        if let Some(required) = kind["required"].as_array_mut() {
            required.push(json!("evaluator"));
        }
    }
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Criteria file for reflect");
    root["description"] = json!("The criteria that drafts must meet.");
    root["properties"]["task_type"] = json!({
        "description": root["properties"]["task_type"]["description"],
        "enum": TASK_TYPES,
    });
    root["properties"]["criteria"] = json!({
        "description": "The criteria; names are unique.",
        "type": "array",
        "minItems": 1,
        "items": { "oneOf": kinds },
    });
    root["anyOf"] = json!([{ "required": ["criteria"] }, { "required": ["task_type"] }]);
    root
}

/// Returns the schema of a criterion of one kind: the common keys and the evaluator's own.
fn criterion(kind: &EvaluatorKind) -> Value {
    let mut schema = schema_of::<CommonKeys>().to_value();
    let own = (kind.schema)().to_value();
    let mut properties = take_object(&mut schema, "properties");
    if let Some(own) = own["properties"].as_object() {
        properties.extend(own.clone());
    }
    properties["evaluator"]["const"] = json!(kind.name);
    properties["name"]["minLength"] = json!(1);
    properties["weight"]["exclusiveMinimum"] = json!(0);
    schema["properties"] = Value::Object(properties);
    schema["title"] = json!(format!("criterion with the evaluator {}", kind.name));
    schema["description"] = own["description"].clone();
    let mut required = vec![json!("name")];
    if let Some(own) = own["required"].as_array() {
        required.extend(own.iter().cloned());
    }
    schema["required"] = Value::Array(required);
    // Constraints between keys, such as "one of these is required".
    for keyword in ["anyOf", "oneOf"] {
        if let Some(rule) = own.get(keyword) {
            schema[keyword] = rule.clone();
        }
    }
    if kind.name == "schema" {
        schema["oneOf"] = json!([{ "required": ["schema"] }, { "required": ["file"] }]);
        schema["properties"]["schema"]["type"] = json!(["object", "boolean"]);
    }
    schema
}

fn take_object(value: &mut Value, key: &str) -> Map<String, Value> {
    match value[key].take() {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
