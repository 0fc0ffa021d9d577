//! Runs the tasks of a worker.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Mutex;
use uuid::Uuid;

use crate::batch::durable::{self, Begin, Ingress, Job, JobPlan, Worker};
use crate::batch::{Gate, Paced};
use crate::cli::args::{GlobalArgs, WorkerArgs};
use crate::cli::error::CliError;
use crate::cli::models::{self, Opened};
use crate::cli::observers::{Kept, RunLog, Tee};
use crate::cli::settings::{self, Plan};
use crate::cli::store::{self, SharedStore};
use crate::cli::{exec, knowledge, prices, printer, recall, setup};
use crate::engine::{Decider, Loop, Observer, WriterTool};
use crate::evaluate::Tools;
use crate::evidence::Gatherer;
use crate::model::{CallReport, HttpClient, ModelError};
use crate::prompt::{PROMPT_VERSION, Templates};
use crate::types::{ExitCode, Prices, Stamped, Task};

/// The maximum number of cached plans. A full cache is cleared, and models are opened again.
const MAX_CACHED: usize = 64;

/// Tasks of up to this many bytes share an entry of the cache; longer ones are rounded up to the next power
/// of 2. The length matters because the context window of some models is set when they are opened.
const SHORT: usize = 8192;

/// Runs tasks.
pub(super) struct Executor<'a> {
    args: &'a WorkerArgs,
    global: &'a GlobalArgs,
    gate: Arc<Gate>,
    ingress: Arc<Ingress>,
    worker: Worker,
    store: Option<SharedStore>,
    /// By plan and length of the longest task.
    ready: Mutex<HashMap<(String, usize), Arc<Ready>>>,
}

/// Why a task cannot run here.
enum Failure {
    /// It cannot run on any worker.
    OfTask(CliError),
    /// It may run on another worker.
    OfWorker(CliError),
}

impl From<CliError> for Failure {
    /// Only a provider error belongs to this worker.
    fn from(error: CliError) -> Self {
        if error.code == ExitCode::Provider {
            Self::OfWorker(error)
        } else {
            Self::OfTask(error)
        }
    }
}

/// Observes whether calls succeed.
struct Calls<'a> {
    worker: &'a Worker,
    job: &'a Job,
    /// Why the last one failed, if it did.
    failure: Option<ModelError>,
}

impl Observer for Calls<'_> {
    fn on_event(&mut self, _: &Stamped) {}

    fn on_call(&mut self, _: &Stamped, call: &CallReport<'_>) {
        self.failure = call.error.cloned();
        if self.failure.is_none() && self.worker.works(self.job) {
            printer::say(&format!("tasks for {} succeed again", self.job.model()));
        }
    }
}

/// A plan with everything it needs on this machine.
struct Ready {
    plan: Plan,
    opened: Opened,
    prices: Prices,
    tools: Tools,
    writer_tools: Vec<WriterTool>,
    evidence: Option<Arc<Gatherer>>,
    templates: Option<Arc<Templates>>,
}

impl<'a> Executor<'a> {
    /// An executor whose calls go through this gate.
    pub(super) fn new(
        args: &'a WorkerArgs,
        global: &'a GlobalArgs,
        gate: Arc<Gate>,
        ingress: Arc<Ingress>,
        worker: Worker,
    ) -> Result<Self, CliError> {
        let plan = settings::worker(global)?;
        Ok(Self {
            args,
            global,
            gate,
            ingress,
            worker,
            store: SharedStore::open(&plan, args.no_log)?,
            ready: Mutex::default(),
        })
    }

    /// Runs a task, or resumes it.
    pub(super) async fn work(&self, begin: Begin) {
        let (job, journal) = (Arc::clone(&begin.job), begin.journal.clone());
        match self.run(begin).await {
            Ok(()) => {}
            Err(Failure::OfTask(error)) => {
                journal.refuse(job.line, job.id.clone(), error.code, error.message);
            }
            // Without a final step, the task goes back to the server.
            Err(Failure::OfWorker(error)) => {
                if self.worker.fails(&job, &error.message) {
                    printer::report(&error);
                    printer::say(&format!(
                        "tasks for {} go back to the server until one succeeds here",
                        job.model()
                    ));
                }
            }
        }
    }

