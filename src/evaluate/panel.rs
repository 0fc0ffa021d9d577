use std::sync::Arc;

use futures_util::future::{OptionFuture, join_all};

use super::add_up::add_up;
use super::apart::Apart;
use super::finding::Finding;
use super::judge::{Case, Judge, JudgeModel};
use super::subject::Subject;
use super::{HardCheck, Tools, command, compare, contains, length, regex, schema, script};
use crate::model::{CallObserver, ModelError};
use crate::prompt::Prompts;
use crate::types::{Criteria, Evaluation, Evaluator, Status};

/// Everything that judges the drafts of a run.
pub struct Panel {
    criteria: Arc<Criteria>,
    /// In the order of the criteria; `None` where the judge speaks.
    checks: Vec<Option<Box<dyn HardCheck>>>,
    judge: Option<Judge>,
}

impl Panel {
    /// Prepares the evaluators of these criteria. Without a model, none of them may need one.
    ///
    /// # Errors
    /// If a criterion's configuration cannot be used (criteria that were read from a file are checked there
    /// already), if a model is needed and there is none, or if code is to run and `tools` do not allow it.
    pub fn new(
        criteria: Arc<Criteria>,
        judge: Option<JudgeModel>,
        tools: &Tools,
    ) -> Result<Self, String> {
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
                    Evaluator::Schema(config) => Some(Box::new(schema::SchemaCheck::new(config)?)),
                    Evaluator::Contains(config) => {
                        Some(Box::new(Apart::new(contains::ContainsCheck::new(config)?)))
                    }
                    Evaluator::Compare(config) => Some(Box::new(Apart::new(
                        compare::CompareCheck::new(config.clone()),
                    ))),
                    Evaluator::Script(config) => Some(Box::new(script::ScriptCheck::new(
                        config,
                        criterion.threshold,
                        &criteria,
                        tools,
                    )?)),
                    Evaluator::Command(config) => Some(Box::new(command::CommandCheck::new(
                        config,
                        criterion.threshold,
                        &tools.exec()?,
                    ))),
                };
                Ok(check)
            })
            .collect::<Result<Vec<_>, String>>()?;
        let judge = match judge {
            Some(judge) => Judge::for_criteria(&criteria, &judge)?,
            None if checks.iter().any(Option::is_none) => {
                return Err("these criteria need a model that judges, and there is none".to_owned());
            }
            None => None,
        };
        Ok(Self {
            criteria,
            checks,
            judge,
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
        let reason = self.why_not_to_ask(&findings);
        let mut issues = Vec::new();
        let mut confidence = Some(1.0);
        match (&self.judge, reason) {
            (Some(_), Some(reason)) if !self.criteria.judge_settings.always() => {
                let skipped = Finding::none(Status::Skipped, reason);
                for slot in findings.iter_mut().filter(|slot| slot.is_none()) {
                    *slot = Some(skipped.clone());
                }
            }
            (Some(judge), _) => {
                let weight = judge.weight(&self.criteria, observer).await?;
                let case = Case {
                    prompts,
                    draft: subject.draft,
                    attempt: subject.attempt,
                    observer,
                };
                let verdict = judge.judge(&case).await?;
                for (slot, finding) in findings
                    .iter_mut()
                    .filter(|slot| slot.is_none())
                    .zip(verdict.findings)
                {
                    *slot = Some(Finding { weight, ..finding });
                }
                issues = verdict.issues;
                confidence = verdict.confidence;
            }
            (None, _) => {}
        }
        let findings = findings.into_iter().flatten().collect();
        Ok(add_up(&self.criteria, findings, issues, confidence))
    }

    /// What the hard checks found that makes the judge's word worth nothing.
    fn why_not_to_ask(&self, findings: &[Option<Finding>]) -> Option<String> {
        let found = || {
            let criteria = self.criteria.criteria.iter();
            criteria
                .zip(findings)
                .filter_map(|(criterion, finding)| Some((criterion, finding.as_ref()?)))
        };
        let failed = found().find(|(_, finding)| finding.status == Status::Failed);
        if let Some((criterion, _)) = failed {
            return Some(format!(
                "not asked, since `{}` could not be checked",
                criterion.name
            ));
        }
        found()
            .find(|(criterion, finding)| criterion.required && !finding.passes(criterion))
            .map(|(criterion, _)| {
                format!(
                    "not asked, since `{}` is required and not met",
                    criterion.name
                )
            })
    }
}
