use schemars::{JsonSchema, Schema, generate::SchemaSettings};

/// The JSON Schema of a type, with all referenced definitions inlined.
pub fn schema_of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .with(|s| {
            s.inline_subschemas = true;
            s.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<T>()
}
