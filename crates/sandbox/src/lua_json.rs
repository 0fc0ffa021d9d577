use mlua::{LuaString, Table, Value as LuaValue};
use serde_json::{Map, Number, Value};

/// The maximum nesting depth: what `serde_json` parses, minus the envelope.
const DEPTH: usize = 100;

/// Why a value cannot be converted to JSON.
#[derive(Debug)]
pub(super) enum ToJsonError {
    /// It is larger than allowed.
    TooLarge,
    /// JSON cannot represent it; with the reason.
    Impossible(String),
}

/// Converts a Lua value to JSON.
///
/// A table with the keys 1 to n becomes a list, any other an object with its keys as strings, sorted. An empty table
/// becomes an object unless it came from an empty JSON list. Invalid UTF-8 becomes U+FFFD. Infinite numbers, NaN,
/// functions, and tables that contain themselves are errors.
pub(super) fn to_json(value: &LuaValue, limit: usize) -> Result<Value, ToJsonError> {
    let mut budget = limit;
    convert(value, &mut budget, DEPTH)
}

fn consume(budget: &mut usize, bytes: usize) -> Result<(), ToJsonError> {
    *budget = budget.checked_sub(bytes).ok_or(ToJsonError::TooLarge)?;
    Ok(())
}

fn impossible(what: &str) -> ToJsonError {
    ToJsonError::Impossible(format!("it returned {what}, which JSON cannot represent"))
}

fn convert(value: &LuaValue, budget: &mut usize, depth: usize) -> Result<Value, ToJsonError> {
    if depth == 0 {
        return Err(impossible(
            "a table that is nested too deeply or contains itself",
        ));
    }
    consume(budget, 1)?;
    match value {
        LuaValue::Boolean(b) => Ok(Value::Bool(*b)),
        LuaValue::Integer(i) => Ok(Value::from(*i)),
        LuaValue::Number(n) => Number::from_f64(*n)
            .map(Value::Number)
            .ok_or_else(|| impossible(&format!("the number {n}"))),
        LuaValue::String(text) => {
            // Check the size before copying.
            consume(budget, text.as_bytes().len())?;
            Ok(Value::String(text.to_string_lossy()))
        }
        LuaValue::Table(table) => convert_table(table, budget, depth),
        LuaValue::Nil => Ok(Value::Null),
        value if value.is_null() => Ok(Value::Null),
        other => Err(impossible(&format!("a {}", other.type_name()))),
    }
}

fn convert_table(table: &Table, budget: &mut usize, depth: usize) -> Result<Value, ToJsonError> {
    let broken = |e: mlua::Error| ToJsonError::Impossible(e.to_string());
    let length = table.raw_len();
    let mut entries: Vec<(LuaValue, LuaValue)> = Vec::new();
    for pair in table.pairs::<LuaValue, LuaValue>() {
        consume(budget, 1)?;
        entries.push(pair.map_err(broken)?);
    }
    let is_list = entries.len() == length && (length > 0 || table.metatable().is_some());
    if is_list {
        let mut list = Vec::new();
        for index in 1..=length {
            let item: LuaValue = table.raw_get(index).map_err(broken)?;
            list.push(convert(&item, budget, depth - 1)?);
        }
        return Ok(Value::Array(list));
    }
    let mut entries = entries
        .into_iter()
        .map(|(key, value)| Ok((key_text(&key)?, value)))
        .collect::<Result<Vec<_>, ToJsonError>>()?;
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    let mut object = Map::new();
    for (key, value) in entries {
        consume(budget, key.len())?;
        object.insert(key, convert(&value, budget, depth - 1)?);
    }
    Ok(Value::Object(object))
}

fn key_text(key: &LuaValue) -> Result<String, ToJsonError> {
    match key {
        LuaValue::String(text) => Ok(LuaString::to_string_lossy(text)),
        LuaValue::Integer(i) => Ok(i.to_string()),
        LuaValue::Number(n) => Ok(n.to_string()),
        LuaValue::Boolean(b) => Ok(b.to_string()),
        other => Err(impossible(&format!(
            "a table with a {} as a key",
            other.type_name()
        ))),
    }
}
