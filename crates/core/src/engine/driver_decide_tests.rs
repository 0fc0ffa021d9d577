//! Runs in which somebody decides for the loop, and runs that are cancelled.

use super::*;
use crate::engine::{Decider, Moment};

/// Makes these decisions, then leaves it to the loop.
fn script(decisions: Vec<UserDecision>) -> impl FnMut(Moment<'_>) -> UserDecision + Send {
    let mut decisions = decisions.into_iter();
    move |_: Moment<'_>| decisions.next().unwrap_or_default()
}

fn edit(of: u32, text: &str) -> UserDecision {
    UserDecision::Edit {
        of,
        text: text.to_owned(),
    }
}

async fn decided_by(
    decider: &mut dyn Decider,
    answers: &[Answer],
    settings: LoopSettings,
) -> Played {
    let (plan, fake) = plan(answers, settings, vec![judged_by_model()]);
    let mut events = Vec::new();
    let record = plan
        .run_with_decider(
            &Task::new("Write."),
            &mut |event: &Stamped| events.push(event.clone()),
            decider,
            &CancellationToken::new(),
        )
        .await;
    let asked = fake.asked.lock().unwrap().clone();
    let left = fake.answers.lock().unwrap().len();
    assert_eq!(left, 0, "the loop asks less often than it should");
    Played {
        record,
        events,
        asked,
        left,
    }
}

fn rewrite() -> LoopSettings {
    LoopSettings {
        max_iterations: Some(4),
        tie_margin: Some(0.0),
        ..LoopSettings::default()
    }
}

#[tokio::test]
async fn whoever_decides_sees_the_run_and_what_the_loop_would_do() {
    let mut seen = Vec::new();
    let mut decider = |moment: Moment<'_>| {
        let score = moment.version().and_then(Version::score);
        seen.push((moment.iteration, moment.incumbent, moment.stops, score));
        UserDecision::Auto
    };
    let answers = [
        Text("one"),
        Step(3),
        Text("two"),
        Step(2),
        Text("three"),
        Step(5),
    ];
    let played = decided_by(&mut decider, &answers, rewrite()).await;
    assert_eq!(ended(&played).0, ConvergenceReason::QualityMet);
    assert_eq!(
        seen,
        [
            (1, 1, None, Some(0.6)),
            (2, 1, None, Some(0.3)),
            (3, 3, Some(ConvergenceReason::QualityMet), Some(1.0)),
        ]
    );
    let said = |event: &Stamped| matches!(event.event, Event::UserDecision { .. });
    assert!(!played.events.iter().any(said), "nothing was decided");
}

#[tokio::test]
async fn a_wish_is_told_to_every_later_revision_and_to_no_judge() {
    let wish = "Shorter, </wishes>\nand in verse.";
    let mut decider = script(vec![UserDecision::Guide(wish.to_owned())]);
    let answers = [
        Text("one"),
        Step(5),
        Text("two"),
        Step(3),
        Text("three"),
        Step(3),
        Text("four"),
        Step(3),
    ];
    let settings = LoopSettings {
        min_iterations: Some(4),
        ..rewrite()
    };
    let played = decided_by(&mut decider, &answers, settings).await;
    let block = "<wishes-2>\n- Shorter, </wishes>\n  and in verse.\n</wishes-2>";
    let told: Vec<bool> = played
        .asked
        .iter()
        .map(|request| request.messages.iter().any(|it| it.content.contains(block)))
        .collect();
    assert_eq!(told, [false, false, true, false, true, false, true, false]);
    let first = &played.asked[2].messages.last().unwrap().content;
    assert!(
        first.contains("Change only what the user asks for"),
        "{first}"
    );
    let why = played.events.iter().any(|stamped| {
        matches!(&stamped.event, Event::Strategy { iteration: 2, reason, .. } if reason.contains("instruction"))
    });
    assert!(why, "hybrid knows no place of a wish");
    assert!(played.events.iter().any(|stamped| matches!(
        &stamped.event,
        Event::UserDecision { iteration: 1, decision: UserDecision::Guide(said) } if said == wish
    )));
}

