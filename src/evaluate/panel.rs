use std::sync::Arc;

use futures_util::future::{OptionFuture, join_all};

use super::add_up::add_up;
use super::apart::Apart;
use super::finding::Finding;
use super::judge::Judge;
use super::subject::Subject;
use super::{HardCheck, compare, contains, length, regex};
use crate::model::{CallObserver, ChatModel, ModelError, Sampling, Think};
use crate::prompt::Prompts;
use crate::types::{Criteria, Evaluation, Evaluator, Status};

/// The model that judges, and how it is asked.
#[derive(Clone)]
pub struct JudgeModel {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// How it chooses tokens.
    pub sampling: Sampling,
    /// How much it reasons.
    pub think: Think,
    /// Whether it is asked even where a required criterion is not met.
    pub always: bool,
}

/// Everything that judges the drafts of a run.
pub struct Panel {
    criteria: Arc<Criteria>,
    /// In the order of the criteria; `None` where the judge speaks.
    checks: Vec<Option<Box<dyn HardCheck>>>,
    judge: Option<Judge>,
    judge_always: bool,
}

impl Panel {
    /// Prepares the evaluators of these criteria. Without a model, none of them may need one.
    ///
    /// # Errors
    /// If a criterion's configuration cannot be used (criteria that were read from a file are checked there
    /// already), or if a model is needed and there is none.
    pub fn new(criteria: Arc<Criteria>, judge: Option<JudgeModel>) -> Result<Self, String> {
        let checks = criteria
            .criteria
            .iter()
            .map(|criterion| {
                let check: Option<Box<dyn HardCheck>> = match &criterion.evaluator {
                    Evaluator::Llm(_) => None,
                    Evaluator::Regex(config) => {
                        Some(Box::new(Apart::new(regex::RegexCheck::new(config)?)))
                    }
                    Evaluator::Length(config) => {
                        Some(Box::new(length::LengthCheck::new(config.clone())))
                    }
                    Evaluator::Contains(config) => {
                        Some(Box::new(Apart::new(contains::ContainsCheck::new(config)?)))
                    }
                    Evaluator::Compare(config) => Some(Box::new(Apart::new(
                        compare::CompareCheck::new(config.clone()),
                    ))),
                };
                Ok(check)
            })
            .collect::<Result<Vec<_>, String>>()?;
        let judge_always = judge.as_ref().is_some_and(|judge| judge.always);
        let judge = match judge {
            Some(judge) => Judge::for_criteria(&criteria, judge),
            None if checks.iter().any(Option::is_none) => {
                return Err("these criteria need a model that judges, and there is none".to_owned());
            }
            None => None,
        };
        Ok(Self {
            criteria,
            checks,
            judge,
            judge_always,
        })
    }

    /// Judges a draft: the hard checks first, all at once; then the judge, unless a required criterion is
    /// not met.
    ///
    /// # Errors
    /// If the judge's model fails for good. A verdict that cannot be read is no error: it is the status
    /// of the evaluation.
    pub async fn evaluate(
        &self,
        prompts: &Prompts,
        subject: &Subject<'_>,
        observer: &CallObserver<'_>,
    ) -> Result<Evaluation, ModelError> {
        let checks = self
            .checks
            .iter()
            .map(|check| OptionFuture::from(check.as_ref().map(|check| check.check(subject))));
        let mut findings: Vec<Option<Finding>> = join_all(checks).await;
        let missed = self
            .criteria
            .criteria
            .iter()
            .zip(&findings)
            .find(|(criterion, finding)| {
                criterion.required
                    && finding
                        .as_ref()
                        .is_some_and(|finding| !finding.passes(criterion))
            })
            .map(|(criterion, _)| &criterion.name);
        let mut issues = Vec::new();
        let mut confidence = Some(1.0);
        match (&self.judge, missed) {
            (Some(_), Some(missed)) if !self.judge_always => {
                let reason = format!("not asked, since `{missed}` is required and not met");
                let skipped = Finding::none(Status::Skipped, reason);
                for slot in findings.iter_mut().filter(|slot| slot.is_none()) {
                    *slot = Some(skipped.clone());
                }
            }
            (Some(judge), _) => {
                let verdict = judge
                    .judge(prompts, subject.draft, subject.attempt, observer)
                    .await?;
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
            (None, _) => {}
        }
        let findings = findings.into_iter().flatten().collect();
        Ok(add_up(&self.criteria, findings, issues, confidence))
    }
}
