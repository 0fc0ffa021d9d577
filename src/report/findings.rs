//! What keeps a text from meeting the criteria, as the formats for CI list it.

use std::fmt::Write as _;

use super::text::doubt;
use crate::types::{Criteria, Evaluation, Issue, RunRecord, Severity, Status};

/// The name of the finding, rule or test case about the text as a whole.
pub(super) const OVERALL: &str = "overall_score";

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// There is no verdict.
    NoVerdict,
    /// The text does not meet the criteria.
    Error,
    /// A minor issue.
    Warning,
}

/// One finding about a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding<'a> {
    /// The criterion; `None` for the text as a whole.
    pub(super) criterion: Option<&'a str>,
    pub(super) level: Level,
    /// What is wrong on the first line, then how to fix it.
    pub(super) message: String,
    /// The line of the text, counted from 1.
    pub(super) line: Option<u64>,
}

impl<'a> Finding<'a> {
    fn new(criterion: Option<&'a str>, level: Level, message: impl Into<String>) -> Self {
        Self {
            criterion,
            level,
            message: message.into(),
            line: None,
        }
    }

    fn of_issue(issue: &'a Issue) -> Self {
        let mut message = issue.description.clone();
        if let Some(doubt) = doubt(issue) {
            // Writing to a text does not fail.
            let _ = write!(message, " ({doubt})");
        }
        if let Some(claim) = &issue.place.claim {
            let _ = write!(message, "\nclaim: {claim}");
        }
        if let Some(fix) = &issue.suggested_fix {
            let _ = write!(message, "\nfix: {fix}");
        }
        let level = match issue.severity {
            Severity::Critical | Severity::Major => Level::Error,
            Severity::Minor => Level::Warning,
        };
        Self {
            line: issue.place.line,
            ..Self::new(issue.criterion.as_deref(), level, message)
        }
    }

    /// The criterion, or [`OVERALL`].
    pub(super) fn name(&self) -> &'a str {
        self.criterion.unwrap_or(OVERALL)
    }
}

/// The evaluation of a text, if there is one.
pub(super) fn evaluation(record: &RunRecord) -> Option<&Evaluation> {
    record.versions.first()?.evaluation.as_ref()
}

/// Returns the findings of an evaluated text: its issues, then what no issue explains. A text meets the criteria if and
/// only if it has no finding above [`Level::Warning`].
pub(super) fn findings<'a>(criteria: &Criteria, record: &'a RunRecord) -> Vec<Finding<'a>> {
    let mut found = Vec::new();
    if let Some(evaluation) = evaluation(record) {
        found.extend(evaluation.issues.iter().map(Finding::of_issue));
        for result in &evaluation.criteria {
            let name = Some(result.name.as_str());
            let evidence = result.evidence.as_deref().unwrap_or("no reason given");
            let explained = |found: &[Finding<'_>]| {
                let mut own = found.iter().filter(|it| it.criterion == name);
                own.any(|it| it.level == Level::Error)
            };
            match result.status {
                Status::Ok if !result.passed && !explained(&found) => {
                    let score = result.score.unwrap_or_default();
                    let floor = result.threshold;
                    let message = format!("score {score:.2}, floor {floor:.2}: {evidence}");
                    found.push(Finding::new(name, Level::Error, message));
                }
                Status::Unparsed | Status::Failed => {
                    let message = format!("no verdict: {evidence}");
                    found.push(Finding::new(name, Level::NoVerdict, message));
                }
                Status::Ok | Status::Skipped => {}
            }
        }
        found.extend(overall(criteria, evaluation, &found));
    }
    let judged = found.iter().all(|it| it.level != Level::NoVerdict);
    match &record.error {
        Some(error) if judged => found.push(Finding::new(None, Level::NoVerdict, error)),
        None if evaluation(record).is_none() => {
            found.push(Finding::new(None, Level::NoVerdict, "not evaluated"));
        }
        _ => {}
    }
    found
}

/// What is wrong with the text as a whole, if something is.
fn overall(
    criteria: &Criteria,
    evaluation: &Evaluation,
    found: &[Finding<'_>],
) -> Option<Finding<'static>> {
    let error = |message: String| Some(Finding::new(None, Level::Error, message));
    let threshold = criteria.threshold;
    match evaluation.overall_score {
        _ if evaluation.satisfactory => None,
        Some(score) if evaluation.rank().is_some() && score < threshold => error(format!(
            "overall score {score:.2}, threshold {threshold:.2}"
        )),
        _ if found.iter().all(|it| it.level == Level::Warning) => {
            error("the text does not meet the criteria".to_owned())
        }
        _ => None,
    }
}
