//! A batch whose tasks go to a Restate server.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::memories::Memories;
use crate::batch::durable::{Admin, EngineError, Ingress, Job, JobPlan, Notice, Rates};
use crate::batch::{
    Adjustment, BatchHistory, Concurrency, EngineAddress, Gate, Item, Means, Remote, RemoteTask,
    Row,
};
use crate::cli::args::{BatchArgs, GlobalArgs};
use crate::cli::commands::worker::unusable;
use crate::cli::error::CliError;
use crate::cli::settings::{self, Plan};
use crate::cli::{knowledge, models, printer, setup};
use crate::evidence::Gatherer;
use crate::model::{ErrorClass, ModelError};
use crate::text::counted;
use crate::types::{ExitCode, ReflectionCriteria, Setup};

/// The maximum number of cached criteria sets. A full cache is cleared.
const MAX_CACHED: usize = 64;

/// How often to check whether any worker can run the tasks.
const WATCH: Duration = Duration::from_secs(5);

/// The number of failed attempts after which no worker is expected to run the tasks.
const MAX_ATTEMPTS: u64 = 5;

/// Submits tasks and waits for their rows.
pub(super) struct Engine<'a> {
    args: &'a BatchArgs,
    global: &'a GlobalArgs,
    ingress: Ingress,
    admin: Admin,
    /// Limits how many tasks are submitted at once.
    gate: &'a Gate,
    /// Cancelled when the batch stops waiting for rows.
    end: &'a CancellationToken,
    /// Separates this batch from others with the same tasks.
    name: String,
    evidence: Option<Arc<Gatherer>>,
    /// Memory for the tasks; `None` if memory is not in use.
    memories: Option<Memories>,
    usual: JobTemplate,
    others: RefCell<HashMap<String, Result<JobTemplate, String>>>,
    /// The number of rows received.
    rows: Cell<u64>,
    /// The last warning.
    warned: RefCell<Option<EngineError>>,
}

/// The part of a job that tasks with the same criteria share.
#[derive(Clone)]
struct JobTemplate {
    plan: JobPlan,
    /// What a retry can change: the model and the strategy.
    means: Means,
}

impl JobTemplate {
    /// The writer, as `provider:model`.
    fn writer(&self) -> &str {
        let model = self.plan.setup.settings["model"].as_str();
        model.unwrap_or_default()
    }
}

impl<'a> Engine<'a> {
    /// Connects to the server. Opens no model: workers do that.
    pub(super) async fn open(
        args: &'a BatchArgs,
        global: &'a GlobalArgs,
        plan: Plan,
        address: &EngineAddress,
        gate: &'a Gate,
        end: &'a CancellationToken,
    ) -> Result<Self, CliError> {
        let memories = (plan.settings().memory == Some(true))
            .then(|| Memories::open(None))
            .transpose()?;
        let evidence = knowledge::open_evidence(&args.knowledge, &plan, global.quiet)?;
        let usual = job_template(plan, args, evidence.as_deref())?;
        let ingress = Ingress::new(address).map_err(|it| unusable(&it))?;
        ingress.check().await.map_err(|it| unusable(&it))?;
        let admin = admin(args, address)?;
        if !global.quiet {
            printer::say(&format!(
                "model: {}, on the workers of {address}",
                usual.writer()
            ));
        }
        Ok(Self {
            args,
            global,
            ingress,
            admin,
            gate,
            end,
            name: address.name().to_owned(),
            evidence,
            memories,
            usual,
            others: RefCell::default(),
            rows: Cell::default(),
            warned: RefCell::default(),
        })
    }

    /// The writer, as `provider:model`.
    pub(super) fn writer(&self) -> String {
        self.usual.writer().to_owned()
    }

    /// Reports how memory was used and stores insights from the batch, if memory is in use.
    pub(super) fn learn(&self, batch: &BatchHistory, criteria: &ReflectionCriteria, quiet: bool) {
        if let Some(memories) = &self.memories {
            memories.conclude(batch, criteria, self.usual.writer(), quiet);
        }
    }

    /// Stops the batch if no worker can run its tasks: workers hand them back `MAX_ATTEMPTS` times without a
    /// row in between. One attempt proves little, because while other workers are busy, tasks go back to the
    /// same unfit worker.
    pub(super) async fn watch(&self) -> Infallible {
        let mut since = (self.rows.get(), 0);
        loop {
            tokio::time::sleep(WATCH).await;
            // Keep waiting while the server does not answer.
            let Ok(Some((attempts, problem))) = self.admin.handed_back(&self.name).await else {
                continue;
            };
            if self.rows.get() > since.0 {
                since = (self.rows.get(), attempts);
            } else if attempts >= since.1 + MAX_ATTEMPTS {
                let problem = format!("no worker can do the tasks: {problem}");
                self.gate
                    .give_up(&ModelError::new(ErrorClass::Unreachable, problem));
            }
        }
    }

    /// Cancels the submitted tasks that have no row yet, and reports how many.
    pub(super) async fn cancel(&self) {
        let is_ours = |key: &str| self.ingress.has_submitted(key);
        match self.admin.cancel(&self.name, is_ours).await {
            Ok(cancelled) => say_cancelled(cancelled, self.global.quiet),
            Err(error) => printer::say(&format!(
                "warning: cannot cancel the submitted tasks, so they continue: {error}"
            )),
        }
    }

