//! A finished run, as far as something can be learned from it.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::types::{
    ConvergenceReason, Criteria, EditCounts, Evaluation, Event, Severity, Stamped, Status, Strategy,
};

/// A finished run, as far as something can be learned from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Episode {
    /// The run.
    pub run_id: Uuid,
    /// The name of its criteria.
    pub criteria: String,
    /// Who wrote, as `provider:model`; empty if that is not known.
    pub writer: String,
    /// What became of the first draft under each criterion; empty if it was not judged, or was the user's own text.
    pub first: Vec<FirstCheck>,
    /// The weaknesses that were found, each once.
    pub faults: Vec<Fault>,
    /// Why replies were no drafts.
    pub rejected: Vec<String>,
    /// How the edits of all revisions applied.
    pub edits: EditCounts,
}

/// What became of a first draft under a criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstCheck {
    /// The criterion.
    pub criterion: String,
    /// Whether it is a hard check, and no matter of judgement.
    pub hard: bool,
    /// Whether it was met.
    pub passed: bool,
    /// The first issue that it found.
    pub issue: Option<String>,
}

/// A weakness that was found in a draft of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The criterion.
    pub criterion: Option<String>,
    /// What is wrong, in the judge's or the check's words.
    pub description: String,
    /// What would fix it, in their words.
    pub fix: Option<String>,
    /// How it was fixed, if it was: by a revision of this kind, or by a text of its own.
    pub mended: Option<Option<Strategy>>,
}

impl Episode {
    /// What there is to learn from in a run; `None` if it has not ended, was not to write anything, or was one
    /// correction that nobody judged.
    ///
    /// Minor issues are left out, and those whose quote is not in the draft: they may be made up.
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
        let mut episode = Self {
            run_id: *run_id,
            criteria: criteria.name.clone(),
            writer: models
                .writer
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
            first: Vec::new(),
            faults: Vec::new(),
            rejected: Vec::new(),
            edits: EditCounts::default(),
        };
        let own_first = command != "revise";
        let mut strategies: BTreeMap<u32, Option<Strategy>> = BTreeMap::new();
        let mut faults: BTreeMap<u32, Fault> = BTreeMap::new();
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
                        episode.edits.exact += edits.exact;
                        episode.edits.tolerant += edits.tolerant;
                        episode.edits.fuzzy += edits.fuzzy;
                        episode.edits.failed += edits.failed;
                    }
                }
                Event::Evaluation {
                    iteration: 1,
                    evaluation,
                } if own_first => episode.first = first_checks(criteria, evaluation),
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
                        faults.insert(
                            tracked.id,
                            Fault {
                                criterion: issue.criterion.clone(),
                                description: issue.description.clone(),
                                fix: issue.suggested_fix.clone(),
                                mended: None,
                            },
                        );
                    }
                    for tracked in resolved {
                        if let Some(fault) = faults.get_mut(&tracked.id) {
                            fault.mended = Some(strategies.get(iteration).copied().flatten());
                        }
                    }
                }
                Event::Rejected { reason, .. } => episode.rejected.push(reason.clone()),
                _ => {}
            }
        }
        episode.faults = faults.into_values().collect();
        Some(episode)
    }
}

/// A criterion without a verdict says nothing.
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
            suggested_fix: Some("Mend it.".to_owned()),
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

    /// A run of two drafts, in which the severe issue of the first is fixed.
    fn run(command: &str, reason: ConvergenceReason) -> Vec<Stamped> {
        let criteria = crate::criteria::parse(
            "name = 'house'\n[[criteria]]\nname = 'clear'\ndescription = 'Clear.'\n[[criteria]]\nname = 'short'\n\
             evaluator = 'length'\nunit = 'words'\nmax = 3",
            "c.toml",
        )
        .unwrap();
        let grave = issue("Too long.", Severity::Major, None);
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
                    issues: vec![grave.clone()],
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
                    tracked(1, IssueStatus::Open, grave.clone()),
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
                resolved: vec![tracked(1, IssueStatus::Resolved, grave)],
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
        let episode = Episode::of(&run("draft", ConvergenceReason::QualityMet)).unwrap();
        assert_eq!(
            (episode.criteria.as_str(), episode.writer.as_str()),
            ("house", "ollama:small")
        );
        assert_eq!(
            episode.faults,
            [Fault {
                criterion: Some("short".to_owned()),
                description: "Too long.".to_owned(),
                fix: Some("Mend it.".to_owned()),
                mended: Some(Some(Strategy::TargetedEdit)),
            }],
            "no nit, and nothing that is not in the draft"
        );
        assert_eq!(
            episode.first,
            [FirstCheck {
                criterion: "short".to_owned(),
                hard: true,
                passed: false,
                issue: Some("Too long.".to_owned()),
            }],
            "what was not judged says nothing"
        );
        assert_eq!(episode.rejected, ["empty"]);
        assert_eq!((episode.edits.exact, episode.edits.failed), (2, 2));
    }

    #[test]
    fn what_teaches_nothing_is_no_episode() {
        let met = ConvergenceReason::QualityMet;
        assert_eq!(Episode::of(&run("evaluate", met)), None);
        assert_eq!(
            Episode::of(&run("revise", ConvergenceReason::Corrected)),
            None
        );
        let unfinished = run("draft", met);
        assert_eq!(Episode::of(&unfinished[..unfinished.len() - 1]), None);
        assert_eq!(Episode::of(&[]), None);
        // The first text of a revision is the user's.
        let revised = Episode::of(&run("revise", met)).unwrap();
        assert!(revised.first.is_empty() && !revised.faults.is_empty());
    }
}
