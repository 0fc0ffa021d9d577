//! Evaluated texts as SARIF 2.1.0, for code scanning:
//! <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::findings::{Finding, Level, OVERALL, findings};
use super::json::pretty;
use super::place::uri;
use crate::text::one_line;
use crate::types::{Criteria, ExitCode, RunRecord};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Renders evaluated texts as one SARIF run: criteria are rules, findings are results, and missing verdicts are
/// notifications of the tool. Paths below `folder` are relative to it.
pub fn sarif(
    criteria: &Criteria,
    records: &[(Option<String>, RunRecord)],
    folder: &Path,
    exit_code: ExitCode,
) -> String {
    let mut results = Vec::new();
    let mut notifications = Vec::new();
    for (file, record) in records {
        let file = file.as_deref().map(|file| uri(file, folder));
        for finding in findings(criteria, record) {
            let mut entry = entry(file.as_deref(), &finding);
            if finding.level == Level::NoVerdict {
                entry["associatedRule"] = rule_of(criteria, &finding);
                notifications.push(entry);
            } else {
                entry["ruleId"] = finding.name().into();
                entry["ruleIndex"] = index_of(criteria, &finding).into();
                results.push(entry);
            }
        }
    }
    pretty(&json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver(criteria) },
            "invocations": [{
                "executionSuccessful": notifications.is_empty(),
                "exitCode": exit_code,
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    }))
}

fn driver(criteria: &Criteria) -> Value {
    let rules = criteria.criteria.iter().map(|criterion| {
        let description = match one_line(&criterion.description) {
            text if text.is_empty() => format!("The text meets `{}`.", criterion.name),
            text => text,
        };
        rule(&criterion.name, &description)
    });
    let overall = rule(
        OVERALL,
        "The overall score reaches the threshold, and the text as a whole has no severe issue.",
    );
    let mut driver = Map::new();
    driver.insert("name".to_owned(), "reflect".into());
    driver.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    // It must be an absolute URI. There is none before `repository` is set in Cargo.toml.
    if let Some(home) = option_env!("CARGO_PKG_REPOSITORY").filter(|home| !home.is_empty()) {
        driver.insert("informationUri".to_owned(), home.into());
    }
    driver.insert("rules".to_owned(), rules.chain([overall]).collect());
    driver.into()
}

fn rule(id: &str, description: &str) -> Value {
    json!({
        "id": id,
        "shortDescription": { "text": id },
        "fullDescription": { "text": description },
    })
}

/// What a result and a notification have in common.
fn entry(file: Option<&str>, finding: &Finding<'_>) -> Value {
    let level = match finding.level {
        Level::NoVerdict | Level::Error => "error",
        Level::Warning => "warning",
    };
    let mut entry = json!({ "level": level, "message": { "text": finding.message } });
    if let Some(file) = file {
        let mut place = json!({ "artifactLocation": { "uri": file } });
        if let Some(line) = finding.line {
            place["region"] = json!({ "startLine": line });
        }
        entry["locations"] = json!([{ "physicalLocation": place }]);
    }
    entry
}

fn rule_of(criteria: &Criteria, finding: &Finding<'_>) -> Value {
    json!({ "id": finding.name(), "index": index_of(criteria, finding) })
}

/// The place of the finding's rule. The one about the text as a whole comes last.
fn index_of(criteria: &Criteria, finding: &Finding<'_>) -> usize {
    let all = &criteria.criteria;
    let place = |name| all.iter().position(|criterion| criterion.name == name);
    finding.criterion.and_then(place).unwrap_or(all.len())
}
