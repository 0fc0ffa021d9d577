//! Judging a draft: one file per evaluator, and how their verdicts add up.

mod add_up;
mod judge;
mod length;
mod regex;
mod verdict;

use std::sync::Arc;

use self::judge::Judge;
pub use self::judge::verdict_tokens;
use crate::model::{CallObserver, ChatModel, ModelError, Sampling, Think};
use crate::prompt::Prompts;
use crate::types::{Criteria, Evaluation, Evaluator, Issue, IssueType, Severity, Status};

/// An evaluator that needs no model: its verdict on a draft is a matter of fact.
trait HardCheck: Send + Sync {
    /// Measures the draft.
    fn check(&self, draft: &str) -> Finding;
}

/// What one evaluator says about one criterion.
#[derive(Debug, Clone, PartialEq)]
struct Finding {
    /// 0 to 1; `None` if there is no verdict.
    score: Option<f64>,
    status: Status,
    /// What the verdict rests on.
    evidence: String,
    /// What is wrong with the draft, its place, and what would be right.
    fault: Option<Fault>,
}

/// What a hard check found wrong.
#[derive(Debug, Clone, PartialEq)]
struct Fault {
    kind: IssueType,
    description: String,
    suggested_fix: String,
}

/// Everything that judges the drafts of a run.
pub struct Panel {
    criteria: Arc<Criteria>,
    /// In the order of the criteria; `None` where the judge speaks.
    checks: Vec<Option<Box<dyn HardCheck>>>,
    judge: Option<Judge>,
}

impl Panel {
    /// Prepares the evaluators of these criteria.
    ///
    /// # Errors
    /// If a criterion's configuration cannot be used; criteria that were read from a file are checked
    /// there already.
    pub fn new(
        criteria: Arc<Criteria>,
        model: Arc<dyn ChatModel>,
        sampling: Sampling,
        think: Think,
    ) -> Result<Self, String> {
        let checks = criteria
            .criteria
            .iter()
            .map(|criterion| {
                let check: Option<Box<dyn HardCheck>> = match &criterion.evaluator {
                    Evaluator::Llm(_) => None,
                    Evaluator::Regex(config) => Some(Box::new(regex::RegexCheck::new(config)?)),
                    Evaluator::Length(config) => {
                        Some(Box::new(length::LengthCheck::new(config.clone())))
                    }
                };
                Ok(check)
            })
            .collect::<Result<_, String>>()?;
        let judge = Judge::for_criteria(&criteria, model, sampling, think);
        Ok(Self {
            criteria,
            checks,
            judge,
        })
    }

    /// Judges a draft. `attempt` counts from 0 how often this draft was judged before without a
    /// readable verdict, so that a repeatable judge does not repeat itself.
    ///
    /// # Errors
    /// If the judge's model fails for good. A verdict that cannot be read is no error: it is the status
    /// of the evaluation.
    pub async fn evaluate(
        &self,
        prompts: &Prompts,
        draft: &str,
        attempt: u32,
        observer: &CallObserver<'_>,
    ) -> Result<Evaluation, ModelError> {
        let mut findings: Vec<Option<Finding>> = self
            .checks
            .iter()
            .map(|check| check.as_ref().map(|check| check.check(draft)))
            .collect();
        let mut issues = Vec::new();
        let mut confidence = Some(1.0);
        if let Some(judge) = &self.judge {
            let verdict = judge.judge(prompts, draft, attempt, observer).await?;
            for (slot, finding) in findings
                .iter_mut()
                .filter(|slot| slot.is_none())
                .zip(verdict.findings)
            {
                *slot = Some(finding);
            }
            issues = verdict.issues;
            confidence = verdict.confidence;
        }
        let findings = findings.into_iter().flatten().collect();
        Ok(add_up::add_up(&self.criteria, findings, issues, confidence))
    }
}

/// An issue from a hard check: below the criterion's floor it must be mended, above it may be.
fn issue(fault: &Fault, criterion: &str, passed: bool) -> Issue {
    Issue {
        kind: fault.kind,
        severity: if passed {
            Severity::Minor
        } else {
            Severity::Major
        },
        description: fault.description.clone(),
        suggested_fix: Some(fault.suggested_fix.clone()),
        criterion: Some(criterion.to_owned()),
    }
}
