//! From settings to open models: which model, at which address, with which key.

mod choose;
mod connect;
#[cfg(feature = "embedded")]
mod embedded;
mod file;
mod name;
mod preview;
mod roles;
mod trust;
mod window;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::CliError;
use super::settings::Plan;
use super::{prices, printer};
use crate::config::{Origin, Settings};
use crate::engine::{Loop, LoopBuilder};
use crate::evaluate::{JudgeModel, OtherModel, VerdictCache};
use crate::model::{ChatModel, Exchange, HttpClient, Sampling, Think};
use crate::types::{Evaluator, LoopSettings, ModelId, Prices, Task};

use self::connect::OpenModel;
pub(super) use self::connect::{Backend, Providers};
#[cfg(feature = "embedded")]
pub(super) use self::embedded::{fetch, local};
pub(super) use self::file::FileModels;
pub(super) use self::name::known as known_providers;
pub(super) use self::preview::{ModelPreview, preview};
pub(super) use self::roles::{Member, ModelRoles};
pub(super) use self::window::likely_draft;

/// The models of a run, and their call settings.
#[derive(Clone)]
pub(super) struct Opened {
    pub(super) writer: Arc<dyn ChatModel>,
    pub(super) writer_sampling: Sampling,
    pub(super) think: Think,
    pub(super) stronger: Option<Arc<dyn ChatModel>>,
    pub(super) judge: JudgeModel,
    /// Whether drafts are evaluated by checks only, because the judge is a model that is known to be unable to judge.
    checks_only: bool,
    /// Whether the user's address applies to the writer.
    pub(super) at_given_address: bool,
    /// Whether the user's own server forwards the writer's prompts to another host.
    pub(super) writer_in_cloud: bool,
}

impl Opened {
    /// Wraps each model.
    pub(super) fn behind(
        self,
        mut behind: impl FnMut(Arc<dyn ChatModel>) -> Arc<dyn ChatModel>,
    ) -> Self {
        Self {
            writer: behind(self.writer),
            stronger: self.stronger.map(&mut behind),
            judge: self.judge.behind(behind),
            ..self
        }
    }
}

impl Opened {
    /// Starts the loop of a plan with these models and prices. Verdicts are stored in `cache`.
    ///
    /// # Errors
    /// If the user limits the cost and a model has no price.
    pub(super) fn into_loop(
        self,
        plan: &Plan,
        cache: Option<Arc<dyn VerdictCache>>,
        prices: Prices,
        quiet: bool,
    ) -> Result<LoopBuilder, CliError> {
        let mut criteria = plan.criteria.clone();
        if self.checks_only {
            criteria.judge_settings.enabled = Some(false);
        }
        let max_cost = prices::limit(plan, &prices, self.asked(plan), quiet)?;
        let settings = LoopSettings {
            max_cost,
            ..plan.settings().loop_settings.clone()
        };
        Ok(Loop::builder(self.writer, Arc::new(criteria))
            .sampling(self.writer_sampling)
            .think(self.think)
            .stronger(self.stronger)
            .judge(JudgeModel {
                cache,
                ..self.judge
            })
            .settings(settings)
            .prices(prices))
    }

    /// Returns the models that a run may call, possibly with duplicates.
    pub(super) fn asked<'a>(&'a self, plan: &Plan) -> impl Iterator<Item = &'a ModelId> {
        let judged = plan.judged && plan.criteria.need_judge();
        let judge = judged.then_some(&self.judge.model);
        let others = self.judge.others.values().map(|other| &other.model);
        [Some(&self.writer), self.stronger.as_ref(), judge]
            .into_iter()
            .flatten()
            .chain(others)
            .map(|model| model.id())
    }
}

/// Chooses and opens the models of a run, and reports them on stderr with the reason. `given` is the initial
/// text, and `answered` are the calls that a resumed run has already made. Without evaluation, the writer
/// also takes the place of the judge, which is never called.
pub(super) async fn open(
    plan: &Plan,
    task: &Task,
    given: Option<&str>,
    answered: &[Exchange],
    quiet: bool,
) -> Result<Opened, CliError> {
    let providers = Providers::new(&plan.config, plan.settings()).with_answered(answered);
    open_by(providers, plan, task, given, quiet).await
}

