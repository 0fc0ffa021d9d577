//! Background knowledge for the models: context files, and evidence from files and folders.

use std::path::PathBuf;
use std::sync::Arc;

use super::args::KnowledgeArgs;
use super::error::CliError;
use super::printer;
use super::settings::Plan;
use crate::evidence::{Context, DEFAULT_MESSAGES, DEFAULT_TOKENS, Gatherer};
use crate::text::counted;
use crate::types::Task;

/// Adds the contents of the context file to the task.
pub(super) fn read_context(
    args: &KnowledgeArgs,
    plan: &Plan,
    task: &mut Task,
) -> Result<(), CliError> {
    if let Some(path) = &args.context {
        let messages = plan.settings().context_messages;
        Context::read(path)?.give_to(task, messages.unwrap_or(DEFAULT_MESSAGES));
    }
    Ok(())
}

/// Reads and indexes the evidence files; `None` if none are given.
pub(super) fn open_evidence(
    args: &KnowledgeArgs,
    plan: &Plan,
    quiet: bool,
) -> Result<Option<Arc<Gatherer>>, CliError> {
    look_in(&args.evidence, plan, quiet)
}

/// Reads and indexes these files and folders; `None` if there are none.
pub(super) fn look_in(
    paths: &[PathBuf],
    plan: &Plan,
    quiet: bool,
) -> Result<Option<Arc<Gatherer>>, CliError> {
    if paths.is_empty() {
        return Ok(None);
    }
    let tokens = plan.settings().evidence_tokens.unwrap_or(DEFAULT_TOKENS);
    let gatherer = Gatherer::open(paths, tokens)?;
    if !quiet {
        let files = counted(gatherer.files(), "file");
        let passages = counted(gatherer.passages(), "passage");
        printer::say(&format!("evidence: searching {files}, {passages}"));
    }
    Ok(Some(Arc::new(gatherer)))
}
