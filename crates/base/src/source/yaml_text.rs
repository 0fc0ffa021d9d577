use std::{collections::HashMap, fmt, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use serde_saphyr::{Budget, Error, Location, Options, Spanned};

use super::{Source, SourceError, pointer};

/// Parses a YAML text and records the byte range of each part by JSON Pointer.
pub(super) fn parse(
    source: &Source,
) -> Result<(Value, HashMap<String, Range<usize>>), SourceError> {
    let fail = |error: &Error| {
        let span = error.location().map_or(0..0, |place| span(source, place));
        let text = error.without_snippet().to_string();
        let reason = text.lines().next().unwrap_or_default();
        let reason = reason.split(" at line ").next().unwrap_or(reason);
        if reason.starts_with("multiple YAML documents") {
            return source.error(span, "expected a single YAML document");
        }
        source.error(span, &format!("invalid YAML: {reason}"))
    };
    let value = serde_saphyr::from_str_with_options(source.text(), options())
        .map_err(|error| fail(&error))?;
    let tree: Node = serde_saphyr::from_str_with_options(source.text(), options())
        .map_err(|error| fail(&error))?;
    let mut places = HashMap::new();
    tree.list(source, String::new(), &mut places);
    Ok((value, places))
}

fn options() -> Options {
    let mut options = Options::default();
    // YAML 1.1 would read `no` and `on` as booleans, even as country codes and keys.
    options.strict_booleans = true;
    // Aliases can make a short file expand without bound, so the expansion is limited.
    options.alias_limits.max_total_replayed_events = 20_000;
    options.budget = Some(budget());
    options
}

fn budget() -> Budget {
    let mut budget = Budget::default();
    budget.max_nodes = 100_000;
    budget.max_depth = 64;
    budget
}

fn span(source: &Source, place: Location) -> Range<usize> {
    let number = |value: u64| usize::try_from(value).unwrap_or(0).saturating_sub(1);
    let mut lines = source.text().split_inclusive('\n');
    let before: usize = lines.clone().take(number(place.line())).map(str::len).sum();
    let line = lines.nth(number(place.line())).unwrap_or_default();
    // The column counts characters.
    let column = line
        .char_indices()
        .nth(number(place.column()))
        .map_or(line.trim_end().len(), |(at, _)| at);
    let length = place.span().byte_len().unwrap_or(1).max(1);
    let start = before + column;
    start..start + usize::try_from(length).unwrap_or(1)
}

/// The position of a value and its parts.
struct Node {
    place: Location,
    parts: Parts,
}

enum Parts {
    None,
    Named(Vec<(String, Node)>),
    Numbered(Vec<Node>),
}

impl Node {
    fn list(self, source: &Source, pointer: String, places: &mut HashMap<String, Range<usize>>) {
        let span = span(source, self.place);
        match self.parts {
            Parts::None => {}
            Parts::Named(parts) => {
                for (key, part) in parts {
                    part.list(source, pointer::join(&pointer, &key), places);
                }
            }
            Parts::Numbered(parts) => {
                for (index, part) in parts.into_iter().enumerate() {
                    part.list(source, pointer::join(&pointer, &index.to_string()), places);
                }
            }
        }
        places.insert(pointer, span);
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Parts>::deserialize(deserializer)?;
        Ok(Self {
            place: spanned.referenced,
            parts: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PartsVisitor)
    }
}

struct PartsVisitor;

impl<'de> Visitor<'de> for PartsVisitor {
    type Value = Parts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parts, A::Error> {
        let mut parts = Vec::new();
        while let Some(entry) = map.next_entry::<String, Node>()? {
            parts.push(entry);
        }
        Ok(Parts::Named(parts))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Parts, A::Error> {
        let mut parts = Vec::new();
        while let Some(item) = items.next_element()? {
            parts.push(item);
        }
        Ok(Parts::Numbered(parts))
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Parts, D::Error> {
        IgnoredAny::deserialize(inner).map(|_| Parts::None)
    }

    fn visit_unit<E>(self) -> Result<Parts, E> {
        Ok(Parts::None)
    }

    fn visit_none<E>(self) -> Result<Parts, E> {
        Ok(Parts::None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Parts, E> {
        Ok(Parts::None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Parts, E> {
        Ok(Parts::None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Parts, E> {
        Ok(Parts::None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Parts, E> {
        Ok(Parts::None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Parts, E> {
        Ok(Parts::None)
    }
}