    /// Returns the template for tasks with these criteria, from the cache if possible.
    fn template_for(&self, criteria: Option<&str>) -> Result<JobTemplate, String> {
        let named = criteria.filter(|name| self.args.criteria != [*name]);
        let Some(name) = named else {
            return Ok(self.usual.clone());
        };
        let mut others = self.others.borrow_mut();
        if let Some(known) = others.get(name) {
            return known.clone();
        }
        let made = settings::batch(self.args.tasks_args(), Some(name), self.global)
            .and_then(|plan| job_template(plan, self.args, self.evidence.as_deref()))
            .map_err(|error| error.message);
        if others.len() >= MAX_CACHED {
            others.clear();
        }
        others.insert(name.to_owned(), made.clone());
        made
    }

    /// Warns about an unusable server, once per error.
    fn warn(&self, error: &EngineError) {
        let mut warned = self.warned.borrow_mut();
        if warned.as_ref() == Some(error) || self.global.quiet {
            return;
        }
        let waits = match error {
            EngineError::NoWorker => "; waiting for one (`reflect worker --register`)",
            _ => "; waiting for it",
        };
        printer::say(&format!("warning: {error}{waits}"));
        *warned = Some(error.clone());
    }
}

impl Remote for Engine<'_> {
    fn task(&self, line: u64, id: String, item: Item) -> Result<Box<dyn RemoteTask + '_>, String> {
        let template = self.template_for(item.criteria.as_deref())?;
        let memories = self.memories.as_ref();
        let recalled =
            memories.map(|it| it.recall(&item.task, &template.plan.criteria, template.writer()));
        let JobTemplate { plan, means } = template;
        let job = Job {
            id,
            line,
            task: item.task,
            plan,
            rates: Rates {
                requests_per_minute: self.args.rates.requests_per_minute,
                tokens_per_minute: self.args.rates.tokens_per_minute,
            },
            asks: self.args.await_decisions,
            recalled: recalled.unwrap_or_default(),
            adjustment: None,
        };
        Ok(Box::new(SubmittedTask {
            engine: self,
            job,
            means,
        }))
    }
}

/// A task submitted to the workers.
struct SubmittedTask<'a> {
    engine: &'a Engine<'a>,
    job: Job,
    means: Means,
}

#[async_trait::async_trait(?Send)]
impl RemoteTask for SubmittedTask<'_> {
    fn means(&self) -> Means {
        self.means.clone()
    }

    async fn attempt(&mut self, adjustment: Option<Adjustment>) -> Option<Row> {
        self.job.adjustment = adjustment;
        let Self { engine, job, .. } = self;
        let again = engine.args.retry_failed;
        let notify = |notice: Notice<'_>| match notice {
            Notice::Waits(error) => engine.warn(error),
            Notice::Submitted(url) if job.asks && !engine.global.quiet => {
                printer::say(&format!("task `{}`: {url}/question, {url}/decide", job.id));
            }
            Notice::Submitted(_) => {}
        };
        let done = tokio::select! {
            biased;
            () = engine.end.cancelled() => return None,
            done = engine.ingress.done(job, &engine.name, again, notify) => done,
        };
        engine.rows.set(engine.rows.get() + 1);
        if let (Concurrency::Auto, Some(room)) = (engine.args.concurrency, engine.ingress.room()) {
            engine.gate.set_limit(room);
        }
        if let (Some(memories), Some(run)) = (&engine.memories, &done.compared) {
            memories.measure_remote(run);
        }
        Some(done.row)
    }
}

/// Cancels the tasks of an earlier batch by its name.
pub(super) async fn cancel(args: &BatchArgs, quiet: bool) -> Result<ExitCode, CliError> {
    let Some(address) = &args.engine else {
        return Err(CliError::usage(
            "`--cancel` needs the batch: `--engine restate://HOST/NAME`",
        ));
    };
    let admin = admin(args, address)?;
    let cancelled = admin.cancel(address.name(), |_| true).await;
    let cancelled = cancelled.map_err(|error| unusable(&error))?;
    say_cancelled(cancelled, quiet);
    Ok(ExitCode::Success)
}

fn admin(args: &BatchArgs, address: &EngineAddress) -> Result<Admin, CliError> {
    let url = args.admin.clone().unwrap_or_else(|| address.admin());
    Admin::new(url).map_err(|error| unusable(&error))
}

fn say_cancelled(tasks: usize, quiet: bool) {
    if !quiet {
        let tasks = counted(u64::try_from(tasks).unwrap_or(u64::MAX), "submitted task");
        printer::say(&format!("cancelled {tasks}"));
    }
}

/// Builds the part of a plan that workers receive, without paths of this machine.
fn job_template(
    mut plan: Plan,
    args: &BatchArgs,
    evidence: Option<&Gatherer>,
) -> Result<JobTemplate, CliError> {
    let preview = models::preview(&plan)?;
    let Some((writer, _)) = preview.writer else {
        return Err(CliError::usage(
            "no model set; `--engine` needs one, so that all workers use the same",
        )
        .hint("name it with its provider: `--model PROVIDER:MODEL`"));
    };
    if preview.at_given_address {
        return Err(CliError::usage(
            "workers call models at their own addresses, so `base_url` does not apply",
        )
        .hint("remove `base_url` here, and set it in the configuration of the workers"));
    }
    let templates = settings::templates(&plan)?;
    plan.resolved.settings = plan.resolved.settings.of_task();
    let given = setup::Given {
        writer: writer.to_string(),
        at_given_address: false,
        tools: &args.loops.tools,
        evidence: &[],
    };
    let setup = Setup {
        directory: PathBuf::new(),
        ..setup::of(&plan, given, evidence, templates.as_deref())?
    };
    let settings = plan.settings().loop_settings.clone();
    Ok(JobTemplate {
        means: Means {
            stronger: preview.stronger,
            strategy: settings.clone().or(&plan.criteria.loop_settings).strategy(),
        },
        plan: JobPlan {
            settings,
            criteria: plan.criteria,
            setup,
        },
    })
}
