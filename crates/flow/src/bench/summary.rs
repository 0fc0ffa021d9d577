//! Summarizes the rows of a benchmark.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::arm::Arm;
use super::run::Plan;
use super::stats::{self, Interval, count, mean};
use super::trial::{Key, TrialRow};
use crate::types::{SCHEMA_VERSION, TokenUsage};

/// The result of a benchmark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The result in one sentence.
    pub verdict: String,
    /// The number of tasks.
    pub tasks: usize,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The budget of each arm in total tokens, or `None` if it was matched to the usage of
    /// `reflect`.
    pub budget: Option<u64>,
    /// The number of checks per task that were hidden from the arms.
    pub holdout: usize,
    /// The number of trials without a row or a verdict, which are excluded.
    pub left_out: usize,
    /// The arms.
    pub arms: Vec<ArmSummary>,
    /// The comparisons of `reflect` with each other arm.
    pub comparisons: Vec<Comparison>,
}

/// A number of successes out of a total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Share {
    /// The number of successes.
    pub met: usize,
    /// The total.
    pub of: usize,
}

impl Share {
    fn add(&mut self, met: bool) {
        self.met += usize::from(met);
        self.of += 1;
    }
}

/// The results of an arm. Calls, tokens and seconds are means of its trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmSummary {
    /// The arm.
    pub arm: Arm,
    /// The trials that meet all checks of their task.
    pub tasks: Share,
    /// The share of these trials, with its interval over tasks.
    pub met: Interval,
    /// The checks that are met.
    pub checks: Share,
    /// The number of requests to models.
    pub calls: f64,
    /// The number of prompt tokens, or `None` if the server reports none.
    pub prompt: Option<f64>,
    /// The number of prompt tokens from the server's cache.
    pub cached: Option<f64>,
    /// The number of output tokens.
    pub output: Option<f64>,
    /// The number of output tokens and evaluated prompt tokens.
    pub cost_tokens: f64,
    /// The number of all tokens.
    pub total_tokens: f64,
    /// The duration in seconds.
    pub seconds: f64,
    /// The share of trials that met all checks with at most this many cost tokens, as steps in
    /// order of tokens.
    pub curve: Vec<(u64, f64)>,
}

/// A comparison of `reflect` with another arm, task by task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The other arm.
    pub against: Arm,
    /// The number of tasks on which `reflect` met all checks with more of its seeds.
    pub better: usize,
    /// The number of tasks on which it did so with fewer.
    pub worse: usize,
    /// The number of tasks on which both did equally well.
    pub same: usize,
    /// The difference between the shares of trials that met all checks, with its interval over
    /// tasks.
    pub difference: Interval,
    /// The p-value of the sign test over tasks.
    pub p: f64,
}

impl Comparison {
    fn is_significant(&self) -> bool {
        self.p < stats::ALPHA
    }

    /// Returns whether `reflect` is significantly worse.
    pub fn is_worse(&self) -> bool {
        self.is_significant() && self.worse > self.better
    }
}

impl Summary {
    /// Summarizes the rows that belong to the plan.
    pub fn new(plan: &Plan, keys: &[Key], rows: &[TrialRow]) -> Self {
        let wanted: HashSet<&Key> = keys.iter().collect();
        let rows: Vec<&TrialRow> = rows
            .iter()
            .filter(|row| wanted.contains(&row.key()) && row.trial.met.is_some())
            .collect();
        let tasks: HashSet<&str> = keys.iter().map(|key| key.task.as_str()).collect();
        let of = |arm: Arm| {
            let rows = rows.iter().copied();
            let rows: Vec<&TrialRow> = rows.filter(|row| row.trial.arm == arm).collect();
            rows
        };
        let arms = Arm::ALL.into_iter().filter(|arm| plan.arms.contains(arm));
        let arms: Vec<ArmSummary> = arms
            .filter_map(|arm| ArmSummary::of(arm, &of(arm)))
            .collect();
        let own = of(Arm::Reflect);
        let others = arms.iter().filter(|arm| arm.arm != Arm::Reflect);
        let comparisons = others.filter_map(|other| compare(&own, other.arm, &of(other.arm)));
        let comparisons: Vec<Comparison> = comparisons.collect();
        Self {
            schema_version: SCHEMA_VERSION,
            verdict: verdict(plan, &arms, &comparisons),
            tasks: tasks.len(),
            seeds: plan.seeds.clone(),
            budget: plan.budget,
            holdout: plan.holdout,
            left_out: keys.len() - rows.len(),
            arms,
            comparisons,
        }
    }

