//! The formats for CI, for evaluations of all kinds and with texts of all kinds.

use std::path::Path;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::findings::{Level, findings};
use super::place::{relative, uri};
use super::{github, junit, sarif};
use crate::types::{
    Criteria, Criterion, CriterionResult, Evaluation, Evaluator, ExitCode, Issue, IssueType,
    LlmConfig, Place, RunRecord, Severity, Status, TokenUsage, Version,
};

fn criteria(name: &str) -> Criteria {
    let criterion = |name: &str| Criterion {
        name: name.to_owned(),
        description: String::new(),
        weight: 1.0,
        threshold: 0.5,
        required: false,
        evaluator: Evaluator::Llm(LlmConfig::default()),
    };
    Criteria::new(name, vec![criterion("clear"), criterion("short")])
}

fn result(name: &str, status: Status, score: f64) -> CriterionResult {
    CriterionResult {
        name: name.to_owned(),
        evaluator: "llm".to_owned(),
        score: (status == Status::Ok).then_some(score),
        threshold: 0.5,
        passed: status == Status::Ok && score >= 0.5,
        required: false,
        status,
        evidence: Some(format!("evidence for {name}")),
        value: None,
        spread: None,
        cached: false,
    }
}

fn issue(severity: Severity, criterion: Option<&str>, text: &str) -> Issue {
    Issue {
        kind: IssueType::Incorrect,
        severity,
        description: text.to_owned(),
        suggested_fix: Some(format!("change {text}")),
        criterion: criterion.map(str::to_owned),
        place: Place {
            line: Some(3),
            ..Place::default()
        },
    }
}

fn record(evaluation: Evaluation) -> RunRecord {
    let mut record = RunRecord::default();
    record.success = evaluation.satisfactory;
    record.versions = vec![Version {
        iteration: 1,
        output: String::new(),
        based_on: None,
        strategy: None,
        edits: None,
        improvements_applied: Vec::new(),
        evaluation: Some(evaluation),
        timestamp: Timestamp::UNIX_EPOCH,
        token_usage: TokenUsage::default(),
        duration_ms: 0,
    }];
    record
}

/// An evaluation of both criteria. It is satisfactory if that follows from the rest.
fn evaluation(criteria: Vec<CriterionResult>, issues: Vec<Issue>, score: f64) -> Evaluation {
    let severe = issues.iter().any(|it| it.severity != Severity::Minor);
    Evaluation {
        overall_score: Some(score),
        criteria_scores: criteria
            .iter()
            .map(|it| (it.name.clone(), it.score))
            .collect(),
        satisfactory: !severe && score >= 0.75 && criteria.iter().all(|it| it.passed),
        suggestions: Vec::new(),
        issues,
        confidence: None,
        status: criteria
            .iter()
            .map(|it| it.status)
            .find(|it| matches!(it, Status::Failed | Status::Unparsed))
            .unwrap_or_default(),
        spread: None,
        criteria,
        flaw: None,
    }
}

fn both(clear: (Status, f64), short: (Status, f64), issues: Vec<Issue>, score: f64) -> RunRecord {
    let results = vec![
        result("clear", clear.0, clear.1),
        result("short", short.0, short.1),
    ];
    record(evaluation(results, issues, score))
}

const OK: Status = Status::Ok;

