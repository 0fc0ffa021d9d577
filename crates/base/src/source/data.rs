use std::{collections::HashMap, ops::Range, path::Path};

use serde::Deserialize as _;
use serde_json::Value;
use toml::{
    Spanned,
    de::{DeValue, ValueDeserializer},
};

use super::{Reach, Source, SourceError, json_span, pointer, read, table, yaml_text};

/// How data is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFormat {
    /// JSON.
    Json,
    /// YAML 1.2, one document.
    Yaml,
    /// TOML.
    Toml,
}

impl DataFormat {
    /// The format that a file's ending says: `.json`, `.yaml`, `.yml` or `.toml`.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }
}

/// A JSON value that a person wrote down, in whatever format, and the places of its parts.
#[derive(Debug, Clone)]
pub struct Data {
    value: Value,
    source: Source,
    places: Places,
}

#[derive(Debug, Clone)]
enum Places {
    /// The text is JSON: places are looked for where they are wanted.
    Json,
    /// By JSON Pointer.
    Listed(HashMap<String, Range<usize>>),
}

impl Data {
    /// Reads a file, in the format that its ending says.
    pub fn read(path: &Path) -> Result<Self, SourceError> {
        let Some(format) = DataFormat::of(path) else {
            return Err(SourceError::whole(
                &path.display().to_string(),
                "the file's ending does not say what it is written in",
            )
            .help("use .json, .yaml, .yml or .toml"));
        };
        Self::parse(&read(path)?, format)
    }

    /// Reads a text. YAML's aliases are followed within bounds; a word like `yes` or `no` is a text.
    /// A date of TOML becomes a text.
    pub fn parse(source: &Source, format: DataFormat) -> Result<Self, SourceError> {
        match format {
            DataFormat::Json => Ok(Self {
                value: json(source)?,
                source: source.clone(),
                places: Places::Json,
            }),
            DataFormat::Yaml => {
                let (value, places) = yaml_text::parse(source)?;
                Ok(Self {
                    value,
                    source: source.clone(),
                    places: Places::Listed(places),
                })
            }
            DataFormat::Toml => {
                let table = table(source)?;
                let span = table.span();
                Self::of_toml(
                    source,
                    Spanned::new(span, DeValue::Table(table.into_inner())),
                )
            }
        }
    }

    /// A value within a TOML text.
    pub fn of_toml(source: &Source, value: Spanned<DeValue<'_>>) -> Result<Self, SourceError> {
        let mut places = HashMap::new();
        list_toml(&value, String::new(), &mut places);
        let span = value.span();
        let value = toml::Value::deserialize(ValueDeserializer::from(value))
            .map_err(|error| source.error(error.span().unwrap_or(span.clone()), error.message()))?;
        let value = of_toml_value(value, "").map_err(|pointer| {
            let span = places.get(&pointer).cloned().unwrap_or(span);
            source.error(span, "no JSON number is infinite, or not a number")
        })?;
        Ok(Self {
            value,
            source: source.clone(),
            places: Places::Listed(places),
        })
    }

    /// The value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The same data, whose text may refer to the files that this says of its full path.
    #[must_use]
    pub fn with_reach(self, reach: &dyn Fn(&Path) -> Reach) -> Self {
        Self {
            source: self.source.with_reach(reach),
            ..self
        }
    }

    /// The text it stands in.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The value under a key of an object, with its places.
    pub fn get(&self, key: &str) -> Option<Self> {
        self.at(&pointer::join("", key))
    }

    /// The value that a JSON Pointer leads to, with its places.
    pub fn at(&self, from: &str) -> Option<Self> {
        let value = self.value.pointer(from)?.clone();
        let places = match &self.places {
            Places::Json => {
                let mut places = HashMap::new();
                list_json(self, &value, from, "", &mut places);
                places
            }
            Places::Listed(all) => all
                .iter()
                .filter_map(|(pointer, span)| {
                    let rest = pointer.strip_prefix(from)?;
                    (rest.is_empty() || rest.starts_with('/'))
                        .then(|| (rest.to_owned(), span.clone()))
                })
                .collect(),
        };
        Some(Self {
            value,
            source: self.source.clone(),
            places: Places::Listed(places),
        })
    }

    /// The same data, but for these keys of the object that it is.
    #[must_use]
    pub fn without(mut self, keys: &[&str]) -> Self {
        if let Value::Object(object) = &mut self.value {
            object.retain(|key, _| !keys.contains(&key.as_str()));
        }
        self
    }

    /// The place of the value that a JSON Pointer leads to, or of the nearest one around it.
    pub fn span(&self, pointer: &str) -> Range<usize> {
        let mut pointer = Some(pointer);
        while let Some(at) = pointer {
            let found = match &self.places {
                Places::Json => json_span(self.source.text(), at),
                Places::Listed(places) => places.get(at).cloned(),
            };
            if let Some(found) = found {
                return found;
            }
            pointer = pointer::parent(at);
        }
        0..0
    }

    /// An error at the value that a JSON Pointer leads to.
    pub fn error(&self, pointer: &str, message: &str) -> SourceError {
        self.source.error(self.span(pointer), message)
    }
}

fn json(source: &Source) -> Result<Value, SourceError> {
    serde_json::from_str(source.text()).map_err(|error| {
        let text = error.to_string();
        let reason = text.split(" at line ").next().unwrap_or(&text);
        let at = offset(source.text(), error.line(), error.column());
        source.error(at..at + 1, &format!("this is not JSON: {reason}"))
    })
}

/// The byte at a line and a column as `serde_json` counts them: from 1, the column in bytes.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    (before + column.saturating_sub(1)).min(text.len())
}

fn list_json(
    data: &Data,
    value: &Value,
    from: &str,
    to: &str,
    places: &mut HashMap<String, Range<usize>>,
) {
    if let Some(span) = json_span(data.source.text(), from) {
        places.insert(to.to_owned(), span);
    }
    let mut child = |value: &Value, step: &str| {
        let (from, to) = (pointer::join(from, step), pointer::join(to, step));
        list_json(data, value, &from, &to, places);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| child(value, key)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| child(value, &index.to_string())),
        _ => {}
    }
}

fn list_toml(
    value: &Spanned<DeValue<'_>>,
    pointer: String,
    places: &mut HashMap<String, Range<usize>>,
) {
    match value.get_ref() {
        DeValue::Table(table) => {
            for (key, value) in table {
                list_toml(value, pointer::join(&pointer, key.get_ref()), places);
            }
        }
        DeValue::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                list_toml(value, pointer::join(&pointer, &index.to_string()), places);
            }
        }
        _ => {}
    }
    places.insert(pointer, value.span());
}

/// # Errors
/// The place of a number that JSON does not know.
fn of_toml_value(value: toml::Value, pointer: &str) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .map(Value::Number)
            .ok_or_else(|| pointer.to_owned())?,
        toml::Value::Boolean(value) => Value::Bool(value),
        toml::Value::Datetime(time) => Value::String(time.to_string()),
        toml::Value::Array(items) => items
            .into_iter()
            .enumerate()
            .map(|(index, item)| of_toml_value(item, &pointer::join(pointer, &index.to_string())))
            .collect::<Result<_, _>>()?,
        toml::Value::Table(table) => Value::Object(
            table
                .into_iter()
                .map(|(key, value)| {
                    let value = of_toml_value(value, &pointer::join(pointer, &key))?;
                    Ok((key, value))
                })
                .collect::<Result<_, String>>()?,
        ),
    })
}

#[cfg(test)]
#[path = "data_tests.rs"]
mod tests;
