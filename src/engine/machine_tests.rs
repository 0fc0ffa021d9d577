use proptest::prelude::*;

use super::*;

fn settings(max_iterations: u32, plateau_iterations: u32) -> LoopSettings {
    LoopSettings {
        max_iterations: Some(max_iterations),
        plateau_iterations: Some(plateau_iterations),
        ..LoopSettings::default()
    }
}

/// Plays a run in which the versions get these scores; satisfactory from `good` on. Gives what each
/// revision was based on, and why the run stopped.
fn play(
    scores: &[f64],
    good: f64,
    settings: &LoopSettings,
) -> (Vec<u32>, ConvergenceReason, State) {
    let mut scores = scores.iter().copied();
    let mut bases = Vec::new();
    let mut happened = Happened::Begun;
    let mut state = State::default();
    loop {
        let (new, next, _) = step(state, happened, settings, 0);
        state = new;
        happened = match next {
            Next::Draft { .. } => Happened::Written,
            Next::Revise { based_on, .. } => {
                bases.push(based_on);
                Happened::Written
            }
            Next::Evaluate { .. } => {
                let score = scores
                    .next()
                    .expect("the run goes on longer than it should");
                Happened::Judged(Rank {
                    satisfactory: score >= good,
                    required_met: true,
                    score,
                })
            }
            Next::Stop(reason) => return (bases, reason, state),
        };
    }
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
    assert_eq!(state.incumbent.unwrap().0, 3);
}

#[test]
fn a_plateau_ends_the_run() {
    let (_, reason, state) = play(&[0.5, 0.6, 0.6, 0.55], 0.8, &settings(9, 2));
    assert_eq!(reason, ConvergenceReason::Plateau);
    assert_eq!(state.judged.len(), 4);
}

#[test]
fn a_satisfactory_version_with_a_lower_mean_wins() {
    let mut state = State {
        iteration: 1,
        ..State::default()
    };
    state.judge(Rank {
        satisfactory: false,
        required_met: true,
        score: 0.9,
    });
    state.iteration = 2;
    let decision = state.judge(Rank {
        satisfactory: true,
        required_met: true,
        score: 0.85,
    });
    assert_eq!(decision.choice, Choice::Accept);
    assert_eq!(
        decision.reason,
        "it meets the criteria, which the best so far does not"
    );
}

#[test]
fn one_unreadable_verdict_is_asked_for_again_two_in_a_row_end_the_run() {
    let settings = settings(3, 2);
    let (state, _, _) = step(State::default(), Happened::Begun, &settings, 0);
    let (state, _, _) = step(state, Happened::Written, &settings, 0);
    let (state, next, _) = step(state, Happened::Unreadable, &settings, 0);
    assert_eq!(
        next,
        Next::Evaluate {
            iteration: 1,
            attempt: 1
        }
    );
    let (_, next, _) = step(state.clone(), Happened::Unreadable, &settings, 0);
    assert_eq!(next, Next::Stop(ConvergenceReason::JudgeFailed));
    let judged = Happened::Judged(Rank {
        satisfactory: false,
        required_met: true,
        score: 0.5,
    });
    let (state, next, _) = step(state, judged, &settings, 0);
    assert_eq!(
        next,
        Next::Revise {
            iteration: 2,
            based_on: 1
        }
    );
    assert_eq!(state.judge_failures, 0);
}

#[test]
fn a_first_draft_is_asked_for_twice_a_revision_once() {
    let settings = settings(3, 2);
    let (state, _, _) = step(State::default(), Happened::Begun, &settings, 0);
    let (state, next, _) = step(state, Happened::Rejected, &settings, 0);
    assert_eq!(next, Next::Draft { iteration: 1 });
    let (_, next, _) = step(state.clone(), Happened::Rejected, &settings, 0);
    assert_eq!(next, Next::Stop(ConvergenceReason::ModelError));
    let (state, _, _) = step(state, Happened::Written, &settings, 0);
    let judged = Happened::Judged(Rank {
        satisfactory: false,
        required_met: true,
        score: 0.5,
    });
    let (state, _, _) = step(state, judged, &settings, 0);
    let (state, next, _) = step(state, Happened::Rejected, &settings, 0);
    assert_eq!(
        next,
        Next::Revise {
            iteration: 3,
            based_on: 1
        }
    );
    let (_, next, _) = step(state, Happened::Rejected, &settings, 0);
    assert_eq!(next, Next::Stop(ConvergenceReason::Plateau));
}

