//! What to do next, as a pure function of what has happened.

use super::candidates::how_many;
use super::converge::{Attempt, Outcome, Trail, converged};
use super::incumbent::{Challenge, Incumbent, challenge, is_regression};
use super::policy::{Approach, Odds};
use super::spent::Spent;
use super::triggers::{self, Setback};
use super::verdict::Verdict;
use crate::evaluate::Preference;
use crate::types::{Choice, ConvergenceReason, LoopSettings, Rank, Strategy, UserDecision};

/// How often a first draft is requested before the best rejected reply is taken instead.
const FIRST_DRAFT_TRIES: u32 = 2;
/// Unreadable verdicts in a row on one draft that end a run. Each one stands for a call and a repair.
const JUDGE_TRIES: u32 = 2;

/// What a run can do besides drafting, judging and revising.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an ability of its own"
)]
pub(super) struct Abilities {
    /// There is a judge, who also compares two drafts.
    pub(super) judge: bool,
    /// There is a stronger model.
    pub(super) stronger: bool,
    /// There is somebody who may decide for the loop.
    pub(super) decide: bool,
    /// How often the run was resumed before it had a draft: each time, a first draft is requested anew.
    pub(super) resumed: u32,
    /// The same prompt brings another draft: it is worth asking again.
    pub(super) varied: bool,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct State {
    abilities: Abilities,
    /// What the text is for that the run began with; `None` if it began with nothing.
    given: Option<Given>,
    /// The version that is being worked on.
    iteration: u32,
    /// The best version so far; revisions start from it.
    incumbent: Option<Incumbent>,
    /// Every judged version, in order.
    pub(super) judged: Vec<(u32, Rank)>,
    /// The first version, until the answer is settled: it is compared with the best one at the end.
    first: Option<Incumbent>,
    /// Why the run stops, while the first and the best version are compared.
    closing: Option<ConvergenceReason>,
    /// The attempts to better the incumbent, since the beginning or since another model took over.
    trail: Trail,
    /// What was learned about the writer.
    odds: Odds,
    /// The tokens that were written or evaluated up to the last version that counts in `odds`.
    accounted: u64,
    /// Whether no fresh draft is written any more, since it would know nothing of what the user wants.
    only_revise: bool,
    /// Whether the stronger model has taken over.
    stronger: bool,
    /// How the version that is judged next was revised, if it was.
    strategy: Option<Strategy>,
    /// The answer by the user's word: a version that was accepted, or a text of the user's own until it is judged.
    word: Option<u32>,
    /// Unreadable verdicts in a row.
    judge_failures: u32,
    /// Replies in a row that were no drafts.
    rejections: u32,
    /// What is to be written now, or was written last.
    writing: Option<Next>,
    /// What is reflected on before the next text is written.
    setback: Option<Setback>,
    /// The version whose failed replies were reflected on.
    reflected: Option<u32>,
}

/// What is to be done with a text that is there before the run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// It is judged, and revised if it has to be.
    ToJudge,
    /// It is revised once: what is wrong with it is known already, and nothing is judged.
    ToMend,
}

/// What has happened since the last decision.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Happened {
    /// The run begins, with nothing written.
    Begun,
    /// The run begins with a text, which is version 1.
    Given(Given),
    /// A text was written; how it was revised, if it was.
    Written(Option<Strategy>),
    /// Candidates were written and judged, and this one is the version.
    Chosen(Option<Strategy>, Verdict),
    /// The model's reply was rejected as a draft.
    Rejected,
    /// No rejected reply can stand as a version.
    NoDraft,
    /// What went wrong was reflected on.
    Reflected,
    /// The text was judged.
    Judged(Verdict),
    /// The text was judged, and the verdict could not be read.
    Unreadable,
    /// The text could not be judged, since a check failed itself.
    CheckFailed,
    /// The first and the best version were compared, in this order; `None` if the answer could not be read.
    Compared(Option<Preference>),
    /// Who may decide has decided.
    Decided(UserDecision),
    /// A model failed for good.
    ModelFailed,
    /// A limit is reached, and there is no text.
    OutOfBudget,
    /// The time is up.
    TimeUp,
    /// Somebody wants the run to end.
    Cancelled,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Write a first draft.
    Draft { iteration: u32 },
    /// Judge a version, for the `attempt`th time, from 0.
    Evaluate { iteration: u32, attempt: u32 },
    /// Ask which of the first and the best version is better, before the run stops.
    Compare { first: u32, best: u32 },
    /// Ask who may decide, after a version was judged; left alone, the loop would go on, or stop for this reason.
    AskUser {
        iteration: u32,
        stops: Option<ConvergenceReason>,
    },
    /// Take the best of the rejected replies as the version, if one of them has only a flaw.
    TakeRejected { iteration: u32 },
    /// Take in the text that the user has made of a version.
    TakeEdit { iteration: u32, based_on: u32 },
    /// Revise a version.
    Revise {
        iteration: u32,
        based_on: u32,
        approach: Approach,
    },
    /// Write a fresh draft that avoids the issues of an earlier one.
    Fresh { iteration: u32, lessons: u32 },
    /// Look back at what went wrong, before a version is written.
    Reflect { iteration: u32, on: Setback },
    /// End the run.
    Stop(ConvergenceReason),
}

