use super::choose::{History, choose, is_small};
use super::full_rewrite;
use super::incremental::Increments;
use super::targeted_edit::{Edits, Outcome};
use crate::model::{EndReason, Message, Reply};
use crate::prompt::{Feedback, Prompts, Revise};
use crate::types::{EditCounts, Strategy, Version};

/// One revision of one version: what is asked for, what is made of the replies, and what is tried when they cannot
/// be used. It asks no model itself; see [`Revision::step`].
pub struct Revision {
    prompts: Prompts,
    draft: String,
    feedback: Feedback,
    note: Option<String>,
    history: History,
    state: State,
    /// What is to be said before anything else happens.
    said: Option<(Strategy, String)>,
    /// How edits applied, once they were tried.
    edits: Option<EditCounts>,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// People are told how it is revised, and why.
    Say(Strategy, String),
    /// A model is asked; its reply goes to [`Revision::answer`].
    Ask(Ask),
    /// It is done.
    Done(Revised),
}

/// A question to the model that writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The conversation.
    pub messages: Vec<Message>,
    /// Text that the reply will mostly repeat.
    pub prediction: Option<String>,
    /// Whether the reply is the whole text, and so must be a draft by itself.
    pub whole: bool,
}

/// A revised draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revised {
    /// The text.
    pub output: String,
    /// How it came about in the end.
    pub strategy: Strategy,
    /// How edits applied, if they were tried.
    pub edits: Option<EditCounts>,
}

enum State {
    Rewrite,
    Edit(Edits),
    Sections(Increments),
    Done(Revised),
}

impl Revision {
    /// Begins to revise a version by a strategy, to fix the issues of its evaluation. `history` says what has worked in
    /// this run; `note` is added to the prompt.
    pub fn new(
        strategy: Strategy,
        history: History,
        prompts: &Prompts,
        base: &Version,
        note: Option<String>,
    ) -> Self {
        let evaluation = base.evaluation.as_ref();
        let issues = evaluation.map_or(&[][..], |evaluation| &evaluation.issues);
        let mut revision = Self {
            prompts: prompts.clone(),
            draft: base.output.clone(),
            feedback: Feedback::new(evaluation),
            note,
            history,
            state: State::Rewrite,
            said: None,
            edits: None,
        };
        let strategy = if strategy == Strategy::Hybrid {
            let (strategy, reason) = choose(&history, &base.output, issues);
            revision.said = Some((strategy, reason));
            strategy
        } else {
            strategy
        };
        match strategy {
            Strategy::FullRewrite | Strategy::Hybrid => {}
            Strategy::TargetedEdit => {
                let edits = Edits::new(revision.prompt(&Revise::Edit));
                revision.state = State::Edit(edits);
            }
            Strategy::Incremental => match Increments::plan(&base.output, issues) {
                Ok(increments) => revision.state = State::Sections(increments),
                Err(reason) => revision.said = Some((Strategy::FullRewrite, reason)),
            },
        }
        revision
    }

    /// What comes next. After [`Step::Ask`] it stays the same until there is an answer.
    pub fn step(&mut self) -> Step {
        if let Some((strategy, reason)) = self.said.take() {
            return Step::Say(strategy, reason);
        }
        match &self.state {
            State::Rewrite => Step::Ask(Ask {
                messages: self.prompt(&Revise::Rewrite),
                prediction: is_small(&self.draft, &self.feedback.issues)
                    .then(|| self.draft.clone()),
                whole: true,
            }),
            State::Edit(edits) => Step::Ask(Ask {
                messages: edits.messages().to_vec(),
                prediction: None,
                whole: false,
            }),
            State::Sections(increments) => {
                let Some(how) = increments.ask(&self.draft) else {
                    self.finish_sections();
                    return self.step();
                };
                let prediction = match how {
                    Revise::Section { text, .. } => Some(text.to_owned()),
                    _ => None,
                };
                Step::Ask(Ask {
                    messages: self.prompt(&how),
                    prediction,
                    whole: false,
                })
            }
            State::Done(revised) => Step::Done(revised.clone()),
        }
    }

    /// Takes in the reply to what was asked for last. One that is the whole text must be a draft.
    pub fn answer(&mut self, reply: &Reply) {
        match std::mem::replace(&mut self.state, State::Rewrite) {
            State::Rewrite => {
                let text = full_rewrite::text(&reply.text, &self.draft);
                self.done(text, Strategy::FullRewrite);
            }
            State::Edit(edits) => self.edited(edits, reply),
            State::Sections(mut increments) => {
                increments.answer(&self.draft, reply);
                self.state = State::Sections(increments);
            }
            State::Done(revised) => self.state = State::Done(revised),
        }
    }

    /// How it is being revised now; never [`Strategy::Hybrid`].
    pub fn strategy(&self) -> Strategy {
        match &self.state {
            State::Rewrite => Strategy::FullRewrite,
            State::Edit(_) => Strategy::TargetedEdit,
            State::Sections(_) => Strategy::Incremental,
            State::Done(revised) => revised.strategy,
        }
    }

    /// What has worked in this run, this revision included.
    pub fn history(&self) -> History {
        self.history
    }

    fn edited(&mut self, edits: Edits, reply: &Reply) {
        let again = edits.is_again();
        match edits.answer(&self.draft, reply) {
            Outcome::Done(output, counts) => {
                self.edits = Some(counts);
                self.history = self.history.with(Strategy::TargetedEdit, true);
                self.done(output, Strategy::TargetedEdit);
            }
            Outcome::Again(edits) => self.state = State::Edit(edits),
            Outcome::Failed(reason, counts) => {
                self.edits = Some(counts);
                self.fall_back(Strategy::TargetedEdit, reason);
            }
            Outcome::None => {
                let finished = reply.end == Some(EndReason::Stop);
                if !again && finished && full_rewrite::is_rewrite(&reply.text, &self.draft) {
                    let reason = "the model answered with the whole text instead of edits";
                    self.fall_back(Strategy::TargetedEdit, reason.to_owned());
                    let text = full_rewrite::text(&reply.text, &self.draft);
                    self.done(text, Strategy::FullRewrite);
                } else {
                    let reason = "the model answered without edits";
                    self.fall_back(Strategy::TargetedEdit, reason.to_owned());
                }
            }
        }
    }

    fn finish_sections(&mut self) {
        let State::Sections(increments) = &self.state else {
            return;
        };
        match increments.finish(&self.draft) {
            Some((output, all)) => {
                self.history = self.history.with(Strategy::Incremental, all);
                self.done(output, Strategy::Incremental);
            }
            None => self.fall_back(Strategy::Incremental, "no section changed".to_owned()),
        }
    }

    fn fall_back(&mut self, from: Strategy, reason: String) {
        self.history = self.history.with(from, false);
        self.said = Some((Strategy::FullRewrite, reason));
        self.state = State::Rewrite;
    }

    fn done(&mut self, output: String, strategy: Strategy) {
        self.state = State::Done(Revised {
            output,
            strategy,
            edits: self.edits,
        });
    }

    fn prompt(&self, how: &Revise<'_>) -> Vec<Message> {
        self.prompts
            .revise(&self.draft, &self.feedback, how, self.note.as_deref())
    }
}

#[cfg(test)]
#[path = "revision_tests.rs"]
mod tests;
