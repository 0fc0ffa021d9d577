//! A summary of a finished run to learn from.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::types::{
    ConvergenceReason, Criteria, EditCounts, Evaluation, Event, Severity, Stamped, Status, Strategy,
};

/// A summary of a finished run to learn from.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary {
    /// The run's id.
    pub run_id: Uuid,
    /// The name of its criteria.
    pub criteria: String,
    /// The writer's model as `provider:model`; empty if unknown.
    pub writer: String,
    /// The result of the first draft under each criterion. Empty if the draft was not judged, or
    /// was the user's own text.
    pub first: Vec<FirstCheck>,
    /// The distinct issues found in its drafts.
    pub issues: Vec<RunIssue>,
    /// The reasons why replies were rejected.
    pub rejected: Vec<String>,
    /// How the edits of all revisions applied.
    pub edits: EditCounts,
}

/// The result of a first draft under a criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstCheck {
    /// The name of the criterion.
    pub criterion: String,
    /// Whether a hard check decides it rather than the judge.
    pub hard: bool,
    /// Whether it was met.
    pub passed: bool,
    /// The first issue found.
    pub issue: Option<String>,
}

/// An issue found in a draft of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunIssue {
    /// The name of the criterion.
    pub criterion: Option<String>,
    /// The description by the judge or the check.
    pub description: String,
    /// The suggested fix by the judge or the check.
    pub fix: Option<String>,
    /// How it was fixed: `Some(Some(_))` by a revision with this strategy, `Some(None)` by a fresh
    /// draft, and `None` if it was not fixed.
    pub fixed_by: Option<Option<Strategy>>,
}

impl RunSummary {
    /// Summarizes a run from its events. Returns `None` if the run has not ended, wrote nothing, or
    /// was a single correction without evaluation.
    ///
    /// Skips minor issues, and issues whose quote is not in the draft, because they may be
    /// invented.
    pub fn of(events: &[Stamped]) -> Option<Self> {
        let Event::RunStart {
            run_id,
            command,
            criteria,
            models,
            ..
        } = &events.first()?.event
        else {
            return None;
        };
        let Event::RunEnd {
            convergence_reason: Some(reason),
            ..
        } = &events.last()?.event
        else {
            return None;
        };
        if *reason == ConvergenceReason::Corrected || command == "evaluate" {
            return None;
        }
        let mut run_summary = Self {
            run_id: *run_id,
            criteria: criteria.name.clone(),
            writer: models
                .writer
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
            first: Vec::new(),
            issues: Vec::new(),
            rejected: Vec::new(),
            edits: EditCounts::default(),
        };
        let own_first = command != "revise";
        let mut strategies: BTreeMap<u32, Option<Strategy>> = BTreeMap::new();
        let mut issues: BTreeMap<u32, RunIssue> = BTreeMap::new();
        for stamped in events {
            match &stamped.event {
                Event::Draft {
                    iteration,
                    strategy,
                    edits,
                    ..
                } => {
                    strategies.insert(*iteration, *strategy);
                    if let Some(edits) = edits {
                        run_summary.edits.exact += edits.exact;
                        run_summary.edits.tolerant += edits.tolerant;
                        run_summary.edits.fuzzy += edits.fuzzy;
                        run_summary.edits.failed += edits.failed;
                    }
                }
                Event::Evaluation {
                    iteration: 1,
                    evaluation,
                } if own_first => run_summary.first = first_checks(criteria, evaluation),
                Event::Issues {
                    iteration,
                    open,
                    resolved,
                } => {
                    for tracked in open {
                        let issue = &tracked.issue;
                        if issue.severity == Severity::Minor || issue.place.verified == Some(false)
                        {
                            continue;
                        }
                        issues.insert(
                            tracked.id,
                            RunIssue {
                                criterion: issue.criterion.clone(),
                                description: issue.description.clone(),
                                fix: issue.suggested_fix.clone(),
                                fixed_by: None,
                            },
                        );
                    }
                    for tracked in resolved {
                        if let Some(run_issue) = issues.get_mut(&tracked.id) {
                            run_issue.fixed_by = Some(strategies.get(iteration).copied().flatten());
                        }
                    }
                }
                Event::Rejected { reason, .. } => run_summary.rejected.push(reason.clone()),
                _ => {}
            }
        }
        run_summary.issues = issues.into_values().collect();
        Some(run_summary)
    }
}

