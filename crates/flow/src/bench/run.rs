//! The trials of a benchmark, as tasks of a batch.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, mpsc};

use super::arm::{Arm, ArmFailure, ArmResult, Budget};
use super::score::{Score, hidden, score, visible};
use super::trial::{Key, Trial, TrialRow};
use crate::batch::{Adjustment, Entry, Host, Item, Means, Remote, RemoteTask, Row, Status};
use crate::engine::Loop;
use crate::reflector::ErrorCategory;
use crate::source::hex;
use crate::types::ExitCode;

/// The distance between the seeds of two trials, so that no two of their calls share a seed.
const SEED_STEP: u64 = 1000;

/// The configuration of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The arms.
    pub arms: Vec<Arm>,
    /// The seeds to run each arm with.
    pub seeds: Vec<u64>,
    /// The total token budget of each arm per task. `None` matches the usage of `reflect` on the
    /// same task.
    pub budget: Option<u64>,
    /// The number of checks per task that are hidden from the arms.
    pub holdout: usize,
}

/// Why a benchmark cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The criteria of a task are unusable.
    #[error("task `{task}`: {problem}")]
    Criteria {
        /// The task's id.
        task: String,
        /// What is wrong with the criteria.
        problem: String,
    },
    /// An existing row was produced with another setup.
    #[error("the row of task `{task}` was made with other settings, models or criteria")]
    Changed {
        /// The task's id.
        task: String,
    },
}

/// A prepared benchmark, which provides the trials for a batch and runs them.
pub struct Bench<'a> {
    host: &'a dyn Host,
    plan: Plan,
    tasks: Vec<Entry>,
    /// A hash of everything that each task's rows depend on.
    setups: HashMap<String, String>,
    /// The usage of `reflect` per task and seed, or `None` if it failed.
    used: RefCell<HashMap<(String, u64), Option<u64>>>,
    news: Notify,
}

impl<'a> Bench<'a> {
    /// Prepares the trials of these tasks. `before` holds the existing rows.
    ///
    /// # Errors
    /// If the criteria of a task are unusable, or an existing row was produced with another setup.
    pub async fn prepare(
        host: &'a dyn Host,
        plan: Plan,
        tasks: Vec<Entry>,
        before: &[TrialRow],
    ) -> Result<Self, PlanError> {
        let mut setups = HashMap::new();
        for (id, item) in items(&tasks) {
            let made = host.loop_for(item.criteria.as_deref()).await;
            let made = made.map_err(|problem| PlanError::Criteria {
                task: id.to_owned(),
                problem: problem.into(),
            })?;
            setups.insert(id.to_owned(), plan.setup(&made, item));
        }
        let mut used = HashMap::new();
        for TrialRow { trial, .. } in before {
            match setups.get(&trial.task) {
                Some(setup) if *setup != trial.setup => {
                    let task = trial.task.clone();
                    return Err(PlanError::Changed { task });
                }
                Some(_) if trial.arm == Arm::Reflect => {
                    used.insert((trial.task.clone(), trial.seed), Some(trial.cost_tokens));
                }
                _ => {}
            }
        }
        Ok(Self {
            host,
            plan,
            tasks,
            setups,
            used: RefCell::new(used),
            news: Notify::new(),
        })
    }

    /// Returns all trials. For each task, the arm that determines the budget comes first.
    pub fn keys(&self) -> Vec<Key> {
        let arms = Arm::ALL
            .into_iter()
            .filter(|it| self.plan.arms.contains(it));
        let arms: Vec<Arm> = arms.collect();
        let mut keys = Vec::new();
        for (id, _) in items(&self.tasks) {
            for arm in &arms {
                keys.extend(self.plan.seeds.iter().map(|seed| Key {
                    task: id.to_owned(),
                    arm: *arm,
                    seed: *seed,
                }));
            }
        }
        keys
    }

    /// Returns the remaining trials as entries of a batch.
    pub fn entries(&self, before: &[TrialRow]) -> mpsc::Receiver<io::Result<Entry>> {
        let done: BTreeSet<String> = before.iter().map(|it| it.key().id()).collect();
        let keys = self.keys();
        let (sender, receiver) = mpsc::channel(keys.len().max(1));
        for key in keys {
            let task = self
                .tasks
                .iter()
                .find(|it| it.id.as_deref() == Some(&key.task));
            if let Some(task) = task.filter(|_| !done.contains(&key.id())) {
                // Never fails: the channel has room for all entries, and the receiver is in scope.
                let _ = sender.try_send(Ok(Entry {
                    id: Some(key.id()),
                    ..task.clone()
                }));
            }
        }
        receiver
    }

    /// Returns the usage of `reflect` on this task with this seed, and waits until it is known.
    async fn used(&self, key: &(String, u64)) -> Option<u64> {
        loop {
            let news = self.news.notified();
            if let Some(used) = self.used.borrow().get(key) {
                return *used;
            }
            news.await;
        }
    }

    fn publish_used(&self, key: (String, u64), tokens: Option<u64>) {
        self.used.borrow_mut().insert(key, tokens);
        self.news.notify_waiters();
    }

    async fn budget(&self, key: &Key) -> Result<Option<Budget>, ArmFailure> {
        if let Some(tokens) = self.plan.budget {
            return Ok(Some(Budget::Total(tokens)));
        }
        if !key.arm.needs_budget() {
            return Ok(None);
        }
        let used = self.used(&(key.task.clone(), key.seed)).await;
        let none = || {
            let why = "`reflect` failed on this task, so there is no budget to match";
            ArmFailure(ExitCode::Failure, why.to_owned())
        };
        Ok(Some(Budget::Matched(used.ok_or_else(none)?)))
    }

