use super::*;
use crate::types::{Criteria, Evaluation, Issue, IssueType, Place, Severity, Task, TokenUsage};

const DRAFT: &str = "# Setup\n\nInstall it.\n\n# Use\n\nRun it twice.\n\n# End\n\nThat is all.\n";

fn version(output: &str) -> Version {
    Version {
        iteration: 1,
        output: output.to_owned(),
        based_on: None,
        strategy: None,
        edits: None,
        improvements_applied: Vec::new(),
        evaluation: None,
        timestamp: jiff::Timestamp::UNIX_EPOCH,
        token_usage: TokenUsage::default(),
        duration_ms: 0,
    }
}

fn issue(line: u64) -> Issue {
    Issue {
        kind: IssueType::Incorrect,
        severity: Severity::Major,
        description: "Bad.".to_owned(),
        suggested_fix: None,
        criterion: None,
        place: Place {
            line: Some(line),
            ..Place::default()
        },
    }
}

fn revision(strategy: Strategy, draft: &str, issues: &[Issue]) -> Revision {
    let criteria = Criteria::new("test", Vec::new());
    let prompts = Prompts::new(&Task::new("Write."), &criteria);
    let mut base = version(draft);
    base.evaluation = Some(Evaluation {
        issues: issues.to_vec(),
        ..Evaluation::default()
    });
    Revision::new(strategy, StrategyHistory::default(), &prompts, &base, None)
}

/// The messages, the last request and the result of a revision with these replies.
struct RevisionTrace {
    said: Vec<(Strategy, String)>,
    asked: Vec<Ask>,
    revised: Revised,
    history: StrategyHistory,
}

fn play(mut revision: Revision, replies: &[(&str, EndReason)]) -> RevisionTrace {
    let (mut said, mut asked) = (Vec::new(), Vec::new());
    let mut replies = replies.iter();
    loop {
        match revision.step() {
            Step::Say(strategy, reason) => said.push((strategy, reason)),
            Step::Ask(ask) => {
                assert_eq!(
                    revision.step(),
                    Step::Ask(ask.clone()),
                    "asking changes nothing"
                );
                asked.push(ask);
                let (text, end) = replies.next().expect("it asks more often than it should");
                revision.answer(&Reply {
                    text: (*text).to_owned(),
                    end: Some(end.clone()),
                    ..Reply::default()
                });
            }
            Step::Done(revised) => {
                assert!(
                    replies.next().is_none(),
                    "it asks less often than it should"
                );
                return RevisionTrace {
                    said,
                    asked,
                    revised,
                    history: revision.history(),
                };
            }
        }
    }
}

fn stop(text: &str) -> (&str, EndReason) {
    (text, EndReason::Stop)
}

const GOOD: &str = "<<<<<<< SEARCH\nRun it twice.\n=======\nRun it once.\n>>>>>>> REPLACE";
const LOST: &str = "<<<<<<< SEARCH\nInstall the thing.\n=======\nInstall it now.\n>>>>>>> REPLACE";

#[test]
fn edits_are_applied() {
    let played = play(
        revision(Strategy::TargetedEdit, DRAFT, &[issue(7)]),
        &[stop(GOOD)],
    );
    assert_eq!(played.revised.output, DRAFT.replace("twice", "once"));
    assert_eq!(played.revised.strategy, Strategy::TargetedEdit);
    assert_eq!(played.revised.edits.unwrap().exact, 1);
    assert_eq!((played.said.len(), played.asked[0].whole), (0, false));
    assert_eq!(
        played.history,
        StrategyHistory::default().with(Strategy::TargetedEdit, true)
    );
}

#[test]
fn what_did_not_apply_is_asked_for_once_more_and_nothing_else() {
    let both = format!("{GOOD}\n{LOST}");
    let fixed = "<<<<<<< SEARCH\nInstall it.\n=======\nInstall it now.\n>>>>>>> REPLACE";
    let played = play(
        revision(Strategy::TargetedEdit, DRAFT, &[issue(7)]),
        &[stop(&both), stop(fixed)],
    );
    assert_eq!(
        played.revised.output,
        DRAFT
            .replace("twice", "once")
            .replace("Install it.", "Install it now.")
    );
    let counts = played.revised.edits.unwrap();
    assert_eq!((counts.exact, counts.failed), (2, 0));
    let [.., reply, again] = played.asked[1].messages.as_slice() else {
        panic!("a conversation");
    };
    assert_eq!(reply.content, both);
    assert!(
        again.content.contains("Install the thing."),
        "{}",
        again.content
    );
    assert!(!again.content.contains("Run it"), "{}", again.content);
}

#[test]
fn what_is_written_again_though_it_was_applied_does_no_harm_and_what_is_left_out_counts() {
    let fixed = "<<<<<<< SEARCH\nInstall it.\n=======\nInstall it now.\n>>>>>>> REPLACE";
    let (both, again) = (format!("{GOOD}\n{LOST}"), format!("{GOOD}\n{fixed}"));
    let replies = [stop(&both), stop(&again)];
    let played = play(
        revision(Strategy::TargetedEdit, DRAFT, &[issue(7)]),
        &replies,
    );
    assert_eq!(played.revised.strategy, Strategy::TargetedEdit);
    assert_eq!(played.revised.edits.unwrap().exact, 2);
    let replies = [stop(&both), stop(GOOD), stop("New.")];
    let played = play(
        revision(Strategy::TargetedEdit, DRAFT, &[issue(7)]),
        &replies,
    );
    assert_eq!(played.revised.output, "New.");
    assert_eq!(played.revised.edits.unwrap().failed, 1);
}

