use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::*;
use crate::model::{ChatEvent, ChatStream, ModelInfo};
use crate::types::{
    Criterion, Evaluator, Expect, JudgeSettings, LengthConfig, LengthUnit, LlmConfig, ModelId,
    RegexConfig, Stamped, Status, TokenUsage,
};

/// What the model does when it is asked.
#[derive(Clone)]
enum Answer {
    Text(&'static str),
    /// A verdict that gives this step of the scale to `quality`.
    Step(u8),
    End(&'static str, EndReason),
    Fail(ErrorClass),
    Hang,
}
use Answer::{End, Fail, Hang, Step, Text};

struct Fake {
    id: ModelId,
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<ChatRequest>>,
}

#[async_trait::async_trait]
impl ChatModel for Fake {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        self.asked.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front();
        let answer = answer.expect("the loop asks more often than it should");
        let events = match answer {
            Text(text) => vec![
                Ok(ChatEvent::Text(text.to_owned())),
                Ok(ChatEvent::End(EndReason::Stop)),
            ],
            End(text, end) => vec![
                Ok(ChatEvent::Text(text.to_owned())),
                Ok(ChatEvent::End(end)),
            ],
            Step(step) => {
                let verdict = format!(
                    r#"{{"scores": {{"quality": {{"reason": "r", "score": {step}}}}}, "issues": [], "confidence": 0.5}}"#
                );
                vec![
                    Ok(ChatEvent::Text(verdict)),
                    Ok(ChatEvent::Usage(TokenUsage::new(Some(90), Some(10), None))),
                    Ok(ChatEvent::End(EndReason::Stop)),
                ]
            }
            Fail(class) => vec![Err(ModelError::new(class, "out of order"))],
            Hang => return stream::pending().boxed(),
        };
        stream::iter(events).boxed()
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        Ok(ModelInfo::default())
    }
}

fn criterion(name: &str, evaluator: Evaluator) -> Criterion {
    Criterion {
        name: name.to_owned(),
        description: "Good.".to_owned(),
        weight: 1.0,
        threshold: 0.7,
        required: false,
        evaluator,
    }
}

struct Played {
    record: RunRecord,
    events: Vec<Stamped>,
    asked: Vec<ChatRequest>,
    left: usize,
}

fn fake(answers: &[Answer]) -> Arc<Fake> {
    Arc::new(Fake {
        id: ModelId {
            provider: "fake".to_owned(),
            model: "fake".to_owned(),
        },
        answers: Mutex::new(answers.iter().cloned().collect()),
        asked: Mutex::default(),
    })
}

fn judged_by_model() -> Criterion {
    criterion("quality", Evaluator::Llm(LlmConfig::default()))
}

/// A loop whose one model gives these answers.
fn plan(answers: &[Answer], settings: LoopSettings, criteria: Vec<Criterion>) -> (Loop, Arc<Fake>) {
    let fake = fake(answers);
    let criteria = Criteria {
        // A second verdict on a narrow pass has its own test.
        judge_settings: JudgeSettings {
            confirm: Some(0.0),
            ..JudgeSettings::default()
        },
        ..Criteria::new("test", criteria)
    };
    let plan = Loop {
        settings,
        writer_sampling: Sampling {
            seed: Some(7),
            ..Sampling::default()
        },
        ..Loop::new(fake.clone(), Arc::new(criteria))
    };
    (plan, fake)
}

async fn play_with(
    answers: &[Answer],
    settings: LoopSettings,
    criteria: Vec<Criterion>,
    cancel: &CancellationToken,
) -> Played {
    let (plan, fake) = plan(answers, settings, criteria);
    let mut events = Vec::new();
    let record = plan
        .run(
            &Task::new("Write."),
            &mut |event: &Stamped| events.push(event.clone()),
            cancel,
        )
        .await;
    let asked = fake.asked.lock().unwrap().clone();
    let left = fake.answers.lock().unwrap().len();
    Played {
        record,
        events,
        asked,
        left,
    }
}

async fn play(answers: &[Answer], settings: LoopSettings) -> Played {
    let criteria = vec![judged_by_model()];
    let played = play_with(answers, settings, criteria, &CancellationToken::new()).await;
    assert_eq!(played.left, 0, "the loop asks less often than it should");
    played
}

fn ended(played: &Played) -> (ConvergenceReason, ExitCode, Option<&str>) {
    let ends = played
        .events
        .iter()
        .filter(|stamped| matches!(stamped.event, Event::RunEnd { .. }))
        .count();
    assert_eq!(ends, 1, "exactly one end");
    assert!(matches!(
        played.events.last().unwrap().event,
        Event::RunEnd { .. }
    ));
    (
        played.record.convergence_reason.unwrap(),
        played.record.exit_code.unwrap(),
        played
            .record
            .selected()
            .map(|version| version.output.as_str()),
    )
}

/// Every draft revises the best one.
fn revising(max_iterations: u32) -> LoopSettings {
    LoopSettings {
        max_iterations: Some(max_iterations),
        adapt: Some(false),
        ..LoopSettings::default()
    }
}

#[tokio::test]
async fn a_good_first_draft_is_the_answer() {
    let played = play(&[Text(" one\n"), Step(4)], LoopSettings::default()).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::QualityMet,
            ExitCode::Success,
            Some("one")
        )
    );
    assert_eq!(played.record.total_llm_calls, 2);
    assert_eq!(played.record.token_usage.total, Some(100));
}

