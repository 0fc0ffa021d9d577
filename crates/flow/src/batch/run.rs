//! The batch itself: begins runs, waits for them, gives their rows away.

use std::io;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::ending::{Ending, Limits, Stop};
use super::line::{Entry, Item};
use super::order::Order;
use super::pace::Gate;
use super::queue::{Queue, Waiting};
use super::replan::{Adjustment, Attempt, Means};
use super::row::Row;
use super::tally::Tally;
use crate::engine::{Loop, Observer};
use crate::model::{CallReport, ModelError};
use crate::types::{Event, ExitCode, Stamped, Task, TokenUsage};

/// The criteria of a task cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CriteriaError(pub String);

impl From<CriteriaError> for String {
    fn from(error: CriteriaError) -> Self {
        error.0
    }
}

/// What a batch asks of whoever starts it.
#[async_trait::async_trait(?Send)]
pub trait Host {
    /// The loop for tasks with these criteria; `None` for those of the batch. Asked once for each task.
    ///
    /// # Errors
    /// If these criteria cannot be used. The task then is invalid; others go on.
    async fn loop_for(&self, criteria: Option<&str>) -> Result<Arc<Loop>, CriteriaError>;

    /// Who sees the events of the next run.
    fn observer(&self) -> Box<dyn Observer>;

    /// Tells a task what is known from earlier runs, before it is tried with this loop. By default it is told nothing.
    fn recall(&self, _plan: &Loop, _task: &mut Task) {}

    /// A run whose task was told something has ended.
    fn measure(&self, _run_id: Uuid) {}
}

/// Who does tasks elsewhere.
pub trait Remote {
    /// A task that is to be done. Asked once for each task.
    ///
    /// # Errors
    /// If its criteria cannot be used, why. The task then is invalid; others go on.
    fn task(&self, line: u64, id: String, item: Item) -> Result<Box<dyn RemoteTask + '_>, String>;
}

/// A task that is done elsewhere.
#[async_trait::async_trait(?Send)]
pub trait RemoteTask {
    /// What there is to do it otherwise with, where it fails.
    fn means(&self) -> Means;

    /// Has the task done, in another way where there is an adjustment; its row, or `None` where nobody waits for it any
    /// more. Dropping this is giving up on it.
    async fn attempt(&mut self, adjustment: Option<Adjustment>) -> Option<Row>;
}

/// Who does the tasks of a batch.
#[derive(Clone, Copy)]
pub enum Hands<'a> {
    /// This process, with loops of this host.
    Here(&'a dyn Host),
    /// Somebody else.
    Elsewhere(&'a dyn Remote),
}

/// Where rows go.
pub trait Output {
    /// Takes a row. What is taken is kept: the task is not done again.
    ///
    /// # Errors
    /// If it cannot be kept. The batch ends at once then; rows of tasks that were done by then still come.
    fn row(&mut self, row: &Row, now: Now) -> Result<Flow, String>;

    /// Something changed besides: tasks were begun, or the batch is about to stop.
    fn changed(&mut self, now: Now);
}

/// Whether rows are still wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// They are.
    Go,
    /// Nobody reads them any more.
    End,
}

/// How a batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Tasks under way; of a row, with its own.
    pub under_way: usize,
    /// Whether no further task is begun.
    pub stopping: bool,
}

/// How a batch goes, besides its pace.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Rows in the order of their tasks, instead of as they come.
    pub ordered: bool,
    /// Begin no further task after one that failed.
    pub fail_fast: bool,
    /// How often a task that failed is tried again in another way, where that may help.
    pub replan: u32,
    /// What ends it early.
    pub limits: Limits,
}

/// How many limited tasks begin elsewhere before it is known what one of them uses.
const UNKNOWN: usize = 4;

/// What all runs of this call have used, those under way included.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    tokens: u64,
    cost: f64,
    /// How many of them ended, where what a run uses is known at its end only.
    rows: u32,
}

impl Spent {
    fn add(&mut self, usage: TokenUsage, cost: Option<f64>) {
        self.tokens += usage.total.unwrap_or(0);
        self.cost += cost.unwrap_or(0.0);
    }

