use std::{collections::HashMap, ops::Range, path::Path};

use serde::Deserialize as _;
use serde_json::Value;
use toml::{
    Spanned,
    de::{DeValue, ValueDeserializer},
};

use super::{FileAccess, Source, SourceError, json_span, pointer, read, table, yaml_text};

/// A data format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFormat {
    /// JSON.
    Json,
    /// YAML 1.2, a single document.
    Yaml,
    /// TOML.
    Toml,
}

impl DataFormat {
    /// The format of a file by its extension: `.json`, `.yaml`, `.yml` or `.toml`.
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }
}

/// A JSON value parsed from a file in any format, with the position of each of its parts.
#[derive(Debug, Clone)]
pub struct Data {
    value: Value,
    source: Source,
    places: Places,
}

#[derive(Debug, Clone)]
enum Places {
    /// The text is JSON; positions are computed on demand.
    Json,
    /// The byte range of each part, by JSON Pointer.
    Listed(HashMap<String, Range<usize>>),
}

impl Data {
    /// Reads and parses a file in the format given by its extension.
    ///
    /// # Errors
    /// If the extension is unknown, or the file is unreadable or invalid.
    pub fn read(path: &Path) -> Result<Self, SourceError> {
        let Some(format) = DataFormat::from_path(path) else {
            return Err(SourceError::for_file(
                &path.display().to_string(),
                "unknown file extension",
            )
            .help("use .json, .yaml, .yml or .toml"));
        };
        Self::parse(&read(path)?, format)
    }

    /// Parses a text. YAML aliases are expanded up to a limit, and YAML words such as `yes` and `no` stay strings. A
    /// TOML date becomes a string.
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
                Self::from_toml(
                    source,
                    Spanned::new(span, DeValue::Table(table.into_inner())),
                )
            }
        }
    }

    /// Takes a value out of a parsed TOML text.
    pub fn from_toml(source: &Source, value: Spanned<DeValue<'_>>) -> Result<Self, SourceError> {
        let mut places = HashMap::new();
        list_toml(&value, String::new(), &mut places);
        let span = value.span();
        let value = toml::Value::deserialize(ValueDeserializer::from(value))
            .map_err(|error| source.error(error.span().unwrap_or(span.clone()), error.message()))?;
        let value = toml_to_json(value, "").map_err(|pointer| {
            let span = places.get(&pointer).cloned().unwrap_or(span);
            source.error(span, "JSON cannot represent `inf` or `nan`")
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

    /// Sets which files the text may refer to, by its absolute path.
    #[must_use]
    pub fn with_file_access(self, access: &dyn Fn(&Path) -> FileAccess) -> Self {
        Self {
            source: self.source.with_file_access(access),
            ..self
        }
    }

    /// The text that the value was parsed from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The value of an object's key, with its positions.
    pub fn get(&self, key: &str) -> Option<Self> {
        self.at(&pointer::join("", key))
    }

    /// The value at a JSON Pointer, with its positions.
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

    /// The same object without these keys.
    #[must_use]
    pub fn without(mut self, keys: &[&str]) -> Self {
        if let Value::Object(object) = &mut self.value {
            object.retain(|key, _| !keys.contains(&key.as_str()));
        }
        self
    }

    /// The byte range of the value at a JSON Pointer, or of its nearest existing ancestor.
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

    /// An error that points to the value at a JSON Pointer.
    pub fn error(&self, pointer: &str, message: &str) -> SourceError {
        self.source.error(self.span(pointer), message)
    }
}

fn json(source: &Source) -> Result<Value, SourceError> {
    serde_json::from_str(source.text()).map_err(|error| {
        let text = error.to_string();
        let reason = text.split(" at line ").next().unwrap_or(&text);
        let at = offset(source.text(), error.line(), error.column());
        source.error(at..at + 1, &format!("invalid JSON: {reason}"))
    })
}

/// Converts the line and column of a `serde_json` error (both from 1, the column in bytes) to a byte offset.
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

/// Converts a TOML value to JSON.
///
/// # Errors
/// Returns the JSON Pointer of a number that JSON cannot represent.
fn toml_to_json(value: toml::Value, pointer: &str) -> Result<Value, String> {
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
            .map(|(index, item)| toml_to_json(item, &pointer::join(pointer, &index.to_string())))
            .collect::<Result<_, _>>()?,
        toml::Value::Table(table) => Value::Object(
            table
                .into_iter()
                .map(|(key, value)| {
                    let value = toml_to_json(value, &pointer::join(pointer, &key))?;
                    Ok((key, value))
                })
                .collect::<Result<_, String>>()?,
        ),
    })
}

#[cfg(test)]
#[path = "data_tests.rs"]
mod tests;
