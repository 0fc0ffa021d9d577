//! Permission to run the programs that criteria name. It is checked before anything else happens.

use std::fmt::Write as _;
use std::path::Path;

use super::error::CliError;
use super::settings::Plan;
use crate::config::Config;
use crate::engine::WriterTool;
use crate::evaluate::{ExecPermission, Tools};
use crate::sandbox::{Language, check_interpreter, check_program};
use crate::types::{CommandConfig, Criteria, Criterion, Evaluator, Origin, ScriptConfig};
use crate::workflow::{self, ProgramKind};

/// The maximum number of lines of a script to show.
const MAX_LINES: usize = 100;

/// Returns the tools that the criteria of this run may use; none if the run evaluates nothing. `allowed` is
/// `--allow-exec`.
///
/// # Errors
/// If they run programs without permission, or programs that do not exist.
pub(super) fn tools(plan: &Plan, allowed: bool) -> Result<Tools, CliError> {
    if !plan.judged {
        return Ok(Tools::none());
    }
    let programs: Vec<Program<'_>> = plan
        .criteria
        .criteria
        .iter()
        .filter_map(Program::of)
        .collect();
    let refused = refused(&programs, allowed, &plan.config, |it| {
        it.origin.file.as_deref()
    });
    if !refused.is_empty() {
        return Err(not_allowed(&refused, plan.config.user_path()));
    }
    for program in &programs {
        program.check()?;
    }
    let is_script = |criterion: &Criterion| matches!(criterion.evaluator, Evaluator::Script(_));
    let tools = if plan.criteria.criteria.iter().any(is_script) {
        interpreters()?
    } else {
        Tools::none()
    };
    Ok(with_leave(tools, &programs))
}

/// Whether criteria run programs that need permission.
pub(super) fn runs_programs(criteria: &Criteria) -> bool {
    criteria.criteria.iter().any(|it| Program::of(it).is_some())
}

/// Returns the tools that a workflow may use. `allowed` is `--allow-exec`.
///
/// # Errors
/// If it runs programs without permission.
pub(super) fn workflow_tools(
    programs: &[workflow::Program],
    config: &Config,
    allowed: bool,
) -> Result<Tools, CliError> {
    let refused = refused(programs, allowed, config, |it| it.file.as_deref());
    if !refused.is_empty() {
        let mut message =
            "this workflow runs code on this machine, which needs your permission:".to_owned();
        for program in &refused {
            let place = match &program.file {
                Some(file) => format!("{}:{}", file.display(), program.line),
                None => format!("line {}", program.line),
            };
            let _ = write!(message, "\n  {place}: the node `{}` ", program.node);
            match &program.what {
                ProgramKind::Command(command) => {
                    let _ = write!(message, "runs the command\n      {command}");
                }
                ProgramKind::Script(language, code) => {
                    let _ = write!(message, "runs this {language} code");
                    show_code(code, &mut message);
                }
            }
        }
        let file = refused.iter().find_map(|it| it.file.as_deref());
        return Err(CliError::usage(visible(&message)).hint(how_to_allow(file, config.user_path())));
    }
    for program in programs {
        if let ProgramKind::Script(language, _) = &program.what {
            check_interpreter(*language).map_err(|problem| {
                CliError::usage(format!("node `{}` cannot run: {problem}", program.node))
            })?;
        }
    }
    // Lua needs no permission, and file conditions may use it.
    Ok(with_leave(interpreters()?, programs))
}

/// Returns the programs allowed neither by `--allow-exec` nor by trust in their file.
fn refused<'p, P>(
    programs: &'p [P],
    allowed: bool,
    config: &Config,
    file: fn(&P) -> Option<&Path>,
) -> Vec<&'p P> {
    let trusted = |program: &P| file(program).is_some_and(|file| config.trusts(file));
    programs
        .iter()
        .filter(|program| !allowed && !trusted(program))
        .collect()
}

