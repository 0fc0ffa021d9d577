use std::sync::Arc;

use futures_util::future::{OptionFuture, join_all};

use super::aggregate::aggregate;
use super::blocking::BlockingCheck;
use super::compare::CompareCheck;
use super::finding::Finding;
use super::judge::{Judge, JudgeCase, JudgeModel, Judgement};
use super::preference::PreferenceCheck;
use super::subject::Subject;
use super::{HardCheck, Tools, command, contains, length, regex, schema, script};
use crate::model::{CallObserver, ModelError, first_block};
use crate::prompt::Prompts;
use crate::types::{CompareConfig, Criteria, Criterion, Evaluation, Evaluator, Issue, Status};

/// The evaluators that judge the drafts of a run.
pub struct EvaluatorSet {
    criteria: Arc<Criteria>,
    /// In the order of the criteria.
    checks: Arc<[Check]>,
    judge: Option<Judge>,
    /// Whether checks judge only the first fenced code block of a draft, which is what the user
    /// receives.
    extracts: bool,
}

/// The evaluator of a criterion.
enum Check {
    /// A hard check.
    Hard(Box<dyn HardCheck>),
    /// The judge, which scores several criteria together.
    Judged,
    /// A judge that compares two texts.
    Preference(PreferenceCheck),
}

impl Check {
    fn hard(check: impl HardCheck + 'static) -> Self {
        Self::Hard(Box::new(check))
    }

    fn of(
        criterion: &Criterion,
        criteria: &Criteria,
        judge: Option<&JudgeModel>,
        tools: &Tools,
    ) -> Result<Self, EvaluatorError> {
        Ok(match &criterion.evaluator {
            Evaluator::Llm(_) => Self::Judged,
            Evaluator::Regex(config) => {
                Self::hard(BlockingCheck::new(regex::RegexCheck::new(config)?))
            }
            Evaluator::Length(config) => Self::hard(length::LengthCheck::new(config.clone())),
            Evaluator::Schema(config) => Self::hard(schema::SchemaCheck::new(config)?),
            Evaluator::Contains(config) => {
                Self::hard(BlockingCheck::new(contains::ContainsCheck::new(config)?))
            }
            Evaluator::Compare(CompareConfig::Similarity { to, bounds }) => {
                Self::hard(BlockingCheck::new(CompareCheck::Similarity {
                    to: to.clone(),
                    bounds: *bounds,
                }))
            }
            Evaluator::Compare(CompareConfig::Terms { of, min }) => {
                Self::hard(BlockingCheck::new(CompareCheck::Terms {
                    of: of.clone(),
                    min: *min,
                }))
            }
            Evaluator::Compare(CompareConfig::Pairwise { .. })
                if !criteria.judge_settings.enabled() =>
            {
                Self::Judged
            }
            Evaluator::Compare(CompareConfig::Pairwise { to }) => {
                let judge = judge.ok_or(EvaluatorError::NoJudge)?;
                Self::Preference(PreferenceCheck::new(to.clone(), judge.clone()))
            }
            Evaluator::Script(config) => Self::hard(script::ScriptCheck::new(
                config,
                criterion.threshold,
                criteria,
                tools,
            )?),
            Evaluator::Command(config) => Self::hard(command::CommandCheck::new(
                config,
                criterion.threshold,
                &tools.exec()?,
            )?),
        })
    }
}

/// The evaluators of criteria cannot be prepared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluatorError {
    /// The criteria need a judge, and there is none.
    #[error("these criteria need a judge model, and none is set")]
    NoJudge,
    /// The configuration of an evaluator cannot be used, or it needs a permission that the tools do not have.
    #[error("{0}")]
    Unusable(String),
}

impl From<EvaluatorError> for String {
    fn from(error: EvaluatorError) -> Self {
        error.to_string()
    }
}

impl From<String> for EvaluatorError {
    fn from(problem: String) -> Self {
        Self::Unusable(problem)
    }
}

impl EvaluatorSet {
    /// Prepares the evaluators of these criteria. Without a model, no criterion may need one.
    ///
    /// # Errors
    /// If a criterion's configuration is invalid (criteria read from a file are already checked),
    /// if a model is needed and none is given, or if code must run and `tools` does not permit it.
    pub fn new(
        criteria: Arc<Criteria>,
        judge: Option<JudgeModel>,
        tools: &Tools,
    ) -> Result<Self, EvaluatorError> {
        let checks = criteria
            .criteria
            .iter()
            .map(|criterion| Check::of(criterion, &criteria, judge.as_ref(), tools))
            .collect::<Result<_, EvaluatorError>>()?;
        let judge = match judge.filter(|_| criteria.judge_settings.enabled()) {
            Some(judge) => Judge::for_criteria(&criteria, &judge)?,
            None if criteria.need_judge() => return Err(EvaluatorError::NoJudge),
            None => None,
        };
        Ok(Self {
            criteria,
            checks,
            judge,
            extracts: tools.extracts(),
        })
    }

