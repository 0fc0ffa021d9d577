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
    /// What would mend it, in their words.
    pub fix: Option<String>,
    /// How it was mended, if it was: by a revision of this kind, or by a text of its own.
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
