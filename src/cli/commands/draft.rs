//! `reflect draft`: runs the loop from a prompt.

use super::session;
use crate::cli::args::{DraftArgs, GlobalArgs};
use crate::cli::error::CliError;
use crate::cli::input::{self, Sources};
use crate::engine::Start;
use crate::types::ExitCode;

/// Runs the loop and prints the answer.
pub(in crate::cli) async fn run(
    args: &DraftArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    let read = || {
        let task = input::read_task(&Sources {
            prompt: args.prompt.as_deref(),
            prompt_file: args.prompt_file.as_deref(),
            editor: args.editor,
            vars: &args.vars,
            files: &args.run.files,
            system: args.run.system.as_deref(),
            ignore_stdin: args.ignore_stdin,
            quiet: global.quiet,
        })?;
        Ok((task, Start::Task))
    };
    Box::pin(session::run(&args.run, global, true, read)).await
}
