//! Running the user's programs before a text is written.

use super::Run;
use crate::engine::machine::Input;
use crate::engine::tool::{ToolOutput, WriterTool, problem};
use crate::engine::triggers;
use crate::prompt::{ToolResult, tool_note};
use crate::types::{Event, Phase};

/// The results of a run's tools.
#[derive(Debug, Default)]
pub(super) struct ToolNotes {
    /// The version they last ran for; 0 for none.
    iteration: u32,
    /// What the writer of that version receives.
    notes: Vec<String>,
    /// What was learned from each result, so that no result is reflected on twice.
    known: Vec<(String, ToolOutput, Option<String>)>,
}

impl ToolNotes {
    /// The notes for the writer.
    pub(super) fn for_writer(&self) -> impl Iterator<Item = String> {
        self.notes.iter().cloned()
    }
}

impl Run<'_, '_> {
    /// Runs the tools for the next version, on the draft that it revises or else on the prompt. They run once for
    /// each version, even if it is requested several times.
    pub(super) async fn run_tools(
        &mut self,
        iteration: u32,
        draft: Option<&str>,
    ) -> Result<(), Input> {
        if self.tool_notes.iteration == iteration {
            return Ok(());
        }
        self.tool_notes.iteration = iteration;
        self.tool_notes.notes.clear();
        let plan = self.plan;
        for tool in &plan.writer_tools {
            if draft.is_none() && tool.needs_draft() {
                continue;
            }
            let phase = Phase::Tool;
            self.log.emit(Event::Phase { phase, iteration });
            // A recorded result is not repeated: a tool might return something else today.
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
            self.tool_notes.notes.push(note);
        }
        if self.within_limits() {
            Ok(())
        } else {
            Err(Input::OutOfBudget)
        }
    }

    /// What matters in a result, if the settings ask for reflection.
    async fn learned(
        &mut self,
        iteration: u32,
        tool: &WriterTool,
        draft: Option<&str>,
        output: &ToolOutput,
    ) -> Result<Option<String>, Input> {
        let known = self.tool_notes.known.iter();
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
        let guidance = self.ask_to_reflect(iteration, trigger, messages).await?;
        let learned = (tool.name().to_owned(), output.clone(), guidance.clone());
        self.tool_notes.known.push(learned);
        Ok(guidance)
    }
}

/// A tool's result in the form that prompts use.
fn result<'a>(tool: &'a WriterTool, draft: Option<&str>, output: &'a ToolOutput) -> ToolResult<'a> {
    ToolResult {
        tool: tool.name(),
        end: &output.end,
        output: &output.text,
        on_draft: draft.is_some(),
    }
}