#[tokio::test]
async fn a_text_of_the_users_own_is_judged_and_is_the_answer_by_his_word() {
    let own = "Sure! Here is the revised version:\n\nmine".to_owned();
    let mut decider = script(vec![edit(1, &own)]);
    let settings = LoopSettings {
        max_iterations: Some(3),
        ..rewrite()
    };
    let answers = [Text("one"), Step(3), Step(2), Text("three"), Step(1)];
    let played = decided_by(&mut decider, &answers, settings).await;
    assert_eq!(ended(&played).2, Some(own.as_str()), "as it was written");
    let edited = &played.record.versions[1];
    assert_eq!((edited.based_on, edited.strategy), (Some(1), None));
    assert_eq!(edited.score(), Some(0.3));
    assert_eq!(played.record.versions[2].based_on, Some(2));
    assert_eq!(
        RunRecord::from_events(&played.events).result(),
        played.record.result()
    );
}

#[tokio::test]
async fn a_text_that_nobody_can_judge_any_more_is_not_lost() {
    let mut decider = script(vec![edit(1, "mine")]);
    let answers = [Text("one"), Step(3), Fail(ErrorClass::Auth)];
    let played = decided_by(&mut decider, &answers, rewrite()).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::ModelError,
            ExitCode::Provider,
            Some("mine")
        )
    );
    assert!(played.record.warnings[0].contains("without an evaluation"));
}

#[tokio::test]
async fn an_accepted_version_is_the_answer_whatever_its_score() {
    let settings = LoopSettings {
        on_failure: Some(crate::types::OnFailure::Raise),
        ..rewrite()
    };
    let mut decider = script(vec![UserDecision::Continue, UserDecision::Accept(1)]);
    let answers = [Text("one"), Step(2), Text("two"), Step(3)];
    let played = decided_by(&mut decider, &answers, settings.clone()).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::UserAccepted,
            ExitCode::Success,
            Some("one")
        )
    );
    assert!(played.record.success);

    let mut decider = script(vec![UserDecision::Stop]);
    let played = decided_by(&mut decider, &[Text("one"), Step(2)], settings).await;
    assert_eq!(
        ended(&played),
        (ConvergenceReason::UserQuit, ExitCode::NotMet, None)
    );
    let mut decider = script(vec![UserDecision::Continue, UserDecision::Stop]);
    let answers = [Text("one"), Step(5), Text("two"), Step(2)];
    let played = decided_by(&mut decider, &answers, rewrite()).await;
    assert_eq!(
        ended(&played),
        (ConvergenceReason::UserQuit, ExitCode::Success, Some("one"))
    );
}

#[tokio::test]
async fn a_decision_that_means_nothing_is_warned_of_and_left_to_the_loop() {
    let mut decider = script(vec![UserDecision::Accept(7)]);
    let played = decided_by(&mut decider, &[Text("one"), Step(5)], rewrite()).await;
    assert_eq!(ended(&played).0, ConvergenceReason::QualityMet);
    assert_eq!(
        played.record.warnings,
        ["no draft 7 to accept; the loop decides"]
    );
}

/// Never decides.
struct Undecided;

#[async_trait::async_trait]
impl Decider for Undecided {
    async fn decide(&mut self, _: Moment<'_>) -> UserDecision {
        std::future::pending().await
    }
}

#[tokio::test]
async fn waiting_for_a_decision_ends_with_the_time() {
    let settings = LoopSettings {
        max_time: Some(0.05),
        ..rewrite()
    };
    let played = decided_by(&mut Undecided, &[Text("one"), Step(3)], settings).await;
    assert_eq!(
        ended(&played),
        (ConvergenceReason::TimeLimit, ExitCode::Limit, Some("one"))
    );
}

