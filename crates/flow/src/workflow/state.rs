use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, ObjectRepr, Serde, Value as TemplateValue};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::failure::Failure;
use crate::types::ExitCode;

/// The maximum size of a state in bytes, as computed by [`weight`]: far more than work with models
/// needs, and small enough for any machine.
const MOST: usize = 64 << 20;

/// The values of a workflow, by name. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct State(IndexMap<String, StoredValue>);

#[derive(Debug, Clone, Default)]
struct StoredValue {
    value: Arc<Value>,
    weight: usize,
}

impl State {
    /// Returns the value under a name.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).map(|kept| &*kept.value)
    }

    /// Sets a value.
    pub fn set(&mut self, key: impl Into<String>, value: Value) {
        let weight = weight(&value);
        let value = Arc::new(value);
        self.0.insert(key.into(), StoredValue { value, weight });
    }

    /// Appends to a list, without copying it unless it is shared.
    pub(super) fn push(&mut self, key: &str, item: Value) {
        let kept = self.0.entry(key.to_owned()).or_default();
        kept.weight += weight(&item);
        match Arc::make_mut(&mut kept.value) {
            Value::Array(items) => items.push(item),
            other => *other = Value::Array(vec![item]),
        }
    }

    /// Changes the last item of a list.
    pub(super) fn change_last(&mut self, key: &str, change: impl FnOnce(&mut Value)) {
        if let Some(kept) = self.0.get_mut(key)
            && let Value::Array(items) = Arc::make_mut(&mut kept.value)
            && let Some(last) = items.last_mut()
        {
            let before = weight(last);
            change(last);
            kept.weight = (kept.weight + weight(last)).saturating_sub(before);
        }
    }

    /// Sets all values of an object.
    pub fn merge(&mut self, object: Map<String, Value>) {
        for (key, value) in object {
            self.set(key, value);
        }
    }

    /// Removes a value.
    pub fn remove(&mut self, key: &str) {
        self.0.shift_remove(key);
    }

    /// Returns all names, in order of insertion.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        let entries = self.0.iter();
        entries.map(|(key, kept)| (key.as_str(), &*kept.value))
    }

    /// Checks the size: nodes that return more every time would fill any memory.
    pub(super) fn check_size(&self) -> Result<(), Failure> {
        if self.0.values().map(|kept| kept.weight).sum::<usize>() <= MOST {
            return Ok(());
        }
        let heaviest = self.0.iter().max_by_key(|(_, kept)| kept.weight);
        let name = heaviest.map_or("", |(name, _)| name.as_str());
        let why = format!(
            "the state is larger than {} MiB; most of it is `{name}`",
            MOST >> 20
        );
        Err(Failure::new(ExitCode::Limit, why).hint("store only what later nodes need"))
    }

    /// Returns a value in the form that templates use.
    pub(super) fn shown(&self, key: &str) -> Option<TemplateValue> {
        let value = &self.0.get(key)?.value;
        Some(match &**value {
            Value::Array(_) => TemplateValue::from_object(List(Arc::clone(value))),
            plain => TemplateValue::from(Serde(plain)),
        })
    }

    /// Returns the state as an object, with only the last `most` items of this list.
    pub(super) fn with_last_of(&self, list: &str, most: usize) -> Map<String, Value> {
        let shown = |key: &str, value: &Value| match value {
            Value::Array(items) if key == list => {
                Value::Array(items[items.len().saturating_sub(most)..].to_vec())
            }
            other => other.clone(),
        };
        self.values()
            .map(|(key, value)| (key.to_owned(), shown(key, value)))
            .collect()
    }

    /// Returns the state as an object.
    pub fn to_map(&self) -> Map<String, Value> {
        self.values()
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect()
    }
}

/// Estimates the memory use of a value in bytes: its strings and keys, plus a fixed size per value.
fn weight(value: &Value) -> usize {
    let inner: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(object) => object.iter().map(|(key, it)| key.len() + weight(it)).sum(),
        _ => 0,
    };
    size_of::<Value>() + inner
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.values())
    }
}

impl From<Map<String, Value>> for State {
    fn from(map: Map<String, Value>) -> Self {
        let mut state = Self::default();
        state.merge(map);
        state
    }
}

/// Converts each value on access by a template.
impl Object for State {
    fn get_value(self: &Arc<Self>, key: &TemplateValue) -> Option<TemplateValue> {
        self.shown(key.as_str()?)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let keys = self.0.keys();
        Enumerator::Values(keys.map(|key| TemplateValue::from(key.as_str())).collect())
    }
}

/// A list for templates. Converts each item on access, because a history is long, and most
/// templates need only its length or its last item.
#[derive(Debug)]
struct List(Arc<Value>);

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &TemplateValue) -> Option<TemplateValue> {
        let item = self.0.get(key.as_usize()?)?;
        Some(TemplateValue::from(Serde(item)))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.as_array().map_or(0, Vec::len))
    }
}
