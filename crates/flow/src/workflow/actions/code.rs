//! `run:`: code in Python, Lua or Prolog, as scripts of criteria run.

use async_trait::async_trait;
use serde_json::Value;

use super::{Action, Call, Kind};
use crate::evaluate::Earlier;
use crate::sandbox::{Language, Limits, ScriptRequest};
use crate::source::SourceError;
use crate::types::{HumanDuration, ScriptConfig, ScriptLanguage};
use crate::workflow::event::Event;
use crate::workflow::failure::Failure;
use crate::workflow::part::Part;
use crate::workflow::program::Program;
use crate::workflow::world::Scene;

pub(super) const KIND: Kind = Kind {
    name: "run",
    aliases: &["code.run"],
    keys: &["run", "language", "timeout"],
    read: |call| Ok(Box::new(Code::read(call)?)),
};

/// The languages, as they are written.
const LANGUAGES: [&str; 3] = ["python", "lua", "prolog"];

pub(super) struct Code {
    config: ScriptConfig,
    part: Part,
}

impl Code {
    fn read(call: &Call) -> Result<Self, SourceError> {
        let Some(run) = call.get("run") else {
            return Err(call.missing("run", "run", "give the code"));
        };
        // Also as an object, as the reference has it: `run: {language: lua, code: …}`.
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

/// A time: a number of seconds, or a text as `90s`.
pub(super) fn timeout_of(part: &Part, most: HumanDuration) -> Result<HumanDuration, SourceError> {
    let wanted = || part.expected("a time, such as `30` (seconds) or `2m`");
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
        return Err(part.error(&format!("the longest time is {most}")));
    }
    Ok(time)
}

#[async_trait(?Send)]
impl Action for Code {
    async fn run(&self, scene: &Scene<'_>) -> Result<Value, Failure> {
        let output = scene
            .names
            .state
            .get("reflection_output")
            .cloned()
            .unwrap_or(Value::Null);
        run_script(&self.config, &output, scene).await
    }

    fn programs(&self, list: &mut Vec<Program>) {
        list.extend(Program::of_code(&self.config, &self.part));
    }
}

/// Runs a script for its value. It sees the state as `state`, and each of its names by itself.
pub(in crate::workflow) async fn run_script(
    config: &ScriptConfig,
    output: &Value,
    scene: &Scene<'_>,
) -> Result<Value, Failure> {
    let language = crate::evaluate::interpreter(config.language);
    let request = ScriptRequest {
        code: config.code.clone(),
        output: output.clone(),
        state: state_of(scene),
        bare_names: true,
    };
    let limits = Limits {
        time: config.timeout.get(),
        memory: config.memory.bytes(),
        ..Limits::SCRIPT
    };
    let ran = scene
        .world
        .tools
        .run_script(language, &request, &limits)
        .await;
    if !ran.prints.trim().is_empty() {
        scene.world.emit(&Event::Print {
            node: scene.node,
            text: &ran.prints,
        });
    }
    let value = ran.result.map_err(Failure::of_code)?;
    let known = scene.names.state.get("result");
    // A name of the state that the code has not touched is nothing that it returned.
    let untouched =
        language != Language::Prolog && known == Some(&value) && !config.code.contains("return");
    Ok(if untouched { Value::Null } else { value })
}

/// What code sees. Within a loop the history is that of the last attempts, as scripts of criteria see it: the
/// whole of it would be copied into the interpreter again and again.
fn state_of(scene: &Scene<'_>) -> serde_json::Map<String, Value> {
    let names = scene.names;
    let mut state = match scene.calls {
        Some(_) => names
            .state
            .with_last_of("reflection_history", Earlier::MAX_VERSIONS),
        None => names.state.to_map(),
    };
    state.extend(names.more.to_map());
    state
}