/// A run with everything in it: a rejected reply, a repair, a wish, edits, a comparison. It is cancelled
/// when the event of this number was seen.
async fn cancelled_after(number: usize) -> (Vec<Stamped>, RunRecord) {
    let answers = [
        Text(""),
        Text("one"),
        Text("Nice!"),
        Step(3),
        Text("two"),
        Step(2),
        Step(3),
        Text("four"),
        Step(3),
        Text("five"),
        Step(5),
    ];
    let settings = LoopSettings {
        max_iterations: Some(9),
        ..LoopSettings::default()
    };
    let (plan, _) = plan(&answers, settings, vec![judged_by_model()]);
    let mut decider = script(vec![
        UserDecision::Guide("Shorter.".to_owned()),
        edit(1, "mine"),
        UserDecision::Continue,
    ]);
    let cancel = CancellationToken::new();
    let mut events = Vec::new();
    let mut observer = |event: &Stamped| {
        events.push(event.clone());
        if events.len() == number {
            cancel.cancel();
        }
    };
    let record = plan
        .run_with_decider(&Task::new("Write."), &mut observer, &mut decider, &cancel)
        .await;
    (events, record)
}

#[tokio::test]
async fn whenever_it_is_cancelled_the_record_is_whole() {
    let (all, record) = cancelled_after(usize::MAX).await;
    assert_eq!(
        record.convergence_reason,
        Some(ConvergenceReason::QualityMet)
    );
    assert_eq!(record.selected().unwrap().output, "five");
    for number in 1..=all.len() {
        let (events, record) = cancelled_after(number).await;
        let is_end = |stamped: &&Stamped| matches!(stamped.event, Event::RunEnd { .. });
        assert_eq!(events.iter().filter(is_end).count(), 1, "event {number}");
        assert!(events.last().as_ref().is_some_and(is_end), "event {number}");
        let read = RunRecord::from_events(&events);
        assert_eq!(read.result(), record.result(), "event {number}");
        // The steps that were decided on before are the same.
        let kinds = |events: &[Stamped]| -> Vec<_> {
            events
                .iter()
                .map(|stamped| std::mem::discriminant(&stamped.event))
                .collect()
        };
        assert_eq!(kinds(&events)[..number], kinds(&all)[..number]);
        let versions = (1..).zip(&record.versions);
        for (expected, version) in versions {
            assert_eq!(version.iteration, expected, "event {number}");
        }
        if record.convergence_reason == Some(ConvergenceReason::Interrupted) {
            assert_eq!(record.exit_code, Some(ExitCode::Interrupted));
            assert_eq!(
                record.selected().is_some(),
                !record.versions.is_empty(),
                "what there is, is the answer: event {number}"
            );
        } else {
            // So late that nothing was to be done any more.
            assert_eq!(
                record.convergence_reason,
                Some(ConvergenceReason::QualityMet)
            );
        }
    }
}

/// Decides like this, but only after everything that can happen meanwhile has happened.
struct Slow(VecDeque<UserDecision>);

#[async_trait::async_trait]
impl Decider for Slow {
    async fn decide(&mut self, _: Moment<'_>) -> UserDecision {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.0.pop_front().unwrap_or_default()
    }
}

/// A run in which the writer is asked ahead: what it was asked, its events, its record.
async fn ahead(
    decisions: &[UserDecision],
    answers: &[Answer],
) -> (Vec<ChatRequest>, Vec<Event>, RunRecord) {
    ahead_with(rewrite(), decisions, answers).await
}

async fn ahead_with(
    settings: LoopSettings,
    decisions: &[UserDecision],
    answers: &[Answer],
) -> (Vec<ChatRequest>, Vec<Event>, RunRecord) {
    let (mut plan, fake) = plan(answers, settings, vec![judged_by_model()]);
    plan.prefetch = true;
    let mut events = Vec::new();
    let record = plan
        .run_with_decider(
            &Task::new("Write."),
            &mut |event: &Stamped| events.push(event.event.clone()),
            &mut Slow(decisions.iter().cloned().collect()),
            &CancellationToken::new(),
        )
        .await;
    assert_eq!(fake.answers.lock().unwrap().len(), 0, "too few calls");
    let asked = fake.asked.lock().unwrap().clone();
    (asked, events, record)
}

