//! `run:`: code in Python, Lua or Prolog, run like scripts in criteria.

use async_trait::async_trait;
use serde_json::Value;

use super::{Action, ActionCall, ActionKind};
use crate::evaluate::Earlier;
use crate::sandbox::{Language, Limits, ScriptRequest};
use crate::source::SourceError;
use crate::types::{HumanDuration, ScriptConfig, ScriptLanguage};
use crate::workflow::event::Event;
use crate::workflow::failure::Failure;
use crate::workflow::part::Part;
use crate::workflow::program::Program;
use crate::workflow::world::ActionContext;

pub(super) const KIND: ActionKind = ActionKind {
    name: "run",
    aliases: &["code.run"],
    keys: &["run", "language", "timeout"],
    read: |call| Ok(Box::new(Code::read(call)?)),
};

/// The names of the languages in files.
const LANGUAGES: [&str; 3] = ["python", "lua", "prolog"];

pub(super) struct Code {
    config: ScriptConfig,
    part: Part,
}

impl Code {
    fn read(call: &ActionCall) -> Result<Self, SourceError> {
        let Some(run) = call.get("run") else {
            return Err(call.missing("run", "run", "add the code"));
        };
        // Also accepts an object: `run: {language: lua, code: …}`.
        let (part, mut named) = if run.value().is_object() {
            run.check_keys(&["code", "language", "type", "timeout"])?;
            let code = run
                .get("code")
                .ok_or_else(|| run.error("the key `code` is missing"))?;
            (code, run.get("language").or_else(|| run.get("type")))
        } else {
            (run.clone(), None)
        };
        named = named.or_else(|| call.get("language").cloned());
        let language = match named {
            None => ScriptLanguage::Python,
            Some(named) => match named.word(&LANGUAGES)? {
                "lua" => ScriptLanguage::Lua,
                "prolog" => ScriptLanguage::Prolog,
                _ => ScriptLanguage::Python,
            },
        };
        let code = part.text()?;
        if code.trim().is_empty() {
            return Err(part.error("there is no code"));
        }
        let timeout = call
            .get("timeout")
            .cloned()
            .or_else(|| run.get("timeout").filter(|_| run.value().is_object()));
        Ok(Self {
            config: ScriptConfig {
                language,
                code: code.to_owned(),
                timeout: match timeout {
                    Some(part) => timeout_of(&part, ScriptConfig::MAX_TIMEOUT)?,
                    None => ScriptConfig::default_timeout(),
                },
                memory: ScriptConfig::default_memory(),
                origin: crate::types::Origin::default(),
            },
            part,
        })
    }
}

/// Parses a time: a number of seconds, or a string such as `90s`.
pub(super) fn timeout_of(part: &Part, most: HumanDuration) -> Result<HumanDuration, SourceError> {
    let wanted = || part.expected("a duration, such as `30` (seconds) or `2m`");
    let time = match part.value() {
        Value::Number(number) => number
            .as_u64()
            .filter(|seconds| *seconds > 0)
            .map(HumanDuration::from_secs),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
    .ok_or_else(wanted)?;
    if time.get() > most.get() {
        return Err(part.error(&format!("the maximum is {most}")));
    }
    Ok(time)
}

#[async_trait(?Send)]
impl Action for Code {
    async fn run(&self, context: &ActionContext<'_>) -> Result<Value, Failure> {
        let output = context
            .names
            .state
            .get("reflection_output")
            .cloned()
            .unwrap_or(Value::Null);
        run_script(&self.config, &output, context).await
    }

    fn programs(&self, list: &mut Vec<Program>) {
        list.extend(Program::of_code(&self.config, &self.part));
    }
}

/// Runs a script for its value. It receives the state as `state`, and each of its names as a
/// variable.
pub(in crate::workflow) async fn run_script(
    config: &ScriptConfig,
    output: &Value,
    context: &ActionContext<'_>,
) -> Result<Value, Failure> {
    let language = crate::evaluate::interpreter(config.language);
    let request = ScriptRequest {
        code: config.code.clone(),
        output: output.clone(),
        state: state_of(context),
        bare_names: true,
    };
    let limits = Limits {
        time: config.timeout.get(),
        memory: config.memory.bytes(),
        ..Limits::SCRIPT
    };
    let ran = context
        .world
        .tools
        .run_script(language, &request, &limits)
        .await;
    if !ran.prints.trim().is_empty() {
        context.world.emit(&Event::Print {
            node: context.node,
            text: &ran.prints,
        });
    }
    let value = ran.result.map_err(Failure::of_code)?;
    let known = context.names.state.get("result");
    // An unchanged name of the state is not a result of the code.
    let untouched =
        language != Language::Prolog && known == Some(&value) && !config.code.contains("return");
    Ok(if untouched { Value::Null } else { value })
}

/// Returns the state that code receives. Within a loop the history is limited to the last attempts,
/// as for scripts in criteria, because the whole of it would be copied into the interpreter every
/// time.
fn state_of(context: &ActionContext<'_>) -> serde_json::Map<String, Value> {
    let names = context.names;
    let mut state = match context.calls {
        Some(_) => names
            .state
            .with_last_of("reflection_history", Earlier::MAX_VERSIONS),
        None => names.state.to_map(),
    };
    state.extend(names.more.to_map());
    state
}
