//! Runs in which somebody decides for the loop.

use super::*;

/// What was done in a run, from its begin to its end.
struct Guided {
    /// The version that each version was made of; 0 for a first draft.
    bases: Vec<u32>,
    /// Per question: the version, and why the loop would have stopped.
    asked: Vec<(u32, Option<ConvergenceReason>)>,
    reason: ConvergenceReason,
    state: State,
}

/// Plays a run in which the versions get these scores, satisfactory from 0.8 on, and these decisions are made; when
/// there are no more, the loop's own rule decides. Each step uses `tokens`.
fn guide(scores: &[f64], said: &[UserDecision], settings: &LoopSettings, tokens: u64) -> Guided {
    let mut scores = scores.iter().copied();
    let mut said = said.iter().cloned();
    let (mut bases, mut asked) = (Vec::new(), Vec::new());
    let mut used = 0;
    let mut input = Input::Begun;
    let mut state = State::new(Abilities {
        decide: true,
        ..Abilities::default()
    });
    loop {
        let (new, next, _) = step(state, input, settings, used);
        state = new;
        input = match next {
            Effect::Draft { .. } | Effect::Fresh { .. } => {
                bases.push(0);
                Input::Written(None)
            }
            Effect::Revise { based_on, .. } => {
                bases.push(based_on);
                Input::Written(REWRITTEN)
            }
            Effect::TakeEdit { based_on, .. } => {
                bases.push(based_on);
                Input::Written(None)
            }
            Effect::Evaluate { .. } => {
                used += tokens;
                let score = scores
                    .next()
                    .expect("the run goes on longer than it should");
                Input::Judged(Verdict::scored(score, score >= 0.8))
            }
            Effect::Compare { .. } => Input::Compared(None),
            Effect::AskUser { iteration, stops } => {
                asked.push((iteration, stops));
                Input::Decided(said.next().unwrap_or_default())
            }
            Effect::Reflect { .. } => Input::Reflected,
            Effect::TakeRejected { .. } => Input::NoDraft,
            Effect::Stop(reason) => {
                return Guided {
                    bases,
                    asked,
                    reason,
                    state,
                };
            }
        };
    }
}

fn edit(of: u32) -> UserDecision {
    UserDecision::Edit {
        of,
        text: "A text.".to_owned(),
    }
}

fn wish() -> UserDecision {
    UserDecision::Guide("Shorter.".to_owned())
}

use ConvergenceReason::{MaxIterations, Plateau, QualityMet, TokenBudget, UserAccepted, UserQuit};
use UserDecision::{Accept, Auto, Continue, Stop};

#[test]
fn left_alone_the_loop_does_what_it_does_without_anybody() {
    for scores in [&[0.9][..], &[0.3, 0.5, 0.9], &[0.5, 0.4, 0.45, 0.4, 0.4]] {
        let settings = settings(5, 2);
        let guided = guide(scores, &[], &settings, 0);
        let (bases, reason, state) = play(scores, 0.8, &settings);
        assert_eq!(guided.bases[1..], bases);
        assert_eq!(guided.reason, reason);
        assert_eq!(guided.state.judged, state.judged);
        assert_eq!(guided.asked.last().unwrap().1, Some(reason), "it says so");
        assert!(
            guided.asked.iter().rev().skip(1).all(|ask| ask.1.is_none()),
            "{:?}",
            guided.asked
        );
    }
}

#[test]
fn a_revision_that_comes_to_nothing_is_asked_about() {
    let settings = settings(5, 2);
    for score in [0.9, 0.3] {
        let judged = Input::Judged(Verdict::scored(score, score >= 0.8));
        let mut state = State::new(Abilities {
            decide: true,
            ..Abilities::default()
        });
        let mut last = None;
        for input in [
            Input::Begun,
            Input::Written(None),
            judged,
            Input::Decided(Continue),
            Input::Rejected,
        ] {
            let (new, next, _) = step(state, input, &settings, 0);
            state = new;
            last = Some(next);
        }
        assert!(
            matches!(last, Some(Effect::AskUser { iteration: 2, .. })),
            "{score}: {last:?}"
        );
        let (_, next, _) = step(state, Input::Decided(Continue), &settings, 0);
        assert!(
            matches!(
                next,
                Effect::Revise {
                    iteration: 3,
                    based_on: 1,
                    ..
                }
            ),
            "{next:?}"
        );
    }
}

#[test]
fn one_more_is_written_although_the_criteria_are_met_or_nothing_helps() {
    let guided = guide(&[0.9, 0.95], &[Continue], &settings(5, 2), 0);
    assert_eq!((guided.bases, guided.reason), (vec![0, 1], QualityMet));
    let guided = guide(
        &[0.5, 0.4, 0.4, 0.3],
        &[Auto, Auto, Continue],
        &settings(9, 2),
        0,
    );
    assert_eq!((guided.bases, guided.reason), (vec![0, 1, 1, 1], Plateau));
}

#[test]
fn the_limits_hold_whatever_is_decided() {
    for decision in [Continue, wish()] {
        let always = vec![decision; 20];
        let guided = guide(&[0.5, 0.4, 0.4], &always, &settings(3, 1), 0);
        assert_eq!(guided.bases.len(), 3);
        let limited = LoopSettings {
            max_total_tokens: Some(100),
            ..settings(9, 9)
        };
        let guided = guide(&[0.5, 0.4], &always, &limited, 60);
        assert_eq!((guided.bases.len(), guided.reason), (2, TokenBudget));
    }
}

