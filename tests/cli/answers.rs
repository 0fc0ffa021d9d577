//! Successful responses that are not valid drafts or verdicts.

use serde_json::{Value, json};

use crate::harness::Test;
use crate::harness::{drafts_of, each};
use crate::plan::{self, BOTH, FIRST, SECOND, answering, verdict};
use crate::support::server::{Planned, Protocol, Purpose, Reply, Server};

/// Turns reasoning off, so that the adapter does not retry a reply that contains only reasoning.
fn draft(server: &Server, protocol: Protocol) -> Test {
    plan::draft(server, protocol)
        .file(".reflect.toml", "[judge]\nthink = 'off'\n")
        .args(["--think", "off"])
}

fn judged(step: u8) -> Reply {
    Reply::text(&verdict(step).to_string())
}

/// Invalid drafts, with their messages.
fn no_drafts() -> Vec<(&'static str, Reply, &'static str)> {
    vec![
        ("empty", Reply::empty(), "the model's answer is empty"),
        (
            "blank",
            Reply::text(" \n\n "),
            "the model's answer is empty",
        ),
        (
            "refusal",
            Reply::refusal("I cannot help with that."),
            "the model refused",
        ),
        (
            "reasoning only",
            Reply::reasoning_only("Let me think."),
            "nothing but reasoning",
        ),
        (
            "reasoning in the text only",
            Reply::text("<think>Let me think.</think>"),
            "nothing but reasoning",
        ),
        (
            "reasoning up to the limit",
            Reply::reasoning_only("Let me think.").finish("length"),
            "used up its tokens for reasoning",
        ),
    ]
}

type NoDraft = (&'static str, Reply, &'static str);

fn both(cases: &[NoDraft]) -> Vec<(&NoDraft, Protocol)> {
    cases
        .iter()
        .flat_map(|case| BOTH.map(|protocol| (case, protocol)))
        // Ollama can refuse only in words.
        .filter(|(case, protocol)| case.0 != "refusal" || *protocol == Protocol::OpenAi)
        .collect()
}

fn name((case, protocol): &(&NoDraft, Protocol)) -> String {
    format!("{} ({protocol:?})", case.0)
}

#[test]
fn an_invalid_first_draft_is_requested_again() {
    each(&both(&no_drafts()), name, |((_, reply, said), protocol)| {
        let server = answering([reply.clone(), Reply::text(FIRST), judged(5)]);
        let ran = draft(&server, *protocol)
            .stdout("The first draft.\n")
            .stderr_has("draft 1: reply rejected: ")
            .stderr_has(said)
            .run();
        assert_eq!(server.calls(), 3);
        assert_eq!(ran.drafts(), [FIRST]);
        // The prompt names the problem, after the part that stays the same.
        let (first, second) = (server.chats()[0].prompt(), server.chats()[1].prompt());
        assert_ne!(first, second);
        assert!(second.contains("The last reply was"), "{second}");
    });
}

#[test]
fn a_model_that_writes_no_valid_draft_ends_the_run() {
    each(&both(&no_drafts()), name, |((_, reply, said), protocol)| {
        let server = answering([reply.clone(), reply.clone()]);
        let ran = draft(&server, *protocol)
            .code(4)
            .stdout("")
            .stderr_has("error: no valid draft: ")
            .stderr_has(said)
            .run();
        assert_eq!(server.calls(), 2);
        assert!(ran.drafts().is_empty());
    });
}

/// A truncated reply is continued. If the continuation is truncated too, it is printed anyway.
#[test]
fn a_truncated_draft_is_continued_and_printed_if_there_is_no_better_one() {
    each(
        &BOTH,
        |it| format!("{it:?}"),
        |protocol| {
            let cut = || Reply::cut_by_length("Half a sen");
            let server = answering([cut(), Reply::text("sentence, and more."), judged(5)]);
            draft(&server, *protocol)
                .args(["-n", "3", "--adapt", "false", "--plateau-iterations", "2"])
                .stdout("Half a sentence, and more.\n")
                .run();
            let server = answering([
                cut(),
                cut(),
                // The continuation was truncated as well, so the next reply is not continued.
                cut(),
                judged(5),
                Reply::empty(),
                Reply::empty(),
            ]);
            let ran = draft(&server, *protocol)
                .args(["-n", "3", "--adapt", "false", "--plateau-iterations", "2"])
            .code(3)
            .stdout("Half a sen\n")
            .stderr_has("cut off by the token limit after 10 characters; allow more with `--max-tokens`")
            .stderr_has("warning: the reply is not a valid draft: the text was cut off")
            .run();
            assert_eq!(ran.history()["success"], false);
        },
    );
}