    async fn run(&self, begin: Begin) -> Result<(), Failure> {
        let Begin {
            job,
            past,
            journal,
            cancel,
        } = begin;
        let task = job.full_task();
        let ready = self.ready(&job.plan, &task).await?;
        let usual = self.build(&ready, |opened| {
            // The journal comes last, so that a call that waited long is made only if the task is still here.
            opened
                .behind(|model| journal.before(model))
                .behind(|model| Arc::new(Paced::new(model, Arc::clone(&self.gate))))
                .behind(|model| self.ingress.before(model, job.rates))
        })?;
        let plan = match &job.adjustment {
            Some(adjustment) => adjustment.adjust(&usual),
            None => usual,
        };
        let mut recorder = journal.observer();
        let mut kept = Kept::default();
        let mut calls = Calls {
            worker: &self.worker,
            job: &job,
            failure: None,
        };
        let mut observer = Tee(vec![&mut recorder, &mut kept, &mut calls]);
        let mut decider = journal.decider();
        let decider = job.asks.then_some(&mut decider as &mut dyn Decider);
        let record = plan
            .run_over(&task, past, &mut observer, decider, &cancel)
            .await;
        if cancel.is_cancelled() {
            return Ok(());
        }
        let failure = calls
            .failure
            .filter(|_| record.exit_code == Some(ExitCode::Provider));
        if let Some(failure) = failure.filter(|failure| failure.class.affects_all_calls()) {
            return Err(Failure::OfWorker(failure.into()));
        }
        let mut compared = None;
        if let Some(store) = &self.store {
            // If another worker has taken over the task, the run ends and is recorded there.
            journal.hold().await;
            let is_new = |run_id: &Uuid| store.lock().find(&run_id.to_string()).is_err();
            // Record the whole run at the end: until then, its journal is on the server. The log already has
            // the run if this worker stopped just before the task ended.
            if record.run_id.as_ref().is_some_and(is_new) {
                let mut log = RunLog::new(store.clone());
                for event in &kept.0 {
                    log.on_event(event);
                }
            }
            // Compare runs here, where the log is. The batch stores the memory.
            if let Some(run_id) = record.run_id.filter(|_| !task.remembered.is_empty()) {
                compared = recall::compared(&store.lock(), run_id).unwrap_or_else(|error| {
                    printer::say(&format!(
                        "warning: cannot tell whether memory helped: {error}"
                    ));
                    None
                });
            }
        }
        journal.end(job.line, job.id.clone(), &record, compared);
        Ok(())
    }

    /// Builds the loop of a task with these models.
    fn build(
        &self,
        ready: &Ready,
        models: impl FnOnce(Opened) -> Opened,
    ) -> Result<Loop, CliError> {
        let plan = &ready.plan;
        // Cache verdicts only in a store: an in-memory cache would grow with every task.
        let cache = self.store.as_ref();
        let cache = cache.and_then(|store| store::verdicts(&plan.criteria, Some(store)));
        let built = models(ready.opened.clone())
            .into_loop(plan, cache, ready.prices.clone(), self.global.quiet)?
            .tools(ready.tools.clone())
            .writer_tools(ready.writer_tools.clone())
            .evidence(ready.evidence.clone())
            .templates(ready.templates.clone())
            .build()?;
        Ok(built)
    }

    /// Returns the prepared plan, from the cache if possible.
    async fn ready(&self, plan: &JobPlan, task: &Task) -> Result<Arc<Ready>, Failure> {
        let length = serde_json::to_string(task).map_or(0, |text| text.len());
        let length = length.max(SHORT).next_power_of_two();
        let key = (plan.key(), length);
        let mut ready = self.ready.lock().await;
        if let Some(known) = ready.get(&key) {
            return Ok(Arc::clone(known));
        }
        // Do not cache failures: what is missing now may be available for the next task.
        let made = Arc::new(self.prepare(plan, length).await?);
        if ready.len() >= MAX_CACHED {
            ready.clear();
        }
        ready.insert(key, Arc::clone(&made));
        Ok(made)
    }

    async fn prepare(&self, job: &JobPlan, length: usize) -> Result<Ready, Failure> {
        let JobPlan {
            criteria,
            settings: loop_settings,
            setup,
        } = job;
        if setup.prompts != PROMPT_VERSION {
            let problem = CliError::usage(format!(
                "this worker is {}, and the batch has prompts {}: use the same version everywhere",
                durable::version(),
                setup.prompts
            ));
            return Err(problem.into());
        }
        let own = settings::worker(self.global)?;
        let mut plan = setup::of_task(own, setup, criteria, loop_settings.clone())?;
        let quiet = self.global.quiet;
        // If programs may run, an error means that one is missing on this worker.
        let allowed = self.args.allow_exec;
        let of_program = |error| {
            if allowed {
                Failure::OfWorker(error)
            } else {
                Failure::OfTask(error)
            }
        };
        let tools = exec::tools(&plan, allowed).map_err(of_program)?;
        let writer_tools =
            exec::writer_tools_in(None, &setup.tools, allowed).map_err(of_program)?;
        let templates = settings::templates(&plan)?;
        if templates.as_ref().map(|templates| templates.hash()) != setup.templates_hash {
            return Err(Failure::OfWorker(CliError::usage(
                "the batch uses custom templates that this worker does not have: set the worker's \
                 `prompt_dir` to the same",
            )));
        }
        let evidence = match &setup.evidence_hash {
            Some(_) => {
                knowledge::look_in(&self.args.evidence, &plan, quiet).map_err(Failure::OfWorker)?
            }
            None => None,
        };
        if evidence.as_ref().map(|evidence| evidence.hash()) != setup.evidence_hash {
            return Err(Failure::OfWorker(CliError::usage(
                "the batch uses evidence that this worker does not have: start the worker with the \
                 same `--evidence`",
            )));
        }
        let client = HttpClient::new(plan.settings().timeouts.get());
        let longest = Task::new("x".repeat(length));
        let opened = models::open_on(client, &plan, &longest, None, quiet).await?;
        let prices = setup::prices(setup, &plan.config);
        // Decide and report this once per plan, not per task.
        let max_cost = prices::limit(&plan, &prices, opened.asked(&plan), quiet)?;
        plan.resolved.settings.loop_settings.max_cost = max_cost;
        Ok(Ready {
            plan,
            opened,
            prices,
            tools,
            writer_tools,
            evidence,
            templates,
        })
    }
}
