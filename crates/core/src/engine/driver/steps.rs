//! A first draft in steps: an outline, then section by section.

use super::{DraftError, DraftResult, Run, Work};
use crate::engine::gate::{self, NotADraft};
use crate::engine::machine::Input;
use crate::engine::outline::{self, Section};
use crate::engine::steps::{Steps, Todo};
use crate::model::Message;
use crate::revise::Ask;
use crate::types::{Event, Phase, Trigger};

/// How many times a section is requested.
const TRIES: usize = 2;

impl Run<'_, '_> {
    /// Writes a draft in steps, or as a whole if there is no outline. After a failed draft, no further draft is
    /// written in steps.
    pub(super) async fn draft_in_steps(&mut self, iteration: u32, told: Option<String>) -> Input {
        let told = told.as_deref();
        let sections = match self.outline(iteration, told).await {
            Ok(Some(sections)) => sections,
            Ok(None) => {
                self.in_steps = false;
                self.log.emit(Event::Warning {
                    message: "the draft is written as a whole: the model's reply was no outline"
                        .to_owned(),
                });
                if !self.within_limits() {
                    return Input::OutOfBudget;
                }
                let messages = self.prompts.draft(told);
                return self.draft(iteration, messages, Vec::new()).await;
            }
            Err(input) => return input,
        };
        let work = Work::new(Phase::Draft, iteration);
        let interval = self.settings.reflection_interval();
        let steps = Steps::new(&self.prompts, sections, interval, told);
        match self.sections(&work, steps).await {
            Ok(text) => {
                let checked = gate::check_text(&text, &self.draft_context(&work));
                self.in_steps = checked.is_ok();
                let output = match checked {
                    Ok(()) => Ok(text),
                    Err(why) => Err(no_draft(why, text, false)),
                };
                let history = None;
                self.take_result(DraftResult {
                    work,
                    output,
                    history,
                })
            }
            Err(input) => {
                self.in_steps = false;
                input
            }
        }
    }

    /// The sections of the draft; `None` if the reply is not an outline.
    async fn outline(
        &mut self,
        iteration: u32,
        told: Option<&str>,
    ) -> Result<Option<Vec<Section>>, Input> {
        let phase = Phase::Outline;
        self.log.emit(Event::Phase { phase, iteration });
        let messages = self.prompts.outline(outline::MOST, told);
        let asked = part(messages);
        let work = Work::new(phase, iteration);
        let reply = self.write(&work, asked).await;
        let reply = reply.map_err(|lost| self.draft_failed(&work, lost))?;
        let sections = match gate::check_reply(&reply) {
            Ok(()) => outline::read(&reply.text),
            Err(_) => None,
        };
        if let Some(sections) = &sections {
            self.log.emit(Event::Outline {
                iteration,
                sections: sections.iter().map(Section::describe).collect(),
            });
        }
        Ok(sections)
    }

    /// The text of all sections; of fewer if a limit is reached.
    async fn sections(&mut self, work: &Work, mut steps: Steps) -> Result<String, Input> {
        let iteration = work.iteration;
        // Whether the last phase is the one that writes.
        let mut writing = false;
        loop {
            let todo = steps.next();
            if todo != Todo::Done && !self.within_limits() {
                if steps.written() == 0 {
                    return Err(Input::OutOfBudget);
                }
                self.log.emit(Event::Warning {
                    message: format!(
                        "draft {iteration} ends after {} of {} sections, since a limit is reached",
                        steps.written(),
                        steps.count()
                    ),
                });
                return Ok(steps.text());
            }
            match todo {
                Todo::Write {
                    number,
                    title,
                    messages,
                } => {
                    let (phase, of) = (Phase::Draft, steps.count());
                    if !std::mem::replace(&mut writing, true) {
                        self.log.emit(Event::Phase { phase, iteration });
                    }
                    self.log.emit(Event::Step {
                        iteration,
                        step: number,
                        of,
                        title,
                    });
                    self.section(work, (number, of), messages, &mut steps)
                        .await?;
                    if number < of {
                        self.check_so_far(work, &steps.text())?;
                    }
                }
                Todo::LookBack(messages) => {
                    writing = false;
                    let trigger = Trigger::StepInterval;
                    let said = self
                        .ask_to_reflect(iteration, trigger, messages.clone())
                        .await?;
                    steps.looked_back(messages, said.as_deref());
                }
                Todo::Done => return Ok(steps.text()),
            }
        }
    }

    /// Writes one section. A rejected reply is retried once with the reason; then the draft fails.
    async fn section(
        &mut self,
        work: &Work,
        (number, of): (usize, usize),
        messages: Vec<Message>,
        steps: &mut Steps,
    ) -> Result<(), Input> {
        let iteration = work.iteration;
        let mut messages = messages;
        for left in (0..TRIES).rev() {
            let reply = self.write(work, part(messages.clone())).await;
            let reply = reply.map_err(|lost| self.draft_failed(work, lost))?;
            let checked = gate::check_reply(&reply).and_then(|()| {
                let text = self.clean(work, &reply.text);
                gate::check_text(&text, &self.draft_context(work)).map(|()| text)
            });
            let no_section = match checked {
                Ok(text) => {
                    steps.take(messages, text);
                    return Ok(());
                }
                Err(no_section) => no_section,
            };
            let reason = format!("section {number} of {of}: {}", no_section.reason);
            if left == 0 || !self.within_limits() {
                let failed = NotADraft::new(reason, no_section.note);
                return Err(self.draft_failed(work, no_draft(failed, reply.text, false)));
            }
            self.log.emit(Event::Rejected {
                iteration,
                reason,
                text: reply.text,
                stopped_early: false,
            });
            steps.again(no_section.note);
            if let Todo::Write {
                messages: again, ..
            } = steps.next()
            {
                messages = again;
            }
        }
        Ok(())
    }

    /// Stops a draft early once it cannot become a valid one.
    fn check_so_far(&mut self, work: &Work, text: &str) -> Result<(), Input> {
        let mut reading = self.reading(work);
        if !reading.is_hopeless(text) {
            return Ok(());
        }
        let Some(why) = reading.verdict(text) else {
            return Ok(());
        };
        Err(self.draft_failed(work, no_draft(why, text.to_owned(), true)))
    }

    /// Whether the limits allow another call.
    pub(super) fn within_limits(&self) -> bool {
        self.log.spent().limit(&self.settings).is_none()
    }
}

fn no_draft(why: NotADraft, text: String, stopped_early: bool) -> DraftError {
    DraftError::NoDraft {
        why,
        text,
        stopped_early,
    }
}

/// A request for a part of a draft.
fn part(messages: Vec<Message>) -> Ask {
    Ask {
        messages,
        prediction: None,
        whole: false,
    }
}
