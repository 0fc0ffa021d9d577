//! The tasks of a batch, handed in at a Restate server.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::memories::Memories;
use crate::batch::durable::{
    Admin, EngineAddress, EngineError, Ingress, Job, JobPlan, Notice, Rates,
};
use crate::batch::{
    Adjustment, Chronicle, Concurrency, Gate, Item, Means, Remote, RemoteTask, Row,
};
use crate::cli::args::{BatchArgs, GlobalArgs};
use crate::cli::commands::worker::unusable;
use crate::cli::error::CliError;
use crate::cli::settings::{self, Plan};
use crate::cli::{knowledge, models, printer, setup};
use crate::evidence::Gatherer;
use crate::model::{ErrorClass, ModelError};
use crate::types::{ExitCode, ReflectionCriteria, Setup};

/// The most sets of criteria that are kept ready; more of them are read again and again.
const MOST: usize = 64;

/// How often the server is asked whether any worker can do the tasks.
const WATCH: Duration = Duration::from_secs(5);

/// Hands tasks in, and waits for their rows.
pub(super) struct Engine<'a> {
    args: &'a BatchArgs,
    global: &'a GlobalArgs,
    ingress: Ingress,
    admin: Admin,
    /// Hands in as many tasks as it lets.
    gate: &'a Gate,
    /// Nobody waits for rows any more.
    end: &'a CancellationToken,
    /// Tells this batch from others with the same tasks.
    name: String,
    evidence: Option<Arc<Gatherer>>,
    /// What tasks are told from memory; `None` if they are told nothing.
    memories: Option<Memories>,
    usual: Way,
    others: RefCell<HashMap<String, Result<Way, String>>>,
    /// How many have come.
    rows: Cell<u64>,
    /// What was in the way last.
    told: RefCell<Option<EngineError>>,
}

/// How tasks with the same criteria are done.
#[derive(Clone)]
struct Way {
    plan: JobPlan,
    /// What there is to do them otherwise with.
    means: Means,
}

impl Way {
    /// The model that writes, as `provider:model`.
    fn writer(&self) -> &str {
        let model = self.plan.setup.settings["model"].as_str();
        model.unwrap_or_default()
    }
}

impl<'a> Engine<'a> {
    /// Finds the server. No model is opened here: workers do that.
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
        let usual = way(plan, args, evidence.as_deref())?;
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
            told: RefCell::default(),
        })
    }

    /// The model that writes.
    pub(super) fn writer(&self) -> String {
        self.usual.writer().to_owned()
    }

    /// Says what memory has done for the tasks, and keeps what the batch teaches, if it is in use.
    pub(super) fn learn(&self, batch: &Chronicle, criteria: &ReflectionCriteria, quiet: bool) {
        if let Some(memories) = &self.memories {
            memories.conclude(batch, criteria, self.usual.writer(), quiet);
        }
    }

    /// Ends the batch where no worker can do its tasks.
    pub(super) async fn watch(&self) -> Infallible {
        loop {
            let before = self.rows.get();
            tokio::time::sleep(WATCH).await;
            if self.rows.get() > before {
                continue;
            }
            // A server that does not answer is waited for, as everywhere.
            if let Ok(Some(problem)) = self.admin.is_hopeless(&self.name).await {
                let problem = format!("no worker can do the tasks: {problem}");
                self.gate
                    .give_up(&ModelError::new(ErrorClass::Unreachable, problem));
            }
        }
    }

    /// Cancels what was handed in and has no row yet, and says how much that was.
    pub(super) async fn cancel(&self) {
        let is_ours = |key: &str| self.ingress.has_handed_in(key);
        match self.admin.cancel(&self.name, is_ours).await {
            Ok(cancelled) => say_cancelled(cancelled, self.global.quiet),
            Err(error) => printer::say(&format!(
                "warning: tasks that were handed in go on, since they cannot be cancelled: {error}"
            )),
        }
    }

    /// How tasks with these criteria are done.
    fn way_for(&self, criteria: Option<&str>) -> Result<Way, String> {
        let named = criteria.filter(|name| Some(*name) != self.args.criteria.as_deref());
        let Some(name) = named else {
            return Ok(self.usual.clone());
        };
        let mut others = self.others.borrow_mut();
        if let Some(known) = others.get(name) {
            return known.clone();
        }
        let made = settings::batch(self.args.tasks_args(), Some(name), self.global)
            .and_then(|plan| way(plan, self.args, self.evidence.as_deref()))
            .map_err(|error| error.message);
        if others.len() >= MOST {
            others.clear();
        }
        others.insert(name.to_owned(), made.clone());
        made
    }

    /// Says what is in the way, once.
    fn tell(&self, error: &EngineError) {
        let mut told = self.told.borrow_mut();
        if told.as_ref() == Some(error) || self.global.quiet {
            return;
        }
        let waits = match error {
            EngineError::NoWorker => "; waiting for one (`reflect worker --register`)",
            _ => "; waiting for it",
        };
        printer::say(&format!("warning: {error}{waits}"));
        *told = Some(error.clone());
    }
}

