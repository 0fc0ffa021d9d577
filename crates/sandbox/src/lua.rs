//! The Lua worker: a fresh interpreter for each evaluation, in a process that can be killed.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mlua::chunk::ChunkMode;
use mlua::debug::Debug;
use mlua::serde::SerializeOptions;
use mlua::{
    Error, HookTriggers, Lua, LuaOptions, LuaSerdeExt, StdLib, Table, Value as LuaValue, Variadic,
    VmState,
};
use serde_json::Value;

use super::lua_json::{ToJsonError, to_json};
use super::script::{ScriptErrorKind, ScriptRequest};
use super::wire::{Failure, OwnedRequest, RequestLimits, WorkerMessage};

/// How many instructions run between two checks of the clock: few enough for a resolution of a millisecond, and
/// enough to cost nothing.
const INSTRUCTIONS: u32 = 10_000;

/// The name of the script in messages: `script:3: attempt to …`.
const CHUNK: &str = "script";

/// Runs one request.
pub(super) fn answer(asked: &OwnedRequest) -> WorkerMessage {
    let run = Evaluation::new(&asked.limits);
    let result = run.evaluate(&asked.request, &asked.limits);
    let prints = run.prints.take();
    if run.flooded.get() {
        return WorkerMessage::Failed {
            error: failure(
                ScriptErrorKind::Output,
                format!("it printed more than {} bytes", asked.limits.output),
            ),
            prints,
        };
    }
    match result {
        Ok(value) => WorkerMessage::Value { value, prints },
        Err(error) => WorkerMessage::Failed { error, prints },
    }
}

fn failure(kind: ScriptErrorKind, message: impl Into<String>) -> Failure {
    Failure {
        kind,
        message: message.into(),
        line: None,
    }
}

/// The state that one evaluation shares with its callbacks.
struct Evaluation {
    prints: Rc<RefCell<String>>,
    flooded: Rc<Cell<bool>>,
    late: Rc<Cell<bool>>,
    /// The line that was running when the time limit was reached.
    late_line: Rc<Cell<Option<u32>>>,
    deadline: Instant,
}

impl Evaluation {
    fn new(limits: &RequestLimits) -> Self {
        let time = Duration::try_from_secs_f64(limits.seconds).unwrap_or(Duration::from_hours(1));
        Self {
            prints: Rc::default(),
            flooded: Rc::default(),
            late: Rc::default(),
            late_line: Rc::default(),
            deadline: Instant::now() + time,
        }
    }

    fn evaluate(&self, request: &ScriptRequest, limits: &RequestLimits) -> Result<Value, Failure> {
        let lua = self.interpreter(limits).map_err(|e| self.explain(&e))?;
        Self::globals(&lua, request, limits).map_err(|e| self.explain(&e))?;
        let chunk = lua
            .load(&request.code)
            .set_name(format!("={CHUNK}"))
            .set_mode(ChunkMode::Text);
        let function = chunk.into_function().map_err(|e| self.explain(&e))?;
        let mut value: LuaValue = function.call(()).map_err(|e| self.explain(&e))?;
        if value.is_nil() {
            value = lua.globals().get("result").map_err(|e| self.explain(&e))?;
        }
        to_json(&value, limits.output).map_err(|carry| match carry {
            ToJsonError::TooLarge => failure(
                ScriptErrorKind::Output,
                format!("it returned more than {} bytes", limits.output),
            ),
            ToJsonError::Impossible(what) => failure(ScriptErrorKind::Protocol, what),
        })
    }

