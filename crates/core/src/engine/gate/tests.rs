use proptest::prelude::*;

use super::*;
use crate::model::{Message, Role};
use crate::types::{
    Criterion, Evaluator, IssueType, LengthConfig, LengthUnit, LlmConfig, LoopSettings, Place,
    Severity,
};

fn criteria(description: &str) -> Criteria {
    let of = |name: &str, evaluator| Criterion {
        name: name.to_owned(),
        description: description.to_owned(),
        weight: 1.0,
        threshold: 0.7,
        required: false,
        evaluator,
    };
    let length = LengthConfig {
        unit: LengthUnit::Words,
        min: None,
        max: Some(100),
    };
    Criteria {
        name: "test".to_owned(),
        description: None,
        threshold: 0.8,
        loop_settings: LoopSettings::default(),
        judge_settings: crate::types::JudgeSettings::default(),
        probe: crate::types::ProbeTexts::default(),
        criteria: vec![
            of("quality", Evaluator::Llm(LlmConfig::default())),
            of("length", Evaluator::Length(length)),
        ],
    }
}

fn issue(criterion: &str, description: &str) -> Issue {
    Issue {
        kind: IssueType::Incorrect,
        severity: Severity::Major,
        description: description.to_owned(),
        suggested_fix: None,
        criterion: Some(criterion.to_owned()),
        place: Place::default(),
    }
}

const POEM: &str = "Old pond, green and still,\na frog leaps into the dusk:\nthe sound of water.";

fn cleaned_for(prompt: &str, reply: &str) -> String {
    let criteria = criteria("");
    let context = DraftContext {
        prompt,
        criteria: &criteria,
        base: None,
        issues: &[],
    };
    clean(reply, &context).0
}

fn cleaned(reply: &str) -> String {
    cleaned_for("Write a haiku about a frog.", reply)
}

fn refused(prompt: &str, base: Option<&str>, issues: &[Issue], text: &str) -> Option<String> {
    let criteria = criteria("");
    let context = DraftContext {
        prompt,
        criteria: &criteria,
        base,
        issues,
    };
    check_text(text, &context).err().map(|no| no.reason)
}

#[test]
fn talk_before_and_after_is_taken_away() {
    for lead in [
        "Here is the revised version:",
        "Here's the revised version:",
        "Here\u{2019}s a haiku about a frog:",
        "Sure! Here's a haiku:",
        "Certainly, here is the haiku:",
        "Of course!\n\nHere is the updated text:",
        "**Revised version:**",
        "# Revised draft",
        "Revised Version:\n\n---",
        "Here is the revised version.",
        "Below is the improved haiku:",
        "I have revised the haiku to address the feedback. Here is the updated version:",
    ] {
        assert_eq!(cleaned(&format!("{lead}\n\n{POEM}")), POEM, "{lead}");
    }
    for tail in [
        "Key changes:\n- a better ending\n- five syllables",
        "**Key Changes Made:**\n\n1. The ending\n2. The count",
        "---\n\n### Changes made\n\nI fixed the ending.",
        "Summary of changes: \n* the last line",
        "I've revised the last line to meet the criteria.",
        "Let me know if you would like any changes!",
        "---\n\nI hope this revised version meets your requirements.",
        "This version has the right number of syllables.\n\nFeel free to ask for adjustments.",
    ] {
        let long = format!("{POEM}\n\n{POEM}\n\n{POEM}");
        assert_eq!(cleaned(&format!("{long}\n\n{tail}")), long, "{tail}");
    }
    let all = format!(
        "Sure! Here is the haiku:\n\n```\n{POEM}\n```\n\nLet me know if you want any tweaks."
    );
    assert_eq!(cleaned(&all), POEM);
    assert_eq!(cleaned(&format!("<draft>\n{POEM}\n</draft>")), POEM);
}

