use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::source::{self, Data, SourceError, pointer};

/// A part of a workflow's file: a value, and where it stands. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Part {
    data: Arc<Data>,
    pointer: String,
}

static NOTHING: Value = Value::Null;

impl Part {
    /// The whole file.
    pub(super) fn whole(data: Data) -> Self {
        Self {
            data: Arc::new(data),
            pointer: String::new(),
        }
    }

    /// The value.
    pub(super) fn value(&self) -> &Value {
        self.data.value().pointer(&self.pointer).unwrap_or(&NOTHING)
    }

    /// The same part, with what the file's readers want of data.
    pub(super) fn data(&self) -> Option<Data> {
        self.data.at(&self.pointer)
    }

    /// Where it stands.
    pub(super) fn span(&self) -> Range<usize> {
        self.data.span(&self.pointer)
    }

    /// The line that it stands in, counted from 1.
    pub(super) fn line(&self) -> usize {
        self.data.source().position(self.span().start).0
    }

    /// The text that it stands in.
    pub(super) fn source(&self) -> &source::Source {
        self.data.source()
    }

    /// The part under a key; `None` if it is not there, or null.
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

    /// The parts of a list; none of anything else.
    pub(super) fn items(&self) -> Vec<Self> {
        let count = self.value().as_array().map_or(0, Vec::len);
        (0..count)
            .map(|index| self.child(&index.to_string()))
            .collect()
    }

    /// The parts of an object, by their keys; none of anything else.
    pub(super) fn fields(&self) -> IndexMap<String, Self> {
        let object = self.value().as_object();
        object
            .into_iter()
            .flat_map(Map::keys)
            .map(|key| (key.clone(), self.child(key)))
            .collect()
    }

    /// An error at its place.
    pub(super) fn error(&self, message: &str) -> SourceError {
        self.data.error(&self.pointer, message)
    }

    /// An error at the key that it stands under.
    pub(super) fn error_at_key(&self, message: &str) -> SourceError {
        self.source().error(self.key_span(), message)
    }

    /// Where its key stands: the last time that it is written before the value.
    fn key_span(&self) -> Range<usize> {
        let span = self.span();
        let key = pointer::steps(&self.pointer).last().unwrap_or_default();
        let before = self.source().text().get(..span.start).unwrap_or_default();
        match before.rfind(&key) {
            Some(at) if !key.is_empty() => at..at + key.len(),
            _ => span,
        }
    }

    /// The text that it is.
    ///
    /// # Errors
    /// If it is something else.
    pub(super) fn text(&self) -> Result<&str, SourceError> {
        self.value().as_str().ok_or_else(|| self.expected("a text"))
    }

    /// The text under a key, if it is there.
    ///
    /// # Errors
    /// If something else is there.
    pub(super) fn text_at(&self, key: &str) -> Result<Option<String>, SourceError> {
        let part = self.get(key);
        part.map(|part| part.text().map(str::to_owned)).transpose()
    }

    /// The truth value that it is.
    pub(super) fn flag(&self) -> Result<bool, SourceError> {
        self.value()
            .as_bool()
            .ok_or_else(|| self.expected("true or false"))
    }

    /// A number of at least 1.
    pub(super) fn count(&self) -> Result<u32, SourceError> {
        self.value()
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| *number > 0)
            .ok_or_else(|| self.expected("a whole number of at least 1"))
    }

    /// A whole number, which may be 0.
    pub(super) fn whole_number(&self) -> Result<u64, SourceError> {
        self.value()
            .as_u64()
            .ok_or_else(|| self.expected("a whole number of at least 0"))
    }

    /// A number between two others, these included.
    pub(super) fn number(&self, low: f64, high: f64) -> Result<f64, SourceError> {
        self.value()
            .as_f64()
            .filter(|number| (low..=high).contains(number))
            .ok_or_else(|| self.expected(&format!("a number from {low} to {high}")))
    }

    /// A time in seconds: a day at most.
    pub(super) fn time(&self) -> Result<Duration, SourceError> {
        self.number(0.0, 86_400.0).map(Duration::from_secs_f64)
    }

    /// A number from 0 to 1.
    pub(super) fn share(&self) -> Result<f64, SourceError> {
        self.number(0.0, 1.0)
    }

    /// One of some words.
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

    /// The error that something else was to stand here.
    pub(super) fn expected(&self, what: &str) -> SourceError {
        let key = pointer::steps(&self.pointer).last().unwrap_or_default();
        if key.is_empty() || key.bytes().all(|b| b.is_ascii_digit()) {
            self.error(&format!("expected {what}"))
        } else {
            self.error(&format!("`{key}`: expected {what}"))
        }
    }

    /// That it is an object with no other keys than these.
    pub(super) fn check_keys(&self, known: &[&str]) -> Result<(), SourceError> {
        if !self.value().is_object() {
            return Err(self.expected("an object"));
        }
        check(&self.fields(), known)
    }
}

/// That there are no other keys than these.
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
