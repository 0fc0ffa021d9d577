use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
    forward_to_deserialize_any,
};

/// The keys that a struct is deserialized from, in order of definition; empty for other types. Taken from the type
/// itself, so the list is always up to date.
pub fn fields<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut found: &'static [&'static str] = &[];
    // This always fails: the probe only records the requested fields.
    let _ = T::deserialize(Probe(&mut found));
    found
}

struct Probe<'a>(&'a mut &'static [&'static str]);

#[derive(Debug)]
struct Stop;

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no value here")
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Stop;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
        Err(Stop)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Stop> {
        *self.0 = fields;
        Err(Stop)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_type() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only its names are looked at")]
        struct S {
            a: u8,
            #[serde(rename = "type")]
            b: Option<String>,
        }
        assert_eq!(fields::<S>(), ["a", "type"]);
        assert!(fields::<u8>().is_empty());
    }
}
