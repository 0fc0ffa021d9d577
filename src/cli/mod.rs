//! Everything that knows a terminal: what can be typed, what is read, what is shown.

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

/// Parses the command line, runs the command, and reports its failure. The one place where errors become
/// exit codes.
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

/// Ends a command whose command line is not one: with clap's own message and code, which is ours for usage
/// errors, too. Help and version end here as well.
fn refused(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && wants_events(std::env::args_os().skip(1)) {
        let text = error.render().to_string();
        let said = text.split("\n\n").next().unwrap_or_default();
        let said = said.strip_prefix("error: ").unwrap_or(said).trim_end();
        // If nobody reads it, there is nobody to tell.
        let _ = printer::print(&observers::Lines::end_of_failed(ExitCode::Usage, said));
    }
    // As in clap's own `exit`: that the message cannot be written does not change what happened.
    let _ = error.print();
    if error.use_stderr() {
        ExitCode::Usage
    } else {
        ExitCode::Success
    }
}

/// Whether a command line that cannot be read asks for events: then a reader waits for the one that ends them.
fn wants_events(args: impl Iterator<Item = std::ffi::OsString>) -> bool {
    let mut before = None;
    for arg in args {
        if arg == "--" {
            return false;
        }
        if arg == "--format=ndjson"
            || (arg == "ndjson" && before.is_some_and(|it| it == "--format"))
        {
            return true;
        }
        before = Some(arg);
    }
    false
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

/// Runs a command that waits for something. One thread is enough: it waits for models and little else.
fn block_on(
    command: impl Future<Output = Result<ExitCode, CliError>>,
) -> Result<ExitCode, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failure(format!("cannot start: {error}")))?;
    let result = runtime.block_on(command);
    // A model in this process may still be at work on a call that nobody waits for.
    runtime.shutdown_background();
    result
}

/// Decides on colors once: by the flag, then `NO_COLOR`, then `CLICOLOR_FORCE`, then whether the stream is a terminal. The
/// rule of the library differs: it counts an empty `NO_COLOR` as set, and `CLICOLOR_FORCE` overrides it.
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
