//! The models of a workflow: those its file names, unless the user overrides them for this call.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::connect::Providers;
use super::name::{ModelName, Written, is_known};
use super::trust::NamedBy;
use super::window::RunWindow;
use super::{choose, judge_model};
use crate::cli::error::CliError;
use crate::cli::exec::trust_entry;
use crate::cli::settings::Plan;
use crate::cli::{prices, printer};
use crate::config::{HumanDuration, Origin, Settings};
use crate::model::Sampling;
use crate::source::redact;
use crate::types::Task;
use crate::workflow::{ChosenModel, Failure, ModelChoice, ModelSource};

/// Opens models for a workflow, each once.
pub(in crate::cli) struct FileModels {
    plan: Plan,
    window: RunWindow,
    file: PathBuf,
    quiet: bool,
    opened: Mutex<HashMap<String, ChosenModel>>,
}

impl FileModels {
    /// Creates the source for the workflow in this file. `text` stands in for its prompts when estimating the
    /// context window.
    pub(in crate::cli) fn new(plan: Plan, file: &Path, text: &str, quiet: bool) -> Self {
        let window = RunWindow::of_run(&plan, &Task::new(text), None);
        Self {
            plan,
            window,
            file: file.to_owned(),
            quiet,
            opened: Mutex::default(),
        }
    }

    /// Whether the user has chosen the model for this call.
    fn is_decided(&self) -> bool {
        ["model", "provider", "base_url"]
            .iter()
            .any(|key| self.is_said(key))
    }

    /// Whether the user has set this key for this call.
    fn is_said(&self, key: &str) -> bool {
        let origin = self.plan.resolved.origin(key);
        origin.is_some_and(Origin::is_of_session)
    }

    /// Returns the sampling settings that the user has set for this call.
    fn decided(&self) -> Sampling {
        let said = self.plan.settings().sampling();
        Sampling {
            temperature: said.temperature.filter(|_| self.is_said("temperature")),
            top_p: said.top_p.filter(|_| self.is_said("top_p")),
            seed: said.seed.filter(|_| self.is_said("seed")),
            max_tokens: said.max_tokens.filter(|_| self.is_said("max_tokens")),
        }
    }

    /// Returns the user's settings, overridden by the file where this call does not set them.
    fn settings(&self, choice: &ModelChoice) -> Settings {
        let mut settings = self.plan.settings().clone();
        if let Some(retries) = choice.retries.filter(|_| !self.is_said("retries")) {
            settings.retries = Some(retries);
        }
        if let Some(time) = choice.timeout.filter(|_| !self.is_said("timeouts.total")) {
            settings.timeouts.total = HumanDuration::new(time).or(settings.timeouts.total);
        }
        settings
    }

    /// Returns the address that the file sets for a provider, unless it is the provider's own. The user's
    /// configuration must trust the file for that.
    fn address(
        &self,
        choice: &ModelChoice,
        provider: &str,
        providers: &Providers<'_>,
    ) -> Result<Option<String>, CliError> {
        let Some(address) = &choice.api_base else {
            return Ok(None);
        };
        let place = format!("`api_base` in {}", self.file.display());
        if providers.is_at(provider, address)? {
            return Ok(None);
        }
        let config = &self.plan.config;
        let file = self.file.canonicalize().ok();
        let file = file.as_deref();
        if file.is_some_and(|file| config.trusts_endpoints(file)) {
            return Ok(Some(address.clone()));
        }
        let entry = trust_entry("endpoints", file, config.user_path());
        let entry = entry.unwrap_or_else(|| "trust it in your configuration".to_owned());
        Err(CliError::usage(format!(
            "{place} sends your prompts to {}, which needs your permission",
            redact(address)
        ))
        .hint(format!(
            "pass the address with `--base-url`, or, if you trust the workflow, {entry}"
        )))
    }

    /// Resolves a choice to a model name, and whether the user's address applies to it.
    async fn name(
        &self,
        choice: &ModelChoice,
        providers: &Providers<'_>,
    ) -> Result<(ModelName, bool), CliError> {
        let config = &self.plan.config;
        let by = NamedBy::file(&self.file, config);
        let wanted = match choice.model.as_deref() {
            // The notation of other tools: `PROVIDER/MODEL`.
            Some(text) => match text.split_once('/') {
                Some((provider, model))
                    if is_known(provider, config) && !config.aliases().contains_key(text) =>
                {
                    Written {
                        provider: Some(provider.to_owned()),
                        model: Some(model.to_owned()),
                        by: by.clone(),
                    }
                }
                _ => Written::read(text, by.clone(), config),
            },
            None => Written {
                provider: None,
                model: None,
                by: by.clone(),
            },
        };
        let at_address = choice.api_base.as_ref().map(|_| "openai");
        let provider = choice.provider.as_deref().or(at_address);
        match (&wanted.provider, provider) {
            (Some(provider), _) => {
                let provider = provider.clone();
                let (model, by) = (wanted.model, wanted.by);
                Ok((
                    ModelName {
                        provider,
                        model,
                        by,
                    },
                    false,
                ))
            }
            (None, Some(provider)) => {
                let written = Written::provider(provider, by, config)?;
                let name = ModelName {
                    provider: written.provider.unwrap_or_default(),
                    model: wanted.model.or(written.model),
                    by: written.by,
                };
                Ok((name, false))
            }
            (None, None) => {
                let chosen = choose::writer_named(&self.plan, providers, wanted).await?;
                Ok((chosen.name, chosen.at_given_address))
            }
        }
    }

    async fn open_choice(&self, choice: &ModelChoice) -> Result<ChosenModel, CliError> {
        let settings = self.settings(choice);
        let config = &self.plan.config;
        let mut providers = Providers::new(config, &settings)
            .with_waits(choice.first_wait, choice.longest_wait)
            .quietly(self.quiet);
        let trusted;
        let (mut name, at_given_address) = if self.is_decided() {
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
        } else if !self.is_decided()
            && let Some(address) = self.address(choice, &name.provider, &providers)?
        {
            trusted = Settings {
                base_url: Some(address),
                ..settings.clone()
            };
            providers = Providers::new(config, &trusted)
                .with_waits(choice.first_wait, choice.longest_wait)
                .with_address_of_file(&name.provider);
            // The address is trusted. A model file on this machine still is not.
            if let NamedBy::File { trusted, .. } = &mut name.by {
                *trusted = true;
            }
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
            printer::say(&format!("{what}: {}{}", opened.model.id(), opened.about()));
        }
        let decided = self.decided();
        Ok(if choice.judges {
            let judge = judge_model(opened, &settings);
            ChosenModel {
                model: judge.model,
                sampling: judge.sampling,
                decided,
                think: judge.think,
            }
        } else {
            ChosenModel {
                model: opened.model,
                sampling: self.window.writer_sampling(&settings, &name.provider),
                decided,
                think: settings.think.unwrap_or_default(),
            }
        })
    }
}

#[async_trait(?Send)]
impl ModelSource for FileModels {
    async fn open(&self, choice: &ModelChoice) -> Result<ChosenModel, Failure> {
        let key = if self.is_decided() {
            // The user's choice overrides the model that the file names.
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
        let lock = || self.opened.lock();
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
    /// Wraps it for a workflow.
    pub(in crate::cli) fn shared(self) -> Arc<dyn ModelSource> {
        Arc::new(self)
    }
}