/// Evaluations of all kinds, each with the findings that follow.
fn all() -> Vec<(RunRecord, Vec<(&'static str, Level)>)> {
    let minor = issue(Severity::Minor, Some("clear"), "a word");
    let major = issue(Severity::Major, Some("short"), "a line");
    let nobodys = issue(Severity::Critical, None, "all of it");
    let mut failed = RunRecord::default();
    failed.error = Some("no such model".to_owned());
    vec![
        (both((OK, 1.0), (OK, 1.0), vec![], 1.0), vec![]),
        (
            both((OK, 0.9), (OK, 1.0), vec![minor.clone()], 0.95),
            vec![("clear", Level::Warning)],
        ),
        (
            both((OK, 0.9), (OK, 0.3), vec![major.clone(), minor], 0.6),
            vec![
                ("short", Level::Error),
                ("clear", Level::Warning),
                ("overall_score", Level::Error),
            ],
        ),
        (
            both((OK, 0.9), (OK, 0.9), vec![major], 0.9),
            vec![("short", Level::Error)],
        ),
        (
            both((OK, 0.9), (OK, 0.9), vec![nobodys], 0.9),
            vec![("overall_score", Level::Error)],
        ),
        // A criterion below its floor without an issue, and a mean below the threshold with neither.
        (
            both((OK, 1.0), (OK, 0.4), vec![], 0.8),
            vec![("short", Level::Error)],
        ),
        (
            both((OK, 0.6), (OK, 0.6), vec![], 0.6),
            vec![("overall_score", Level::Error)],
        ),
        (
            both((Status::Unparsed, 0.0), (OK, 1.0), vec![], 1.0),
            vec![("clear", Level::NoVerdict)],
        ),
        (
            both((Status::Skipped, 0.0), (OK, 0.2), vec![], 0.2),
            vec![("short", Level::Error), ("overall_score", Level::Error)],
        ),
        (failed, vec![("overall_score", Level::NoVerdict)]),
        (
            RunRecord::default(),
            vec![("overall_score", Level::NoVerdict)],
        ),
    ]
}

#[test]
fn a_text_passes_if_and_only_if_nothing_above_a_warning_is_found() {
    let criteria = criteria("c");
    for (number, (record, expected)) in all().into_iter().enumerate() {
        let found = findings(&criteria, &record);
        let names: Vec<_> = found.iter().map(|it| (it.name(), it.level)).collect();
        assert_eq!(names, expected, "{number}");
        let passes = found.iter().all(|it| it.level == Level::Warning);
        assert_eq!(passes, record.success, "{number}");
    }
}

fn records(records: impl IntoIterator<Item = RunRecord>) -> Vec<(Option<String>, RunRecord)> {
    let files = (1..).map(|number| Some(format!("texts/{number}.md")));
    files.zip(records).collect()
}

#[test]
fn junit_has_a_suite_for_each_text_and_a_case_for_each_criterion() {
    let skipped = both(
        (Status::Skipped, 0.0),
        (OK, 0.2),
        vec![issue(Severity::Major, Some("short"), "too <long>\nby half")],
        0.2,
    );
    let unparsed = both((Status::Unparsed, 0.0), (OK, 1.0), vec![], 1.0);
    insta::assert_snapshot!(
        junit(&criteria("house & home"), &records([skipped, unparsed])),
        @r#"
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="reflect" tests="6" failures="2" errors="1" time="0.000">
  <testsuite name="texts/1.md" tests="3" failures="2" errors="0" skipped="1" time="0.000">
    <properties>
      <property name="overall_score" value="0.20"/>
      <property name="threshold" value="0.80"/>
    </properties>
    <testcase classname="house &amp; home" name="clear">
      <skipped message="evidence for clear"/>
    </testcase>
    <testcase classname="house &amp; home" name="short">
      <failure message="line 3: too &lt;long&gt;">line 3: too &lt;long&gt;
by half
fix: change too &lt;long&gt;
by half</failure>
    </testcase>
    <testcase classname="house &amp; home" name="overall_score">
      <failure message="overall score 0.20, threshold 0.80">overall score 0.20, threshold 0.80</failure>
    </testcase>
    <system-out>texts/1.md: does not meet the criteria, score 0.20; not met: `short`, 1 major issue
  ? clear  skipped  evidence for clear
  ✗ short  0.20  evidence for short
  - major, incorrect: too &lt;long&gt;
by half [short]
    fix: change too &lt;long&gt;
by half
</system-out>
  </testsuite>
  <testsuite name="texts/2.md" tests="3" failures="0" errors="1" skipped="0" time="0.000">
    <properties>
      <property name="overall_score" value="1.00"/>
      <property name="threshold" value="0.80"/>
    </properties>
    <testcase classname="house &amp; home" name="clear">
      <error message="no verdict: evidence for clear">no verdict: evidence for clear</error>
    </testcase>
    <testcase classname="house &amp; home" name="short"/>
    <testcase classname="house &amp; home" name="overall_score"/>
    <system-out>texts/2.md: could not be judged for some criteria; the others score 1.00
  ? clear  unparsed  evidence for clear
  ✓ short  1.00  evidence for short
</system-out>
  </testsuite>
</testsuites>
"#
    );
}

#[test]
fn github_gets_a_command_for_each_finding_and_a_notice_for_each_text_that_passes() {
    let issue = issue(
        Severity::Major,
        Some("short"),
        "50 %, too long:\n::error::x",
    );
    let bad = both((OK, 0.9), (OK, 0.3), vec![issue], 0.6);
    let good = both((OK, 1.0), (OK, 1.0), vec![], 1.0);
    let mut all = records([bad, good.clone()]);
    all.push((Some("a,b:c%.md".to_owned()), good.clone()));
    all.push((None, good));
    insta::assert_snapshot!(github(&criteria("c"), &all, Path::new("/work")), @r#"
::error file=texts/1.md,line=3,title=short::50 %25, too long:%0A::error::x%0Afix: change 50 %25, too long:%0A::error::x
::error file=texts/1.md,title=overall_score::overall score 0.60, threshold 0.80
::notice file=texts/2.md,title=reflect::meets the criteria, score 1.00
::notice file=a%2Cb%3Ac%25.md,title=reflect::meets the criteria, score 1.00
::notice title=reflect::meets the criteria, score 1.00
"#);
}

/// The parts of SARIF that are used, as the OASIS schema has them. Nothing else may be there.
fn sarif_schema() -> Value {
    let object = |required: &[&str], properties: Value| {
        json!({
            "type": "object", "additionalProperties": false,
            "required": required, "properties": properties,
        })
    };
    let message = object(&["text"], json!({ "text": { "type": "string" } }));
    let index = json!({ "type": "integer", "minimum": 0 });
    let place = object(
        &["artifactLocation"],
        json!({
            "artifactLocation": object(
                &["uri"],
                json!({ "uri": { "type": "string", "format": "uri-reference" } }),
            ),
            "region": object(
                &["startLine"],
                json!({ "startLine": { "type": "integer", "minimum": 1 } }),
            ),
        }),
    );
    let level = json!({ "enum": ["none", "note", "warning", "error"] });
    let locations = json!({
        "type": "array",
        "items": object(&["physicalLocation"], json!({ "physicalLocation": place })),
    });
    let result = object(
        &["message"],
        json!({
            "level": level, "message": message, "locations": locations,
            "ruleId": { "type": "string" }, "ruleIndex": index,
        }),
    );
    let notification = object(
        &["message"],
        json!({
            "level": level, "message": message, "locations": locations,
            "associatedRule": object(&["id"], json!({ "id": { "type": "string" }, "index": index })),
        }),
    );
    let rule = object(
        &["id"],
        json!({
            "id": { "type": "string" },
            "shortDescription": message, "fullDescription": message,
        }),
    );
    let driver = object(
        &["name"],
        json!({
            "name": { "const": "reflect" }, "version": { "type": "string" },
            "informationUri": { "type": "string", "format": "uri" },
            "rules": { "type": "array", "uniqueItems": true, "items": rule },
        }),
    );
    let invocation = object(
        &["executionSuccessful"],
        json!({
            "executionSuccessful": { "type": "boolean" }, "exitCode": { "type": "integer" },
            "toolExecutionNotifications": { "type": "array", "items": notification },
        }),
    );
    let run = object(
        &["tool", "results"],
        json!({
            "tool": object(&["driver"], json!({ "driver": driver })),
            "invocations": { "type": "array", "items": invocation },
            "results": { "type": "array", "items": result },
        }),
    );
    object(
        &["version", "runs"],
        json!({
            "$schema": { "type": "string", "format": "uri" }, "version": { "const": "2.1.0" },
            "runs": { "type": "array", "items": run },
        }),
    )
}

fn valid_sarif(criteria: &Criteria, records: &[(Option<String>, RunRecord)]) -> Value {
    let text = sarif(criteria, records, Path::new("/work"), ExitCode::NotMet);
    let log: Value = serde_json::from_str(&text).expect("JSON");
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&sarif_schema())
        .expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(&log)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(errors, Vec::<String>::new(), "{text}");
    log
}

#[test]
fn sarif_has_a_rule_for_each_criterion_and_a_result_for_each_issue() {
    let log = valid_sarif(
        &criteria("c"),
        &records(all().into_iter().map(|(record, _)| record)),
    );
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let ids: Vec<_> = rules
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["clear", "short", "overall_score"]);
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(result["ruleId"], ids[index]);
    }
    // The first text without fault is not there; the minor issue of the second one is.
    assert_eq!(
        run["results"][0],
        json!({
            "level": "warning",
            "message": { "text": "a word\nfix: change a word" },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": "texts/2.md" }, "region": { "startLine": 3 },
            } }],
            "ruleId": "clear",
            "ruleIndex": 0,
        })
    );
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["exitCode"], 3);
    assert_eq!(invocation["executionSuccessful"], false);
    let unjudged = invocation["toolExecutionNotifications"].as_array().unwrap();
    assert_eq!(unjudged.len(), 3);
    assert_eq!(
        unjudged[0]["associatedRule"],
        json!({ "id": "clear", "index": 0 })
    );
}

