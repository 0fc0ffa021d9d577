use std::sync::Arc;

use futures_util::future::{OptionFuture, join_all};

use super::add_up::add_up;
use super::apart::Apart;
use super::compare::CompareCheck;
use super::finding::Finding;
use super::judge::{Case, Judge, JudgeModel, Judgement};
use super::preference::PreferenceCheck;
use super::subject::Subject;
use super::{HardCheck, Tools, command, contains, length, regex, schema, script};
use crate::model::{CallObserver, ModelError, first_block};
use crate::prompt::Prompts;
use crate::types::{CompareConfig, Criteria, Criterion, Evaluation, Evaluator, Issue, Status};

/// Everything that judges the drafts of a run.
pub struct Panel {
    criteria: Arc<Criteria>,
    /// In the order of the criteria.
    checks: Arc<[Check]>,
    judge: Option<Judge>,
    /// Whether checks judge the first fenced code block of a draft: what the user will get.
    extracts: bool,
}

/// Who speaks on a criterion.
enum Check {
    /// A hard check.
    Hard(Box<dyn HardCheck>),
    /// The judge, together with other criteria.
    Judged,
    /// A judge who compares.
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
    ) -> Result<Self, String> {
        Ok(match &criterion.evaluator {
            Evaluator::Llm(_) => Self::Judged,
            Evaluator::Regex(config) => Self::hard(Apart::new(regex::RegexCheck::new(config)?)),
            Evaluator::Length(config) => Self::hard(length::LengthCheck::new(config.clone())),
            Evaluator::Schema(config) => Self::hard(schema::SchemaCheck::new(config)?),
            Evaluator::Contains(config) => {
                Self::hard(Apart::new(contains::ContainsCheck::new(config)?))
            }
            Evaluator::Compare(CompareConfig::Similarity { to, bounds }) => {
                Self::hard(Apart::new(CompareCheck::Similarity {
                    to: to.clone(),
                    bounds: *bounds,
                }))
            }
            Evaluator::Compare(CompareConfig::Terms { of, min }) => {
                Self::hard(Apart::new(CompareCheck::Terms {
                    of: of.clone(),
                    min: *min,
                }))
            }
            Evaluator::Compare(CompareConfig::Pairwise { to }) => {
                let judge = judge.ok_or(NO_MODEL)?;
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

/// Why there is no panel for criteria that need a model.
const NO_MODEL: &str = "these criteria need a model that judges, and there is none";

/// What the judge says besides of its findings.
struct Opinion {
    issues: Vec<Issue>,
    confidence: Option<f64>,
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
            .map(|criterion| Check::of(criterion, &criteria, judge.as_ref(), tools))
            .collect::<Result<_, String>>()?;
        let judge = match judge {
            Some(judge) => Judge::for_criteria(&criteria, &judge)?,
            None if criteria.need_judge() => return Err(NO_MODEL.to_owned()),
            None => None,
        };
        Ok(Self {
            criteria,
            checks,
            judge,
            extracts: tools.extracts(),
        })
    }

    /// The same evaluators for another run. Whether the judge is any good is found out anew in each.
    #[must_use]
    pub fn for_another_run(&self) -> Self {
        Self {
            criteria: Arc::clone(&self.criteria),
            checks: Arc::clone(&self.checks),
            judge: self.judge.as_ref().map(Judge::untried),
            extracts: self.extracts,
        }
    }

    /// Judges a draft: the hard checks first, all at once; then the judge, who gives scores and then compares,
    /// unless a required criterion is not met.
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
        let mut opinion = Opinion {
            issues: Vec::new(),
            confidence: Some(1.0),
        };
        if findings.iter().any(Option::is_none) {
            match self.why_not_to_ask(&findings) {
                Some(reason) if !self.criteria.judge_settings.always() => {
                    let skipped = Finding::none(Status::Skipped, reason);
                    for slot in findings.iter_mut().filter(|slot| slot.is_none()) {
                        *slot = Some(skipped.clone());
                    }
                }
                _ => {
                    opinion = self.ask(prompts, subject, observer, &mut findings).await?;
                }
            }
        }
        let findings = findings.into_iter().flatten().collect();
        Ok(add_up(
            &self.criteria,
            findings,
            opinion.issues,
            opinion.confidence,
        ))
    }

    /// That a text which is known to be good is not good enough for the judge, in words; `None` if it is, or the judge
    /// was not tried (`judge.probe`).
    pub fn harshness(&self) -> Option<String> {
        self.judge.as_ref()?.harshness()
    }

    /// Asks the judge for all findings that are his.
    async fn ask(
        &self,
        prompts: &Prompts,
        subject: &Subject<'_>,
        observer: &CallObserver<'_>,
        findings: &mut [Option<Finding>],
    ) -> Result<Opinion, ModelError> {
        let mut opinion = Opinion {
            issues: Vec::new(),
            confidence: None,
        };
        let mut weight = 1.0;
        if let Some(judge) = &self.judge {
            weight = judge.weight(&self.criteria, prompts, observer).await?;
            let case = Case {
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
            opinion = Opinion {
                issues: verdict.issues,
                confidence: verdict.confidence,
            };
        }
        let each = self.criteria.criteria.iter().zip(&*self.checks);
        for (slot, (criterion, check)) in findings.iter_mut().zip(each) {
            if let Check::Preference(check) = check {
                let finding = check.check(criterion, prompts, subject, observer).await?;
                *slot = Some(Finding { weight, ..finding });
            }
        }
        Ok(opinion)
    }

    /// Whether a draft with these findings and this judgement meets the criteria, by less than the margin.
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
        // Where drafts are compared as well, a comparison in both orders follows.
        let Some(all) = all else { return false };
        let evaluation = add_up(&self.criteria, all, judgement.issues.clone(), None);
        let goal = self.criteria.threshold + margin - 1e-9;
        evaluation.satisfactory && evaluation.overall_score.is_some_and(|score| score < goal)
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
