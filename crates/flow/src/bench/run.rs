//! The trials of a benchmark, as tasks of a batch.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, mpsc};

use super::arm::{Answer, Arm, Budget, Failure};
use super::score::{Score, hidden, score, visible};
use super::trial::{Key, Measured, Trial};
use crate::batch::{Adjustment, Entry, Host, Item, Means, Remote, RemoteTask, Row, Status};
use crate::engine::Loop;
use crate::reflector::ErrorCategory;
use crate::source::hex;
use crate::types::ExitCode;

/// The distance between the seeds of two trials, so that none of their calls share one.
const SEED_STEP: u64 = 1000;

/// How a benchmark is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The arms.
    pub arms: Vec<Arm>,
    /// The seeds that each arm is tried with.
    pub seeds: Vec<u64>,
    /// How many tokens in all each arm may use on a task; `None`: as much as `reflect` used there.
    pub budget: Option<u64>,
    /// How many checks of each task are hidden from the arms.
    pub holdout: usize,
}

/// Why a benchmark cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The criteria of a task cannot be used.
    #[error("task `{task}`: {problem}")]
    Criteria {
        /// The task's id.
        task: String,
        /// What is wrong with them.
        problem: String,
    },
    /// A row that is there was made in another way.
    #[error("the row of task `{task}` was made with other settings, models or criteria")]
    Changed {
        /// The task's id.
        task: String,
    },
}

/// A benchmark, ready to run: gives the trials of a batch, and does them.
pub struct Bench<'a> {
    host: &'a dyn Host,
    plan: Plan,
    tasks: Vec<Entry>,
    /// Per task what stands for all that it depends on.
    setups: HashMap<String, String>,
    /// Per task and seed what `reflect` used; `None` where it failed.
    used: RefCell<HashMap<(String, u64), Option<u64>>>,
    news: Notify,
}

impl<'a> Bench<'a> {
    /// Prepares the trials of these tasks. `before` are the rows that are there already.
    ///
    /// # Errors
    /// If the criteria of a task cannot be used, or a row was made in another way.
    pub async fn prepare(
        host: &'a dyn Host,
        plan: Plan,
        tasks: Vec<Entry>,
        before: &[Measured],
    ) -> Result<Self, PlanError> {
        let mut setups = HashMap::new();
        for (id, item) in items(&tasks) {
            let made = host.loop_for(item.criteria.as_deref()).await;
            let made = made.map_err(|problem| PlanError::Criteria {
                task: id.to_owned(),
                problem,
            })?;
            setups.insert(id.to_owned(), plan.setup(&made, item));
        }
        let mut used = HashMap::new();
        for Measured { trial, .. } in before {
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

    /// All trials: for each task the arm first that the others are matched with.
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

    /// The trials that are still to be done, as a batch takes them.
    pub fn entries(&self, before: &[Measured]) -> mpsc::Receiver<io::Result<Entry>> {
        let done: BTreeSet<String> = before.iter().map(|it| it.key().id()).collect();
        let keys = self.keys();
        let (sender, receiver) = mpsc::channel(keys.len().max(1));
        for key in keys {
            let task = self
                .tasks
                .iter()
                .find(|it| it.id.as_deref() == Some(&key.task));
            if let Some(task) = task.filter(|_| !done.contains(&key.id())) {
                // There is room for all of them, and the receiver is here.
                let _ = sender.try_send(Ok(Entry {
                    id: Some(key.id()),
                    ..task.clone()
                }));
            }
        }
        receiver
    }

    /// What `reflect` used on this task with this seed, once that is known.
    async fn used(&self, key: &(String, u64)) -> Option<u64> {
        loop {
            let news = self.news.notified();
            if let Some(used) = self.used.borrow().get(key) {
                return *used;
            }
            news.await;
        }
    }

    fn tell_used(&self, key: (String, u64), tokens: Option<u64>) {
        self.used.borrow_mut().insert(key, tokens);
        self.news.notify_waiters();
    }

    async fn budget(&self, key: &Key) -> Result<Option<Budget>, Failure> {
        if let Some(tokens) = self.plan.budget {
            return Ok(Some(Budget::Total(tokens)));
        }
        if !key.arm.needs_budget() {
            return Ok(None);
        }
        let used = self.used(&(key.task.clone(), key.seed)).await;
        let none = || {
            let why = "`reflect` failed on this task, so there is no budget to match";
            Failure(ExitCode::Failure, why.to_owned())
        };
        Ok(Some(Budget::Matched(used.ok_or_else(none)?)))
    }

    /// Does a trial: the answer, the hidden checks, and the score.
    async fn measure(&self, key: &Key, item: &Item) -> Result<Done, String> {
        let plan = self.host.loop_for(item.criteria.as_deref()).await?;
        let seed = key.seed.wrapping_mul(SEED_STEP);
        let hidden = hidden(&key.task, plan.criteria(), self.plan.holdout);
        let shown = plan
            .with_criteria(visible(plan.criteria(), &hidden))
            .with_seed(seed);
        let budget = match self.budget(key).await {
            Ok(budget) => budget,
            Err(Failure(code, error)) => {
                let answer = Answer::failed(super::meter::Meter::new(), code, error);
                return Ok(Done::new(answer, hidden, 0.0));
            }
        };
        let begun = Instant::now();
        let answer = key.arm.write(&shown, &item.task, budget).await;
        let seconds = begun.elapsed().as_secs_f64();
        if key.arm == Arm::Reflect {
            let used = answer.failure.is_none().then_some(answer.meter.tokens);
            self.tell_used((key.task.clone(), key.seed), used);
        }
        let mut done = Done::new(answer, hidden, seconds);
        if done.answer.failure.is_none() {
            // A verdict of its own: one that the arm has chosen by is too good.
            let judging = plan.with_seed(seed.wrapping_add(SEED_STEP - 1));
            match score(&judging, &item.task, done.answer.output.as_deref()).await {
                Ok(score) => done.score = score,
                Err(Failure(code, error)) => done.answer.failure = Some((code, error)),
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

/// A trial that is over.
struct Done {
    answer: Answer,
    hidden: BTreeSet<String>,
    seconds: f64,
    score: Score,
}

impl Done {
    fn new(answer: Answer, hidden: BTreeSet<String>, seconds: f64) -> Self {
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
            score: score.overall,
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
        let key = Key::parse(&id).ok_or_else(|| format!("`{id}` names no trial"))?;
        Ok(Box::new(Work {
            bench: self,
            line,
            key,
            item,
        }))
    }
}

struct Work<'a> {
    bench: &'a Bench<'a>,
    line: u64,
    key: Key,
    item: Item,
}

#[async_trait::async_trait(?Send)]
impl RemoteTask for Work<'_> {
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
