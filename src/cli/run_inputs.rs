//! The inputs of a command, read and checked, for real and dry runs.

use std::sync::Arc;

use super::args::{EvaluateArgs, RunArgs};
use super::error::CliError;
use super::settings::{self, Plan};
use super::{exec, input, knowledge};
use crate::engine::{Start, WriterTool};
use crate::evaluate::Tools;
use crate::evidence::Gatherer;
use crate::prompt::Templates;
use crate::types::Task;

/// The inputs of a command apart from its models.
pub(super) struct RunInputs {
    pub(super) task: Task,
    /// The tools that the criteria may run.
    pub(super) tools: Tools,
    /// The tools whose results the writer sees.
    pub(super) writer_tools: Vec<WriterTool>,
    /// The index that evidence is searched in.
    pub(super) evidence: Option<Arc<Gatherer>>,
    /// The user's prompt templates.
    pub(super) templates: Option<Arc<Templates>>,
}

impl RunInputs {
    /// Reads the inputs of a run of the loop. `read` reads the task and the initial text.
    pub(super) fn of_run(
        args: &RunArgs,
        plan: &Plan,
        quiet: bool,
        read: impl FnOnce() -> Result<(Task, Start), CliError>,
    ) -> Result<(Self, Start), CliError> {
        let tools = exec::tools(plan, args.allow_exec)?;
        let templates = settings::templates(plan)?;
        let writer_tools = exec::writer_tools(&args.tools, args.allow_exec)?;
        exec::check_names(&writer_tools, args.flow.reflect_on_tools.as_deref())?;
        let (mut task, start) = read()?;
        knowledge::read_context(&args.knowledge, plan, &mut task)?;
        let inputs = Self {
            task,
            tools,
            writer_tools,
            evidence: knowledge::open_evidence(&args.knowledge, plan, quiet)?,
            templates,
        };
        Ok((inputs, start))
    }

    /// Reads the inputs of an evaluation, except for the texts.
    pub(super) fn of_texts(
        args: &EvaluateArgs,
        plan: &Plan,
        quiet: bool,
    ) -> Result<Self, CliError> {
        let tools = exec::tools(plan, args.allow_exec)?;
        let templates = settings::templates(plan)?;
        let mut task = input::read_known_task(
            args.prompt.as_deref(),
            args.prompt_file.as_deref(),
            args.system.as_deref(),
            &args.files,
        )?;
        knowledge::read_context(&args.knowledge, plan, &mut task)?;
        Ok(Self {
            task,
            tools,
            writer_tools: Vec::new(),
            evidence: knowledge::open_evidence(&args.knowledge, plan, quiet)?,
            templates,
        })
    }
}
