use proptest::prelude::*;
use serde_json::json;

use super::*;

const FLOOR: f64 = 0.7;

fn finding(value: impl Into<Value>) -> Finding {
    read(&value.into(), FLOOR).unwrap()
}

fn verdict(value: Value) -> (Option<bool>, Option<f64>, Vec<String>) {
    let finding = finding(value);
    let issues = finding.issues.into_iter().map(|it| it.description);
    (finding.valid, finding.score, issues.collect())
}

#[test]
fn booleans_numbers_and_objects_are_verdicts() {
    let none = Vec::<String>::new;
    assert_eq!(verdict(json!(true)), (Some(true), Some(1.0), none()));
    let no = vec!["Validation failed".to_owned()];
    assert_eq!(verdict(json!(false)), (Some(false), Some(0.0), no.clone()));
    assert_eq!(verdict(json!(null)), (Some(false), Some(0.0), no));
    assert_eq!(verdict(json!(0.7)), (None, Some(0.7), none()));
    let below = vec!["Score 0.69 below threshold 0.7".to_owned()];
    assert_eq!(verdict(json!(0.69)), (None, Some(0.69), below));
    assert_eq!(
        verdict(json!({ "valid": true })),
        (Some(true), Some(1.0), none())
    );
    assert_eq!(
        verdict(json!({ "passed": "no" })),
        (Some(false), Some(0.0), none())
    );
    assert_eq!(
        verdict(json!({ "score": "0.9" })),
        (None, Some(0.9), none())
    );
    assert_eq!(verdict(json!({})), (Some(false), Some(0.0), none()));
}

#[test]
fn scores_out_of_range_are_taken_to_its_end_and_that_is_said() {
    for (score, taken) in [(json!(3), 1.0), (json!(-0.5), 0.0)] {
        for value in [score.clone(), json!({ "valid": true, "score": score })] {
            let finding = finding(value);
            assert_eq!(finding.score, Some(taken));
            assert!(
                finding.evidence.contains("scores go from 0 to 1"),
                "{finding:?}"
            );
        }
    }
}

#[test]
fn what_is_no_verdict_is_refused_and_not_guessed() {
    for value in [
        json!("looks good to me"),
        json!([true]),
        json!({ "valid": "maybe" }),
        json!({ "valid": [] }),
        json!({ "valid": true, "score": "high" }),
    ] {
        let problem = read(&value, FLOOR).unwrap_err();
        assert!(problem.contains("expected"), "{value}: {problem}");
    }
}

#[test]
fn a_severe_error_is_not_outvoted() {
    for severity in ["major", "CRITICAL"] {
        let finding = finding(json!({
            "valid": true, "score": 1, "errors": [{ "message": "m", "severity": severity }]
        }));
        assert_eq!(finding.valid, Some(false));
        assert_eq!(finding.score, Some(1.0));
    }
    let minor = finding(json!({
        "valid": true, "errors": [{ "message": "m", "severity": "minor" }]
    }));
    assert_eq!(minor.valid, Some(true));
    assert_eq!(minor.issues[0].severity, Some(Severity::Minor));
}

#[test]
fn errors_keep_what_is_known_of_their_place() {
    let finding = finding(json!({
        "valid": false,
        "errors": [
            { "message": "no title", "type": "missing", "line": 3, "path": "/title", "suggestion": "add one" },
            "too short",
            {},
            ""
        ],
        "feedback": "nearly"
    }));
    assert_eq!(finding.issues.len(), 2);
    let issue = &finding.issues[0];
    assert_eq!(issue.kind, IssueType::Missing);
    assert_eq!(issue.place.line, Some(3));
    assert_eq!(issue.place.path.as_deref(), Some("/title"));
    assert_eq!(issue.suggested_fix.as_deref(), Some("add one"));
    assert_eq!(finding.issues[1].description, "too short");
    assert_eq!(finding.evidence, "not valid; nearly");
}

#[test]
fn suggestions_go_to_their_errors_or_stand_alone() {
    let fixes = |value: Value| -> Vec<Option<String>> {
        let issues = finding(value).issues.into_iter();
        issues.map(|issue| issue.suggested_fix).collect()
    };
    assert_eq!(
        fixes(json!({ "valid": false, "errors": ["a", "b"], "suggestions": ["x", "y", "z"] })),
        [Some("x".to_owned()), Some("y z".to_owned())]
    );
    assert_eq!(
        fixes(json!({ "valid": true, "suggestions": ["x"] })),
        [Some("x".to_owned())]
    );
    assert!(fixes(json!({ "valid": true, "errors": {}, "suggestions": {} })).is_empty());
}

#[test]
fn many_errors_are_cut_and_the_most_severe_stay() {
    let mut errors = vec![json!("small"); 80];
    errors.push(json!({ "message": "severe", "severity": "critical" }));
    let finding = finding(json!({ "valid": true, "errors": errors }));
    assert_eq!(finding.issues.len(), MAX_ISSUES + 1);
    assert_eq!(finding.valid, Some(false));
    assert_eq!(finding.issues[0].description, "severe");
    assert_eq!(
        finding.issues[MAX_ISSUES].description,
        "31 more errors are not shown"
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9 ]{0,8}".prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "valid",
        "score",
        "errors",
        "suggestions",
        "message",
        "severity",
        "feedback",
        "x",
    ]);
    leaf.prop_recursive(3, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_read_or_refused_and_scores_stay_in_range(value in any_json()) {
        if let Ok(finding) = read(&value, FLOOR) {
            prop_assert!(finding.score.is_some_and(|score| (0.0..=1.0).contains(&score)));
            prop_assert!(finding.issues.len() <= MAX_ISSUES + 1);
        }
    }
}
