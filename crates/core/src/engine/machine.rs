//! What to do next, as a pure function of the state and an input.

use super::candidates::how_many;
use super::converge::{Attempt, AttemptHistory, Outcome, converged};
use super::incumbent::{Challenge, Incumbent, challenge, is_regression};
use super::policy::{Approach, Guidance, Odds};
use super::spent::Spent;
use super::triggers::{self, Setback};
use super::verdict::Verdict;
use crate::evaluate::Preference;
use crate::types::{Choice, ConvergenceReason, LoopSettings, Rank, Strategy, UserDecision};

/// How many first drafts are requested before the best rejected reply is taken instead.
const FIRST_DRAFT_TRIES: u32 = 2;
/// Unparseable verdicts in a row on one draft that end a run. Each one stands for a call and a repair.
const JUDGE_TRIES: u32 = 2;

/// What a run can do apart from drafting, judging and revising.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an ability of its own"
)]
pub(super) struct Abilities {
    /// There is a judge, who also compares two drafts.
    pub(super) judge: bool,
    /// Some criteria need a judge, and it is disabled: no draft can meet them.
    pub(super) unjudged: bool,
    /// There is a stronger model.
    pub(super) stronger: bool,
    /// There is a decider.
    pub(super) decide: bool,
    /// How many times the run was resumed before it had a draft: each time, a first draft is requested again.
    pub(super) resumed: u32,
    /// The same prompt gives another draft, so it is worth trying again.
    pub(super) varied: bool,
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct State {
    abilities: Abilities,
    /// What happens to the given text; `None` if the run starts from the task alone.
    given: Option<Given>,
    /// The version in progress.
    iteration: u32,
    /// The best version so far; revisions start from it.
    incumbent: Option<Incumbent>,
    /// Every judged version, in order.
    pub(super) judged: Vec<(u32, Rank)>,
    /// The first version, until the answer is settled: it is compared with the best one at the end.
    first: Option<Incumbent>,
    /// Why the run stops, while the first and the best version are compared.
    closing: Option<ConvergenceReason>,
    /// The attempts to improve on the incumbent, since the start or since another model took over.
    trail: AttemptHistory,
    /// What was learned about the writer.
    odds: Odds,
    /// The tokens that were generated or evaluated up to the last version that counts in `odds`.
    accounted: u64,
    /// Whether fresh drafts are ruled out, because they would ignore the user's instructions.
    only_revise: bool,
    /// Whether the stronger model has taken over.
    stronger: bool,
    /// How the version that is judged next was revised, if it was.
    strategy: Option<Strategy>,
    /// The user's choice of an answer: an accepted version, or an edited text until it is judged.
    user_choice: Option<u32>,
    /// Unparseable verdicts in a row.
    judge_failures: u32,
    /// Rejected replies in a row.
    rejections: u32,
    /// What is being written, or was written last.
    writing: Option<Effect>,
    /// What is reflected on before the next text is written.
    setback: Option<Setback>,
    /// The version whose failed replies were reflected on.
    reflected: Option<u32>,
}

/// What to do with a given text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// Judge it, and revise it if needed.
    ToJudge,
    /// Revise it once: its issues are known, and nothing is judged.
    FixOnly,
}

