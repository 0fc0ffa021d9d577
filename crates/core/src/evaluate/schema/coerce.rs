//! Converts values of the wrong type where the conversion is unambiguous.

use referencing::Resolver;
use serde_json::{Number, Value};

use crate::criteria::json_schema::Compiled;
use crate::source::pointer;

/// A value that was converted to another type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Coercion {
    /// The JSON Pointer of the value.
    pub(super) path: String,
    pub(super) from: Value,
    pub(super) to: Value,
}

impl Coercion {
    pub(super) fn describe(&self) -> String {
        let place = match self.path.as_str() {
            "" => "the value",
            path => path,
        };
        format!("{place} {} as {}", self.from, self.to)
    }
}

/// Converts values whose type is not the single type that the schema requires: a string that holds
/// a number or a yes or no, and a number or boolean where a string is required. Null is never
/// converted from or to.
///
/// Follows only unambiguous paths (`type: object` with `properties`, `type: array` with `items`,
/// and `$ref`s). Skips alternatives, where several conversions are possible.
pub(super) fn coerce(compiled: &Compiled, value: &mut Value) -> Vec<Coercion> {
    let mut changes = Vec::new();
    if let Some((schema, resolver)) = compiled.root() {
        let walk = Coercer { compiled };
        walk.value(schema, &resolver, value, "", &mut changes);
    }
    changes
}

struct Coercer<'c> {
    compiled: &'c Compiled,
}

impl Coercer<'_> {
    fn value(
        &self,
        schema: &Value,
        resolver: &Resolver<'_>,
        value: &mut Value,
        path: &str,
        changes: &mut Vec<Coercion>,
    ) {
        let draft = self.compiled.validator().draft();
        let Ok(resolver) = resolver.in_subresource(draft.create_resource_ref(schema)) else {
            return;
        };
        // Terminates, because schemas with cyclic references are rejected.
        if let Some(target) = schema.get("$ref").and_then(Value::as_str)
            && let Ok(found) = resolver.lookup(target)
        {
            self.value(found.contents(), found.resolver(), value, path, changes);
        }
        let Some(wanted) = schema.get("type").and_then(Value::as_str) else {
            return;
        };
        match (wanted, &mut *value) {
            ("object", Value::Object(object)) => {
                let properties = schema.get("properties").and_then(Value::as_object);
                let others = schema
                    .get("additionalProperties")
                    .filter(|_| schema.get("patternProperties").is_none());
                for (key, value) in object.iter_mut() {
                    let part = properties
                        .and_then(|properties| properties.get(key))
                        .or(others);
                    if let Some(part) = part {
                        let path = pointer::join(path, key);
                        self.value(part, &resolver, value, &path, changes);
                    }
                }
            }
            ("array", Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if let Some(part) = item_schema(schema, index) {
                        let path = pointer::join(path, &index.to_string());
                        self.value(part, &resolver, item, &path, changes);
                    }
                }
            }
            _ => {
                if let Some(to) = convert(value, wanted) {
                    let from = std::mem::replace(value, to.clone());
                    changes.push(Coercion {
                        path: path.to_owned(),
                        from,
                        to,
                    });
                }
            }
        }
    }
}

/// Returns the schema of an array's item.
fn item_schema(schema: &Value, index: usize) -> Option<&Value> {
    let (first, rest) = match (schema.get("prefixItems"), schema.get("items")) {
        (Some(Value::Array(first)), rest) => (first.as_slice(), rest),
        // The form before draft 2020-12.
        (_, Some(Value::Array(first))) => (first.as_slice(), schema.get("additionalItems")),
        (_, rest) => (&[][..], rest),
    };
    first.get(index).or(rest)
}

/// Converts a value to the required type, if it has another type and the conversion is unambiguous.
fn convert(value: &Value, wanted: &str) -> Option<Value> {
    match (wanted, value) {
        ("integer", Value::String(text)) => integer(text.trim()),
        ("number", Value::String(text)) => number(text.trim()),
        ("boolean", Value::String(text)) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "1" => Some(Value::Bool(true)),
            "false" | "no" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        ("string", Value::Number(_) | Value::Bool(_)) => Some(Value::String(value.to_string())),
        _ => None,
    }
}

fn integer(text: &str) -> Option<Value> {
    let signed = || text.parse::<i64>().ok().map(Value::from);
    signed().or_else(|| text.parse::<u64>().ok().map(Value::from))
}

fn number(text: &str) -> Option<Value> {
    // Rust also parses `inf` and `nan`, which are not JSON numbers.
    let plain = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    if !text.chars().all(plain) {
        return None;
    }
    integer(text).or_else(|| {
        let number: f64 = text.parse().ok()?;
        Number::from_f64(number).map(Value::Number)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_beyond_doubt_is_converted_and_nothing_else() {
        for (wanted, from, to) in [
            ("integer", json!("42"), Some(json!(42))),
            ("integer", json!(" -42 "), Some(json!(-42))),
            (
                "integer",
                json!("18446744073709551615"),
                Some(json!(u64::MAX)),
            ),
            ("integer", json!("4.2"), None),
            ("integer", json!("4 2"), None),
            ("integer", json!(""), None),
            ("integer", json!("99999999999999999999"), None),
            ("integer", json!(true), None),
            ("integer", json!(null), None),
            ("number", json!("1e3"), Some(json!(1000.0))),
            ("number", json!("7"), Some(json!(7))),
            ("number", json!("nan"), None),
            ("number", json!("inf"), None),
            ("number", json!("1e999"), None),
            ("boolean", json!("YES"), Some(json!(true))),
            ("boolean", json!("0"), Some(json!(false))),
            ("boolean", json!("maybe"), None),
            ("boolean", json!(""), None),
            ("boolean", json!(1), None),
            ("string", json!(1.5), Some(json!("1.5"))),
            ("string", json!(true), Some(json!("true"))),
            ("string", json!(null), None),
            ("string", json!([1]), None),
            ("string", json!({}), None),
            ("null", json!(""), None),
        ] {
            assert_eq!(convert(&from, wanted), to, "{from} as {wanted}");
        }
    }

    proptest! {
        #[test]
        fn every_number_comes_back_from_its_text(number in any::<i64>()) {
            let text = json!(number.to_string());
            prop_assert_eq!(convert(&text, "integer"), Some(json!(number)));
            prop_assert_eq!(convert(&json!(number), "string"), Some(text));
        }

        #[test]
        fn no_text_becomes_null(text in "\\PC{0,12}", wanted in "integer|number|boolean|string|null") {
            let found = convert(&json!(text), &wanted);
            prop_assert!(found.is_none_or(|value| !value.is_null()));
        }
    }
}
