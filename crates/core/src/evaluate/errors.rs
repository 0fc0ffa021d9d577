//! Reading what is wrong with a text, as other programs and people write it down.

use serde_json::Value;

use super::answer;
use crate::source::{self, Source, SourceError};
use crate::types::{Issue, Severity};

/// Keys of verdicts and reports under which the errors stand, as a list.
const LISTS: &[&str] = &["errors", "issues"];
/// Keys of reports under which a verdict stands.
const VERDICTS: &[&str] = &["evaluation", "best_evaluation"];

/// What is wrong with a text: one issue a line, or JSON: a list of texts and objects (`message`, `path`, `severity`,
/// `suggestion`, … as evaluators return them, or our own issues), or a whole verdict or report with such a list under
/// `errors` or `issues`. Those that do not say how severe they are, are major: somebody wants them fixed. May be empty.
///
/// # Errors
/// With the place, if it begins like JSON and is none, or has no such list.
pub fn read_errors(source: &Source) -> Result<Vec<Issue>, SourceError> {
    if !is_json(source.text()) {
        return Ok(source.text().lines().filter_map(of_line).collect());
    }
    let value: Value = source::json(source)?;
    let Some(errors) = list(&value) else {
        return Err(source.error_of_whole("there are no `errors` or `issues` in it"));
    };
    if errors.iter().any(|error| report(error).is_some()) {
        return Err(source.error_of_whole("expected a report on one text, not on several texts"));
    }
    Ok(errors.iter().filter_map(of_value).collect())
}

/// Whether it begins like a list or an object of JSON. Messages of linters begin with brackets, too.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let inner = |bracket| text.strip_prefix(bracket).map(str::trim_start);
    inner('{').is_some_and(|rest| rest.starts_with(['"', '}']))
        || inner('[').is_some_and(|rest| rest.starts_with(['"', '{', '[', ']']))
}

/// The errors in a value.
fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(errors) => Some(errors),
        Value::Object(object) if object.contains_key("message") => {
            Some(std::slice::from_ref(value))
        }
        _ => report(value),
    }
}

/// The errors in a verdict or a report.
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
    let fault = answer::fault(value)?;
    Some(Issue {
        kind: fault.kind,
        severity: fault.severity.unwrap_or(Severity::Major),
        description: fault.description,
        suggested_fix: fault.suggested_fix,
        criterion: None,
        place: fault.place,
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

    fn said(text: &str) -> Vec<String> {
        read(text)
            .into_iter()
            .map(|issue| issue.description)
            .collect()
    }

    #[test]
    fn lines_are_issues() {
        let text = "- The date is wrong.\n\n  [E501] line too long\r\n* {x} is unknown\n";
        assert_eq!(
            said(text),
            [
                "The date is wrong.",
                "[E501] line too long",
                "{x} is unknown"
            ]
        );
        assert_eq!(
            said("[E501] line too long\n{x} is unknown"),
            ["[E501] line too long", "{x} is unknown"]
        );
        assert_eq!(read("Bad.")[0].severity, Severity::Major);
        assert_eq!(said(" \n\t\n"), Vec::<String>::new());
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
        assert_eq!(said("[]"), Vec::<String>::new());
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
            assert_eq!(said(&text), ["Bad."], "{text}");
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
        assert!(refused("{\"scores\": {}}").contains("there are no `errors`"));
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