impl Next {
    /// Whether a text is written.
    fn writes(self) -> bool {
        matches!(
            self,
            Self::Draft { .. } | Self::Revise { .. } | Self::Fresh { .. }
        )
    }
}

/// A choice, and why: for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) iteration: u32,
    pub(super) choice: Choice,
    pub(super) incumbent: u32,
    pub(super) reason: String,
}

/// Takes in what has happened, and says what to do. `spent` is what the run has used so far.
pub(super) fn step(
    mut state: State,
    happened: Happened,
    settings: &LoopSettings,
    spent: impl Into<Spent>,
) -> (State, Next, Vec<Decision>) {
    let mut decisions = Vec::new();
    let spent: Spent = spent.into();
    let rules = Rules {
        settings,
        limit: spent.limit(settings),
        work: spent.work,
    };
    let next = state.take(happened, &rules, &mut decisions);
    let next = state.reflect_first(next, &mut decisions);
    let next = rules.within_budget(next);
    if let (Next::Stop(reason), Some(incumbent)) = (next, &state.incumbent) {
        decisions.push(Decision {
            iteration: state.iteration,
            choice: Choice::Stop,
            incumbent: incumbent.iteration,
            reason: reason.describe().to_owned(),
        });
    }
    (state, next, decisions)
}

/// What a decision is made by, besides the state.
struct Rules<'a> {
    settings: &'a LoopSettings,
    /// The limit that is reached, if one is.
    limit: Option<ConvergenceReason>,
    /// The tokens that were written or evaluated so far.
    work: u64,
}

impl Rules<'_> {
    /// A step that needs a model is not begun once a limit is reached: a run goes over its limit by one step at the
    /// most, with all candidates of that step.
    fn within_budget(&self, next: Next) -> Next {
        match (next, self.limit) {
            (
                Next::Stop(_)
                | Next::AskUser { .. }
                | Next::TakeEdit { .. }
                | Next::TakeRejected { .. },
                _,
            )
            | (_, None) => next,
            (_, Some(limit)) => Next::Stop(limit),
        }
    }
}

impl State {
    /// The state of a run that has not begun.
    pub(super) fn new(abilities: Abilities) -> Self {
        Self {
            abilities,
            ..Self::default()
        }
    }

    /// The number of the best version so far.
    pub(super) fn incumbent(&self) -> Option<u32> {
        self.incumbent.as_ref().map(|best| best.iteration)
    }

    /// How many candidates the next version is chosen from. A first draft, which may pass, and a correction that nobody
    /// judges, are the only ones.
    pub(super) fn candidates(&self, settings: &LoopSettings) -> u32 {
        if self.incumbent.is_none() {
            return 1;
        }
        let helped = self.trail.attempts.last().map(Attempt::is_gain);
        how_many(settings.candidates(), helped)
    }

    /// The answer by the user's word, if there is one; it goes before every rule of selection.
    pub(super) fn word(&self) -> Option<u32> {
        self.word
    }

