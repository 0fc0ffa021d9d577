//! The setup of a run: what is recorded so that it can be resumed.

use std::path::{Path, PathBuf};

use super::error::CliError;
#[cfg(feature = "restate")]
use super::models;
use super::settings::Plan;
#[cfg(feature = "restate")]
use crate::config::Origin;
use crate::config::{Config, Resolved, Settings};
use crate::evidence::Gatherer;
use crate::prompt::{PROMPT_VERSION, Templates};
use crate::source::redact;
use crate::types::{Criteria, Evaluator, JudgeSettings, LoopSettings, Prices, Setup};

/// The inputs of a run apart from its plan.
pub(super) struct Given<'a> {
    /// The writer, as `PROVIDER:MODEL`.
    pub(super) writer: String,
    /// Whether the user's address applies to it.
    pub(super) at_given_address: bool,
    /// The tools, as they were typed.
    pub(super) tools: &'a [String],
    /// The files and folders searched for evidence.
    pub(super) evidence: &'a [PathBuf],
}

/// Returns the setup to record when a run starts.
pub(super) fn of(
    plan: &Plan,
    given: Given<'_>,
    evidence: Option<&Gatherer>,
    templates: Option<&Templates>,
) -> Result<Setup, CliError> {
    let directory = std::env::current_dir()
        .map_err(|error| CliError::failure(format!("cannot get the current directory: {error}")))?;
    let settings = plan.settings();
    let settings = Settings {
        // The chosen model, at the chosen address.
        model: Some(given.writer),
        provider: None,
        base_url: settings
            .base_url
            .as_deref()
            .filter(|_| given.at_given_address)
            .map(|url| redact(url).into_owned()),
        allow_models: Some(settings.allow_models == Some(true) || trusts_judges(plan)),
        // These are recorded in the start event, or have already been applied.
        loop_settings: LoopSettings::default(),
        judge: JudgeSettings::default(),
        profile: None,
        criteria: None,
        criteria_path: None,
        context_messages: None,
        ..settings.clone()
    };
    let settings = serde_json::to_value(&settings)
        .map_err(|error| CliError::failure(format!("cannot record the settings: {error}")))?;
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

/// Whether some criteria name models and the user's configuration trusts all their files. The criteria of a
/// recorded run have no file.
fn trusts_judges(plan: &Plan) -> bool {
    let criteria = plan.criteria.criteria.iter();
    let mut files = criteria.filter_map(|criterion| match &criterion.evaluator {
        Evaluator::Llm(llm) if llm.model.is_some() => Some(llm.origin.file.as_deref()),
        _ => None,
    });
    let is_trusted = |file: Option<&Path>| file.is_some_and(|it| plan.config.trusts_models(it));
    files
        .next()
        .is_some_and(|first| is_trusted(first) && files.all(is_trusted))
}

/// Restores the plan of a recorded run. `judged`: whether drafts are evaluated.
///
/// # Errors
/// If its settings cannot be read, or its address is incomplete.
pub(super) fn plan(
    setup: &Setup,
    config: Config,
    criteria: &Criteria,
    loop_settings: LoopSettings,
    judged: bool,
) -> Result<Plan, CliError> {
    let unreadable = |why: &dyn std::error::Error| {
        CliError::failure(format!("cannot read the recorded settings: {why}"))
    };
    let mut settings: Settings =
        serde_json::from_value(setup.settings.clone()).map_err(|error| unreadable(&error))?;
    settings.base_url = full_address(settings.base_url, &config)?;
    let mut resolved = Resolved::recorded(&settings).map_err(|error| unreadable(&error))?;
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

/// Builds the plan of a task from another machine, for the models of this one. `own` is this machine's plan.
///
/// # Errors
/// If the task's settings cannot be read, or this machine's settings are invalid.
#[cfg(feature = "restate")]
pub(super) fn of_task(
    own: Plan,
    setup: &Setup,
    criteria: &Criteria,
    loop_settings: LoopSettings,
) -> Result<Plan, CliError> {
    let mut settings: Settings = serde_json::from_value(setup.settings.clone())
        .map_err(|error| CliError::usage(format!("the task's settings: {error}")))?;
    settings = settings.of_task();
    let ours = own.settings();
    if ours.offline == Some(true) {
        settings.offline = Some(true);
    }
    // Custom templates apply only to tasks that use the same ones.
    if setup.templates_hash.is_some() {
        settings.prompt_dir.clone_from(&ours.prompt_dir);
        settings.ca_file.clone_from(&ours.ca_file);
    }
    // A session's address applies to every provider, a file's address to the provider named there.
    let address = own.resolved.origin("base_url");
    let foreseen = models::preview(&own)?.writer;
    let provider = foreseen.map(|(name, _)| format!("{}:", name.provider));
    let names_ours = |model: &String| provider.is_some_and(|ours| model.starts_with(&ours));
    if address.is_some_and(Origin::is_of_session) || settings.model.as_ref().is_some_and(names_ours)
    {
        settings.base_url.clone_from(&ours.base_url);
    }
    let recorded = Setup {
        settings: serde_json::to_value(&settings).unwrap_or_default(),
        ..setup.clone()
    };
    let config = own.config.for_tasks();
    let mut plan = plan(&recorded, config, criteria, loop_settings, true)?;
    plan.evidence = setup.evidence_hash.is_some();
    Ok(plan)
}

/// Overrides recorded settings with these.
pub(super) fn change(setup: &mut Setup, settings: &Settings) -> Result<(), CliError> {
    let settings = serde_json::to_value(settings)
        .map_err(|error| CliError::failure(format!("cannot read the settings: {error}")))?;
    merge(&mut setup.settings, without_nulls(settings));
    Ok(())
}

/// Merges one JSON object into another, key by key.
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

/// Restores the secret parts of a recorded address from the current settings.
fn full_address(recorded: Option<String>, config: &Config) -> Result<Option<String>, CliError> {
    if recorded.as_ref().is_none_or(|url| !url.contains("***")) {
        return Ok(recorded);
    }
    let today = config
        .resolve(&Settings::default(), None)?
        .settings
        .base_url;
    let is_same = |url: &String| Some(redact(url).into_owned()) == recorded;
    today.filter(is_same).map(Some).ok_or_else(|| {
        CliError::usage("the run was recorded without the secret part of its server address")
            .hint("set `REFLECT_BASE_URL` to the full address")
    })
}

/// Returns the current prices, or else the recorded ones.
pub(super) fn prices(setup: &Setup, config: &Config) -> Prices {
    let mut prices = setup.prices.clone();
    prices.0.extend(config.prices().0.clone());
    prices
}

/// Removes unset settings.
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