#[test]
fn no_call_is_made_once_the_tokens_are_used_up() {
    let settings = LoopSettings {
        max_total_tokens: Some(100),
        ..settings(3, 2)
    };
    let (state, next, _) = step(State::default(), Happened::Begun, &settings, 99);
    assert_eq!(next, Next::Draft { iteration: 1 });
    let (state, next, _) = step(state, Happened::Written, &settings, 100);
    assert_eq!(next, Next::Stop(ConvergenceReason::TokenBudget));
    let met = Happened::Judged(Rank {
        satisfactory: true,
        required_met: true,
        score: 1.0,
    });
    let (_, next, _) = step(state, met, &settings, 500);
    assert_eq!(next, Next::Stop(ConvergenceReason::QualityMet));
}

fn anything() -> impl Strategy<Value = Happened> {
    prop_oneof![
        Just(Happened::Written),
        Just(Happened::Rejected),
        Just(Happened::Unreadable),
        (any::<bool>(), 0.0f64..=1.0).prop_map(|(satisfactory, score)| Happened::Judged(Rank {
            satisfactory,
            required_met: true,
            score
        })),
    ]
}

proptest! {
    #[test]
    fn the_circuit_breaker_holds_whatever_happens(
        what in prop::collection::vec(anything(), 0..400),
        max in 1u32..50,
        plateau in 1u32..50,
    ) {
        let settings = settings(max, plateau);
        let (mut state, mut next, _) = step(State::default(), Happened::Begun, &settings, 0);
        let mut calls = 1;
        for happened in what {
            // Only what can follow on the step that was taken.
            let fits = match (next, happened) {
                (Next::Stop(_), _) => break,
                (Next::Evaluate { .. }, Happened::Judged(_) | Happened::Unreadable)
                | (Next::Draft { .. } | Next::Revise { .. }, Happened::Written | Happened::Rejected) => true,
                _ => false,
            };
            if !fits {
                continue;
            }
            let best_before = state.incumbent;
            (state, next, _) = step(state, happened, &settings, 0);
            calls += 1;
            prop_assert!(state.iteration <= max);
            prop_assert!(calls <= 2 + 4 * max + 4);
            if let (Some((_, before)), Some((_, after))) = (best_before, state.incumbent) {
                prop_assert!(after >= before, "the incumbent got worse");
            }
            if let Next::Revise { based_on, .. } = next {
                prop_assert_eq!(based_on, state.incumbent.unwrap().0);
            }
        }
    }
}

/// Another draft would not be judged either; an unreadable verdict is asked for again.
#[test]
fn a_check_that_fails_ends_the_run_at_once() {
    let settings = settings(5, 5);
    let (state, _, _) = step(State::default(), Happened::Begun, &settings, 0);
    let (state, next, _) = step(state, Happened::Written, &settings, 0);
    assert!(matches!(next, Next::Evaluate { .. }));
    let (_, again, _) = step(state.clone(), Happened::Unreadable, &settings, 0);
    assert!(matches!(again, Next::Evaluate { .. }));
    let (_, next, _) = step(state, Happened::CheckFailed, &settings, 0);
    assert_eq!(next, Next::Stop(ConvergenceReason::JudgeFailed));
    assert_eq!(
        ConvergenceReason::JudgeFailed.exit_code(false),
        crate::types::ExitCode::JudgeUnusable
    );
}
