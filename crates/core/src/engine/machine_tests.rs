use std::collections::VecDeque;

use proptest::prelude::{Strategy as Generated, *};

use super::*;

fn settings(max_iterations: u32, plateau_iterations: u32) -> LoopSettings {
    LoopSettings {
        max_iterations: Some(max_iterations),
        plateau_iterations: Some(plateau_iterations),
        adapt: Some(false),
        ..LoopSettings::default()
    }
}

/// How revisions are made here.
const REWRITTEN: Option<crate::types::Strategy> = Some(crate::types::Strategy::FullRewrite);

/// A run that was played to its end.
struct Played {
    /// What each draft but the first was based on; a fresh draft on 0.
    bases: Vec<u32>,
    /// How each revision was made.
    approaches: Vec<Approach>,
    reason: ConvergenceReason,
    decisions: Vec<Decision>,
    state: State,
}

impl Played {
    fn choices(&self) -> Vec<Choice> {
        self.decisions.iter().map(|d| d.choice).collect()
    }
}

/// Plays a run in which the versions get these verdicts, and comparisons these answers.
fn play_verdicts(
    verdicts: impl IntoIterator<Item = Verdict>,
    preferences: &[Option<Preference>],
    abilities: Abilities,
    settings: &LoopSettings,
) -> Played {
    let mut verdicts = verdicts.into_iter();
    let mut preferences: VecDeque<_> = preferences.iter().copied().collect();
    let (mut bases, mut approaches, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let mut input = Input::Begun;
    let mut state = State::new(abilities);
    loop {
        let (new, next, decisions) = step(state, input, settings, 0);
        state = new;
        all.extend(decisions);
        input = match next {
            Effect::Draft { iteration: 1 } => Input::Written(None),
            Effect::Draft { .. } | Effect::Fresh { .. } => {
                bases.push(0);
                Input::Written(None)
            }
            Effect::Revise {
                based_on, approach, ..
            } => {
                bases.push(based_on);
                approaches.push(approach);
                Input::Written(REWRITTEN)
            }
            Effect::Compare { .. } => {
                Input::Compared(preferences.pop_front().expect("one comparison more"))
            }
            Effect::Evaluate { .. } => Input::Judged(
                verdicts
                    .next()
                    .expect("the run goes on longer than it should"),
            ),
            Effect::AskUser { .. } | Effect::TakeEdit { .. } => panic!("nobody decides here"),
            Effect::Reflect { .. } => Input::Reflected,
            Effect::TakeRejected { .. } => Input::NoDraft,
            Effect::Stop(reason) => {
                return Played {
                    bases,
                    approaches,
                    reason,
                    decisions: all,
                    state,
                };
            }
        };
    }
}

/// Plays a run in which the versions get these scores; satisfactory from `good` on. Gives what each
/// revision was based on, and why the run stopped.
fn play(
    scores: &[f64],
    good: f64,
    settings: &LoopSettings,
) -> (Vec<u32>, ConvergenceReason, State) {
    let verdicts: Vec<Verdict> = scores
        .iter()
        .map(|&score| Verdict::scored(score, score >= good))
        .collect();
    let played = play_verdicts(verdicts, &[], Abilities::default(), settings);
    (played.bases, played.reason, played.state)
}

#[test]
fn stops_as_soon_as_the_criteria_are_met() {
    let (bases, reason, _) = play(&[0.5, 0.9], 0.8, &settings(5, 2));
    assert_eq!((bases, reason), (vec![1], ConvergenceReason::QualityMet));
    let (bases, reason, _) = play(&[0.9], 0.8, &settings(5, 2));
    assert_eq!((bases, reason), (vec![], ConvergenceReason::QualityMet));
}

#[test]
fn revises_the_best_version_never_a_worse_one() {
    let (bases, reason, state) = play(&[0.5, 0.4, 0.6, 0.6, 0.1], 0.8, &settings(5, 5));
    assert_eq!(bases, [1, 1, 3, 3]);
    assert_eq!(reason, ConvergenceReason::MaxIterations);
    assert_eq!(state.incumbent(), Some(3));
}

/// The criteria that a judge would evaluate stay open, so such a draft is not satisfactory.
#[test]
fn without_a_judge_a_draft_that_passes_all_checks_is_the_last() {
    let no_judge = Abilities {
        unjudged: true,
        ..Abilities::default()
    };
    let verdict = |score, met| Verdict::scored(score, false).meeting(&[("short", met)]);
    let verdicts = [verdict(0.0, false), verdict(1.0, true), verdict(1.0, true)];
    let run = play_verdicts(verdicts, &[], no_judge, &settings(5, 4));
    assert_eq!(
        (run.reason, run.state.judged.len()),
        (ConvergenceReason::Plateau, 2)
    );
    // No criterion was evaluated at all.
    let unevaluated = [Verdict::scored(0.0, false), Verdict::scored(0.0, false)];
    let run = play_verdicts(unevaluated, &[], no_judge, &settings(5, 4));
    assert_eq!(run.state.judged.len(), 1);
}

#[test]
fn a_plateau_ends_the_run() {
    let (_, reason, state) = play(&[0.5, 0.6, 0.6, 0.55], 0.8, &settings(9, 2));
    assert_eq!(reason, ConvergenceReason::Plateau);
    assert_eq!(state.judged.len(), 4);
}

#[test]
fn a_satisfactory_version_with_a_lower_mean_wins() {
    let verdicts = [Verdict::scored(0.9, false), Verdict::scored(0.85, true)];
    let played = play_verdicts(verdicts, &[], Abilities::default(), &settings(5, 2));
    assert_eq!(played.decisions[1].choice, Choice::Accept);
    assert_eq!(
        played.decisions[1].reason,
        "meets the criteria, unlike the best draft so far"
    );
}

/// A judge evaluates.
const JUDGED: Abilities = Abilities {
    resumed: 0,
    judge: true,
    unjudged: false,
    stronger: false,
    decide: false,
    varied: true,
};

/// The settings with which the loop learns what helps.
fn learning(max_iterations: u32, plateau_iterations: u32) -> LoopSettings {
    LoopSettings {
        adapt: None,
        ..settings(max_iterations, plateau_iterations)
    }
}

fn scores<const N: usize>(scores: [f64; N]) -> [Verdict; N] {
    scores.map(|score| Verdict::scored(score, score >= 0.8))
}

#[test]
fn a_version_that_loses_something_never_wins_and_makes_the_next_revision_careful() {
    let met = |score, tone| Verdict::scored(score, false).meeting(&[("tone", tone)]);
    let verdicts = [
        met(0.5, true),
        met(0.7, false),
        met(0.4, true),
        met(0.6, true),
    ];
    let rules = LoopSettings {
        tie_margin: Some(0.0),
        ..learning(4, 5)
    };
    let played = play_verdicts(verdicts, &[], JUDGED, &rules);
    assert_eq!(played.bases, [1, 0, 1]);
    assert_eq!(played.approaches, [Approach::Usual, Approach::Careful]);
    assert_eq!(played.state.incumbent(), Some(4));
    let kept = &played.decisions[1];
    assert_eq!((kept.choice, kept.incumbent), (Choice::KeepIncumbent, 1));
    assert!(kept.reason.contains("breaks `tone`"), "{}", kept.reason);
}

#[test]
fn what_a_run_draws_follows_from_what_helped() {
    let played = play_verdicts(scores([0.5, 0.4, 0.4, 0.4]), &[], JUDGED, &learning(4, 9));
    assert_eq!(played.bases, [1, 0, 1]);
    let said: Vec<&str> = played
        .decisions
        .iter()
        .filter(|decision| decision.choice == Choice::ChangeApproach)
        .map(|decision| decision.reason.as_str())
        .collect();
    assert_eq!(said, ["writing a fresh draft: 0 of 1 revisions helped"]);
    // Revisions that help are gone on with.
    let played = play_verdicts(scores([0.3, 0.4, 0.5, 0.6]), &[], JUDGED, &learning(4, 9));
    assert_eq!(played.bases, [1, 2, 3]);
    // Where checks alone evaluate, a draft is cheap.
    let checked = Abilities {
        judge: false,
        ..JUDGED
    };
    let played = play_verdicts(scores([0.3, 0.4, 0.5, 0.9]), &[], checked, &learning(4, 9));
    assert_eq!(played.bases, [0, 0, 3]);
    // Nobody else's text is drawn anew, and nothing is where the user does not want it.
    let played = play_verdicts(scores([0.5, 0.4, 0.4, 0.4]), &[], checked, &settings(4, 9));
    assert_eq!(played.bases, [1, 1, 1]);
}

#[test]
fn the_same_prompt_is_drawn_from_only_where_it_brings_another_draft() {
    let checked = Abilities {
        judge: false,
        ..JUDGED
    };
    for (varied, wanted) in [(true, "Draft"), (false, "Fresh")] {
        let mut state = State::new(Abilities { varied, ..checked });
        let mut next = Effect::Stop(ConvergenceReason::Interrupted);
        let first = Input::Judged(Verdict::scored(0.5, false));
        for input in [Input::Begun, Input::Written(None), first] {
            (state, next, _) = step(state, input, &learning(3, 9), 0);
        }
        assert!(format!("{next:?}").starts_with(wanted), "{next:?}");
    }
}

#[test]
fn edits_that_do_not_help_become_a_rewrite() {
    let edited = Some(crate::types::Strategy::TargetedEdit);
    let mut state = State::new(JUDGED);
    let mut next = Effect::Stop(ConvergenceReason::Interrupted);
    let judged = |score| Input::Judged(Verdict::scored(score, false));
    for (strategy, score) in [(None, 0.5), (edited, 0.5), (None, 0.4), (edited, 0.5)] {
        let written = match next {
            Effect::Stop(_) => step(state, Input::Begun, &learning(9, 9), 0).0,
            _ => state,
        };
        (state, _, _) = step(written, Input::Written(strategy), &learning(9, 9), 0);
        (state, next, _) = step(state, judged(score), &learning(9, 9), 0);
    }
    let rewrite = Effect::Revise {
        iteration: 5,
        based_on: 1,
        approach: Approach::Rewrite,
    };
    assert_eq!(next, rewrite);
}

#[test]
fn at_the_end_who_sees_both_decides_between_the_best_and_the_first() {
    let rules = settings(3, 9);
    for (preference, best) in [
        (Some(Preference::First), 1),
        (Some(Preference::Tie), 1),
        (Some(Preference::Second), 2),
        // Nobody could say: then the score does.
        (None, 2),
    ] {
        let played = play_verdicts(scores([0.6, 0.62, 0.1]), &[preference], JUDGED, &rules);
        assert_eq!(played.state.incumbent(), Some(best), "{preference:?}");
        assert_eq!(played.reason, ConvergenceReason::MaxIterations);
        assert!(played.choices().contains(&Choice::Compare));
    }
    let off = LoopSettings {
        tie_margin: Some(0.0),
        ..rules.clone()
    };
    for (verdicts, rules) in [
        (scores([0.6, 0.62, 0.1]), &off),
        (scores([0.6, 0.71, 0.1]), &rules),
        (scores([0.78, 0.79, 0.8]), &rules),
        (scores([0.6, 0.5, 0.5]), &rules),
    ] {
        let played = play_verdicts(verdicts, &[], JUDGED, rules);
        assert!(!played.choices().contains(&Choice::Compare));
    }
}

#[test]
fn a_comparison_that_never_comes_is_decided_by_the_score() {
    let rules = settings(2, 2);
    let mut state = State::new(JUDGED);
    let mut next = Effect::Stop(ConvergenceReason::Interrupted);
    for input in [
        Input::Begun,
        Input::Written(REWRITTEN),
        Input::Judged(Verdict::scored(0.6, false)),
        Input::Written(REWRITTEN),
        Input::Judged(Verdict::scored(0.62, false)),
    ] {
        (state, next, _) = step(state, input, &rules, 0);
    }
    assert_eq!(next, Effect::Compare { first: 1, best: 2 });
    let (state, next, _) = step(state, Input::TimeUp, &rules, 0);
    assert_eq!(next, Effect::Stop(ConvergenceReason::TimeLimit));
    assert_eq!(state.incumbent(), Some(2));
}

#[test]
fn before_it_gives_up_the_loop_tries_the_stronger_model_once() {
    let flat = |count| std::iter::repeat_n(Verdict::scored(0.5, false), count);
    let played = play_verdicts(flat(3), &[], JUDGED, &learning(20, 2));
    assert_eq!(played.reason, ConvergenceReason::Plateau);
    let stronger = Abilities {
        stronger: true,
        ..JUDGED
    };
    let played = play_verdicts(flat(5), &[], stronger, &learning(20, 2));
    assert_eq!(played.reason, ConvergenceReason::Plateau);
    assert_eq!(
        played.approaches[1..],
        [Approach::Stronger, Approach::Stronger]
    );
    let mut changes = played.decisions.iter();
    assert!(changes.any(|d| d.choice == Choice::ChangeApproach
        && d.reason == "no improvement in recent drafts: trying a stronger model"));
    // What helps is gone on with.
    let played = play_verdicts(
        scores([0.5, 0.5, 0.5, 0.6, 0.7, 0.9]),
        &[],
        stronger,
        &learning(20, 2),
    );
    assert_eq!(played.reason, ConvergenceReason::QualityMet);
    assert_eq!(played.bases, [1, 0, 1, 4, 5]);
}

#[test]
fn nothing_but_a_limit_ends_a_run_before_its_fewest_drafts() {
    let rules = LoopSettings {
        min_iterations: Some(4),
        ..settings(5, 1)
    };
    let (bases, reason, state) = play(&[0.9, 0.5, 0.95, 0.5], 0.8, &rules);
    assert_eq!(
        (bases, reason),
        (vec![1, 1, 3], ConvergenceReason::QualityMet)
    );
    assert_eq!(state.incumbent(), Some(3));
}

#[test]
fn a_plateau_of_the_same_issues_or_the_same_text_is_named_so() {
    let issues = || Verdict::scored(0.5, false).with_open(&[1, 2]);
    let alike = || Verdict::scored(0.5, false).alike(0.99);
    for (verdict, reason) in [
        (issues(), ConvergenceReason::RepeatedIssues),
        (alike(), ConvergenceReason::Stable),
    ] {
        let all = std::iter::repeat_n(verdict, 4);
        let played = play_verdicts(all, &[], Abilities::default(), &settings(9, 3));
        assert_eq!(played.reason, reason);
        assert_eq!(played.bases.len(), 3, "one of them ends nothing");
    }
}

#[test]
fn the_limit_holds_for_1_and_for_1000() {
    for limit in [1_u16, 1000] {
        let scores: Vec<f64> = (0..limit).map(|n| f64::from(n) / 2000.0).collect();
        let rules = LoopSettings {
            improvement_threshold: Some(0.0),
            ..settings(u32::from(limit), 2)
        };
        let (bases, reason, _) = play(&scores, 0.9, &rules);
        assert_eq!(reason, ConvergenceReason::MaxIterations);
        assert_eq!(bases.len(), usize::from(limit) - 1);
    }
}

#[test]
fn one_unreadable_verdict_is_asked_for_again_two_in_a_row_end_the_run() {
    let settings = settings(3, 2);
    let (state, _, _) = step(State::default(), Input::Begun, &settings, 0);
    let (state, _, _) = step(state, Input::Written(REWRITTEN), &settings, 0);
    let (state, next, _) = step(state, Input::Unreadable, &settings, 0);
    assert_eq!(
        next,
        Effect::Evaluate {
            iteration: 1,
            attempt: 1
        }
    );
    let (_, next, _) = step(state.clone(), Input::Unreadable, &settings, 0);
    assert_eq!(next, Effect::Stop(ConvergenceReason::JudgeFailed));
    let judged = Input::Judged(Verdict::scored(0.5, false));
    let (state, next, _) = step(state, judged, &settings, 0);
    assert_eq!(
        next,
        Effect::Revise {
            iteration: 2,
            based_on: 1,
            approach: Approach::Usual
        }
    );
    assert_eq!(state.judge_failures, 0);
}

#[test]
fn a_first_draft_is_asked_for_twice_a_revision_once() {
    let settings = settings(3, 2);
    let (state, _, _) = step(State::default(), Input::Begun, &settings, 0);
    let (state, next, _) = step(state, Input::Rejected, &settings, 0);
    assert_eq!(next, Effect::Draft { iteration: 1 });
    let (last, next, _) = step(state.clone(), Input::Rejected, &settings, 0);
    assert_eq!(next, Effect::TakeRejected { iteration: 1 });
    let (_, next, _) = step(last, Input::NoDraft, &settings, 0);
    assert_eq!(next, Effect::Stop(ConvergenceReason::NoDraft));
    let (state, _, _) = step(state, Input::Written(REWRITTEN), &settings, 0);
    let judged = Input::Judged(Verdict::scored(0.5, false));
    let (state, _, _) = step(state, judged, &settings, 0);
    let (state, next, _) = step(state, Input::Rejected, &settings, 0);
    assert_eq!(
        next,
        Effect::Revise {
            iteration: 3,
            based_on: 1,
            approach: Approach::Usual
        }
    );
    let (_, next, _) = step(state, Input::Rejected, &settings, 0);
    assert_eq!(next, Effect::Stop(ConvergenceReason::Plateau));
}

#[test]
fn where_checks_alone_evaluate_a_first_draft_is_asked_for_as_often_as_drafts_are_allowed() {
    let settings = settings(4, 2);
    let checked = Abilities {
        judge: false,
        ..JUDGED
    };
    for (abilities, tries) in [(checked, 4), (JUDGED, 2)] {
        let (mut state, mut next, _) = step(State::new(abilities), Input::Begun, &settings, 0);
        for _ in 0..tries {
            assert_eq!(next, Effect::Draft { iteration: 1 });
            (state, next, _) = step(state, Input::Rejected, &settings, 0);
        }
        assert_eq!(next, Effect::TakeRejected { iteration: 1 });
    }
}

#[test]
fn a_run_that_is_resumed_without_a_draft_requests_one_again() {
    let settings = settings(3, 2);
    let resumed = Abilities {
        resumed: 1,
        ..Abilities::default()
    };
    let (mut state, mut next, _) = step(State::new(resumed), Input::Begun, &settings, 0);
    for _ in 0..4 {
        assert_eq!(next, Effect::Draft { iteration: 1 });
        (state, next, _) = step(state, Input::Rejected, &settings, 0);
    }
    assert_eq!(next, Effect::TakeRejected { iteration: 1 });
}

#[test]
fn a_flawed_correction_is_not_taken_for_the_users_text() {
    let settings = settings(3, 2);
    let given = Input::Given(Given::FixOnly);
    let (state, _, _) = step(State::default(), given, &settings, 0);
    let (state, _, _) = step(state, Input::Rejected, &settings, 0);
    let (_, next, _) = step(state, Input::Rejected, &settings, 0);
    assert_eq!(next, Effect::Stop(ConvergenceReason::NoDraft));
}

#[test]
fn no_call_is_made_once_the_tokens_are_used_up() {
    let settings = LoopSettings {
        max_total_tokens: Some(100),
        ..settings(3, 2)
    };
    let (state, next, _) = step(State::default(), Input::Begun, &settings, 99);
    assert_eq!(next, Effect::Draft { iteration: 1 });
    let (state, next, _) = step(state, Input::Written(REWRITTEN), &settings, 100);
    assert_eq!(next, Effect::Stop(ConvergenceReason::TokenBudget));
    let met = Input::Judged(Verdict::scored(1.0, true));
    let (_, next, _) = step(state, met, &settings, 500);
    assert_eq!(next, Effect::Stop(ConvergenceReason::QualityMet));
}

fn anything() -> impl Generated<Value = Input> {
    prop_oneof![
        Just(Input::Written(REWRITTEN)),
        Just(Input::Rejected),
        Just(Input::Unreadable),
        prop_oneof![
            Just(None),
            Just(Some(Preference::First)),
            Just(Some(Preference::Second)),
        ]
        .prop_map(Input::Compared),
        (
            any::<bool>(),
            0.0f64..=1.0,
            any::<bool>(),
            prop::option::of(0.9f64..=1.0),
            prop::collection::btree_set(1u32..4, 0..3)
        )
            .prop_map(|(satisfactory, score, met, similarity, open)| {
                let mut verdict = Verdict::scored(score, satisfactory).meeting(&[("a", met)]);
                verdict.similarity = similarity;
                verdict.open = open;
                Input::Judged(verdict)
            }),
    ]
}

proptest! {
    #[test]
    fn the_circuit_breaker_holds_whatever_happens(
        what in prop::collection::vec(anything(), 0..400),
        max in 1u32..50,
        plateau in 1u32..50,
        min in 1u32..50,
        adapt in any::<bool>(),
        judge in any::<bool>(),
        stronger in any::<bool>(),
    ) {
        let settings = LoopSettings {
            min_iterations: Some(min.min(max)),
            adapt: Some(adapt),
            ..settings(max, plateau)
        };
        let state = State::new(Abilities {
            judge,
            stronger,
            ..Abilities::default()
        });
        let (mut state, mut next, _) = step(state, Input::Begun, &settings, 0);
        let mut calls = 1;
        for input in what {
            // Only what can follow on the step that was taken.
            let fits = match (next, &input) {
                (Effect::Stop(_), _) => break,
                (Effect::Evaluate { .. }, Input::Judged(_) | Input::Unreadable)
                | (Effect::Compare { .. }, Input::Compared(_))
                | (
                    Effect::Draft { .. } | Effect::Fresh { .. } | Effect::Revise { .. },
                    Input::Written(_) | Input::Rejected,
                )
                | (Effect::TakeRejected { .. }, Input::Written(_) | Input::NoDraft) => true,
                _ => false,
            };
            if !fits {
                continue;
            }
            let before = state.incumbent.clone();
            (state, next, _) = step(state, input, &settings, 0);
            calls += 1;
            prop_assert!(state.iteration <= max);
            prop_assert!(calls <= 3 + 5 * max + 5);
            if let (Some(before), Some(after)) = (before, &state.incumbent) {
                let (old, new) = (&before.verdict, &after.verdict);
                prop_assert!(new.class() >= old.class(), "the incumbent got worse in kind");
                let slide = old.rank.score - new.rank.score;
                prop_assert!(
                    new.class() > old.class() || new == old || slide < settings.tie_margin() + 1e-9,
                    "the incumbent got worse by {slide}"
                );
                prop_assert!(
                    judge || new.class() > old.class() || new.rank.score >= old.rank.score
                );
            }
            match next {
                Effect::Revise { based_on, .. } => prop_assert_eq!(Some(based_on), state.incumbent()),
                Effect::Fresh { lessons, .. } => {
                    prop_assert!(adapt);
                    prop_assert_eq!(Some(lessons), state.incumbent());
                }
                Effect::Stop(ConvergenceReason::MaxIterations) => prop_assert_eq!(state.iteration, max),
                _ => {}
            }
            if let Effect::Stop(reason) = next
                && reason != ConvergenceReason::JudgeFailed
                && reason != ConvergenceReason::ModelError
            {
                prop_assert!(state.iteration >= min.min(max), "{reason:?} before the fewest drafts");
                let good = state.incumbent.as_ref().is_some_and(|best| best.verdict.rank.satisfactory);
                prop_assert_eq!(good, reason == ConvergenceReason::QualityMet);
            }
        }
    }
}

#[test]
fn a_drop_is_reflected_on_once_before_the_next_revision_of_the_best() {
    let settings = LoopSettings {
        quality_drop_threshold: Some(0.1),
        detect_oscillation: Some(false),
        ..settings(4, 5)
    };
    let drop = Effect::Reflect {
        iteration: 3,
        on: Setback::Drop { best: 1, worse: 2 },
    };
    let revise = Effect::Revise {
        iteration: 3,
        based_on: 1,
        approach: Approach::Usual,
    };
    let judged = |score| Input::Judged(Verdict::scored(score, false));
    let play = |input: &[Input], settings: &LoopSettings| {
        let mut state = State::default();
        let (mut all, mut decisions) = (Vec::new(), Vec::new());
        for input in input {
            let next;
            (state, next, decisions) = step(state, input.clone(), settings, 0);
            all.push(next);
        }
        (all, decisions)
    };
    let written = || Input::Written(REWRITTEN);
    let mut input = vec![Input::Begun, written(), judged(0.6), written(), judged(0.4)];
    let (all, decisions) = play(&input, &settings);
    assert_eq!(all.last(), Some(&drop));
    let said = decisions.last().unwrap();
    assert_eq!((said.choice, said.iteration), (Choice::Reflect, 2));
    assert_eq!(
        said.reason,
        "score 0.40 is well below draft 1's 0.60; reflecting on what went wrong"
    );
    let (off, _) = play(&input, &self::settings(4, 5));
    assert_eq!(off.last(), Some(&revise));
    input.push(Input::Reflected);
    assert_eq!(play(&input, &settings).0.last(), Some(&revise));
    input.extend([written(), judged(0.55)]);
    let (all, _) = play(&input, &settings);
    assert!(
        matches!(all.last(), Some(Effect::Revise { iteration: 4, .. })),
        "no drop: {all:?}"
    );
    // Nothing is written after the last version, so nothing is reflected on.
    input.extend([written(), judged(0.1)]);
    let (all, _) = play(&input, &settings);
    assert_eq!(
        all.last(),
        Some(&Effect::Stop(ConvergenceReason::MaxIterations))
    );
}

#[test]
fn a_failure_is_reflected_on_once_for_each_version() {
    let settings = LoopSettings {
        reflect_on_error: Some(true),
        ..settings(3, 5)
    };
    let take = |state, input| {
        let (state, next, _) = step(state, input, &settings, 0);
        (state, next)
    };
    let reflect = |iteration| Effect::Reflect {
        iteration,
        on: Setback::Failure,
    };
    // A first draft: the fault is told first, then reflected on, then it is given up.
    let (state, draft) = take(State::default(), Input::Begun);
    let (state, next) = take(state, Input::Rejected);
    assert_eq!(next, draft);
    let (state, next) = take(state, Input::Rejected);
    assert_eq!(next, reflect(1));
    let (state, next) = take(state, Input::Reflected);
    assert_eq!(next, draft);
    let (_, next) = take(state.clone(), Input::Rejected);
    assert_eq!(next, Effect::TakeRejected { iteration: 1 });
    // A revision: before the attempt is lost.
    let (state, _) = take(state, Input::Written(None));
    let (state, revise) = take(state, Input::Judged(Verdict::scored(0.5, false)));
    let (state, next) = take(state, Input::Rejected);
    assert_eq!(next, reflect(2));
    let (state, next) = take(state, Input::Reflected);
    assert_eq!(next, revise);
    let (state, next) = take(state, Input::Rejected);
    assert!(
        matches!(next, Effect::Revise { iteration: 3, .. }),
        "{next:?}"
    );
    let (state, next) = take(state, Input::Rejected);
    assert_eq!(next, reflect(3));
    // Without tokens for another try there is nothing to reflect for.
    let few = LoopSettings {
        max_total_tokens: Some(10),
        ..settings.clone()
    };
    let (_, next, _) = step(state, Input::Reflected, &few, 10);
    assert_eq!(next, Effect::Stop(ConvergenceReason::TokenBudget));
}

/// Another draft would not be judged either; an unreadable verdict is asked for again.
#[test]
fn a_check_that_fails_ends_the_run_at_once() {
    let settings = settings(5, 5);
    let (state, _, _) = step(State::default(), Input::Begun, &settings, 0);
    let (state, next, _) = step(state, Input::Written(REWRITTEN), &settings, 0);
    assert!(matches!(next, Effect::Evaluate { .. }));
    let (_, again, _) = step(state.clone(), Input::Unreadable, &settings, 0);
    assert!(matches!(again, Effect::Evaluate { .. }));
    let (_, next, _) = step(state, Input::CheckFailed, &settings, 0);
    assert_eq!(next, Effect::Stop(ConvergenceReason::JudgeFailed));
    assert_eq!(
        ConvergenceReason::JudgeFailed.exit_code(false),
        crate::types::ExitCode::JudgeUnusable
    );
}

/// Score sequences with the stop that is right.
mod curves {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Curves {
        curve: Vec<Curve>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Curve {
        name: String,
        scores: Vec<f64>,
        #[serde(default)]
        issues: Vec<Vec<u32>>,
        #[serde(default)]
        alike: Vec<f64>,
        stop: ConvergenceReason,
        drafts: usize,
        best: u32,
        max: Option<u32>,
        min: Option<u32>,
        plateau: Option<u32>,
        goal: Option<f64>,
        improvement: Option<f64>,
        oscillation: Option<bool>,
        #[serde(default)]
        adapt: bool,
    }

    /// The reason, how many drafts were made, and which is the best; all scores are used up first.
    fn stop(curve: &Curve) -> (ConvergenceReason, usize, Option<u32>) {
        let goal = curve.goal.unwrap_or(0.8);
        let settings = LoopSettings {
            max_iterations: Some(curve.max.unwrap_or(10)),
            min_iterations: curve.min,
            plateau_iterations: Some(curve.plateau.unwrap_or(2)),
            threshold: Some(goal),
            improvement_threshold: curve.improvement,
            detect_oscillation: curve.oscillation,
            adapt: Some(curve.adapt),
            ..LoopSettings::default()
        };
        let last = curve.scores.last().copied().unwrap_or_default();
        let verdicts = (0..).map(|n| {
            let score = curve.scores.get(n).copied().unwrap_or(last);
            let mut verdict = Verdict::scored(score, score >= goal);
            verdict.similarity = curve.alike.get(n).copied();
            if let Some(issues) = curve.issues.get(n) {
                verdict = verdict.with_open(issues);
            }
            verdict
        });
        let played = play_verdicts(verdicts, &[], Abilities::default(), &settings);
        (
            played.reason,
            played.bases.len() + 1,
            played.state.incumbent(),
        )
    }

    #[test]
    fn at_least_95_in_100_stop_where_they_should() {
        let text = include_str!("../../../../tests/data/curves.toml");
        let curves = toml::from_str::<Curves>(text).unwrap().curve;
        assert!(curves.len() >= 60, "{}", curves.len());
        let wrong: Vec<String> = curves
            .iter()
            .filter_map(|curve| {
                let (reason, drafts, best) = stop(curve);
                let right = (reason, drafts, best) == (curve.stop, curve.drafts, Some(curve.best));
                (!right).then(|| {
                    format!(
                        "{}: {reason:?} after {drafts} drafts, the best {best:?}, not {:?} after {}, the best {}",
                        curve.name, curve.stop, curve.drafts, curve.best
                    )
                })
            })
            .collect();
        let right = curves.len() - wrong.len();
        assert!(
            right * 100 >= curves.len() * 95,
            "{right} of {} are right\n{}",
            curves.len(),
            wrong.join("\n")
        );
        // Those whose next draft nobody could foresee; every other one must be right.
        let unforeseeable = curves
            .iter()
            .filter(|c| c.name.starts_with("unforeseeable"))
            .count();
        assert!(wrong.len() <= unforeseeable, "{}", wrong.join("\n"));
    }
}

/// Plays a run that begins with a text; the versions get these scores, good from 0.8 on.
fn play_given(scores: &[f64], settings: &LoopSettings) -> (Vec<Effect>, State) {
    let mut scores = scores.iter();
    let mut all = Vec::new();
    let mut input = Input::Given(Given::ToJudge);
    let mut state = State::default();
    loop {
        let (new, next, _) = step(state, input, settings, 0);
        state = new;
        all.push(next);
        input = match next {
            Effect::Evaluate { .. } => {
                let score = *scores.next().expect("a score more");
                Input::Judged(Verdict::scored(score, score >= 0.8))
            }
            Effect::Revise { .. } => Input::Written(REWRITTEN),
            Effect::Stop(_) => return (all, state),
            other => panic!("{other:?} owes nothing to the text"),
        };
    }
}

#[test]
fn a_text_that_is_given_is_judged_first_and_stays_if_it_is_good() {
    let judged = Effect::Evaluate {
        iteration: 1,
        attempt: 0,
    };
    let (all, state) = play_given(&[0.9], &settings(5, 2));
    let stop = Effect::Stop(ConvergenceReason::QualityMet);
    assert_eq!((all, state.incumbent()), (vec![judged, stop], Some(1)));
    // It counts as a version.
    let (all, _) = play_given(&[0.5], &settings(1, 2));
    let stop = Effect::Stop(ConvergenceReason::MaxIterations);
    assert_eq!(all, [judged, stop]);
}

#[test]
fn a_text_that_is_given_is_never_replaced_by_a_fresh_draft() {
    let adapting = LoopSettings {
        adapt: Some(true),
        ..settings(9, 2)
    };
    let (all, state) = play_given(&[0.5, 0.4, 0.4], &adapting);
    assert_eq!(all.len(), 6);
    assert_eq!(all[5], Effect::Stop(ConvergenceReason::Plateau));
    assert_eq!(state.incumbent(), Some(1));
}

#[test]
fn a_correction_is_one_revision_that_nobody_judges() {
    let settings = settings(9, 2);
    let take = |state, input| step(state, input, &settings, 0);
    let revise = Effect::Revise {
        iteration: 2,
        based_on: 1,
        approach: Approach::Usual,
    };
    let (state, next, _) = take(State::default(), Input::Given(Given::FixOnly));
    assert_eq!(next, revise);
    let (_, next, _) = take(state.clone(), Input::Written(REWRITTEN));
    assert_eq!(next, Effect::Stop(ConvergenceReason::Corrected));
    // A reply that is no text is asked for again, once.
    let (state, next, _) = take(state, Input::Rejected);
    assert_eq!(next, revise);
    let (_, next, _) = take(state, Input::Rejected);
    assert_eq!(next, Effect::Stop(ConvergenceReason::NoDraft));
}

#[test]
fn candidates_are_for_what_revises_a_judged_draft() {
    let settings = LoopSettings {
        candidates: Some(crate::types::Candidates::Auto),
        ..settings(9, 9)
    };
    let take = |state, input| step(state, input, &settings, 0);
    let chosen = |score| Input::Chosen(REWRITTEN, Verdict::scored(score, false));
    let (state, _, _) = take(State::default(), Input::Begun);
    assert_eq!(state.candidates(&settings), 1, "the first draft is alone");
    let (state, _, _) = take(state, Input::Written(None));
    let (state, _, _) = take(state, Input::Judged(Verdict::scored(0.5, false)));
    assert_eq!(
        state.candidates(&settings),
        1,
        "nothing has failed to help yet"
    );
    let (state, next, _) = take(state, chosen(0.4));
    assert!(
        matches!(next, Effect::Revise { based_on: 1, .. }),
        "{next:?}"
    );
    assert_eq!(state.candidates(&settings), 2, "the last try did not help");
    let (state, next, decisions) = take(state, chosen(0.7));
    assert!(
        matches!(next, Effect::Revise { based_on: 3, .. }),
        "{next:?}"
    );
    assert_eq!(decisions[0].choice, Choice::Accept);
    assert_eq!(state.candidates(&settings), 1, "it helped");
    let (state, _, _) = take(state, Input::Rejected);
    assert_eq!(state.candidates(&settings), 2, "no draft is no help");
}

#[path = "machine_decide_tests.rs"]
mod decide;