    /// Returns whether `reflect` is significantly worse than one of the other arms.
    pub fn is_worse(&self) -> bool {
        self.comparisons.iter().any(Comparison::is_worse)
    }
}

impl ArmSummary {
    fn of(arm: Arm, rows: &[&TrialRow]) -> Option<Self> {
        if rows.is_empty() {
            return None;
        }
        let (mut tasks, mut checks) = (Share::default(), Share::default());
        let mut usage = TokenUsage::default();
        for row in rows {
            tasks.add(row.trial.met == Some(true));
            row.trial.checks.values().for_each(|met| checks.add(*met));
            usage += row.usage;
        }
        let each = |value: &dyn Fn(&TrialRow) -> f64| {
            let values: Vec<f64> = rows.iter().map(|row| value(row)).collect();
            mean(&values)
        };
        let a_trial = |sum: Option<u64>| sum.map(|sum| tokens(sum) / count(rows.len()));
        let shares: Vec<f64> = shares(rows).into_values().collect();
        Some(Self {
            arm,
            tasks,
            met: stats::bootstrap(&shares),
            checks,
            calls: each(&|row| f64::from(row.trial.calls)),
            prompt: a_trial(usage.prompt),
            cached: a_trial(usage.cached),
            output: a_trial(usage.completion),
            cost_tokens: each(&|row| tokens(row.trial.cost_tokens)),
            total_tokens: each(&|row| tokens(row.trial.total_tokens)),
            seconds: each(&|row| row.seconds),
            curve: curve(rows),
        })
    }
}

/// Returns the share of trials that meet all checks, per task.
fn shares<'a>(rows: &[&'a TrialRow]) -> BTreeMap<&'a str, f64> {
    let mut met: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for row in rows {
        let value = f64::from(u8::from(row.trial.met == Some(true)));
        met.entry(&row.trial.task).or_default().push(value);
    }
    met.into_iter()
        .map(|(task, met)| (task, mean(&met)))
        .collect()
}

fn curve(rows: &[&TrialRow]) -> Vec<(u64, f64)> {
    let met = rows.iter().filter(|row| row.trial.met == Some(true));
    let mut costs: Vec<u64> = met.map(|row| row.trial.cost_tokens).collect();
    costs.sort_unstable();
    let mut steps: Vec<(u64, f64)> = Vec::new();
    for (place, cost) in costs.into_iter().enumerate() {
        let share = count(place + 1) / count(rows.len());
        match steps.last_mut().filter(|(last, _)| *last == cost) {
            Some(last) => last.1 = share,
            None => steps.push((cost, share)),
        }
    }
    steps
}