#[test]
fn what_belongs_to_the_text_stays() {
    for (prompt, text) in [
        (
            "Tell the story of the storm.",
            "Here is what happened:\n\nThe storm came at night.",
        ),
        (
            "Tell the story of the storm.",
            "Here is where it began: a small house.\n\nThen it rained.",
        ),
        (
            "Write an email to Ann.",
            "Hi Ann,\n\nhere is the report you asked for:\n\nreport.pdf\n\nLet me know if you have any questions.",
        ),
        (
            "Write an email to Ann.",
            "Dear Ann,\n\nThe report is done.\n\nI hope this helps.",
        ),
        (
            "Write the release notes.",
            "Release 2\n\nKey changes:\n- faster\n- smaller",
        ),
        (
            "Write a commit message.",
            "Fix the parser\n\nChanges made:\n- one line",
        ),
        (
            "Describe the project.",
            "# Project\n\nIt parses.\n\n## Key changes\n\n- none\n\n## Licence\n\nMIT",
        ),
        (
            "Answer the invitation.",
            "Sure! I would love to come.\n\nSee you on Friday.",
        ),
        (
            "Write a text that starts with \"Here is\".",
            "Here is the text:\n\nIt is short.",
        ),
        (
            "Write a letter.",
            "I have made all the payments.\n\nYours, Tom",
        ),
        ("Write a poem.", "Sure\n\nas the sun rises"),
        (
            "Write the report.",
            "This is the final report\n\nIt says all.",
        ),
        ("Write a guide.", "Here is the complete guide\n\nRead it."),
        (
            "Tell people about Foo 2.",
            "Foo 2 is out.\n\nThe new version is three times as fast.",
        ),
        (
            "Write a post on Foo 2.",
            "Foo 2 is out.\n\nThe updated version is here today.",
        ),
        (
            "Write a message to Ann.",
            "Hi Ann, the plan is done.\n\nLet me know if you would like any changes.",
        ),
        (
            "Describe our product.",
            "# Foo\n\nIt is fast.\n\n## Use\n\nRun it.\n\n## Key improvements\n\n- speed",
        ),
        (
            "Compare the editions.",
            "The first is short.\n\nThis version of the story is told by the wolf.",
        ),
    ] {
        assert_eq!(cleaned_for(prompt, text), text, "{prompt}");
    }
}

#[test]
fn one_fence_around_everything_is_taken_away_where_none_is_wanted() {
    let code = "fn main() {\n    run();\n}";
    let fenced = format!("```rust\n{code}\n```");
    assert_eq!(cleaned_for("Write a function.", &fenced), code);
    assert_eq!(cleaned_for("Write it.", &format!("~~~\n{code}\n~~~")), code);
    for prompt in [
        "Write a function in a fenced code block.",
        "Answer with ```rust code.",
        "Use a code block.",
    ] {
        assert_eq!(cleaned_for(prompt, &fenced), fenced, "{prompt}");
    }
    for prompt in [
        "Write a function. No code fences, please.",
        "Only code, without any prose or backticks.",
        "Do not put it in a code block.",
    ] {
        assert_eq!(cleaned_for(prompt, &fenced), code, "{prompt}");
    }
    let prompt = "No introduction, in a fenced code block.";
    assert_eq!(cleaned_for(prompt, &fenced), fenced);
    let forbidden = DraftContext {
        prompt: "Write a function.",
        criteria: &criteria("Only the source file itself: no code fences, no introduction."),
        base: None,
        issues: &[],
    };
    assert_eq!(clean(&fenced, &forbidden).0, code);
    let wanted = criteria("The code stands in a code block.");
    let context = DraftContext {
        prompt: "Write a function.",
        criteria: &wanted,
        base: None,
        issues: &[],
    };
    assert_eq!(clean(&fenced, &context).0, fenced);
    let two = format!("{fenced}\n\nAnd then:\n\n{fenced}");
    assert_eq!(
        cleaned_for("Explain it.", &two),
        two,
        "two fences are not one"
    );
    let nested = format!("# Title\n\n```rust\n{code}\n```\n\nEnd.");
    assert_eq!(
        cleaned_for("Explain it.", &format!("```markdown\n{nested}\n```")),
        nested
    );
    let kept = DraftContext {
        prompt: "Write a function.",
        criteria: &criteria(""),
        base: Some(&fenced),
        issues: &[],
    };
    assert_eq!(clean(&fenced, &kept).0, fenced, "as in the version before");
}