    /// An interpreter with text, tables, numbers and coroutines, but without files, processes, clocks, or loading of
    /// compiled code.
    fn interpreter(&self, limits: &RequestLimits) -> mlua::Result<Lua> {
        let libraries =
            StdLib::COROUTINE | StdLib::TABLE | StdLib::STRING | StdLib::UTF8 | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        lua.set_memory_limit(usize::try_from(limits.memory).unwrap_or(usize::MAX))?;
        let globals = lua.globals();
        for name in ["dofile", "loadfile", "require", "collectgarbage", "warn"] {
            globals.raw_set(name, LuaValue::Nil)?;
        }
        globals
            .get::<Table>("string")?
            .raw_set("dump", LuaValue::Nil)?;
        // A fixed seed makes the verdict reproducible.
        globals
            .get::<Table>("math")?
            .get::<mlua::Function>("randomseed")?
            .call::<()>((42, 0))?;
        globals.raw_set("load", lua.create_function(load_text)?)?;
        globals.raw_set("print", self.print(&lua, limits.output)?)?;
        let (deadline, late) = (self.deadline, Rc::clone(&self.late));
        let late_line = Rc::clone(&self.late_line);
        let hook = move |lua: &Lua, place: &Debug| {
            if Instant::now() < deadline {
                return Ok(VmState::Continue);
            }
            if !late.replace(true) {
                if place.source().short_src.as_deref() == Some(CHUNK) {
                    let line = place.current_line().and_then(|n| u32::try_from(n).ok());
                    late_line.set(line);
                }
                // From here on every instruction fails, so that `pcall` cannot prevent the end.
                let every = HookTriggers::new().every_nth_instruction(1);
                lua.set_global_hook(every, |_, _| Err(Error::runtime("time")))?;
            }
            Err(Error::runtime("time"))
        };
        lua.set_global_hook(
            HookTriggers::new().every_nth_instruction(INSTRUCTIONS),
            hook,
        )?;
        Ok(lua)
    }

    fn globals(lua: &Lua, request: &ScriptRequest, limits: &RequestLimits) -> mlua::Result<()> {
        let globals = lua.globals();
        let state = &request.state;
        let given = |name: &str, default: Value| state.get(name).cloned().unwrap_or(default);
        let values = [
            (
                "reflection_output",
                given("reflection_output", request.output.clone()),
            ),
            (
                "reflection_iteration",
                given("reflection_iteration", Value::from(0)),
            ),
            (
                "reflection_errors",
                given("reflection_errors", Value::Array(Vec::new())),
            ),
            ("output", request.output.clone()),
            ("state", Value::Object(state.clone())),
        ];
        for (name, value) in values {
            globals.raw_set(name, from_json(lua, &value)?)?;
        }
        if request.bare_names {
            for (name, value) in state {
                if globals.raw_get::<LuaValue>(name.as_str())?.is_nil() {
                    globals.raw_set(name.as_str(), from_json(lua, value)?)?;
                }
            }
        }
        let json = lua.create_table()?;
        json.raw_set("null", lua.null())?;
        json.raw_set(
            "decode",
            lua.create_function(|lua, text: mlua::LuaString| {
                let value: Value = serde_json::from_slice(&text.as_bytes())
                    .map_err(|e| Error::runtime(format!("json.decode: {e}")))?;
                from_json(lua, &value)
            })?,
        )?;
        // Only the interpreter's memory limits the size; the limit on the result is checked later.
        let most = usize::try_from(limits.memory).unwrap_or(usize::MAX) / 8;
        json.raw_set(
            "encode",
            lua.create_function(move |lua, value: LuaValue| {
                let json = to_json(&value, most).map_err(|carry| {
                    Error::runtime(match carry {
                        ToJsonError::TooLarge => "json.encode: the value is too large".to_owned(),
                        ToJsonError::Impossible(what) => format!("json.encode: {what}"),
                    })
                })?;
                lua.create_string(json.to_string())
            })?,
        )?;
        globals.raw_set("json", json)
    }

    fn print(&self, lua: &Lua, limit: usize) -> mlua::Result<mlua::Function> {
        let (prints, flooded) = (Rc::clone(&self.prints), Rc::clone(&self.flooded));
        lua.create_function(move |_, values: Variadic<LuaValue>| {
            let mut line = Vec::new();
            for value in values.iter() {
                line.push(match value {
                    LuaValue::String(text) => text.to_string_lossy(),
                    other => other.to_string()?,
                });
            }
            let line = line.join("\t");
            let mut prints = prints.borrow_mut();
            if flooded.get() || prints.len() + line.len() >= limit {
                flooded.set(true);
                return Err(Error::runtime("too much output"));
            }
            let _ = writeln!(prints, "{line}");
            Ok(())
        })
    }

