//! The models of a workflow: what its file wants, unless the user says otherwise for this call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::connect::Providers;
use super::name::{ModelName, Written, is_known};
use super::window::RunWindow;
use super::{choose, judge_sampling};
use crate::cli::error::CliError;
use crate::cli::settings::Plan;
use crate::cli::{prices, printer};
use crate::config::{HumanDuration, Origin, Settings};
use crate::model::{BaseUrl, Sampling};
use crate::types::Task;
use crate::workflow::{ChosenModel, Failure, ModelChoice, ModelSource};

/// Opens models for a workflow; each once.
pub(in crate::cli) struct FileModels {
    plan: Plan,
    window: RunWindow,
    /// Whether the file may say where models are: the user trusts it.
    trusted: bool,
    quiet: bool,
    opened: Mutex<HashMap<String, ChosenModel>>,
}

impl FileModels {
    /// For a workflow with this text, which stands for the length of its prompts.
    pub(in crate::cli) fn new(plan: Plan, text: &str, trusted: bool, quiet: bool) -> Self {
        let window = RunWindow::of_run(&plan, &Task::new(text), None);
        Self {
            plan,
            window,
            trusted,
            quiet,
            opened: Mutex::default(),
        }
    }

    /// Whether the user has said for this call which model is to be used.
    fn is_decided(&self) -> bool {
        ["model", "provider", "base_url"]
            .iter()
            .any(|key| self.is_said(key))
    }

    /// Whether the user has said this for this call.
    fn is_said(&self, key: &str) -> bool {
        let origin = self.plan.resolved.origin(key);
        origin.is_some_and(Origin::is_of_session)
    }

    /// What the user has said for this call of how tokens are chosen.
    fn decided(&self) -> Sampling {
        let said = self.plan.settings().sampling();
        Sampling {
            temperature: said.temperature.filter(|_| self.is_said("temperature")),
            top_p: said.top_p.filter(|_| self.is_said("top_p")),
            seed: said.seed.filter(|_| self.is_said("seed")),
            max_tokens: said.max_tokens.filter(|_| self.is_said("max_tokens")),
        }
    }

    /// The user's settings with what the file says over them, as far as it may.
    fn settings(&self, choice: &ModelChoice) -> Result<Settings, CliError> {
        let mut settings = self.plan.settings().clone();
        if let Some(retries) = choice.retries.filter(|_| !self.is_said("retries")) {
            settings.retries = Some(retries);
        }
        if let Some(time) = choice.timeout.filter(|_| !self.is_said("timeouts.total")) {
            settings.timeouts.total = HumanDuration::new(time).or(settings.timeouts.total);
        }
        if let Some(address) = choice.api_base.as_ref().filter(|_| !self.is_decided()) {
            let url = BaseUrl::openai(address)
                .map_err(|error| CliError::usage(format!("`api_base` of the workflow: {error}")))?;
            if !url.is_loopback() && !self.trusted {
                return Err(CliError::usage(format!(
                    "the workflow sends its prompts to {url}, which has not been allowed"
                ))
                .hint(
                    "if you trust it, allow it with `--allow-exec`, or say yourself where the model is \
                     with `--base-url`",
                ));
            }
            settings.base_url = Some(address.clone());
        }
        Ok(settings)
    }

    /// The model that a choice means.
    async fn name(
        &self,
        choice: &ModelChoice,
        providers: &Providers<'_>,
    ) -> Result<(ModelName, bool), CliError> {
        let config = &self.plan.config;
        let wanted = choice.model.as_deref().map(|text| {
            let text = config.aliases().get(text).map_or(text, String::as_str);
            // As other tools write it: the provider, a slash, and its model.
            match text.split_once('/') {
                Some((provider, model)) if is_known(provider, config) => Written {
                    provider: Some(provider.to_owned()),
                    model: Some(model.to_owned()),
                },
                _ => Written::read(text, config),
            }
        });
        let said = wanted.as_ref().and_then(|wanted| wanted.provider.clone());
        let given = choice.api_base.is_some();
        let provider = said
            .or_else(|| choice.provider.clone())
            .or_else(|| given.then(|| "openai".to_owned()));
        let model = wanted.and_then(|wanted| wanted.model);
        if let Some(provider) = provider {
            let written = Written::provider(&provider, config)?;
            return Ok((
                ModelName {
                    provider: written.provider.unwrap_or(provider),
                    model: model.or(written.model),
                },
                given,
            ));
        }
        let chosen = choose::writer_named(&self.plan, providers, model).await?;
        Ok((chosen.name, chosen.at_given_address))
    }

    async fn open_choice(&self, choice: &ModelChoice) -> Result<ChosenModel, CliError> {
        let settings = self.settings(choice)?;
        let mut providers = Providers::new(&self.plan.config, &settings)
            .with_waits(choice.first_wait, choice.longest_wait);
        let (name, at_given_address) = if self.is_decided() {
            let chosen = choose::writer(&self.plan, &providers).await?;
            let judge = if choice.judges {
                choose::judge(&self.plan, &providers, &chosen.name)?
            } else {
                None
            };
            match judge {
                Some(judge) => (judge, false),
                None => (chosen.name, chosen.at_given_address),
            }
        } else {
            self.name(choice, &providers).await?
        };
        if at_given_address {
            providers = providers.with_given_address(&name.provider);
        }
        let opened = providers.open(&name, &self.window, self.quiet).await?;
        let prices = self.plan.config.prices();
        prices::limit(
            &self.plan,
            prices,
            std::iter::once(opened.model.id()),
            self.quiet,
        )?;
        if !self.quiet {
            let what = if choice.judges { "judge" } else { "model" };
            printer::say(&format!("{what}: {}{}", opened.model.id(), opened.leaves()));
        }
        let sampling = if choice.judges {
            judge_sampling(&settings, opened.local)
        } else {
            self.window.writer_sampling(&settings, &name.provider)
        };
        Ok(ChosenModel {
            model: opened.model,
            sampling,
            decided: self.decided(),
            think: settings.think.unwrap_or_default(),
        })
    }
}

#[async_trait(?Send)]
impl ModelSource for FileModels {
    async fn open(&self, choice: &ModelChoice) -> Result<ChosenModel, Failure> {
        let key = if self.is_decided() {
            // Whatever model the file names, it is not the one that is opened.
            let asked = ModelChoice {
                provider: None,
                model: None,
                api_base: None,
                ..choice.clone()
            };
            format!("{asked:?}")
        } else {
            format!("{choice:?}")
        };
        let lock = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let chosen = self.open_choice(choice).await.map_err(|error| {
            let failure = Failure::new(error.code, error.message);
            match error.hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        })?;
        lock().insert(key, chosen.clone());
        Ok(chosen)
    }
}

impl FileModels {
    /// To be handed to a workflow.
    pub(in crate::cli) fn shared(self) -> Arc<dyn ModelSource> {
        Arc::new(self)
    }
}
