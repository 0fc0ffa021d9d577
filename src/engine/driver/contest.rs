//! A version that is chosen from several candidates: they are written at the same time, then judged at the same
//! time, and the best one becomes the version.
//!
//! A candidate that comes to nothing takes none of the others with it. The step fails only if all do: with a reply
//! that was no draft if there was one, else with the first failure of a model. Each step of each candidate is an
//! event before the next one begins, so that nothing is lost that was paid for.

use futures_util::future::join_all;

use super::super::candidates::{Variation, best, variations, why};
use super::{Draft, How, Lost, Made, Run, Work, describe, issues_of};
use crate::engine::machine::Happened;
use crate::model::Message;
use crate::revise::Revision;
use crate::types::{CandidateStep, Evaluation, Event, Issue, Phase, Rank, Strategy, Version};

impl Work {
    /// The same as a candidate of this number.
    fn varied(&self, variation: Variation, number: u32) -> Self {
        Self {
            candidate: Some(number),
            temperature: match variation {
                Variation::Warmer(temperature) => Some(temperature),
                _ => None,
            },
            ..self.clone()
        }
    }
}

/// The version as a reviser sees it who is told only these of its issues, and nothing of the criteria that the others
/// belong to.
fn told(base: &Version, issues: &[Issue]) -> Version {
    let mut base = base.clone();
    if let Some(evaluation) = &mut base.evaluation {
        let names = |issues: &[Issue], name: &str| {
            let mut named = issues.iter().filter_map(|issue| issue.criterion.as_deref());
            named.any(|criterion| criterion == name)
        };
        let all = std::mem::replace(&mut evaluation.issues, issues.to_vec());
        evaluation
            .criteria
            .retain(|result| names(issues, &result.name) || !names(&all, &result.name));
    }
    base
}

impl Run<'_, '_> {
    /// Revises a version in several ways, and takes the best.
    pub(super) async fn contest(
        &mut self,
        work: Work,
        strategy: Strategy,
        base: &Version,
        note: Option<String>,
    ) -> Happened {
        let begin = |strategy, base: &Version| {
            Revision::new(strategy, self.history, &self.prompts, base, note.clone())
        };
        let usual = begin(strategy, base);
        let issues = issues_of(base);
        let severities: Vec<_> = issues.iter().map(|issue| issue.severity).collect();
        let temperature = self.plan.writer_sampling.temperature;
        let ways = variations(self.candidates, usual.strategy(), &severities, temperature)
            .into_iter()
            .zip(1..)
            .map(|(variation, number)| {
                let base = told(base, variation.told(issues));
                let strategy = match variation {
                    Variation::Rewrite => Strategy::FullRewrite,
                    _ => strategy,
                };
                let how = How::Revise(Box::new(begin(strategy, &base)), base.iteration);
                let work = Work {
                    issues: variation.told(issues).to_vec(),
                    ..work.varied(variation, number)
                };
                (work, how, variation.describe(issues.len()))
            })
            .collect();
        self.hold(ways, Some(base.iteration)).await
    }

    /// Writes several drafts anew, and takes the best.
    pub(super) async fn fresh_contest(&mut self, work: Work, messages: &[Message]) -> Happened {
        let temperature = self.plan.writer_sampling.temperature;
        // Nothing is edited, and nothing is mended: only the temperature can differ.
        let ways = variations(self.candidates, Strategy::FullRewrite, &[], temperature)
            .into_iter()
            .zip(1..)
            .map(|(variation, number)| {
                let work = work.varied(variation, number);
                (work, How::Anew(messages.to_vec()), variation.describe(0))
            })
            .collect();
        self.hold(ways, None).await
    }

