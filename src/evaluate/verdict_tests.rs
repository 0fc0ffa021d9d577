use proptest::prelude::*;

use super::*;

const NAMES: [&str; 2] = ["clarity", "edge-cases"];

fn good() -> Value {
    json!({
        "scores": {
            "clarity": { "reason": "Line 1 is clear.", "score": 5 },
            "edge-cases": { "reason": "No word on empty input.", "score": 3 },
        },
        "issues": [{
            "type": "missing", "severity": "major", "criterion": "edge-cases",
            "description": "Empty input.", "claim": "", "suggested_fix": "Say what happens.",
        }],
        "confidence": 0.9,
    })
}

fn scores(reply: &str) -> Vec<f64> {
    let verdict = read(reply, &NAMES).unwrap_or_else(|problem| panic!("{problem}: {reply}"));
    verdict.scores.into_iter().map(|(score, _)| score).collect()
}

#[test]
fn the_form_asked_for_is_read_whole() {
    let verdict = read(&good().to_string(), &NAMES).unwrap();
    assert_eq!(verdict.scores[0], (1.0, "Line 1 is clear.".to_owned()));
    assert_eq!(
        verdict.scores[1],
        (0.6, "No word on empty input.".to_owned())
    );
    assert_eq!(verdict.confidence, Some(0.9));
    let issue = &verdict.issues[0];
    assert_eq!(issue.kind, IssueType::Missing);
    assert_eq!(issue.severity, Severity::Major);
    assert_eq!(issue.criterion.as_deref(), Some("edge-cases"));
    assert_eq!(issue.suggested_fix.as_deref(), Some("Say what happens."));
}

#[test]
fn an_unsupported_issue_names_its_claim() {
    let mut reply = good();
    assert_eq!(
        read(&reply.to_string(), &NAMES).unwrap().issues[0]
            .place
            .claim,
        None
    );
    reply["issues"][0]["claim"] = json!(" It never fails. ");
    // Only such an issue has one.
    assert_eq!(
        read(&reply.to_string(), &NAMES).unwrap().issues[0]
            .place
            .claim,
        None
    );
    reply["issues"][0]["type"] = json!("unsupported");
    let issue = &read(&reply.to_string(), &NAMES).unwrap().issues[0];
    assert_eq!(issue.place.claim.as_deref(), Some("It never fails."));
}

#[test]
fn the_form_asked_for_satisfies_its_own_schema() {
    let validator = jsonschema::validator_for(&schema(&NAMES)).unwrap();
    assert!(validator.is_valid(&good()));
    assert!(!validator.is_valid(&json!({ "scores": {}, "issues": [], "confidence": 1 })));
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
fn of_several_verdicts_the_last_counts() {
    let reply = r#"{"scores": {"clarity": 1, "edge-cases": 1}} No, wait.
        {"scores": {"clarity": 5, "edge-cases": 5}}"#;
    assert_eq!(scores(reply), [1.0, 1.0]);
}

#[test]
fn a_single_criterion_needs_no_name() {
    let verdict = read(r#"{"score": 4, "feedback": "Fine."}"#, &["clarity"]).unwrap();
    assert_eq!(verdict.scores, [(0.85, "Fine.".to_owned())]);
    assert!(read(r#"{"score": 4}"#, &NAMES).is_err());
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
        let error = read(reply, &NAMES).expect_err(reply);
        assert!(error.contains(problem), "{reply}: {error}");
    }
}

#[test]
fn issues_are_read_with_care() {
    let read_issue = |item: Value| {
        let reply = json!({ "scores": { "clarity": 5, "edge-cases": 5 }, "issues": [item] });
        read(&reply.to_string(), &NAMES).unwrap().issues
    };
    let plain = read_issue(json!("Too long."));
    assert_eq!(plain[0].description, "Too long.");
    assert_eq!(
        plain[0].severity,
        Severity::Major,
        "unknown severities are grave"
    );
    assert_eq!(
        read_issue(json!({ "message": "x", "severity": "LOW" }))[0].severity,
        Severity::Minor
    );
    assert_eq!(read_issue(json!({ "description": " " })), []);
    assert_eq!(read_issue(json!(7)), []);
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
    let unknown = read_issue(json!({ "description": "x", "criterion": "beauty" }));
    assert_eq!(unknown[0].criterion, None);
}

#[test]
fn a_confidence_off_the_scale_is_unknown() {
    let with = |confidence: Value| {
        let reply =
            json!({ "scores": { "clarity": 5, "edge-cases": 5 }, "confidence": confidence });
        read(&reply.to_string(), &NAMES).unwrap().confidence
    };
    assert_eq!(with(json!(0)), Some(0.0));
    assert_eq!(with(json!("0.5")), Some(0.5));
    assert_eq!(with(json!(90)), None);
    assert_eq!(with(json!(null)), None);
}

proptest! {
    #[test]
    fn no_reply_makes_it_panic(reply in r#"([{}\[\]":,0-9a-z \n]|"scores"|"clarity"|\\u00e9|😀)*"#) {
        let _ = read(&reply, &NAMES);
    }

    #[test]
    fn prose_around_a_verdict_changes_nothing(before in "[^{}]{0,80}", after in "[^{}]{0,80}") {
        let reply = format!("{before}{}{after}", good());
        prop_assert_eq!(read(&reply, &NAMES), read(&good().to_string(), &NAMES));
    }

    #[test]
    fn every_score_is_on_the_scale_or_refused(score in -3.0f64..12.0) {
        let reply = json!({ "scores": { "clarity": score, "edge-cases": 5 } }).to_string();
        match read(&reply, &NAMES) {
            Ok(verdict) => {
                prop_assert!((1.0..=5.0).contains(&score));
                prop_assert!((0.0..=1.0).contains(&verdict.scores[0].0));
            }
            Err(_) => prop_assert!(!(1.0..=5.0).contains(&score)),
        }
    }
}
