//! `reflect completions` and `reflect man`: made from the definitions of the command line itself.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::args::Cli;
use crate::cli::error::CliError;
use crate::cli::printer;
use crate::types::ExitCode;

/// Prints the completion script of a shell.
pub(in crate::cli) fn completions(shell: Shell) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "reflect", &mut script);
    printer::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Success)
}

/// Prints the manual page of the program, or writes one for every command into a folder.
pub(in crate::cli) fn man(out_dir: Option<&Path>) -> Result<ExitCode, CliError> {
    let failed = |error: std::io::Error| CliError::failure(error.to_string());
    if let Some(folder) = out_dir {
        fs_err::create_dir_all(folder).map_err(failed)?;
        clap_mangen::generate_to(Cli::command(), folder).map_err(failed)?;
        return Ok(ExitCode::Success);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut page)
        .map_err(failed)?;
    printer::print(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::Success)
}