    fn take(&mut self, happened: Happened, rules: &Rules, decisions: &mut Vec<Decision>) -> Next {
        let stop = match happened {
            Happened::Begun => {
                self.iteration = 1;
                return self.first();
            }
            Happened::Given(given) => {
                self.given = Some(given);
                self.iteration = 1;
                if given == Given::ToMend {
                    self.iteration = 2;
                    return self.first();
                }
                return Next::Evaluate {
                    iteration: 1,
                    attempt: 0,
                };
            }
            Happened::Written(_) if self.given == Some(Given::ToMend) => {
                ConvergenceReason::Corrected
            }
            Happened::Written(strategy) => {
                self.written(strategy);
                return Next::Evaluate {
                    iteration: self.iteration,
                    attempt: 0,
                };
            }
            Happened::Chosen(strategy, verdict) => {
                self.written(strategy);
                return self.judge(verdict, rules, decisions);
            }
            Happened::Rejected => return self.reject(rules, decisions),
            Happened::NoDraft => ConvergenceReason::NoDraft,
            Happened::Reflected => return self.again(),
            Happened::Judged(verdict) => return self.judge(verdict, rules, decisions),
            Happened::Compared(preference) => self.settle_answer(preference, decisions),
            Happened::Decided(decision) => return self.obey(&decision, rules, decisions),
            Happened::Unreadable => {
                self.judge_failures += 1;
                if self.judge_failures < JUDGE_TRIES {
                    return Next::Evaluate {
                        iteration: self.iteration,
                        attempt: self.judge_failures,
                    };
                }
                ConvergenceReason::JudgeFailed
            }
            // Nothing that is written would fix it.
            Happened::CheckFailed => ConvergenceReason::JudgeFailed,
            Happened::ModelFailed => ConvergenceReason::ModelError,
            Happened::OutOfBudget => rules.limit.unwrap_or(ConvergenceReason::TokenBudget),
            Happened::TimeUp => ConvergenceReason::TimeLimit,
            Happened::Cancelled => ConvergenceReason::Interrupted,
        };
        Next::Stop(stop)
    }

    /// Takes in that a version is there.
    fn written(&mut self, strategy: Option<Strategy>) {
        self.rejections = 0;
        self.strategy = strategy;
    }

    /// Takes a verdict in.
    fn judge(&mut self, verdict: Verdict, rules: &Rules, decisions: &mut Vec<Decision>) -> Next {
        self.judge_failures = 0;
        self.judged.push((self.iteration, verdict.rank));
        let Some(best) = &self.incumbent else {
            let score = verdict.rank.score;
            self.trail.start = score;
            let cost = self.account(rules);
            if self.given.is_none() {
                self.odds.draws += 1;
                self.odds.drawn += cost;
            }
            let first = Incumbent {
                iteration: self.iteration,
                verdict,
            };
            self.first = Some(first.clone());
            self.incumbent = Some(first);
            let reason = format!("the first version, score {score:.2}");
            decisions.push(self.decision(Choice::Accept, reason));
            return self.consult(rules, decisions);
        };
        if self.word.take().is_some() {
            let won = Challenge::Won("it is the user's own text".to_owned());
            self.settle(verdict, won, rules, decisions);
            self.begin_anew();
            return self.consult(rules, decisions);
        }
        let challenge = challenge(best, &verdict);
        self.settle(verdict, challenge, rules, decisions);
        self.consult(rules, decisions)
    }

    /// Goes on after a version was judged; who may decide is asked before. A version beyond the limit, which only
    /// a text of the user's own can be, is not asked about: so the limit holds, and no such text is lost.
    fn consult(&mut self, rules: &Rules, decisions: &mut Vec<Decision>) -> Next {
        let iteration = self.iteration;
        if !self.abilities.decide || iteration > rules.settings.max_iterations() {
            return self.go_on(rules, decisions);
        }
        let mut then = self.clone();
        let alone = then.go_on(rules, &mut Vec::new());
        let stops = match rules.within_budget(alone) {
            Next::Stop(reason) => Some(reason),
            Next::Compare { .. } => then.closing,
            _ => None,
        };
        Next::AskUser { iteration, stops }
    }

    /// Does what was decided, within the limits of the run.
    fn obey(
        &mut self,
        decision: &UserDecision,
        rules: &Rules,
        decisions: &mut Vec<Decision>,
    ) -> Next {
        match decision {
            UserDecision::Auto => self.go_on(rules, decisions),
            UserDecision::Continue => self.one_more(rules, decisions),
            UserDecision::Guide(_) => {
                self.begin_anew();
                self.one_more(rules, decisions)
            }
            UserDecision::Edit { of, .. } => {
                let based_on = *of;
                self.iteration += 1;
                self.word = Some(self.iteration);
                Next::TakeEdit {
                    iteration: self.iteration,
                    based_on,
                }
            }
            UserDecision::Accept(version) => {
                self.word = Some(*version);
                Next::Stop(ConvergenceReason::UserAccepted)
            }
            UserDecision::Stop => Next::Stop(ConvergenceReason::UserQuit),
        }
    }