impl Remote for Engine<'_> {
    fn task(&self, line: u64, id: String, item: Item) -> Result<Box<dyn RemoteTask + '_>, String> {
        let way = self.way_for(item.criteria.as_deref())?;
        let memories = self.memories.as_ref();
        let told = memories.map(|it| it.recall(&item.task, &way.plan.criteria, way.writer()));
        let Way { plan, means } = way;
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
            told: told.unwrap_or_default(),
            adjustment: None,
        };
        Ok(Box::new(HandedIn {
            engine: self,
            job,
            means,
        }))
    }
}

/// A task that workers do.
struct HandedIn<'a> {
    engine: &'a Engine<'a>,
    job: Job,
    means: Means,
}

#[async_trait::async_trait(?Send)]
impl RemoteTask for HandedIn<'_> {
    fn means(&self) -> Means {
        self.means.clone()
    }

    async fn attempt(&mut self, adjustment: Option<Adjustment>) -> Option<Row> {
        self.job.adjustment = adjustment;
        let Self { engine, job, .. } = self;
        let again = engine.args.retry_failed;
        let tell = |notice: Notice<'_>| match notice {
            Notice::Waits(error) => engine.tell(error),
            Notice::HandedIn(url) if job.asks && !engine.global.quiet => {
                printer::say(&format!("task `{}`: {url}/question, {url}/decide", job.id));
            }
            Notice::HandedIn(_) => {}
        };
        let done = tokio::select! {
            biased;
            () = engine.end.cancelled() => return None,
            done = engine.ingress.done(job, &engine.name, again, tell) => done,
        };
        engine.rows.set(engine.rows.get() + 1);
        if let (Concurrency::Auto, Some(room)) = (engine.args.concurrency, engine.ingress.room()) {
            engine.gate.set_limit(room);
        }
        if let (Some(memories), Some(run)) = (&engine.memories, &done.compared) {
            memories.take_in(run);
        }
        Some(done.row)
    }
}

/// Cancels the tasks of a batch that was handed in before, by its name.
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
        printer::say(&match tasks {
            1 => "cancelled 1 task that was handed in".to_owned(),
            tasks => format!("cancelled {tasks} tasks that were handed in"),
        });
    }
}

/// What workers receive of a plan, and what else they could do. No path of this machine is in it.
fn way(mut plan: Plan, args: &BatchArgs, evidence: Option<&Gatherer>) -> Result<Way, CliError> {
    let foreseen = models::foresee(&plan)?;
    let Some((writer, _)) = foreseen.writer else {
        return Err(CliError::usage(
            "workers must know which model writes: each would choose one by itself",
        )
        .hint("name it with its provider: `--model PROVIDER:MODEL`"));
    };
    if foreseen.at_given_address {
        return Err(CliError::usage(
            "workers ask models at their own addresses, and not at the one that is set here",
        )
        .hint("leave `base_url` out, and set it in the configuration of the workers"));
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
    Ok(Way {
        means: Means {
            stronger: foreseen.stronger,
            strategy: settings.clone().or(&plan.criteria.loop_settings).strategy(),
        },
        plan: JobPlan {
            settings,
            criteria: plan.criteria,
            setup,
        },
    })
}
