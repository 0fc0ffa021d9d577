use serde_json::{Value, json};

use super::{file::Tables, settings::Settings};
use crate::source::schema_of;

/// The JSON Schema of the user's config file, for editors. It is generated from the types that parse the
/// file.
pub fn schema() -> Value {
    let mut root = schema_of::<Settings>().to_value();
    let tables = schema_of::<Tables>().to_value();
    if let (Some(all), Some(tables)) = (
        root["properties"].as_object_mut(),
        tables["properties"].as_object(),
    ) {
        all.extend(tables.clone());
    }
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Configuration file of reflect");
    root["description"] = json!("The user's settings.");
    root
}