#[test]
fn files_below_the_folder_are_named_from_there() {
    let folder = Path::new("/work/site");
    for (file, path, reference) in [
        ("a.md", "a.md", "a.md"),
        ("./docs/./a.md", "docs/a.md", "docs/a.md"),
        ("../a.md", "../a.md", "../a.md"),
        ("/work/site/a b.md", "a b.md", "a%20b.md"),
        ("/else/a.md", "/else/a.md", "file:///else/a.md"),
        ("a,b:ä%.md", "a,b:ä%.md", "a%2Cb%3A%C3%A4%25.md"),
    ] {
        assert_eq!(relative(file, folder), path);
        assert_eq!(uri(file, folder), reference);
    }
}

/// Reads XML as a strict reader does, and returns its texts and values, one after the other.
fn read_xml(text: &str) -> String {
    use quick_xml::XmlVersion::Implicit1_0;
    use quick_xml::escape::resolve_predefined_entity;
    use quick_xml::events::Event;

    let legal = |c: char| match c {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        c => c >= ' ',
    };
    assert!(text.chars().all(legal) && !text.contains("]]>"), "{text:?}");
    let mut reader = quick_xml::Reader::from_str(text);
    let mut all = String::new();
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Eof => return all,
            Event::Start(tag) | Event::Empty(tag) => {
                for attribute in tag.attributes() {
                    let value = attribute.expect("an attribute");
                    all.push_str(&value.normalized_value(Implicit1_0).expect("a value"));
                }
            }
            Event::Text(text) => all.push_str(&text.xml10_content()),
            Event::GeneralRef(name) => {
                if let Some(c) = name.resolve_char_ref().expect("a reference") {
                    assert!(legal(c), "{c:?}");
                    all.push(c);
                } else {
                    let known = resolve_predefined_entity(name.as_ref());
                    all.push_str(known.expect("a known entity"));
                }
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_text_becomes_valid_output(
        text in prop_oneof![
            any::<String>(),
            "(\\]\\]>|<|&|\"|'|%|::error::|\r|\n|\u{0}|\u{1b}|\u{fffe}|,|:|x| ){0,12}",
        ],
    ) {
        let issue = issue(Severity::Major, Some("short"), &text);
        let mut bad = both((OK, 0.9), (OK, 0.3), vec![issue], 0.6);
        bad.error = Some(text.clone());
        let all = [(Some(text.clone()), bad.clone()), (None, bad)];
        let criteria = criteria(&text);
        let xml = read_xml(&junit(&criteria, &all));
        if !text.contains(|c: char| c.is_control() || c >= '\u{fffe}') {
            prop_assert!(xml.contains(&text), "{}", xml);
        }
        valid_sarif(&criteria, &all);
        let commands = github(&criteria, &all, Path::new("/"));
        prop_assert!(!commands.contains('\r'));
        // An issue, the overall score and an error for each text.
        prop_assert_eq!(commands.lines().count(), 6);
        prop_assert!(commands.lines().all(|line| line.starts_with("::error ")));
    }
}