    /// The limit that is reached, if one is.
    fn reached(self, limits: Limits) -> Option<Stop> {
        if limits.tokens.is_some_and(|limit| self.tokens >= limit) {
            Some(Stop::Tokens)
        } else if limits.cost.is_some_and(|limit| self.cost >= limit) {
            Some(Stop::Cost)
        } else {
            None
        }
    }
}

/// Does the tasks that come, and gives their rows to `output`. `tally` holds what was done before.
///
/// After `drain` is cancelled nothing more is begun, and what is under way is finished. What is cut off, by the limit
/// on time or by a failure that all tasks would meet, has no row, and so is done again by the next call.
pub async fn run(
    mut entries: mpsc::Receiver<io::Result<Entry>>,
    gate: &Arc<Gate>,
    options: Options,
    hands: Hands<'_>,
    output: &mut dyn Output,
    tally: Tally,
    drain: &CancellationToken,
) -> Ending {
    let spent = Arc::new(Mutex::new(Spent::default()));
    let cut = CancellationToken::new();
    let floor = Floor {
        hands,
        gate,
        spent: &spent,
        limits: options.limits,
        replan: options.replan,
        cut: &cut,
        halted: CancellationToken::new(),
    };
    let deadline = options.limits.time.map(|time| Instant::now() + time);
    let mut runs = FuturesUnordered::new();
    let mut batch = Batch {
        options,
        output,
        queue: Queue::default(),
        order: Order::new(options.ordered),
        next: 0,
        over: false,
        stop: None,
        tally,
    };
    loop {
        batch.heed(&spent);
        while batch.wants_input() {
            match entries.try_recv() {
                Ok(entry) => batch.take(entry, runs.len()),
                Err(mpsc::error::TryRecvError::Disconnected) => batch.over = true,
                Err(mpsc::error::TryRecvError::Empty) => break,
            }
        }
        while batch.stop.is_none()
            && runs.len() < gate.limit()
            && floor.affords_one_more(runs.len())
            && let Some(waiting) = batch.queue.take()
        {
            runs.push(floor.work(waiting));
        }
        if batch.stop.is_some() {
            floor.halted.cancel();
        }
        if matches!(batch.stop, Some(Stop::NoReader | Stop::Output(_))) {
            cut.cancel();
        }
        let now = batch.now(runs.len());
        batch.output.changed(now);
        if runs.is_empty() && (batch.stop.is_some() || batch.over && batch.queue.is_empty()) {
            break;
        }
        tokio::select! {
            biased;
            () = drain.cancelled(), if batch.stop.is_none() => batch.stop = Some(Stop::Interrupted),
            () = gate.hopeless(), if !cut.is_cancelled() => {
                let failure = gate.failure().map(|error| Stop::Provider(Box::new(error)));
                batch.stop = failure.or(batch.stop.take());
                cut.cancel();
            }
            () = until(deadline), if !cut.is_cancelled() => {
                batch.stop.get_or_insert(Stop::Time);
                cut.cancel();
            }
            Some(finished) = runs.next(), if !runs.is_empty() => {
                // With it, since the next one takes its place.
                batch.finished(finished.place, finished.row, runs.len() + 1);
            }
            entry = entries.recv(), if batch.wants_input() => match entry {
                Some(entry) => batch.take(entry, runs.len()),
                None => batch.over = true,
            },
            () = gate.room(), if batch.stop.is_none() && !batch.queue.is_empty() => {}
        }
    }
    batch.end()
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A batch under way, without its runs.
struct Batch<'a> {
    options: Options,
    output: &'a mut dyn Output,
    queue: Queue,
    order: Order,
    /// The place of the next entry.
    next: u64,
    /// Whether the input is at its end.
    over: bool,
    stop: Option<Stop>,
    tally: Tally,
}