#[tokio::test]
async fn revises_the_best_and_returns_it() {
    let answers = [
        Text("one"),
        Step(3),
        Text("two"),
        Step(1),
        Text("three"),
        Step(2),
    ];
    let played = play(&answers, revising(3)).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::MaxIterations,
            ExitCode::NotMet,
            Some("one")
        )
    );
    let seeds: Vec<_> = [0, 2, 4]
        .map(|call| played.asked[call].sampling.seed)
        .to_vec();
    assert_eq!(seeds, [Some(7), Some(8), Some(9)]);
    let third = &played.asked[4].messages.last().unwrap().content;
    assert!(third.contains("<draft>\none\n</draft>"), "{third}");
    assert_eq!(played.record.versions[2].based_on, Some(1));
}

#[tokio::test]
async fn hard_checks_are_told_to_the_reviser_and_outvote_the_judge() {
    let criteria = vec![
        criterion("quality", Evaluator::Llm(LlmConfig::default())),
        criterion(
            "no-todo",
            Evaluator::Regex(RegexConfig {
                pattern: "TODO".to_owned(),
                expect: Expect::Absent,
                message: None,
                min_count: None,
                max_count: None,
            }),
        ),
    ];
    let answers = [Text("TODO"), Step(5), Text("done"), Step(5)];
    let played = play_with(
        &answers,
        LoopSettings::default(),
        criteria,
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::QualityMet,
            ExitCode::Success,
            Some("done")
        )
    );
    let revision = &played.asked[2].messages.last().unwrap().content;
    assert!(revision.contains("`TODO` in line 1 matches"), "{revision}");
    assert_eq!(played.record.versions[1].improvements_applied.len(), 1);
}

#[tokio::test]
async fn without_llm_criteria_no_judge_is_asked() {
    let length = LengthConfig {
        unit: LengthUnit::Words,
        min: Some(2),
        max: None,
    };
    let criteria = vec![criterion("long", Evaluator::Length(length))];
    let played = play_with(
        &[Text("one"), Text("one two")],
        LoopSettings::default(),
        criteria,
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(ended(&played).2, Some("one two"));
    assert_eq!(
        played.record.versions[0]
            .evaluation
            .as_ref()
            .unwrap()
            .confidence,
        Some(1.0)
    );
}

#[tokio::test]
async fn an_unreadable_verdict_is_repaired_once_then_asked_for_again_then_given_up() {
    let played = play(
        &[Text("one"), Text("Nice!"), Step(5)],
        LoopSettings::default(),
    )
    .await;
    assert_eq!(ended(&played).0, ConvergenceReason::QualityMet);
    let repair = &played.asked[2].messages;
    assert_eq!(repair.len(), 3);
    assert!(
        repair[2].content.contains("no complete JSON object"),
        "{}",
        repair[2].content
    );

    let nonsense = [Text("one"), Text("?"), Text("?"), Text("?"), Text("?")];
    let played = play(&nonsense, LoopSettings::default()).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::JudgeFailed,
            ExitCode::JudgeUnusable,
            Some("one")
        )
    );
    let evaluation = played.record.versions[0].evaluation.as_ref().unwrap();
    assert_eq!(evaluation.status, Status::Unparsed);
    assert_eq!(evaluation.overall_score, None, "neither a pass nor a zero");
    assert!(
        played
            .record
            .error
            .as_ref()
            .unwrap()
            .contains("no complete JSON object")
    );
}

