//! The models that a run would use, before any call.

use std::sync::Arc;

use super::choose;
use super::connect::{Backend, Providers};
use super::name::ModelName;
use super::window::RunWindow;
use crate::cli::error::CliError;
use crate::cli::settings::Plan;
use crate::model::ChatModel;
use crate::types::Task;

/// A model that a run would use.
pub(in crate::cli) struct Member {
    /// Its role, e.g. `writer and judge`.
    pub(in crate::cli) role: &'static str,
    /// Its provider, and its model name if known.
    pub(in crate::cli) name: ModelName,
    /// Why it was chosen, if the user did not choose it for this role.
    pub(in crate::cli) why: Option<String>,
}

/// The models that a run would use, with their providers.
pub(in crate::cli) struct ModelRoles<'a> {
    providers: Providers<'a>,
    window: RunWindow,
    /// The models; the writer comes first.
    pub(in crate::cli) members: Vec<Member>,
}

impl<'a> ModelRoles<'a> {
    /// Chooses the models as a run would. Only checks for a running Ollama, and only if no model is set.
    pub(in crate::cli) async fn of(plan: &'a Plan) -> Result<Self, CliError> {
        let mut providers = Providers::new(&plan.config, plan.settings());
        let writer = choose::writer(plan, &providers).await?;
        if writer.at_given_address {
            providers = providers.with_given_address(&writer.name.provider);
        }
        let judge = choose::judge(plan, &providers, &writer.name)?;
        let judge = judge.filter(|name| !name.is(&writer.name));
        let stronger = choose::stronger(plan, &providers, &writer.name)?;
        let stronger = stronger.filter(|name| !name.is(&writer.name));
        let mut members = vec![Member {
            role: if judge.is_some() {
                "writes"
            } else {
                "writer and judge"
            },
            name: writer.name,
            why: Some(writer.why),
        }];
        let others = [(judge, "judges"), (stronger, "stronger model")];
        members.extend(others.into_iter().filter_map(|(name, role)| {
            Some(Member {
                role,
                name: name?,
                why: None,
            })
        }));
        Ok(Self {
            providers,
            window: RunWindow::of_run(plan, &Task::default(), None),
            members,
        })
    }

    /// Returns the backend of a member's provider.
    ///
    /// # Errors
    /// If its address or key is unusable.
    pub(in crate::cli) fn backend(&self, member: &Member) -> Result<Backend, CliError> {
        self.providers.backend(&member.name.provider)
    }

    /// Returns where the key of a member's provider was found; `None` if there is none. Call it after
    /// [`Self::backend`].
    ///
    /// # Errors
    /// If a key is required and missing.
    pub(in crate::cli) fn key_origin(
        &self,
        member: &Member,
        backend: &Backend,
    ) -> Result<Option<String>, CliError> {
        if let Backend::OpenAi(connection) = backend {
            self.providers
                .check_key(&member.name.provider, connection)?;
        }
        Ok(self.providers.key_origin(&member.name.provider))
    }

    /// Opens a member's model. Downloads the weights of an embedded model if needed.
    pub(in crate::cli) async fn open(
        &self,
        member: &Member,
    ) -> Result<Arc<dyn ChatModel>, CliError> {
        let opened = self
            .providers
            .open(&member.name, &self.window, true)
            .await?;
        Ok(opened.model)
    }

    /// Returns the context window to request from Ollama, once it is decided.
    pub(in crate::cli) fn num_ctx(&self) -> Option<u64> {
        self.window.num_ctx.get()
    }
}