/// The result of an effect, or the start of the run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
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
    /// The text was judged, and the verdict could not be parsed.
    Unreadable,
    /// The text could not be judged, because a check failed to run.
    CheckFailed,
    /// The first and the best version were compared, in this order; `None` if the answer could not be parsed.
    Compared(Option<Preference>),
    /// The decider has decided.
    Decided(UserDecision),
    /// A model failed for good.
    ModelFailed,
    /// A limit is reached before anything was written.
    OutOfBudget,
    /// The time is up.
    TimeUp,
    /// The run was cancelled.
    Cancelled,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Write a first draft.
    Draft { iteration: u32 },
    /// Judge a version, for the `attempt`th time, from 0.
    Evaluate { iteration: u32, attempt: u32 },
    /// Ask which of the first and the best version is better, before the run stops.
    Compare { first: u32, best: u32 },
    /// Ask the decider after an evaluation. On its own, the loop would continue, or stop for this reason.
    AskUser {
        iteration: u32,
        stops: Option<ConvergenceReason>,
    },
    /// Take the best of the rejected replies as the version, if one of them has only a flaw.
    TakeRejected { iteration: u32 },
    /// Take the text that the user edited.
    TakeEdit { iteration: u32, based_on: u32 },
    /// Revise a version.
    Revise {
        iteration: u32,
        based_on: u32,
        approach: Approach,
    },
    /// Write a fresh draft that avoids the issues of an earlier one.
    Fresh { iteration: u32, lessons: u32 },
    /// Reflect on what went wrong before a version is written.
    Reflect { iteration: u32, on: Setback },
    /// End the run.
    Stop(ConvergenceReason),
}

impl Effect {
    /// Whether a text is written.
    fn writes(self) -> bool {
        matches!(
            self,
            Self::Draft { .. } | Self::Revise { .. } | Self::Fresh { .. }
        )
    }
}

/// A choice with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) iteration: u32,
    pub(super) choice: Choice,
    pub(super) incumbent: u32,
    pub(super) reason: String,
}

/// Processes an input and returns what to do next. `spent` is what the run has used so far.
pub(super) fn step(
    mut state: State,
    input: Input,
    settings: &LoopSettings,
    spent: impl Into<Spent>,
) -> (State, Effect, Vec<Decision>) {
    let mut decisions = Vec::new();
    let spent: Spent = spent.into();
    let rules = Rules {
        settings,
        limit: spent.limit(settings),
        work: spent.work,
    };
    let next = state.take(input, &rules, &mut decisions);
    let next = state.reflect_first(next, &mut decisions);
    let next = rules.within_budget(next);
    if let (Effect::Stop(reason), Some(incumbent)) = (next, &state.incumbent) {
        decisions.push(Decision {
            iteration: state.iteration,
            choice: Choice::Stop,
            incumbent: incumbent.iteration,
            reason: reason.describe().to_owned(),
        });
    }
    (state, next, decisions)
}

/// What a decision depends on, in addition to the state.
struct Rules<'a> {
    settings: &'a LoopSettings,
    /// The limit that is reached, if one is.
    limit: Option<ConvergenceReason>,
    /// The tokens that were written or evaluated so far.
    work: u64,
}

impl Rules<'_> {
    /// No step that needs a model starts once a limit is reached: a run exceeds its limit by one step at most,
    /// with all candidates of that step.
    fn within_budget(&self, next: Effect) -> Effect {
        match (next, self.limit) {
            (
                Effect::Stop(_)
                | Effect::AskUser { .. }
                | Effect::TakeEdit { .. }
                | Effect::TakeRejected { .. },
                _,
            )
            | (_, None) => next,
            (_, Some(limit)) => Effect::Stop(limit),
        }
    }
}

impl State {
    /// The state of a new run.
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

    /// How many candidates the next version is chosen from. A first draft, which may pass, and a correction, which
    /// is not judged, have no others.
    pub(super) fn candidates(&self, settings: &LoopSettings) -> u32 {
        if self.incumbent.is_none() {
            return 1;
        }
        let helped = self.trail.attempts.last().map(Attempt::is_gain);
        how_many(settings.candidates(), helped)
    }

    /// The user's choice of an answer, if there is one. It overrides every rule of selection.
    pub(super) fn user_choice(&self) -> Option<u32> {
        self.user_choice
    }