/// Returns the tools that run scripts in a worker process of this program.
fn interpreters() -> Result<Tools, CliError> {
    let own = std::env::current_exe().map_err(|error| {
        CliError::failure(format!(
            "cannot find the reflect program to run scripts: {error}"
        ))
    })?;
    Ok(Tools::with_worker(own))
}

/// Adds permission to run these allowed programs; unchanged if there are none.
fn with_leave<P>(tools: Tools, programs: &[P]) -> Tools {
    if programs.is_empty() {
        tools
    } else {
        tools.allow(ExecPermission::given_by_user())
    }
}

/// Writes the first `MAX_LINES` lines of a script.
fn show_code(code: &str, out: &mut String) {
    let lines = code.trim_end().lines();
    let count = lines.clone().count();
    for line in lines.take(MAX_LINES) {
        let _ = write!(out, "\n      {line}");
    }
    if count > MAX_LINES {
        let _ = write!(out, "\n      [... {} more lines ...]", count - MAX_LINES);
    }
}

/// Returns the writer's tools, in the current folder. `allowed` as for [`tools`].
///
/// # Errors
/// If one is not a valid command, is not allowed, or does not exist.
pub(super) fn writer_tools(typed: &[String], allowed: bool) -> Result<Vec<WriterTool>, CliError> {
    let folder = std::env::current_dir()
        .map_err(|error| CliError::failure(format!("cannot get the current directory: {error}")))?;
    writer_tools_in(Some(&folder), typed, allowed)
}

/// Returns the writer's tools. They run in this folder, or else in a new temporary folder each time.
pub(super) fn writer_tools_in(
    folder: Option<&Path>,
    typed: &[String],
    allowed: bool,
) -> Result<Vec<WriterTool>, CliError> {
    if typed.is_empty() {
        return Ok(Vec::new());
    }
    let mut commands = Vec::new();
    for text in typed {
        let command = CommandConfig::parse(text)
            .map_err(|problem| CliError::usage(format!("--tool \"{text}\": {problem}")))?;
        commands.push(command);
    }
    if !allowed {
        let mut message =
            "these tools run on this machine, which needs your permission:".to_owned();
        for command in &commands {
            let _ = write!(message, "\n  {}", command.shown());
        }
        return Err(
            CliError::usage(visible(&message)).hint("if you trust this code, add `--allow-exec`")
        );
    }
    let beside = folder.map_or_else(std::env::temp_dir, Path::to_owned);
    let mut tools = Vec::new();
    for command in commands {
        let program = command.command.first().map_or("", String::as_str);
        check_program(program, &beside)
            .map_err(|error| CliError::usage(format!("--tool \"{}\": {error}", command.shown())))?;
        let command = CommandConfig {
            cwd: folder.map(Path::to_owned),
            ..command
        };
        tools.push(WriterTool::new(command, ExecPermission::given_by_user()));
    }
    Ok(tools)
}

/// Checks that the tools named for this call exist.
///
/// # Errors
/// If one does not exist.
pub(super) fn check_names(tools: &[WriterTool], named: Option<&[String]>) -> Result<(), CliError> {
    let is_there = |name: &String| name.is_empty() || tools.iter().any(|it| it.name() == name);
    let Some(missing) = named.into_iter().flatten().find(|name| !is_there(name)) else {
        return Ok(());
    };
    let there: Vec<String> = tools
        .iter()
        .map(|tool| format!("`{}`", tool.name()))
        .collect();
    let hint = if there.is_empty() {
        "pass it with `--tool`".to_owned()
    } else {
        format!("tools: {}", there.join(", "))
    };
    Err(CliError::usage(format!("reflect_on_tools: no tool named `{missing}`")).hint(hint))
}

/// A program that a criterion runs on this machine.
struct Program<'c> {
    criterion: &'c str,
    origin: &'c Origin,
    kind: Kind<'c>,
}

