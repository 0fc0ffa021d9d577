//! The loops of a batch: one per criteria set, with the same models behind the same gate.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::sync::Mutex;
use uuid::Uuid;

use super::memories::Memories;
use crate::batch::{BatchHistory, CriteriaError, Gate, Host, Paced};
use crate::cli::args::{GlobalArgs, TasksArgs};
use crate::cli::error::CliError;
use crate::cli::models::{self, Opened};
use crate::cli::observers::RunLog;
use crate::cli::settings::{self, Plan};
use crate::cli::store::{self, SharedStore};
use crate::cli::{exec, knowledge, prices, printer};
use crate::criteria;
use crate::engine::{Loop, Observer};
use crate::evidence::Gatherer;
use crate::model::HttpClient;
use crate::prompt::Templates;
use crate::types::{Evaluator, ReflectionCriteria, Stamped, Task};

/// The maximum number of cached criteria sets. A full cache is cleared.
const MAX_CACHED: usize = 64;

/// Provides the loop for each task.
pub(in crate::cli::commands) struct Loops<'a> {
    args: TasksArgs<'a>,
    global: &'a GlobalArgs,
    gate: Arc<Gate>,
    client: HttpClient,
    /// Whether the cost of all tasks together is limited.
    limits_cost: bool,
    /// The longest task, which determines the context window.
    longest: Task,
    opened: Opened,
    store: Option<SharedStore>,
    evidence: Option<Arc<Gatherer>>,
    templates: Option<Arc<Templates>>,
    /// Memory for the tasks; `None` if memory is not in use.
    memories: Option<Memories>,
    usual: Option<Arc<Loop>>,
    others: Mutex<HashMap<String, Result<Arc<Loop>, CriteriaError>>>,
}

impl<'a> Loops<'a> {
    /// Opens the models and builds the loop for tasks that name no criteria.
    pub(in crate::cli::commands) async fn open(
        args: TasksArgs<'a>,
        global: &'a GlobalArgs,
        plan: Plan,
        longest: Task,
        gate: &Arc<Gate>,
        max_cost: Option<f64>,
    ) -> Result<Self, CliError> {
        // Report missing permissions before opening anything.
        exec::tools(&plan, args.loops.allow_exec)?;
        let client = HttpClient::new(plan.settings().timeouts.get());
        let evidence = knowledge::open_evidence(args.knowledge, &plan, global.quiet)?;
        let store = SharedStore::open(&plan, args.no_log)?;
        let memories = (plan.settings().memory == Some(true))
            .then(|| Memories::open(store.clone()))
            .transpose()?;
        let quiet = global.quiet;
        let opened = models::open_on(client.clone(), &plan, &longest, None, quiet).await?;
        let mut loops = Self {
            args,
            global,
            gate: Arc::clone(gate),
            client,
            limits_cost: max_cost.is_some(),
            longest,
            opened: paced(opened, gate),
            store,
            evidence,
            templates: settings::templates(&plan)?,
            memories,
            usual: None,
            others: Mutex::default(),
        };
        let usual = loops.build(&plan, loops.opened.clone())?;
        loops.usual = Some(Arc::new(usual));
        Ok(loops)
    }

    /// The writer, as `provider:model`.
    pub(super) fn writer(&self) -> String {
        self.opened.writer.id().to_string()
    }

    /// Reports how memory was used and stores insights from the batch, if memory is in use.
    pub(super) fn learn(&self, batch: &BatchHistory, criteria: &ReflectionCriteria, quiet: bool) {
        if let Some(memories) = &self.memories {
            memories.conclude(batch, criteria, &self.writer(), quiet);
        }
    }

    /// Warns early about unusable criteria. The rows of their tasks report the problem as well.
    pub(super) async fn check_criteria(&self, names: &BTreeSet<String>, quiet: bool) {
        for name in names {
            if let (Err(problem), false) = (self.loop_for(Some(name)).await, quiet) {
                let which = if criteria::is_inline(name) {
                    "the criteria of a task".to_owned()
                } else {
                    format!("the criteria `{name}`")
                };
                printer::say(&format!("warning: {which} cannot be used: {problem}"));
            }
        }
    }

    /// Builds the loop for the criteria that a task names.
    async fn build_for(&self, name: &str) -> Result<Loop, CliError> {
        let plan = settings::batch(self.args, Some(name), self.global)?;
        let names_judges = plan.criteria.criteria.iter().any(|criterion| {
            matches!(&criterion.evaluator, Evaluator::Llm(config) if config.model.is_some())
        });
        let opened = if names_judges {
            let (client, quiet) = (self.client.clone(), self.global.quiet);
            let opened = models::open_on(client, &plan, &self.longest, None, quiet).await?;
            paced(opened, &self.gate)
        } else {
            let mut opened = self.opened.clone();
            opened.judge.others.clear();
            opened
        };
        self.build(&plan, opened)
    }

    fn build(&self, plan: &Plan, opened: Opened) -> Result<Loop, CliError> {
        let args = self.args.loops;
        let tools = exec::tools(plan, args.allow_exec)?;
        let writer_tools = exec::writer_tools(&args.tools, args.allow_exec)?;
        exec::check_names(&writer_tools, args.flow.reflect_on_tools.as_deref())?;
        if self.limits_cost {
            prices::check(plan, opened.asked(plan))?;
        }
        // Cache verdicts only in a store: an in-memory cache would grow with every task.
        let cache = self.store.as_ref();
        let cache = cache.and_then(|store| store::verdicts(&plan.criteria, Some(store)));
        let prices = plan.config.prices().clone();
        let built = opened
            .into_loop(plan, cache, prices, self.global.quiet)?
            .tools(tools)
            .writer_tools(writer_tools)
            .evidence(self.evidence.clone())
            .templates(self.templates.clone())
            .build()?;
        Ok(built)
    }
}

#[async_trait::async_trait(?Send)]
impl Host for Loops<'_> {
    async fn loop_for(&self, criteria: Option<&str>) -> Result<Arc<Loop>, CriteriaError> {
        let named = criteria.filter(|name| self.args.criteria != [*name]);
        let Some(name) = named else {
            let usual = self.usual.clone();
            return usual.ok_or_else(|| CriteriaError("there are no criteria".to_owned()));
        };
        let mut others = self.others.lock().await;
        if let Some(known) = others.get(name) {
            return known.clone();
        }
        let made = self.build_for(name).await;
        let made = made
            .map(Arc::new)
            .map_err(|error| CriteriaError(error.message));
        if others.len() >= MAX_CACHED {
            others.clear();
        }
        others.insert(name.to_owned(), made.clone());
        made
    }

    fn observer(&self) -> Box<dyn Observer> {
        match &self.store {
            Some(store) => Box::new(RunLog::new(store.clone())),
            None => Box::new(|_: &Stamped| {}),
        }
    }

    fn recall(&self, plan: &Loop, task: &mut Task) {
        if let Some(memories) = &self.memories {
            let told = memories.recall(task, plan.criteria(), &plan.writer().to_string());
            task.add_recalled(told);
        }
    }

    fn measure(&self, run_id: Uuid) {
        if let Some(memories) = &self.memories {
            memories.measure(run_id);
        }
    }
}

/// Puts the models behind a gate.
fn paced(opened: Opened, gate: &Arc<Gate>) -> Opened {
    opened.behind(|model| Arc::new(Paced::new(model, Arc::clone(gate))))
}
