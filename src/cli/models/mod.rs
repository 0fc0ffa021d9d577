//! From settings to models: which one is meant, where it is, with which key.

mod choose;
mod connect;
#[cfg(feature = "embedded")]
mod embedded;
mod name;
mod window;

use std::sync::Arc;

use super::error::CliError;
use super::printer;
use super::settings::Plan;
use crate::config::Settings;
use crate::evaluate::JudgeModel;
use crate::model::{ChatModel, Sampling, Think};
use crate::types::Task;

pub(super) use self::connect::{Backend, Providers};
#[cfg(feature = "embedded")]
pub(super) use self::embedded::{fetch, local};

/// The models of a run, and how they are asked.
pub(super) struct Opened {
    pub(super) writer: Arc<dyn ChatModel>,
    pub(super) judge: Arc<dyn ChatModel>,
    pub(super) stronger: Option<Arc<dyn ChatModel>>,
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
    let stronger = match choose::stronger(plan, &providers, &writer_name)? {
        Some(name) if name != writer_name => {
            let stronger = providers.open(&name, &window, quiet).await?;
            if !quiet {
                printer::say(&format!(
                    "stronger model, where there is no progress: {}{}",
                    stronger.model.id(),
                    stronger.leaves()
                ));
            }
            Some(stronger.model)
        }
        _ => None,
    };
    let think = settings.think.unwrap_or_default();
    let mut writer_sampling = settings.sampling();
    if writer_name.provider == "embedded" && writer_sampling.max_tokens.is_none() {
        writer_sampling.max_tokens = Some(window.embedded_draft());
    }
    let judge_sampling = judge_sampling(settings, judge.local);
    Ok(Opened {
        writer: writer.model,
        judge: judge.model,
        stronger,
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
    let judge = providers.open(&name, &window, quiet).await?;
    if !quiet {
        let id = judge.model.id();
        printer::say(&format!("judge: {id}{why}{}", judge.leaves()));
    }
    Ok(JudgeModel {
        sampling: judge_sampling(settings, judge.local),
        think: settings.think.unwrap_or_default(),
        model: judge.model,
        always: false,
    })
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
