//! Runs a batch: starts runs, waits for them, and passes on their rows.

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

/// The criteria of a task are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CriteriaError(pub String);

impl From<CriteriaError> for String {
    fn from(error: CriteriaError) -> Self {
        error.0
    }
}

/// What a batch needs from its caller.
#[async_trait::async_trait(?Send)]
pub trait Host {
    /// Returns the loop for tasks with these criteria; `None` means those of the batch. Called once per task.
    ///
    /// # Errors
    /// If these criteria are invalid. The task is then invalid; others continue.
    async fn loop_for(&self, criteria: Option<&str>) -> Result<Arc<Loop>, CriteriaError>;

    /// Returns the observer of the next run.
    fn observer(&self) -> Box<dyn Observer>;

    /// Adds memories to a task before its run with this loop. By default it adds none.
    fn recall(&self, _plan: &Loop, _task: &mut Task) {}

    /// Called when a run that used memories has ended.
    fn measure(&self, _run_id: Uuid) {}
}

/// Runs tasks elsewhere.
pub trait Remote {
    /// Prepares a task. Called once per task.
    ///
    /// # Errors
    /// The reason, if its criteria are invalid. The task is then invalid; others continue.
    fn task(&self, line: u64, id: String, item: Item) -> Result<Box<dyn RemoteTask + '_>, String>;
}

/// A task that runs elsewhere.
#[async_trait::async_trait(?Send)]
pub trait RemoteTask {
    /// Returns what a further attempt can change.
    fn means(&self) -> Means;

    /// Runs the task, with this adjustment if there is one. Returns its row, or `None` if the result is no
    /// longer needed. Dropping the future abandons the task.
    async fn attempt(&mut self, adjustment: Option<Adjustment>) -> Option<Row>;
}

/// Where the tasks of a batch run.
#[derive(Clone, Copy)]
pub enum Hands<'a> {
    /// In this process, with the loops of this host.
    Here(&'a dyn Host),
    /// Elsewhere.
    Elsewhere(&'a dyn Remote),
}

/// The destination of rows.
pub trait Output {
    /// Writes a row. A written row is final: its task is not repeated.
    ///
    /// # Errors
    /// If the row cannot be written. The batch then stops; rows of tasks already completed still follow.
    fn row(&mut self, row: &Row, now: Now) -> Result<Flow, String>;

    /// Called on other changes: tasks started, or the batch is about to stop.
    fn changed(&mut self, now: Now);
}

/// Whether the destination accepts more rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It does.
    Go,
    /// The reader is gone.
    End,
}

/// The state of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The number of tasks in progress; for a row, including its own.
    pub under_way: usize,
    /// Whether no further tasks start.
    pub stopping: bool,
}

/// The options of a batch, apart from its pace.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Write rows in the order of their tasks, not of their completion.
    pub ordered: bool,
    /// Start no further task after a failed one.
    pub fail_fast: bool,
    /// How often a failed task is retried in another way, if that may help.
    pub replan: u32,
    /// Limits that end the batch early.
    pub limits: Limits,
}

/// How many tasks may start elsewhere under a limit before the usage of the first is known.
const UNKNOWN: usize = 4;

/// The usage of all runs of this call, including those in progress.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    tokens: u64,
    cost: f64,
    /// The number of completed remote runs; their usage is known only at the end.
    rows: u32,
}

impl Spent {
    fn add(&mut self, usage: TokenUsage, cost: Option<f64>) {
        self.tokens += usage.total.unwrap_or(0);
        self.cost += cost.unwrap_or(0.0);
    }

    /// Returns the limit that is reached, if any.
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

/// Runs the incoming tasks and passes their rows to `output`. `tally` counts earlier results.
///
/// After `drain` is cancelled, nothing more starts and tasks in progress finish. Tasks cut off by the time
/// limit or by a failure that affects all tasks have no row, so the next call repeats them.
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
                // Includes the completed task, because the next one takes its slot.
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

/// A batch in progress, without its runs.
struct Batch<'a> {
    options: Options,
    output: &'a mut dyn Output,
    queue: Queue,
    order: Order,
    /// The position of the next entry.
    next: u64,
    /// Whether the input has ended.
    over: bool,
    stop: Option<Stop>,
    tally: Tally,
}

impl Batch<'_> {
    fn wants_input(&self) -> bool {
        self.stop.is_none() && !self.over && !self.queue.is_full() && self.order.admits(self.next)
    }

    /// Returns the state with this many runs in progress.
    fn now(&self, under_way: usize) -> Now {
        Now {
            under_way,
            stopping: self.stop.is_some(),
        }
    }

    /// Stops if a limit is reached.
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

/// Returns the limit that is reached, if any.
fn reached(limits: Limits, spent: &Mutex<Spent>) -> Option<Stop> {
    spent.lock().reached(limits)
}

/// The state shared by all tasks in progress.
struct Floor<'a> {
    hands: Hands<'a>,
    gate: &'a Gate,
    spent: &'a Arc<Mutex<Spent>>,
    limits: Limits,
    replan: u32,
    /// Cancels the tasks in progress.
    cut: &'a CancellationToken,
    /// Cancelled when nothing more may start.
    halted: CancellationToken,
}

impl Floor<'_> {
    /// Whether another task may start with this many in progress. The usage of remote tasks is known only
    /// when they end, so each counts as the average of the completed ones.
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

    /// Tries a task, and retries it in another way if that may help. Returns `None` if it was cut off.
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

    /// Whether a task failed because all tasks fail, which is not a result of the task.
    fn is_hopeless(&self, code: ExitCode) -> bool {
        code == ExitCode::Provider && self.gate.failure().is_some()
    }

    /// Runs a task in this process. Returns `None` if it was cut off.
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

/// Adds up the usage of calls during a run.
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