    fn take(&mut self, input: Input, rules: &Rules, decisions: &mut Vec<Decision>) -> Effect {
        let stop = match input {
            Input::Begun => {
                self.iteration = 1;
                return self.first();
            }
            Input::Given(given) => {
                self.given = Some(given);
                self.iteration = 1;
                if given == Given::FixOnly {
                    self.iteration = 2;
                    return self.first();
                }
                return Effect::Evaluate {
                    iteration: 1,
                    attempt: 0,
                };
            }
            Input::Written(_) if self.given == Some(Given::FixOnly) => ConvergenceReason::Corrected,
            Input::Written(strategy) => {
                self.written(strategy);
                return Effect::Evaluate {
                    iteration: self.iteration,
                    attempt: 0,
                };
            }
            Input::Chosen(strategy, verdict) => {
                self.written(strategy);
                return self.judge(verdict, rules, decisions);
            }
            Input::Rejected => return self.reject(rules, decisions),
            Input::NoDraft => ConvergenceReason::NoDraft,
            Input::Reflected => return self.again(),
            Input::Judged(verdict) => return self.judge(verdict, rules, decisions),
            Input::Compared(preference) => self.settle_answer(preference, decisions),
            Input::Decided(decision) => return self.apply_decision(&decision, rules, decisions),
            Input::Unreadable => {
                self.judge_failures += 1;
                if self.judge_failures < JUDGE_TRIES {
                    return Effect::Evaluate {
                        iteration: self.iteration,
                        attempt: self.judge_failures,
                    };
                }
                ConvergenceReason::JudgeFailed
            }
            // Nothing that is written would fix it.
            Input::CheckFailed => ConvergenceReason::JudgeFailed,
            Input::ModelFailed => ConvergenceReason::ModelError,
            Input::OutOfBudget => rules.limit.unwrap_or(ConvergenceReason::TokenBudget),
            Input::TimeUp => ConvergenceReason::TimeLimit,
            Input::Cancelled => ConvergenceReason::Interrupted,
        };
        Effect::Stop(stop)
    }

    /// Registers a new version.
    fn written(&mut self, strategy: Option<Strategy>) {
        self.rejections = 0;
        self.strategy = strategy;
    }

