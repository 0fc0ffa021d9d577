//! Asking the user's programs before a text is written.

use super::Run;
use crate::engine::machine::Happened;
use crate::engine::tool::{ToolOutput, WriterTool, problem};
use crate::engine::triggers;
use crate::prompt::{ToolResult, tool_note};
use crate::types::{Event, Phase};

/// What the tools of a run have said.
#[derive(Debug, Default)]
pub(super) struct Consulted {
    /// The version they were last run for; 0 for none.
    iteration: u32,
    /// What the writer of that version is told.
    notes: Vec<String>,
    /// What was learned from which result, so that nothing is reflected on twice.
    known: Vec<(String, ToolOutput, Option<String>)>,
}

impl Consulted {
    /// What the writer is told of it.
    pub(super) fn told(&self) -> impl Iterator<Item = String> {
        self.notes.iter().cloned()
    }
}

impl Run<'_, '_> {
    /// Runs the tools for a version that is to be written: on the draft that it revises, else on the prompt. Once,
    /// however often the version is asked for.
    pub(super) async fn consult(
        &mut self,
        iteration: u32,
        draft: Option<&str>,
    ) -> Result<(), Happened> {
        if self.consulted.iteration == iteration {
            return Ok(());
        }
        self.consulted.iteration = iteration;
        self.consulted.notes.clear();
        let plan = self.plan;
        for tool in &plan.writer_tools {
            if draft.is_none() && tool.needs_draft() {
                continue;
            }
            let phase = Phase::Tool;
            self.log.emit(Event::Phase { phase, iteration });
            // What a tool has said is recorded: today it might say something else.
            let output = match self.log.recorded_tool(iteration, tool.name()) {
                Some(recorded) => recorded,
                None => tool.run(draft.unwrap_or(&self.task.prompt)).await,
            };
            let output = match output {
                Ok(output) => output,
                Err(why) => {
                    self.log.emit(Event::Warning {
                        message: problem(tool.name(), &why),
                    });
                    continue;
                }
            };
            self.log.emit(Event::ToolResult {
                iteration,
                tool: tool.name().to_owned(),
                end: output.end.clone(),
                exit_code: output.exit_code,
                output: output.text.clone(),
            });
            let guidance = self.learned(iteration, tool, draft, &output).await?;
            let note = tool_note(&result(tool, draft, &output), guidance.as_deref());
            self.consulted.notes.push(note);
        }
        if self.within_limits() {
            Ok(())
        } else {
            Err(Happened::OutOfBudget)
        }
    }

    /// What matters in a result, if it is to be reflected on.
    async fn learned(
        &mut self,
        iteration: u32,
        tool: &WriterTool,
        draft: Option<&str>,
        output: &ToolOutput,
    ) -> Result<Option<String>, Happened> {
        let known = self.consulted.known.iter();
        let mut same = known.filter(|(name, known, _)| name == tool.name() && known == output);
        if let Some((.., guidance)) = same.next() {
            return Ok(guidance.clone());
        }
        let trigger = triggers::tool_result(tool.name(), output.failed(), &self.settings);
        let Some(trigger) = trigger.filter(|_| self.within_limits()) else {
            return Ok(None);
        };
        let messages = self
            .prompts
            .reflect_on_tool(&result(tool, draft, output), draft);
        let guidance = self.look_back(iteration, trigger, messages).await?;
        let learned = (tool.name().to_owned(), output.clone(), guidance.clone());
        self.consulted.known.push(learned);
        Ok(guidance)
    }
}

/// A result as prompts show it.
fn result<'a>(tool: &'a WriterTool, draft: Option<&str>, output: &'a ToolOutput) -> ToolResult<'a> {
    ToolResult {
        tool: tool.name(),
        end: &output.end,
        output: &output.text,
        on_draft: draft.is_some(),
    }
}