#[tokio::test]
async fn a_verdict_that_is_cut_off_is_asked_for_with_more_room_never_pieced_together() {
    let cut = End(
        r#"{"scores": {"quality": {"reason": "r", "score": 5}}, "issues": []}"#,
        EndReason::Length,
    );
    let played = play(&[Text("one"), cut, Step(5)], LoopSettings::default()).await;
    assert_eq!(ended(&played).0, ConvergenceReason::QualityMet);
    let cap = |call: usize| played.asked[call].sampling.max_tokens.unwrap();
    assert_eq!(cap(2), 4 * cap(1));
    assert_eq!(played.asked[2].messages.len(), 1);
}

#[tokio::test]
async fn a_reply_that_was_cut_off_is_continued_once() {
    let settings = LoopSettings::default;
    let cut = End("The storm came at ni", EndReason::Length);
    let played = play(&[cut.clone(), Text("night."), Step(5)], settings()).await;
    let met = ConvergenceReason::QualityMet;
    assert_eq!(
        ended(&played),
        (met, ExitCode::Success, Some("The storm came at night."))
    );
    let asked = &played.asked[1].messages;
    let (request, before) = asked.split_last().unwrap();
    assert!(request.content.contains("Continue exactly"));
    assert_eq!(before.last().unwrap().content, "The storm came at");
    // What does not end either is flawed: it is requested anew, with what was wrong.
    let more = End("night and it", EndReason::Length);
    let played = play(
        &[cut.clone(), more.clone(), Text("one"), Step(5)],
        settings(),
    )
    .await;
    assert_eq!(ended(&played).2, Some("one"));
    let again = &played.asked[2].messages.last().unwrap().content;
    assert!(again.contains("was cut off"), "{again}");
    // Such a writer is not asked for the rest again.
    let limited = LoopSettings {
        max_iterations: Some(1),
        ..settings()
    };
    let played = play(&[cut.clone(), more, cut, Step(5)], limited.clone()).await;
    assert_eq!(ended(&played).2, Some("The storm came at ni"));
    // Nor for the rest of a loop.
    let line = "He was a sailor for many years, and his life was a testament to those who served. ";
    let text: &'static str = Box::leak(line.repeat(12).into_boxed_str());
    let looped = End(text, EndReason::Length);
    let played = play(&[looped.clone(), looped, Step(5)], limited).await;
    assert_eq!(ended(&played).2, Some(line.trim()));
}