enum Kind<'c> {
    Command(&'c CommandConfig),
    Script(Language, &'c ScriptConfig),
}

impl<'c> Program<'c> {
    /// Returns the program that a criterion runs; `None` if it runs nothing that needs permission.
    fn of(criterion: &'c Criterion) -> Option<Self> {
        let (origin, kind) = match &criterion.evaluator {
            Evaluator::Command(config) => (&config.origin, Kind::Command(config)),
            Evaluator::Script(config) => {
                let language = crate::evaluate::interpreter(config.language);
                if language == Language::Lua {
                    return None;
                }
                (&config.origin, Kind::Script(language, config))
            }
            _ => return None,
        };
        Some(Self {
            criterion: &criterion.name,
            origin,
            kind,
        })
    }

    /// Checks that the program exists.
    fn check(&self) -> Result<(), CliError> {
        let problem = match &self.kind {
            Kind::Script(language, _) => check_interpreter(*language).err().map(|e| e.to_string()),
            Kind::Command(config) => {
                let folder = config.cwd.as_deref().unwrap_or(Path::new("."));
                let program = config.command.first().map_or("", String::as_str);
                check_program(program, folder).err().map(|e| e.to_string())
            }
        };
        match problem {
            Some(problem) => Err(CliError::usage(format!(
                "{}: criterion `{}` cannot be checked: {problem}",
                self.place(),
                self.criterion
            ))),
            None => Ok(()),
        }
    }

    /// Returns its position in the criteria.
    fn place(&self) -> String {
        match &self.origin.file {
            Some(file) => format!("{}:{}", file.display(), self.origin.line),
            None => "the criteria".to_owned(),
        }
    }

    /// Writes its position and exactly what would run.
    fn show(&self, out: &mut String) {
        let _ = write!(out, "\n  {}: `{}` ", self.place(), self.criterion);
        match &self.kind {
            Kind::Command(config) => {
                let _ = write!(out, "runs the command\n      {}", config.shown());
                if let Some(cwd) = &config.cwd {
                    let _ = write!(out, "\n      in the folder {}", cwd.display());
                }
                if !config.env.is_empty() {
                    let names = config.env.join(", ");
                    let _ = write!(
                        out,
                        "\n      with access to the environment variables {names}"
                    );
                }
            }
            Kind::Script(language, config) => {
                let _ = write!(out, "runs this {language} script");
                if let Some(script) = &config.origin.script {
                    let _ = write!(out, " of {}", script.display());
                }
                show_code(&config.code, out);
            }
        }
    }
}

fn not_allowed(refused: &[&Program<'_>], user_file: Option<&Path>) -> CliError {
    let mut message =
        "these criteria run code on this machine, which needs your permission:".to_owned();
    for program in refused {
        program.show(&mut message);
    }
    let file = refused.iter().find_map(|it| it.origin.file.as_deref());
    CliError::usage(visible(&message)).hint(how_to_allow(file, user_file))
}

/// Returns the hint on how to allow code from this file.
fn how_to_allow(file: Option<&Path>, user_file: Option<&Path>) -> String {
    let entry = trust_entry("exec", file, user_file);
    let always = entry.map_or_else(String::new, |entry| format!(", or {entry}"));
    format!("if you trust this code, add `--allow-exec`{always}")
}

/// Returns how to trust a file permanently, under a key of `[trust]`; `None` if the file has no path or the
/// user has no configuration.
pub(super) fn trust_entry(
    key: &str,
    file: Option<&Path>,
    user_file: Option<&Path>,
) -> Option<String> {
    let (file, config) = file.and_then(Path::to_str).zip(user_file)?;
    let entry = toml::Value::String(file.to_owned());
    let config = config.display();
    Some(format!(
        "always allow it with these lines in {config}:\n  [trust]\n  {key} = [{entry}]"
    ))
}

/// Escapes characters that change the text direction. They could show code in another order than it runs in.
fn visible(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().fold(String::new(), |mut out, c| {
        if turns(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        out
    })
}
