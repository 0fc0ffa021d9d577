use super::*;
use crate::types::{CandidateStep, Candidates};

fn so_many(number: u32) -> LoopSettings {
    LoopSettings {
        candidates: Some(Candidates::Number(number)),
        ..revising(5)
    }
}

type Seen<'a> = (Option<&'a str>, Option<f64>, bool, Option<&'a str>);

/// What became of each candidate: its text, its score, whether it was chosen, and why it came to nothing.
fn candidates(played: &Played) -> Vec<Seen<'_>> {
    let candidates = played.record.candidates.iter();
    candidates
        .map(|it| {
            let score = it.evaluation.as_ref().and_then(|e| e.overall_score);
            (it.output.as_deref(), score, it.chosen, it.lost.as_deref())
        })
        .collect()
}

#[tokio::test]
async fn the_best_candidate_becomes_the_version_and_the_others_are_kept() {
    let answers = [
        Text("one"),
        Step(2),
        Text("two"),
        Text("three"),
        Text("four"),
        Step(2),
        Step(4),
        Step(3),
    ];
    let played = play(&answers, so_many(3)).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::QualityMet,
            ExitCode::Success,
            Some("three")
        )
    );
    let record = &played.record;
    assert_eq!(record.versions.len(), 2);
    assert_eq!(record.iterations(), 2, "candidates are no iterations");
    assert_eq!(record.versions[1].based_on, Some(1));
    assert_eq!(
        record.versions[1].token_usage.total,
        Some(300),
        "what all of them cost"
    );
    let seen = candidates(&played);
    let scores = [Some("two"), Some("three"), Some("four")];
    assert_eq!(seen.iter().map(|it| it.0).collect::<Vec<_>>(), scores);
    assert_eq!(
        seen.iter().map(|it| it.2).collect::<Vec<_>>(),
        [false, true, false]
    );
    assert!(seen.iter().all(|it| it.1.is_some() && it.3.is_none()));
    let history = record.result().history;
    assert_eq!(history.candidates.len(), 3);
    assert_eq!(history.candidates[0].difference, "as usual");
    assert!(history.candidates[1].difference.starts_with("warmer"));
    // They differ in how they are asked for, and share all that comes before.
    let asked: Vec<_> = played.asked[2..5].iter().map(|it| &it.sampling).collect();
    assert_eq!(asked[0].temperature, None);
    assert!(asked[1].temperature < asked[2].temperature);
    assert_eq!(
        asked.iter().map(|it| it.seed).collect::<Vec<_>>(),
        [Some(8), Some(9), Some(10)]
    );
    assert_eq!(played.asked[2].messages[0], played.asked[4].messages[0]);
    // Only what the first one writes is shown while it is written.
    let shown: String = played
        .events
        .iter()
        .filter_map(|it| match &it.event {
            Event::Delta {
                phase: Phase::Revise,
                text,
                ..
            } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, "two");
}

#[tokio::test]
async fn equals_are_decided_by_their_order() {
    let answers = [
        Text("one"),
        Step(2),
        Text("two"),
        Text("three"),
        Step(4),
        Step(4),
    ];
    let played = play(&answers, so_many(2)).await;
    assert_eq!(ended(&played).2, Some("two"));
}

#[tokio::test]
async fn the_same_text_is_judged_once() {
    let answers = [Text("one"), Step(2), Text("two"), Text("two"), Step(4)];
    let played = play(&answers, so_many(2)).await;
    assert_eq!(ended(&played).2, Some("two"));
    let seen = candidates(&played);
    assert!(seen[0].2);
    assert_eq!(seen[1].3, Some("it has the same text as candidate 1"));
}

#[tokio::test]
async fn what_fails_takes_no_other_candidate_with_it() {
    let answers = [
        Text("one"),
        Step(2),
        Fail(ErrorClass::Rate),
        Text("three"),
        Text("I'm sorry, but I can't help with that."),
        Step(4),
    ];
    let played = play(&answers, so_many(3)).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::QualityMet,
            ExitCode::Success,
            Some("three")
        )
    );
    let seen = candidates(&played);
    assert!(seen[0].3.unwrap().contains("out of order"), "{seen:?}");
    assert!(seen[1].2);
    assert!(seen[2].3.unwrap().contains("not a draft"), "{seen:?}");
    let [(2, reason, text)] = played.record.rejected.as_slice() else {
        panic!("{:?}", played.record.rejected);
    };
    assert!(reason.starts_with("candidate 3: "), "{reason}");
    assert!(text.contains("sorry"), "{text}");
    assert_eq!(played.record.error, None);
}

#[tokio::test]
async fn the_step_fails_only_if_all_do_with_the_first_failure() {
    let answers = [
        Text("one"),
        Step(2),
        Fail(ErrorClass::Auth),
        Fail(ErrorClass::Rate),
    ];
    let played = play(&answers, so_many(2)).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::ModelError,
            ExitCode::Provider,
            Some("one")
        )
    );
    let auth = describe(&ModelError::new(ErrorClass::Auth, "out of order"));
    assert_eq!(played.record.error, Some(auth));
    // A reply that was no draft shows that the model can be used: the run goes on.
    let answers = [
        Text("one"),
        Step(2),
        Fail(ErrorClass::Auth),
        Text(""),
        Text("two"),
        Text("three"),
        Step(4),
        Step(3),
    ];
    let played = play(&answers, so_many(2)).await;
    assert_eq!(ended(&played).2, Some("two"));
}

