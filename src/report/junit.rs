//! Evaluated texts as `JUnit` XML, for the test reports of Jenkins, GitLab and others.
//!
//! There is no standard. This follows the schema of the Jenkins xUnit plugin (`junit-10.xsd`), which describes what Ant
//! and Maven write: <https://github.com/jenkinsci/xunit-plugin>. Texts are test suites and criteria are test cases. One
//! more case, `overall_score`, is about the text as a whole.

use std::borrow::Cow;

use serde::Serialize;

use super::critique::critique_text;
use super::findings::{self, Finding, Level, OVERALL, findings};
use super::html::printable;
use crate::text::one_line;
use crate::types::{Criteria, RunRecord, Status};

#[derive(Serialize)]
#[serde(rename = "testsuites")]
struct Suites {
    #[serde(rename = "@name")]
    name: &'static str,
    #[serde(rename = "@tests")]
    tests: usize,
    #[serde(rename = "@failures")]
    failures: usize,
    #[serde(rename = "@errors")]
    errors: usize,
    #[serde(rename = "@time")]
    time: String,
    testsuite: Vec<Suite>,
}

#[derive(Serialize)]
struct Suite {
    #[serde(rename = "@name")]
    name: String,
    #[serde(rename = "@tests")]
    tests: usize,
    #[serde(rename = "@failures")]
    failures: usize,
    #[serde(rename = "@errors")]
    errors: usize,
    #[serde(rename = "@skipped")]
    skipped: usize,
    #[serde(rename = "@time")]
    time: String,
    properties: Properties,
    testcase: Vec<Case>,
    /// The report as people read it.
    #[serde(rename = "system-out")]
    output: String,
}

#[derive(Serialize)]
struct Properties {
    property: Vec<Property>,
}

#[derive(Serialize)]
struct Property {
    #[serde(rename = "@name")]
    name: &'static str,
    #[serde(rename = "@value")]
    value: String,
}

#[derive(Serialize)]
struct Case {
    #[serde(rename = "@classname")]
    class: String,
    #[serde(rename = "@name")]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Outcome>,
}

/// Why a case did not pass.
#[derive(Serialize)]
struct Outcome {
    /// On one line.
    #[serde(rename = "@message")]
    message: String,
    #[serde(rename = "$text")]
    text: String,
}

/// Renders evaluated texts as one `JUnit` document.
pub fn junit(criteria: &Criteria, records: &[(Option<String>, RunRecord)]) -> String {
    let suites: Vec<Suite> = records
        .iter()
        .map(|(file, record)| suite(criteria, file.as_deref().unwrap_or("stdin"), record))
        .collect();
    let sum = |count: fn(&Suite) -> usize| suites.iter().map(count).sum();
    let seconds = records
        .iter()
        .filter_map(|(_, record)| record.execution_time())
        // Not `sum`, which is -0 for no times.
        .fold(0.0, |all, seconds| all + seconds);
    let all = Suites {
        name: "reflect",
        tests: sum(|suite| suite.tests),
        failures: sum(|suite| suite.failures),
        errors: sum(|suite| suite.errors),
        time: format!("{seconds:.3}"),
        testsuite: suites,
    };
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let mut serializer = quick_xml::se::Serializer::new(&mut out);
    serializer.indent(' ', 2);
    all.serialize(serializer)
        .expect("structs of texts and numbers can be written as XML");
    out.push('\n');
    out
}

fn suite(criteria: &Criteria, name: &str, record: &RunRecord) -> Suite {
    let found = findings(criteria, record);
    let results = findings::evaluation(record).map_or(&[][..], |it| &it.criteria);
    let mut cases: Vec<Case> = results
        .iter()
        .map(|result| {
            let name = Some(result.name.as_str());
            let reason = result.evidence.as_deref();
            let skipped = (result.status == Status::Skipped)
                .then(|| reason.unwrap_or("a required criterion is not met"));
            case(criteria, name, skipped, &found)
        })
        .collect();
    cases.push(case(criteria, None, None, &found));
    let count = |which: fn(&Case) -> bool| cases.iter().filter(|case| which(case)).count();
    let score = findings::evaluation(record).and_then(|it| it.overall_score);
    let score = score.map(|score| ("overall_score", score));
    let properties = score
        .into_iter()
        .chain([("threshold", criteria.threshold)])
        .map(|(name, value)| Property {
            name,
            value: format!("{value:.2}"),
        });
    Suite {
        name: xml(name),
        tests: cases.len(),
        failures: count(|case| case.failure.is_some()),
        errors: count(|case| case.error.is_some()),
        skipped: count(|case| case.skipped.is_some()),
        time: format!("{:.3}", record.execution_time().unwrap_or_default()),
        properties: Properties {
            property: properties.collect(),
        },
        testcase: cases,
        output: xml(&critique_text(name, record)),
    }
}

/// A criterion, or with `None` the text as a whole, as a test case.
fn case(
    criteria: &Criteria,
    name: Option<&str>,
    skipped: Option<&str>,
    found: &[Finding<'_>],
) -> Case {
    let outcome = |level: Level| {
        let own = found
            .iter()
            .filter(|it| it.criterion == name && it.level == level);
        let texts: Vec<String> = own
            .map(|finding| match finding.line {
                Some(line) => format!("line {line}: {}", finding.message),
                None => finding.message.clone(),
            })
            .collect();
        let first = texts.first()?.lines().next().unwrap_or_default();
        Some(Outcome {
            message: xml(&one_line(first)),
            text: xml(&texts.join("\n")),
        })
    };
    let error = outcome(Level::NoVerdict);
    Case {
        class: xml(&criteria.name),
        name: xml(name.unwrap_or(OVERALL)),
        skipped: skipped.map(|why| Outcome {
            message: xml(&one_line(why)),
            text: String::new(),
        }),
        failure: outcome(Level::Error).filter(|_| error.is_none()),
        error,
    }
}

/// The text without characters that XML 1.0 cannot hold, even escaped (§2.2, `Char`), and without other control
/// characters.
fn xml(text: &str) -> String {
    let text: Cow<'_, str> = printable(text);
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
