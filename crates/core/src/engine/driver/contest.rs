//! A version that is chosen from several candidates: they are written at the same time, then judged at the same
//! time, and the best one becomes the version.
//!
//! A candidate that comes to nothing takes none of the others with it. The step fails only if all do: with a reply
//! that was no draft if there was one, else with the first failure of a model. Each step of each candidate is an
//! event before the next one begins, so that nothing is lost that was paid for.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;

use super::super::candidates::{Variation, best, variations, why};
use super::{Draft, How, Lost, Made, Run, Turns, Work, describe, issues_of};
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
        // Nothing is edited, and nothing is fixed: only the temperature can differ.
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
        let made = self.make_all(ways).await;
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

    /// Has the candidates written, in turns. What had become of some before the run was resumed comes first, so that
    /// nothing new comes between.
    async fn make_all(&self, ways: Vec<(Work, How, String)>) -> Vec<Made> {
        let (first, of) = (self.written.load(Ordering::Relaxed), ways.len() as u64);
        let ways = ways.into_iter().zip(first..).map(|((work, how, _), next)| {
            let work = Work {
                turns: Some(Turns { next, of }),
                ..work
            };
            let recorded = self.recorded(&work);
            (work, how, recorded)
        });
        let (known, new): (Vec<_>, Vec<_>) = ways.partition(|(_, _, recorded)| recorded.is_some());
        let mut all = Vec::with_capacity(known.len() + new.len());
        for ways in [known, new] {
            let made = ways.into_iter().map(|(work, how, recorded)| async move {
                let made = match recorded {
                    Some(CandidateStep::Lost {
                        reason, text: None, ..
                    }) => Made {
                        work,
                        output: Err(Lost::Failed(reason)),
                        history: None,
                    },
                    _ => self.make(work, how).await,
                };
                self.say(&made);
                made
            });
            all.extend(join_all(made).await);
        }
        all.sort_by_key(|made| made.work.candidate);
        let asked = all.iter().zip(0..).filter_map(|(made, place)| {
            let turns = made.work.turns?;
            turns.next.checked_sub(place)
        });
        self.written
            .store(asked.max().unwrap_or(first), Ordering::Relaxed);
        all
    }

    /// What became of a candidate next, before the run was resumed.
    fn recorded(&self, work: &Work) -> Option<CandidateStep> {
        let number = work.candidate?;
        self.log.recorded_step(work.iteration, number)
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
        let lost = |reason: String| CandidateStep::Lost {
            reason,
            text: None,
            stopped_early: false,
        };
        // What is recorded is not judged again: a command might judge otherwise today. It comes before all that is new.
        let recorded = |this: &'a Made| {
            let step = text(this).and_then(|_| self.recorded(&this.work));
            let step = step.filter(|step| {
                matches!(
                    step,
                    CandidateStep::Judged { .. } | CandidateStep::Lost { .. }
                )
            })?;
            self.candidate(&this.work, step.clone());
            Some(step)
        };
        let recorded: Vec<Option<CandidateStep>> = made.iter().map(recorded).collect();
        let all = made.iter().zip(recorded).enumerate();
        join_all(all.map(|(place, (this, recorded))| async move {
            let output = text(this)?;
            match recorded {
                Some(CandidateStep::Judged { evaluation }) => return Some(evaluation),
                Some(_) => return None,
                None => {}
            }
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
            Err(Lost::Failed(why)) => CandidateStep::Lost {
                reason: why.clone(),
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
        let (mut rejected, mut failure) = (None, None);
        for made in made {
            match made.output {
                // The model answers: what it wrote counts more than a call that failed.
                Err(Lost::NoDraft {
                    why,
                    text,
                    stopped_early,
                }) => rejected = Some(self.reject(&made.work, why, &text, stopped_early)),
                Err(Lost::Failed(why)) => {
                    failure.get_or_insert(why);
                }
                Ok(_) => {}
            }
        }
        match (rejected, failure) {
            (Some(rejected), _) => rejected,
            (None, Some(why)) => self.failed_so(why),
            (None, None) => Happened::ModelFailed,
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
