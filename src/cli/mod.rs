//! The command line: arguments, input and output.

mod args;
mod columns;
mod commands;
mod complete;
mod diff;
mod doctor;
mod dry_run;
mod editor;
mod error;
mod exec;
mod input;
mod interactive;
mod interrupt;
mod kept;
mod knowledge;
mod learning;
mod models;
mod observers;
mod output;
mod paint;
mod paths;
mod prices;
mod printer;
mod progress;
mod recall;
mod run_inputs;
mod settings;
mod setup;
mod store;
mod terminal;
mod verbose;
mod verdict;

use std::time::SystemTime;

use jiff::Timestamp;

use self::args::{Cli, ColorWhen, Command};
use self::error::CliError;
use crate::types::ExitCode;

/// Parses the command line, runs the command, and reports its failure. Errors become exit codes only here.
pub fn run() -> ExitCode {
    if complete::answered(std::env::args_os()) {
        return ExitCode::Success;
    }
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    #[cfg(target_os = "linux")]
    if let Ok(own) = std::env::current_exe() {
        crate::sandbox::use_watchdog(own);
    }
    set_colors(if cli.global.no_color {
        ColorWhen::Never
    } else {
        cli.global.color
    });
    match check_clock(SystemTime::now()).and_then(|()| dispatch(&cli)) {
        Ok(code) => code,
        Err(error) => {
            if Machine::of(std::env::args_os().skip(1)) == Some(Machine::Json) {
                printer::print_error(&error);
            }
            printer::report(&error);
            error.code
        }
    }
}

/// Refuses a clock whose time cannot be written as a date. Runs, events and certificates all need one.
fn check_clock(now: SystemTime) -> Result<(), CliError> {
    match Timestamp::try_from(now) {
        Ok(now) if now >= Timestamp::UNIX_EPOCH => Ok(()),
        _ => Err(
            CliError::failure("the system clock is before 1970 or after 9999")
                .hint("set the system's date and time"),
        ),
    }
}

/// Reports an invalid command line with clap's message. Also prints help and version.
fn refused(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let usage = usage_error(&error.render().to_string());
        match Machine::of(std::env::args_os().skip(1)) {
            Some(Machine::Events) => {
                // Without a reader, there is nothing to report.
                let end = observers::Lines::end_of_failed(usage.code, &usage.message);
                let _ = printer::print(&end);
            }
            Some(Machine::Json) => printer::print_error(&usage),
            None => {}
        }
    }
    // As in clap's `exit`, a failed write does not change the exit code.
    let _ = error.print();
    if error.use_stderr() {
        ExitCode::Usage
    } else {
        ExitCode::Success
    }
}

/// The parts of clap's message: the error, tips, and the usage, separated by empty lines.
fn usage_error(text: &str) -> CliError {
    let mut parts = text.split("\n\n").map(str::trim);
    let first = parts.next().unwrap_or_default();
    let error = CliError::usage(first.strip_prefix("error: ").unwrap_or(first));
    match parts.find_map(|part| part.strip_prefix("tip: ")) {
        Some(tip) => error.hint(tip),
        None => error,
    }
}

/// The program that reads stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Machine {
    /// A reader of one JSON object.
    Json,
    /// A reader of events, which expects a final event.
    Events,
}

impl Machine {
    /// Returns the reader that a command line requests, even if the rest of it is invalid.
    fn of(args: impl Iterator<Item = std::ffi::OsString>) -> Option<Self> {
        let mut before = None;
        for arg in args.take_while(|arg| arg != "--") {
            let format = match arg.to_str() {
                Some("--json") => Some("json"),
                Some(value) if before.is_some_and(|it| it == "--format") => Some(value),
                Some(arg) => arg.strip_prefix("--format="),
                None => None,
            };
            match format {
                Some("json") => return Some(Self::Json),
                Some("ndjson") => return Some(Self::Events),
                _ => before = Some(arg),
            }
        }
        None
    }
}