#[test]
fn edits_that_fail_twice_fall_back_to_the_whole_text() {
    let both = format!("{GOOD}\n{LOST}");
    let played = play(
        revision(Strategy::TargetedEdit, DRAFT, &[issue(7)]),
        &[stop(&both), stop(LOST), stop("All new.")],
    );
    assert_eq!(
        (played.revised.output.as_str(), played.revised.strategy),
        ("All new.", Strategy::FullRewrite)
    );
    let counts = played.revised.edits.unwrap();
    assert_eq!((counts.exact, counts.failed), (1, 1));
    assert!(
        played.said[0].1.contains("1 edit did not apply"),
        "{:?}",
        played.said
    );
    assert!(played.asked[2].whole);
    assert_eq!(played.asked[2].messages.len(), 1, "a fresh question");
    assert_eq!(
        played.history,
        StrategyHistory::default().with(Strategy::TargetedEdit, false)
    );
}

#[test]
fn a_reply_without_edits_is_the_text_or_nothing() {
    let whole = DRAFT.replace("twice", "once");
    let played = play(
        revision(Strategy::TargetedEdit, DRAFT, &[issue(7)]),
        &[stop(&whole)],
    );
    assert_eq!(played.revised.output, whole.trim());
    assert_eq!(played.revised.strategy, Strategy::FullRewrite);
    assert!(played.said[0].1.contains("instead of edits"));
    // A truncated reply is not the whole text.
    let cut = (whole.as_str(), EndReason::Length);
    let played = play(
        revision(Strategy::TargetedEdit, DRAFT, &[issue(7)]),
        &[cut, stop("New.")],
    );
    assert_eq!(played.revised.output, "New.");
    for nothing in [
        "I cannot do that.",
        "",
        "<<<<<<< SEARCH\nRun it twice.\n=======\nRun it twice.\n>>>>>>> REPLACE",
    ] {
        let replies = [stop(nothing), stop("New.")];
        let played = play(
            revision(Strategy::TargetedEdit, DRAFT, &[issue(7)]),
            &replies,
        );
        assert_eq!(played.revised.strategy, Strategy::FullRewrite, "{nothing}");
    }
}

#[test]
fn a_block_that_was_cut_off_is_not_applied() {
    let cut = (
        "<<<<<<< SEARCH\nRun it twice.\n=======\nRun it on",
        EndReason::Length,
    );
    let played = play(
        revision(Strategy::TargetedEdit, DRAFT, &[issue(7)]),
        &[cut, stop(GOOD)],
    );
    assert_eq!(played.revised.output, DRAFT.replace("twice", "once"));
}

#[test]
fn sections_are_asked_for_one_by_one() {
    let replies = [
        stop("# Setup\n\nInstall it now."),
        stop("# Use\n\nRun it once."),
    ];
    let played = play(
        revision(Strategy::Incremental, DRAFT, &[issue(3), issue(7)]),
        &replies,
    );
    assert_eq!(
        played.revised.output,
        DRAFT
            .replace("twice", "once")
            .replace("Install it.", "Install it now.")
    );
    assert_eq!(played.revised.strategy, Strategy::Incremental);
    assert_eq!(
        played.asked[0].prediction.as_deref(),
        Some("# Setup\n\nInstall it.")
    );
    let played = play(
        revision(Strategy::Incremental, DRAFT, &[issue(7)]),
        &[stop("# Use\n\nRun it twice."), stop("New.")],
    );
    assert_eq!(played.revised.strategy, Strategy::FullRewrite);
    assert_eq!(
        played.history,
        StrategyHistory::default().with(Strategy::Incremental, false)
    );
    let played = play(
        revision(Strategy::Incremental, "One line.", &[issue(1)]),
        &[stop("New.")],
    );
    assert_eq!(
        played.said,
        [(Strategy::FullRewrite, "the draft is one section".to_owned())]
    );
}

#[test]
fn hybrid_says_what_it_chose() {
    let played = play(
        revision(Strategy::Hybrid, "One line.", &[issue(1)]),
        &[stop("New.")],
    );
    assert_eq!(
        played.said,
        [(
            Strategy::FullRewrite,
            "the draft is short (2 words)".to_owned()
        )]
    );
    let long = format!(
        "{DRAFT}\n{}",
        "Nothing is wrong with any of these words.\n".repeat(30)
    );
    let played = play(
        revision(Strategy::Hybrid, &long, &[issue(7)]),
        &[stop(GOOD)],
    );
    assert_eq!(played.revised.strategy, Strategy::TargetedEdit);
    assert!(
        played.said[0].1.contains("of the draft"),
        "{:?}",
        played.said
    );
}

#[test]
fn a_rewrite_that_repeats_most_of_the_draft_is_predicted() {
    let long = format!(
        "{DRAFT}\n{}",
        "Nothing is wrong with any of these words.\n".repeat(30)
    );
    let played = play(
        revision(Strategy::FullRewrite, &long, &[issue(7)]),
        &[stop("New.")],
    );
    assert_eq!(played.asked[0].prediction.as_deref(), Some(long.as_str()));
    let played = play(
        revision(Strategy::FullRewrite, "One line.", &[issue(1)]),
        &[stop("New.")],
    );
    assert_eq!(played.asked[0].prediction, None);
}
