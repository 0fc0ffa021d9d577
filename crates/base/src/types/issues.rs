use serde::{Deserialize, Serialize};

use super::evaluation::Issue;

/// An issue that is tracked across the versions of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedIssue {
    /// A number from 1 that stays the same for the whole run.
    pub id: u32,
    /// Its status in the version that reports it.
    pub status: IssueStatus,
    /// The first version that had it.
    pub since: u32,
    /// The issue, as described by the latest evaluation that found it.
    #[serde(flatten)]
    pub issue: Issue,
}

/// The status of an issue in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueStatus {
    /// The version has it.
    Open,
    /// The revised version had it, and this one does not.
    Resolved,
    /// The version has it, the revised version did not, and an earlier one did.
    CameBack,
}

/// What happened to the issues on the path to the selected version: the issues of that version and its ancestors.
/// Issues of rejected attempts do not count.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct IssueSummary {
    /// The number of distinct issues found.
    pub found: usize,
    /// How many of them the selected version has fixed.
    pub resolved: usize,
    /// `resolved` / `found`, 0 to 1; `None` if no issue was found.
    pub share_resolved: Option<f64>,
}
