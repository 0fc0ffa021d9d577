use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The verdict on one draft.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Evaluation {
    /// Weighted mean of the criteria's scores, 0 to 1; `None` if a criterion could not be judged, for
    /// a mean of the rest would claim what nobody measured.
    pub overall_score: Option<f64>,
    /// Score per criterion, in the order of the criteria file; `None` where there is no verdict.
    pub criteria_scores: IndexMap<String, Option<f64>>,
    /// Whether the draft is good enough. Decided by our own rule, never by a model.
    pub satisfactory: bool,
    /// Weaknesses, the gravest first.
    pub issues: Vec<Issue>,
    /// What to do about them, in the same order.
    pub suggestions: Vec<String>,
    /// How sure the judge says it is, 0 to 1; 1 where only hard checks spoke.
    pub confidence: Option<f64>,
    /// Whether every criterion has a verdict.
    pub status: Status,
    /// Highest minus lowest overall score of several judgements of this draft; `None` with one.
    pub spread: Option<f64>,
    /// The verdicts one by one, in the order of the criteria file.
    #[serde(default)]
    pub criteria: Vec<CriterionResult>,
}

/// The verdict of one criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CriterionResult {
    /// The criterion's name.
    pub name: String,
    /// The evaluator's kind.
    pub evaluator: String,
    /// 0 to 1; `None` without a verdict.
    pub score: Option<f64>,
    /// The criterion's floor.
    pub threshold: f64,
    /// Whether the score reaches the floor; false without a verdict.
    pub passed: bool,
    /// Whether there is a verdict.
    pub status: Status,
    /// What the verdict rests on: the judge's reason, the value measured, or why there is no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// Whether a verdict could be had. Anything but `ok` is neither a pass nor a zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// There is a verdict.
    #[default]
    Ok,
    /// The judge answered, but its answer could not be read.
    Unparsed,
    /// The evaluator itself failed.
    Failed,
}

/// One weakness of a draft (seed 000, `Issue`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// What kind of weakness.
    #[serde(rename = "type")]
    pub kind: IssueType,
    /// How grave it is; major and critical ones keep a draft from being satisfactory.
    pub severity: Severity,
    /// What is wrong, and where.
    pub description: String,
    /// What would mend it.
    pub suggested_fix: Option<String>,
    /// The criterion it belongs to, if the judge named one that exists.
    pub criterion: Option<String>,
}

/// What kind of weakness an issue is (seed 000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueType {
    /// Something the task asks for is not there.
    Missing,
    /// A claim that nothing backs.
    Unsupported,
    /// Something is wrong.
    Incorrect,
}

impl IssueType {
    /// The word for it, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unsupported => "unsupported",
            Self::Incorrect => "incorrect",
        }
    }
}

/// How grave an issue is (seed 000), the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth mentioning; does not keep a draft from being satisfactory.
    Minor,
    /// Must be mended.
    Major,
    /// Makes the draft useless.
    Critical,
}

impl Severity {
    /// The word for it, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minor => "minor",
            Self::Major => "major",
            Self::Critical => "critical",
        }
    }
}