#[test]
fn an_invalid_revision_is_never_selected() {
    each(&both(&no_drafts()), name, |((_, reply, said), protocol)| {
        let server = answering([Reply::text(FIRST), judged(2), reply.clone(), reply.clone()]);
        let ran = draft(&server, *protocol)
            .args(["--plateau-iterations", "2"])
            .code(3)
            .stdout("The first draft.\n")
            .stderr_has("draft 2: reply rejected: ")
            .stderr_has(said)
            .run();
        assert_eq!(server.calls(), 4);
        assert_eq!(ran.drafts(), [FIRST]);
        assert_eq!(ran.history()["convergence_reason"], "plateau");

        // A later valid revision can be selected.
        let server = answering([
            Reply::text(FIRST),
            judged(2),
            reply.clone(),
            Reply::text(SECOND),
            judged(5),
        ]);
        draft(&server, *protocol)
            .stdout("The second draft.\n")
            .run();
    });
}

/// Verdicts with the same meaning in different forms.
#[test]
fn verdicts_are_parsed_in_many_forms() {
    let good = verdict(5).to_string();
    let forms: Vec<(&str, String)> = vec![
        ("fenced", format!("```json\n{good}\n```")),
        ("a fence without a name", format!("```\n{good}\n```")),
        ("prose before", format!("Here is my verdict:\n\n{good}")),
        ("prose around", format!("Well. {good}\nI hope this helps!")),
        (
            "reasoning before",
            format!("<think>Is {{it}} good?</think>{good}"),
        ),
        (
            "the form before",
            format!(
                "{}\n{good}",
                json!({"scores": {"clear": {"reason": "...", "score": 3}}, "issues": [], "confidence": 0.7})
            ),
        ),
        ("the same twice", format!("{good}\n```json\n{good}\n```")),
        (
            "on many lines",
            serde_json::to_string_pretty(&verdict(5)).expect("JSON"),
        ),
        (
            "text for a number",
            json!({"scores": {"clear": {"reason": "", "score": "5"}}}).to_string(),
        ),
        ("a share", json!({"scores": {"clear": "5/5"}}).to_string()),
        (
            "other case",
            json!({"scores": {"Clear": {"score": 5}}}).to_string(),
        ),
        ("just a score", json!({"score": 5}).to_string()),
    ];
    let cases: Vec<_> = forms
        .iter()
        .flat_map(|form| BOTH.map(|protocol| (form, protocol)))
        .collect();
    each(
        &cases,
        |((name, _), protocol)| format!("{name} ({protocol:?})"),
        |((_, text), protocol)| {
            let server = answering([
                Reply::text(FIRST),
                judged(2),
                Reply::text(SECOND),
                Reply::text(text),
            ]);
            draft(&server, *protocol)
                .stdout("The second draft.\n")
                .run();
            assert_eq!(server.calls(), 4, "no repair is needed");
        },
    );
}