    /// Goes on, also where the loop alone would stop; but the limit holds.
    fn one_more(&mut self, rules: &Rules, decisions: &mut Vec<Decision>) -> Next {
        let next = self.go_on(rules, decisions);
        match (next, self.incumbent()) {
            (Next::Stop(_) | Next::Compare { .. }, Some(based_on))
                if self.iteration < rules.settings.max_iterations() =>
            {
                self.closing = None;
                self.another(based_on, rules.settings, decisions)
            }
            _ => next,
        }
    }

    /// What was tried says nothing any more: there is something new to go by, which only a revision keeps.
    fn begin_anew(&mut self) {
        if let Some(best) = &self.incumbent {
            self.trail = Trail {
                start: best.verdict.rank.score,
                attempts: Vec::new(),
            };
        }
        self.first = None;
        self.odds = Odds::default();
        self.only_revise = true;
        self.stronger = false;
    }

    /// Stops; where the best version is not clearly better than the first one, both are compared before. A judge who
    /// sees both errs less than one who gives each a score.
    fn finish(
        &mut self,
        reason: ConvergenceReason,
        rules: &Rules,
        decisions: &mut Vec<Decision>,
    ) -> Next {
        let stop = Next::Stop(reason);
        let (Some(first), Some(best)) = (&self.first, &self.incumbent) else {
            return stop;
        };
        let (old, new) = (&first.verdict, &best.verdict);
        let gain = new.rank.score - old.rank.score;
        let close = first.iteration != best.iteration
            && new.class() == old.class()
            && gain < rules.settings.grey_zone();
        if !close || !self.abilities.judge || rules.limit.is_some() {
            return stop;
        }
        let why = format!(
            "score {:.2} is too close to version {}'s {:.2} to say: both are compared",
            new.rank.score, first.iteration, old.rank.score
        );
        let (first, best) = (first.iteration, best.iteration);
        self.closing = Some(reason);
        decisions.push(Decision {
            iteration: best,
            ..self.decision(Choice::Compare, why)
        });
        Next::Compare { first, best }
    }

    /// Takes the first version for the best one unless the judge prefers the other; where nobody could say, the scores
    /// decide.
    fn settle_answer(
        &mut self,
        preference: Option<Preference>,
        decisions: &mut Vec<Decision>,
    ) -> ConvergenceReason {
        let reason = self.closing.take();
        let reason = reason.unwrap_or(ConvergenceReason::MaxIterations);
        let (Some(best), Some(first)) = (self.incumbent(), self.first.take()) else {
            return reason;
        };
        let kept = first.iteration;
        let why = match preference {
            None => return reason,
            Some(Preference::Second) => {
                format!("preferred to version {kept} in both orders")
            }
            Some(Preference::First) => format!("version {kept} is preferred in both orders"),
            Some(Preference::Tie) => format!("not clearly better than version {kept}"),
        };
        let choice = if preference == Some(Preference::Second) {
            Choice::Accept
        } else {
            self.incumbent = Some(first);
            Choice::KeepIncumbent
        };
        decisions.push(Decision {
            iteration: best,
            ..self.decision(choice, why)
        });
        reason
    }

    /// Makes a version the incumbent, or does not.
    fn settle(
        &mut self,
        verdict: Verdict,
        challenge: Challenge,
        rules: &Rules,
        decisions: &mut Vec<Decision>,
    ) {
        let Some(best) = &mut self.incumbent else {
            return;
        };
        let score = verdict.rank.score;
        let mut attempt = Attempt {
            score: Some(score),
            best: best.verdict.rank.score,
            similarity: verdict.similarity,
            same_issues: !verdict.open.is_empty() && verdict.open == best.verdict.open,
            strategy: self.strategy,
            ..Attempt::default()
        };
        let (choice, reason) = match challenge {
            Challenge::Won(reason) => {
                let leap = verdict.class() > best.verdict.class();
                attempt.outcome = if leap { Outcome::Leap } else { Outcome::Gain };
                attempt.best = score;
                *best = Incumbent {
                    iteration: self.iteration,
                    verdict,
                };
                (Choice::Accept, reason)
            }
            Challenge::Lost(reason) => {
                let noise = rules.settings.improvement_threshold();
                if is_regression(best, &verdict, noise) {
                    attempt.outcome = Outcome::Worse;
                }
                let threshold = rules.settings.quality_drop_threshold();
                if triggers::quality_drop(best.verdict.rank.score, score, threshold) {
                    self.setback = Some(Setback::Drop {
                        best: best.iteration,
                        worse: self.iteration,
                    });
                }
                (Choice::KeepIncumbent, reason)
            }
        };
        self.attempted(attempt, rules);
        decisions.push(self.decision(choice, reason));
    }