#[tokio::test]
async fn a_flawed_draft_stands_where_there_is_no_better_one() {
    let settings = LoopSettings::default;
    let cut = End("half a te", EndReason::Length);
    let empty = Text(" ");
    // Of two replies the one that is a text is the version; it is judged, and anything clean beats it.
    let script = [
        cut.clone(),
        empty.clone(),
        empty.clone(),
        Step(5),
        Text("whole"),
        Step(2),
    ];
    let limited = LoopSettings {
        max_iterations: Some(2),
        ..settings()
    };
    let played = play(&script, limited.clone()).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::MaxIterations,
            ExitCode::NotMet,
            Some("whole")
        )
    );
    let flawed = &played.record.versions[0];
    assert_eq!(flawed.output, "half a te");
    let verdict = flawed.evaluation.as_ref().unwrap();
    assert!(verdict.flaw.as_ref().unwrap().contains("cut off"));
    assert!(!verdict.satisfactory);
    assert!(verdict.issues[0].description.contains("cut off"));
    // Nothing better comes: it is the answer, with a warning.
    let script = [
        cut.clone(),
        empty.clone(),
        empty.clone(),
        Step(5),
        empty.clone(),
    ];
    let played = play(&script, limited).await;
    let (_, code, answer) = ended(&played);
    assert_eq!((code, answer), (ExitCode::NotMet, Some("half a te")));
    let warned = |text: &str| played.record.warnings.iter().any(|it| it.contains(text));
    assert!(warned("not a valid draft: the text was cut off"));
    // As much as there is when the model fails.
    let failed = Fail(ErrorClass::Auth);
    let played = play(&[cut, empty.clone(), failed], settings()).await;
    let (_, code, answer) = ended(&played);
    assert_eq!((code, answer), (ExitCode::Provider, Some("half a te")));
    // A refusal is printed rather than nothing, but not judged or revised.
    let refusal = Text("I'm sorry, but I can't help with that.");
    let played = play(&[empty.clone(), refusal], settings()).await;
    let (reason, code, answer) = ended(&played);
    assert_eq!(
        (reason, code),
        (ConvergenceReason::NoDraft, ExitCode::NotMet)
    );
    assert_eq!(answer, Some("I'm sorry, but I can't help with that."));
    // Of nothing comes nothing.
    let played = play(&[empty.clone(), empty], settings()).await;
    assert_eq!(
        ended(&played),
        (ConvergenceReason::NoDraft, ExitCode::Provider, None)
    );
    let error = played.record.error.unwrap();
    assert!(error.contains("answer is empty"), "{error}");
}

#[tokio::test]
async fn a_rejected_revision_never_wins() {
    let refused = End("No.", EndReason::Refused("policy".to_owned()));
    let answers = [Text("one"), Step(2), refused, Text("three"), Step(3)];
    let played = play(&answers, revising(3)).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::MaxIterations,
            ExitCode::NotMet,
            Some("three")
        )
    );
    assert_eq!(played.record.versions[1].iteration, 3);
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_best_judged_draft() {
    let answers = [Text("one"), Step(3), Fail(ErrorClass::Auth)];
    let played = play(&answers, LoopSettings::default()).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::ModelError,
            ExitCode::Provider,
            Some("one")
        )
    );
    assert!(
        played
            .record
            .error
            .as_ref()
            .unwrap()
            .contains("out of order")
    );

    let played = play(
        &[Text("one"), Fail(ErrorClass::Quota)],
        LoopSettings::default(),
    )
    .await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::ModelError,
            ExitCode::Provider,
            Some("one")
        )
    );
    assert_eq!(
        played.record.warnings,
        ["draft 1 is printed without an evaluation"]
    );
}

#[tokio::test]
async fn drafts_that_are_too_close_are_compared_in_both_orders() {
    let settings = LoopSettings {
        max_iterations: Some(2),
        tie_margin: Some(0.5),
        ..LoopSettings::default()
    };
    for (forth, back, best) in [("A", "B", "one"), ("B", "A", "two"), ("A", "A", "one")] {
        let better = |letter| Box::leak(format!("{{\"better\": \"{letter}\"}}").into_boxed_str());
        let answers = [
            Text("one"),
            Step(2),
            Text("two"),
            Step(3),
            Text(better(forth)),
            Text(better(back)),
        ];
        let played = play(&answers, settings.clone()).await;
        assert_eq!(played.left, 0);
        assert_eq!(ended(&played).2, Some(best), "{forth}{back}");
    }
}

#[tokio::test]
async fn a_comparison_that_cannot_be_read_leaves_it_to_the_scores() {
    let settings = LoopSettings {
        max_iterations: Some(2),
        tie_margin: Some(0.5),
        ..LoopSettings::default()
    };
    let mut answers = vec![Text("one"), Step(2), Text("two"), Step(3)];
    answers.extend([Text("Both."), Text("Both."), Text("Both."), Text("Both.")]);
    let played = play(&answers, settings).await;
    assert_eq!(ended(&played).2, Some("two"));
}

