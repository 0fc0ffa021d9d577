use mlua::{LuaString, Table, Value as LuaValue};
use serde_json::{Map, Number, Value};

/// Tables within tables: what `serde_json` reads back, less the envelope.
const DEPTH: usize = 100;

/// Why a value cannot be carried as JSON.
#[derive(Debug)]
pub(super) enum Carry {
    /// More bytes than allowed.
    TooLarge,
    /// There is no such JSON, with the reason.
    Impossible(String),
}

/// The JSON of a value.
///
/// A table whose keys are 1 to n is a list, any other an object with its keys as text, sorted; an
/// empty table is an object unless it came from an empty JSON list. Bytes that are not UTF-8 become
/// U+FFFD. Numbers that JSON has not (inf, nan), functions, and tables that hold themselves are errors.
pub(super) fn to_json(value: &LuaValue, limit: usize) -> Result<Value, Carry> {
    let mut room = limit;
    convert(value, &mut room, DEPTH)
}

fn spend(room: &mut usize, bytes: usize) -> Result<(), Carry> {
    *room = room.checked_sub(bytes).ok_or(Carry::TooLarge)?;
    Ok(())
}

fn impossible(what: &str) -> Carry {
    Carry::Impossible(format!("it returned {what}, which JSON cannot carry"))
}

fn convert(value: &LuaValue, room: &mut usize, depth: usize) -> Result<Value, Carry> {
    if depth == 0 {
        return Err(impossible(
            "a table that is nested too deeply or holds itself",
        ));
    }
    spend(room, 1)?;
    match value {
        LuaValue::Boolean(b) => Ok(Value::Bool(*b)),
        LuaValue::Integer(i) => Ok(Value::from(*i)),
        LuaValue::Number(n) => Number::from_f64(*n)
            .map(Value::Number)
            .ok_or_else(|| impossible(&format!("the number {n}"))),
        LuaValue::String(text) => {
            // Before it is copied.
            spend(room, text.as_bytes().len())?;
            Ok(Value::String(text.to_string_lossy()))
        }
        LuaValue::Table(table) => convert_table(table, room, depth),
        LuaValue::Nil => Ok(Value::Null),
        value if value.is_null() => Ok(Value::Null),
        other => Err(impossible(&format!("a {}", other.type_name()))),
    }
}

fn convert_table(table: &Table, room: &mut usize, depth: usize) -> Result<Value, Carry> {
    let broken = |e: mlua::Error| Carry::Impossible(e.to_string());
    let length = table.raw_len();
    let mut entries: Vec<(LuaValue, LuaValue)> = Vec::new();
    for pair in table.pairs::<LuaValue, LuaValue>() {
        spend(room, 1)?;
        entries.push(pair.map_err(broken)?);
    }
    let is_list = entries.len() == length && (length > 0 || table.metatable().is_some());
    if is_list {
        let mut list = Vec::new();
        for index in 1..=length {
            let item: LuaValue = table.raw_get(index).map_err(broken)?;
            list.push(convert(&item, room, depth - 1)?);
        }
        return Ok(Value::Array(list));
    }
    let mut entries = entries
        .into_iter()
        .map(|(key, value)| Ok((key_text(&key)?, value)))
        .collect::<Result<Vec<_>, Carry>>()?;
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    let mut object = Map::new();
    for (key, value) in entries {
        spend(room, key.len())?;
        object.insert(key, convert(&value, room, depth - 1)?);
    }
    Ok(Value::Object(object))
}

fn key_text(key: &LuaValue) -> Result<String, Carry> {
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