    /// Takes in an attempt to better the incumbent.
    fn attempted(&mut self, attempt: Attempt, rules: &Rules) {
        let cost = self.account(rules);
        if matches!(self.writing, Some(Next::Revise { .. })) {
            self.odds.revisions += 1;
            self.odds.helped += u32::from(attempt.is_gain());
            self.odds.revised += cost;
        } else {
            self.odds.draws += 1;
            self.odds.drawn += cost;
        }
        self.trail.attempts.push(attempt);
    }

    /// What the last version cost.
    fn account(&mut self, rules: &Rules) -> u64 {
        let before = std::mem::replace(&mut self.accounted, rules.work);
        rules.work.saturating_sub(before)
    }

    /// A rejected reply: a first draft is requested again, and after the last try the best rejected reply is taken;
    /// a rejected revision counts as an attempt without a gain.
    fn reject(&mut self, rules: &Rules, decisions: &mut Vec<Decision>) -> Next {
        self.rejections += 1;
        if self.learns(rules) {
            return self.again();
        }
        if let Some(best) = &self.incumbent {
            let best = best.verdict.rank.score;
            let failed = Attempt {
                best,
                ..Attempt::default()
            };
            self.attempted(failed, rules);
            // Somebody who asked for one more is told that nothing came of it.
            return self.consult(rules, decisions);
        }
        // Where checks alone evaluate, another try costs no more than another draft.
        let tries = if self.abilities.varied && !self.abilities.judge && self.given.is_none() {
            FIRST_DRAFT_TRIES.max(rules.settings.max_iterations())
        } else {
            FIRST_DRAFT_TRIES
        };
        if self.rejections < tries.saturating_mul(1 + self.abilities.resumed) {
            return self.first();
        }
        match self.given {
            // A flawed correction would replace the user's own text, unjudged.
            Some(Given::ToMend) => Next::Stop(ConvergenceReason::NoDraft),
            _ => Next::TakeRejected {
                iteration: self.iteration,
            },
        }
    }

    /// Whether a rejected reply is reflected on and asked for again.
    fn learns(&mut self, rules: &Rules) -> bool {
        let without = match self.incumbent {
            Some(_) => 1,
            None => FIRST_DRAFT_TRIES,
        };
        let learns = rules.limit.is_none()
            && triggers::error(
                rules.settings.reflect_on_error(),
                self.rejections,
                without,
                self.reflected == Some(self.iteration),
            );
        if learns {
            self.reflected = Some(self.iteration);
            self.setback = Some(Setback::Failure);
        }
        learns
    }

    /// The same text once more.
    fn again(&self) -> Next {
        self.writing.unwrap_or_else(|| self.first())
    }

    /// Looks back before a text is written, where there is a reason to: once for each.
    fn reflect_first(&mut self, next: Next, decisions: &mut Vec<Decision>) -> Next {
        if !next.writes() {
            return next;
        }
        self.writing = Some(next);
        let Some(on) = self.setback.take() else {
            return next;
        };
        match on {
            Setback::Drop { best, worse } => {
                let score = |version| {
                    let mut judged = self.judged.iter();
                    let found = judged.find(|(iteration, _)| *iteration == version);
                    found.map_or(0.0, |(_, rank)| rank.score)
                };
                let reason = format!(
                    "score {:.2} is well below version {best}'s {:.2}: what went wrong is reflected on",
                    score(worse),
                    score(best),
                );
                decisions.push(Decision {
                    iteration: worse,
                    ..self.decision(Choice::Reflect, reason)
                });
            }
            // Before there is a version, there is none to decide about.
            Setback::Failure if self.incumbent.is_some() => {
                let reason = "the reply was rejected: reflecting on why, then asking again";
                decisions.push(self.decision(Choice::Reflect, reason.to_owned()));
            }
            Setback::Failure => {}
        }
        Next::Reflect {
            iteration: self.iteration,
            on,
        }
    }