/// Like [`open`], with connections shared with other runs.
pub(super) async fn open_on(
    client: HttpClient,
    plan: &Plan,
    task: &Task,
    given: Option<&str>,
    quiet: bool,
) -> Result<Opened, CliError> {
    let providers = Providers::new(&plan.config, plan.settings()).with_client(client);
    open_by(providers, plan, task, given, quiet).await
}

async fn open_by(
    providers: Providers<'_>,
    plan: &Plan,
    task: &Task,
    given: Option<&str>,
    quiet: bool,
) -> Result<Opened, CliError> {
    let settings = plan.settings();
    let mut providers = providers.quietly(quiet);
    let window = window::RunWindow::of_run(plan, task, given);
    let chosen = choose::writer(plan, &providers).await?;
    let (writer_name, why) = (chosen.name, chosen.why);
    let at_given_address = chosen.at_given_address;
    if at_given_address {
        providers = providers.with_given_address(&writer_name.provider);
    }
    let writer = providers.open(&writer_name, &window, quiet).await?;
    if !quiet {
        printer::say(&format!(
            "model: {}, {why}{}",
            writer.model.id(),
            writer.about()
        ));
    }
    let judge_name = choose::judge(plan, &providers, &writer_name)?;
    let checks_only =
        plan.judged && is_checks_only(plan, judge_name.as_ref().unwrap_or(&writer_name), quiet);
    let judge = match judge_name {
        Some(name) if !name.is(&writer_name) && plan.judged && !checks_only => {
            let judge = providers.open_beside(&name, &window, quiet).await?;
            if !quiet {
                printer::say(&format!("judge: {}{}", judge.model.id(), judge.about()));
            }
            judge
        }
        _ => writer.clone(),
    };
    let others = other_judges(plan, &providers, &writer_name, &window, quiet).await?;
    let stronger = match choose::stronger(plan, &providers, &writer_name)? {
        Some(name) if !name.is(&writer_name) && plan.judged => {
            let stronger = providers.open_beside(&name, &window, quiet).await?;
            if !quiet {
                printer::say(&format!(
                    "stronger model: {}{}",
                    stronger.model.id(),
                    stronger.about()
                ));
            }
            Some(stronger.model)
        }
        _ => None,
    };
    let think = settings.think.unwrap_or_default();
    Ok(Opened {
        writer: writer.model,
        writer_sampling: window.writer_sampling(settings, &writer_name.provider),
        think,
        stronger,
        judge: JudgeModel {
            others,
            ..judge_model(judge, settings)
        },
        checks_only,
        at_given_address,
        writer_in_cloud: writer.in_cloud,
    })
}

/// Returns whether drafts are evaluated by checks only, because this judge cannot judge and the user does not insist on
/// it. Prints what that means before anything is spent.
fn is_checks_only(plan: &Plan, judge: &name::ModelName, quiet: bool) -> bool {
    let insisted = (plan.resolved.origin("judge.enabled"))
        .is_some_and(|origin| !matches!(origin, Origin::BuiltIn));
    if judge.can_judge() || insisted || !plan.criteria.need_judge() {
        return false;
    }
    if !quiet {
        let names: Vec<String> = plan
            .criteria
            .for_judge()
            .map(|criterion| format!("`{}`", criterion.name))
            .collect();
        printer::say(&format!(
            "warning: this model cannot judge, so drafts are evaluated by checks only; not evaluated: {}; \
             name a judge with `--judge-model`",
            names.join(", ")
        ));
    }
    true
}