    /// Returns the same evaluators for another run, in which the judge is probed again.
    #[must_use]
    pub fn for_another_run(&self) -> Self {
        Self {
            criteria: Arc::clone(&self.criteria),
            checks: Arc::clone(&self.checks),
            judge: self.judge.as_ref().map(Judge::without_probe),
            extracts: self.extracts,
        }
    }

    /// Judges a draft: runs the hard checks concurrently, then, unless a required criterion has
    /// failed, asks the judge for scores and comparisons.
    ///
    /// # Errors
    /// If the judge's model fails permanently. An unparseable verdict is not an error but the
    /// status of the evaluation.
    pub async fn evaluate(
        &self,
        prompts: &Prompts,
        subject: &Subject<'_>,
        observer: &dyn CallObserver,
    ) -> Result<Evaluation, ModelError> {
        let block = self.extracts.then(|| first_block(subject.draft)).flatten();
        let checked = Subject {
            draft: block.as_deref().unwrap_or(subject.draft),
            ..*subject
        };
        let checks = self.checks.iter().map(|check| {
            OptionFuture::from(match check {
                Check::Hard(check) => Some(check.check(&checked)),
                Check::Judged | Check::Preference(_) => None,
            })
        });
        let mut findings: Vec<Option<Finding>> = join_all(checks).await;
        let (mut issues, mut confidence) = (Vec::new(), Some(1.0));
        if findings.iter().any(Option::is_none) {
            match self.why_not_to_ask(&findings) {
                Some(reason)
                    if !self.criteria.judge_settings.always()
                        || !self.criteria.judge_settings.enabled() =>
                {
                    let skipped = Finding::none(Status::Skipped, reason);
                    for slot in findings.iter_mut().filter(|slot| slot.is_none()) {
                        *slot = Some(skipped.clone());
                    }
                }
                _ => {
                    (issues, confidence) =
                        self.ask(prompts, subject, observer, &mut findings).await?;
                }
            }
        }
        let findings = findings.into_iter().flatten().collect();
        Ok(aggregate(&self.criteria, findings, issues, confidence))
    }

    /// Returns a message if the judge rejects a text that is known to be good. `None` if it accepts
    /// the text or was not probed (`judge.probe`).
    pub fn over_strict(&self) -> Option<String> {
        self.judge.as_ref()?.over_strict()
    }

    /// Asks the judge for the findings of all its criteria. Returns its issues and its confidence.
    async fn ask(
        &self,
        prompts: &Prompts,
        subject: &Subject<'_>,
        observer: &dyn CallObserver,
        findings: &mut [Option<Finding>],
    ) -> Result<(Vec<Issue>, Option<f64>), ModelError> {
        let (mut issues, mut confidence) = (Vec::new(), None);
        let mut weight = 1.0;
        if let Some(judge) = &self.judge {
            weight = judge.weight(&self.criteria, prompts, observer).await?;
            let case = JudgeCase {
                prompts,
                draft: subject.draft,
                attempt: subject.attempt,
                observer,
            };
            let margin = self.criteria.judge_settings.margin();
            let narrow =
                |verdict: &Judgement| margin > 0.0 && self.is_narrow(findings, verdict, margin);
            let verdict = judge.judge(&case, narrow).await?;
            let slots = findings.iter_mut().zip(&*self.checks);
            for ((slot, _), finding) in slots
                .filter(|(_, check)| matches!(check, Check::Judged))
                .zip(verdict.findings)
            {
                *slot = Some(Finding { weight, ..finding });
            }
            (issues, confidence) = (verdict.issues, verdict.confidence);
        }
        let each = self.criteria.criteria.iter().zip(&*self.checks);
        for (slot, (criterion, check)) in findings.iter_mut().zip(each) {
            if let Check::Preference(check) = check {
                let finding = check.check(criterion, prompts, subject, observer).await?;
                *slot = Some(Finding { weight, ..finding });
            }
        }
        Ok((issues, confidence))
    }

    /// Returns whether a draft with these findings meets the criteria by less than the margin.
    fn is_narrow(&self, found: &[Option<Finding>], judgement: &Judgement, margin: f64) -> bool {
        let mut judged = judgement.findings.iter();
        let all: Option<Vec<Finding>> = found
            .iter()
            .zip(&*self.checks)
            .map(|(found, check)| match check {
                Check::Judged => judged.next().cloned(),
                _ => found.clone(),
            })
            .collect();
        // With comparisons, a comparison in both orders follows anyway.
        let Some(all) = all else { return false };
        let evaluation = aggregate(&self.criteria, all, judgement.issues.clone(), None);
        let goal = self.criteria.threshold + margin - 1e-9;
        evaluation.satisfactory && evaluation.overall_score.is_some_and(|score| score < goal)
    }

    /// Returns the reason for skipping the judge after these hard checks, if there is one.
    fn why_not_to_ask(&self, findings: &[Option<Finding>]) -> Option<String> {
        if !self.criteria.judge_settings.enabled() {
            return Some("not evaluated: there is no judge".to_owned());
        }
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
