//! `reflect revise`: runs the loop from an existing text, or corrects it once.

use std::path::Path;

use super::session;
use crate::cli::args::{GlobalArgs, ReviseArgs};
use crate::cli::error::CliError;
use crate::cli::input::{self, Input};
use crate::engine::Start;
use crate::evaluate::read_errors;
use crate::types::{ExitCode, Issue};

/// Revises the text and prints the answer.
pub(in crate::cli) async fn run(
    args: &ReviseArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    let read = || {
        let task = input::read_known_task(
            args.prompt.as_deref(),
            args.prompt_file.as_deref(),
            args.run.system.as_deref(),
            &args.run.files,
        )?;
        Ok((task, start(args, global.quiet)?))
    };
    Box::pin(session::run(&args.run, global, args.errors.is_none(), read)).await
}

/// Reads the text, and its errors if they are given.
fn start(args: &ReviseArgs, quiet: bool) -> Result<Start, CliError> {
    let text = Input::of(args.text.as_deref().unwrap_or(Path::new("-")));
    let errors = args.errors.as_deref().map(Input::of);
    if matches!((&text, &errors), (Input::Stdin, Some(Input::Stdin))) {
        return Err(
            CliError::usage("the text and its errors cannot both come from stdin")
                .hint("pass one of them as a file: `reflect revise FILE --errors -`"),
        );
    }
    let text = text.read_text("revise", quiet)?;
    Ok(match errors {
        None => Start::Text(text),
        Some(errors) => Start::Correction {
            text,
            issues: issues(&errors, quiet)?,
        },
    })
}

/// Reads the errors that the user lists.
fn issues(errors: &Input<'_>, quiet: bool) -> Result<Vec<Issue>, CliError> {
    let issues = read_errors(&errors.source("the errors", quiet)?)?;
    if issues.is_empty() {
        let name = errors.name();
        return Err(
            CliError::usage(format!("{name} lists no errors; there is nothing to fix"))
                .hint("write one error per line, or remove `--errors` to evaluate the text"),
        );
    }
    Ok(issues)
}
