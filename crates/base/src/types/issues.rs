use serde::{Deserialize, Serialize};

use super::evaluation::Issue;

/// An issue that is followed through the versions of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedIssue {
    /// The same as long as the run lasts, from 1.
    pub id: u32,
    /// How it stands in the version that it is told of.
    pub status: IssueStatus,
    /// The version that first had it.
    pub since: u32,
    /// The issue, in the words of the verdict that named it last.
    #[serde(flatten)]
    pub issue: Issue,
}

/// How an issue stands in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueStatus {
    /// It is there.
    Open,
    /// The version that was revised had it, this one has not.
    Resolved,
    /// It is there, the version that was revised did not have it, and an earlier one did.
    CameBack,
}

/// What became of the issues on the way to the selected version: those of the version itself and of all
/// that it goes back to. Issues of attempts that led nowhere do not count.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct IssueSummary {
    /// How many different issues were found.
    pub found: usize,
    /// How many of them the selected version no longer has.
    pub resolved: usize,
    /// `resolved` / `found`, 0 to 1; `None` where none was found.
    pub share_resolved: Option<f64>,
}
