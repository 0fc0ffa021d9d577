use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::source::{self, Data, SourceError, pointer};

/// A part of a workflow file: a value and its position. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Part {
    data: Arc<Data>,
    pointer: String,
}

static NOTHING: Value = Value::Null;

impl Part {
    /// Returns the whole file as a part.
    pub(super) fn whole(data: Data) -> Self {
        Self {
            data: Arc::new(data),
            pointer: String::new(),
        }
    }

    /// Returns the value.
    pub(super) fn value(&self) -> &Value {
        self.data.value().pointer(&self.pointer).unwrap_or(&NOTHING)
    }

    /// Returns the same part in the form that the parsers of criteria and evaluators use.
    pub(super) fn data(&self) -> Option<Data> {
        self.data.at(&self.pointer)
    }

    /// Returns its range in the text.
    pub(super) fn span(&self) -> Range<usize> {
        self.data.span(&self.pointer)
    }

    /// Returns its line, counted from 1.
    pub(super) fn line(&self) -> usize {
        self.data.source().position(self.span().start).0
    }

    /// Returns the text that contains it.
    pub(super) fn source(&self) -> &source::Source {
        self.data.source()
    }

    /// Returns the part under a key, or `None` if it is missing or null.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        self.value().get(key).filter(|value| !value.is_null())?;
        Some(self.child(key))
    }

    fn child(&self, step: &str) -> Self {
        Self {
            data: Arc::clone(&self.data),
            pointer: pointer::join(&self.pointer, step),
        }
    }

    /// Returns the items of a list; empty for other values.
    pub(super) fn items(&self) -> Vec<Self> {
        let count = self.value().as_array().map_or(0, Vec::len);
        (0..count)
            .map(|index| self.child(&index.to_string()))
            .collect()
    }

    /// Returns the fields of an object by key; empty for other values.
    pub(super) fn fields(&self) -> IndexMap<String, Self> {
        let object = self.value().as_object();
        object
            .into_iter()
            .flat_map(Map::keys)
            .map(|key| (key.clone(), self.child(key)))
            .collect()
    }

    /// Returns an error at its position.
    pub(super) fn error(&self, message: &str) -> SourceError {
        self.data.error(&self.pointer, message)
    }

    /// Returns an error at the position of its key.
    pub(super) fn error_at_key(&self, message: &str) -> SourceError {
        self.source().error(self.key_span(), message)
    }

    /// Returns the range of its key: the last occurrence before the value.
    fn key_span(&self) -> Range<usize> {
        let span = self.span();
        let key = pointer::steps(&self.pointer).last().unwrap_or_default();
        let before = self.source().text().get(..span.start).unwrap_or_default();
        match before.rfind(&key) {
            Some(at) if !key.is_empty() => at..at + key.len(),
            _ => span,
        }
    }

    /// Returns its string.
    ///
    /// # Errors
    /// If it is not a string.
    pub(super) fn text(&self) -> Result<&str, SourceError> {
        self.value().as_str().ok_or_else(|| self.expected("a text"))
    }

    /// Returns the string under a key, or `None` if the key is missing.
    ///
    /// # Errors
    /// If the value is not a string.
    pub(super) fn text_at(&self, key: &str) -> Result<Option<String>, SourceError> {
        let part = self.get(key);
        part.map(|part| part.text().map(str::to_owned)).transpose()
    }

    /// Returns its boolean.
    pub(super) fn flag(&self) -> Result<bool, SourceError> {
        self.value()
            .as_bool()
            .ok_or_else(|| self.expected("true or false"))
    }

    /// Returns its number, a whole number of at least 1.
    pub(super) fn count(&self) -> Result<u32, SourceError> {
        self.value()
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| *number > 0)
            .ok_or_else(|| self.expected("a whole number of at least 1"))
    }

    /// Returns its number, a whole number of at least 0.
    pub(super) fn whole_number(&self) -> Result<u64, SourceError> {
        self.value()
            .as_u64()
            .ok_or_else(|| self.expected("a whole number of at least 0"))
    }

    /// Returns its number, from `low` to `high`, inclusive.
    pub(super) fn number(&self, low: f64, high: f64) -> Result<f64, SourceError> {
        self.value()
            .as_f64()
            .filter(|number| (low..=high).contains(number))
            .ok_or_else(|| self.expected(&format!("a number from {low} to {high}")))
    }

    /// Returns its time, a number of seconds up to one day.
    pub(super) fn time(&self) -> Result<Duration, SourceError> {
        self.number(0.0, 86_400.0).map(Duration::from_secs_f64)
    }

    /// Returns its number from 0 to 1.
    pub(super) fn share(&self) -> Result<f64, SourceError> {
        self.number(0.0, 1.0)
    }

    /// Returns its word, one of `words`.
    pub(super) fn word<'w>(&self, words: &[&'w str]) -> Result<&'w str, SourceError> {
        let text = self.text()?;
        words
            .iter()
            .find(|word| **word == text)
            .copied()
            .ok_or_else(|| {
                let near = source::similar(text, words.iter().copied());
                self.expected(&format!("one of {}", source::list(words.iter().copied())))
                    .help_if(near.map(|near| format!("did you mean `{near}`?")))
            })
    }

    /// Returns the error that another kind of value is expected.
    pub(super) fn expected(&self, what: &str) -> SourceError {
        let key = pointer::steps(&self.pointer).last().unwrap_or_default();
        if key.is_empty() || key.bytes().all(|b| b.is_ascii_digit()) {
            self.error(&format!("expected {what}"))
        } else {
            self.error(&format!("`{key}`: expected {what}"))
        }
    }

    /// Checks that it is an object with no other keys than these.
    pub(super) fn check_keys(&self, known: &[&str]) -> Result<(), SourceError> {
        if !self.value().is_object() {
            return Err(self.expected("an object"));
        }
        check(&self.fields(), known)
    }
}

/// Checks that there are no other keys than these.
pub(super) fn check(fields: &IndexMap<String, Part>, known: &[&str]) -> Result<(), SourceError> {
    match fields
        .iter()
        .find(|(key, _)| !known.contains(&key.as_str()))
    {
        None => Ok(()),
        Some((key, part)) => Err(source::unknown_key(
            part.source(),
            part.key_span(),
            key,
            known,
        )),
    }
}
