use serde_json::{Value, json};

use crate::types::{Issue, Task, Version};

/// A draft to judge, with its context.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The draft.
    pub draft: &'a str,
    /// The version that it revises, if any.
    pub prior: Option<&'a str>,
    /// How often it was judged before without a parseable verdict. Varies the seed, so that a
    /// deterministic judge does not repeat its reply.
    pub attempt: u32,
    /// The state of the loop, for scripts only. The judge does not see it.
    pub progress: Progress<'a>,
}

#[cfg(test)]
impl<'a> Subject<'a> {
    /// A first draft without a task.
    pub(super) fn of(draft: &'a str) -> Self {
        static NO_TASK: std::sync::LazyLock<Task> = std::sync::LazyLock::new(|| Task::new(""));
        Self {
            draft,
            prior: None,
            attempt: 0,
            progress: Progress {
                iteration: 1,
                task: &NO_TASK,
                earlier: &[],
            },
        }
    }
}

/// The state of the loop when a draft is judged.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The number of the judged version. The first draft is 1.
    pub iteration: u32,
    /// The task that the draft was written for.
    pub task: &'a Task,
    /// The latest earlier versions, in order, within the limits of [`Earlier`].
    pub earlier: &'a [Earlier],
}

/// An earlier version as a script receives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    /// Its number. The first draft is 1.
    pub iteration: u32,
    /// Its text.
    pub output: String,
    /// Its overall score, or `None` without a verdict.
    pub score: Option<f64>,
    /// Whether it met the criteria.
    pub satisfactory: bool,
    /// Its issues, most severe first.
    pub issues: Vec<Issue>,
}

impl Earlier {
    /// The maximum number of versions.
    pub const MAX_VERSIONS: usize = 50;
    /// The maximum total size of their texts, in bytes.
    pub const MAX_BYTES: usize = 256 << 10;
    /// The maximum number of issues per version.
    pub const MAX_ISSUES: usize = 50;

    /// Returns the latest of these versions that fit the limits, in order.
    pub fn latest<'v>(versions: impl DoubleEndedIterator<Item = &'v Version>) -> Vec<Self> {
        let mut bytes = 0;
        let mut latest: Vec<Self> = versions
            .rev()
            .take(Self::MAX_VERSIONS)
            .take_while(|version| {
                bytes += version.output.len();
                bytes <= Self::MAX_BYTES
            })
            .map(Self::of)
            .collect();
        latest.reverse();
        latest
    }

    fn of(version: &Version) -> Self {
        let evaluation = version.evaluation.as_ref();
        Self {
            iteration: version.iteration,
            output: version.output.clone(),
            score: version.score(),
            satisfactory: evaluation.is_some_and(|evaluation| evaluation.satisfactory),
            issues: evaluation
                .iter()
                .flat_map(|evaluation| evaluation.issues.iter())
                .take(Self::MAX_ISSUES)
                .cloned()
                .collect(),
        }
    }

    /// Returns its issues in the form in which scripts return errors, so that a script can compare
    /// them.
    pub(super) fn errors(&self) -> Value {
        let errors: Vec<Value> = self
            .issues
            .iter()
            .map(|issue| {
                let mut error = json!({
                    "message": issue.description,
                    "type": issue.kind,
                    "severity": issue.severity,
                });
                let more = [
                    ("criterion", issue.criterion.as_ref().map(|it| json!(it))),
                    (
                        "suggestion",
                        issue.suggested_fix.as_ref().map(|it| json!(it)),
                    ),
                    ("path", issue.place.path.as_ref().map(|it| json!(it))),
                    ("line", issue.place.line.map(|it| json!(it))),
                ];
                for (key, value) in more {
                    if let Some(value) = value {
                        error[key] = value;
                    }
                }
                error
            })
            .collect();
        Value::Array(errors)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::types::{Evaluation, IssueType, Place, Severity, TokenUsage};

    fn version(iteration: u32, output: String, issues: usize) -> Version {
        let issue = Issue {
            kind: IssueType::Missing,
            severity: Severity::Major,
            description: "no title".to_owned(),
            suggested_fix: None,
            criterion: Some("title".to_owned()),
            place: Place::default(),
        };
        Version {
            iteration,
            output,
            based_on: None,
            strategy: None,
            edits: None,
            improvements_applied: Vec::new(),
            evaluation: Some(Evaluation {
                overall_score: Some(0.5),
                issues: vec![issue; issues],
                ..Evaluation::default()
            }),
            timestamp: Timestamp::UNIX_EPOCH,
            token_usage: TokenUsage::default(),
            duration_ms: 0,
        }
    }

    #[test]
    fn history_is_bounded_and_keeps_the_latest_in_order() {
        let many: Vec<Version> = (1..=60).map(|n| version(n, "x".to_owned(), 60)).collect();
        let earlier = Earlier::latest(many.iter());
        let numbers: Vec<u32> = earlier.iter().map(|it| it.iteration).collect();
        assert_eq!(numbers, (11..=60).collect::<Vec<_>>());
        assert_eq!(earlier[0].issues.len(), Earlier::MAX_ISSUES);

        let large: Vec<Version> = (1..=5)
            .map(|n| version(n, "x".repeat(100 << 10), 0))
            .collect();
        let numbers: Vec<u32> = Earlier::latest(large.iter())
            .iter()
            .map(|it| it.iteration)
            .collect();
        assert_eq!(numbers, [4, 5]);
    }

    #[test]
    fn errors_have_the_form_that_scripts_give_them_in() {
        let earlier = Earlier::latest([version(1, "x".to_owned(), 1)].iter());
        assert_eq!(
            earlier[0].errors(),
            json!([{ "message": "no title", "type": "missing", "severity": "major", "criterion": "title" }])
        );
    }
}