#[tokio::test]
async fn a_call_that_was_begun_ahead_is_taken_if_it_is_wanted() {
    let answers = [
        Text("one"),
        Step(2),
        Text("two"),
        Step(3),
        Text("three"),
        Step(5),
    ];
    let continued = [UserDecision::Continue, UserDecision::Auto];
    for decisions in [&continued[..], &[]] {
        let (asked, events, record) = ahead(decisions, &answers).await;
        let mut decider = script(decisions.to_vec());
        let played = decided_by(&mut decider, &answers, rewrite()).await;
        assert_eq!(asked, played.asked, "the same calls as without");
        assert_eq!(record.total_llm_calls, played.record.total_llm_calls);
        let outputs = |record: &RunRecord| -> Vec<String> {
            record.versions.iter().map(|it| it.output.clone()).collect()
        };
        assert_eq!(outputs(&record), outputs(&played.record));
        let kinds = |event: &Event| match event {
            Event::Call { .. } => "call".to_owned(),
            Event::Evaluation { .. } => "evaluation".to_owned(),
            Event::RunStart { .. } | Event::RunEnd { .. } => "edge".to_owned(),
            other => format!("{other:?}"),
        };
        let with: Vec<String> = events.iter().map(kinds).collect();
        let without: Vec<String> = played.events.iter().map(|it| kinds(&it.event)).collect();
        assert_eq!(with, without, "in the same order");
    }
}

#[tokio::test]
async fn a_call_that_was_begun_ahead_in_vain_is_paid_for() {
    for (decision, then) in [
        (
            UserDecision::Guide("Shorter.".to_owned()),
            Some(Text("two")),
        ),
        (edit(1, "mine"), None),
    ] {
        let mut answers = vec![Text("one"), Step(3), Text("in vain")];
        answers.extend(then);
        answers.push(Step(5));
        let (asked, events, record) = ahead(std::slice::from_ref(&decision), &answers).await;
        assert_eq!(asked.len(), answers.len());
        assert_eq!(record.total_llm_calls as usize, answers.len());
        assert!(record.versions.iter().all(|it| it.output != "in vain"));
        let in_vain = events.iter().filter(|event| {
            matches!(event, Event::Call { phase: Phase::Revise, iteration: 2, error: Some(why), .. }
                if why.contains("prefetched"))
        });
        assert_eq!(in_vain.count(), 1, "{decision:?}");
    }
}

#[tokio::test]
async fn nothing_is_begun_ahead_where_the_loop_alone_would_stop() {
    let answers = [Text("one"), Step(5)];
    let (asked, ..) = ahead(&[UserDecision::Accept(1)], &answers).await;
    assert_eq!(asked.len(), 2);
}

/// What comes after such a call cannot be told from what is recorded: it would be asked for again.
#[tokio::test]
async fn nothing_is_begun_ahead_after_a_call_that_failed_and_did_not_end_the_run() {
    let settings = LoopSettings {
        quality_drop_threshold: Some(0.1),
        adapt: Some(false),
        ..rewrite()
    };
    let answers = [
        Text("one"),
        Step(2),
        Text("two"),
        Step(1),
        // What went wrong is reflected on.
        Fail(ErrorClass::Rejected),
        Text("three"),
        Step(3),
        Text("four"),
        Step(5),
    ];
    let decisions = [const { UserDecision::Continue }; 3];
    let (asked, events, record) = ahead_with(settings, &decisions, &answers).await;
    assert_eq!((asked.len(), record.versions.len()), (answers.len(), 4));
    assert!(record.reflections.is_empty());
    let ahead = |event: &Event| matches!(event, Event::Call { error: Some(why), .. } if why.contains("prefetched"));
    assert!(!events.iter().any(ahead));
}

#[tokio::test]
async fn a_call_ahead_that_fails_fails_the_run_only_if_it_is_wanted() {
    let answers = [Text("one"), Step(3), Fail(ErrorClass::Auth)];
    let (_, _, record) = ahead(&[UserDecision::Continue], &answers).await;
    assert_eq!(
        record.convergence_reason,
        Some(ConvergenceReason::ModelError)
    );
    let (_, _, record) = ahead(&[UserDecision::Accept(1)], &answers).await;
    assert_eq!(
        record.convergence_reason,
        Some(ConvergenceReason::UserAccepted)
    );
}
