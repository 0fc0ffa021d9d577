//! `reflect completions`, `reflect man` and the command reference, generated from the clap definitions.

use std::fmt::Write as _;
use std::path::Path;

use clap_complete::Shell;

use crate::cli::args;
use crate::cli::error::CliError;
use crate::cli::{complete, printer};
use crate::config::VARIABLES;
use crate::types::ExitCode;

/// The width of help text in the reference, in columns.
const WIDTH: usize = 100;

/// Environment variables that `reflect` reads but does not define.
const FOREIGN: [(&str, &str); 13] = [
    (
        "OPENAI_API_KEY",
        "the key for OpenAI; other providers have a similar variable",
    ),
    (
        "OPENAI_BASE_URL",
        "the address of the provider `openai`; also `OPENAI_API_BASE`",
    ),
    ("OLLAMA_HOST", "address of Ollama"),
    ("OLLAMA_API_KEY", "the key for Ollama, if it needs one"),
    ("HF_ENDPOINT", "the server for embedded models"),
    ("HF_TOKEN", "its token"),
    ("NO_COLOR", "no colors, if not empty"),
    ("CLICOLOR_FORCE", "colors without a terminal, if not 0"),
    ("VISUAL", "the editor; overrides `EDITOR`"),
    ("EDITOR", "the editor"),
    (
        "HTTPS_PROXY",
        "the proxy for servers on other machines; also `HTTP_PROXY`",
    ),
    ("NO_PROXY", "servers to reach without the proxy"),
    ("SSL_CERT_FILE", "certificates to trust"),
];

/// Prints the completion script of a shell.
pub(in crate::cli) fn completions(shell: Shell) -> Result<ExitCode, CliError> {
    printer::print(&complete::script(shell)?)?;
    Ok(ExitCode::Success)
}

/// Prints the reference of all commands: the long help of each, and the environment.
pub(in crate::cli) fn markdown() -> Result<ExitCode, CliError> {
    let mut out = String::from(
        "# The command line of `reflect`\n\nMade by `reflect man --markdown`; do not edit.\n\n",
    );
    let mut all = args::command().term_width(WIDTH);
    all.build();
    let mut bodies = String::new();
    describe(&all, &mut out, &mut bodies);
    out.push_str("- [Environment](#environment)\n");
    out.push_str(&bodies);
    out.push_str("\n## Environment\n\n| variable | what it is for |\n|---|---|\n");
    let own = VARIABLES.iter().map(|it| (it.name, it.help));
    for (name, help) in own.chain(FOREIGN) {
        // Writing to a `String` does not fail.
        let _ = writeln!(out, "| `{name}` | {help} |");
    }
    printer::print(&out)?;
    Ok(ExitCode::Success)
}

/// Adds a line of contents and a section for a command and each of its subcommands.
fn describe(command: &clap::Command, contents: &mut String, bodies: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let depth = name.split(' ').count() - 1;
    let link = name.replace(' ', "-");
    // Writing to a `String` does not fail.
    let _ = writeln!(contents, "{}- [{name}](#{link})", "  ".repeat(depth));
    let help = command.clone().render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let help = lines.join("\n");
    let _ = write!(bodies, "\n## {name}\n\n```text\n{help}\n```\n");
    let below = command
        .get_subcommands()
        .filter(|it| it.get_name() != "help");
    for command in below.filter(|it| !it.is_hide_set()) {
        describe(command, contents, bodies);
    }
}

/// Prints the manual page of the program, or writes one for every command into a folder.
pub(in crate::cli) fn man(out_dir: Option<&Path>) -> Result<ExitCode, CliError> {
    let failed = |error: std::io::Error| CliError::failure(error.to_string());
    if let Some(folder) = out_dir {
        fs_err::create_dir_all(folder).map_err(failed)?;
        clap_mangen::generate_to(args::command(), folder).map_err(failed)?;
        return Ok(ExitCode::Success);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(args::command())
        .render(&mut page)
        .map_err(failed)?;
    printer::print(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::Success)
}
