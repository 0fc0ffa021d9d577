use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The verdict on one draft.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Evaluation {
    /// Weighted mean of the scores that there are, 0 to 1; `None` if there are none. What it leaves out
    /// is said by `status` and by the criteria one by one.
    pub overall_score: Option<f64>,
    /// Score per criterion, in the order of the criteria file; `None` where there is no verdict.
    pub criteria_scores: IndexMap<String, Option<f64>>,
    /// Whether the draft is good enough. Decided by our own rule, never by a model.
    pub satisfactory: bool,
    /// Weaknesses, most severe first.
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
    /// Why the text is not a proper draft, if it is not: it was cut off, or repeats itself. It ranks below every
    /// text without a flaw, and never meets the criteria.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
}

/// How good a judged draft is, the best last: whether it is free of flaws, whether it is good enough, whether it has all that is required,
/// then its score. A floor or a severe issue is not outweighed by a mean, and a mean without the judge's
/// part, who is not asked where something required is missing, is not compared with one that has it.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rank {
    /// Whether the text has no flaw as a whole.
    pub clean: bool,
    /// Whether it is good enough.
    pub satisfactory: bool,
    /// Whether every required criterion is met.
    pub required_met: bool,
    /// The overall score, 0 to 1.
    pub score: f64,
}

impl Rank {
    /// What no score outweighs.
    pub fn class(&self) -> (bool, bool, bool) {
        (self.clean, self.satisfactory, self.required_met)
    }
}

impl Evaluation {
    /// How good the draft is; `None` without a verdict on all of it.
    pub fn rank(&self) -> Option<Rank> {
        let score = self.overall_score.filter(|_| self.status == Status::Ok)?;
        Some(Rank {
            clean: self.flaw.is_none(),
            satisfactory: self.satisfactory,
            required_met: self.required_met(),
            score,
        })
    }

    /// Takes in what is wrong with the text as a whole.
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

    /// Why there is no verdict on all of it; `None` if there is one.
    pub fn problem(&self) -> Option<&str> {
        self.criteria
            .iter()
            .find(|result| matches!(result.status, Status::Unparsed | Status::Failed))
            .map(|result| result.evidence.as_deref().unwrap_or("no verdict"))
    }

    /// The evaluator that failed itself, if one did, and why: a sentence. No other draft would fare better.
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
    /// Whether the criterion is met: by the evaluator's own word, else because the score reaches the
    /// floor; false without a verdict.
    pub passed: bool,
    /// Whether nothing else counts where it is not met.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Whether there is a verdict.
    pub status: Status,
    /// What the verdict rests on: the judge's reason, the value measured, or why there is no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// What the evaluator made of the draft, where that is a value: what a `schema` check has read and
    /// coerced, what a script returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Highest minus lowest score of several judgements of this draft; `None` with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// Whether the verdict was not asked for again, but remembered from an earlier judgement of this draft.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
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
    /// Not asked, since a required criterion is not met.
    Skipped,
}

/// One weakness of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// What kind of weakness.
    #[serde(rename = "type")]
    pub kind: IssueType,
    /// How severe it is; major and critical ones keep a draft from being satisfactory.
    pub severity: Severity,
    /// What is wrong, and where.
    pub description: String,
    /// What would fix it.
    pub suggested_fix: Option<String>,
    /// The criterion it belongs to, if the judge named one that exists.
    pub criterion: Option<String>,
    /// Where it is, as far as that is known.
    #[serde(flatten)]
    pub place: Place,
}

impl Issue {
    /// The description of a suggestion that comes without an error.
    pub const ONLY_SUGGESTED: &str = "It could be better.";

    /// Whether it says nothing but what it suggests.
    pub fn is_suggestion(&self) -> bool {
        let fix = self.suggested_fix.as_ref();
        fix.is_some_and(|fix| [fix, Self::ONLY_SUGGESTED].contains(&self.description.as_str()))
    }
}

/// Where in a draft an issue is, and by which rule it is one. In JSON its keys stand in the issue
/// itself; those that are not known are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Place {
    /// Line of the draft, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// JSON Pointer (RFC 6901) into the draft's JSON value; empty for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// JSON Pointer into the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_path: Option<String>,
    /// The schema's keyword that is violated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// The passage of the draft that shows it, word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// The claim of the draft that nothing backs; of unsupported issues only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// Whether the draft bears it out: false where the quote is not in the draft, and where a judge ought to
    /// have quoted and did not; `None` where there is nothing to quote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
}

/// What kind of weakness an issue is.
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

/// How severe an issue is, the most severe last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth mentioning; does not keep a draft from being satisfactory.
    Minor,
    /// Must be fixed.
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
