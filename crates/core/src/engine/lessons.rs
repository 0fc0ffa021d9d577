//! What the writer learns from earlier attempts.

use crate::types::{IssueStatus, Status, TrackedIssue, Version};

/// A version as its reviser sees it: its issues are the open ones in the ledger's words, and returning ones are
/// marked. A version that was not judged has these and no evaluation.
pub(super) fn to_revise(version: &Version, open: &[TrackedIssue]) -> Version {
    let mut version = version.clone();
    let evaluation = version.evaluation.get_or_insert_default();
    evaluation.issues = open
        .iter()
        .map(|tracked| {
            let mut issue = tracked.issue.clone();
            if tracked.status == IssueStatus::CameBack {
                issue
                    .description
                    .push_str(" (It was fixed once and is back.)");
            }
            issue
        })
        .collect();
    version
}

/// The lesson from a revision that made a version worse.
pub(super) fn of_regression(base: &Version, failed: &Version) -> String {
    let met = |version: &Version, name: &str| {
        version.evaluation.as_ref().and_then(|evaluation| {
            evaluation
                .criteria
                .iter()
                .find(|result| result.name == name && result.status == Status::Ok)
                .map(|result| result.passed)
        })
    };
    let lost: Vec<String> = failed
        .evaluation
        .iter()
        .flat_map(|evaluation| &evaluation.criteria)
        .filter(|result| {
            met(failed, &result.name) == Some(false) && met(base, &result.name) == Some(true)
        })
        .map(|result| format!("`{}`", result.name))
        .collect();
    let what = if lost.is_empty() {
        String::new()
    } else {
        format!(": it lost {}", lost.join(" and "))
    };
    format!(
        "An earlier revision of this draft was worse and was thrown away{what}. Go about it in another way, and \
         keep what is good."
    )
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::types::{
        CriterionResult, Evaluation, Issue, IssueType, Place, Severity, TokenUsage,
    };

    fn version(met: &[(&str, bool)]) -> Version {
        Version {
            iteration: 1,
            output: "text".to_owned(),
            based_on: None,
            strategy: None,
            edits: None,
            improvements_applied: Vec::new(),
            evaluation: Some(Evaluation {
                criteria: met
                    .iter()
                    .map(|(name, passed)| CriterionResult {
                        name: (*name).to_owned(),
                        evaluator: "llm".to_owned(),
                        score: Some(0.5),
                        threshold: 0.7,
                        passed: *passed,
                        required: false,
                        status: Status::Ok,
                        evidence: None,
                        value: None,
                        spread: None,
                        cached: false,
                    })
                    .collect(),
                ..Evaluation::default()
            }),
            timestamp: Timestamp::UNIX_EPOCH,
            token_usage: TokenUsage::default(),
            duration_ms: 0,
        }
    }

    #[test]
    fn what_was_lost_is_named() {
        let base = version(&[("tone", true), ("length", false)]);
        let failed = version(&[("tone", false), ("length", false)]);
        assert!(of_regression(&base, &failed).contains("thrown away: it lost `tone`. Go"));
        assert!(of_regression(&base, &base).contains("thrown away. Go"));
    }

    #[test]
    fn the_reviser_gets_the_open_issues_and_learns_what_came_back() {
        let tracked = |id, status| TrackedIssue {
            id,
            status,
            since: 1,
            issue: Issue {
                kind: IssueType::Incorrect,
                severity: Severity::Major,
                description: format!("Issue {id}."),
                suggested_fix: None,
                criterion: None,
                place: Place::default(),
            },
        };
        let open = [
            tracked(1, IssueStatus::Open),
            tracked(2, IssueStatus::CameBack),
        ];
        let seen = to_revise(&version(&[]), &open).evaluation.unwrap().issues;
        assert_eq!(seen[0].description, "Issue 1.");
        assert_eq!(
            seen[1].description,
            "Issue 2. (It was fixed once and is back.)"
        );
    }
}