/// Pairs the trials of the same task and seed. Returns `None` if there are no pairs.
fn compare(own: &[&TrialRow], against: Arm, other: &[&TrialRow]) -> Option<Comparison> {
    let of = |row: &TrialRow| (row.trial.task.clone(), row.trial.seed);
    let paired = |rows: &[&TrialRow], with: &[&TrialRow]| {
        let with: HashSet<(String, u64)> = with.iter().map(|row| of(row)).collect();
        let rows = rows.iter().map(|row| (*row).clone());
        let rows: Vec<TrialRow> = rows.filter(|row| with.contains(&of(row))).collect();
        rows
    };
    let (own, other) = (paired(own, other), paired(other, own));
    let of_own: Vec<&TrialRow> = own.iter().collect();
    let of_other: Vec<&TrialRow> = other.iter().collect();
    let (of_own, of_other) = (shares(&of_own), shares(&of_other));
    let differences = of_own.iter().zip(of_other.values());
    let differences: Vec<f64> = differences.map(|((_, own), other)| own - other).collect();
    if differences.is_empty() {
        return None;
    }
    let better = differences.iter().filter(|it| **it > 0.0).count();
    let worse = differences.iter().filter(|it| **it < 0.0).count();
    Some(Comparison {
        against,
        better,
        worse,
        same: differences.len() - better - worse,
        difference: stats::bootstrap(&differences),
        p: stats::sign_test(better, worse),
    })
}

/// Describes the result in one sentence: `reflect` against the strongest arm of the same cost, and
/// its cost.
fn verdict(plan: &Plan, arms: &[ArmSummary], comparisons: &[Comparison]) -> String {
    let find = |arm: Arm| arms.iter().find(|it| it.arm == arm);
    if arms.is_empty() {
        return "no trial has a result yet".to_owned();
    }
    let Some(own) = find(Arm::Reflect) else {
        let each = arms.iter().map(|arm| {
            let Share { met, of } = arm.tasks;
            format!("{} met {met} of {of}", arm.arm.as_str())
        });
        return each.collect::<Vec<_>>().join(", ");
    };
    let mut said = format!("reflect met {} of {}", own.tasks.met, own.tasks.of);
    let strength = |arm: Arm| find(arm).map_or(0.0, |it| it.met.estimate);
    let rivals = comparisons.iter().filter(|it| it.against.needs_budget());
    // The first one among equals.
    let rival = rivals
        .rev()
        .max_by(|a, b| strength(a.against).total_cmp(&strength(b.against)))
        .or(comparisons.first());
    let Some((rival, met)) = rival.and_then(|it| Some((it, find(it.against)?.tasks.met))) else {
        return said;
    };
    let name = rival.against.as_str();
    let _ = match (rival.against, plan.budget) {
        (Arm::Single, _) => write!(said, ", a single draft {met}"),
        (_, None) => write!(said, ", {name} at the same tokens {met}"),
        (_, Some(_)) => write!(said, ", {name} within the same budget {met}"),
    };
    let points = |share: f64| share * 100.0;
    let Interval {
        estimate,
        low,
        high,
    } = rival.difference;
    let _ = write!(
        said,
        " ({:+.0} points, {:.0} to {:.0})",
        points(estimate),
        points(low),
        points(high)
    );
    if let Some(single) = find(Arm::Single).filter(|single| single.cost_tokens > 0.0) {
        let times = own.cost_tokens / single.cost_tokens;
        let _ = write!(said, "; it cost {times:.1}× a single draft");
    }
    if rival.is_worse() {
        let _ = write!(said, "; {name} is the better choice here");
    } else if !rival.is_significant() {
        said.push_str("; the difference may be chance");
    }
    said
}