impl Batch<'_> {
    fn wants_input(&self) -> bool {
        self.stop.is_none() && !self.over && !self.queue.is_full() && self.order.admits(self.next)
    }

    /// How it stands, with so many runs.
    fn now(&self, under_way: usize) -> Now {
        Now {
            under_way,
            stopping: self.stop.is_some(),
        }
    }

    /// Stops where a limit is reached.
    fn heed(&mut self, spent: &Mutex<Spent>) {
        if self.stop.is_some() {
            return;
        }
        self.stop = reached(self.options.limits, spent);
    }

    fn take(&mut self, entry: io::Result<Entry>, under_way: usize) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                self.stop = Some(Stop::Input(error.to_string()));
                return;
            }
        };
        let place = self.next;
        self.next += 1;
        let Entry {
            line,
            id,
            task,
            bytes,
        } = entry;
        let waiting = match (id, task) {
            (Some(id), Ok(item)) => Ok(Waiting {
                place,
                line,
                id,
                item,
                bytes,
            }),
            (id, Err(problem)) => Err(Row::invalid(line, id, problem)),
            (None, Ok(_)) => Err(Row::invalid(line, None, "it has no id".to_owned())),
        };
        match waiting {
            Ok(waiting) => self.queue.push(waiting),
            Err(row) => self.finished(place, Some(row), under_way),
        }
    }

    fn finished(&mut self, place: u64, row: Option<Row>, under_way: usize) {
        let failed = row.as_ref().is_some_and(|row| row.status.is_failure());
        for row in self.order.finished(place, row) {
            self.write(&row, under_way);
        }
        if failed && self.options.fail_fast {
            self.stop.get_or_insert(Stop::Failed);
        }
    }

    fn write(&mut self, row: &Row, under_way: usize) {
        if matches!(self.stop, Some(Stop::NoReader)) {
            return;
        }
        match self.output.row(row, self.now(under_way)) {
            Ok(Flow::Go) => self.tally.add(row),
            Ok(Flow::End) => self.stop = Some(Stop::NoReader),
            Err(_) if matches!(self.stop, Some(Stop::Output(_))) => {}
            Err(problem) => self.stop = Some(Stop::Output(problem)),
        }
    }

    fn end(mut self) -> Ending {
        for row in self.order.rest() {
            self.write(&row, 0);
        }
        Ending {
            stop: self.stop,
            tally: self.tally,
        }
    }
}

struct Finished {
    place: u64,
    row: Option<Row>,
}

/// The limit that is reached, if one is.
fn reached(limits: Limits, spent: &Mutex<Spent>) -> Option<Stop> {
    spent.lock().reached(limits)
}

/// What all tasks under way share.
struct Floor<'a> {
    hands: Hands<'a>,
    gate: &'a Gate,
    spent: &'a Arc<Mutex<Spent>>,
    limits: Limits,
    replan: u32,
    /// Ends what is under way.
    cut: &'a CancellationToken,
    /// Nothing more is begun.
    halted: CancellationToken,
}

