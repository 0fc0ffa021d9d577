use serde_json::Value;

use crate::types::{Criterion, Issue, IssueType, Place, Severity, Status};

/// What one evaluator says about one criterion.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    /// 0 to 1; `None` if there is no verdict.
    pub(super) score: Option<f64>,
    /// The evaluator's own word on whether the criterion is met; without one the score decides, by
    /// the criterion's floor.
    pub(super) valid: Option<bool>,
    pub(super) status: Status,
    /// What the verdict rests on, or why there is none.
    pub(super) evidence: String,
    /// What is wrong with the draft, one by one.
    pub(super) faults: Vec<Fault>,
    /// What the evaluator made of the draft, where that is a value.
    pub(super) value: Option<Value>,
    /// The scores of several verdicts, of which `score` is the median; `None` for one that could not be read.
    pub(super) samples: Vec<Option<f64>>,
    /// Whether the verdict was remembered.
    pub(super) cached: bool,
    /// What the criterion's weight is multiplied with. Default: 1.
    pub(super) weight: f64,
}

impl Finding {
    /// A verdict that is a score from 0 to 1.
    pub(super) fn graded(score: f64, evidence: impl Into<String>) -> Self {
        Self {
            score: Some(score),
            valid: None,
            status: Status::Ok,
            evidence: evidence.into(),
            faults: Vec::new(),
            value: None,
            samples: Vec::new(),
            cached: false,
            weight: 1.0,
        }
    }

    /// The same, with these faults.
    pub(super) fn with_faults(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        Self {
            faults: faults.into_iter().collect(),
            ..self
        }
    }

    /// No verdict, for this reason.
    pub(super) fn none(status: Status, reason: impl Into<String>) -> Self {
        Self {
            score: None,
            valid: None,
            status,
            evidence: reason.into(),
            faults: Vec::new(),
            value: None,
            samples: Vec::new(),
            cached: false,
            weight: 1.0,
        }
    }

    /// Whether it says that the criterion is met.
    pub(super) fn passes(&self, criterion: &Criterion) -> bool {
        self.status == Status::Ok
            && self
                .score
                .is_some_and(|score| self.valid.unwrap_or(score >= criterion.threshold))
    }
}

/// What a hard check found wrong: the place, the value seen, and what would be right.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub(super) kind: IssueType,
    /// How severe it is, if the evaluator says so itself.
    pub(super) severity: Option<Severity>,
    pub(super) description: String,
    pub(super) suggested_fix: Option<String>,
    pub(super) place: Place,
}

impl Fault {
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

    /// The issue that it is. Where nobody says how severe: if the criterion is not met it must be fixed,
    /// else it may be.
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