#[expect(clippy::cast_precision_loss, reason = "no trial has 2^53 tokens")]
fn tokens(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Trial;

    fn plan(arms: &[Arm]) -> Plan {
        Plan {
            arms: arms.to_vec(),
            seeds: vec![1],
            budget: None,
            holdout: 0,
        }
    }

    fn row(task: usize, arm: Arm, seed: u64, met: Option<bool>, cost: u64) -> TrialRow {
        TrialRow {
            trial: Trial {
                task: format!("t{task}"),
                arm,
                seed,
                met,
                checks: [("a".to_owned(), true), ("b".to_owned(), met == Some(true))].into(),
                hidden: std::collections::BTreeSet::default(),
                calls: 2,
                cost_tokens: cost,
                total_tokens: 2 * cost,
                setup: String::new(),
            },
            usage: TokenUsage::new(Some(cost), Some(cost), None),
            seconds: 1.0,
        }
    }

    fn summary(plan: &Plan, rows: &[TrialRow]) -> Summary {
        let keys: Vec<Key> = rows.iter().map(TrialRow::key).collect();
        Summary::new(plan, &keys, rows)
    }

    #[test]
    fn the_sentence_says_what_was_met_and_what_it_cost() {
        let plan = plan(&Arm::ALL);
        let mut rows = Vec::new();
        for task in 0..60 {
            rows.push(row(task, Arm::Reflect, 1, Some(task < 31), 290));
            rows.push(row(task, Arm::BestOfN, 1, Some(task < 24), 280));
            rows.push(row(task, Arm::AppendLoop, 1, Some(task < 20), 280));
            rows.push(row(task, Arm::Single, 1, Some(task < 12), 100));
        }
        let summary = summary(&plan, &rows);
        assert_eq!(
            summary.verdict,
            "reflect met 31 of 60, best-of-n at the same tokens 24 (+12 points, 5 to 20); it cost \
             2.9× a single draft"
        );
        let best = &summary.comparisons[0];
        assert_eq!(
            (best.against, best.better, best.worse, best.same),
            (Arm::BestOfN, 7, 0, 53)
        );
        assert!((best.p - 0.015_625).abs() < 1e-9);
        assert!(!summary.is_worse());
        let own = &summary.arms[0];
        assert_eq!((own.checks.met, own.checks.of), (91, 120));
        assert_eq!(own.curve, [(290, 31.0 / 60.0)]);
        assert_eq!(own.cached, None);
    }

    #[test]
    fn an_arm_that_beats_the_loop_is_named() {
        let plan = plan(&[Arm::Reflect, Arm::BestOfN]);
        let both = (0..12).flat_map(|task| {
            [
                row(task, Arm::Reflect, 1, Some(task < 2), 100),
                row(task, Arm::BestOfN, 1, Some(task < 9), 100),
            ]
        });
        let rows: Vec<TrialRow> = both.collect();
        let summary = summary(&plan, &rows);
        assert!(summary.is_worse());
        assert!(
            summary
                .verdict
                .ends_with("; best-of-n is the better choice here")
        );
        let few = &rows[4..10];
        let keys: Vec<Key> = few.iter().map(TrialRow::key).collect();
        let few = Summary::new(&plan, &keys, few);
        assert!(!few.is_worse());
        assert!(
            few.verdict.ends_with("; the difference may be chance"),
            "{}",
            few.verdict
        );
    }

    #[test]
    fn seeds_of_a_task_count_as_one_and_trials_without_a_verdict_not_at_all() {
        let plan = Plan {
            seeds: vec![1, 2],
            ..plan(&[Arm::Reflect, Arm::Single])
        };
        let rows = [
            row(0, Arm::Reflect, 1, Some(true), 10),
            row(0, Arm::Reflect, 2, Some(true), 20),
            row(0, Arm::Single, 1, Some(false), 10),
            row(0, Arm::Single, 2, Some(true), 10),
            row(1, Arm::Reflect, 1, None, 10),
            row(1, Arm::Single, 1, Some(true), 10),
        ];
        let summary = summary(&plan, &rows);
        assert_eq!((summary.tasks, summary.left_out), (2, 1));
        let comparison = &summary.comparisons[0];
        assert_eq!((comparison.better, comparison.worse), (1, 0));
        assert!((comparison.difference.estimate - 0.5).abs() < 1e-9);
        assert_eq!(summary.arms[0].curve, [(10, 0.5), (20, 1.0)]);
        assert_eq!(
            summary.verdict,
            "reflect met 2 of 2, a single draft 2 (+50 points, 50 to 50); it cost 1.5× a single draft; the difference may be chance"
        );
    }
}