    /// Runs a trial: writes the answer and scores it with all checks.
    async fn measure(&self, key: &Key, item: &Item) -> Result<FinishedTrial, String> {
        let plan = self.host.loop_for(item.criteria.as_deref()).await?;
        let seed = key.seed.wrapping_mul(SEED_STEP);
        let hidden = hidden(&key.task, plan.criteria(), self.plan.holdout);
        let shown = plan
            .with_criteria(visible(plan.criteria(), &hidden))
            .with_seed(seed);
        let budget = match self.budget(key).await {
            Ok(budget) => budget,
            Err(ArmFailure(code, error)) => {
                let answer = ArmResult::failed(super::meter::Meter::new(), code, error);
                return Ok(FinishedTrial::new(answer, hidden, 0.0));
            }
        };
        let begun = Instant::now();
        let answer = key.arm.write(&shown, &item.task, budget).await;
        let seconds = begun.elapsed().as_secs_f64();
        if key.arm == Arm::Reflect {
            let used = answer.failure.is_none().then_some(answer.meter.tokens);
            self.publish_used((key.task.clone(), key.seed), used);
        }
        let mut done = FinishedTrial::new(answer, hidden, seconds);
        if done.answer.failure.is_none() {
            // Score with another seed: the verdict by which the arm selected its answer is biased
            // upwards.
            let judging = plan.with_seed(seed.wrapping_add(SEED_STEP - 1));
            match score(&judging, &item.task, done.answer.output.as_deref()).await {
                Ok(score) => done.score = score,
                Err(ArmFailure(code, error)) => done.answer.failure = Some((code, error)),
            }
        }
        Ok(done)
    }
}

fn items(tasks: &[Entry]) -> impl Iterator<Item = (&str, &Item)> {
    let item = |entry: &Entry| entry.task.is_ok();
    let each = tasks.iter().filter(move |entry| item(entry));
    each.filter_map(|entry| Some((entry.id.as_deref()?, entry.task.as_ref().ok()?)))
}

impl Plan {
    fn setup(&self, made: &Arc<Loop>, item: &Item) -> String {
        let Self {
            budget, holdout, ..
        } = self;
        let all = format!(
            "{budget:?} {holdout} {:?} {}",
            item.task,
            made.fingerprint()
        );
        hex(&Sha256::digest(all)[..8])
    }
}

/// A finished trial.
struct FinishedTrial {
    answer: ArmResult,
    hidden: BTreeSet<String>,
    seconds: f64,
    score: Score,
}

impl FinishedTrial {
    fn new(answer: ArmResult, hidden: BTreeSet<String>, seconds: f64) -> Self {
        Self {
            answer,
            hidden,
            seconds,
            score: Score::default(),
        }
    }

    fn row(self, line: u64, key: Key, setup: String) -> Row {
        let Self {
            answer,
            hidden,
            seconds,
            score,
        } = self;
        let (exit_code, error) = match (answer.failure, score.met) {
            (Some((code, error)), _) => (code, Some(error)),
            (None, Some(true)) => (ExitCode::Success, None),
            (None, Some(false)) => (ExitCode::NotMet, None),
            (None, None) => (
                ExitCode::JudgeUnusable,
                Some("the answer could not be judged".to_owned()),
            ),
        };
        let meter = answer.meter;
        let id = Some(key.id());
        let trial = Trial {
            task: key.task,
            arm: key.arm,
            seed: key.seed,
            met: score.met,
            checks: score.checks,
            hidden,
            calls: meter.calls,
            cost_tokens: meter.tokens,
            total_tokens: meter.total,
            setup,
        };
        let extra = match serde_json::to_value(trial) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Row {
            id,
            line,
            status: Status::of(exit_code),
            exit_code,
            output: answer.output,
            overall_score: score.overall,
            first_score: answer.first_score,
            convergence_reason: answer.reason,
            run_id: None,
            attempts: 1,
            iterations_used: answer.drafts,
            token_usage: meter.usage,
            cost: meter.cost,
            execution_time: Some(seconds),
            error_category: error.as_ref().map(|_| ErrorCategory::Execution),
            error,
            replanned: Vec::new(),
            extra,
        }
    }
}

impl Remote for Bench<'_> {
    fn task(&self, line: u64, id: String, item: Item) -> Result<Box<dyn RemoteTask + '_>, String> {
        let key = Key::parse(&id).ok_or_else(|| format!("`{id}` is not a trial"))?;
        Ok(Box::new(TrialTask {
            bench: self,
            line,
            key,
            item,
        }))
    }
}

struct TrialTask<'a> {
    bench: &'a Bench<'a>,
    line: u64,
    key: Key,
    item: Item,
}

#[async_trait::async_trait(?Send)]
impl RemoteTask for TrialTask<'_> {
    fn means(&self) -> Means {
        Means::default()
    }

    async fn attempt(&mut self, _: Option<Adjustment>) -> Option<Row> {
        let key = self.key.clone();
        Some(match self.bench.measure(&key, &self.item).await {
            Ok(done) => {
                let setup = self.bench.setups.get(&key.task).cloned();
                done.row(self.line, key, setup.unwrap_or_default())
            }
            Err(problem) => Row::invalid(self.line, Some(key.id()), problem),
        })
    }
}
