//! Measures whether the memories offered to a run helped.

use std::cmp::Ordering;

use super::confidence::{confidence, success_rate};
use crate::types::{Comparison, ConvergenceReason, Knowledge, Memory, MemoryChange, RunOutcome};

/// The maximum number of runs to compare with: the latest with the same criteria, model and
/// command.
pub const BASELINE: usize = 50;

/// The minimum number of runs to compare with. With fewer, a use is counted but does not change the
/// confidence.
pub const MIN_BASELINE: usize = 3;

/// The difference below which scores of first drafts are equal: roughly the noise of a judge.
const NOISE: f64 = 0.05;

/// What the end of a run changes in memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MemoryUpdate {
    /// The changes to memory.
    pub changes: Vec<MemoryChange>,
    /// The id of each changed insight and procedure, with its confidence or success rate before and
    /// after.
    pub figures: Vec<(u64, Option<f64>, Option<f64>)>,
}

/// Compares a run with the runs that did not receive the same memories. `others` are runs with the
/// same criteria, model and command, latest first; the run itself may be among them.
///
/// A run is better if it meets the criteria; between two that do, the one with fewer drafts is
/// better, then the one whose first draft has the higher score. Runs that did not end by themselves
/// (the user quit, the model failed) are ignored on both sides.
pub fn compare(run: &RunOutcome, others: &[RunOutcome]) -> Comparison {
    let telling = is_telling(run);
    let share = |id: &u64| {
        let without = others.iter().filter(|other| {
            is_telling(other) && other.run_id != run.run_id && !other.remembered.contains(id)
        });
        let without = without.take(BASELINE);
        telling.then(|| share_beaten(run, without)).flatten()
    };
    Comparison {
        success: telling.then_some(run.success),
        shares: run.remembered.iter().map(|id| (*id, share(id))).collect(),
    }
}

/// Returns what the end of a run changes in memory.
///
/// Each procedure's success rate takes the run into account. Each insight receives the share of
/// runs without it that this run beat.
pub fn measure(known: &[Memory], run: &Comparison) -> MemoryUpdate {
    let mut measured = MemoryUpdate::default();
    for memory in known {
        let told = run.shares.iter().find(|(id, _)| *id == memory.id);
        let Some((_, share)) = told else {
            continue;
        };
        measured.changes.push(MemoryChange::Touch(memory.id));
        let Some(success) = run.success else {
            continue;
        };
        let (what, before, after) = match &memory.what {
            Knowledge::Fact(_) => continue,
            Knowledge::Procedure(old) => {
                let mut new = old.clone();
                new.uses += 1;
                new.successes += u32::from(success);
                let figures = (success_rate(old), success_rate(&new));
                (Knowledge::Procedure(new), figures.0, figures.1)
            }
            Knowledge::Insight(old) => {
                let mut new = old.clone();
                new.uses += 1;
                if let Some(share) = share {
                    new.compared += 1;
                    new.points += share;
                }
                let figures = (confidence(old), confidence(&new));
                (Knowledge::Insight(new), Some(figures.0), Some(figures.1))
            }
        };
        measured
            .changes
            .push(MemoryChange::Replace(memory.id, what));
        if before != after {
            measured.figures.push((memory.id, before, after));
        }
    }
    measured
}

/// Returns whether the run ended by itself.
fn is_telling(run: &RunOutcome) -> bool {
    use ConvergenceReason::{
        CostLimit, MaxIterations, QualityMet, TimeLimit, TokenBudget, UserAccepted,
    };
    match run.reason {
        Some(QualityMet | MaxIterations | TokenBudget | TimeLimit | CostLimit | UserAccepted) => {
            true
        }
        Some(reason) => reason.is_rule(),
        None => false,
    }
}

/// Returns the share of the other runs that this run beat, with ties counting half. Returns `None`
/// if there are too few.
fn share_beaten<'a>(run: &RunOutcome, others: impl Iterator<Item = &'a RunOutcome>) -> Option<f64> {
    let (mut number, mut points) = (0_u32, 0.0);
    for other in others {
        number += 1;
        points += match rank(run, other) {
            Ordering::Greater => 1.0,
            Ordering::Equal => 0.5,
            Ordering::Less => 0.0,
        };
    }
    (number as usize >= MIN_BASELINE).then(|| points / f64::from(number))
}