#[test]
fn a_token_limit_is_told_and_leaves_the_user_the_last_word() {
    let limited = LoopSettings {
        max_total_tokens: Some(50),
        ..settings(9, 2)
    };
    let guided = guide(&[0.5], &[Continue], &limited, 60);
    assert_eq!(guided.asked, [(1, Some(TokenBudget))]);
    assert_eq!(guided.reason, TokenBudget);
    let guided = guide(&[0.5], &[Accept(1)], &limited, 60);
    assert_eq!(guided.reason, UserAccepted);
    // The text is taken in, though nobody can judge it any more, and it is the answer.
    let guided = guide(&[0.5], &[edit(1)], &limited, 60);
    assert_eq!(guided.reason, TokenBudget);
    assert_eq!(guided.bases, [0, 1]);
    assert_eq!(guided.state.user_choice(), Some(2));
}

#[test]
fn who_accepts_or_stops_ends_the_run() {
    let guided = guide(&[0.5, 0.6], &[Auto, Accept(1)], &settings(5, 2), 0);
    assert_eq!(
        (guided.reason, guided.state.user_choice()),
        (UserAccepted, Some(1))
    );
    let guided = guide(&[0.5, 0.6], &[Auto, Stop], &settings(5, 2), 0);
    assert_eq!(
        (guided.reason, guided.state.user_choice()),
        (UserQuit, None)
    );
    assert_eq!(guided.state.incumbent(), Some(2));
}

#[test]
fn the_users_text_is_the_best_until_something_is_better_than_it() {
    // Version 2 is the user's, and scores less than version 1; 3 is worse than it, 4 better.
    let scores = [0.6, 0.4, 0.3, 0.5];
    let guided = guide(&scores, &[edit(1)], &settings(4, 9), 0);
    assert_eq!(guided.bases, [0, 1, 2, 2]);
    assert_eq!(guided.state.incumbent(), Some(4));
    assert_eq!(guided.reason, MaxIterations);
    let guided = guide(&scores[..3], &[edit(1)], &settings(3, 9), 0);
    assert_eq!(guided.state.incumbent(), Some(2));
}

#[test]
fn the_users_text_is_made_of_what_was_edited() {
    let guided = guide(&[0.6, 0.4, 0.5], &[Auto, edit(2)], &settings(3, 9), 0);
    assert_eq!(guided.bases, [0, 1, 2], "not of the better version 1");
    let guided = guide(&[0.6, 0.4, 0.5], &[Auto, edit(1)], &settings(3, 9), 0);
    assert_eq!(guided.bases, [0, 1, 1], "not of the last version 2");
}

#[test]
fn a_text_at_the_limit_is_taken_in_and_ends_the_run() {
    let guided = guide(&[0.5, 0.4], &[edit(1), edit(1)], &settings(1, 2), 0);
    assert_eq!(guided.bases, [0, 1]);
    assert_eq!(guided.asked.len(), 1);
    assert_eq!(guided.reason, MaxIterations);
    assert_eq!(guided.state.incumbent(), Some(2));
}

#[test]
fn a_wish_gives_the_loop_new_tries() {
    // A plateau after two tries; the wish makes it two more.
    let scores = [0.5, 0.4, 0.4, 0.4, 0.4];
    let guided = guide(&scores, &[Auto, Auto, wish()], &settings(9, 2), 0);
    assert_eq!(guided.asked[2], (3, Some(Plateau)));
    assert_eq!(guided.bases.len(), 5);
    assert_eq!(guided.reason, Plateau);
}

fn decision() -> impl Generated<Value = UserDecision> {
    prop_oneof![
        3 => Just(Auto),
        3 => Just(Continue),
        2 => Just(wish()),
        3 => Just(edit(1)),
        1 => (1_u32..4).prop_map(Accept),
        1 => Just(Stop),
    ]
}

proptest! {
    #[test]
    fn every_run_ends_and_loses_no_text(
        scores in prop::collection::vec(0.0f64..=1.0, 12),
        said in prop::collection::vec(decision(), 0..20),
        (max, plateau, adapt) in (1_u32..8, 1_u32..4, any::<bool>()),
    ) {
        let settings = LoopSettings { adapt: Some(adapt), ..settings(max, plateau) };
        let guided = guide(&scores, &said, &settings, 0);
        let versions = u32::try_from(guided.bases.len()).unwrap();
        prop_assert!(versions <= max + 1);
        prop_assert!(guided.asked.iter().all(|(iteration, _)| *iteration <= max));
        // Every version is made of an earlier one, and was judged.
        prop_assert!((1..).zip(&guided.bases).all(|(number, base)| *base < number));
        prop_assert_eq!(guided.state.judged.len(), guided.bases.len());
        let ended_by_user = matches!(guided.reason, UserQuit | UserAccepted);
        let asked_to = said
            .iter()
            .take(guided.asked.len())
            .any(|decision| matches!(decision, Stop | Accept(_)));
        prop_assert_eq!(ended_by_user, asked_to);
    }
}