/// Skips criteria without a verdict.
fn first_checks(criteria: &Criteria, evaluation: &Evaluation) -> Vec<FirstCheck> {
    evaluation
        .criteria
        .iter()
        .filter(|result| result.status == Status::Ok)
        .map(|result| {
            let name = Some(result.name.as_str());
            let of_it = |issue: &&crate::types::Issue| issue.criterion.as_deref() == name;
            FirstCheck {
                hard: criteria
                    .criteria
                    .iter()
                    .any(|it| it.name == result.name && it.evaluator.is_hard()),
                criterion: result.name.clone(),
                passed: result.passed,
                issue: evaluation
                    .issues
                    .iter()
                    .find(of_it)
                    .map(|issue| issue.description.clone()),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::types::{
        CriterionResult, ExitCode, Issue, IssueStatus, IssueType, LoopSettings, ModelId, Models,
        Place, SCHEMA_VERSION, Task, TrackedIssue,
    };

    fn issue(description: &str, severity: Severity, verified: Option<bool>) -> Issue {
        Issue {
            kind: IssueType::Incorrect,
            severity,
            description: description.to_owned(),
            suggested_fix: Some("Fix it.".to_owned()),
            criterion: Some("short".to_owned()),
            place: Place {
                verified,
                ..Place::default()
            },
        }
    }

    fn tracked(id: u32, status: IssueStatus, issue: Issue) -> TrackedIssue {
        TrackedIssue {
            id,
            status,
            since: 1,
            issue,
        }
    }

    fn result(name: &str, passed: bool, status: Status) -> CriterionResult {
        CriterionResult {
            name: name.to_owned(),
            evaluator: "llm".to_owned(),
            score: None,
            threshold: 0.7,
            passed,
            required: false,
            status,
            evidence: None,
            value: None,
            spread: None,
            cached: false,
        }
    }

    /// The events of a run with two drafts, in which the severe issue of the first is fixed.
    fn run(command: &str, reason: ConvergenceReason) -> Vec<Stamped> {
        let criteria = crate::criteria::parse(
            "name = 'house'\n[[criteria]]\nname = 'clear'\ndescription = 'Clear.'\n[[criteria]]\nname = 'short'\n\
             evaluator = 'length'\nunit = 'words'\nmax = 3",
            "c.toml",
        )
        .unwrap();
        let severe = issue("Too long.", Severity::Major, None);
        let draft = |iteration, strategy, failed| Event::Draft {
            iteration,
            output: "text".to_owned(),
            based_on: None,
            strategy,
            edits: Some(EditCounts {
                exact: 1,
                failed,
                ..EditCounts::default()
            }),
        };
        let events = [
            Event::RunStart {
                schema_version: SCHEMA_VERSION,
                run_id: Uuid::nil(),
                command: command.to_owned(),
                file: None,
                task: Box::new(Task::new("p")),
                criteria: Box::new(criteria),
                settings: LoopSettings::default(),
                models: Models {
                    writer: Some(ModelId {
                        provider: "ollama".to_owned(),
                        model: "small".to_owned(),
                    }),
                    judge: None,
                },
                setup: None,
            },
            Event::Rejected {
                iteration: 1,
                reason: "empty".to_owned(),
                text: String::new(),
                stopped_early: false,
            },
            draft(1, None, 0),
            Event::Evaluation {
                iteration: 1,
                evaluation: Evaluation {
                    issues: vec![severe.clone()],
                    criteria: vec![
                        result("clear", false, Status::Skipped),
                        result("short", false, Status::Ok),
                    ],
                    ..Evaluation::default()
                },
            },
            Event::Issues {
                iteration: 1,
                open: vec![
                    tracked(1, IssueStatus::Open, severe.clone()),
                    tracked(2, IssueStatus::Open, issue("A nit.", Severity::Minor, None)),
                    tracked(
                        3,
                        IssueStatus::Open,
                        issue("Made up.", Severity::Major, Some(false)),
                    ),
                ],
                resolved: Vec::new(),
            },
            draft(2, Some(Strategy::TargetedEdit), 2),
            Event::Issues {
                iteration: 2,
                open: Vec::new(),
                resolved: vec![tracked(1, IssueStatus::Resolved, severe)],
            },
            Event::RunEnd {
                schema_version: SCHEMA_VERSION,
                run_id: Some(Uuid::nil()),
                convergence_reason: Some(reason),
                success: true,
                selected: Some(2),
                exit_code: ExitCode::Success,
                error: None,
            },
        ];
        let time = Timestamp::UNIX_EPOCH;
        let stamp = |event| Stamped { time, event };
        events.into_iter().map(stamp).collect()
    }

    #[test]
    fn a_run_is_what_can_be_learned_from_it() {
        let run_summary = RunSummary::of(&run("draft", ConvergenceReason::QualityMet)).unwrap();
        assert_eq!(
            (run_summary.criteria.as_str(), run_summary.writer.as_str()),
            ("house", "ollama:small")
        );
        assert_eq!(
            run_summary.issues,
            [RunIssue {
                criterion: Some("short".to_owned()),
                description: "Too long.".to_owned(),
                fix: Some("Fix it.".to_owned()),
                fixed_by: Some(Some(Strategy::TargetedEdit)),
            }],
            "no nit, and nothing that is not in the draft"
        );
        assert_eq!(
            run_summary.first,
            [FirstCheck {
                criterion: "short".to_owned(),
                hard: true,
                passed: false,
                issue: Some("Too long.".to_owned()),
            }],
            "what was not judged says nothing"
        );
        assert_eq!(run_summary.rejected, ["empty"]);
        assert_eq!((run_summary.edits.exact, run_summary.edits.failed), (2, 2));
    }

    #[test]
    fn what_teaches_nothing_is_no_episode() {
        let met = ConvergenceReason::QualityMet;
        assert_eq!(RunSummary::of(&run("evaluate", met)), None);
        assert_eq!(
            RunSummary::of(&run("revise", ConvergenceReason::Corrected)),
            None
        );
        let unfinished = run("draft", met);
        assert_eq!(RunSummary::of(&unfinished[..unfinished.len() - 1]), None);
        assert_eq!(RunSummary::of(&[]), None);
        // The first text of a revision is the user's.
        let revised = RunSummary::of(&run("revise", met)).unwrap();
        assert!(revised.first.is_empty() && !revised.issues.is_empty());
    }
}