#[tokio::test]
async fn a_judge_who_fails_for_all_is_asked_again_about_the_first() {
    let fail = || Fail(ErrorClass::Rate);
    let answers = [
        Text("one"),
        Step(2),
        Text("two"),
        Text("three"),
        fail(),
        fail(),
        Step(4),
    ];
    let played = play(&answers, so_many(2)).await;
    assert_eq!(ended(&played).2, Some("two"));
    let answers = [
        Text("one"),
        Step(2),
        Text("two"),
        Text("three"),
        fail(),
        Step(4),
    ];
    let played = play(&answers, so_many(2)).await;
    assert_eq!(ended(&played).2, Some("three"), "the other one is judged");
    let seen = candidates(&played);
    assert!(
        seen[0].3.unwrap().contains("could not be judged"),
        "{seen:?}"
    );
}

#[tokio::test]
async fn auto_makes_two_after_what_did_not_help() {
    let settings = LoopSettings {
        candidates: Some(Candidates::Auto),
        ..revising(5)
    };
    let answers = [
        Text("one"),
        Step(3),
        Text("two"),
        Step(2),
        Text("three"),
        Text("four"),
        Step(3),
        Step(4),
    ];
    let played = play(&answers, settings).await;
    assert_eq!(ended(&played).2, Some("four"));
    let of: Vec<u32> = played
        .record
        .candidates
        .iter()
        .map(|it| it.iteration)
        .collect();
    assert_eq!(of, [3, 3]);
}

#[tokio::test]
async fn a_limit_loses_nothing_that_was_written() {
    let settings = LoopSettings {
        max_time: Some(0.05),
        ..so_many(2)
    };
    let played = play(&[Text("one"), Step(3), Hang, Text("two")], settings).await;
    assert_eq!(
        ended(&played),
        (ConvergenceReason::TimeLimit, ExitCode::Limit, Some("one"))
    );
    assert_eq!(
        candidates(&played)[1].0,
        Some("two"),
        "neither waits for the other"
    );
    // The verdicts are in when the tokens are: the step ends, and the next one is not begun.
    let settings = LoopSettings {
        max_total_tokens: Some(450),
        ..so_many(2)
    };
    let answers = [
        Text("one"),
        Step(2),
        Text("two"),
        Text("three"),
        Step(2),
        Step(3),
    ];
    let played = play(&answers, settings).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::TokenBudget,
            ExitCode::Limit,
            Some("three")
        )
    );
}

#[tokio::test]
async fn candidates_differ_by_strategy_and_by_what_they_are_told() {
    const DRAFT: &str = "TODO: the beginning.\nA line that is as it should be, and that is long enough to be left \
                         alone, since nobody has anything to say about it.\nA line with a tabu.\n";
    let pattern = |name: &str, pattern: &str| {
        let config = RegexConfig {
            pattern: pattern.to_owned(),
            expect: Expect::Absent,
            message: None,
            min_count: None,
            max_count: None,
        };
        criterion(name, Evaluator::Regex(config))
    };
    let settings = LoopSettings {
        strategy: Some(Strategy::TargetedEdit),
        ..so_many(3)
    };
    let done = "A line that is as it should be, and that is long enough to be left alone.";
    let answers = [
        Text(DRAFT),
        Text("nothing"),
        Text(DRAFT),
        Text(done),
        Text(DRAFT),
    ];
    let criteria = vec![pattern("no-todo", "TODO"), pattern("no-tabu", "tabu")];
    let played = play_with(&answers, settings, criteria, &CancellationToken::new()).await;
    let said: Vec<_> = played
        .record
        .candidates
        .iter()
        .map(|it| it.difference.as_str())
        .collect();
    assert_eq!(
        said,
        [
            "as usual",
            "a rewrite of the whole",
            "only the most severe issues (1 of 2)"
        ]
    );
    let told = |call: usize| {
        let text = &played.asked[call].messages.last().unwrap().content;
        let (_, feedback) = text.rsplit_once("</draft>").unwrap();
        (feedback.contains("`TODO`"), feedback.contains("`tabu`"))
    };
    // The first one asks for edits, gets none that apply, and asks for the whole.
    assert_eq!([1, 2, 3].map(told), [(true, true); 3]);
    assert_eq!(told(4), (true, false));
    let steps: Vec<_> = played
        .events
        .iter()
        .filter_map(|it| match &it.event {
            Event::Candidate { step, .. } => Some(step),
            _ => None,
        })
        .collect();
    let chosen = |step: &&&CandidateStep| matches!(step, CandidateStep::Chosen { .. });
    assert_eq!(steps.iter().filter(chosen).count(), 1);
}

#[tokio::test]
async fn events_of_candidates_are_read_as_they_are_written() {
    let answers = [
        Text("one"),
        Step(2),
        Text("two"),
        Fail(ErrorClass::Rate),
        Step(4),
    ];
    let played = play(&answers, so_many(2)).await;
    let read: Vec<Stamped> = played
        .events
        .iter()
        .map(|event| serde_json::from_str(&serde_json::to_string(event).unwrap()).unwrap())
        .collect();
    assert_eq!(read, played.events);
    let result = RunRecord::from_events(&read).result();
    assert_eq!(result, played.record.result());
    assert_eq!(result.history.candidates.len(), 2);
}