#[tokio::test]
async fn a_stronger_model_takes_over_where_there_is_no_progress() {
    let strong = fake(&[Text("six")]);
    let answers = [
        Text("one"),
        Step(3),
        Text("two"),
        Step(3),
        Text("three"),
        Step(3),
        Step(5),
    ];
    let settings = LoopSettings {
        max_iterations: Some(9),
        plateau_iterations: Some(2),
        ..LoopSettings::default()
    };
    let (plan, weak) = plan(&answers, settings, vec![judged_by_model()]);
    let plan = Loop {
        stronger: Some(strong.clone()),
        ..plan
    };
    let nobody = CancellationToken::new();
    let record = plan
        .run(&Task::new("Write."), &mut |_: &Stamped| (), &nobody)
        .await;
    assert_eq!(record.selected().unwrap().output, "six");
    assert_eq!(record.versions[2].based_on, None, "the fresh draft");
    assert_eq!(strong.asked.lock().unwrap().len(), 1);
    assert!(weak.answers.lock().unwrap().is_empty());
}

#[tokio::test]
async fn talk_is_cleaned_away_and_said() {
    let played = play(
        &[
            Text("Sure! Here is the revised version:\n\none two"),
            Step(4),
        ],
        LoopSettings::default(),
    )
    .await;
    assert_eq!(ended(&played).2, Some("one two"));
    assert!(played.events.iter().any(|stamped| matches!(
        &stamped.event,
        Event::Cleaned { removed, .. } if removed == "Sure! Here is the revised version:"
    )));
}

#[tokio::test]
async fn limits_stop_the_run_with_the_best_draft_so_far() {
    // The first draft is estimated at less than this; with the verdict's 100 it is more.
    let settings = LoopSettings {
        max_total_tokens: Some(108),
        ..LoopSettings::default()
    };
    let played = play(&[Text("one"), Step(3)], settings).await;
    assert_eq!(
        ended(&played),
        (ConvergenceReason::TokenBudget, ExitCode::Limit, Some("one"))
    );

    let settings = LoopSettings {
        max_time: Some(0.05),
        ..LoopSettings::default()
    };
    let played = play(&[Text("one"), Step(3), Hang], settings).await;
    assert_eq!(
        ended(&played),
        (ConvergenceReason::TimeLimit, ExitCode::Limit, Some("one"))
    );
}

#[tokio::test]
async fn a_server_that_does_not_count_tokens_is_estimated() {
    let settings = LoopSettings {
        max_total_tokens: Some(1),
        ..LoopSettings::default()
    };
    let played = play(&[Text("one")], settings).await;
    assert_eq!(
        ended(&played),
        (ConvergenceReason::TokenBudget, ExitCode::Limit, Some("one"))
    );
    assert_eq!(
        played.record.token_usage.total, None,
        "an estimate is not a count"
    );
}

#[tokio::test]
async fn cancelling_ends_the_run_and_keeps_what_there_is() {
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(30)).await;
        later.cancel();
    });
    let criteria = vec![criterion("quality", Evaluator::Llm(LlmConfig::default()))];
    let answers = [Text("one"), Step(3), Hang];
    let played = play_with(&answers, LoopSettings::default(), criteria, &cancel).await;
    assert_eq!(
        ended(&played),
        (
            ConvergenceReason::Interrupted,
            ExitCode::Interrupted,
            Some("one")
        )
    );
}

#[tokio::test]
async fn the_record_is_the_fold_of_the_events() {
    let answers = [Text("one"), Step(2), Text("two"), Step(4)];
    let played = play(&answers, LoopSettings::default()).await;
    let lines: Vec<String> = played
        .events
        .iter()
        .map(|event| serde_json::to_string(event).unwrap())
        .collect();
    let read: Vec<Stamped> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(read, played.events);
    assert_eq!(
        RunRecord::from_events(&read).result(),
        played.record.result()
    );
}