impl Floor<'_> {
    /// Whether one more task may begin with so many under way. What those elsewhere use is known when they have ended:
    /// until then each counts as much as the others did on average.
    fn affords_one_more(&self, under_way: usize) -> bool {
        let is_limited = self.limits.tokens.is_some() || self.limits.cost.is_some();
        if under_way == 0 || !is_limited || matches!(self.hands, Hands::Here(_)) {
            return true;
        }
        let mut spent = *self.spent.lock();
        if spent.rows == 0 {
            return under_way < UNKNOWN;
        }
        let tasks = u32::try_from(under_way).unwrap_or(u32::MAX);
        let tokens = spent.tokens.saturating_mul(u64::from(tasks));
        spent.tokens += tokens / u64::from(spent.rows);
        spent.cost += spent.cost * f64::from(tasks) / f64::from(spent.rows);
        spent.reached(self.limits).is_none()
    }

    async fn work(&self, waiting: Waiting) -> Finished {
        let Waiting {
            place,
            line,
            id,
            item,
            ..
        } = waiting;
        let row = match self.hands {
            Hands::Here(host) => self.here(host, line, id, item).await,
            Hands::Elsewhere(remote) => self.elsewhere(remote, line, id, item).await,
        };
        Finished { place, row }
    }

    async fn elsewhere(
        &self,
        remote: &dyn Remote,
        line: u64,
        id: String,
        item: Item,
    ) -> Option<Row> {
        let mut task = match remote.task(line, id.clone(), item) {
            Ok(task) => task,
            Err(problem) => return Some(Row::invalid(line, Some(id), problem)),
        };
        let means = task.means();
        let attempt = async |adjustment| {
            let row = tokio::select! {
                biased;
                () = self.cut.cancelled() => return None,
                row = task.attempt(adjustment) => row?,
            };
            if self.is_hopeless(row.exit_code) {
                return None;
            }
            let mut spent = self.spent.lock();
            spent.add(row.token_usage, row.cost);
            spent.rows += 1;
            Some(row)
        };
        self.attempts(&means, attempt).await
    }

    async fn here(&self, host: &dyn Host, line: u64, id: String, item: Item) -> Option<Row> {
        let plan = match host.loop_for(item.criteria.as_deref()).await {
            Ok(plan) => plan,
            Err(problem) => return Some(Row::invalid(line, Some(id), problem.into())),
        };
        let mut task = item.task;
        host.recall(&plan, &mut task);
        let attempt = async |adjustment: Option<Adjustment>| {
            let Some(adjustment) = adjustment else {
                return self.run(host, line, &id, &plan, &task).await;
            };
            let mut task = task.clone();
            adjustment.tell(&mut task);
            let plan = adjustment.adjust(&plan);
            self.run(host, line, &id, &plan, &task).await
        };
        self.attempts(&Means::of(&plan), attempt).await
    }

    /// Tries a task, and again in another way where that may help. `None` if it was cut off.
    async fn attempts(
        &self,
        means: &Means,
        mut attempt: impl AsyncFnMut(Option<Adjustment>) -> Option<Row>,
    ) -> Option<Row> {
        let mut row = attempt(None).await?;
        for _ in 0..self.replan {
            let Some(next) = Attempt::after(&row, means) else {
                break;
            };
            tokio::select! {
                biased;
                () = self.halted.cancelled() => break,
                () = self.cut.cancelled() => break,
                () = tokio::time::sleep(next.pause) => {}
            }
            if reached(self.limits, self.spent).is_some() {
                break;
            }
            let again = attempt(Some(next.adjustment)).await?;
            row = row.then(next.adjusted, again);
        }
        Some(row)
    }

    /// Whether a task failed because everything fails: that is not its result.
    fn is_hopeless(&self, code: ExitCode) -> bool {
        code == ExitCode::Provider && self.gate.failure().is_some()
    }

    /// A run of this process. `None` if it was cut off.
    async fn run(
        &self,
        host: &dyn Host,
        line: u64,
        id: &str,
        plan: &Loop,
        task: &Task,
    ) -> Option<Row> {
        let mut observer = Counted {
            observer: host.observer(),
            spent: Arc::clone(self.spent),
            failure: None,
        };
        let record = plan.run(task, &mut observer, self.cut).await;
        if let Some(run_id) = record.run_id.filter(|_| !task.remembered.is_empty()) {
            host.measure(run_id);
        }
        if record.exit_code.is_some_and(|code| self.is_hopeless(code)) {
            return None;
        }
        Row::of(line, id.to_owned(), &record, observer.failure.as_ref())
    }
}

/// Adds up what calls use, while the run goes on.
struct Counted {
    observer: Box<dyn Observer>,
    spent: Arc<Mutex<Spent>>,
    /// Why the last call failed, if it did.
    failure: Option<ModelError>,
}

impl Observer for Counted {
    fn on_event(&mut self, event: &Stamped) {
        self.observer.on_event(event);
        if let Event::Call { usage, cost, .. } = &event.event {
            let mut spent = self.spent.lock();
            spent.add(*usage, *cost);
        }
    }

    fn on_call(&mut self, event: &Stamped, call: &CallReport<'_>) {
        self.failure = call.error.cloned();
        self.on_event(event);
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
