//! A task from the server's view: a workflow whose steps come from a run of the loop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use restate_sdk::prelude::{
    ContextPromises as _, ContextReadState as _, ContextSideEffects as _, ContextWriteState as _,
    HandlerResult, Json, RunFuture as _, SharedWorkflowContext, WorkflowContext,
};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, RwLock, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::fitness::Fitness;
use super::job::{Done, Job};
use super::journal::{DurableJournal, Entry, LostCalls, Message, Question, Reply, Step};
use crate::batch::Gate;
use crate::engine::RunJournal;
use crate::types::UserDecision;

/// The task service. [`Job::key`] identifies each task.
pub(super) const TASK: &str = "ReflectTask";

/// A run to start or resume.
#[derive(Debug)]
pub struct Begin {
    /// The task.
    pub job: Arc<Job>,
    /// The earlier progress, here or on another worker.
    pub past: RunJournal,
    /// Records the rest of the run.
    pub journal: DurableJournal,
    /// Cancelled when this worker no longer has the task.
    pub cancel: CancellationToken,
}

/// The key of the open question in the workflow's state.
const QUESTION: &str = "question";

/// A decision about a draft.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    draft: u32,
    decision: UserDecision,
}

/// The name of the promise of a decision about a draft.
fn promise(draft: u32) -> String {
    format!("draft-{draft}")
}

/// A worker from the view of its tasks. Clones are the same worker.
#[derive(Debug, Clone)]
pub struct Worker {
    queue: mpsc::UnboundedSender<Begin>,
    gate: Arc<Gate>,
    /// A unique name.
    name: String,
    draining: CancellationToken,
    /// Locked by each task on this worker.
    busy: Arc<RwLock<()>>,
    fitness: Fitness,
}

/// How long a task waits before it is handed back: see [`Worker::check`].
const HOLD: Duration = Duration::from_secs(2);

/// The error with which a draining worker hands a task back.
const DRAINING: &str = "this worker is shutting down";

/// The capacity of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Room {
    pub(super) worker: String,
    /// The number of concurrent tasks.
    pub(super) tasks: usize,
}

/// What the server keeps of a completed task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    #[serde(flatten)]
    pub(super) done: Done,
    /// The capacity of the worker that completed it.
    pub(super) room: Room,
}

impl Worker {
    /// Creates a worker. The receiver of `queue` runs its tasks, with models behind this gate.
    pub fn new(queue: mpsc::UnboundedSender<Begin>, gate: Arc<Gate>) -> Self {
        Self {
            queue,
            gate,
            name: Uuid::now_v7().to_string(),
            draining: CancellationToken::new(),
            busy: Arc::default(),
            fitness: Fitness::default(),
        }
    }

    /// Stops accepting tasks, and hands current tasks back to the server, each before its next model call.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Whether it stops accepting tasks.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Marks the model of this job as unusable here. Returns whether that is new.
    pub fn fails(&self, job: &Job, problem: &str) -> bool {
        self.fitness.fails(job.model(), problem, Instant::now())
    }

    /// Marks the model of this job as usable. Returns whether that is new.
    pub fn works(&self, job: &Job) -> bool {
        self.fitness.works(job.model())
    }

    /// Rejects a task that would fail here, after a delay. An unfit worker is idle, so without the delay a
    /// load balancer would keep sending it tasks.
    async fn check(&self, job: &Job) -> HandlerResult<()> {
        if let Err(problem) = self.fitness.check(job.model(), Instant::now()) {
            tokio::time::sleep(HOLD).await;
            return Err(problem.into());
        }
        Ok(())
    }

    fn room(&self) -> Room {
        Room {
            worker: self.name.clone(),
            tasks: self.gate.limit(),
        }
    }

    /// Waits until the worker is draining and has no tasks.
    pub(super) async fn idle(self) {
        self.draining.cancelled().await;
        drop(self.busy.write().await);
    }
}

/// The task service of this worker.
pub(super) struct Tasks {
    pub(super) worker: Worker,
}