#[tokio::test]
async fn a_rewrite_that_changes_little_is_predicted() {
    const DRAFT: &str = "This line is as it should be.\nTODO: this one is not.\nThis one is, too.\n\
                         And these lines are as they should be, as well, every single one of them.\n\
                         And these lines are as they should be, as well, each and every one of them.";
    let criteria = vec![criterion(
        "no-todo",
        Evaluator::Regex(RegexConfig {
            pattern: "TODO".to_owned(),
            expect: Expect::Absent,
            message: None,
            min_count: None,
            max_count: None,
        }),
    )];
    let settings = LoopSettings {
        strategy: Some(Strategy::FullRewrite),
        max_revision_tokens: Some(50),
        ..revising(2)
    };
    let answers = [Text(DRAFT), Text("done")];
    let played = play_with(&answers, settings, criteria, &CancellationToken::new()).await;
    let asked = |call: usize| {
        let request = &played.asked[call];
        (request.prediction.as_deref(), request.sampling.max_tokens)
    };
    assert_eq!(asked(0), (None, None));
    assert_eq!(asked(1), (Some(DRAFT), Some(50)));
}

#[tokio::test]
async fn edits_that_do_not_fit_the_context_fall_back_to_the_whole_text() {
    let settings = LoopSettings {
        strategy: Some(Strategy::TargetedEdit),
        ..LoopSettings::default()
    };
    let answers = [
        Text("one"),
        Step(3),
        Fail(ErrorClass::ContextTooLong),
        Text("two"),
        Step(5),
    ];
    let played = play(&answers, settings).await;
    assert_eq!(ended(&played).2, Some("two"));
    let said = played.events.iter().any(|stamped| {
        matches!(&stamped.event, Event::Strategy { reason, .. } if reason.contains("without edits"))
    });
    assert!(said, "{:?}", played.events);
    // A server that fails otherwise ends the run, as ever.
    let answers = [Text("one"), Step(3), Fail(ErrorClass::Auth)];
    let settings = LoopSettings {
        strategy: Some(Strategy::TargetedEdit),
        ..LoopSettings::default()
    };
    assert_eq!(
        ended(&play(&answers, settings).await).0,
        ConvergenceReason::ModelError
    );
}

#[tokio::test]
async fn a_revision_learns_from_those_before() {
    let issue = |step: u8, what: &str| {
        let verdict = format!(
            r#"{{"scores": {{"quality": {{"reason": "r", "score": {step}}}}}, "issues": [{{"type": "incorrect", "severity": "major", "criterion": "quality", "quote": "", "description": "{what}", "suggested_fix": ""}}], "confidence": 0.5}}"#
        );
        Text(Box::leak(verdict.into_boxed_str()))
    };
    let answers = [
        Text("one"),
        issue(3, "There is no place name in it."),
        Text("two"),
        issue(1, "All verbs are gone </history>."),
        Text("three"),
        Step(5),
    ];
    let asked = async |settings: LoopSettings| {
        let played = play(&answers, settings).await;
        let last = &played.asked[4].messages.last().unwrap().content;
        let shown = |part: &str| {
            let at = last.find(part);
            // What changes from revision to revision stands behind what does not.
            assert!(at.is_none() || at > last.find("</feedback>"), "{last}");
            at.is_some()
        };
        let tag = "<history-2>\nFailed: a revision with these issues: All verbs";
        let draft = "<earlier-draft name=\"2, thrown away\">\ntwo\n</earlier-draft>";
        (shown(tag), shown(draft))
    };
    let settings = |history, versions| LoopSettings {
        include_reflection_history: history,
        include_prior_versions: versions,
        ..revising(3)
    };
    assert_eq!(asked(settings(None, None)).await, (true, false));
    assert_eq!(
        asked(settings(Some(false), Some(true))).await,
        (false, true)
    );
}

#[path = "driver/contest_tests.rs"]
mod contest;
#[path = "driver_decide_tests.rs"]
mod decide;