#[test]
fn refusals_and_questions_back_are_no_drafts() {
    for text in [
        "I'm sorry, but I can't help with that.",
        "I\u{2019}m sorry, I need more information about the frog.",
        "I cannot assist with this request.",
        "Unfortunately, I am unable to write this text.",
        "As an AI language model, I do not have opinions, so I will not write this.",
        "I'm sorry, but I'm not a chatbot. I can only help with general questions.",
        "I apologize, but I am just an AI and this is beyond me.",
        "Could you please provide the draft you want revised?",
        "Please share the text, and I will revise it.",
        "It seems you haven't provided a draft.",
    ] {
        let reason = refused("Write a haiku about a frog.", None, &[], text);
        assert!(
            reason.is_some_and(|r| r.contains("refused or asked back")),
            "{text}"
        );
    }
    for (prompt, text) in [
        (
            "Write a haiku about a frog.",
            "I cannot help but stare\nat the frog upon the stone\nwho does not help me",
        ),
        (
            "Write a letter in which I decline the offer.",
            "I'm sorry, but I cannot provide the service.",
        ),
        (
            "Write to Ann.",
            "I'm sorry that I missed your call. I was asleep.",
        ),
        ("Write to Ann.", "I can't believe how long it has been!"),
        ("Write to Ann.", "Please provide a chair for the guest."),
    ] {
        assert_eq!(refused(prompt, None, &[], text), None, "{text}");
    }
}