// A step may take as long as a model call. A missing worker is not a failure of the task, so retries are
// unlimited. The row is kept for a week; the journal is useless after the end.
#[restate_sdk::workflow(
    name = "ReflectTask",
    inactivity_timeout = "1h",
    abort_timeout = "1h",
    journal_retention = "0s",
    workflow_completion_retention = "7 days",
    invocation_retry_policy(
        initial_interval = "100ms",
        max_interval = "5s",
        factor = 2.0,
        max_attempts = 4294967295,
    )
)]
impl Tasks {
    /// Runs the task.
    ///
    /// The server replays only this loop, which is deterministic: it requests the next step until the last
    /// one. Recorded steps come from the server's journal. The first unrecorded step starts the run, with all
    /// recorded ones.
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, job: Json<Job>) -> HandlerResult<Json<Outcome>> {
        if self.worker.is_draining() {
            return Err(DRAINING.into());
        }
        let _busy = self.worker.busy.read().await;
        let job = Arc::new(job.into_inner());
        self.worker.check(&job).await?;
        let mut calls = LostCalls::default();
        let work = Arc::new(Mutex::new(Work {
            worker: self.worker.clone(),
            job,
            past: RunJournal::default(),
            live: None,
            reply: Reply::None,
        }));
        loop {
            let next = Arc::clone(&work);
            let entry = ctx
                .run(|| async move { Ok(Json(next.lock().await.next().await?)) })
                .name("step")
                .await?
                .into_inner();
            calls.see(&entry);
            let mut work = work.lock().await;
            let reply = std::mem::take(&mut work.reply);
            match entry.step {
                Step::Holds => {
                    if let Reply::Kept(kept) = reply {
                        let _ = kept.send(());
                    }
                }
                Step::Progressed(progress) => {
                    if work.live.is_none() {
                        progress.add_to(&mut work.past);
                    }
                }
                Step::Asks(question) => {
                    let name = promise(question.draft);
                    ctx.set(QUESTION, Json(*question));
                    let decision: Json<UserDecision> = tokio::select! {
                        biased;
                        () = self.worker.draining.cancelled() => return Err(DRAINING.into()),
                        decision = ctx.promise(&name) => decision?,
                    };
                    ctx.clear(QUESTION);
                    // A resumed run asks again; the promise is then already resolved.
                    if let Reply::Decided(decided) = reply {
                        let _ = decided.send(decision.into_inner());
                    }
                }
                Step::Ended(mut done) => {
                    calls.charge(&mut done.row);
                    let room = self.worker.room();
                    return Ok(Json(Outcome { done: *done, room }));
                }
            }
        }
    }

    /// Returns the draft that waits for a decision; null if there is none.
    #[handler]
    async fn question(
        &self,
        ctx: SharedWorkflowContext<'_>,
    ) -> HandlerResult<Json<Option<Question>>> {
        let question: Option<Json<Question>> = ctx.get(QUESTION).await?;
        Ok(Json(question.map(Json::into_inner)))
    }

    /// Decides on a draft. Only the first decision counts.
    #[handler]
    #[expect(clippy::unused_async, reason = "handlers must be async")]
    async fn decide(
        &self,
        ctx: SharedWorkflowContext<'_>,
        answer: Json<Answer>,
    ) -> HandlerResult<()> {
        let Answer { draft, decision } = answer.into_inner();
        ctx.resolve_promise(&promise(draft), Json(decision));
        Ok(())
    }
}

/// A task on this worker.
struct Work {
    worker: Worker,
    job: Arc<Job>,
    /// The progress before the task came here.
    past: RunJournal,
    live: Option<Live>,
    /// What the run waits for after the latest step.
    reply: Reply,
}

/// The run of a task on this worker.
struct Live {
    steps: mpsc::UnboundedReceiver<Message>,
    _cancel: DropGuard,
}

impl Work {
    /// Returns the next step.
    ///
    /// # Errors
    /// The reason, if the task goes back to the server.
    async fn next(&mut self) -> Result<Entry, String> {
        let live = self.live.get_or_insert_with(|| {
            let (journal, steps) = DurableJournal::new();
            let cancel = CancellationToken::new();
            let begin = Begin {
                job: Arc::clone(&self.job),
                past: std::mem::take(&mut self.past),
                journal,
                cancel: cancel.clone(),
            };
            // Without a receiver, there are no steps either.
            let _ = self.worker.queue.send(begin);
            Live {
                steps,
                _cancel: cancel.drop_guard(),
            }
        });
        let Some(Message { entry, reply }) = live.steps.recv().await else {
            let problem = self.worker.fitness.problem(self.job.model());
            return Err(problem.unwrap_or_else(|| "this worker lost the run".to_owned()));
        };
        if matches!(entry.step, Step::Holds) && self.worker.is_draining() {
            return Err(DRAINING.to_owned());
        }
        self.reply = reply;
        Ok(entry)
    }
}