    /// Processes a verdict.
    fn judge(&mut self, verdict: Verdict, rules: &Rules, decisions: &mut Vec<Decision>) -> Effect {
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
            return self.ask_user(rules, decisions);
        };
        if self.user_choice.take().is_some() {
            let won = Challenge::Won("edited by the user".to_owned());
            self.settle(verdict, won, rules, decisions);
            self.begin_anew();
            return self.ask_user(rules, decisions);
        }
        let challenge = challenge(best, &verdict);
        self.settle(verdict, challenge, rules, decisions);
        self.ask_user(rules, decisions)
    }

    /// Continues after a version was judged; a decider is asked first. It is not asked about a version beyond the
    /// limit, which only a text edited by the user can be: so the limit holds, and no such text is lost.
    fn ask_user(&mut self, rules: &Rules, decisions: &mut Vec<Decision>) -> Effect {
        let iteration = self.iteration;
        if !self.abilities.decide || iteration > rules.settings.max_iterations() {
            return self.proceed(rules, decisions);
        }
        let mut then = self.clone();
        let alone = then.proceed(rules, &mut Vec::new());
        let stops = match rules.within_budget(alone) {
            Effect::Stop(reason) => Some(reason),
            Effect::Compare { .. } => then.closing,
            _ => None,
        };
        Effect::AskUser { iteration, stops }
    }

    /// Applies a decision, within the limits of the run.
    fn apply_decision(
        &mut self,
        decision: &UserDecision,
        rules: &Rules,
        decisions: &mut Vec<Decision>,
    ) -> Effect {
        match decision {
            UserDecision::Auto => self.proceed(rules, decisions),
            UserDecision::Continue => self.one_more(rules, decisions),
            UserDecision::Guide(_) => {
                self.begin_anew();
                self.one_more(rules, decisions)
            }
            UserDecision::Edit { of, .. } => {
                let based_on = *of;
                self.iteration += 1;
                self.user_choice = Some(self.iteration);
                Effect::TakeEdit {
                    iteration: self.iteration,
                    based_on,
                }
            }
            UserDecision::Accept(version) => {
                self.user_choice = Some(*version);
                Effect::Stop(ConvergenceReason::UserAccepted)
            }
            UserDecision::Stop => Effect::Stop(ConvergenceReason::UserQuit),
        }
    }

    /// Continues where the loop alone would stop, unless a limit is reached.
    fn one_more(&mut self, rules: &Rules, decisions: &mut Vec<Decision>) -> Effect {
        let next = self.proceed(rules, decisions);
        match (next, self.incumbent()) {
            (Effect::Stop(_) | Effect::Compare { .. }, Some(based_on))
                if self.iteration < rules.settings.max_iterations() =>
            {
                self.closing = None;
                self.another(based_on, rules.settings, decisions)
            }
            _ => next,
        }
    }

    /// Forgets past attempts: there is a new instruction, which only revisions follow.
    fn begin_anew(&mut self) {
        if let Some(best) = &self.incumbent {
            self.trail = AttemptHistory {
                start: best.verdict.rank.score,
                attempts: Vec::new(),
            };
        }
        self.first = None;
        self.odds = Odds::default();
        self.only_revise = true;
        self.stronger = false;
    }

    /// Stops. If the best version is not clearly better than the first one, both are compared first: a judge that
    /// sees both makes fewer errors than one that scores each alone.
    fn finish(
        &mut self,
        reason: ConvergenceReason,
        rules: &Rules,
        decisions: &mut Vec<Decision>,
    ) -> Effect {
        let stop = Effect::Stop(reason);
        let (Some(first), Some(best)) = (&self.first, &self.incumbent) else {
            return stop;
        };
        let (old, new) = (&first.verdict, &best.verdict);
        let gain = new.rank.score - old.rank.score;
        let close = first.iteration != best.iteration
            && new.class() == old.class()
            && gain < rules.settings.tie_margin();
        if !close || !self.abilities.judge || rules.limit.is_some() {
            return stop;
        }
        let why = format!(
            "score {:.2} is too close to draft {}'s {:.2}; comparing both",
            new.rank.score, first.iteration, old.rank.score
        );
        let (first, best) = (first.iteration, best.iteration);
        self.closing = Some(reason);
        decisions.push(Decision {
            iteration: best,
            ..self.decision(Choice::Compare, why)
        });
        Effect::Compare { first, best }
    }

    /// Takes the first version as the best one unless the judge prefers the other; without a preference the scores
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
                format!("preferred to draft {kept} in both orders")
            }
            Some(Preference::First) => format!("the judge prefers draft {kept} in both orders"),
            Some(Preference::Tie) => format!("not clearly better than draft {kept}"),
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

    /// Makes a version the incumbent, or keeps the old one.
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
                attempt.outcome = if leap {
                    Outcome::TierGain
                } else {
                    Outcome::Gain
                };
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

    /// Records an attempt to improve on the incumbent.
    fn attempted(&mut self, attempt: Attempt, rules: &Rules) {
        let cost = self.account(rules);
        if matches!(self.writing, Some(Effect::Revise { .. })) {
            self.odds.revisions += 1;
            self.odds.helped += u32::from(attempt.is_gain());
            self.odds.revised += cost;
        } else {
            self.odds.draws += 1;
            self.odds.drawn += cost;
        }
        self.trail.attempts.push(attempt);
    }

    /// The cost of the last version.
    fn account(&mut self, rules: &Rules) -> u64 {
        let before = std::mem::replace(&mut self.accounted, rules.work);
        rules.work.saturating_sub(before)
    }

    /// Handles a rejected reply. A first draft is requested again, and after the last try the best rejected reply
    /// is taken; a rejected revision counts as an attempt without a gain.
    fn reject(&mut self, rules: &Rules, decisions: &mut Vec<Decision>) -> Effect {
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
            // If the user requested the revision, the menu comes back and says that it was rejected.
            return self.ask_user(rules, decisions);
        }
        // Where only checks evaluate, another try costs no more than another draft.
        let tries = if self.abilities.varied && !self.abilities.judge && self.given.is_none() {
            FIRST_DRAFT_TRIES.max(rules.settings.max_iterations())
        } else {
            FIRST_DRAFT_TRIES
        };
        if self.rejections < tries.saturating_mul(1 + self.abilities.resumed) {
            return self.first();
        }
        match self.given {
            // A flawed correction would replace the user's own text without evaluation.
            Some(Given::FixOnly) => Effect::Stop(ConvergenceReason::NoDraft),
            _ => Effect::TakeRejected {
                iteration: self.iteration,
            },
        }
    }

    /// Whether a rejected reply is reflected on and requested again.
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

    /// Writes the same text again.
    fn again(&self) -> Effect {
        self.writing.unwrap_or_else(|| self.first())
    }

    /// Reflects before a text is written, if there is a reason: once for each reason.
    fn reflect_first(&mut self, next: Effect, decisions: &mut Vec<Decision>) -> Effect {
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
                    "score {:.2} is well below draft {best}'s {:.2}; reflecting on what went wrong",
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
        Effect::Reflect {
            iteration: self.iteration,
            on,
        }
    }

    /// The first text that the run writes without one that was judged: a draft, or the one correction of the given
    /// text. with.
    fn first(&self) -> Effect {
        let iteration = self.iteration;
        match self.given {
            None | Some(Given::ToJudge) => Effect::Draft { iteration },
            Some(Given::FixOnly) => Effect::Revise {
                iteration,
                based_on: 1,
                approach: Approach::Usual,
            },
        }
    }

    /// Improves on the incumbent, unless it is good enough or not worth it any more.
    fn proceed(&mut self, rules: &Rules, decisions: &mut Vec<Decision>) -> Effect {
        let Some(best) = &self.incumbent else {
            return Effect::Stop(ConvergenceReason::ModelError);
        };
        let (based_on, satisfactory) = (best.iteration, best.verdict.rank.satisfactory);
        let best_score = best.verdict.rank.score;
        let settings = rules.settings;
        let more = self.iteration < settings.max_iterations();
        if more && self.iteration < settings.min_iterations() {
            return self.another(based_on, settings, decisions);
        }
        // A draft that meets the criteria is the goal, whatever else holds.
        if satisfactory {
            return Effect::Stop(ConvergenceReason::QualityMet);
        }
        // Without a judge, nothing can rank another draft above this one.
        if self.abilities.unjudged && best.verdict.passes_all_checks(settings.threshold()) {
            return Effect::Stop(ConvergenceReason::Plateau);
        }
        // A convergence rule is a better reason than the limit.
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
        self.trail = AttemptHistory {
            start: best_score,
            attempts: Vec::new(),
        };
        let reason = format!("{}: trying a stronger model", reason.describe());
        decisions.push(self.decision(Choice::ChangeApproach, reason));
        self.another(based_on, settings, decisions)
    }

    /// Requests one more draft: a fresh one, or a revision of the best version.
    fn another(
        &mut self,
        based_on: u32,
        settings: &LoopSettings,
        decisions: &mut Vec<Decision>,
    ) -> Effect {
        self.iteration += 1;
        let iteration = self.iteration;
        // A fresh draft would ignore the given text and the user's instructions.
        let may_draw =
            settings.adapt() && self.given.is_none() && !self.only_revise && !self.stronger;
        // Drafts in steps take many calls each, as judged ones do.
        let guidance = if self.abilities.judge || settings.steps() {
            Guidance::Judge
        } else if (self.incumbent.as_ref()).is_some_and(|best| best.verdict.placed) {
            Guidance::PlacedChecks
        } else {
            Guidance::Checks
        };
        if may_draw && self.odds.draws_again(guidance) {
            decisions.push(self.decision(Choice::ChangeApproach, self.odds.why_draw()));
            return if self.odds.revisions == 0 && self.abilities.varied && !settings.steps() {
                Effect::Draft { iteration }
            } else {
                let lessons = based_on;
                Effect::Fresh { iteration, lessons }
            };
        }
        Effect::Revise {
            iteration,
            based_on,
            approach: self.approach(settings),
        }
    }

    /// How to revise the best version, given the results of the last revisions.
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
