//! Scores an answer by all checks of its task, including those hidden from the arms.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::arm::{ArmFailure, judge};
use super::meter::Meter;
use crate::engine::Loop;
use crate::types::{Criteria, Evaluation, Status, Task};

/// The score of an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Score {
    /// Whether it meets the criteria, or `None` without a verdict.
    pub(super) met: Option<bool>,
    /// The overall score.
    pub(super) overall: Option<f64>,
    /// Whether each check is met.
    pub(super) checks: BTreeMap<String, bool>,
}

/// Judges an answer by all criteria of the plan. A missing answer meets none.
///
/// # Errors
/// If a model failed.
pub(super) async fn score(
    plan: &Loop,
    task: &Task,
    answer: Option<&str>,
) -> Result<Score, ArmFailure> {
    let Some(text) = answer.filter(|text| !text.trim().is_empty()) else {
        let names = plan.criteria().criteria.iter().map(|it| it.name.clone());
        return Ok(Score {
            met: Some(false),
            overall: None,
            checks: names.map(|name| (name, false)).collect(),
        });
    };
    let critique = plan.critique();
    let critique =
        critique.map_err(|problem| ArmFailure(crate::types::ExitCode::Usage, problem.into()))?;
    // The cost of scoring is not counted for any arm.
    let evaluation = judge(&critique, task, text, &mut Meter::new()).await?;
    Ok(Score::of(&evaluation))
}

impl Score {
    fn of(evaluation: &Evaluation) -> Self {
        let has_verdict = evaluation.problem().is_none();
        let checks = evaluation.criteria.iter();
        Self {
            met: has_verdict.then_some(evaluation.satisfactory),
            overall: evaluation.overall_score,
            checks: checks
                .filter(|result| matches!(result.status, Status::Ok | Status::Skipped))
                .map(|result| (result.name.clone(), result.passed))
                .collect(),
        }
    }
}

/// Selects `number` checks of a task to hide from the arms, but never all. The selection depends
/// only on the names.
pub(super) fn hidden(task: &str, criteria: &Criteria, number: usize) -> BTreeSet<String> {
    let order = |name: &str| Sha256::digest(format!("{task}\0{name}"));
    let mut names: Vec<&str> = criteria
        .criteria
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    names.sort_by_cached_key(|name| order(name));
    let number = number.min(names.len().saturating_sub(1));
    names.into_iter().take(number).map(str::to_owned).collect()
}

/// Returns the criteria that are not hidden.
pub(super) fn visible(criteria: &Criteria, hidden: &BTreeSet<String>) -> Criteria {
    let mut visible = criteria.clone();
    visible.criteria.retain(|it| !hidden.contains(&it.name));
    visible
}

#[cfg(test)]
mod tests {
    use super::*;

    fn criteria(number: usize) -> Criteria {
        let each = (0..number)
            .map(|n| format!("[[criteria]]\nname = 'c{n}'\nevaluator = 'length'\nmax = 9\n"));
        crate::criteria::parse(&each.collect::<String>(), "c.toml").unwrap()
    }

    #[test]
    fn something_is_hidden_but_never_all() {
        let four = criteria(4);
        let held = hidden("task", &four, 1);
        assert_eq!(held.len(), 1);
        assert_eq!(held, hidden("task", &four, 1));
        let left = visible(&four, &held);
        assert_eq!(left.criteria.len(), 3);
        assert!(left.criteria.iter().all(|it| !held.contains(&it.name)));
        assert_eq!(hidden("task", &four, 9).len(), 3);
        assert!(hidden("task", &criteria(1), 1).is_empty());
        // The selection differs from task to task.
        let names: BTreeSet<_> = (0..20).map(|n| hidden(&n.to_string(), &four, 1)).collect();
        assert!(names.len() > 2, "{names:?}");
    }
}