fn dispatch(cli: &Cli) -> Result<ExitCode, CliError> {
    match &cli.command {
        Command::Draft(args) => block_on(commands::draft::run(args, &cli.global)),
        Command::Revise(args) => block_on(commands::revise::run(args, &cli.global)),
        Command::Evaluate(args) => block_on(commands::evaluate::run(args, &cli.global)),
        Command::History(command) => block_on(commands::history::run(command, &cli.global)),
        Command::Run(args) => block_on(commands::run::run(args, &cli.global)),
        Command::Assess(args) => block_on(commands::assess::run(args, &cli.global)),
        Command::Batch(args) => block_on(commands::batch::run(args, &cli.global)),
        Command::Bench(args) => block_on(commands::bench::run(args, &cli.global)),
        Command::Worker(args) => block_on(commands::worker::run(args, &cli.global)),
        Command::Mcp(args) => block_on(commands::mcp::run(args, &cli.global)),
        Command::Memory(command) => block_on(commands::memory::run(command, &cli.global)),
        Command::Models(args) => block_on(commands::models::run(args, &cli.global)),
        Command::Criteria(command) => commands::criteria::run(command, &cli.global),
        Command::Config(command) => commands::config::run(command, &cli.global),
        Command::Doctor(args) => block_on(commands::doctor::run(args, &cli.global)),
        Command::Completions { shell } => commands::docs::completions(*shell),
        Command::Man { markdown: true, .. } => commands::docs::markdown(),
        Command::Man { out_dir, .. } => commands::docs::man(out_dir.as_deref()),
    }
}

/// Runs an async command. One thread is enough: it mostly waits for models.
fn block_on(
    command: impl Future<Output = Result<ExitCode, CliError>>,
) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failure(format!("cannot start: {error}")))?;
    let result = runtime.block_on(command);
    // The embedded model may still be busy with an abandoned call.
    runtime.shutdown_background();
    result
}

/// Decides on colours once: by the flag, then `NO_COLOR`, then `CLICOLOR_FORCE`, then whether the stream is a
/// terminal. `console` differs: it counts an empty `NO_COLOR` as set, and lets `CLICOLOR_FORCE` override it.
fn set_colors(when: ColorWhen) {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let colors = |stream: &console::Term| match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto if set("NO_COLOR") => false,
        ColorWhen::Auto if set("CLICOLOR_FORCE") => {
            std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0")
        }
        ColorWhen::Auto => stream.is_term(),
    };
    console::set_colors_enabled(colors(&console::Term::stdout()));
    console::set_colors_enabled_stderr(colors(&console::Term::stderr()));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn programs_that_read_stdout_are_known_from_any_command_line() {
        let of = |line: &str| Machine::of(line.split(' ').map(Into::into));
        assert_eq!(of("draft x"), None);
        for line in [
            "draft x --json",
            "draft --format json",
            "draft --format=json --wrong",
        ] {
            assert_eq!(of(line), Some(Machine::Json), "{line}");
        }
        assert_eq!(of("run --format ndjson x"), Some(Machine::Events));
        for line in [
            "draft -- --json",
            "evaluate --input-format json",
            "draft json",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn a_usage_error_has_the_message_and_the_tip() {
        let error = args::parse(
            ["reflect", "history", "list", "--jsn"]
                .map(Into::into)
                .into_iter(),
        );
        let usage = usage_error(&error.unwrap_err().render().to_string());
        assert_eq!(usage.message, "unexpected argument '--jsn' found");
        assert_eq!(
            usage.hint.as_deref(),
            Some("a similar argument exists: '--json'")
        );
    }

    #[test]
    fn a_clock_before_1970_or_after_9999_is_refused() {
        let year = Duration::from_hours(365 * 24);
        for (now, good) in [
            (Some(SystemTime::now()), true),
            (Some(SystemTime::UNIX_EPOCH), true),
            (SystemTime::UNIX_EPOCH.checked_sub(year), false),
            (SystemTime::UNIX_EPOCH.checked_add(year * 8000), true),
            (SystemTime::UNIX_EPOCH.checked_add(year * 8100), false),
        ] {
            assert_eq!(check_clock(now.unwrap()).is_ok(), good, "{now:?}");
        }
    }
}
