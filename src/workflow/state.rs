use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, Serde, Value as TemplateValue};
use serde_json::{Map, Value};

/// What a workflow knows, by name. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct State(IndexMap<String, Arc<Value>>);

impl State {
    /// The value under a name.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).map(|value| &**value)
    }

    /// Sets a value.
    pub fn set(&mut self, key: impl Into<String>, value: Value) {
        self.0.insert(key.into(), Arc::new(value));
    }

    /// Adds to a list; without copying it where nobody else holds it.
    pub(super) fn push(&mut self, key: &str, item: Value) {
        let list = self.0.entry(key.to_owned()).or_default();
        match Arc::make_mut(list) {
            Value::Array(items) => items.push(item),
            other => *other = Value::Array(vec![item]),
        }
    }

    /// Changes the last of a list.
    pub(super) fn change_last(&mut self, key: &str, change: impl FnOnce(&mut Value)) {
        if let Some(Value::Array(items)) = self.0.get_mut(key).map(Arc::make_mut)
            && let Some(last) = items.last_mut()
        {
            change(last);
        }
    }

    /// Sets all values of an object.
    pub fn merge(&mut self, object: Map<String, Value>) {
        for (key, value) in object {
            self.set(key, value);
        }
    }

    /// Forgets a value.
    pub fn remove(&mut self, key: &str) {
        self.0.shift_remove(key);
    }

    /// All names, in the order in which they came.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// As one object, with no more than the last items of the list under this name.
    pub(super) fn with_last_of(&self, list: &str, most: usize) -> Map<String, Value> {
        let shown = |key: &str, value: &Value| match value {
            Value::Array(items) if key == list => {
                Value::Array(items[items.len().saturating_sub(most)..].to_vec())
            }
            other => other.clone(),
        };
        let entries = self.0.iter();
        entries
            .map(|(key, value)| (key.clone(), shown(key, value)))
            .collect()
    }

    /// As one object.
    pub fn to_map(&self) -> Map<String, Value> {
        let entries = self.0.iter();
        entries
            .map(|(key, value)| (key.clone(), (**value).clone()))
            .collect()
    }
}

impl From<Map<String, Value>> for State {
    fn from(map: Map<String, Value>) -> Self {
        let mut state = Self::default();
        state.merge(map);
        state
    }
}

/// As templates see it: each value is converted where it is asked for.
impl Object for State {
    fn get_value(self: &Arc<Self>, key: &TemplateValue) -> Option<TemplateValue> {
        self.get(key.as_str()?)
            .map(|value| TemplateValue::from(Serde(value)))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let keys = self.0.keys();
        Enumerator::Values(keys.map(|key| TemplateValue::from(key.as_str())).collect())
    }
}