/// Returns which run was better.
fn rank(a: &RunOutcome, b: &RunOutcome) -> Ordering {
    let drafts = if a.success && b.success {
        b.iterations.cmp(&a.iterations)
    } else {
        // Between two failed runs, stopping earlier is not better.
        Ordering::Equal
    };
    let scores = || match (a.first_score, b.first_score) {
        (Some(a), Some(b)) if (a - b).abs() >= NOISE => a.total_cmp(&b),
        _ => Ordering::Equal,
    };
    a.success.cmp(&b.success).then(drafts).then_with(scores)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::memory::FLOOR;
    use crate::types::{KnownInsight, KnownProcedure};

    /// Returns the changes after a run among these others. The comparison may come from another
    /// machine.
    fn changed_by(known: &[Memory], run: &RunOutcome, others: &[RunOutcome]) -> MemoryUpdate {
        let json = serde_json::to_string(&compare(run, others)).unwrap();
        measure(known, &serde_json::from_str(&json).unwrap())
    }

    fn run(n: u128, success: bool, iterations: u32, score: f64) -> RunOutcome {
        RunOutcome {
            run_id: Uuid::from_u128(n),
            reason: Some(if success {
                ConvergenceReason::QualityMet
            } else {
                ConvergenceReason::MaxIterations
            }),
            success,
            iterations,
            first_score: Some(score),
            remembered: Vec::new(),
        }
    }

    fn with(ids: &[u64], mut run: RunOutcome) -> RunOutcome {
        run.remembered = ids.to_vec();
        run
    }

    fn memory(id: u64, what: Knowledge) -> Memory {
        Memory {
            id,
            added: Timestamp::UNIX_EPOCH,
            touched: Timestamp::UNIX_EPOCH,
            what,
        }
    }

    fn insight() -> Memory {
        memory(
            1,
            Knowledge::Insight(KnownInsight::new("general", "x", 0.6)),
        )
    }

    /// Returns the insight after the changes.
    fn after(measured: &MemoryUpdate) -> KnownInsight {
        let found = measured.changes.iter().find_map(|change| match change {
            MemoryChange::Replace(1, Knowledge::Insight(insight)) => Some(insight.clone()),
            _ => None,
        });
        found.expect("an insight")
    }

    #[test]
    fn success_goes_before_drafts_and_these_before_the_first_score() {
        let order = [
            run(1, false, 1, 0.2),
            run(2, false, 3, 0.7),
            run(3, true, 3, 0.1),
            run(4, true, 2, 0.1),
            run(5, true, 2, 0.4),
        ];
        for (place, run) in order.iter().enumerate() {
            for (other, against) in order.iter().enumerate() {
                assert_eq!(rank(run, against), place.cmp(&other), "{place} {other}");
            }
        }
        let (a, b) = (run(1, true, 1, 0.80), run(2, true, 1, 0.83));
        assert_eq!(rank(&a, &b), Ordering::Equal, "noise");
    }

    #[test]
    fn an_insight_whose_run_is_no_better_loses_confidence_and_one_that_helps_gains() {
        let baseline = [2, 3, 4].map(|n| run(n, false, 3, 0.3));
        let known = [insight()];
        let same = with(&[1], run(9, false, 3, 0.3));
        let measured = changed_by(&known, &same, &baseline);
        let now = after(&measured);
        assert_eq!((now.uses, now.compared), (1, 1));
        assert!((now.points - 0.5).abs() < 1e-9);
        let (id, before, figure) = measured.figures[0];
        assert_eq!(id, 1);
        assert!(figure < before);
        let better = with(&[1], run(9, true, 1, 0.9));
        let measured = changed_by(&known, &better, &baseline);
        assert!(confidence(&after(&measured)) > 0.6);
    }

    #[test]
    fn runs_with_the_insight_and_runs_that_were_broken_off_are_no_baseline() {
        let known = [insight()];
        let mut others = vec![
            with(&[1], run(2, false, 3, 0.3)),
            with(&[1], run(3, false, 3, 0.3)),
            run(4, false, 3, 0.3),
            run(5, false, 3, 0.3),
            RunOutcome {
                reason: Some(ConvergenceReason::Interrupted),
                ..run(6, false, 1, 0.3)
            },
        ];
        let this = with(&[1], run(9, true, 1, 0.9));
        others.push(this.clone());
        let now = after(&changed_by(&known, &this, &others));
        assert_eq!((now.uses, now.compared), (1, 0), "two runs are too few");
        others.push(run(7, false, 3, 0.3));
        let now = after(&changed_by(&known, &this, &others));
        assert_eq!((now.uses, now.compared), (1, 1));
        // An aborted run has no result, but it did use the insight.
        let broken = RunOutcome {
            reason: Some(ConvergenceReason::ModelError),
            ..this
        };
        let measured = changed_by(&known, &broken, &others);
        assert_eq!(measured.changes, [MemoryChange::Touch(1)]);
    }

    #[test]
    fn procedures_count_successes_and_what_was_not_used_is_left_alone() {
        let procedure = |uses, successes| {
            Knowledge::Procedure(KnownProcedure {
                name: None,
                content: "x".to_owned(),
                given: Some(0.5),
                uses,
                successes,
            })
        };
        let known = [memory(1, procedure(0, 0)), memory(2, procedure(0, 0))];
        let measured = changed_by(&known, &with(&[2], run(9, true, 1, 0.9)), &[]);
        assert_eq!(
            measured.changes,
            [
                MemoryChange::Touch(2),
                MemoryChange::Replace(2, procedure(1, 1))
            ]
        );
        assert_eq!(measured.figures, [(2, Some(0.5), Some(0.6))]);
    }

    /// Simulates random runs: without the insight, half of them meet the criteria. With a helpful
    /// one (`share` 0.9), nine of ten do; with a useless one, half of them.
    fn simulated(share: f64, seed: u64) -> f64 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut a_run = |n: u128, share: f64| {
            let success = random.f64() < share;
            let iterations = if success { random.u32(1..=3) } else { 3 };
            let score = random.f64();
            run(n, success, iterations, score)
        };
        let baseline: Vec<RunOutcome> = (0..20).map(|n| a_run(n, 0.5)).collect();
        let mut known = [insight()];
        for n in 100..140 {
            let used = with(&[1], a_run(n, share));
            known[0].what = Knowledge::Insight(after(&changed_by(&known, &used, &baseline)));
        }
        let Knowledge::Insight(insight) = &known[0].what else {
            panic!("it is one");
        };
        confidence(insight)
    }

    #[test]
    fn in_the_long_run_what_helps_stays_and_what_does_not_goes() {
        let seeds = 0..100;
        let kept = |share| {
            seeds
                .clone()
                .filter(|seed| simulated(share, *seed) >= FLOOR)
                .count()
        };
        let (helps, useless, harms) = (kept(0.95), kept(0.5), kept(0.2));
        assert!(helps >= 90, "{helps} of 100");
        assert!(useless <= 15, "{useless} of 100");
        assert_eq!(harms, 0);
    }
}
