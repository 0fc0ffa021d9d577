use super::choose::{StrategyHistory, choose, is_small};
use super::full_rewrite;
use super::incremental::SectionRevision;
use super::targeted_edit::{EditOutcome, Edits};
use crate::model::{EndReason, Message, Reply};
use crate::prompt::{Feedback, Prompts, Revise};
use crate::types::{EditCounts, Strategy, Version};

/// A revision of one version: its requests, the handling of the replies, and the fallback when they
/// are unusable. It does not call a model itself; see [`Revision::step`].
pub struct Revision {
    prompts: Prompts,
    draft: String,
    feedback: Feedback,
    note: Option<String>,
    history: StrategyHistory,
    state: RevisionState,
    /// A message for people to report before anything else.
    notice: Option<(Strategy, String)>,
    /// How edits applied, once they were tried.
    edits: Option<EditCounts>,
}

/// The next step of a revision.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Report the strategy and the reason to people.
    Say(Strategy, String),
    /// Call the model, and pass its reply to [`Revision::answer`].
    Ask(Ask),
    /// The revision is complete.
    Done(Revised),
}

/// A request to the writer's model.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The conversation.
    pub messages: Vec<Message>,
    /// Text that the reply will mostly repeat.
    pub prediction: Option<String>,
    /// Whether the reply is the whole text, and so must be a valid draft by itself.
    pub whole: bool,
}

/// A revised draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revised {
    /// The text.
    pub output: String,
    /// The strategy that produced it in the end.
    pub strategy: Strategy,
    /// How edits applied, if they were tried.
    pub edits: Option<EditCounts>,
}

enum RevisionState {
    Rewrite,
    Edit(Edits),
    Sections(SectionRevision),
    Done(Revised),
}

impl Revision {
    /// Begins to revise a version with a strategy, to fix the issues of its evaluation. `history`
    /// says what has worked in this run; `note` is added to the prompt.
    pub fn new(
        strategy: Strategy,
        history: StrategyHistory,
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
            state: RevisionState::Rewrite,
            notice: None,
            edits: None,
        };
        let strategy = if strategy == Strategy::Hybrid {
            let (strategy, reason) = choose(&history, &base.output, issues);
            revision.notice = Some((strategy, reason));
            strategy
        } else {
            strategy
        };
        match strategy {
            Strategy::FullRewrite | Strategy::Hybrid => {}
            Strategy::TargetedEdit => {
                let edits = Edits::new(revision.prompt(&Revise::Edit));
                revision.state = RevisionState::Edit(edits);
            }
            Strategy::Incremental => match SectionRevision::plan(&base.output, issues) {
                Ok(increments) => revision.state = RevisionState::Sections(increments),
                Err(reason) => revision.notice = Some((Strategy::FullRewrite, reason)),
            },
        }
        revision
    }

    /// Returns the next step. After [`Step::Ask`], returns the same step until there is an answer.
    pub fn step(&mut self) -> Step {
        if let Some((strategy, reason)) = self.notice.take() {
            return Step::Say(strategy, reason);
        }
        match &self.state {
            RevisionState::Rewrite => Step::Ask(Ask {
                messages: self.prompt(&Revise::Rewrite),
                prediction: is_small(&self.draft, &self.feedback.issues)
                    .then(|| self.draft.clone()),
                whole: true,
            }),
            RevisionState::Edit(edits) => Step::Ask(Ask {
                messages: edits.messages().to_vec(),
                prediction: None,
                whole: false,
            }),
            RevisionState::Sections(increments) => {
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
            RevisionState::Done(revised) => Step::Done(revised.clone()),
        }
    }

    /// Handles the reply to the last request. A reply that is the whole text must be a valid draft.
    pub fn answer(&mut self, reply: &Reply) {
        match std::mem::replace(&mut self.state, RevisionState::Rewrite) {
            RevisionState::Rewrite => {
                let text = full_rewrite::text(&reply.text, &self.draft);
                self.done(text, Strategy::FullRewrite);
            }
            RevisionState::Edit(edits) => self.edited(edits, reply),
            RevisionState::Sections(mut increments) => {
                increments.answer(&self.draft, reply);
                self.state = RevisionState::Sections(increments);
            }
            RevisionState::Done(revised) => self.state = RevisionState::Done(revised),
        }
    }

    /// Returns the current strategy, which is never [`Strategy::Hybrid`].
    pub fn strategy(&self) -> Strategy {
        match &self.state {
            RevisionState::Rewrite => Strategy::FullRewrite,
            RevisionState::Edit(_) => Strategy::TargetedEdit,
            RevisionState::Sections(_) => Strategy::Incremental,
            RevisionState::Done(revised) => revised.strategy,
        }
    }

    /// Returns what has worked in this run, including this revision.
    pub fn history(&self) -> StrategyHistory {
        self.history
    }

    fn edited(&mut self, edits: Edits, reply: &Reply) {
        let again = edits.is_again();
        match edits.answer(&self.draft, reply) {
            EditOutcome::Done(output, counts) => {
                self.edits = Some(counts);
                self.history = self.history.with(Strategy::TargetedEdit, true);
                self.done(output, Strategy::TargetedEdit);
            }
            EditOutcome::Again(edits) => self.state = RevisionState::Edit(edits),
            EditOutcome::Failed(reason, counts) => {
                self.edits = Some(counts);
                self.fall_back(Strategy::TargetedEdit, reason);
            }
            EditOutcome::None => {
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
        let RevisionState::Sections(increments) = &self.state else {
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
        self.notice = Some((Strategy::FullRewrite, reason));
        self.state = RevisionState::Rewrite;
    }

    fn done(&mut self, output: String, strategy: Strategy) {
        self.state = RevisionState::Done(Revised {
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
