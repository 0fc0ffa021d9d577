use proptest::prelude::*;
use serde_json::json;

use super::super::question::schema;
use super::*;
use crate::types::ScoreRange;

const NAMES: [&str; 2] = ["clarity", "edge-cases"];

fn question(name: &str, scale: Scale) -> Question {
    Question {
        name: name.to_owned(),
        floor: 0.7,
        scale,
    }
}

fn both() -> Vec<Question> {
    NAMES.map(|name| question(name, Scale::Steps)).to_vec()
}

/// Parses a verdict on one criterion, on a user-defined scale from 0 to 1.
fn single(reply: &str) -> Result<ParsedVerdict, String> {
    let scale = Scale::Range(ScoreRange::new(0.0, 1.0).unwrap());
    read(reply, &[question("clarity", scale)])
}

fn good() -> Value {
    json!({
        "scores": {
            "clarity": { "analysis": "Line 1 is clear.", "score": 5 },
            "edge-cases": { "analysis": "No word on empty input.", "score": 3 },
        },
        "to_fix": [{
            "type": "missing", "severity": "major", "criterion": "edge-cases",
            "quote": "", "description": "Empty input.", "suggested_fix": "Say what happens.",
        }],
        "confidence": 0.9,
    })
}

fn scores(reply: &str) -> Vec<f64> {
    let verdict = read(reply, &both()).unwrap_or_else(|problem| panic!("{problem}: {reply}"));
    verdict.answers.iter().map(|answer| answer.score).collect()
}

#[test]
fn the_form_asked_for_is_read_whole() {
    let verdict = read(&good().to_string(), &both()).unwrap();
    let answer = |score, reason: &str| CriterionVerdict {
        score,
        valid: None,
        reason: reason.to_owned(),
    };
    assert_eq!(verdict.answers[0], answer(1.0, "Line 1 is clear."));
    assert_eq!(verdict.answers[1], answer(0.6, "No word on empty input."));
    assert_eq!(verdict.confidence, Some(0.9));
    let issue = &verdict.issues[0];
    assert_eq!(issue.kind, IssueType::Missing);
    assert_eq!(issue.severity, Severity::Major);
    assert_eq!(issue.criterion.as_deref(), Some("edge-cases"));
    assert_eq!(issue.suggested_fix.as_deref(), Some("Say what happens."));
}

#[test]
fn the_form_asked_for_satisfies_its_own_schema() {
    let validator = jsonschema::validator_for(&schema(&both())).unwrap();
    // Confidence is not requested, but parsed if given.
    let mut reply_value = good();
    reply_value.as_object_mut().unwrap().remove("confidence");
    assert!(validator.is_valid(&reply_value));
    assert!(!validator.is_valid(&json!({ "scores": {}, "issues": [] })));
}

#[test]
fn fences_prose_and_other_forms_are_read() {
    let bare = good().to_string();
    for reply in [
        format!("```json\n{bare}\n```"),
        format!("Here is my verdict:\n\n{bare}\n\nI hope this helps {{really}}."),
        format!("<think>maybe {{\"scores\": 1}}</think>{bare}"),
        format!("{{\"note\": 1}}\n{bare}"),
        r#"{"scores": {"clarity": 5, "edge-cases": 3}}"#.to_owned(),
        r#"{"scores": {"Clarity": "5", "Edge cases": "3/5"}}"#.to_owned(),
        r#"{"clarity": {"score": 5}, "edge_cases": {"score": 3}}"#.to_owned(),
        r#"{"criteria": [{"name": "clarity", "score": 5}, {"id": "edge-cases", "rating": 3}]}"#
            .to_owned(),
    ] {
        assert_eq!(scores(&reply), [1.0, 0.6], "{reply}");
    }
}

