//! JSON in which no object has a duplicate key.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A JSON value. Parsing fails if an object has a duplicate key, because parsers differ in which of
/// the two values they keep.
pub(super) struct UniqueKeys(pub(super) Value);

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(UniqueKeys(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{key}` occurs twice")));
            }
            let UniqueKeys(value) = entries.next_value()?;
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_an_error_at_any_depth() {
        let read = |text: &str| serde_json::from_str::<UniqueKeys>(text).map(|it| it.0);
        let text = r#"{"a": [1, -2, 0.5, "x\u00e9", true, null], "b": {"a": {}}}"#;
        assert_eq!(
            read(text).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
        assert_eq!(
            read("[{\"a\": 1}, {\"a\": 2}]").unwrap(),
            json!([{ "a": 1 }, { "a": 2 }])
        );
        for text in [r#"{"a": 1, "a": 1}"#, r#"[{"b": {"a": 1, "\u0061": 2}}]"#] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.starts_with("the key `a` occurs twice"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn other_values_are_read_as_they_are(text in r#"[\[\]{}:,"a0-9.e \\-]{0,30}"#) {
            let plain = serde_json::from_str::<Value>(&text).ok();
            if let Ok(UniqueKeys(value)) = serde_json::from_str(&text) {
                prop_assert_eq!(plain, Some(value));
            }
        }
    }
}
