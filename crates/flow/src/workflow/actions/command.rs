//! `command` and `shell`: a user's program in a child process with limits.

use std::ffi::OsString;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::code::timeout_of;
use super::{Action, ActionCall, ActionKind};
use crate::sandbox::{CommandEnd, CommandSpec, Limits, run_command};
use crate::source::SourceError;
use crate::types::{CommandConfig, HumanDuration};
use crate::workflow::failure::Failure;
use crate::workflow::part::Part;
use crate::workflow::program::Program;
use crate::workflow::template::{self, text_of};
use crate::workflow::world::ActionContext;

pub(super) const COMMAND: ActionKind = ActionKind {
    name: "command",
    aliases: &["command.run"],
    keys: &["command", "stdin", "timeout", "check"],
    read: |call| Ok(Box::new(Command::read(call, false)?)),
};

pub(super) const SHELL: ActionKind = ActionKind {
    name: "shell",
    aliases: &["shell.run"],
    keys: &["shell", "command", "stdin", "timeout", "check"],
    read: |call| Ok(Box::new(Command::read(call, true)?)),
};

struct Command {
    words: Vec<Part>,
    shell: bool,
    stdin: Option<Part>,
    timeout: HumanDuration,
    /// Whether an exit code other than 0 is a failure.
    check: bool,
}

impl Command {
    fn read(call: &ActionCall, shell: bool) -> Result<Self, SourceError> {
        let key = if shell { "shell" } else { "command" };
        let Some(part) = call.get(key).or_else(|| call.get("command")) else {
            let hint = "add the program and its arguments";
            return Err(call.missing(key, "command", hint));
        };
        let words = if shell {
            part.text()?;
            vec![part.clone()]
        } else {
            let words = part.items();
            if words.is_empty() {
                return Err(part
                    .expected("a list of the program and its arguments")
                    .help("use `shell` for shell syntax"));
            }
            words
        };
        for (place, word) in words.iter().enumerate() {
            let text = word.text()?;
            // Text written by a model must not become code; the user has allowed only the text in
            // the file.
            if (shell || place == 0) && template::is_template(text) {
                let what = if shell {
                    "a shell command"
                } else {
                    "the program"
                };
                return Err(word
                    .error(&format!("{what} must not contain a template: a value could then run any code"))
                    .help(
                        "pass values with `stdin`, or as arguments of `command: [PROGRAM, \"{{ … }}\"]`",
                    ));
            }
            template::check(word)?;
        }
        let stdin = call.get("stdin").cloned();
        stdin.as_ref().map_or(Ok(()), template::check)?;
        Ok(Self {
            words,
            shell,
            stdin,
            timeout: match call.get("timeout") {
                Some(part) => timeout_of(part, CommandConfig::MAX_TIMEOUT)?,
                None => CommandConfig::default_timeout(),
            },
            check: call.get("check").map_or(Ok(true), Part::flag)?,
        })
    }

    fn shown(&self) -> String {
        let words: Vec<&str> = self.words.iter().filter_map(|it| it.text().ok()).collect();
        words.join(" ")
    }
}

#[async_trait(?Send)]
impl Action for Command {
    async fn run(&self, context: &ActionContext<'_>) -> Result<Value, Failure> {
        let _allowed = context
            .world
            .tools
            .may_run_programs()
            .map_err(|error| Failure::of_code(error.to_string()))?;
        let mut argv: Vec<OsString> = Vec::new();
        if self.shell {
            argv.extend(["sh".into(), "-c".into()]);
        }
        for word in &self.words {
            argv.push(template::fill_text(word, context.names)?.into());
        }
        let stdin = match &self.stdin {
            Some(part) => text_of(&template::fill_part(part, context.names)?),
            None => String::new(),
        };
        let no_place = |error: std::io::Error| {
            Failure::of_code(format!("cannot create a temporary folder: {error}"))
        };
        let mut spec = CommandSpec::new(argv).map_err(no_place)?;
        spec.stdin = stdin.into_bytes();
        spec.cwd = Some(context.world.folder.clone());
        spec.limits = Limits {
            time: self.timeout.get(),
            ..Limits::COMMAND
        };
        let ran = run_command(&spec)
            .await
            .map_err(|error| Failure::of_code(error.to_string()))?;
        let (stdout, stderr) = (ran.stdout.to_string(), ran.stderr.to_string());
        if self.check && !ran.success() {
            let said = stderr.trim();
            let how = format!("`{}` {}", self.shown(), ran.end);
            return Err(Failure::of_code(if said.is_empty() {
                how
            } else {
                format!("{how}: {said}")
            }));
        }
        let code = match ran.end {
            CommandEnd::Exited(code) => Some(code),
            _ => None,
        };
        Ok(json!({
            "stdout": stdout,
            "stderr": stderr,
            "exit_code": code,
            "success": ran.success(),
        }))
    }

    fn programs(&self, list: &mut Vec<Program>) {
        if let Some(part) = self.words.first() {
            let shown = if self.shell {
                format!("sh -c {}", self.shown())
            } else {
                self.shown()
            };
            list.push(Program::of_command(shown, part));
        }
    }

    fn answer<'r>(&self, result: &'r Value) -> &'r Value {
        &result["stdout"]
    }

    fn draft(&self, result: Value) -> Value {
        result.get("stdout").cloned().unwrap_or(result)
    }
}
