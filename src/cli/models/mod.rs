//! From settings to models: which one is meant, where it is, with which key.

mod choose;
mod connect;
#[cfg(feature = "embedded")]
mod embedded;
mod name;
mod window;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::CliError;
use super::printer;
use super::settings::Plan;
use crate::config::Settings;
use crate::evaluate::{JudgeModel, OtherModel};
use crate::model::{ChatModel, Sampling, Think};
use crate::types::{Evaluator, Task};

pub(super) use self::connect::{Backend, Providers};
#[cfg(feature = "embedded")]
pub(super) use self::embedded::{fetch, local};

/// The models of a run, and how they are asked.
pub(super) struct Opened {
    pub(super) writer: Arc<dyn ChatModel>,
    pub(super) judge: Arc<dyn ChatModel>,
    pub(super) other_judges: BTreeMap<String, OtherModel>,
    pub(super) writer_sampling: Sampling,
    pub(super) judge_sampling: Sampling,
    pub(super) think: Think,
}

/// Chooses and opens the models of a run, and says on standard error which they are and why.
pub(super) async fn open(plan: &Plan, task: &Task, quiet: bool) -> Result<Opened, CliError> {
    let settings = plan.settings();
    let mut providers = Providers::new(&plan.config, settings);
    let window = window::RunWindow::of_run(plan, task);
    let chosen = choose::writer(plan, &providers).await?;
    let (writer_name, why) = (chosen.name, chosen.why);
    if chosen.at_given_address {
        providers = providers.with_given_address(&writer_name.provider);
    }
    let writer = providers.open(&writer_name, &window, quiet).await?;
    if !quiet {
        printer::say(&format!(
            "model: {}, {why}{}",
            writer.model.id(),
            writer.leaves()
        ));
    }
    let judge = match choose::judge(plan, &providers, &writer_name)? {
        Some(name) if name != writer_name => {
            let judge = providers.open(&name, &window, quiet).await?;
            if !quiet {
                printer::say(&format!("judge: {}{}", judge.model.id(), judge.leaves()));
            }
            judge
        }
        _ => writer.clone(),
    };
    let other_judges = other_judges(plan, &providers, &writer_name, &window, quiet).await?;
    let think = settings.think.unwrap_or_default();
    let mut writer_sampling = settings.sampling();
    if writer_name.provider == "embedded" && writer_sampling.max_tokens.is_none() {
        writer_sampling.max_tokens = Some(window.embedded_draft());
    }
    let judge_sampling = judge_sampling(settings, judge.local);
    Ok(Opened {
        writer: writer.model,
        judge: judge.model,
        other_judges,
        writer_sampling,
        judge_sampling,
        think,
    })
}

/// Chooses and opens the model that judges texts, and says on standard error which it is and why. `longest`
/// is the longest of these texts.
pub(super) async fn open_judge(
    plan: &Plan,
    task: &Task,
    longest: &str,
    quiet: bool,
) -> Result<JudgeModel, CliError> {
    let settings = plan.settings();
    let mut providers = Providers::new(&plan.config, settings);
    let window = window::RunWindow::of_text(plan, task, longest);
    let chosen = choose::writer(plan, &providers).await?;
    if chosen.at_given_address {
        providers = providers.with_given_address(&chosen.name.provider);
    }
    let (name, why) = match choose::judge(plan, &providers, &chosen.name)? {
        Some(name) => (name, String::new()),
        None => (chosen.name, format!(", {}", chosen.why)),
    };
    let others = other_judges(plan, &providers, &name, &window, quiet).await?;
    let judge = providers.open(&name, &window, quiet).await?;
    if !quiet {
        let id = judge.model.id();
        printer::say(&format!("judge: {id}{why}{}", judge.leaves()));
    }
    Ok(JudgeModel {
        sampling: judge_sampling(settings, judge.local),
        think: settings.think.unwrap_or_default(),
        model: judge.model,
        others,
        cache: None,
    })
}

/// Opens the models that criteria name for themselves, and says on standard error which they are. A name
/// without a provider is one of the same provider as `main`.
async fn other_judges(
    plan: &Plan,
    providers: &Providers<'_>,
    main: &name::ModelName,
    window: &window::RunWindow,
    quiet: bool,
) -> Result<BTreeMap<String, OtherModel>, CliError> {
    let mut others = BTreeMap::new();
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
        let meant = plan.config.aliases().get(text).unwrap_or(text);
        let name = choose::beside(meant, &plan.config, main);
        let opened = providers.open(&name, window, quiet).await?;
        if !quiet {
            let (id, leaves) = (opened.model.id(), opened.leaves());
            printer::say(&format!("judge of `{}`: {id}{leaves}", criterion.name));
        }
        let other = OtherModel {
            sampling: judge_sampling(plan.settings(), opened.local),
            model: opened.model,
        };
        others.insert(text.clone(), other);
    }
    Ok(others)
}

/// A judge should say the same of the same text. Where the model runs with default settings of somebody's
/// own, the likeliest token is asked for; cloud models often refuse to be told.
fn judge_sampling(settings: &Settings, local: bool) -> Sampling {
    Sampling {
        temperature: local.then_some(0.0),
        top_p: None,
        seed: settings.seed.or(local.then_some(0)),
        max_tokens: None,
    }
}
