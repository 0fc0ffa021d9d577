//! A task as the server sees it: a workflow whose steps come from a run of the loop.

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

/// The service of the tasks, which identifies each by [`Job::key`].
pub(super) const TASK: &str = "ReflectTask";

/// A run to begin or to resume.
#[derive(Debug)]
pub struct Begin {
    /// The task.
    pub job: Arc<Job>,
    /// What was done before, here or on another worker.
    pub past: RunJournal,
    /// Records the rest.
    pub journal: DurableJournal,
    /// Cancelled when the task is no longer this worker's.
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

/// A worker as its tasks see it. Clones are the same worker.
#[derive(Debug, Clone)]
pub struct Worker {
    queue: mpsc::UnboundedSender<Begin>,
    gate: Arc<Gate>,
    /// Unique.
    name: String,
    draining: CancellationToken,
    /// Held by each task that is here.
    busy: Arc<RwLock<()>>,
    fitness: Fitness,
}

/// How long a task stays before it is handed back: see [`Worker::check`].
const HOLD: Duration = Duration::from_secs(2);

/// The error of a task that a draining worker hands back.
const DRAINING: &str = "this worker is about to stop";

/// How many tasks a worker has room for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Room {
    pub(super) worker: String,
    /// How many tasks at once.
    pub(super) tasks: usize,
}

/// What the server keeps of a task that has ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    #[serde(flatten)]
    pub(super) done: Done,
    /// That of the worker that ended it.
    pub(super) room: Room,
}

impl Worker {
    /// A worker whose tasks are run by the receiver of `queue`, with models behind this gate.
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

    /// Takes no further tasks and hands those under way back to the server, each before its next model call.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Whether it takes no further tasks.
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

    /// Rejects a task that would fail here. It waits before that: an unfit worker is idle, so a balancer would send it
    /// one task after another.
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

    /// Waits until it drains and has no tasks.
    pub(super) async fn idle(self) {
        self.draining.cancelled().await;
        drop(self.busy.write().await);
    }
}

/// The service of the tasks on this worker.
pub(super) struct Tasks {
    pub(super) worker: Worker,
}

// A step may take as long as a model call. A worker that is missing is no failure of the task, so it is retried without
// limit. The row is kept for a week; the journal is of no use after the end.
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
    /// Does the task.
    ///
    /// The server replays only this loop, which is the same every time: it asks for the next step until one is the last.
    /// Recorded steps come from the server's journal. The first step that is not recorded begins the run, with all
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
                    // A resumed run asks again, and the promise is already resolved.
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

    /// The draft that waits for a decision; null if there is none.
    #[handler]
    async fn question(
        &self,
        ctx: SharedWorkflowContext<'_>,
    ) -> HandlerResult<Json<Option<Question>>> {
        let question: Option<Json<Question>> = ctx.get(QUESTION).await?;
        Ok(Json(question.map(Json::into_inner)))
    }

    /// Decides about a draft. Only the first decision counts.
    #[handler]
    #[expect(clippy::unused_async, reason = "handlers are")]
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
    /// What was done before it came here.
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
    /// The next step.
    ///
    /// # Errors
    /// If the task goes back to the server; says why.
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
            // Where nobody receives it, there are no steps either.
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
