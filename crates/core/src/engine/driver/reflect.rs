//! Looking back before the next draft: a call of its own, whose answer the writer is told.

use super::Run;
use crate::engine::lessons;
use crate::engine::machine::Happened;
use crate::engine::triggers::{self, Setback};
use crate::model::{ChatRequest, Message, Purpose, call_until};
use crate::prompt::{Feedback, guidance};
use crate::types::{Event, Phase, Reflection, Trigger, Version};

/// The most characters of a reply that was no draft that are shown again.
const SHOWN: usize = 4000;

impl Run<'_, '_> {
    /// Looks back at what went wrong, before version `iteration` is written.
    pub(super) async fn reflect(&mut self, iteration: u32, on: Setback) -> Happened {
        let messages = match on {
            Setback::Drop { best, worse } => self.ask_about_drop(best, worse),
            Setback::Failure => self.ask_about_failure(),
        };
        let Some(messages) = messages else {
            return Happened::Reflected;
        };
        match self.look_back(iteration, on.trigger(), messages).await {
            Ok(text) => {
                self.guidance = text;
                Happened::Reflected
            }
            Err(happened) => happened,
        }
    }

    fn ask_about_drop(&self, best: u32, worse: u32) -> Option<Vec<Message>> {
        // As the reviser will see it, so that both prompts begin with the same bytes.
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

    /// Asks the writer to look back; `None` if the answer is of no use, since a draft without it is better than
    /// none.
    pub(super) async fn look_back(
        &mut self,
        iteration: u32,
        trigger: Trigger,
        messages: Vec<Message>,
    ) -> Result<Option<String>, Happened> {
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

    /// What the writer is told with its next call besides the prompt: why its last reply was no draft, and what it
    /// said when it looked back.
    pub(super) fn told(&mut self) -> Option<String> {
        let guidance = self.guidance.take().map(|text| guidance(&text));
        let tools = self.consulted.told();
        let told: Vec<String> = tools.chain(self.note.take()).chain(guidance).collect();
        (!told.is_empty()).then(|| told.join(" "))
    }
}
