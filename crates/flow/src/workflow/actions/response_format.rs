//! `response_format:` of a call, as in the `OpenAI` API: the required form of the answer.

use serde_json::Value;

use crate::model::ResponseSchema;
use crate::source::SourceError;
use crate::workflow::part::Part;

const TYPES: [&str; 3] = ["text", "json_object", "json_schema"];

/// The maximum length of a schema's name, which `OpenAI` defines along with the allowed characters.
const MAX_NAME: usize = 64;

/// Parses the format. Returns `None` for plain text.
pub(super) fn read(part: &Part) -> Result<Option<ResponseSchema>, SourceError> {
    let kind = if part.value().is_object() {
        part.check_keys(&["type", "json_schema"])?;
        part.get("type")
            .ok_or_else(|| part.error("`response_format` needs the key `type`"))?
    } else {
        part.clone()
    };
    let named = kind.word(&TYPES)?;
    let given = part.get("json_schema");
    if let Some(given) = given.as_ref().filter(|_| named != "json_schema") {
        return Err(given
            .error_at_key("this schema would have no effect")
            .help("with a schema, write `type: json_schema`"));
    }
    match named {
        "text" => Ok(None),
        "json_object" => Ok(Some(ResponseSchema::any_object())),
        _ => {
            let given = given.ok_or_else(|| {
                part.error("`response_format` needs the key `json_schema`")
                    .help("with `schema`, and optionally a `name`")
            })?;
            of_schema(&given).map(Some)
        }
    }
}

fn of_schema(part: &Part) -> Result<ResponseSchema, SourceError> {
    part.check_keys(&["name", "schema", "strict"])?;
    if let Some(strict) = part.get("strict")
        && !strict.flag()?
    {
        return Err(strict
            .error("a schema is always strict here")
            .help("remove `strict`, or judge the answer by `type: schema` in a loop"));
    }
    let schema = part
        .get("schema")
        .ok_or_else(|| part.error("`json_schema` needs the key `schema`"))?;
    let Value::Object(_) = schema.value() else {
        return Err(schema.expected("an object, which is a JSON Schema"));
    };
    let name = match part.get("name") {
        None => "answer".to_owned(),
        Some(name) => {
            let text = name.text()?;
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if text.is_empty() || text.len() > MAX_NAME || !text.chars().all(fits) {
                return Err(name.expected("a name of letters, digits, `_` and `-`"));
            }
            text.to_owned()
        }
    };
    Ok(ResponseSchema::new(name, schema.value().clone()))
}
