//! What it takes to go on with a run later.

use std::path::PathBuf;

use super::error::CliError;
use super::settings::Plan;
use crate::config::{Config, Resolved, Settings};
use crate::evidence::Gatherer;
use crate::prompt::{PROMPT_VERSION, Templates};
use crate::types::{Criteria, JudgeSettings, LoopSettings, Prices, Setup};

/// What a run is given besides its plan.
pub(super) struct Given<'a> {
    /// The model that writes, as `PROVIDER:MODEL`.
    pub(super) writer: String,
    /// Whether it is at the address that the user gives.
    pub(super) at_given_address: bool,
    /// The tools, as they were typed.
    pub(super) tools: &'a [String],
    /// What evidence is looked for in.
    pub(super) evidence: &'a [PathBuf],
}

/// What is recorded of a run that begins.
pub(super) fn of(
    plan: &Plan,
    given: Given<'_>,
    evidence: Option<&Gatherer>,
    templates: Option<&Templates>,
) -> Result<Setup, CliError> {
    let directory = std::env::current_dir()
        .map_err(|error| CliError::failure(format!("there is no current directory: {error}")))?;
    let settings = plan.settings();
    let settings = Settings {
        // The one that was chosen, at the address that was chosen.
        model: Some(given.writer),
        provider: None,
        base_url: settings.base_url.clone().filter(|_| given.at_given_address),
        // These are recorded with the start of the run, or have done their work.
        loop_settings: LoopSettings::default(),
        judge: JudgeSettings::default(),
        profile: None,
        criteria: None,
        criteria_path: None,
        context_messages: None,
        ..settings.clone()
    };
    let settings = serde_json::to_value(&settings)
        .map_err(|error| CliError::failure(format!("the settings cannot be recorded: {error}")))?;
    Ok(Setup {
        directory,
        settings: without_nulls(settings),
        prompts: PROMPT_VERSION,
        templates_hash: templates.map(Templates::hash),
        tools: given.tools.to_vec(),
        prices: plan.config.prices().clone(),
        evidence: given.evidence.to_vec(),
        evidence_hash: evidence.map(Gatherer::hash),
    })
}

/// How models are reached and asked, and what drafts are measured by, in a run that was recorded with this. `judged`
/// says whether anything is judged.
///
/// # Errors
/// If its settings cannot be read; says why.
pub(super) fn plan(
    setup: &Setup,
    config: Config,
    criteria: &Criteria,
    loop_settings: LoopSettings,
    judged: bool,
) -> Result<Plan, String> {
    let settings: Settings =
        serde_json::from_value(setup.settings.clone()).map_err(|error| error.to_string())?;
    let mut resolved = Resolved::recorded(&settings)?;
    resolved.settings.loop_settings = loop_settings;
    resolved.settings.judge = criteria.judge_settings.clone();
    Ok(Plan {
        config,
        resolved,
        criteria: criteria.clone(),
        evidence: !setup.evidence.is_empty(),
        judged,
        tools: setup.tools.len(),
    })
}

/// Lays these settings over those of the record.
pub(super) fn change(setup: &mut Setup, settings: &Settings) -> Result<(), CliError> {
    let settings = serde_json::to_value(settings)
        .map_err(|error| CliError::failure(format!("the settings cannot be read: {error}")))?;
    merge(&mut setup.settings, without_nulls(settings));
    Ok(())
}

/// Lays one JSON object over another, key by key.
fn merge(below: &mut serde_json::Value, above: serde_json::Value) {
    match (below, above) {
        (serde_json::Value::Object(below), serde_json::Value::Object(above)) => {
            for (key, value) in above {
                merge(
                    below.entry(key).or_insert_with(|| serde_json::json!({})),
                    value,
                );
            }
        }
        (below, above) => *below = above,
    }
}

/// What the models cost: as is known today, else as was known then.
pub(super) fn prices(setup: &Setup, config: &Config) -> Prices {
    let mut prices = setup.prices.clone();
    prices.0.extend(config.prices().0.clone());
    prices
}

/// The settings that are set.
fn without_nulls(mut settings: serde_json::Value) -> serde_json::Value {
    if let Some(keys) = settings.as_object_mut() {
        keys.retain(|_, value| match value.as_object_mut() {
            Some(table) => {
                table.retain(|_, value| !value.is_null());
                !table.is_empty()
            }
            None => !value.is_null(),
        });
    }
    settings
}