    /// The first text that the run writes where none was judged: a draft, or the one correction of what it began
    /// with.
    fn first(&self) -> Next {
        let iteration = self.iteration;
        match self.given {
            None | Some(Given::ToJudge) => Next::Draft { iteration },
            Some(Given::ToMend) => Next::Revise {
                iteration,
                based_on: 1,
                approach: Approach::Usual,
            },
        }
    }

    /// Betters the incumbent, unless it is good enough or that is not worth it any more.
    fn go_on(&mut self, rules: &Rules, decisions: &mut Vec<Decision>) -> Next {
        let Some(best) = &self.incumbent else {
            return Next::Stop(ConvergenceReason::ModelError);
        };
        let (based_on, satisfactory) = (best.iteration, best.verdict.rank.satisfactory);
        let best_score = best.verdict.rank.score;
        let settings = rules.settings;
        let more = self.iteration < settings.max_iterations();
        if more && self.iteration < settings.min_iterations() {
            return self.another(based_on, settings, decisions);
        }
        // Whatever else holds: with a draft that meets the criteria the run has reached what it was for.
        if satisfactory {
            return Next::Stop(ConvergenceReason::QualityMet);
        }
        // A rule says more than the limit does.
        let Some(reason) = converged(&self.trail, settings) else {
            return if more {
                self.another(based_on, settings, decisions)
            } else {
                self.finish(ConvergenceReason::MaxIterations, rules, decisions)
            };
        };
        let stronger = self.abilities.stronger && !self.stronger && settings.adapt();
        if !(stronger && more && rules.limit.is_none()) {
            return self.finish(reason, rules, decisions);
        }
        self.stronger = true;
        self.trail = Trail {
            start: best_score,
            attempts: Vec::new(),
        };
        let reason = format!("{}: trying a stronger model", reason.describe());
        decisions.push(self.decision(Choice::ChangeApproach, reason));
        self.another(based_on, settings, decisions)
    }

    /// One more draft: a fresh one, or a revision of the best version.
    fn another(
        &mut self,
        based_on: u32,
        settings: &LoopSettings,
        decisions: &mut Vec<Decision>,
    ) -> Next {
        self.iteration += 1;
        let iteration = self.iteration;
        // What was given, and what the user has said since, a fresh draft would know nothing of.
        let may_draw =
            settings.adapt() && self.given.is_none() && !self.only_revise && !self.stronger;
        // Drafts in steps take many calls each.
        let dear = self.abilities.judge || settings.steps();
        if may_draw && self.odds.draws_again(dear) {
            decisions.push(self.decision(Choice::ChangeApproach, self.odds.why_draw()));
            return if self.odds.revisions == 0 && self.abilities.varied && !settings.steps() {
                Next::Draft { iteration }
            } else {
                let lessons = based_on;
                Next::Fresh { iteration, lessons }
            };
        }
        Next::Revise {
            iteration,
            based_on,
            approach: self.approach(settings),
        }
    }

    /// How the best version is revised, by what the last revisions came to.
    fn approach(&self, settings: &LoopSettings) -> Approach {
        if self.stronger {
            return Approach::Stronger;
        }
        let attempts = self.trail.attempts.iter().rev();
        let mut revisions = attempts.filter_map(|attempt| Some((attempt.strategy?, attempt)));
        let edits = |strategy| strategy != Strategy::FullRewrite;
        match (revisions.next(), revisions.next()) {
            _ if !settings.adapt() => Approach::Usual,
            (Some((strategy, last)), _) if last.outcome == Outcome::Worse && !edits(strategy) => {
                Approach::Careful
            }
            (Some((last, one)), Some((before, two)))
                if edits(last) && edits(before) && !one.is_gain() && !two.is_gain() =>
            {
                Approach::Rewrite
            }
            _ => Approach::Usual,
        }
    }

    fn decision(&self, choice: Choice, reason: String) -> Decision {
        Decision {
            iteration: self.iteration,
            choice,
            incumbent: self.incumbent().unwrap_or(self.iteration),
            reason,
        }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