#[test]
fn two_verdicts_that_differ_are_none() {
    for reply in [
        r#"{"scores": {"clarity": 1, "edge-cases": 1}} No, wait.
        {"scores": {"clarity": 5, "edge-cases": 5}}"#,
        r#"{"scores": {"clarity": 5, "edge-cases": 5}} {"issues": ["It is wrong."]}"#,
        r#"{"scores": {"clarity": 5, "edge-cases": 5}} {"severity": "critical", "description": "x"}"#,
        r#"{"scores": {"clarity": 1, "clarity": 5, "edge-cases": 5}}"#,
        r#"{"scores": {"clarity": 1, "edge-cases": 1}, "scores": {"clarity": 5, "edge-cases": 5}}"#,
        r#"{"scores": {"clarity": 5, "Clarity": 1, "edge-cases": 5}}"#,
        r#"{"scores": {"clarity": 5, "edge-cases": 5}, "clarity": 1}"#,
        r#"{"scores": {"clarity": 5, "edge-cases": 5}, "criteria": {"clarity": 1}}"#,
        r#"{"criteria": [{"name": "clarity", "score": 1}, {"name": "clarity", "score": 5}, {"id": "edge-cases", "score": 5}]}"#,
        r#"{"scores": {"clarity": {"score": 5, "rating": 1}, "edge-cases": 5}}"#,
        r#"{"scores": {"clarity": 5, "edge-cases": 5}, "issues": [], "satisfactory": false}"#,
    ] {
        assert!(read(reply, &both()).is_err(), "{reply}");
    }
    for reply in [
        r#"{"valid": false, "valid": true, "score": 1}"#,
        r#"{"valid": false, "passed": true, "score": 1}"#,
        r#"{"score": 0.1, "overall_score": 1}"#,
        r#"{"valid": 0, "score": 1}"#,
        r#"{"valid": false} {"valid": true}"#,
    ] {
        assert!(single(reply).is_err(), "{reply}");
    }
    let refused = single(r#"{"scores": {"clarity": {"score": 1}}, "valid": false}"#).unwrap();
    assert_eq!(refused.answers[0].valid, Some(false));
    let twice = format!("{0}\n\nAs JSON:\n```json\n{0}\n```", good());
    assert_eq!(scores(&twice), [1.0, 0.6], "it says the same");
    let form = r#"{"scores": {"clarity": {"reason": "...", "score": 3}, "edge-cases": {"reason": "...", "score": 3}}}"#;
    assert_eq!(scores(&format!("{form}\n{}", good())), [1.0, 0.6]);
}

/// Whatever is wrong with the outer object, an inner one does not replace it.
#[test]
fn pieces_of_a_broken_verdict_are_no_verdict() {
    let issue = r#"{"type": "incorrect", "severity": "critical", "description": "Wrong."}"#;
    let entry = r#"{"reason": "ok", "score": 5}"#;
    let tails = [
        format!(r#""scores": {{"clarity": {entry}}}}}"#),
        format!(r#""scores": {{"clarity": {entry}}}}}"#).replace('\n', " "),
        format!(r#""clarity": {entry}}}"#),
        format!("\"x\": {entry}}}"),
    ];
    let heads = [
        // An unescaped quote, a missing comma, an extra comma, a comment, an unquoted key, other
        // quotation marks, an early closing bracket, and a missing first brace.
        r#"{"issues": [{"severity": "critical", "description": "He said "no" here."}], "#
            .to_owned(),
        format!(r#"{{"issues": [{issue}] "#),
        format!(r#"{{"issues": [{issue}],, "#),
        format!(r#"{{"issues": [{issue}, /* that is all */], "#),
        format!("{{ // My verdict\n\"issues\": [{issue}], "),
        format!(r"{{issues: [{issue}], "),
        format!(r"{{'issues': [{issue}], "),
        format!(r#"{{"issues": [{issue}]}}, "#),
        format!(r#""issues": [{issue}], "#),
        r#""issues": ["Wrong."], "#.to_owned(),
        r#"{"issues": ["the "}" is "odd"], "#.to_owned(),
        r#"Thinking: {"issues": [{"description": "cut </think> here, "severity": "critical"}], "#
            .to_owned(),
    ];
    let scale = Scale::Range(ScoreRange::new(0.0, 5.0).unwrap());
    for question in [
        question("clarity", scale),
        question("clarity", Scale::Steps),
    ] {
        for head in &heads {
            for tail in &tails {
                let reply = format!("{head}{tail}");
                assert!(
                    read(&reply, std::slice::from_ref(&question)).is_err(),
                    "{reply}"
                );
            }
        }
    }
    for reply in [
        r#"{"scores": {"clarity": 5}}, "issues": ["It is wrong."], "confidence": 1}"#,
        "scores: {\"clarity\": 5}\nissues: [\"It is wrong.\"]",
        r#"[{"score": 5}]"#,
        r#""{\"score\": 5}""#,
        r#"{"reason": "She wrote {"score": 5}, and so on", "score": 1}"#,
    ] {
        let question = question("clarity", Scale::Steps);
        assert!(read(reply, &[question]).is_err(), "{reply}");
    }
}

#[test]
fn a_trailing_comma_or_a_line_break_in_a_text_loses_nothing() {
    let reply = "Here:\n```json\n{\"scores\": {\"clarity\": {\"reason\": \"two\nlines\", \"score\": 5,}, \"edge-cases\": 3,},
        \"issues\": [{\"severity\": \"critical\", \"description\": \"Wrong.\"},],\n}\n```";
    let verdict = read(reply, &both()).unwrap();
    assert_eq!(verdict.answers[0].reason, "two\nlines");
    assert_eq!(verdict.issues[0].severity, Severity::Critical);
    let twice = r#"{"scores": {"clarity": 1, "clarity": 5, "edge-cases": 5},}"#;
    assert!(read(twice, &both()).is_err());
    assert_eq!(
        single(r#"{"valid": false, "score": 0.5,}"#)
            .unwrap()
            .answers[0]
            .valid,
        Some(false)
    );
}

#[test]
fn the_most_severe_issues_are_kept() {
    let mut items = vec![json!({ "severity": "minor", "description": "x" }); MAX_ISSUES];
    items.push(json!({ "severity": "critical", "description": "y" }));
    let reply = json!({ "scores": { "clarity": 5, "edge-cases": 5 }, "issues": items });
    let issues = read(&reply.to_string(), &both()).unwrap().issues;
    assert_eq!(issues.len(), MAX_ISSUES);
    assert_eq!(issues[0].severity, Severity::Critical);
}

#[test]
fn a_single_criterion_needs_no_name() {
    let clarity = [question("clarity", Scale::Steps)];
    let verdict = read(r#"{"score": 4, "feedback": "Fine."}"#, &clarity).unwrap();
    assert!((verdict.answers[0].score - 0.85).abs() < 1e-9);
    assert_eq!(verdict.answers[0].reason, "Fine.");
    assert!(read(r#"{"score": 4}"#, &both()).is_err());
}

#[test]
fn what_would_have_to_be_made_up_is_an_error_that_says_so() {
    for (reply, problem) in [
        ("", "it is empty"),
        ("  \n", "it is empty"),
        ("The draft is valid.", "it holds no complete JSON object"),
        (r#"{"scores": {"clarity": 5, "edge-ca"#, "no complete JSON"),
        (
            r#"{"scores": {"clarity": 5}}"#,
            "no score for the criterion `edge-cases`",
        ),
        (
            r#"{"scores": {"clarity": 0, "edge-cases": 3}}"#,
            "`clarity` is 0",
        ),
        (
            r#"{"scores": {"clarity": 6, "edge-cases": 3}}"#,
            "from 1 to 5",
        ),
        (
            r#"{"scores": {"clarity": 85, "edge-cases": 3}}"#,
            "`clarity` is 85",
        ),
        (
            r#"{"scores": {"clarity": 0.8, "edge-cases": 3}}"#,
            "`clarity` is 0.8",
        ),
        (
            r#"{"scores": {"clarity": "good", "edge-cases": 3}}"#,
            "\"good\"",
        ),
        (r#"{"scores": {"clarity": null, "edge-cases": 3}}"#, "null"),
        (r#"{"scores": {"clarity": true, "edge-cases": 3}}"#, "true"),
        (r#"{"scores": {"clarity": [5], "edge-cases": 3}}"#, "[5]"),
        ("[1, 2]", "no complete JSON object"),
        ("42", "no complete JSON object"),
    ] {
        let error = read(reply, &both()).expect_err(reply);
        assert!(error.contains(problem), "{reply}: {error}");
    }
}

/// Verdicts of a judge with a custom prompt.
#[test]
fn verdicts_under_other_names_are_read() {
    for (reply, score, valid) in [
        (
            r#"{"valid": true, "score": 0.9, "reason": "Good output"}"#,
            0.9,
            Some(true),
        ),
        (
            r#"Here: {"pass": false, "score": 0.3, "feedback": "Needs work"} Thanks!"#,
            0.3,
            Some(false),
        ),
        (
            "```json\n{\"valid\": false, \"score\": 0.2}\n```",
            0.2,
            Some(false),
        ),
        (r#"{"valid": "false", "score": 0.1}"#, 0.1, Some(false)),
        (r#"{"score": 0.95}"#, 0.95, None),
        (r#"{"valid": true}"#, 1.0, Some(true)),
        (r#"{"valid": false}"#, 0.0, Some(false)),
        (r#"{"valid": true, "score": "0.8"}"#, 0.8, Some(true)),
        (r#"{"valid": true, "score": null}"#, 1.0, Some(true)),
        (
            r#"{"valid": false, "score": -0.5, "reason": "x"}"#,
            0.0,
            Some(false),
        ),
        (
            r#"{"overall_score":0.85,"criteria_scores":{"depth":0.9},"satisfactory":true,"issues":[]}"#,
            0.85,
            Some(true),
        ),
        (
            "<think>It says \"invalid\" somewhere {x}</think>\n{\"valid\": true, \"score\": 0.7}",
            0.7,
            Some(true),
        ),
        (
            r#"{"success": true, "valid": false, "score": 0.4}"#,
            0.4,
            Some(false),
        ),
        (
            r#"{"quality_score": 0.5, "passes": "no"}"#,
            0.5,
            Some(false),
        ),
        (
            r#"{"clarity": {"success": true, "score": 0.4}}"#,
            0.4,
            Some(true),
        ),
    ] {
        let verdict = single(reply).unwrap_or_else(|problem| panic!("{problem}: {reply}"));
        let answer = &verdict.answers[0];
        assert!((answer.score - score).abs() < 1e-9, "{reply}: {answer:?}");
        assert_eq!(answer.valid, valid, "{reply}");
    }
    for (word, valid) in [("VALID", true), ("**Invalid.**", false), ("no", false)] {
        let verdict = single(word).unwrap_or_else(|problem| panic!("{problem}: {word}"));
        assert_eq!(verdict.answers[0].valid, Some(valid), "{word}");
    }
    for (reply, problem) in [
        ("The output is not valid.", "no complete JSON object"),
        ("[1,2]", "no complete JSON object"),
        (
            r#"{"valid": true, "score": 85}"#,
            "only numbers from 0 to 1",
        ),
        (r#"{"valid": "perhaps"}"#, "`clarity` is \"perhaps\""),
        (
            r#"{"scores": {"clarity": {"reason": "...", "score": 1}}, "issues": []}"#,
            "repeats the form",
        ),
        (
            r#"{"note": "fine"}"#,
            "no score for the criterion `clarity`",
        ),
    ] {
        let error = single(reply).expect_err(reply);
        assert!(error.contains(problem), "{reply}: {error}");
    }
}

/// A verdict of issues alone fails by their severities, and never passes.
#[test]
fn issues_alone_may_refuse_and_not_approve() {
    let severe = r#"{"issues":[{"type":"incorrect","description":"x","severity":"critical"}],"confidence":0.8}"#;
    let verdict = single(severe).unwrap();
    assert_eq!(verdict.answers[0].valid, Some(false));
    assert_eq!(verdict.issues[0].severity, Severity::Critical);
    assert_eq!(verdict.issues[0].criterion.as_deref(), Some("clarity"));
    for reply in [
        r#"{"issues": [], "confidence": 0.9}"#,
        r#"{"issues": [{"description": "x", "severity": "minor"}]}"#,
    ] {
        assert!(single(reply).unwrap_err().contains("no score"), "{reply}");
    }
    assert!(read(severe, &both()).is_err(), "of which of two criteria?");
}

/// On the default scale the judge is not asked whether the draft passes, so its approval does not
/// count.
#[test]
fn on_our_own_scale_a_judge_may_refuse_and_not_approve() {
    let valid = |word: bool| {
        let reply = json!({ "score": 2, "passed": word }).to_string();
        read(&reply, &[question("clarity", Scale::Steps)])
            .unwrap()
            .answers[0]
            .valid
    };
    assert_eq!(valid(false), Some(false));
    assert_eq!(valid(true), None);
}

#[test]
fn a_verdict_that_cannot_be_used_is_not_replaced_by_an_earlier_one() {
    let reply = r#"{"valid": true, "score": 1} On second thought: {"valid": false, "score": 7}"#;
    assert!(single(reply).unwrap_err().contains("two JSON objects"));
    // The object that follows is not a verdict.
    let reply = r#"{"valid": false, "score": 0.1} {"note": "that was strict"}"#;
    assert_eq!(single(reply).unwrap().answers[0].valid, Some(false));
}

#[test]
fn suggestions_stand_in_for_issues() {
    let reply = r#"{"valid": false, "score": 0.3, "reason": "Dull", "suggestions": ["Add jokes", "Cut it", "none"]}"#;
    let issues = single(reply).unwrap().issues;
    let found: Vec<_> = issues
        .iter()
        .map(|i| {
            (
                i.severity,
                i.description.as_str(),
                i.suggested_fix.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (Severity::Major, "Dull", Some("Add jokes")),
            (Severity::Major, "Cut it", Some("Cut it")),
        ]
    );
    let passed = single(r#"{"valid": true, "score": 0.9, "suggestions": ["More jokes"]}"#).unwrap();
    assert_eq!(passed.issues[0].severity, Severity::Minor);
    assert_eq!(
        single(r#"{"valid": false, "score": 0.4}"#).unwrap().issues,
        []
    );
}

#[test]
fn answers_of_yes_and_no_are_counted() {
    let read = |answers: &str| {
        let reply =
            format!(r#"{{"scores": {{"clarity": {{"reason": "r", "answers": {answers}}}}}}}"#);
        read(&reply, &[question("clarity", Scale::Checks(4))]).map(|v| v.answers[0].score)
    };
    for answers in [
        r#"{"1": true, "2": true, "3": false, "4": true}"#,
        r#"{"4": true, "3": "no", "2": "yes", "1": {"answer": true}}"#,
        r#"{"a": true, "b": true, "c": true, "d": false}"#,
        "[true, true, true, false]",
    ] {
        assert_eq!(read(answers), Ok(0.75), "{answers}");
    }
    for answers in [
        r#"{"1": true, "2": true, "3": false}"#,
        "[true, true, true]",
        "[true, true, true, false, false]",
        r#"[true, true, true, "perhaps"]"#,
        "4",
    ] {
        let error = read(answers).expect_err(answers);
        assert!(error.contains("all 4 questions"), "{answers}: {error}");
    }
}

#[test]
fn issues_are_read_with_care() {
    let read_issue = |item: Value| {
        let reply = json!({ "scores": { "clarity": 5, "edge-cases": 5 }, "issues": [item] });
        read(&reply.to_string(), &both()).unwrap().issues
    };
    let plain = read_issue(json!("Too long."));
    assert_eq!(plain[0].description, "Too long.");
    assert_eq!(
        plain[0].severity,
        Severity::Major,
        "unknown severities count as severe"
    );
    assert_eq!(
        read_issue(json!({ "message": "x", "severity": "LOW" }))[0].severity,
        Severity::Minor
    );
    assert_eq!(read_issue(json!({ "description": " " })), []);
    assert_eq!(read_issue(json!(null)), []);
    assert_eq!(read_issue(json!({})), []);
    for nothing in [
        json!("None"),
        json!("N/A"),
        json!({ "description": "No issues found." }),
        json!({ "description": "x", "severity": "none" }),
    ] {
        assert_eq!(read_issue(nothing.clone()), [], "{nothing}");
    }
    let kind = read_issue(json!({ "description": "x", "type": "Missing" }))[0].kind;
    assert_eq!(kind, IssueType::Missing);
    let quoted = read_issue(json!({ "description": "x", "quote": " so it is " }));
    assert_eq!(quoted[0].place.quote.as_deref(), Some("so it is"));
    let quoted = read_issue(json!({ "description": "x", "quote": "" }));
    assert_eq!(quoted[0].place.quote, None);
    let unknown = read_issue(json!({ "description": "x", "criterion": "beauty" }));
    assert_eq!(unknown[0].criterion, None);
    // The judge was not asked about this criterion.
    assert_eq!(unknown[0].severity, Severity::Minor);
}

#[test]
fn issues_that_cannot_be_read_are_not_passed_over() {
    let with = |issues: Value| {
        let reply = json!({ "scores": { "clarity": 5, "edge-cases": 5 }, "issues": issues });
        read(&reply.to_string(), &both()).map(|verdict| verdict.issues.len())
    };
    for issues in [
        json!(3),
        json!(true),
        json!(false),
        json!([["It is wrong."]]),
        json!([7]),
        json!({ "1": "It is wrong." }),
        json!([{ "severity": "critical", "description": 5 }]),
    ] {
        assert!(with(issues.clone()).is_err(), "{issues}");
    }
    for (issues, count) in [
        (json!(null), 0),
        (json!("none"), 0),
        (json!("It is wrong."), 1),
        (json!({ "description": "It is wrong." }), 1),
    ] {
        assert_eq!(with(issues.clone()), Ok(count), "{issues}");
    }
    let reply =
        r#"{"scores": {"clarity": 5, "edge-cases": 5}, "issues": [], "errors": ["It is wrong."]}"#;
    assert_eq!(read(reply, &both()).unwrap().issues.len(), 1);
}

#[test]
fn a_confidence_off_the_scale_is_unknown() {
    let with = |confidence: Value| {
        let reply =
            json!({ "scores": { "clarity": 5, "edge-cases": 5 }, "confidence": confidence });
        read(&reply.to_string(), &both()).unwrap().confidence
    };
    assert_eq!(with(json!(0)), Some(0.0));
    assert_eq!(with(json!("0.5")), Some(0.5));
    assert_eq!(with(json!(90)), None);
    assert_eq!(with(json!(null)), None);
}

proptest! {
    #[test]
    fn no_reply_makes_it_panic(reply in r#"([{}\[\]":,0-9a-z \n]|"scores"|"clarity"|\\u00e9|😀)*"#) {
        let _ = read(&reply, &both());
    }

    #[test]
    fn prose_around_a_verdict_changes_nothing(
        before in "([^{}\\[:\"\\\\]|\\[[a-z1-9]\\]){0,80}",
        after in "([ \n`.!A-Za-z][^{}\\[,:\\]\\\\]{0,80})?",
    ) {
        let reply = format!("{before}{}{after}", good());
        prop_assert_eq!(read(&reply, &both()), read(&good().to_string(), &both()));
    }

    #[test]
    fn every_score_is_on_the_scale_or_refused(score in -3.0f64..12.0) {
        let reply = json!({ "scores": { "clarity": score, "edge-cases": 5 } }).to_string();
        match read(&reply, &both()) {
            Ok(verdict) => {
                prop_assert!((1.0..=5.0).contains(&score));
                prop_assert!((0.0..=1.0).contains(&verdict.answers[0].score));
            }
            Err(_) => prop_assert!(!(1.0..=5.0).contains(&score)),
        }
    }
}

/// Some servers sort the keys of a schema; the judge then writes them in that order.
#[test]
fn the_keys_of_a_verdict_stand_in_alphabetical_order() {
    fn check(schema: &Value) {
        if let Some(properties) = schema["properties"].as_object() {
            let keys: Vec<&String> = properties.keys().collect();
            assert!(keys.is_sorted(), "{keys:?}");
        }
        match schema {
            Value::Object(fields) => fields.values().for_each(check),
            Value::Array(items) => items.iter().for_each(check),
            _ => {}
        }
    }
    let questions = [
        question("clear", Scale::Steps),
        question("short", Scale::Checks(3)),
    ];
    check(&schema(&questions));
    check(&super::super::pairwise::schema());
}
