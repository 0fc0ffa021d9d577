//! A version that is chosen from several candidates: they are written concurrently, then judged concurrently, and the
//! best
//! one becomes the version.
//!
//! A candidate that fails does not affect the others. The step fails only if all of them fail: with a rejected reply
//! if
//! there was one, else with the first model error. Each step of a candidate is recorded before the next one begins,
//! so
//! that nothing that was paid for is lost.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;

use super::super::candidates::{Variation, best, variations, why};
use super::{Draft, DraftError, DraftMethod, DraftResult, Run, Turns, Work, describe, issues_of};
use crate::engine::machine::Input;
use crate::model::Message;
use crate::revise::Revision;
use crate::types::{CandidateStep, Evaluation, Event, Issue, Phase, Rank, Strategy, Version};

impl Work {
    /// The same work as the candidate with this number.
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

/// The version with only these of its issues, and without the criteria of the other issues.
fn with_issues(base: &Version, issues: &[Issue]) -> Version {
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
    /// Revises a version in several variations, and takes the best.
    pub(super) async fn contest(
        &mut self,
        work: Work,
        strategy: Strategy,
        base: &Version,
        note: Option<String>,
    ) -> Input {
        let begin = |strategy, base: &Version| {
            Revision::new(strategy, self.history, &self.prompts, base, note.clone())
        };
        let usual = begin(strategy, base);
        let issues = issues_of(base);
        let severities: Vec<_> = issues.iter().map(|issue| issue.severity).collect();
        let temperature = self.plan.writer_sampling.temperature;
        let entries = variations(self.candidates, usual.strategy(), &severities, temperature)
            .into_iter()
            .zip(1..)
            .map(|(variation, number)| {
                let base = with_issues(base, variation.issues(issues));
                let strategy = match variation {
                    Variation::Rewrite => Strategy::FullRewrite,
                    _ => strategy,
                };
                let method = DraftMethod::Revise(Box::new(begin(strategy, &base)), base.iteration);
                let work = Work {
                    issues: variation.issues(issues).to_vec(),
                    ..work.varied(variation, number)
                };
                (work, method, variation.describe(issues.len()))
            })
            .collect();
        self.run_candidates(entries, Some(base.iteration)).await
    }

    /// Writes several new drafts, and takes the best.
    pub(super) async fn fresh_contest(&mut self, work: Work, messages: &[Message]) -> Input {
        let temperature = self.plan.writer_sampling.temperature;
        // There is nothing to edit or fix: only the temperature can differ.
        let entries = variations(self.candidates, Strategy::FullRewrite, &[], temperature)
            .into_iter()
            .zip(1..)
            .map(|(variation, number)| {
                let work = work.varied(variation, number);
                (
                    work,
                    DraftMethod::Anew(messages.to_vec()),
                    variation.describe(0),
                )
            })
            .collect();
        self.run_candidates(entries, None).await
    }

    /// Writes and judges the candidates, each with its method and a description of how it differs.
    async fn run_candidates(
        &mut self,
        entries: Vec<(Work, DraftMethod, String)>,
        based_on: Option<u32>,
    ) -> Input {
        let before = self.history;
        let of = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        for (work, _, difference) in &entries {
            let difference = difference.clone();
            self.candidate(work, CandidateStep::Begun { of, difference });
        }
        let made = self.make_all(entries).await;
        for history in made.iter().filter_map(|made| made.history) {
            self.history = self.history.and(history, before);
        }
        if made.iter().all(|made| made.output.is_err()) {
            return self.all_failed(made);
        }
        let verdicts = self.verdicts(&made, based_on).await;
        let ranks: Vec<Option<Rank>> = verdicts
            .iter()
            .map(|evaluation| evaluation.as_ref().and_then(Evaluation::rank))
            .collect();
        let chosen = best(&ranks);
        // If no candidate could be judged, the first draft becomes the version and is judged again.
        let place = chosen.or_else(|| made.iter().position(|made| made.output.is_ok()));
        let winner = place.and_then(|place| {
            let made = made.into_iter().nth(place)?;
            Some((made.work, made.output.ok()?, place))
        });
        let Some((work, output, place)) = winner else {
            self.error = Some("no candidate is there".to_owned());
            return Input::ModelFailed;
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
            return Input::Written(strategy);
        };
        let text = Draft {
            iteration: work.iteration,
            based_on,
            output: &output,
            attempt: 0,
        };
        match self.judged(&text, &evaluation) {
            Input::Judged(verdict) => Input::Chosen(strategy, verdict),
            other => other,
        }
    }

    /// Writes the candidates, in turns. Candidates with recorded steps come first, so that no new event comes
    /// between.
    async fn make_all(&self, entries: Vec<(Work, DraftMethod, String)>) -> Vec<DraftResult> {
        let (first, of) = (self.written.load(Ordering::Relaxed), entries.len() as u64);
        let entries = entries
            .into_iter()
            .zip(first..)
            .map(|((work, method, _), next)| {
                let work = Work {
                    turns: Some(Turns { next, of }),
                    ..work
                };
                let recorded = self.recorded(&work);
                (work, method, recorded)
            });
        let (known, new): (Vec<_>, Vec<_>) =
            entries.partition(|(_, _, recorded)| recorded.is_some());
        let mut all = Vec::with_capacity(known.len() + new.len());
        for entries in [known, new] {
            let made = entries
                .into_iter()
                .map(|(work, method, recorded)| async move {
                    let made = match recorded {
                        Some(CandidateStep::Lost {
                            reason, text: None, ..
                        }) => DraftResult {
                            work,
                            output: Err(DraftError::Failed(reason)),
                            history: None,
                        },
                        _ => self.make(work, method).await,
                    };
                    self.report(&made);
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

    /// The next recorded step of a candidate.
    fn recorded(&self, work: &Work) -> Option<CandidateStep> {
        let number = work.candidate?;
        self.log.recorded_step(work.iteration, number)
    }

    /// The evaluations of the candidates that are drafts, by position; `None` where there is none.
    async fn verdicts<'a>(
        &self,
        made: &'a [DraftResult],
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
        let text = |made: &'a DraftResult| made.output.as_deref().ok();
        let live = made.iter().position(|made| text(made).is_some());
        let lost = |reason: String| CandidateStep::Lost {
            reason,
            text: None,
            stopped_early: false,
        };
        // A recorded evaluation is not repeated: a command might return something else today. It precedes all that is
        // new.
        let recorded = |this: &'a DraftResult| {
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

    /// Records what was written.
    fn report(&self, made: &DraftResult) {
        let step = match &made.output {
            Ok(output) => CandidateStep::Written {
                output: output.clone(),
                strategy: made.work.from.map(|(_, strategy)| strategy),
                edits: made.work.edits,
            },
            Err(DraftError::Failed(why)) => CandidateStep::Lost {
                reason: why.clone(),
                text: None,
                stopped_early: false,
            },
            Err(DraftError::NoDraft {
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

    /// All candidates failed.
    fn all_failed(&mut self, made: Vec<DraftResult>) -> Input {
        let (mut rejected, mut failure) = (None, None);
        for made in made {
            match made.output {
                // A rejected reply shows that the model answers, so it counts more than a failed call.
                Err(DraftError::NoDraft {
                    why,
                    text,
                    stopped_early,
                }) => rejected = Some(self.reject(&made.work, why, &text, stopped_early)),
                Err(DraftError::Failed(why)) => {
                    failure.get_or_insert(why);
                }
                Ok(_) => {}
            }
        }
        match (rejected, failure) {
            (Some(rejected), _) => rejected,
            (None, Some(why)) => self.failed_so(why),
            (None, None) => Input::ModelFailed,
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