/// Chooses and opens the judge of texts, and reports it on stderr with the reason. `longest` is the longest
/// text.
/// `None` if that model cannot judge.
pub(super) async fn open_judge(
    plan: &Plan,
    task: &Task,
    longest: &str,
    quiet: bool,
) -> Result<Option<JudgeModel>, CliError> {
    let settings = plan.settings();
    let mut providers = Providers::new(&plan.config, settings).quietly(quiet);
    let window = window::RunWindow::of_text(plan, task, longest);
    let chosen = choose::writer(plan, &providers).await?;
    if chosen.at_given_address {
        providers = providers.with_given_address(&chosen.name.provider);
    }
    let (name, why) = match choose::judge(plan, &providers, &chosen.name)? {
        Some(name) => (name, String::new()),
        None => (chosen.name, format!(", {}", chosen.why)),
    };
    if is_checks_only(plan, &name, quiet) {
        return Ok(None);
    }
    let others = other_judges(plan, &providers, &name, &window, quiet).await?;
    let judge = providers.open(&name, &window, quiet).await?;
    if !quiet {
        let id = judge.model.id();
        printer::say(&format!("judge: {id}{why}{}", judge.about()));
    }
    Ok(Some(JudgeModel {
        others,
        ..judge_model(judge, settings)
    }))
}

/// Chooses and opens the writer for a call outside of a run, and reports it on stderr with the reason.
pub(super) async fn open_alone(
    plan: &Plan,
    quiet: bool,
) -> Result<(Arc<dyn ChatModel>, Sampling), CliError> {
    let mut providers = Providers::new(&plan.config, plan.settings()).quietly(quiet);
    let window = window::RunWindow::of_run(plan, &Task::default(), None);
    let chosen = choose::writer(plan, &providers).await?;
    if chosen.at_given_address {
        providers = providers.with_given_address(&chosen.name.provider);
    }
    let opened = providers.open(&chosen.name, &window, quiet).await?;
    if !quiet {
        let id = opened.model.id();
        printer::say(&format!("model: {id}, {}{}", chosen.why, opened.about()));
    }
    let sampling = window.writer_sampling(plan.settings(), &chosen.name.provider);
    Ok((opened.model, sampling))
}

/// Opens the models that criteria name, and reports them on stderr. A name without a provider uses the
/// provider of `main`.
async fn other_judges(
    plan: &Plan,
    providers: &Providers<'_>,
    main: &name::ModelName,
    window: &window::RunWindow,
    quiet: bool,
) -> Result<BTreeMap<String, OtherModel>, CliError> {
    let mut others = BTreeMap::new();
    if !plan.judged {
        return Ok(others);
    }
    for criterion in &plan.criteria.criteria {
        let Evaluator::Llm(config) = &criterion.evaluator else {
            continue;
        };
        let Some(text) = config
            .model
            .as_ref()
            .filter(|text| !others.contains_key(*text))
        else {
            continue;
        };
        let by = trust::NamedBy::criterion(&config.origin, &plan.config);
        let name = choose::beside(text, by, &plan.config, main);
        let opened = providers.open_beside(&name, window, quiet).await?;
        if !quiet {
            let (id, leaves) = (opened.model.id(), opened.about());
            printer::say(&format!("judge of `{}`: {id}{leaves}", criterion.name));
        }
        let judge = judge_model(opened, plan.settings());
        let other = OtherModel {
            sampling: judge.sampling,
            think: judge.think,
            model: judge.model,
        };
        others.insert(text.clone(), other);
    }
    Ok(others)
}

/// Configures a model as a judge. Its verdicts should be reproducible, so local models use temperature 0.
/// Cloud models often reject that setting, and reasoning models loop without randomness.
fn judge_model(opened: OpenModel, settings: &Settings) -> JudgeModel {
    let think = match settings.judge.think() {
        Think::Auto if opened.always_reasons => Think::Low,
        think => think,
    };
    let sampling = Sampling {
        temperature: (opened.local && !think.is_requested()).then_some(0.0),
        top_p: None,
        seed: settings.seed.or(opened.local.then_some(0)),
        max_tokens: None,
    };
    JudgeModel::new(opened.model, sampling, think)
}
