//! Requests to the Prolog worker: Prolog terms, because SWI-Prolog without packages cannot parse JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use tokio::process::Command;

use super::command::Scratch;
use super::limits::Limits;
use super::script::ScriptRequest;

const WORKER: &str = include_str!("worker.pl");

/// Writes the worker's program to its private directory and adds the arguments.
pub(super) fn arguments(command: &mut Command, scratch: &Scratch) -> std::io::Result<()> {
    let program = scratch.write("worker.pl", WORKER.as_bytes())?;
    command
        .args([
            "-q",
            "-f",
            "none",
            "--no-tty",
            "--no-packs",
            "-g",
            "serve",
            "-t",
            "halt(1)",
        ])
        .arg(program);
    Ok(())
}

/// The request as a term, and the marker at the start of its response, which distinguishes the response from output
/// of the script.
pub(super) fn ask(request: &ScriptRequest, limits: &Limits) -> (Vec<u8>, String) {
    let mark = format!("@{}@", uuid::Uuid::now_v7().simple());
    let mut term = String::new();
    let _ = write!(term, "ask('{mark}', ");
    text(&mut term, '"', &request.code);
    term.push_str(", ");
    write_value(&mut term, &request.output);
    term.push_str(", [");
    for (index, (key, value)) in state(request).iter().enumerate() {
        if index > 0 {
            term.push(',');
        }
        text(&mut term, '\'', key);
        term.push('-');
        write_value(&mut term, value);
    }
    let _ = writeln!(term, "], {}, {}).", limits.memory, limits.output);
    (term.into_bytes(), mark)
}

/// The state with the draft and the `reflection_…` names.
fn state(request: &ScriptRequest) -> Map<String, Value> {
    let mut state = request.state.clone();
    let defaults = [
        ("output", request.output.clone()),
        ("reflection_output", request.output.clone()),
        ("reflection_iteration", Value::from(0)),
        ("reflection_errors", Value::Array(Vec::new())),
    ];
    for (name, value) in defaults {
        state.entry(name).or_insert(value);
    }
    state
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => {
            let _ = write!(out, "{b}");
        }
        Value::Number(n) => number(out, n),
        // A string becomes an atom: `state(name, N), N = ada` compares with an atom.
        Value::String(s) => text(out, '\'', s),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push_str("_{");
            for (index, (key, item)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                text(out, '\'', key);
                out.push(':');
                write_value(out, item);
            }
            out.push('}');
        }
    }
}

fn number(out: &mut String, number: &serde_json::Number) {
    let written = number.to_string();
    // `1e10` is `1.0e10` in Prolog.
    match written.split_once(['e', 'E']) {
        Some((digits, exponent)) if !digits.contains('.') => {
            let _ = write!(out, "{digits}.0e{exponent}");
        }
        _ => out.push_str(&written),
    }
}

/// Quotes a text and escapes backslashes, the quote character and control characters.
fn text(out: &mut String, quote: char, text: &str) {
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\x{:x}\\", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_terms() {
        let mut out = String::new();
        let value = json!({"a b": [1, 2.5, true, null, "x\"\\\n\u{1}'"], "n": 1e300, "o": {}});
        write_value(&mut out, &value);
        assert_eq!(
            out,
            r#"_{'a b':[1,2.5,true,null,'x"\\\n\x1\\''],'n':1.0e+300,'o':_{}}"#
        );
    }
}
