//! A task as the server sees it: a workflow whose steps are told by a run of the loop.

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
use super::tape::{Keeper, Question, Step, Tape};
use crate::batch::Gate;
use crate::engine::RunJournal;
use crate::types::UserDecision;

/// The service of the tasks; each is known there by [`Job::key`].
pub(super) const TASK: &str = "ReflectTask";

/// A run that is to be begun, or gone on with.
#[derive(Debug)]
pub struct Begin {
    /// What is to be done.
    pub job: Arc<Job>,
    /// What has been done, here or elsewhere.
    pub past: RunJournal,
    /// Where the rest is told.
    pub tape: Tape,
    /// Ends the run when nobody waits for it any more.
    pub cancel: CancellationToken,
}

/// Where the question is kept that is open.
const QUESTION: &str = "question";

/// A decision about a draft.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    draft: u32,
    decision: UserDecision,
}

/// What is waited for until there is a decision about a draft.
fn promise(draft: u32) -> String {
    format!("draft-{draft}")
}

/// What tasks need of the worker that has them. Clones are the same worker.
#[derive(Debug, Clone)]
pub struct Worker {
    desk: mpsc::UnboundedSender<Begin>,
    gate: Arc<Gate>,
    /// Tells it from others.
    name: String,
    draining: CancellationToken,
    /// Held by each task that is here.
    busy: Arc<RwLock<()>>,
    fitness: Fitness,
}

/// How long a task is held that is handed back: see [`Worker::check`].
const HOLD: Duration = Duration::from_secs(2);

/// What a worker has room for.
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
    /// A worker that has its tasks done by whoever receives them, with models behind this gate.
    pub fn new(desk: mpsc::UnboundedSender<Begin>, gate: Arc<Gate>) -> Self {
        Self {
            desk,
            gate,
            name: Uuid::now_v7().to_string(),
            draining: CancellationToken::new(),
            busy: Arc::default(),
            fitness: Fitness::default(),
        }
    }

    /// Takes no further tasks, and hands those under way back to the server, each as soon as the answer that it waits
    /// for is in the journal.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Whether it takes no further tasks.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Waits until it takes no further tasks.
    async fn drained(&self) {
        self.draining.cancelled().await;
    }

    /// Tasks with the model of this job fail here, and not for their own sake. Returns whether that is new.
    pub fn fails(&self, job: &Job, problem: &str) -> bool {
        self.fitness.fails(job.model(), problem, Instant::now())
    }

    /// Tasks with the model of this job do not fail here. Returns whether that is new.
    pub fn works(&self, job: &Job) -> bool {
        self.fitness.works(job.model())
    }

    /// Hands a task back, after a while, that fails here: so that this worker, which has nothing to do, does not get one
    /// after another.
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

    /// Waits until it takes no further tasks, and has none.
    pub(super) async fn idle(self) {
        self.drained().await;
        drop(self.busy.write().await);
    }

    /// Hands the task back to the server, if it cannot stay here: the server then gives it to another worker.
    fn keep(&self) -> HandlerResult<()> {
        if self.is_draining() {
            return Err("this worker is about to stop".into());
        }
        Ok(())
    }
}

/// The workflows.
pub(super) struct Tasks {
    /// Does them.
    pub(super) worker: Worker,
}

// A step may take as long as a call does. What cannot be done now is done later, however often that takes: a worker
// that is missing is no failure of the task. The row is kept for a week; the journal is of no use after it.
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
    /// The program that the server replays is this loop alone, and it is the same however often it is run: ask for the
    /// next step until one is the last. Steps that are in the journal come from there, and the run is begun with them
    /// when the first one is wanted that is not.
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, job: Json<Job>) -> HandlerResult<Json<Outcome>> {
        self.worker.keep()?;
        let _busy = self.worker.busy.read().await;
        let job = Arc::new(job.into_inner());
        self.worker.check(&job).await?;
        let work = Arc::new(Mutex::new(Work {
            desk: self.worker.desk.clone(),
            job: Arc::clone(&job),
            past: RunJournal::default(),
            live: None,
        }));
        loop {
            let next = Arc::clone(&work);
            let back = || {
                let problem = self.worker.fitness.problem(job.model());
                problem.unwrap_or_else(|| "this worker has handed the task back".to_owned())
            };
            let step = ctx
                .run(|| async move {
                    let step = next.lock().await.next().await;
                    Ok(step.map(Json).ok_or_else(back)?)
                })
                .name("step")
                .await?;
            match step.into_inner() {
                Step::Ended(done) => {
                    let room = self.worker.room();
                    return Ok(Json(Outcome { done: *done, room }));
                }
                Step::Went(stretch) => {
                    // What follows would be another call.
                    self.worker.keep()?;
                    let mut work = work.lock().await;
                    match &work.live {
                        Some(live) => live.keeper.kept(),
                        None => stretch.add_to(&mut work.past),
                    }
                }
                Step::Asks(question) => {
                    let draft = question.draft;
                    if let Some(live) = &work.lock().await.live {
                        live.keeper.kept();
                    }
                    ctx.set(QUESTION, Json(*question));
                    let name = promise(draft);
                    let decision = tokio::select! {
                        biased;
                        () = self.worker.drained() => return Err("this worker is about to stop".into()),
                        decision = ctx.promise::<Json<UserDecision>>(&name) => decision?,
                    };
                    ctx.clear(QUESTION);
                    // Where this is replayed, the run asks again, and finds the promise kept.
                    if let Some(live) = &work.lock().await.live {
                        live.keeper.decided(draft, decision.into_inner());
                    }
                }
            }
        }
    }

    /// The draft that waits for a decision; null if none does.
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
    desk: mpsc::UnboundedSender<Begin>,
    job: Arc<Job>,
    /// What was done before it came here.
    past: RunJournal,
    live: Option<Live>,
}

/// Its run.
struct Live {
    keeper: Keeper,
    _ended: DropGuard,
}

impl Work {
    /// The next step; `None` where the run is gone.
    async fn next(&mut self) -> Option<Step> {
        let live = if let Some(live) = &mut self.live {
            live
        } else {
            let (tape, keeper) = Tape::new();
            let cancel = CancellationToken::new();
            let begin = Begin {
                job: Arc::clone(&self.job),
                past: std::mem::take(&mut self.past),
                tape,
                cancel: cancel.clone(),
            };
            self.desk.send(begin).ok()?;
            self.live.insert(Live {
                keeper,
                _ended: cancel.drop_guard(),
            })
        };
        live.keeper.next().await
    }
}
