use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::{Value, json};

use super::ask::SAMPLING_TEMPERATURE;
use super::pairwise::{Comparison, ComparisonError, Pair, Preference, prefer};
use super::*;
use crate::evaluate::{EvaluatorSet, Subject, Tools};
use crate::model::{ChatRequest, ChatStream, EndReason, ModelInfo, TokenLogprob};
use crate::prompt::Prompts;
use crate::types::{Evaluation, Status, Task};

/// Maps the text of the last message and the number of the call to a reply.
type Answers = dyn Fn(&str, usize) -> String + Send + Sync;

struct FakeJudge {
    id: ModelId,
    answers: Box<Answers>,
    probabilities: Vec<(&'static str, f64)>,
    requests: Mutex<Vec<ChatRequest>>,
    /// The number of calls begun at the time each call ended.
    begun_at_end: Mutex<Vec<usize>>,
    begun: AtomicUsize,
}

impl FakeJudge {
    fn new(answers: impl Fn(&str, usize) -> String + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            id: ModelId {
                provider: "fake".to_owned(),
                model: "fake".to_owned(),
            },
            answers: Box::new(answers),
            probabilities: Vec::new(),
            requests: Mutex::default(),
            begun_at_end: Mutex::default(),
            begun: AtomicUsize::new(0),
        })
    }

    fn calls(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    fn requests(&self) -> Vec<ChatRequest> {
        self.requests.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl ChatModel for FakeJudge {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        let text = request.messages.last().unwrap().content.clone();
        let logprobs = request.top_logprobs.is_some();
        let number = self.begun.fetch_add(1, Ordering::SeqCst);
        self.requests.lock().unwrap().push(request);
        stream::once(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let begun = self.begun.load(Ordering::SeqCst);
            self.begun_at_end.lock().unwrap().push(begun);
            let answer = (self.answers)(&text, number);
            let mut events = vec![Ok(ChatEvent::Text(answer.clone()))];
            if logprobs && !self.probabilities.is_empty() {
                events.push(Ok(ChatEvent::Logprobs(tokens(
                    &answer,
                    &self.probabilities,
                ))));
            }
            events.push(Ok(ChatEvent::End(EndReason::Stop)));
            stream::iter(events)
        })
        .flatten()
        .boxed()
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        Ok(ModelInfo::default())
    }
}

/// Returns the answer as single-letter tokens, each with these alternatives.
fn tokens(answer: &str, top: &[(&str, f64)]) -> Vec<TokenLogprob> {
    answer
        .chars()
        .map(|letter| TokenLogprob {
            token: letter.to_string(),
            logprob: 0.0,
            top: top
                .iter()
                .map(|(text, share)| ((*text).to_owned(), share.ln()))
                .collect(),
        })
        .collect()
}

const TWO: &str = "[[criteria]]\nname = 'clear'\n[[criteria]]\nname = 'short'\n";

fn criteria(text: &str) -> Arc<Criteria> {
    Arc::new(crate::criteria::parse(text, "c.toml").unwrap())
}

/// Returns a verdict that scores all criteria in the prompt with the same step.
fn step(prompt: &str, step: u8) -> String {
    let line = prompt.lines().find(|line| line.contains("and no other:"));
    let scores: serde_json::Map<String, Value> = ["clear", "short"]
        .into_iter()
        .filter(|name| line.is_some_and(|line| line.contains(name)))
        .map(|name| (name.to_owned(), json!({ "reason": "r", "score": step })))
        .collect();
    json!({ "scores": scores, "issues": [], "confidence": 0.5 }).to_string()
}

fn judge(model: &Arc<FakeJudge>) -> JudgeModel {
    let sampling = Sampling {
        temperature: Some(0.0),
        seed: Some(7),
        ..Sampling::default()
    };
    JudgeModel::new(model.clone(), sampling, Think::Auto)
}

struct Judged {
    evaluation: Evaluation,
    notices: Vec<String>,
}

async fn evaluate(criteria: &Arc<Criteria>, judge: JudgeModel, draft: &str) -> Judged {
    let panel = EvaluatorSet::new(Arc::clone(criteria), Some(judge), &Tools::none()).unwrap();
    evaluate_with(&panel, criteria, draft).await
}

async fn evaluate_with(panel: &EvaluatorSet, criteria: &Criteria, draft: &str) -> Judged {
    let notices = Mutex::new(Vec::new());
    let prompts = Prompts::new(&Task::new("Write."), criteria);
    let subject = Subject::of(draft);
    let observer = |event: CallEvent<'_>| {
        if let CallEvent::Chat(ChatEvent::Notice(text)) = event {
            notices.lock().unwrap().push(text.clone());
        }
    };
    let evaluation = panel.evaluate(&prompts, &subject, &observer).await.unwrap();
    Judged {
        evaluation,
        notices: notices.into_inner().unwrap(),
    }
}