#[test]
fn echoes_are_no_drafts() {
    let prompt = "Write a haiku about a frog that jumps into an old pond at dusk.";
    assert!(refused(prompt, None, &[], prompt).is_some());
    assert!(refused(prompt, None, &[], &prompt.to_uppercase()).is_some());
    assert!(refused(prompt, None, &[], "<task>\nWrite.\n</task>\n\nOld pond").is_some());
    let told = [
        issue(
            "quality",
            "The second line has eight syllables instead of seven.",
        ),
        issue("quality", "The season is nowhere to be seen in the poem."),
    ];
    let critique = "- The second line has eight syllables instead of seven.\n- The season is nowhere to be seen in the poem.";
    assert!(refused(prompt, Some(POEM), &told, critique).is_some());
    assert!(refused(prompt, Some(POEM), &told, r#"{"scores": {}, "issues": []}"#).is_some());
    assert_eq!(refused(prompt, Some(POEM), &told, POEM), None);
    let layout = format!("The task was:\n\n{prompt}");
    assert!(refused(prompt, Some(POEM), &[], &layout).is_some());
    assert!(
        refused(
            prompt,
            Some(POEM),
            &[],
            &format!("{POEM}\n\nThe task is:\n\n{prompt}")
        )
        .is_some()
    );
    // Our last instruction is removed from the ends, and a reply that has it inside is rejected.
    let ended = format!("{POEM}\n\n*Reply with only the text.*");
    assert_eq!(cleaned(&ended), POEM);
    let begun = format!("Reply with only the whole revised text:\n\n{POEM}");
    assert_eq!(cleaned(&begun), POEM);
    let inside = format!("{POEM}\n\nReply with only the whole edited text:\n\n{POEM}");
    assert!(refused(prompt, None, &[], &inside).is_some());
    assert_eq!(refused(prompt, Some(&inside), &[], &inside), None);
    let theirs = format!("{POEM}\n\nThe task was:\nto write of frogs.");
    assert_eq!(refused(prompt, Some(&theirs), &[], &theirs), None);
    // A text to be corrected comes back nearly as it was.
    let prompt = "Correct the spelling: The quick brwn fox jumps over the lazy dog and runs away.";
    let text = "The quick brown fox jumps over the lazy dog and runs away.";
    assert_eq!(refused(prompt, None, &[], text), None);
    assert_eq!(
        refused("Hello, world!", None, &[], "Hello, world!"),
        None,
        "too short to say"
    );
}

#[test]
fn talk_that_is_all_there_is_is_no_draft() {
    for text in [
        "Key changes:\n- a better ending",
        "I have revised the draft to address the feedback.",
        "",
    ] {
        assert!(
            refused("Write a haiku.", Some(POEM), &[], text).is_some(),
            "{text}"
        );
    }
}

#[test]
fn a_collapse_or_explosion_that_nobody_asked_for_is_no_draft() {
    let line = |n: usize| format!("Sentence number {n} tells of the thing called x{n}. ");
    let text = |lines: usize| (0..lines).map(line).collect::<String>();
    let base = text(20);
    let at = |lines: usize, issues: &[Issue]| refused("Write.", Some(&base), issues, &text(lines));
    assert!(at(7, &[]).unwrap().contains("characters are left"));
    assert!(
        at(52, &[])
            .unwrap()
            .contains("nothing asks for a longer text")
    );
    for lines in [9, 20, 48] {
        assert_eq!(at(lines, &[]), None, "{lines}");
    }
    assert_eq!(at(3, &[issue("quality", "It is far too long.")]), None);
    assert_eq!(
        at(
            3,
            &[issue(
                "length",
                "the text has 180 words, at most 100 are allowed"
            )]
        ),
        None
    );
    assert!(at(3, &[issue("quality", "The dates are wrong.")]).is_some());
    assert_eq!(
        at(
            60,
            &[issue(
                "quality",
                "Two sections should be expanded: expand them."
            )]
        ),
        None
    );
    let told = "The text does not reach the length that was asked for.";
    assert_eq!(at(60, &[issue("quality", told)]), None);
    let missing = Issue {
        kind: IssueType::Missing,
        ..issue("quality", "Sections two to five.")
    };
    assert_eq!(at(60, &[missing]), None);
    assert_eq!(
        refused("Write.", Some("Short."), &[], &text(20)),
        None,
        "a stub may grow"
    );
    assert_eq!(
        refused("Write.", None, &[], &text(1)),
        None,
        "a first draft is as it is"
    );
}

#[test]
fn the_same_over_and_over_is_no_draft() {
    let loops = "The frog jumps into the pond and the water makes a sound. ".repeat(30);
    assert!(refused("Write a story.", None, &[], &loops).is_some());
    assert_eq!(refused("Repeat the sentence.", None, &[], &loops), None);
    let rows = "1 0 0 1 0 1\n".repeat(60);
    assert_eq!(refused("Print the matrix.", None, &[], &rows), None);
    let song: Vec<String> = (0..12)
        .map(|n| format!("Verse {n} tells of day number{n} and what was seen there{n}.\nOh sing with me, oh sing with me the song\n\n"))
        .collect();
    let song = song.concat();
    assert_eq!(refused("Write a song.", None, &[], &song), None);
}

proptest! {
    #[test]
    fn cleaning_leaves_the_bytes_of_what_stays(
        reply in "(Here is the revised version:\n|Sure!\n|```\n|```rust\n|Key changes:\n|- one\n|---\n|<draft>|</draft>|[a-zé .]{0,20}\n|\n){0,12}"
    ) {
        let text = cleaned(&reply);
        prop_assert!(reply.contains(&text));
    }

    #[test]
    fn what_was_cleaned_once_needs_no_more_of_the_talk(words in "[a-z]{2,8}( [a-z]{2,8}){4,12}") {
        let reply = format!("Here is the revised version:\n\n{words}\n\nLet me know if you want any edits.");
        let once = cleaned(&reply);
        prop_assert_eq!(&once, &words);
        prop_assert_eq!(cleaned(&once), once);
    }

    #[test]
    fn no_reply_makes_the_gate_panic(reply in "\\PC{0,80}", base in proptest::option::of("\\PC{0,80}")) {
        let text = cleaned_for(&reply, &reply);
        let _ = refused(&reply, base.as_deref(), &[issue("quality", &reply)], &text);
    }
}

#[test]
fn a_reply_made_of_the_instructions_is_not_a_draft() {
    let task = "Describe the frog in the old pond in two sentences.";
    let criteria = criteria("");
    let context = DraftContext {
        prompt: task,
        criteria: &criteria,
        base: None,
        issues: &[],
    };
    let prompt = format!(
        "<task>\n{task}\n</task>\n\n<context>\nThe frog lives in an old pond behind the mill and sings.\n</context>\n\n\
         <criteria>\n- `clear`: A reader understands it at once.\n- `short`: It has at most fifty words.\n</criteria>\n\n\
         Reply with the text alone: no introduction, no comment. It must meet every criterion. Write it now."
    );
    let asked = [Message::new(Role::User, prompt)];
    let rejected = |reply: &str| check_frame(reply, &asked, &context).is_err();
    assert!(rejected(
        "- `clear`: A reader understands it at once.\n- `short`: It has at most fifty words."
    ));
    assert!(rejected(
        "Reply with the text alone: no introduction, no comment."
    ));
    assert!(rejected(
        "<criteria>\nclear: A reader understands it at once.\n</criteria>\nIt must meet every criterion."
    ));
    assert!(
        !rejected("The frog lives in an old pond behind the mill and sings."),
        "material"
    );
    assert!(!rejected(
        "The frog in the old pond is green. A reader understands it at once."
    ));
    assert!(!rejected("Frog."));
}

#[test]
fn talk_about_the_text_is_not_the_text() {
    let task = "Rewrite this review so that it is very positive: The waiter was slow and the soup was cold.";
    let base =
        "The waiter took good care of us, and the soup was the best that we have had in years.";
    for text in [
        "Feedback: This review is indeed very positive. It praises the waiter and uses strong phrases.",
        "The review is already very positive and does not need to be rewritten.",
        "No changes are needed.",
        "There is no need to rewrite the review again, as the previous feedback confirmed.",
        "Why is this review not very positive?",
    ] {
        assert!(refused(task, Some(base), &[], text).is_some(), "{text}");
    }
    let poem = "Write a poem about the sea.";
    let sea = "The sea is grey, the gulls are loud, a ship goes by beneath a cloud.";
    for text in [
        "The poem meets all that is asked for.",
        "This draft is strong: the rhythm carries it.",
    ] {
        assert!(refused(poem, Some(sea), &[], text).is_some(), "{text}");
    }
    assert!(
        refused(
            task,
            None,
            &[],
            "Great job! This rewritten review is positive."
        )
        .is_some(),
        "a first draft of a rewriting task"
    );
    for (task, base, text) in [
        (
            task,
            Some(base),
            "A waiter who cares about every guest, and soup to dream of. I had read the reviews. We came twice, and will again.",
        ),
        (
            poem,
            Some(sea),
            "Blue waves in May, and not one cloud; the gulls have gone, the wind is proud.",
        ),
        (
            "Give feedback on this text: I goes home.",
            None,
            "The text needs one change: the verb of the draft.",
        ),
        (
            "Review the draft.",
            None,
            "The draft is clear, but the wording of its criteria is not.",
        ),
        (
            "Describe the editor.",
            Some("It opens files and is fast."),
            "It opens a text in an instant, keeps every line in view, and saves it while you type.",
        ),
    ] {
        assert_eq!(refused(task, base, &[], text), None, "{text}");
    }
}

#[test]
fn plans_and_tables_are_drafts() {
    let rows = |count: usize, row: &dyn Fn(usize) -> String| -> String {
        (1..=count).map(row).collect::<Vec<_>>().join("\n")
    };
    for text in [
        rows(12, &|n| {
            format!(
                "Week {n}: rest day or easy stretching at home, then an easy run of {} km at a pace where you can talk",
                n + 2
            )
        }),
        rows(40, &|n| {
            format!("<tr><td>{n}</td><td>{}</td><td>kg</td></tr>", n * 7)
        }),
        rows(40, &|n| {
            format!("| Item number {n} of the list | {} |", n * n)
        }),
        rows(40, &|n| {
            format!("value of the sensor in the hall,{n},{}", n * 3)
        }),
    ] {
        assert_eq!(refused("Write it.", None, &[], &text), None, "{text}");
    }
}

/// Measures the gate on labelled texts: lines with `prompt`, `base` (or null), `text` and `draft` (whether it is one),
/// in the file that `REFLECT_GATE_CASES` names.
#[test]
#[ignore = "needs a file of labelled texts"]
fn measure() {
    let path = std::env::var("REFLECT_GATE_CASES").expect("REFLECT_GATE_CASES");
    let cases = std::fs::read_to_string(path).unwrap();
    let (mut wrong, mut all) = ([0, 0], [0, 0]);
    for line in cases.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let said = |key: &str| case[key].as_str();
        let (prompt, text) = (said("prompt").unwrap(), said("text").unwrap());
        let is_draft = case["draft"].as_bool().unwrap();
        let text = cleaned_for(prompt, text);
        let reason = refused(prompt, said("base"), &[], &text);
        all[usize::from(is_draft)] += 1;
        if reason.is_none() != is_draft {
            wrong[usize::from(is_draft)] += 1;
            println!("{reason:?} {text:?}");
        }
    }
    println!("taken for drafts: {} of {}", wrong[0], all[0]);
    println!("drafts refused: {} of {}", wrong[1], all[1]);
}