    /// Has the candidates written and judged, each as it says and with how it differs.
    async fn hold(&mut self, ways: Vec<(Work, How, String)>, based_on: Option<u32>) -> Happened {
        let before = self.history;
        let of = u32::try_from(ways.len()).unwrap_or(u32::MAX);
        for (work, _, difference) in &ways {
            let difference = difference.clone();
            self.candidate(work, CandidateStep::Begun { of, difference });
        }
        let run = &*self;
        let made = join_all(ways.into_iter().map(|(work, how, _)| async move {
            let made = run.make(work, how).await;
            run.say(&made);
            made
        }))
        .await;
        for history in made.iter().filter_map(|made| made.history) {
            self.history = self.history.and(history, before);
        }
        if made.iter().all(|made| made.output.is_err()) {
            return self.all_lost(made);
        }
        let verdicts = self.verdicts(&made, based_on).await;
        let ranks: Vec<Option<Rank>> = verdicts
            .iter()
            .map(|evaluation| evaluation.as_ref().and_then(Evaluation::rank))
            .collect();
        let chosen = best(&ranks);
        // Where no candidate could be judged, the first draft is a version as any other, and is judged again.
        let place = chosen.or_else(|| made.iter().position(|made| made.output.is_ok()));
        let winner = place.and_then(|place| {
            let made = made.into_iter().nth(place)?;
            Some((made.work, made.output.ok()?, place))
        });
        let Some((work, output, place)) = winner else {
            self.error = Some("no candidate is there".to_owned());
            return Happened::ModelFailed;
        };
        let reason = match chosen {
            Some(chosen) => why(&ranks, chosen),
            None => "no candidate could be judged; this is the first draft".to_owned(),
        };
        self.candidate(&work, CandidateStep::Chosen { reason });
        let strategy = work.from.map(|(_, strategy)| strategy);
        self.drafted(&work, output.clone());
        let evaluation = chosen.and_then(|_| verdicts.into_iter().nth(place).flatten());
        let Some(evaluation) = evaluation else {
            return Happened::Written(strategy);
        };
        let text = Draft {
            iteration: work.iteration,
            based_on,
            output: &output,
            attempt: 0,
        };
        match self.judged(&text, &evaluation) {
            Happened::Judged(verdict) => Happened::Chosen(strategy, verdict),
            other => other,
        }
    }

    /// The verdicts on those candidates that are drafts, by their places; `None` where there is none.
    async fn verdicts<'a>(
        &self,
        made: &'a [Made],
        based_on: Option<u32>,
    ) -> Vec<Option<Evaluation>> {
        let Some(panel) = &self.panel else {
            return vec![None; made.len()];
        };
        if let Some(first) = made.first() {
            self.log.emit(Event::Phase {
                phase: Phase::Evaluate,
                iteration: first.work.iteration,
            });
        }
        let text = |made: &'a Made| made.output.as_deref().ok();
        let live = made.iter().position(|made| text(made).is_some());
        join_all(made.iter().enumerate().map(|(place, this)| async move {
            let output = text(this)?;
            let lost = |reason: String| CandidateStep::Lost {
                reason,
                text: None,
                stopped_early: false,
            };
            let same = made[..place]
                .iter()
                .position(|made| text(made) == Some(output));
            if let Some(same) = same {
                let reason = format!("it has the same text as candidate {}", same + 1);
                self.candidate(&this.work, lost(reason));
                return None;
            }
            let draft = Draft {
                iteration: this.work.iteration,
                based_on,
                output,
                attempt: 0,
            };
            match self.judge(panel, &draft, live == Some(place)).await {
                Ok(evaluation) => {
                    let step = CandidateStep::Judged {
                        evaluation: evaluation.clone(),
                    };
                    self.candidate(&this.work, step);
                    Some(evaluation)
                }
                Err(error) => {
                    let reason = format!("it could not be judged: {}", describe(&error));
                    self.candidate(&this.work, lost(reason));
                    None
                }
            }
        }))
        .await
    }

    /// Says what was written.
    fn say(&self, made: &Made) {
        let step = match &made.output {
            Ok(output) => CandidateStep::Written {
                output: output.clone(),
                strategy: made.work.from.map(|(_, strategy)| strategy),
                edits: made.work.edits,
            },
            Err(Lost::Failed(error)) => CandidateStep::Lost {
                reason: describe(error),
                text: None,
                stopped_early: false,
            },
            Err(Lost::NoDraft {
                why,
                text,
                stopped_early,
            }) => CandidateStep::Lost {
                reason: format!("not a draft: {}", why.reason),
                text: Some(text.clone()),
                stopped_early: *stopped_early,
            },
        };
        self.candidate(&made.work, step);
    }

    /// No candidate is a draft.
    fn all_lost(&mut self, made: Vec<Made>) -> Happened {
        let mut failure = None;
        for lost in made.into_iter().filter_map(|made| made.output.err()) {
            match lost {
                // The model answers: what it wrote counts more than a call that failed.
                Lost::NoDraft {
                    why, stopped_early, ..
                } => return self.no_draft(why, stopped_early),
                Lost::Failed(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        match failure {
            Some(error) => self.failed(&error),
            None => Happened::ModelFailed,
        }
    }

    fn candidate(&self, work: &Work, step: CandidateStep) {
        self.log.emit(Event::Candidate {
            iteration: work.iteration,
            candidate: work.candidate.unwrap_or(1),
            step,
        });
    }
}