fn silent(_: CallEvent<'_>) {}

#[tokio::test]
async fn separate_calls_go_out_together_after_one_that_warms_the_cache() {
    let model = FakeJudge::new(|prompt, _| step(prompt, 4));
    let three = format!("judge.mode = 'separate'\njudge.samples = 2\n{TWO}");
    let judged = evaluate(&criteria(&three), judge(&model), "x").await;
    assert!(judged.evaluation.satisfactory, "{:?}", judged.evaluation);
    assert_eq!(model.calls(), 4);
    let begun = model.begun_at_end.lock().unwrap().clone();
    assert_eq!(begun, [1, 4, 4, 4], "one alone, then the rest at once");
    let seeds: std::collections::BTreeSet<_> =
        model.requests().iter().map(|r| r.sampling.seed).collect();
    assert_eq!(seeds.len(), 2, "each sample has a seed of its own");
    assert!(
        model
            .requests()
            .iter()
            .all(|r| r.sampling.temperature == Some(0.7))
    );
}

#[tokio::test]
async fn one_call_judges_all_but_those_with_a_prompt_of_their_own() {
    let model = FakeJudge::new(|prompt, _| {
        if prompt.contains("Judge it.") {
            r#"{"valid": true, "score": 0.75}"#.to_owned()
        } else {
            step(prompt, 4)
        }
    });
    let text = format!(
        "judge.confirm = 0.0\n{TWO}[[criteria]]\nname = 'own'\nprompt = 'Judge it.'\nscale = [0, 1]\n"
    );
    let judged = evaluate(&criteria(&text), judge(&model), "x").await;
    assert_eq!(model.calls(), 2);
    assert_eq!(judged.evaluation.criteria_scores["own"], Some(0.75));
    assert_eq!(judged.evaluation.criteria_scores["short"], Some(0.85));
    assert!(
        model
            .requests()
            .iter()
            .all(|r| r.sampling.temperature == Some(0.0))
    );
}

#[tokio::test]
async fn a_narrow_pass_needs_a_second_verdict() {
    for (steps, satisfactory, score, calls) in [
        ([4, 4], true, 0.85, 2),
        ([4, 3], false, 0.725, 2),
        ([4, 5], true, 0.925, 2),
        // A clear pass or fail needs one sample.
        ([5, 1], true, 1.0, 1),
        ([3, 5], false, 0.6, 1),
    ] {
        let model = FakeJudge::new(move |prompt, number| step(prompt, steps[number]));
        let judged = evaluate(&criteria(TWO), judge(&model), "x")
            .await
            .evaluation;
        assert_eq!(judged.satisfactory, satisfactory, "{steps:?}");
        assert_eq!(judged.overall_score, Some(score));
        assert_eq!(model.calls(), calls);
    }
    for never in ["confirm = 0.0", "samples = 3", "score = 'expected'"] {
        let model = FakeJudge::new(|prompt, _| step(prompt, 4));
        let text = format!("judge.{never}\n{TWO}");
        evaluate(&criteria(&text), judge(&model), "x").await;
        assert_eq!(model.calls(), if never.starts_with('c') { 1 } else { 3 });
    }
}

#[tokio::test]
async fn the_median_counts_and_the_spread_is_shown() {
    let model = FakeJudge::new(|prompt, number| step(prompt, [5, 1, 4][number]));
    let text = format!("judge.samples = 3\n{TWO}");
    let judged = evaluate(&criteria(&text), judge(&model), "x").await;
    assert_eq!(judged.evaluation.overall_score, Some(0.85));
    assert_eq!(judged.evaluation.spread, Some(1.0));
    assert_eq!(judged.evaluation.criteria[0].spread, Some(1.0));
}

#[tokio::test]
async fn what_was_judged_before_is_not_judged_again() {
    let model = FakeJudge::new(|prompt, number| match number {
        1 | 2 => "no JSON".to_owned(),
        _ => step(prompt, 4),
    });
    let cached = JudgeModel {
        cache: Some(Arc::new(MemoryCache::default())),
        ..judge(&model)
    };
    let set = criteria(&format!("judge.confirm = 0.0\n{TWO}"));
    let first = evaluate(&set, cached.clone(), "one").await.evaluation;
    assert!(!first.criteria[0].cached);
    let again = evaluate(&set, cached.clone(), "one").await.evaluation;
    assert_eq!(model.calls(), 1);
    assert!(again.criteria.iter().all(|result| result.cached));
    assert_eq!(again.overall_score, first.overall_score);
    // Unparseable replies are requested again.
    let unread = evaluate(&set, cached.clone(), "two").await.evaluation;
    assert_eq!((unread.status, model.calls()), (Status::Unparsed, 3));
    let read = evaluate(&set, cached.clone(), "two").await.evaluation;
    assert_eq!((read.status, model.calls()), (Status::Ok, 4));
    // Another criterion or other sampling settings need another verdict.
    let other = criteria(&format!(
        "judge.confirm = 0.0\n{TWO}description = 'Short.'\n"
    ));
    evaluate(&other, cached.clone(), "one").await;
    assert_eq!(model.calls(), 5);
    let mut warmer = cached;
    warmer.sampling.temperature = Some(0.5);
    evaluate(&set, warmer, "one").await;
    assert_eq!(model.calls(), 6);
}

#[tokio::test]
async fn expected_scores_come_from_probabilities_where_the_server_gives_them() {
    let text = format!("judge.score = 'expected'\n{TWO}");
    let mut model = FakeJudge::new(|prompt, _| step(prompt, 4));
    Arc::get_mut(&mut model).unwrap().probabilities = vec![("4", 0.5), ("5", 0.5)];
    let judged = evaluate(&criteria(&text), judge(&model), "x").await;
    assert_eq!(judged.evaluation.criteria_scores["clear"], Some(0.925));
    assert_eq!((model.calls(), judged.notices.len()), (1, 0));

    let without = FakeJudge::new(|prompt, number| step(prompt, [4, 3, 5][number]));
    let judged = evaluate(&criteria(&text), judge(&without), "x").await;
    assert_eq!(judged.evaluation.criteria_scores["clear"], Some(0.85));
    assert_eq!(without.calls(), 3, "samples instead");
    assert_eq!(judged.notices.len(), 1);
    assert!(
        judged.notices[0].contains("no token probabilities"),
        "{:?}",
        judged.notices
    );
}

/// The samples that replace probabilities use different settings from the first verdict and must
/// still be found in the cache.
#[tokio::test]
async fn what_stood_in_for_probabilities_is_remembered_too() {
    let text = format!("judge.score = 'expected'\njudge.mode = 'separate'\n{TWO}");
    let model = FakeJudge::new(|prompt, _| step(prompt, 4));
    let cached = JudgeModel {
        cache: Some(Arc::new(MemoryCache::default())),
        ..judge(&model)
    };
    evaluate(&criteria(&text), cached.clone(), "x").await;
    assert_eq!(model.calls(), 6);
    let again = evaluate(&criteria(&text), cached, "x").await;
    assert_eq!(model.calls(), 6);
    assert_eq!(
        again.notices.len(),
        1,
        "it is said again, for it is another run"
    );
    assert!(again.evaluation.criteria.iter().all(|result| result.cached));
}

#[tokio::test]
async fn quotes_are_looked_up_in_the_draft() {
    let model = FakeJudge::new(|_, _| {
        json!({
            "scores": { "clear": { "reason": "r", "score": 3 }, "short": { "reason": "r", "score": 3 } },
            "issues": [
                { "type": "incorrect", "severity": "major", "criterion": "clear", "quote": "the “old” pond",
                  "description": "a", "suggested_fix": "b" },
                { "type": "incorrect", "severity": "minor", "criterion": "clear", "quote": "the new pond",
                  "description": "c", "suggested_fix": "d" },
            ],
            "confidence": 1,
        })
        .to_string()
    });
    let judged = evaluate(&criteria(TWO), judge(&model), "Look at\nthe \"old\"  pond").await;
    let places: Vec<_> = judged
        .evaluation
        .issues
        .iter()
        .map(|issue| (issue.place.verified, issue.place.line))
        .collect();
    assert_eq!(places, [(Some(true), Some(2)), (Some(false), None)]);
}

#[tokio::test]
async fn a_criterion_may_have_a_judge_of_its_own() {
    let text = format!("{TWO}model = 'strict'\n");
    let (lenient, strict) = (
        FakeJudge::new(|prompt, _| step(prompt, 5)),
        FakeJudge::new(|prompt, _| step(prompt, 2)),
    );
    let mut judge = judge(&lenient);
    assert!(EvaluatorSet::new(criteria(&text), Some(judge.clone()), &Tools::none()).is_err());
    judge.others.insert(
        "strict".to_owned(),
        OtherModel {
            model: strict.clone(),
            sampling: Sampling::default(),
            think: Think::Auto,
        },
    );
    let judged = evaluate(&criteria(&text), judge, "x").await;
    assert_eq!(judged.evaluation.criteria_scores["clear"], Some(1.0));
    assert_eq!(judged.evaluation.criteria_scores["short"], Some(0.3));
    assert_eq!((lenient.calls(), strict.calls()), (1, 1));
}

#[tokio::test]
async fn a_blind_judge_is_reported_and_weighs_less() {
    let text = format!(
        "judge.probe = true\nprobe = {{ good = 'GOOD', bad = 'BAD' }}\n{TWO}\
         [[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 1\nweight = 2\nthreshold = 0.1\n"
    );
    let set = criteria(&text);
    let blind = FakeJudge::new(|prompt, _| step(prompt, 5));
    let panel = EvaluatorSet::new(Arc::clone(&set), Some(judge(&blind)), &Tools::none()).unwrap();
    let judged = evaluate_with(&panel, &set, "two words").await;
    assert!(judged.notices[0].contains("do not trust the judge fake:fake: it is blind"));
    // A quarter of 1 plus three quarters of 0.5.
    assert_eq!(judged.evaluation.overall_score, Some(0.625));
    assert_eq!(blind.calls(), 3);
    evaluate_with(&panel, &set, "other words").await;
    assert_eq!(blind.calls(), 4, "the judge is tried once");

    let seeing =
        FakeJudge::new(|prompt, _| step(prompt, if prompt.contains("BAD") { 1 } else { 5 }));
    let judged = evaluate(&set, judge(&seeing), "two words").await;
    assert_eq!(
        (judged.notices.len(), judged.evaluation.overall_score),
        (0, Some(0.75))
    );
}

async fn compared(model: &Arc<FakeJudge>) -> Result<Comparison, ComparisonError> {
    let prompts = Prompts::new(&Task::new("Write."), &criteria(TWO));
    let pair = Pair {
        first: "FIRST",
        second: "SECOND",
        criterion: None,
        attempt: 0,
    };
    prefer(&judge(model), &prompts, &pair, &silent).await
}

/// Returns whether the first text is in front in this prompt.
fn in_order(prompt: &str) -> bool {
    prompt.find("FIRST") < prompt.find("SECOND")
}

#[tokio::test]
async fn a_choice_that_depends_on_the_order_is_a_tie() {
    type ChooseFn = fn(bool) -> &'static str;
    let cases: [(ChooseFn, Preference); 5] = [
        (
            |in_order| if in_order { "A" } else { "B" },
            Preference::First,
        ),
        (
            |in_order| if in_order { "draft-b" } else { "a" },
            Preference::Second,
        ),
        (|_| "A", Preference::Tie),
        (
            |in_order| if in_order { "A" } else { "tie" },
            Preference::Tie,
        ),
        (|_| "tie", Preference::Tie),
    ];
    for (choice, preference) in cases {
        let model = FakeJudge::new(move |prompt, _| {
            format!(
                r#"Well. {{"reason": "r", "better": "{}"}}"#,
                choice(in_order(prompt))
            )
        });
        let comparison = compared(&model).await.unwrap();
        assert_eq!(comparison.preference, preference);
        assert_eq!(comparison.reasons, ["r", "r"]);
        assert_eq!(*model.begun_at_end.lock().unwrap(), [2, 2], "both at once");
    }
}

#[tokio::test]
async fn an_unreadable_choice_is_asked_for_again_and_is_no_tie() {
    let model = FakeJudge::new(|prompt, _| {
        let again = prompt.contains("could not be used");
        if again {
            r#"{"better": "A"}"#
        } else {
            "I like both."
        }
        .to_owned()
    });
    assert_eq!(compared(&model).await.unwrap().preference, Preference::Tie);
    assert_eq!(model.calls(), 4);
    let hopeless = FakeJudge::new(|_, _| r#"{"better": "C"}"#.to_owned());
    let error = compared(&hopeless).await.unwrap_err();
    assert!(
        matches!(&error, ComparisonError::Unparsed(why) if why.contains("`better` is `C`")),
        "{error}"
    );
}

/// Prefers the text that contains `word`. For a verdict, returns a step.
fn fond_of(word: &'static str) -> Arc<FakeJudge> {
    FakeJudge::new(move |prompt, _| match prompt.find("<draft-b>") {
        None => step(prompt, 5),
        Some(behind) => {
            let better = if prompt[..behind].contains(word) {
                "A"
            } else {
                "B"
            };
            json!({ "reason": "r", "better": better }).to_string()
        }
    })
}

const PAIRWISE: &str = "\
[[criteria]]
name = 'calm'
description = 'It is calm.'
evaluator = 'compare'
method = 'pairwise'
reference = 'STORM'
";

#[tokio::test]
async fn a_comparison_stands_beside_the_scores_and_is_about_its_own_criterion() {
    let model = fond_of("CALM");
    let set = criteria(&format!("{PAIRWISE}{TWO}"));
    let judged = evaluate(&set, judge(&model), "CALM").await.evaluation;
    let scores: Vec<_> = judged.criteria.iter().map(|c| c.score).collect();
    assert_eq!(scores, [Some(1.0); 3]);
    assert_eq!(judged.confidence, Some(0.5), "the judge's own word");
    assert_eq!(model.calls(), 3);
    let requests = model.requests();
    let prompts: Vec<&str> = requests
        .iter()
        .filter_map(|request| Some(request.messages.last()?.content.as_str()))
        .collect();
    assert!(!prompts[0].contains("`calm`, "), "no score is asked for it");
    assert!(prompts[1].contains("meets the criterion `calm` better."));
    let lost = evaluate(&set, judge(&fond_of("STORM")), "CALM").await;
    assert_eq!(lost.evaluation.criteria[0].score, Some(0.0));
    assert_eq!(lost.evaluation.issues.len(), 1);
}

#[tokio::test]
async fn the_same_text_and_a_first_draft_are_not_asked_about() {
    let model = fond_of("x");
    let same = evaluate(&criteria(PAIRWISE), judge(&model), "STORM\n").await;
    assert_eq!(
        same.evaluation.criteria[0].score,
        Some(crate::types::TIE_SCORE)
    );
    let prior = PAIRWISE.replace("reference = 'STORM'", "with = 'prior'");
    let first = evaluate(&criteria(&prior), judge(&model), "CALM").await;
    assert_eq!(first.evaluation.criteria[0].score, Some(1.0));
    assert_eq!(model.calls(), 0);
}

/// A model that is deterministic per seed must be asked with a different seed.
#[tokio::test]
async fn a_comparison_that_could_not_be_read_is_asked_for_with_other_seeds() {
    let model = FakeJudge::new(|_, _| "I like both.".to_owned());
    let set = criteria(PAIRWISE);
    let panel = EvaluatorSet::new(Arc::clone(&set), Some(judge(&model)), &Tools::none()).unwrap();
    let prompts = Prompts::new(&Task::new("Write."), &set);
    for attempt in 0..2 {
        let subject = Subject {
            attempt,
            ..Subject::of("CALM")
        };
        let judged = panel.evaluate(&prompts, &subject, &silent).await.unwrap();
        assert_eq!(judged.criteria[0].status, Status::Unparsed);
        assert_eq!(judged.confidence, None);
    }
    let seeds: Vec<_> = model.requests().iter().map(|r| r.sampling.seed).collect();
    let (first, second) = seeds.split_at(seeds.len() / 2);
    assert!(first.iter().all(|seed| !second.contains(seed)), "{seeds:?}");
    assert!(EvaluatorSet::new(set, None, &Tools::none()).is_err());
}

/// At temperature 0 the same request has the same reply whatever the seed.
#[tokio::test]
async fn an_empty_reply_is_asked_for_again_with_some_chance() {
    let model = FakeJudge::new(|prompt, number| match number {
        0 => String::new(),
        _ => step(prompt, 4),
    });
    let judged = evaluate(&criteria(TWO), judge(&model), "x").await;
    assert_eq!(judged.evaluation.criteria_scores["clear"], Some(0.85));
    let temperatures: Vec<_> = (model.requests.lock().unwrap().iter())
        .map(|request| request.sampling.temperature)
        .collect();
    // The third request confirms a narrow pass.
    assert_eq!(temperatures[..2], [Some(0.0), Some(SAMPLING_TEMPERATURE)]);
}

/// The retry shows the judge its unparseable reply, so the prompt differs and the temperature can
/// stay.
#[tokio::test]
async fn an_unreadable_reply_is_repaired_at_the_same_temperature() {
    let model = FakeJudge::new(|_, number| match number {
        0 => "Good!".to_owned(),
        _ => step("and no other: clear short", 4),
    });
    let judged = evaluate(&criteria(TWO), judge(&model), "x").await;
    assert_eq!(judged.evaluation.criteria_scores["clear"], Some(0.85));
    let requests = model.requests.lock().unwrap();
    assert_eq!(requests[1].sampling.temperature, Some(0.0));
    assert_ne!(requests[0].messages, requests[1].messages);
}