    /// Converts an interpreter error: removes the interpreter's additions and extracts the line.
    fn explain(&self, error: &Error) -> Failure {
        if self.late.get() {
            let mut late = failure(ScriptErrorKind::Time, "it ran longer than the time limit");
            late.line = self.late_line.get();
            return late;
        }
        let kind = kind_of(error);
        if kind == ScriptErrorKind::Memory {
            return failure(kind, "it exceeded the memory limit");
        }
        let text = match error {
            Error::SyntaxError { message, .. } | Error::RuntimeError(message) => message.clone(),
            Error::CallbackError { traceback, cause } => {
                // The line is only in the traceback, innermost first.
                let line = line_of(traceback).map(|n| format!("{CHUNK}:{n}: "));
                format!("{}{}", line.unwrap_or_default(), innermost(cause))
            }
            other => other.to_string(),
        };
        let line = line_of(&text);
        let text = text.split("\nstack traceback:").next().unwrap_or_default();
        let text = text.strip_prefix("runtime error: ").unwrap_or(text);
        let prefix = line.map(|n| format!("{CHUNK}:{n}: ")).unwrap_or_default();
        Failure {
            kind,
            message: text.strip_prefix(&prefix).unwrap_or(text).to_owned(),
            line,
        }
    }
}

fn innermost(error: &Error) -> String {
    match error {
        Error::CallbackError { cause, .. } => innermost(cause),
        Error::RuntimeError(message) => message.clone(),
        other => other.to_string(),
    }
}

fn kind_of(error: &Error) -> ScriptErrorKind {
    match error {
        Error::SyntaxError { .. } => ScriptErrorKind::Syntax,
        Error::MemoryError(_) => ScriptErrorKind::Memory,
        Error::CallbackError { cause, .. } => kind_of(cause),
        // Out of memory inside a C function is reported as text.
        Error::RuntimeError(message) if message.contains("not enough memory") => {
            ScriptErrorKind::Memory
        }
        _ => ScriptErrorKind::Runtime,
    }
}

/// The first `script:LINE:` in a message.
fn line_of(message: &str) -> Option<u32> {
    let marker = format!("{CHUNK}:");
    message.match_indices(&marker).find_map(|(at, _)| {
        let rest = &message[at + marker.len()..];
        rest.split_once(':')
            .and_then(|(number, _)| number.parse().ok())
    })
}

/// `load` for source text only: compiled code could break out of the interpreter.
fn load_text(
    lua: &Lua,
    (chunk, name, _mode, env): (LuaValue, Option<String>, Option<LuaValue>, Option<Table>),
) -> mlua::Result<(Option<mlua::Function>, Option<String>)> {
    let code = match chunk {
        LuaValue::String(text) => text.as_bytes().to_vec(),
        LuaValue::Function(parts) => {
            let mut code = Vec::new();
            while let Some(part) = parts.call::<Option<mlua::LuaString>>(())? {
                if part.as_bytes().is_empty() {
                    break;
                }
                code.extend_from_slice(&part.as_bytes());
            }
            code
        }
        _ => {
            return Err(Error::runtime(
                "bad argument #1 to 'load' (string expected)",
            ));
        }
    };
    let name = name.unwrap_or_else(|| "=(load)".to_owned());
    let mut chunk = lua.load(code).set_name(name).set_mode(ChunkMode::Text);
    if let Some(env) = env {
        chunk = chunk.set_environment(env);
    }
    Ok(match chunk.into_function() {
        Ok(function) => (Some(function), None),
        Err(Error::SyntaxError { message, .. }) => (None, Some(message)),
        Err(other) => (None, Some(other.to_string())),
    })
}

/// Converts JSON to Lua. Null becomes nil, so that `if state.x then` works.
fn from_json(lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
    let options = SerializeOptions::new()
        .set_array_metatable(true)
        .serialize_none_to_null(false)
        .serialize_unit_to_null(false);
    lua.to_value_with(value, options)
}
