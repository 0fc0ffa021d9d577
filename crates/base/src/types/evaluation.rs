use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The evaluation of one draft.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Evaluation {
    /// The weighted mean of the known scores, 0 to 1; `None` if no score is known. `status` and the results per
    /// criterion say which scores are missing.
    pub overall_score: Option<f64>,
    /// The score per criterion, in the order of the criteria file; `None` if the criterion has no verdict.
    pub criteria_scores: IndexMap<String, Option<f64>>,
    /// Whether the draft meets the criteria. Computed by `reflect`, never by a model.
    pub satisfactory: bool,
    /// The issues found, most severe first.
    pub issues: Vec<Issue>,
    /// The suggested fixes, in the same order as the issues.
    pub suggestions: Vec<String>,
    /// The judge's confidence, 0 to 1; 1 if only checks ran.
    pub confidence: Option<f64>,
    /// Whether every criterion has a verdict.
    pub status: Status,
    /// The highest minus the lowest overall score of several evaluations of this draft; `None` for a single one.
    pub spread: Option<f64>,
    /// The result per criterion, in the order of the criteria file.
    #[serde(default)]
    pub criteria: Vec<CriterionResult>,
    /// Why the whole text is flawed, if it is: truncated, or looping. Such a draft ranks below every draft without a
    /// flaw and never meets the criteria.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
}

/// The rank of an evaluated draft, best last. Drafts are ordered by flaws, then by whether they are satisfactory,
/// then by whether they meet the required criteria, then by score. So a high mean never outweighs a missed minimum or
/// a severe issue. A mean without the judge's part (the judge is skipped if a required criterion is not met) is never
/// compared with a full one.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rank {
    /// Whether the whole text is free of flaws.
    pub clean: bool,
    /// Whether the draft is satisfactory.
    pub satisfactory: bool,
    /// Whether every required criterion is met.
    pub required_met: bool,
    /// The overall score, 0 to 1.
    pub score: f64,
}

impl Rank {
    /// The part of the rank that no score outweighs.
    pub fn class(&self) -> (bool, bool, bool) {
        (self.clean, self.satisfactory, self.required_met)
    }
}

impl Evaluation {
    /// The draft's rank; `None` if a criterion has no verdict. The score counts as 0 if all criteria were skipped.
    pub fn rank(&self) -> Option<Rank> {
        let skipped = |result: &CriterionResult| result.status == Status::Skipped;
        let unevaluated = !self.criteria.is_empty() && self.criteria.iter().all(skipped);
        let score = self.overall_score.or(unevaluated.then_some(0.0));
        let score = score.filter(|_| self.status == Status::Ok)?;
        Some(Rank {
            clean: self.flaw.is_none(),
            satisfactory: self.satisfactory,
            required_met: self.required_met(),
            score,
        })
    }

    /// Records a flaw of the whole text.
    pub fn mark_flawed(&mut self, flaw: &str, fix: &str) {
        self.flaw = Some(flaw.to_owned());
        self.satisfactory = false;
        let issue = Issue {
            kind: IssueType::Incorrect,
            severity: Severity::Critical,
            description: flaw.to_owned(),
            suggested_fix: Some(fix.to_owned()),
            criterion: None,
            place: Place::default(),
        };
        self.issues.insert(0, issue);
        self.suggestions.insert(0, fix.to_owned());
    }

    /// Why the evaluation is incomplete; `None` if it is complete.
    pub fn problem(&self) -> Option<&str> {
        self.criteria
            .iter()
            .find(|result| matches!(result.status, Status::Unparsed | Status::Failed))
            .map(|result| result.evidence.as_deref().unwrap_or("no verdict"))
    }

    /// The message for an evaluator that failed itself, if one did. Evaluating another draft would fail the same way.
    pub fn failure(&self) -> Option<String> {
        let failed = |result: &&CriterionResult| result.status == Status::Failed;
        self.criteria.iter().find(failed).map(|result| {
            let why = result.evidence.as_deref().unwrap_or("no verdict");
            format!(
                "the criterion `{}` could not be checked: {why}",
                result.name
            )
        })
    }

    /// Whether every required criterion is met.
    pub fn required_met(&self) -> bool {
        self.criteria
            .iter()
            .all(|result| result.passed || !result.required)
    }
}

/// The result for one criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CriterionResult {
    /// The criterion's name.
    pub name: String,
    /// The kind of evaluator.
    pub evaluator: String,
    /// The score, 0 to 1; `None` without a verdict.
    pub score: Option<f64>,
    /// The criterion's minimum score.
    pub threshold: f64,
    /// Whether the criterion is met: the evaluator's own verdict if it gives one, otherwise score ≥ threshold. False
    /// without a verdict.
    pub passed: bool,
    /// Whether the criterion is required.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Whether there is a verdict.
    pub status: Status,
    /// The justification: the judge's rationale, the measured value, or why there is no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// A value derived from the draft: what a `schema` check parsed and coerced, or what a script returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The highest minus the lowest score of several evaluations of this draft; `None` for a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// Whether the verdict was reused from an earlier evaluation of the same draft.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
}

/// The status of a verdict. Any status other than `ok` counts as neither pass nor fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// There is a verdict.
    #[default]
    Ok,
    /// The judge's reply could not be parsed.
    Unparsed,
    /// The evaluator itself failed.
    Failed,
    /// The evaluator was skipped, because a required criterion is not met.
    Skipped,
}

/// One issue of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// The type of issue.
    #[serde(rename = "type")]
    pub kind: IssueType,
    /// The severity. A draft with a major or critical issue is not satisfactory.
    pub severity: Severity,
    /// What is wrong, and where.
    pub description: String,
    /// How to fix it.
    pub suggested_fix: Option<String>,
    /// The criterion it belongs to; `None` if the judge named none or an unknown one.
    pub criterion: Option<String>,
    /// Where it is, as far as known.
    #[serde(flatten)]
    pub place: Place,
}

impl Issue {
    /// The description of a suggestion that comes without an issue.
    pub const ONLY_SUGGESTED: &str = "It could be better.";

    /// Whether the issue contains only a suggestion.
    pub fn is_suggestion(&self) -> bool {
        let fix = self.suggested_fix.as_ref();
        fix.is_some_and(|fix| [fix, Self::ONLY_SUGGESTED].contains(&self.description.as_str()))
    }
}

/// Where an issue is in the draft, and which rule it violates. In JSON its keys are part of the issue; unknown ones
/// are omitted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Place {
    /// The line of the draft, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The JSON Pointer (RFC 6901) into the draft's JSON value; empty for the whole value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The JSON Pointer into the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_path: Option<String>,
    /// The violated keyword of the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// The passage of the draft that shows the issue, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// The claim that no evidence supports; only for unsupported issues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// Whether the quote is in the draft. Also false if the judge should have quoted a passage and did not; `None` if
    /// no quote is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
}

/// The type of an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueType {
    /// Something that the task requires is missing.
    Missing,
    /// No evidence supports a claim.
    Unsupported,
    /// Something is wrong.
    Incorrect,
}

impl IssueType {
    /// The name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unsupported => "unsupported",
            Self::Incorrect => "incorrect",
        }
    }
}

/// The severity of an issue, most severe last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth mentioning; the draft can still be satisfactory.
    Minor,
    /// Must be fixed.
    Major,
    /// Makes the draft unusable.
    Critical,
}

impl Severity {
    /// The name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minor => "minor",
            Self::Major => "major",
            Self::Critical => "critical",
        }
    }
}
