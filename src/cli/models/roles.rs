//! The models that a run would use, before any of them is asked.

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
    /// What it does: `writes and judges`.
    pub(in crate::cli) role: &'static str,
    /// Its provider, and its name there unless that is found out.
    pub(in crate::cli) name: ModelName,
    /// Why it was chosen, where that was not the user's word for this very role.
    pub(in crate::cli) why: Option<String>,
}

/// The models that a run would use.
pub(in crate::cli) struct ModelRoles<'a> {
    providers: Providers<'a>,
    window: RunWindow,
    /// The one that writes first.
    pub(in crate::cli) members: Vec<Member>,
}

impl<'a> ModelRoles<'a> {
    /// Chooses them as a run would. Asks nothing but whether an Ollama is running, where nobody says which
    /// model is meant.
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

    /// How a member's provider is reached.
    ///
    /// # Errors
    /// If its address or key cannot be used.
    pub(in crate::cli) fn backend(&self, member: &Member) -> Result<Backend, CliError> {
        self.providers.backend(&member.name.provider)
    }

    /// Where the key of a member's provider was found; `None` if there is none. To be asked after
    /// [`Self::backend`].
    ///
    /// # Errors
    /// If it needs one and there is none.
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

    /// Opens a member's model. Weights of an embedded model are fetched if they are not here.
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

    /// The context window that Ollama is asked for, once it is decided.
    pub(in crate::cli) fn num_ctx(&self) -> Option<u64> {
        self.window.num_ctx.get()
    }
}
