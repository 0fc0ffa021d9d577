//! Reflection before the next draft: a separate call, whose answer the writer receives.

use super::Run;
use crate::engine::lessons;
use crate::engine::machine::Input;
use crate::engine::triggers::{self, Setback};
use crate::model::{ChatRequest, Message, Purpose, call_until};
use crate::prompt::{Feedback, guidance};
use crate::types::{Event, Phase, Reflection, Trigger, Version};

/// The most characters of a rejected reply that are shown again.
const SHOWN: usize = 4000;

impl Run<'_, '_> {
    /// Reflects on what went wrong, before version `iteration` is written.
    pub(super) async fn reflect(&mut self, iteration: u32, on: Setback) -> Input {
        let messages = match on {
            Setback::Drop { best, worse } => self.ask_about_drop(best, worse),
            Setback::Failure => self.ask_about_failure(),
        };
        let Some(messages) = messages else {
            return Input::Reflected;
        };
        match self.ask_to_reflect(iteration, on.trigger(), messages).await {
            Ok(text) => {
                self.guidance = text;
                Input::Reflected
            }
            Err(input) => input,
        }
    }

    fn ask_about_drop(&self, best: u32, worse: u32) -> Option<Vec<Message>> {
        // As the reviser will see it, so that both prompts start with the same bytes.
        let best = self.log.with(|record| {
            let version = record.version(best)?;
            Some(lessons::to_revise(version, self.ledger.issues_of(best)))
        })?;
        let worse = self.log.with(|record| record.version(worse).cloned())?;
        let feedback = |version: &Version| Feedback::new(version.evaluation.as_ref());
        Some(self.prompts.reflect_on_drop(
            (&best.output, &feedback(&best)),
            (&worse.output, &feedback(&worse)),
        ))
    }

    fn ask_about_failure(&self) -> Option<Vec<Message>> {
        self.log.with(|record| {
            let (_, reason, text) = record.rejected.last()?;
            let base = record.best().map(|best| best.output.as_str());
            let shown = triggers::shortened(text, SHOWN);
            Some(self.prompts.reflect_on_failure(base, &shown, reason))
        })
    }

    /// Asks the writer to reflect; `None` if the answer is unusable, because a draft without reflection is better
    /// than none.
    pub(super) async fn ask_to_reflect(
        &mut self,
        iteration: u32,
        trigger: Trigger,
        messages: Vec<Message>,
    ) -> Result<Option<String>, Input> {
        let phase = Phase::Reflect;
        self.log.emit(Event::Phase { phase, iteration });
        let mut request = ChatRequest::new(Purpose::Write, messages);
        request.sampling = self.plan.writer_sampling.clone();
        request.think = self.plan.think;
        let observer = self.log.calls(phase, iteration);
        let reply = call_until(&*self.plan.writer, request, &observer, triggers::is_enough).await;
        let said = match reply {
            Ok(reply) => triggers::usable(&reply),
            Err(error) if triggers::is_about_the_prompt(error.class) => Err(error.to_string()),
            Err(error) => return Err(self.failed(&error)),
        };
        let text = said.unwrap_or_else(|why| {
            self.log.emit(Event::Warning {
                message: format!("the loop goes on without a reflection: {why}"),
            });
            None
        });
        if let Some(text) = &text {
            self.log.emit(Event::Reflection(Reflection {
                iteration,
                trigger,
                text: text.clone(),
            }));
        }
        Ok(text)
    }

    /// What the writer receives with its next call in addition to the prompt: why its last reply was rejected, and
    /// its reflection.
    pub(super) fn notes_for_writer(&mut self) -> Option<String> {
        let guidance = self.guidance.take().map(|text| guidance(&text));
        let tools = self.tool_notes.for_writer();
        let told: Vec<String> = tools.chain(self.note.take()).chain(guidance).collect();
        (!told.is_empty()).then(|| told.join(" "))
    }
}
