use serde_json::Value;

use crate::types::{Criterion, Issue, IssueType, Place, Severity, Status};

/// The result of one evaluator for one criterion.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    /// From 0 to 1, or `None` without a verdict.
    pub(super) score: Option<f64>,
    /// The evaluator's own decision on whether the criterion is met. Without it, the score is
    /// compared with the criterion's floor.
    pub(super) valid: Option<bool>,
    pub(super) status: Status,
    /// What the verdict is based on, or why there is none.
    pub(super) evidence: String,
    /// The issues of the draft.
    pub(super) issues: Vec<CheckIssue>,
    /// The value that the evaluator parsed from the draft, if any.
    pub(super) value: Option<Value>,
    /// The scores of several verdicts, of which `score` is the median. `None` for an unparseable
    /// verdict.
    pub(super) samples: Vec<Option<f64>>,
    /// Whether the verdict came from the cache.
    pub(super) cached: bool,
    /// The factor for the criterion's weight. Default: 1.
    pub(super) weight: f64,
}

impl Finding {
    /// Returns a verdict with a score from 0 to 1.
    pub(super) fn graded(score: f64, evidence: impl Into<String>) -> Self {
        Self {
            score: Some(score),
            valid: None,
            status: Status::Ok,
            evidence: evidence.into(),
            issues: Vec::new(),
            value: None,
            samples: Vec::new(),
            cached: false,
            weight: 1.0,
        }
    }

    /// Adds issues.
    pub(super) fn with_issues(self, issues: impl IntoIterator<Item = CheckIssue>) -> Self {
        Self {
            issues: issues.into_iter().collect(),
            ..self
        }
    }

    /// Returns a finding without a verdict, for this reason.
    pub(super) fn none(status: Status, reason: impl Into<String>) -> Self {
        Self {
            score: None,
            valid: None,
            status,
            evidence: reason.into(),
            issues: Vec::new(),
            value: None,
            samples: Vec::new(),
            cached: false,
            weight: 1.0,
        }
    }

    /// Returns whether the criterion is met.
    pub(super) fn passes(&self, criterion: &Criterion) -> bool {
        self.status == Status::Ok
            && self
                .score
                .is_some_and(|score| self.valid.unwrap_or(score >= criterion.threshold))
    }
}

/// An issue that a hard check found: the place, the value found, and the fix.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CheckIssue {
    pub(super) kind: IssueType,
    /// The severity, if the evaluator states it.
    pub(super) severity: Option<Severity>,
    pub(super) description: String,
    pub(super) suggested_fix: Option<String>,
    pub(super) place: Place,
}

impl CheckIssue {
    pub(super) fn new(kind: IssueType, description: impl Into<String>) -> Self {
        Self {
            kind,
            severity: None,
            description: description.into(),
            suggested_fix: None,
            place: Place::default(),
        }
    }

    pub(super) fn fix(self, suggested_fix: impl Into<String>) -> Self {
        Self {
            suggested_fix: Some(suggested_fix.into()),
            ..self
        }
    }

    pub(super) fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// Converts it to an issue of the criterion. Without a stated severity, the issue is major if the
    /// criterion failed, else minor.
    pub(super) fn into_issue(self, criterion: &str, passed: bool) -> Issue {
        Issue {
            kind: self.kind,
            severity: self.severity.unwrap_or(if passed {
                Severity::Minor
            } else {
                Severity::Major
            }),
            description: self.description,
            suggested_fix: self.suggested_fix,
            criterion: Some(criterion.to_owned()),
            place: self.place,
        }
    }
}
