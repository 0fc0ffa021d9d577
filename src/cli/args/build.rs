//! Builds the command line from its definitions, and parses what was typed.
//!
//! clap's derive cannot say some things that hold for all commands alike. They are added here:
//!
//! - every flag without a value that sets a [`Switch`] has an opposite: `--memory` and `--no-memory`;
//! - every command with `--format json` takes `--json`;
//! - the long help of an option names the environment variable that sets the same;
//! - the first screen shows the main commands first.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

use clap::builder::ArgPredicate;
use clap::{Arg, ArgAction, Command, CommandFactory as _, FromArgMatches as _};

use super::Cli;
use crate::config::VARIABLES;
use crate::types::{OPPOSITE, Switch};

/// Commands that most people need rarely.
const MORE: [&str; 8] = [
    "bench",
    "mcp",
    "assess",
    "memory",
    "worker",
    "completions",
    "man",
    "help",
];

/// Returns the definition of the command line.
pub(in crate::cli) fn command() -> Command {
    let command = complete(Cli::command());
    let template = template(&command);
    command.help_template(template).after_long_help(format!(
        "{}\n\n{}",
        super::LONG_HELP,
        environment()
    ))
}

/// Parses the arguments of this process, or these in tests.
pub(in crate::cli) fn parse(args: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = command();
    let args = spell_out(args, &switches(&command));
    let matches = command.try_get_matches_from_mut(args)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Adds what holds for all commands to this one and those below it.
fn complete(command: Command) -> Command {
    let command = command.mut_subcommands(complete);
    let opposites: Vec<Arg> = command.get_arguments().filter_map(opposite).collect();
    let mut command = command.mut_args(|arg| {
        let arg = match opposite(&arg) {
            Some(other) => {
                let id = other.get_id().clone();
                arg.default_value_if(id.clone(), ArgPredicate::Equals("true".into()), OPPOSITE)
                    .overrides_with(id)
            }
            None => arg,
        };
        with_variable(arg)
    });
    for arg in opposites {
        command = command.arg(arg);
    }
    if has_json(&command) {
        let mut json = Arg::new("json_format")
            .long("json")
            .action(ArgAction::SetTrue)
            .conflicts_with("format")
            .hide_short_help(true)
            .help("Same as `--format json`");
        if let Some(heading) = heading_of(&command, "format") {
            json = json.help_heading(heading);
        }
        command = command
            .mut_arg("format", |arg| {
                let given = ArgPredicate::Equals("true".into());
                arg.default_value_if("json_format", given, "json")
            })
            .arg(json);
    }
    command
}

/// Whether the command takes `--format json`, and no `--json` of its own.
fn has_json(command: &Command) -> bool {
    let takes_json = command.get_arguments().any(|arg| {
        arg.get_id() == "format"
            && arg
                .get_possible_values()
                .iter()
                .any(|value| value.get_name() == "json")
    });
    takes_json && command.get_arguments().all(|arg| arg.get_id() != "json")
}

fn heading_of(command: &Command, id: &str) -> Option<String> {
    let mut all = command.get_arguments();
    let arg = all.find(|arg| arg.get_id() == id)?;
    arg.get_help_heading().map(str::to_owned)
}

/// Whether an argument sets a [`Switch`].
fn is_switch(arg: &Arg) -> bool {
    arg.get_value_parser().type_id() == TypeId::of::<Switch<bool>>()
}

/// The hidden opposite of a flag that sets a [`Switch`]: `--no-memory` of `--memory`, `--adapt` of `--no-adapt`.
fn opposite(arg: &Arg) -> Option<Arg> {
    if !is_switch(arg) {
        return None;
    }
    let long = arg.get_long()?;
    let other = match long.strip_prefix("no-") {
        Some(positive) => positive.to_owned(),
        None => format!("no-{long}"),
    };
    Some(
        Arg::new(format!("opposite_of_{}", arg.get_id()))
            .long(other)
            .action(ArgAction::SetTrue)
            .overrides_with(arg.get_id().clone())
            .hide(true)
            .help(format!("The opposite of `--{long}`")),
    )
}

/// Names the variable of the environment that sets the same in the long help.
fn with_variable(arg: Arg) -> Arg {
    let id = arg.get_id().as_str();
    let variable = VARIABLES.iter().find(|variable| match variable.key {
        Some(key) => key.rsplit('.').next() == Some(id),
        None => id == "config" && variable.name == "REFLECT_CONFIG",
    });
    let (Some(variable), Some(_), Some(help)) = (variable, arg.get_long(), arg.get_help()) else {
        return arg;
    };
    let long = arg.get_long_help().unwrap_or(help);
    let long = format!("{long} [env: {}]", variable.name);
    arg.long_help(long)
}

/// The template of the first screen: the main commands, then the others.
fn template(command: &Command) -> String {
    let style = command.get_styles();
    let (header, literal) = (style.get_header(), style.get_literal());
    let (main, more): (Vec<_>, Vec<_>) = command
        .get_subcommands()
        .map(|it| (it.get_name(), it.get_about().map(ToString::to_string)))
        .partition(|(name, _)| !MORE.contains(name));
    let help = ("help", Some("Print the help of a command".to_owned()));
    let more = more.into_iter().chain([help]).collect();
    let mut text = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (heading, commands) in [("Commands", main), ("More", more)] {
        let commands: Vec<(&str, Option<String>)> = commands;
        // Writing to a text does not fail.
        let _ = writeln!(text, "\n{header}{heading}:{header:#}");
        for (name, about) in commands {
            let about = about.unwrap_or_default();
            let _ = writeln!(text, "  {literal}{name:<12}{literal:#} {about}");
        }
    }
    let _ = write!(
        text,
        "\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    text
}

/// The variables of the environment, for the long help.
fn environment() -> String {
    let mut text = String::from("Environment:");
    for variable in VARIABLES {
        // Writing to a text does not fail.
        let _ = write!(text, "\n  {:<22} {}", variable.name, variable.help);
    }
    text
}

/// All switches of all commands: the spelling that sets one, and the one that clears it.
fn switches(command: &Command) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for arg in command.get_arguments().filter(|arg| is_switch(arg)) {
        if let Some(long) = arg.get_long() {
            let positive = long.strip_prefix("no-").unwrap_or(long);
            found.insert(format!("--{positive}"), format!("--no-{positive}"));
        }
    }
    for below in command.get_subcommands() {
        found.extend(switches(below));
    }
    found
}

/// Replaces the former spelling of switches, `--memory=false` or `--memory false`, by the flag or its opposite. A value
/// other than `true` or `false` is none of theirs.
fn spell_out(
    args: impl Iterator<Item = OsString>,
    switches: &BTreeMap<String, String>,
) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut args = args.peekable();
    while let Some(arg) = args.next() {
        if arg == "--" {
            all.push(arg);
            break;
        }
        let text = arg.to_str().unwrap_or_default();
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(name, value)| (name, Some(value)));
        let Some((on, off)) = switches.get_key_value(name) else {
            all.push(arg);
            continue;
        };
        let is_value = |value: &OsStr| value == "true" || value == "false";
        let value = match value {
            Some(value) => Some(value.to_owned()),
            None => args
                .next_if(|next| is_value(next))
                .and_then(|next| next.into_string().ok()),
        };
        match value.as_deref() {
            Some("false") => all.push(off.into()),
            Some("true") | None => all.push(on.into()),
            Some(_) => all.push(arg),
        }
    }
    all.extend(args);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command as Parsed;

    fn draft(line: &[&str]) -> Result<super::super::DraftArgs, String> {
        let args = ["reflect", "draft"].iter().chain(line);
        match parse(args.map(OsString::from)) {
            Ok(Cli {
                command: Parsed::Draft(args),
                ..
            }) => Ok(*args),
            Ok(_) => Err("another command".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn a_switch_has_an_opposite_and_its_former_spelling() {
        let memory = |line: &[&str]| draft(line).map(|args| (args.run.memory, args.prompt));
        let x = || Some("x".to_owned());
        assert_eq!(memory(&["x"]), Ok((None, x())));
        for on in [&["--memory", "x"][..], &["--memory=true", "x"]] {
            assert_eq!(memory(on), Ok((Some(true), x())), "{on:?}");
        }
        for off in [
            &["--no-memory", "x"][..],
            &["--memory=false", "x"],
            &["--memory", "false", "x"],
            &["--memory", "--no-memory", "x"],
        ] {
            assert_eq!(memory(off), Ok((Some(false), x())), "{off:?}");
        }
        let last = memory(&["--no-memory", "--memory", "x"]);
        assert_eq!(last, Ok((Some(true), x())));
        // Behind `--` there are no flags.
        let (set, prompt) = memory(&["--", "--memory"]).unwrap();
        assert_eq!((set, prompt.as_deref()), (None, Some("--memory")));
        assert!(memory(&["--memory=maybe", "x"]).is_err());

        let adapt = |line: &[&str]| draft(line).unwrap().run.flow.adapt;
        assert_eq!(adapt(&["x"]), None);
        assert_eq!(adapt(&["--no-adapt", "x"]), Some(false));
        assert_eq!(adapt(&["--adapt", "false", "x"]), Some(false));
        assert_eq!(adapt(&["--adapt", "true", "x"]), Some(true));
        assert_eq!(adapt(&["--adapt", "x"]), Some(true));
    }

    #[test]
    fn json_is_a_format() {
        use super::super::Format;
        let format = |line: &[&str]| draft(line).map(|args| args.run.output.format);
        assert_eq!(format(&["x"]), Ok(Format::Text));
        assert_eq!(format(&["--json", "x"]), Ok(Format::Json));
        assert!(format(&["--json", "--format", "text", "x"]).is_err());
    }

    #[test]
    fn former_flags_are_accepted() {
        let args = draft(&[
            "--grey-zone",
            "0.2",
            "--timeout-total",
            "5m",
            "--timeout-idle",
            "1m",
            "--detect-oscillation",
            "false",
            "--include-prior-versions",
            "true",
            "--reflect-on-error",
            "x",
        ])
        .unwrap();
        let flow = &args.run.flow;
        assert_eq!(flow.tie_margin, Some(0.2));
        assert_eq!(flow.detect_oscillation, Some(false));
        assert_eq!(flow.include_prior_versions, Some(true));
        assert_eq!(flow.reflect_on_error, Some(true));
        let limits = &args.run.model.limits;
        assert_eq!(limits.timeout_total.as_deref(), Some("5m"));
        assert_eq!(limits.timeout_idle.as_deref(), Some("1m"));
    }
}
