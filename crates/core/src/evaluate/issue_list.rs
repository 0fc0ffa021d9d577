//! Parses error lists about a text, as written by other programs and people.

use serde_json::Value;

use super::script_verdict;
use crate::source::{self, Source, SourceError};
use crate::types::{Issue, Severity};

/// Keys of verdicts and reports that hold the list of errors.
const LISTS: &[&str] = &["errors", "issues"];
/// Keys of reports that hold a verdict.
const VERDICTS: &[&str] = &["evaluation", "best_evaluation"];

/// Parses the issues of a text: one issue per line, or JSON. JSON is a list of strings and objects
/// (`message`, `path`, `severity`, `suggestion`, … as evaluators return them, or `reflect`'s own
/// issues), or a whole verdict or report with such a list under `errors` or `issues`. Issues
/// without a severity are major, because someone wants them fixed. The list may be empty.
///
/// # Errors
/// If the text begins like JSON but is invalid or has no such list. The error shows the position.
pub fn read_errors(source: &Source) -> Result<Vec<Issue>, SourceError> {
    if !is_json(source.text()) {
        return Ok(source.text().lines().filter_map(of_line).collect());
    }
    let value: Value = source::json(source)?;
    let Some(errors) = list(&value) else {
        return Err(source.file_error("it has neither `errors` nor `issues`"));
    };
    if errors.iter().any(|error| report(error).is_some()) {
        return Err(source.file_error("expected a report on one text, not on several texts"));
    }
    Ok(errors.iter().filter_map(of_value).collect())
}

/// Returns whether the text begins like a JSON list or object. Linter messages may begin with a
/// bracket, too.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let inner = |bracket| text.strip_prefix(bracket).map(str::trim_start);
    inner('{').is_some_and(|rest| rest.starts_with(['"', '}']))
        || inner('[').is_some_and(|rest| rest.starts_with(['"', '{', '[', ']']))
}

/// Returns the error list of a value.
fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(errors) => Some(errors),
        Value::Object(object) if object.contains_key("message") => {
            Some(std::slice::from_ref(value))
        }
        _ => report(value),
    }
}

/// Returns the error list of a verdict or report.
fn report(value: &Value) -> Option<&[Value]> {
    let errors = |key: &&str| Some(value.get(*key)?.as_array()?.as_slice());
    LISTS
        .iter()
        .find_map(errors)
        .or_else(|| VERDICTS.iter().find_map(|key| report(value.get(*key)?)))
}

fn of_value(value: &Value) -> Option<Issue> {
    if let Ok(issue) = serde_json::from_value(value.clone()) {
        return Some(issue);
    }
    let issue = script_verdict::issue(value)?;
    Some(Issue {
        kind: issue.kind,
        severity: issue.severity.unwrap_or(Severity::Major),
        description: issue.description,
        suggested_fix: issue.suggested_fix,
        criterion: None,
        place: issue.place,
    })
}

fn of_line(line: &str) -> Option<Issue> {
    let line = line.trim();
    let item = ["- ", "* "].iter().find_map(|mark| line.strip_prefix(mark));
    of_value(&Value::from(item.unwrap_or(line)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::*;
    use crate::types::IssueType;

    fn read(text: &str) -> Vec<Issue> {
        read_errors(&Source::new("errors", text)).unwrap()
    }

    fn descriptions(text: &str) -> Vec<String> {
        read(text)
            .into_iter()
            .map(|issue| issue.description)
            .collect()
    }

    #[test]
    fn lines_are_issues() {
        let text = "- The date is wrong.\n\n  [E501] line too long\r\n* {x} is unknown\n";
        assert_eq!(
            descriptions(text),
            [
                "The date is wrong.",
                "[E501] line too long",
                "{x} is unknown"
            ]
        );
        assert_eq!(
            descriptions("[E501] line too long\n{x} is unknown"),
            ["[E501] line too long", "{x} is unknown"]
        );
        assert_eq!(read("Bad.")[0].severity, Severity::Major);
        assert_eq!(descriptions(" \n\t\n"), Vec::<String>::new());
    }

    #[test]
    fn lists_of_texts_and_objects_are_read() {
        let issues = read(
            r#"["Too long.", {"message": "No age.", "path": "/age", "severity": "minor", "suggestion": "Add it."}]"#,
        );
        assert_eq!(issues[0].description, "Too long.");
        assert_eq!(issues[1].place.path.as_deref(), Some("/age"));
        assert_eq!(issues[1].severity, Severity::Minor);
        assert_eq!(issues[1].suggested_fix.as_deref(), Some("Add it."));
        assert_eq!(descriptions("[]"), Vec::<String>::new());
    }

    #[test]
    fn verdicts_and_reports_are_read() {
        let list = r#"[{"message": "Bad."}]"#;
        for text in [
            format!(r#"{{"valid": false, "errors": {list}}}"#),
            format!(r#"{{"issues": {list}}}"#),
            format!(r#"{{"success": false, "evaluation": {{"score": 0, "issues": {list}}}}}"#),
            // In the result of a loop, `issues` is a summary.
            format!(r#"{{"issues": {{"found": 1}}, "best_evaluation": {{"issues": {list}}}}}"#),
            r#"{"message": "Bad."}"#.to_owned(),
        ] {
            assert_eq!(descriptions(&text), ["Bad."], "{text}");
        }
    }

    #[test]
    fn our_own_issues_lose_nothing() {
        let issue = Issue {
            kind: IssueType::Unsupported,
            severity: Severity::Critical,
            description: "Nothing backs it.".to_owned(),
            suggested_fix: Some("Cut it.".to_owned()),
            criterion: Some("facts".to_owned()),
            place: crate::types::Place {
                quote: Some("It is so.".to_owned()),
                ..Default::default()
            },
        };
        let text = serde_json::json!({ "evaluation": { "issues": [issue] } }).to_string();
        assert_eq!(read(&text), [issue]);
    }

    #[test]
    fn what_holds_no_errors_is_refused_with_the_place() {
        let refused = |text| {
            let error = read_errors(&Source::new("e.json", text)).unwrap_err();
            error.render(false)
        };
        assert!(refused("[\"a\",\n\"b\"").contains("e.json:2"));
        assert!(refused("{\"scores\": {}}").contains("neither `errors`"));
        assert!(refused(r#"[{"file": "a", "errors": []}]"#).contains("several texts"));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in r#"[\[{]?["{}\[\]:,a\n -]{0,40}"#) {
            if let Ok(issues) = read_errors(&Source::new("x", &text)) {
                prop_assert!(issues.iter().all(|issue| !issue.description.trim().is_empty()));
            }
        }
    }
}