/// Replies of a judge that are not valid verdicts.
fn no_verdicts() -> Vec<(&'static str, Reply)> {
    let score =
        |value: Value| Reply::text(&json!({"scores": {"clear": {"score": value}}}).to_string());
    let whole = verdict(5).to_string();
    vec![
        ("empty", Reply::empty()),
        ("prose", Reply::text("I like it, five out of five.")),
        ("truncated", Reply::text(&whole[..whole.len() - 3])),
        ("cut by length", Reply::cut_by_length(&whole[..20])),
        ("cut by length after its end", Reply::cut_by_length(&whole)),
        ("wrong type", score(json!(true))),
        ("words for a score", score(json!("good"))),
        ("null", score(json!(null))),
        ("too high", score(json!(9))),
        ("too low", score(json!(0))),
        ("negative", score(json!(-1))),
        ("of 100", score(json!(85))),
        (
            "another criterion",
            Reply::text(r#"{"scores": {"pretty": {"score": 5}}}"#),
        ),
        ("a list", Reply::text("[5]")),
        (
            "two that differ",
            Reply::text(&format!("{}\n{whole}", verdict(1))),
        ),
        ("reasoning only", Reply::reasoning_only("Hm.")),
    ]
}

fn at_each_verdict(cases: &[(&'static str, Reply)]) -> Vec<(&'static str, Reply, Protocol, bool)> {
    let mut all = Vec::new();
    for (name, reply) in cases {
        for protocol in BOTH {
            for second in [false, true] {
                all.push((*name, reply.clone(), protocol, second));
            }
        }
    }
    all
}

type InvalidVerdict = (&'static str, Reply, Protocol, bool);

fn label((name, _, protocol, second): &InvalidVerdict) -> String {
    format!("{name} ({protocol:?}, second verdict: {second})")
}

#[test]
fn an_unparseable_verdict_is_requested_again() {
    each(
        &at_each_verdict(&no_verdicts()),
        label,
        |(_, reply, protocol, second)| {
            let mut replies = vec![
                Reply::text(FIRST),
                judged(2),
                Reply::text(SECOND),
                judged(5),
            ];
            replies.insert(if *second { 3 } else { 1 }, reply.clone());
            let server = answering(replies);
            let ran = draft(&server, *protocol)
                .stdout("The second draft.\n")
                .run();
            assert_eq!(server.calls(), 5);
            assert_eq!(ran.drafts(), [FIRST, SECOND]);
        },
    );
}

/// A draft whose continuation is also truncated ends with its last complete sentence. The last word before
/// the cut may be incomplete, so the continuation repeats it.
#[test]
fn a_draft_that_stays_truncated_ends_with_its_last_complete_sentence() {
    for protocol in BOTH {
        let server = answering([
            Reply::cut_by_length("The storm came at night. It took"),
            Reply::cut_by_length("took the roof of the barn away. Nobody was hu"),
            judged(5),
        ]);
        draft(&server, protocol)
            .stdout("The storm came at night. It took the roof of the barn away.\n")
            .stderr_has("a sentence that the token limit cut off")
            .run();
        assert_eq!(server.calls(), 3);
    }
}

/// Some servers report the whole reply as reasoning, including the verdict.
#[test]
fn a_verdict_in_the_reasoning_is_parsed_if_there_is_no_other_text() {
    for protocol in BOTH {
        let reasoned = |step| Reply::reasoning_only(&verdict(step).to_string());
        let server = answering([
            Reply::text(FIRST),
            reasoned(2),
            Reply::text(SECOND),
            reasoned(5),
        ]);
        draft(&server, protocol).stdout("The second draft.\n").run();
        assert_eq!(server.calls(), 4);
    }
}

/// Two attempts, each with a repair. An unparseable verdict does not count as a score of zero.
#[test]
fn a_judge_without_a_parseable_verdict_ends_the_run() {
    each(
        &at_each_verdict(&no_verdicts()),
        label,
        |(_, reply, protocol, second)| {
            let mut replies = vec![Reply::text(FIRST)];
            if *second {
                replies.extend([judged(2), Reply::text(SECOND)]);
            }
            let before = replies.len();
            replies.extend(std::iter::repeat_n(reply.clone(), 4));
            let server = answering(replies);
            let (printed, drafts) = if *second {
                ("The second draft.\n", &[FIRST, SECOND][..])
            } else {
                ("The first draft.\n", &[FIRST][..])
            };
            let ran = draft(&server, *protocol)
                .code(6)
                // Without scores, the last draft is printed.
                .stdout(printed)
                .stderr_has("? clear unparsed")
                .stderr_has("error: the judge's reply could not be used")
                .stderr_has("hint: ")
                .run();
            assert_eq!(server.calls(), before + 4);
            let history = ran.history();
            assert_eq!(drafts_of(&history), drafts);
            assert_eq!(history["convergence_reason"], "judge_failed");
            let last = &history["final_evaluation"];
            assert_eq!(last["status"], "unparsed");
            let score = &last["criteria_scores"]["clear"];
            assert_eq!(*score, Value::Null, "an unknown score is null, not zero");
        },
    );
}

#[test]
fn a_refusal_of_the_judge_is_not_a_verdict() {
    let server = answering([Planned::from(Reply::text(FIRST))]);
    server.on(Purpose::Judge, |_| Reply::refusal("I would rather not."));
    let ran = draft(&server, Protocol::OpenAi)
        .code(6)
        .stdout("The first draft.\n")
        .stderr_has("the judge refused: ")
        .run();
    assert_eq!(ran.drafts(), [FIRST]);
}

/// Hard checks alone make no judge calls.
#[test]
fn hard_checks_need_no_judge() {
    let server = answering([Reply::text("TODO"), Reply::text("Done.")]);
    draft(&server, Protocol::Ollama)
        .file(
            "criteria.toml",
            "[[criteria]]\nname = 'no-todo'\nevaluator = 'regex'\npattern = 'TODO'\nexpect = 'absent'\n",
        )
        .stdout("Done.\n")
        .stderr_has("✗ no-todo 0.50")
        .run();
    assert_eq!(server.calls(), 2);
}

/// A high score of the judge does not outweigh a failed hard check.
#[test]
fn a_judge_cannot_overrule_a_hard_check() {
    let long = "word ".repeat(51);
    let server = answering([Reply::text(&long), judged(5)]);
    server.on(Purpose::Write, |_| Reply::text(&"word ".repeat(90)));
    server.on(Purpose::Judge, |_| judged(5));
    draft(&server, Protocol::Ollama)
        .code(3)
        .stdout(&format!("{}\n", long.trim()))
        .stderr_has("✗ short")
        .run();
}
